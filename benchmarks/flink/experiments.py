"""Jobs worth asking about: under back-pressure the one that everybody has, one hot key, a slow side; windows that fire; RocksDB."""

from __future__ import annotations

from benchmarks.flink.job import PacedJob
from benchmarks.flink.protocols import ALIGNED, INTERRUPTIBLE, ROCKSDB, ROCKSDB_UNALIGNED, UNALIGNED
from benchmarks.flink.switch import Experiment

__all__ = ["EXPERIMENTS"]

# without it, unaligned checkpoints are scheduling noise
_STORAGE = {"fs.paced.bandwidth": "5000000", "fs.paced.close-ms": "20"}
_OPTIONS = {"execution.checkpointing.interval": "2 s"}

EXPERIMENTS = {
    experiment.name: experiment
    for experiment in (
        Experiment("shuffle", PacedJob(parallelism=4, sink=1500, state=4_000_000), _OPTIONS, _STORAGE, task_managers=4),
        Experiment(
            "skew", PacedJob(parallelism=4, sink=800, state=4_000_000, hot=0.3), _OPTIONS, _STORAGE, task_managers=4
        ),
        Experiment(
            "join",
            PacedJob("join", parallelism=2, rate2=100, map=500, map2=2000, sink=600, state=4_000_000),
            _OPTIONS,
            _STORAGE,
            task_managers=2,
        ),
        Experiment(
            "window",
            # 1,000 keys of a subtask: 2 s
            PacedJob("window", rate=1000, map=50, sink=100, window=8000, keys=2000, fire=2000),
            {"execution.checkpointing.interval": "3100 ms"},  # meets the windows at other moments each time
            _STORAGE,
            task_managers=2,
            watch_s=72,
            protocols=(ALIGNED, UNALIGNED, INTERRUPTIBLE),
            answers={
                "firing": {
                    "service": "50 us",
                    "fan-out": 0.25,
                    # its function opts in
                    "window": {"tumbling": "8 s", "time": "event", "fire": "2 ms", "api": "sql"},
                }
            },
        ),
        Experiment(
            "rocksdb",
            PacedJob(rate=3000, map=100, sink=500, state=30_000_000, update=0.5),
            {
                "execution.checkpointing.interval": "3 s",
                "state.backend.type": "rocksdb",
                "execution.checkpointing.incremental": "true",
            },
            {"fs.paced.bandwidth": "50000000", "fs.paced.close-ms": "10"},
            task_managers=2,
            watch_s=45,
            settle_s=30,  # until nearly every key has been seen
        ),
        Experiment(
            "heap-to-rocksdb",  # state on the heap grows until each key has been seen, long after the watch
            PacedJob(rate=2000, map=100, sink=400, state=1_000_000_000, update=1),
            {"execution.checkpointing.interval": "3 s"},
            {"fs.paced.bandwidth": "20000000", "fs.paced.close-ms": "10"},
            task_managers=2,
            watch_s=40,
            settle_s=15,
            protocols=(ALIGNED, ROCKSDB, ROCKSDB_UNALIGNED),
        ),
    )
}
