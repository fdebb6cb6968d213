"""Sinks: how each kind commits, what it flushes, and whether barriers may overtake data in front of it."""

from __future__ import annotations

from fractions import Fraction
from typing import ClassVar, Literal

from sim.model.catalogs import Catalog
from sim.model.frozen import frozen
from sim.model.options import ValidationContext, option
from sim.model.value_types import Count, Duration, Natural, Positive, Share, Size

# ---- Output of operators at a snapshot: files, and transactions.


MAX_FILES = 10_000


@frozen
class Flush:
    """The files that a subtask writes per snapshot (prepareSnapshotPreBarrier of a file sink).  None without a record since the last."""

    bytes: Size = option(0, "Total size of the files of one subtask and snapshot.")
    share: Share = option(Fraction(0), "Size of the files as a share of the bytes read since the last flush.")
    files: Positive = option(1, "Number of files.")

    HINTS: ClassVar = {"size": "did you mean bytes?", "threads": "write upload-threads in checkpoint:"}

    def completed(self, at: ValidationContext) -> Flush:
        if at.written("bytes") is None and at.written("share") is None:
            at.error("write bytes: (per subtask and snapshot), share: (of the bytes read), or both")
        if self.files > MAX_FILES:
            at.error(f"is {self.files}: at most {MAX_FILES} per subtask and snapshot", "files")
        return self


@frozen
class Commit:
    """Transactional output: it becomes visible when its checkpoint is complete (TwoPhaseCommittingSink).

    `committer`: chained = every writer is followed by its own in the same task; global = one subtask behind all writers.
    """

    committer: Literal["chained", "global"] = option(
        "chained", "chained: each writer has a committer in its task; global: one committer subtask for all writers."
    )
    time_ns: Duration = option(0, "Time on the committer's task thread per commit.")
    transaction_timeout_ns: Duration | None = option(
        None,
        "Age at which the external system aborts an open transaction, so that its records are lost.",
        default_text="never",
    )
    exchange: Literal["aligned", "as-job", "aligns-job"] = option(
        "aligned",
        "Edge to a global committer.  aligned: barriers do not overtake (FLINK-36287); as-job: barriers overtake "
        "committables as they do data\n"
        "(earlier versions of Flink); aligns-job: no barrier of the whole job overtakes (FLINK-37870).",
        needs=("committer", ("global",)),
    )
    late: Literal["commits", "replaces"] = option(
        "commits",
        "A committable that arrives after the barrier of its checkpoint.  commits: it is committed separately (CommitterOperator);\n"
        "replaces: it replaces earlier committables of its checkpoint (Iceberg's FlinkSink).",
        needs=("committer", ("global",)),
    )
    retries: Natural = option(
        0,
        "Number of retries of a failed commit (see faults: commit).\n"
        "With Flink 1.x there is one per second, without limit unless gives-up is drop.",
        default_text="that of the connector, else 0",
    )
    gives_up: Literal["restart", "drop"] = option(
        "restart",
        "After the last retry: the job restarts and commits again, or the records are lost.",
        default_text="that of the connector, else restart",
    )
    holds_back: Count = option(
        0, "Records per input channel that the sink keeps in state until finish(), such as an open window."
    )
    emits: Literal["at-once", "on-commit"] = option(
        "at-once",
        "When records are emitted downstream: as they are processed (the default), or all of a checkpoint once they are committed.",
    )


# ---- Sinks: one record each, with its behaviour at a checkpoint.  Each fact has its source.
#
# A vertex names its sink by `connector:`.  `advise` needs it before it recommends unaligned checkpoints, and it has the
# defaults of `commit:`.

Overtaking = Literal["safe", "aligned inside", "loses", "refused"]
"""Effect of unaligned checkpoints: none; Flink keeps barriers aligned inside the sink; records are lost; the job fails to start."""

DOES_NOT_START = "does not start"
_DOCS = "nightlies.apache.org/flink/flink-docs-stable/docs/connectors/datastream"


@frozen
class SinkKind:
    """A sink, with its facts."""

    name: str  # as a scenario and --sink write it
    title: str
    at_checkpoint: str  # what it does then, and when its output is visible
    overtaking: Overtaking
    source: str  # of the two facts above
    why: str = ""  # why barriers must not overtake, or what to look at
    instead: str = ""  # a sink or a setting without this problem
    timeout: str = ""  # option that bounds how long a transaction stays open, with its default
    component: str = ""  # of the catalogue of known defects
    commit: Commit | None = None  # the defaults of `commit:`; None: its output is visible at once
    committers: tuple[Literal["committer", "global-committer"], ...] = ("committer",)  # of Flink's Sink V2; (): its own
    broker_allows_ns: int | None = None  # by default; a sink that asks for more does not start
    failed_commit: str = ""  # what follows a failed commit, and the source of `retries` and `gives_up`
    fails_after_restore: bool = False  # once more, after it has committed what was restored
    readers: str = ""  # what they have to set, so that output counts once
    left_out: str = ""  # what it does and a simulation does not, as a verb phrase
    metadata: str = ""  # files of the table's own that each commit writes, at least; from the format's specification
    answers_to: tuple[str, ...] = ()  # parts of operators' names that it is known by, in small letters and digits alone

    @property
    def verdict(self) -> str:
        """The effect of unaligned checkpoints as a verb phrase; empty if there is no harm."""
        return {"loses": "loses records", "refused": DOES_NOT_START}.get(self.overtaking, "")


ALIGNED_INSIDE = (
    "Flink keeps barriers aligned between writer and committer (FLINK-36287, Flink 2.0; not before). "
    "Where FLINK-37870 is not fixed (1.20: before 1.20.2; 2.0.0), such a sink switches unaligned off in the whole job"
)
"""Sinks whose committer is not chained.  Sources: release notes of Flink 2.0 and 1.20.2; apache/flink#26619."""

_HOUR_NS = 3600 * 10**9

SINKS: Catalog[SinkKind] = Catalog(
    SinkKind(
        "kafka-exactly-once",
        "KafkaSink, exactly once",
        "a transaction per checkpoint and subtask: output is visible to readers of committed records when the checkpoint completes",
        "safe",
        f"{_DOCS}/kafka",
        why="a transaction that is open for longer than transaction.timeout.ms is lost: it has to exceed the longest checkpoint "
        "and the longest downtime",
        timeout="transaction.timeout.ms, 1 h by KafkaSink; brokers allow transaction.max.timeout.ms, 15 min",
        commit=Commit(transaction_timeout_ns=_HOUR_NS, retries=10),
        broker_allows_ns=_HOUR_NS // 4,
        component="flink-connector-kafka",
        readers="readers need isolation.level=read_committed: by default they also see records of transactions that were aborted",
        failed_commit="KafkaCommitter: a RetriableException is tried again (sink.committer.retries, FLINK-36455), others restart the job; "
        "a fenced or aborted transaction is logged and lost",
    ),
    SinkKind(
        "kafka-at-least-once",
        "KafkaSink, at least once",
        "a flush: output is visible at once, and twice after a restart",
        "safe",
        f"{_DOCS}/kafka",
        component="flink-connector-kafka",
    ),
    SinkKind(
        "file-sink",
        "FileSink",
        "files of the checkpoint are renamed when it completes: only then readers see them",
        "safe",
        f"{_DOCS}/filesystem",
        commit=Commit(),
        failed_commit="FileCommitter: commitAfterRecovery throws",
    ),
    SinkKind(
        "file-sink-compaction",
        "FileSink with compaction",
        "as FileSink, after a compactor between writer and committer",
        "aligned inside",
        "apache/flink#18916 (FLINK-26314); FLINK-36287",
        why="its compactor cannot work with unaligned checkpoints",
        left_out="compacts files once their checkpoint completes and commits them with the next one (CompactorOperator): "
        "readers see output one interval later than here, which commits with its own checkpoint",
        commit=Commit("global"),
        failed_commit="FileCommitter: commitAfterRecovery throws",
    ),
    SinkKind(
        "iceberg-v1",
        "Iceberg's FlinkSink",
        "a committer of parallelism 1 behind an exchange commits all files of the checkpoint",
        "loses",
        "apache/iceberg#15846, #15913",
        answers_to=("icebergfilescommitter", "icebergstreamwriter"),
        why="its committer keeps one list of files per checkpoint. If the barrier overtakes some and that checkpoint fails, they replace "
        "the list that is there; after a restore, lists older than the table's newest commit are dropped: their records are lost",
        instead="IcebergSink (iceberg-v2)",
        commit=Commit("global", exchange="as-job", late="replaces"),
        committers=(),
        component="iceberg",
        metadata="a manifest, a manifest list and a table metadata file",
        failed_commit="IcebergFilesCommitter#notifyCheckpointComplete throws, after the retries of the table (commit.retry.num-retries)",
    ),
    SinkKind(
        "iceberg-v2",
        "Iceberg's IcebergSink",
        "an aggregator and a committer behind the writers commit all files of the checkpoint; of checkpoints without any, every tenth in a "
        "row commits an empty snapshot (flink.max-continuous-empty-commits), which is not simulated",
        "aligned inside",
        "apache/iceberg#10179; FLINK-36287",
        why="before FLINK-36287 a file may arrive after the commit",
        commit=Commit("global"),
        component="iceberg",
        metadata="a manifest, a manifest list and a table metadata file",
        failed_commit="IcebergCommitter#commit throws, after the retries of the table",
    ),
    SinkKind(
        "jdbc-xa",
        "JdbcSink, exactly once",
        "an XA transaction per checkpoint and subtask, prepared and then committed",
        "safe",
        f"{_DOCS}/jdbc; FLINK-22311",
        why="prepared transactions hold locks until the checkpoint completes; maxRetries has to be 0",
        timeout="the database's own; PostgreSQL needs max_prepared_transactions > 0",
        commit=Commit(),
        component="flink-connector-jdbc",
        failed_commit="JdbcCommitter#commit throws",
    ),
    SinkKind(
        "jdbc",
        "JdbcSink, at least once",
        "a batch is written: output is visible at once",
        "safe",
        f"{_DOCS}/jdbc",
        component="flink-connector-jdbc",
    ),
    SinkKind(
        "paimon",
        "Paimon",
        "a committer of parallelism 1 commits a snapshot of the table",
        "refused",
        "apache/paimon#352 (FLINK-29876), #9451",
        answers_to=("paimon",),
        why="the job does not start: FlinkSink checks that unaligned checkpoints are off, unless its coordinator commits (#9451)",
        instead="aligned checkpoints, with buffer debloating",
        commit=Commit("global"),
        committers=(),
        component="paimon",
        metadata="a snapshot, two manifest lists and a manifest",
        failed_commit="CommitterOperator#notifyCheckpointComplete throws; having committed what was restored, the job fails once more on "
        "purpose (RestoreAndFailCommittableStateManager, of tables with buckets)",
        fails_after_restore=True,
    ),
    SinkKind(
        "hudi",
        "Hudi",
        "writers flush their buckets, a coordinator commits the instant",
        "loses",
        "apache/hudi#19763",
        answers_to=("hoodie", "hudi"),
        why="its protocol relies on aligned barriers behind the shuffle: after a recovery from an unaligned checkpoint records of "
        "copy-on-write tables may be hidden, which is not simulated",
        instead="aligned checkpoints, with buffer debloating",
        commit=Commit("global"),
        committers=(),
        component="hudi",
        metadata="three files of its timeline (requested, inflight, completed)",
        failed_commit="StreamWriteOperatorCoordinator fails the whole job (exceptionHook); that its restart may lose the instant "
        "(apache/hudi#19215) is not simulated",
    ),
    SinkKind(
        "pulsar-exactly-once",
        "PulsarSink, exactly once",
        "a transaction per checkpoint and subtask",
        "safe",
        f"{_DOCS}/pulsar",
        why="a transaction that is open for longer than its timeout is lost",
        timeout="pulsar.sink.transactionTimeoutMillis, 3 h",
        commit=Commit(transaction_timeout_ns=3 * _HOUR_NS, retries=5, gives_up="drop"),
        component="pulsar",
        failed_commit="PulsarCommitter: pulsar.sink.maxRecommitTimes attempts, then signalFailedWithKnownReason: logged and lost",
    ),
    SinkKind(
        "delta",
        "Delta Lake's DeltaSink",
        "a global committer behind the writers commits all files of the checkpoint to the table's log",
        "aligned inside",
        "delta-io/connectors#467; FLINK-36287",
        why="before FLINK-36287 a file may arrive after the commit",
        commit=Commit("global"),
        committers=("committer", "global-committer"),
        component="delta",
        metadata="a file of its log",
        failed_commit="an exception of a committer restarts the job (CommitRequestImpl)",
    ),
    SinkKind(
        "at-least-once",
        "a sink that writes at once",
        "a flush at most: output is visible at once, and twice after a restart",
        "safe",
        "nightlies.apache.org/flink/flink-docs-stable/docs/connectors/datastream/guarantees",
    ),
)


def recognised(vertex: str) -> SinkKind | None:
    """Return the sink whose operator names are in the name of a vertex, or None."""
    plain = "".join(letter for letter in vertex.lower() if letter.isalnum())
    return next((kind for kind in SINKS.values() for part in kind.answers_to if part in plain), None)
