"""One concrete run: a job on a cluster with one checkpoint strategy.  What `simulate` takes."""

from __future__ import annotations

from dataclasses import dataclass

from sim.model.actions import Action
from sim.model.checkpoint import CheckpointOptions
from sim.model.cluster import Cluster, Storage
from sim.model.directories import Directories
from sim.model.faults import Fault, Rescale, Restart
from sim.model.instances import Instances
from sim.model.job import Job
from sim.model.residuals import Residuals

__all__ = ["AUTO_WARM_UP", "Overheads", "Run", "Scenario"]

AUTO_WARM_UP = -1
"""A warm-up that ends where the run has settled: the results tell."""


@dataclass(frozen=True, slots=True)
class Overheads:
    """What no configuration says [ns]: constants of an environment, the same for all its runs.

    The defaults are those of our own recordings, Flink 2.3 on loopback with storage in memory; `ckptsim calibrate` measures others.
    How each was estimated, and how sure it is: sim/scenario/environments/flink-2-loopback.yaml.
    """

    trigger_ns: int = 3_000_000  # trigger timestamp -> trigger call executed by a source's task thread
    acknowledge_ns: int = 3_000_000  # end of the asynchronous phase -> acknowledgement processed by the coordinator
    complete_ns: int = 6_000_000  # last acknowledgement -> next trigger possible, beside writing _metadata
    notify_ns: int = 500_000  # coordinator -> task notification
    first_trigger_ns: int = 21_000_000  # all tasks running -> first trigger (2.x profile), beside the min-pause
    close_ns: int = 9_500_000  # a task's last wait is over -> its outputs are closed
    fail_ns: int = 20_000_000  # a task's exception -> the job counts as RESTARTING
    restart_ns: int = 34_000_000  # tasks cancelled and restart delay over -> deployment begins
    deploy_ns: int = 99_000_000  # deployment begins -> a task begins to initialize
    file_ns: int = 1_000_000  # a file of flat checkpoint storage, beside the latency and the bandwidth it is said to have
    start_ns: int = 1_100_000_000  # submission -> all tasks run, where it was not measured
    flusher_ns: int = 500_000  # a flush of a task's outputs -> the next, beside the buffer timeout: OutputFlusher sleeps, then works


@dataclass(frozen=True, slots=True)
class Run:
    duration_ns: int
    warmup_ns: int = 0  # left out of the results; or AUTO_WARM_UP
    seed: int = 1
    replications: int = 1

    @property
    def finds_warm_up(self) -> bool:
        return self.warmup_ns == AUTO_WARM_UP


@dataclass(frozen=True, slots=True)
class Scenario:
    question: str  # the first comment of the file
    name: str
    job: Job
    checkpoint: CheckpointOptions
    run: Run
    cluster: Cluster = Cluster()
    storage: Storage = Storage()
    overheads: Overheads = Overheads()
    actions: tuple[Action, ...] = ()  # in the order of time
    faults: tuple[Fault, ...] = ()
    restart: Restart = Restart()
    rescale: tuple[Rescale, ...] = ()  # in the order of time
    instances: Instances = Instances()
    directories: Directories = Directories()  # of checkpoint storage
    residuals: Residuals = Residuals()  # of a history: what the model does not explain
    expect: tuple[tuple[str, str], ...] = ()  # (metric, condition)
    axes: tuple[tuple[str, str], ...] = ()  # (axis, chosen value) when the file listed several values
