"""Jobs worth asking about, each under back-pressure: the one that everybody has, one hot key, a slow side."""

from __future__ import annotations

from benchmarks.flink.job import PacedJob
from benchmarks.flink.switch import Experiment

__all__ = ["EXPERIMENTS"]

_STORAGE = {"fs.paced.bandwidth": "5000000", "fs.paced.close-ms": "20"}  # without it, unaligned checkpoints are scheduling noise
_OPTIONS = {"execution.checkpointing.interval": "2 s"}

EXPERIMENTS = {
    experiment.name: experiment
    for experiment in (
        Experiment("shuffle", PacedJob(parallelism=4, sink=1500, state=4_000_000), _OPTIONS, _STORAGE, task_managers=4),
        Experiment("skew", PacedJob(parallelism=4, sink=800, state=4_000_000, hot=0.3), _OPTIONS, _STORAGE, task_managers=4),
        Experiment(
            "join",
            PacedJob("join", parallelism=2, rate2=100, map=500, map2=2000, sink=600, state=4_000_000),
            _OPTIONS,
            _STORAGE,
            task_managers=2,
        ),
    )
}
