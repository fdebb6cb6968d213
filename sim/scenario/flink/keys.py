"""Flink's configuration keys as this project sees them: modelled, known but not modelled, or unknown.

Sources: the `*Options` classes of flink-core (ConfigOptions) of 1.20 and 2.x, deprecated names included.
"""

from __future__ import annotations

from sim.scenario.state.keys import LOCAL_BACKUP, LOCAL_RECOVERY, LOCAL_RESTORE, STATE_KEYS
from sim.scenario.storage.keys import STORAGE_KEYS

__all__ = [
    "ALIASES", "ALIGNMENT_BUFFER", "CONSTANT_IN_2", "IDLE_TIMEOUT", "NOT_MODELLED", "ROOTS", "SIMPLE", "SPECIAL", "WATERMARK_INTERVAL",
]  # fmt: skip

ALIGNMENT_BUFFER = "pipeline.watermark-alignment.buffer-size"
IDLE_TIMEOUT = "table.exec.source.idle-timeout"
WATERMARK_INTERVAL = "pipeline.auto-watermark-interval"

# key -> (where it goes, how Flink writes it)
SIMPLE: dict[str, tuple[tuple[str, ...], str]] = {
    "execution.checkpointing.interval": (("checkpoint", "interval"), "interval"),
    "execution.checkpointing.interval-during-backlog": (("checkpoint", "interval-during-backlog"), "interval"),
    "execution.checkpointing.checkpoints-after-tasks-finish": (("checkpoint", "finish"), "finish"),
    "execution.checkpointing.timeout": (("checkpoint", "timeout"), "duration"),
    "execution.checkpointing.min-pause": (("checkpoint", "min-pause"), "duration"),
    "execution.checkpointing.max-concurrent-checkpoints": (("checkpoint", "max-concurrent"), "integer"),
    "execution.checkpointing.tolerable-failed-checkpoints": (("checkpoint", "tolerable-failed"), "integer"),
    "execution.checkpointing.create-subdir": (("directories", "create-subdir"), "boolean"),
    "execution.checkpointing.num-retained": (("checkpoint", "num-retained"), "integer"),
    "execution.checkpointing.unaligned.max-subtasks-per-channel-state-file": (("checkpoint", "subtasks-per-channel-state-file"), "integer"),
    "execution.checkpointing.unaligned.interruptible-timers.enabled": (("checkpoint", "interruptible-timers"), "boolean"),
    "execution.checkpointing.unaligned.recover-output-on-downstream.enabled": (("checkpoint", "recover-output-on-downstream"), "boolean"),
    "execution.checkpointing.during-recovery.enabled": (("checkpoint", "during-recovery"), "boolean"),
    "execution.checkpointing.incremental": (("checkpoint", "incremental"), "boolean"),
    "state.backend.rocksdb.checkpoint.transfer.thread.num": (("checkpoint", "transfer-threads"), "integer"),
    "execution.checkpointing.data-inline-threshold": (("storage", "inline-threshold"), "size"),
    "heartbeat.interval": (("restart", "heartbeat-interval"), "duration"),
    "heartbeat.rpc-failure-threshold": (("restart", "heartbeat-failures"), "threshold"),
    "heartbeat.timeout": (("restart", "heartbeat-timeout"), "duration"),
    "jobmanager.execution.failover-strategy": (("restart", "failover"), "failover"),
    "restart-strategy.exponential-delay.backoff-multiplier": (("restart", "multiplier"), "number"),
    "restart-strategy.exponential-delay.initial-backoff": (("restart", "initial"), "duration"),
    "restart-strategy.exponential-delay.jitter-factor": (("restart", "jitter"), "share"),
    "restart-strategy.exponential-delay.max-backoff": (("restart", "max"), "duration"),
    "restart-strategy.exponential-delay.reset-backoff-threshold": (("restart", "reset"), "duration"),
    "restart-strategy.failure-rate.failure-rate-interval": (("restart", "within"), "duration"),
    "restart-strategy.failure-rate.max-failures-per-interval": (("restart", "rate"), "integer"),
    "pekko.ask.timeout": (("restart", "ask-timeout"), "duration"),
    "slotmanager.requirement-check.delay": (("restart", "slot-check"), "duration"),
    "task.cancellation.timeout": (("restart", "cancellation-timeout"), "duration"),
    "taskmanager.memory.segment-size": (("cluster", "network", "segment-size"), "size"),
    "taskmanager.memory.starting-segment-size": (("cluster", "network", "starting-segment-size"), "size"),
    "taskmanager.network.memory.buffers-per-channel": (("cluster", "network", "buffers-per-channel"), "integer"),
    "taskmanager.network.memory.floating-buffers-per-gate": (("cluster", "network", "floating-buffers-per-gate"), "integer"),
    "taskmanager.network.memory.max-buffers-per-channel": (("cluster", "network", "max-buffers-per-channel"), "integer"),
    "taskmanager.network.memory.max-overdraft-buffers-per-gate": (("cluster", "network", "overdraft"), "integer"),
}

# Keys that are read together, or go to every vertex.
SPECIAL: dict[str, str] = {
    "execution.checkpointing.mode": "mode",
    "execution.checkpointing.unaligned.enabled": "boolean",
    "execution.checkpointing.aligned-checkpoint-timeout": "duration",
    "execution.buffer-timeout.enabled": "boolean",
    "execution.buffer-timeout.interval": "duration",
    "taskmanager.network.memory.buffer-debloat.enabled": "boolean",
    "taskmanager.network.memory.buffer-debloat.period": "duration",
    "taskmanager.network.memory.buffer-debloat.target": "duration",
    "taskmanager.network.memory.buffer-debloat.samples": "integer",
    "taskmanager.network.memory.buffer-debloat.threshold-percentages": "percent",
    "taskmanager.memory.min-segment-size": "size",
    "parallelism.default": "integer",
    "restart-strategy.exponential-delay.attempts-before-reset-backoff": "integer",
    "restart-strategy.failure-rate.delay": "duration",
    "restart-strategy.fixed-delay.attempts": "integer",
    "restart-strategy.fixed-delay.delay": "duration",
    "restart-strategy.type": "restart",
    "pipeline.max-parallelism": "integer",
    IDLE_TIMEOUT: "duration",
    WATERMARK_INTERVAL: "duration",
    ALIGNMENT_BUFFER: "integer",
    "state.backend.type": "backend",
    LOCAL_BACKUP: "boolean",
    LOCAL_RESTORE: "boolean",
    LOCAL_RECOVERY: "boolean",
    **STATE_KEYS,
    **STORAGE_KEYS,
}

ALIASES: dict[str, str] = {  # deprecated name -> current name
    "akka.ask.timeout": "pekko.ask.timeout",
    "execution.checkpointing.unaligned": "execution.checkpointing.unaligned.enabled",
    "execution.checkpointing.unaligned.during-recovery.enabled": "execution.checkpointing.during-recovery.enabled",  # of the release notes
    "execution.checkpointing.alignment-timeout": "execution.checkpointing.aligned-checkpoint-timeout",
    "execution.checkpointing.checkpoints-after-tasks-finish.enabled": "execution.checkpointing.checkpoints-after-tasks-finish",
    "execution.checkpointing.max-concurrent": "execution.checkpointing.max-concurrent-checkpoints",
    "execution.buffer-timeout": "execution.buffer-timeout.interval",
    "restart-strategy": "restart-strategy.type",
    "state.backend": "state.backend.type",
    "state.checkpoints.create-subdir": "execution.checkpointing.create-subdir",
    "state.checkpoints.num-retained": "execution.checkpointing.num-retained",
    "state.backend.incremental": "execution.checkpointing.incremental",
    "state.backend.changelog.enabled": "state.changelog.enabled",
    "state.storage.fs.memory-threshold": "execution.checkpointing.data-inline-threshold",
    "state.backend.fs.memory-threshold": "execution.checkpointing.data-inline-threshold",
    "taskmanager.network.num-buffers-per-channel": "taskmanager.network.memory.buffers-per-channel",
}

CONSTANT_IN_2 = frozenset(
    {
        ("cluster", "network", key)
        for key in (
            "buffers-per-channel",
            "floating-buffers-per-gate",
            "max-buffers-per-channel",
            "overdraft",
        )
    }
)
"""Options of 1.20 that are constants in 2.x (FLINK-33750, NettyShuffleEnvironmentConfiguration)."""

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
state.changelog.storage state.checkpoint-storage state.checkpoints.dir
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
