"""Flink's configuration keys as this project sees them: modelled, known but not modelled, or unknown.

The modelled ones come from the records of options.  Sources of all: the `*Options` classes of flink-core (ConfigOptions) of 1.20 and 2.x,
deprecated names included.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, get_args

from sim.model.catalogs.option import Flink, Kind, Option
from sim.scenario.document import Document
from sim.scenario.grammar.options import Options
from sim.scenario.grammar.section import REBUILDS, Section

_FORMS = {
    Kind.DURATION: "duration", Kind.INTERVAL: "interval", Kind.SIZE: "size", Kind.PERCENT: "percent", Kind.NUMBER: "number",
    Kind.SHARE: "share", Kind.SWITCH: "boolean", Kind.ON_OFF: "boolean",
    **dict.fromkeys((Kind.POSITIVE, Kind.NATURAL, Kind.COUNT, Kind.PARALLELISM), "integer"),
}  # fmt: skip
"""How Flink writes what a kind of option is, where its key does not say another form."""


@dataclass(frozen=True, slots=True)
class FlinkKey:
    """A key of Flink, the option that it is about, and where that stands in a scenario."""

    flink: Flink
    record: Option
    model: type  # the dataclass whose option it is
    path: tuple[str, ...]  # VERTEX stands for every vertex
    is_alone: bool  # its value goes to its place, independent of other keys

    @property
    def form(self) -> str:
        return self.flink.form or _FORMS[self.record.kind]


def modelled_keys() -> dict[str, FlinkKey]:
    """By current name."""
    return _modelled(REBUILDS[0])


@lru_cache(maxsize=1)
def _modelled(rebuilds: int) -> dict[str, FlinkKey]:  # noqa: ARG001  # other keys after each of them
    return {
        key.name: FlinkKey(key, record, model, path, _is_alone(path, record, inside))
        for path, model, record, inside in _options(Document, (), inside=None)
        for key in record.flink
    }


def current_names() -> dict[str, str]:
    """Older name -> current name."""
    return {older: name for name, key in modelled_keys().items() for older in key.flink.older}


def _is_alone(path: tuple[str, ...], record: Option, inside: Option | None) -> bool:
    """Whether a key is moved alone.  Several keys of one option, a switch with its details, and keys of vertices are not."""
    in_optional_section = inside is not None and inside.default is None
    return (
        len(record.flink) == 1
        and record.kind is not Kind.OWN
        and record.key != "strategy"
        and not ("VERTEX" in path or in_optional_section)
    )


def _options(
    section: type[Section], path: tuple[str, ...], *, inside: Option | None
) -> Iterator[tuple[tuple[str, ...], type, Option, Option | None]]:
    """(path, dataclass, option, option whose section holds it) of all that stand in a section."""
    made = section.OPTIONS if issubclass(section, Options) else {}
    records = {attribute: (model, record) for model, found in made.items() for attribute, record in found.items()}
    for attribute, field in section.model_fields.items():
        here = (*path, field.alias or attribute)
        model, record = records.get(attribute, (object, None))
        if record is not None and record.flink:
            yield here, model, record, inside
        for inner in _sections_of(field.annotation):
            yield from _options(inner, (*here, "VERTEX") if here == ("job",) else here, inside=record)


def _sections_of(annotation: Any) -> set[type[Section]]:
    if isinstance(annotation, type) and issubclass(annotation, Section):
        return {annotation}
    return {found for part in get_args(annotation) for found in _sections_of(part)}


UNLIMITED = "2147483647"
"""Integer.MAX_VALUE, as Flink writes that attempts have no limit."""
NAMES_BESIDE = {"execution.state-recovery.claim-mode": {"execution.savepoint-restore-mode": "1.19"}}
"""Older names of keys that advice sets and no option is about, as in `Flink.older`."""
NOT_MODELLED = frozenset(
    """
execution.async-state.buffer-size execution.async-state.buffer-timeout execution.async-state.in-flight-records-limit
execution.batch-shuffle-mode execution.runtime-mode execution.sort-partition.memory
execution.checkpointing.cleaner.parallel-mode
execution.checkpointing.dir
execution.checkpointing.externalized-checkpoint-retention execution.checkpointing.file-merging.max-subtasks-per-file
execution.checkpointing.file-merging.pool-blocking
execution.checkpointing.local-backup.dirs
execution.checkpointing.recover-without-channel-state.checkpoint-id execution.checkpointing.savepoint-dir
execution.checkpointing.snapshot-compression execution.checkpointing.storage execution.checkpointing.unaligned.forced
execution.checkpointing.write-buffer-size
execution.state-recovery.claim-mode execution.state-recovery.ignore-unclaimed-state
execution.state-recovery.path execution.state-recovery.without-channel-state.checkpoint-id execution.savepoint.path
execution.savepoint.ignore-unclaimed-state execution.attached execution.shutdown-on-attached-exit execution.target
state.backend.latency-track.keyed-state-enabled
state.backend.rocksdb.localdir state.backend.rocksdb.memory.managed
state.backend.rocksdb.memory.write-buffer-ratio state.backend.rocksdb.predefined-options
state.backend.rocksdb.timer-service.factory state.backend.rocksdb.use-ingest-db-restore-mode
state.changelog.dstl.dfs.base-path
state.changelog.dstl.dfs.compression.enabled state.changelog.dstl.dfs.upload.max-in-flight
state.changelog.max-failures-allowed state.changelog.periodic-materialize.enabled
state.checkpoint-storage state.checkpoints.dir
state.cleaner.parallel-mode state.savepoints.dir state.storage.fs.write-buffer-size state.ttl.enabled
taskmanager.memory.flink.size taskmanager.memory.framework.heap.size taskmanager.memory.framework.off-heap.size
taskmanager.memory.jvm-metaspace.size taskmanager.memory.jvm-overhead.fraction taskmanager.memory.jvm-overhead.max
taskmanager.memory.jvm-overhead.min taskmanager.memory.managed.fraction taskmanager.memory.managed.size
taskmanager.memory.managed.consumer-weights taskmanager.memory.network.fraction taskmanager.memory.network.max
taskmanager.memory.network.min taskmanager.memory.process.size taskmanager.memory.task.heap.size taskmanager.memory.task.off-heap.size
taskmanager.network.blocking-shuffle.compression.enabled taskmanager.network.compression.codec taskmanager.network.detailed-metrics
taskmanager.network.batch-shuffle.compression.enabled taskmanager.network.max-num-tcp-connections
taskmanager.network.memory.exclusive-buffers-request-timeout-ms taskmanager.network.memory.read-buffer.required-per-gate.max
taskmanager.network.netty.client.connectTimeoutSec taskmanager.network.netty.client.numThreads taskmanager.network.netty.num-arenas
taskmanager.network.netty.sendReceiveBufferSize taskmanager.network.netty.server.backlog taskmanager.network.netty.server.numThreads
taskmanager.network.netty.transport taskmanager.network.partition-request-timeout taskmanager.network.request-backoff.initial
taskmanager.network.request-backoff.max taskmanager.network.retries taskmanager.network.sort-shuffle.min-buffers
taskmanager.network.sort-shuffle.min-parallelism taskmanager.network.bind-policy
taskmanager.network.tcp-connection.enable-reuse-across-jobs
pipeline.object-reuse pipeline.operator-chaining pipeline.operator-chaining.enabled pipeline.name
pipeline.time-characteristic pipeline.generic-types pipeline.jars pipeline.classpaths
pipeline.watermark-alignment.allow-unaligned-source-splits task.cancellation.interval
""".split(),  # noqa: SIM905  # words read better without quotes
)
"""Known, and without effect here: named in a warning."""

STRICT = ("execution.", "state.", "taskmanager.network.", "taskmanager.memory.", "pipeline.", "parallelism.", "restart-strategy")
"""Where an unlisted key is an error: a misspelt one would change the result."""

ROOTS = frozenset(
    """
akka blob classloader client cluster config daemon env execution external-resource external-resources fs heartbeat high-availability
historyserver hive io jmx job-event jobmanager jobstore kubernetes metrics minicluster oss parallelism pekko pipeline process python
queryable-state resourcemanager rest restart-strategy s3 s3a scheduler security shuffle-service-factory slot slotmanager sql-client
sql-gateway state table task taskmanager traces user web yarn zookeeper
""".split(),  # noqa: SIM905  # words read better without quotes
)
"""First words of Flink's other keys (memory of processes, ports, security ...), which have no effect here."""
