"""Output of operators beside their state: files per snapshot, and their transactions.  Frozen."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from sim.model.catalogs.option import Kind, option
from sim.model.catalogs.sinks import SinkKind


@dataclass(frozen=True, slots=True)
class Flush:
    """The files that a subtask writes per snapshot (prepareSnapshotPreBarrier of a file sink).  None without a record since the last."""

    bytes: int = option(Kind.SIZE, 0, "Bytes of one subtask and snapshot, all files together.")
    share: Fraction = option(Kind.SHARE, Fraction(0), "Share of the bytes read since the last flush.")
    files: int = option(Kind.POSITIVE, 1, "Files that hold it.")


@dataclass(frozen=True, slots=True)
class Commit:
    """Transactional output: it becomes visible when its checkpoint is complete (TwoPhaseCommittingSink).

    `committer`: chained = every writer is followed by its own in the same task; global = one subtask behind all writers.
    """

    committer: Literal["chained", "global"] = option(
        Kind.WORD, "chained", "chained: each writer has its own, in its task; global: one subtask behind all writers."
    )
    time_ns: int = option(Kind.DURATION, 0, "On the committer's task thread, per commit.")
    transaction_timeout_ns: int | None = option(
        Kind.DURATION, None, "The external system forgets a transaction that is open longer: its records are lost.", usually="never"
    )
    exchange: Literal["aligned", "as-job", "aligns-job"] = option(
        Kind.WORD, "aligned",
        "To a global committer: aligned = its barriers never overtake (FLINK-36287), as-job = they overtake committables as they do "
        "data (Flink before), aligns-job = no barrier of the whole job overtakes (FLINK-37870).",
        needs=("committer", ("global",)),
    )  # fmt: skip
    late: Literal["commits", "replaces"] = option(
        Kind.WORD, "commits",
        "A committable behind its own barrier: commits = it is committed on its own (CommitterOperator), "
        "replaces = it takes the place of its checkpoint's earlier ones (Iceberg's FlinkSink).",
        needs=("committer", ("global",)),
    )  # fmt: skip
    retries: int = option(
        Kind.NATURAL, 0,
        "Further attempts at a commit that fails (faults: commit).\n"
        "With Flink 1.x there is one each second, without limit unless gives-up is drop.", usually="as the connector has it, else 0",
    )  # fmt: skip
    gives_up: Literal["restart", "drop"] = option(
        Kind.WORD, "restart", "What follows on the last failed attempt: the job restarts and commits again, or the records are lost.",
        usually="as the connector has it, else restart",
    )  # fmt: skip
    holds_back: int = option(Kind.COUNT, 0, "Records per input channel it keeps in its state until finish(), e.g. an open window.")
    emits: Literal["at-once", "on-commit"] = option(
        Kind.WORD, "at-once", "When records go on downstream: as they are served (the default), or all of an epoch when they are committed."
    )


def commit_of(kind: SinkKind) -> Commit | None:
    """The default commit options of a sink; None: it commits nothing."""
    if kind.committer == "none":
        return None
    return Commit(
        kind.committer, transaction_timeout_ns=kind.transaction_timeout_ns, exchange=kind.exchange, late=kind.late, retries=kind.retries,
        gives_up=kind.gives_up,
    )  # fmt: skip
