"""What goes wrong, when, and how the job is started again.  Frozen nouns; who carries them out is runtime's business."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from sim.model.job import Distribution

__all__ = [
    "Fault",
    "FaultLaw",
    "JobManagerDown",
    "Kill",
    "NetworkOutage",
    "Rescale",
    "Restart",
    "SlowTask",
    "StorageOutage",
    "Target",
    "TaskManagerLost",
    "When",
]


@dataclass(frozen=True, slots=True)
class FaultLaw:
    """Time from one fault to the next [ns].  `weibull`: `shape` < 1 = bursts, > 1 = wear; `lognormal`: `cv` = deviation / mean."""

    mean_ns: int
    kind: Literal["constant", "exponential", "weibull", "lognormal"] = "constant"
    shape: float = 1.0  # weibull
    cv: float = 1.0  # lognormal


@dataclass(frozen=True, slots=True)
class When:
    """Either times of the run, or a law of the time from one fault to the next."""

    at_ns: tuple[int, ...] = ()
    every: FaultLaw | None = None


@dataclass(frozen=True, slots=True)
class Kill:
    """An exception in a task.  No vertex: any task of the job, drawn; no subtask: every subtask of the vertex."""

    vertex: str | None = None
    subtask: int | None = None


@dataclass(frozen=True, slots=True)
class TaskManagerLost:
    """A TaskManager's process is killed, which resets connections to its peers, or its machine falls `silent`, or it is `orderly`.

    Orderly is what SIGTERM brings about: it tells JobMaster and ResourceManager.  No host: any, drawn.
    """

    host: int | None = None
    silent: bool = False
    orderly: bool = False


@dataclass(frozen=True, slots=True)
class JobManagerDown:
    """No coordinator for so long; then a new one restarts the job from the latest completed checkpoint."""

    down_ns: int


@dataclass(frozen=True, slots=True)
class StorageOutage:
    """Nothing written or read makes progress."""

    lasts_ns: int


@dataclass(frozen=True, slots=True)
class NetworkOutage:
    """A TaskManager is cut off from everybody; longer than the heartbeat's timeout it counts as lost.  No host: any, drawn."""

    lasts_ns: int
    host: int | None = None


@dataclass(frozen=True, slots=True)
class SlowTask:
    """Services that begin meanwhile take `factor` times as long.  No subtask: every subtask of the vertex."""

    vertex: str
    factor: int
    lasts_ns: int | None = None  # None: to the end
    subtask: int | None = None


Target = Kill | TaskManagerLost | JobManagerDown | StorageOutage | NetworkOutage | SlowTask


@dataclass(frozen=True, slots=True)
class Fault:
    what: Target
    when: When


@dataclass(frozen=True, slots=True)
class Restart:
    """Restart strategy, failover and detection.  Names and defaults are Flink's.

    restart-strategy.*, jobmanager.execution.failover-strategy, heartbeat.*, task.cancellation.*, slotmanager.requirement-check.delay,
    pekko.ask.timeout.
    """

    strategy: Literal["none", "fixed-delay", "exponential-delay", "failure-rate"] = "exponential-delay"
    delay_ns: int = 1_000_000_000  # fixed-delay, failure-rate
    attempts: int | None = None  # fixed-delay, exponential-delay (before its reset); None: without end
    initial_ns: int = 1_000_000_000  # exponential-delay: the first delay ...
    multiplier: Fraction = Fraction(3, 2)  # ... and how it grows
    max_ns: int = 60_000_000_000
    jitter: Fraction = Fraction(1, 10)  # of the delay, either way
    reset_ns: int = 3_600_000_000_000  # so long without a failure: back to the first delay
    rate: int = 1  # failure-rate: failures tolerated ...
    rate_interval_ns: int = 60_000_000_000  # ... within
    failover: Literal["region", "full"] = "region"
    heartbeat_timeout_ns: int = 50_000_000_000
    heartbeat_interval_ns: int = 10_000_000_000  # no more than the timeout
    heartbeat_failures: int | None = 2  # heartbeats refused in a row -> the TaskManager counts as lost; None: only its silence counts
    connection_reset_ns: int = 150_000_000  # a process is killed -> those who read from it report that
    provider: Literal["standalone", "kubernetes", "yarn"] = "standalone"  # of TaskManagers; the others tell of one that has ended
    replacement: Distribution = Distribution(0)  # a TaskManager is lost -> another one offers its slots [ns]; 0: there are spare ones
    slot_check_ns: int = 50_000_000  # slots are asked for -> looked for
    ask_timeout_ns: int = 10_000_000_000  # a machine is silent -> a deployment to it is given up
    cancellation_timeout_ns: int = 180_000_000_000  # a task that does not stop takes its TaskManager down; 0: never
    warm_up_ns: int = 0  # so long after it is restarted, a task's services ...
    warm_up_factor: Fraction = Fraction(2)  # ... take so many times as long: code is compiled anew, caches are empty

    @property
    def most_restarts(self) -> int | None:
        """Before the strategy gives up at the earliest; None: it never does."""
        return {"none": 0, "failure-rate": self.rate}.get(self.strategy, self.attempts)


@dataclass(frozen=True, slots=True)
class Rescale:
    """From `at_ns` on the vertices have another parallelism: the job is restarted from its latest completed checkpoint."""

    at_ns: int
    parallelism: tuple[tuple[str, int], ...]
    savepoint: bool = False  # take one first and restart from it, instead of from the latest completed checkpoint
