"""Restart strategies, faults, and distributions of the time between faults."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import exp, log, log1p, sqrt
from statistics import NormalDist
from typing import Literal

from sim.model.catalogs import Catalog
from sim.model.job import Distribution, RandomDuration
from sim.model.options import Flink, ValidationContext, option
from sim.model.randomness import Stream, draw
from sim.model.units import MS, SECOND, format_duration
from sim.model.value_types import Duration, Natural, Number, Positive, Share, Switch

# ---- The restart strategies of Flink: one record each, with the facts that other packages need.
#
# The behaviour of a strategy is a class of `sim.protocol.recovery`; documents, Flink's keys and advice read these
# records.


@dataclass(frozen=True, slots=True)
class RestartKind:
    """A restart strategy."""

    name: str  # as a scenario writes it
    limit: str = ""  # the option of `restart:` that says when it gives up; empty: it restarts nothing
    delays: tuple[str, ...] = ()  # options that say how long it waits, the longest first
    also: tuple[str, ...] = ()  # other words of Flink's for it (RestartStrategyOptions)
    since: str = ""  # the first release that has it; empty: all that users still run

    @property
    def spellings(self) -> tuple[str, ...]:
        """Its names in Flink's configuration, with hyphens replaced by underscores."""
        return tuple(dict.fromkeys((self.name.replace("-", ""), self.name.replace("-", "_"), *self.also)))


RESTARTS: Catalog[RestartKind] = Catalog(
    RestartKind("none", also=("off", "disable")),
    RestartKind("fixed-delay", "attempts", ("delay",)),
    RestartKind("exponential-delay", "attempts", ("max", "initial"), since="1.13"),  # FLINK-19773
    RestartKind("failure-rate", "rate", ("delay",)),
)


# ---- Faults, their times, and restarts of the job.

_EXPONENTIAL = ("strategy", ("exponential-delay",))
_ADAPTIVE = ("scheduler", ("adaptive",))
_OF_ADAPTIVE = "jobmanager.adaptive-scheduler"
_BACKOFF = "restart-strategy.exponential-delay"


@dataclass(frozen=True, slots=True)
class When:
    """Either times of the run, or a law of the time from one fault to the next."""

    at_ns: tuple[int, ...] = ()
    every: Distribution | None = None


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
    """A TaskManager is cut off from all others; beyond the heartbeat's timeout it counts as lost.  No host: any, drawn."""

    lasts_ns: int
    host: int | None = None


@dataclass(frozen=True, slots=True)
class SlowTask:
    """Services that begin meanwhile take `factor` times as long.  No subtask: every subtask of the vertex."""

    vertex: str
    factor: int
    lasts_ns: int | None = None  # None: to the end
    subtask: int | None = None


@dataclass(frozen=True, slots=True)
class FailedCommits:
    """Commits of a transactional sink fail: the next one to end, or all for a while.  `Commit.gives_up` says what follows."""

    vertex: str
    lasts_ns: int | None = None


Target = Kill | TaskManagerLost | JobManagerDown | StorageOutage | NetworkOutage | SlowTask | FailedCommits


def kind_of_fault(what: Target) -> str:
    """Return the kind of a fault as a noun with its article."""
    match what:
        case Kill():
            return "a task fails"
        case TaskManagerLost():
            return "a silent task manager" if what.silent else "a task manager is lost"
        case JobManagerDown():
            return "the job manager is down"
        case StorageOutage():
            return "a storage outage"
        case NetworkOutage():
            return "a network outage"
        case SlowTask():
            return "a slow task"
        case FailedCommits():
            return "failed commits"


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault, and its times."""

    what: Target
    when: When


MAX_WARM_UP_FACTOR = 1000


@dataclass(frozen=True, slots=True)
class Restart:
    """Restart strategy, failover and detection.  Names and defaults are Flink's.

    restart-strategy.*, jobmanager.execution.failover-strategy, heartbeat.*, task.cancellation.*,
    slotmanager.requirement-check.delay, pekko.ask.timeout.
    """

    strategy: str = option(
        "exponential-delay",
        "Default: exponential-delay; before 1.19 fixed-delay without end; none if checkpoints are off.",
        choices=lambda: RESTARTS,
        flink=Flink("restart-strategy.type", older={"restart-strategy": "1.16"}, form="strategy"),
    )
    delay_ns: Duration = option(
        SECOND,
        "fixed-delay, failure-rate.",
        needs=("strategy", ("fixed-delay", "failure-rate")),
        flink=(
            Flink("restart-strategy.fixed-delay.delay", when="fixed-delay"),
            Flink("restart-strategy.failure-rate.delay", when="failure-rate"),
        ),
    )
    attempts: Natural | None = option(
        None,
        "fixed-delay, exponential-delay: restarts before the job fails; default: without end.",
        needs=("strategy", ("fixed-delay", "exponential-delay")),
        default_text="without end",
        flink=(
            Flink("restart-strategy.fixed-delay.attempts", when="fixed-delay", form="attempts", default="1"),
            Flink(f"{_BACKOFF}.attempts-before-reset-backoff", when="exponential-delay", form="attempts", since="1.19"),
        ),
    )
    initial_ns: Duration = option(
        SECOND,
        "exponential-delay: the first delay.",
        needs=_EXPONENTIAL,
        flink=f"{_BACKOFF}.initial-backoff",
    )
    multiplier: Number = option(
        Fraction(3, 2),
        "exponential-delay: from one delay to the next; before 1.19 the default is 2.",
        needs=_EXPONENTIAL,
        flink=f"{_BACKOFF}.backoff-multiplier",
    )
    max_ns: Duration = option(
        60 * SECOND,
        "exponential-delay: the longest delay; before 1.19 the default is 5 min.",
        needs=_EXPONENTIAL,
        flink=f"{_BACKOFF}.max-backoff",
    )
    jitter: Share = option(
        Fraction(1, 10),
        "exponential-delay: of the delay, either way.",
        needs=_EXPONENTIAL,
        flink=f"{_BACKOFF}.jitter-factor",
    )
    reset_ns: Duration = option(
        3600 * SECOND,
        "exponential-delay: so long without a failure, and it begins anew.",
        needs=_EXPONENTIAL,
        flink=f"{_BACKOFF}.reset-backoff-threshold",
    )
    rate: Positive = option(
        1,
        "failure-rate: failures tolerated ...",
        needs=("strategy", ("failure-rate",)),
        flink="restart-strategy.failure-rate.max-failures-per-interval",
    )
    rate_interval_ns: Duration = option(
        60 * SECOND,
        "... within.",
        key="within",
        needs=("strategy", ("failure-rate",)),
        must_be_positive=True,
        flink="restart-strategy.failure-rate.failure-rate-interval",
    )
    failover: Literal["region", "full"] = option(
        "region",
        "What restarts: the failed regions, or the whole job.",
        flink=Flink("jobmanager.execution.failover-strategy", form="failover"),
    )
    heartbeat_timeout_ns: Duration = option(
        50 * SECOND,
        "Silence after which a task manager counts as lost.",
        must_be_positive=True,
        flink=Flink("heartbeat.timeout", form="milliseconds"),
    )
    heartbeat_interval_ns: Duration = option(
        10 * SECOND,
        "Between two heartbeats; at most the timeout.",
        must_be_positive=True,
        flink=Flink("heartbeat.interval", form="milliseconds"),
    )
    heartbeat_failures: Natural | None = option(
        2,
        "So many heartbeats refused in a row, and a task manager counts as lost; 0: only its silence counts.",
        zero_means_never=True,
        flink=Flink("heartbeat.rpc-failure-threshold", form="threshold", since="1.14"),  # FLINK-23209
    )
    connection_reset_ns: Duration = option(150 * MS, "A process is killed -> those who read from it report that.")
    provider: Literal["standalone", "kubernetes", "yarn"] = option(
        "standalone",
        "Who starts task managers.  kubernetes and yarn tell of one that has ended; a standalone cluster has to miss its heartbeats.",
    )
    replacement: RandomDuration = option(
        Distribution(0),
        "A task manager is lost (kubernetes, yarn: Flink knows that it is) -> another one offers its slots; a time or a law of times;\n"
        "default: there are spare ones.",
    )
    slot_check_ns: Duration = option(
        50 * MS, "Slots are asked for -> looked for.", flink="slotmanager.requirement-check.delay"
    )
    slot_timeout_ns: Duration = option(
        300 * SECOND,
        "Slots are asked for -> the deployment is given up, which uses an attempt.  A standalone cluster gives up at once if it has none,\n"
        "but for so long after its JobManager began to lead; adaptive: never.",
        flink=Flink("slot.request.timeout", form="milliseconds"),
        keyword=True,
    )
    ask_timeout_ns: Duration = option(
        10 * SECOND,
        "A machine is silent -> a deployment to it is given up.",
        flink=Flink("pekko.ask.timeout", older={"akka.ask.timeout": "1.17"}),
    )
    fresh_start_ns: Duration = option(  # 0.8 to 1.7 s in recordings of ours, beside overheads: deploy
        SECOND,
        "A task's first deployment on a process in place of a lost one -> it begins to restore; the process loads classes and libraries.",
    )
    state_start_ns: Duration = option(
        0,
        "A restarted task with keyed state initializes -> it begins to read it: classes of the backend and of its serializers are loaded\n"
        "again; default: 0 s.",
        keyword=True,
    )
    cancellation_timeout_ns: Duration = option(
        180 * SECOND,
        "A task that does not stop takes its task manager down.",
        flink=Flink("task.cancellation.timeout", form="milliseconds"),
    )
    warm_up_ns: Duration = option(
        0,
        "For so long a task is slow that was restarted, or begins with run: cold-start: its code is not compiled, its caches are empty;\n"
        "default: it is not.",
    )
    warm_up_factor: Number = option(
        Fraction(2), "How many times as long its services take then; default: 2.", needs=("warm-up", ())
    )
    scheduler: Literal["default", "adaptive"] = option(
        "default",
        "adaptive: the job restarts with the slots there are, and is rescaled when others come; spare slots are used by it.",
        flink=Flink("jobmanager.scheduler", form="scheduler"),
        keyword=True,
    )
    reactive: Switch = option(
        False,
        "adaptive: it starts with any slots at once, and waits for the first one without end.",
        needs=_ADAPTIVE,
        flink=Flink("scheduler-mode", form="reactive"),
        keyword=True,
    )
    stabilization_ns: Duration = option(
        10 * SECOND,
        "adaptive: after a failure it waits so long for more slots than there are.",
        needs=_ADAPTIVE,
        keyword=True,
        flink=Flink(
            f"{_OF_ADAPTIVE}.submission.resource-stabilization-timeout",
            {f"{_OF_ADAPTIVE}.resource-stabilization-timeout": "1.20"},
        ),
    )
    resource_wait_ns: Duration | None = option(
        300 * SECOND,
        "adaptive: without any slot for so long it fails; 0 s: never.",
        needs=_ADAPTIVE,
        zero_means_never=True,
        keyword=True,
        flink=Flink(
            f"{_OF_ADAPTIVE}.submission.resource-wait-timeout",
            {f"{_OF_ADAPTIVE}.resource-wait-timeout": "1.20"},
            form="wait",
        ),
    )
    cooldown_ns: Duration = option(
        30 * SECOND,
        "adaptive: it runs at least so long before it is rescaled.",
        needs=_ADAPTIVE,
        keyword=True,
        flink=Flink(
            f"{_OF_ADAPTIVE}.executing.cooldown-after-rescaling", {f"{_OF_ADAPTIVE}.scaling-interval.min": "1.20"}
        ),
    )
    rescale_stabilization_ns: Duration = option(
        60 * SECOND,
        "adaptive: slots are back, but not all: so long it waits for the others.",
        needs=_ADAPTIVE,
        keyword=True,
        flink=Flink(
            f"{_OF_ADAPTIVE}.executing.resource-stabilization-timeout", {f"{_OF_ADAPTIVE}.scaling-interval.max": "1.20"}
        ),
    )
    rescale_failures: Positive = option(
        2,
        "adaptive: after so many failed checkpoints it is rescaled without a completed one.",
        needs=_ADAPTIVE,
        keyword=True,
        flink=Flink(f"{_OF_ADAPTIVE}.rescale-trigger.max-checkpoint-failures"),
    )
    rescale_delay_ns: Duration | None = option(
        None,
        "adaptive: it waits so long for the checkpoint to be rescaled with; default: an interval for each of rescale-failures, and one more.",
        needs=_ADAPTIVE,
        default_text="three intervals",
        keyword=True,
        flink=Flink(f"{_OF_ADAPTIVE}.rescale-trigger.max-delay"),
    )

    rescale_checkpoint: Switch = option(  # false and true are both defaults in versions of its pull request
        False,
        "adaptive: it triggers a checkpoint to be rescaled with when slots are back, min-pause after the last one, unless one is in progress\n"
        "(FLINK-36753, Flink 2.4); default: it waits for the next periodic one.",
        needs=_ADAPTIVE,
        keyword=True,
        flink=Flink(f"{_OF_ADAPTIVE}.rescale-trigger.active-checkpoint.enabled", since="2.4"),
    )

    def longest_rescale_delay_ns(self, interval_ns: int) -> int:
        """Return the longest wait of the adaptive scheduler for a checkpoint to rescale the job with [ns]."""
        return (self.rescale_failures + 1) * interval_ns if self.rescale_delay_ns is None else self.rescale_delay_ns

    def completed(self, at: ValidationContext) -> Restart:
        interval_ns, timeout_ns = self.heartbeat_interval_ns, self.heartbeat_timeout_ns
        if self.multiplier < 1:
            at.error("must be at least 1, as in Flink: delays do not shrink", "multiplier")
        if self.max_ns < self.initial_ns and None not in (at.written("initial"), at.written("max")):
            at.error(f"is less than initial, {format_duration(self.initial_ns)}", "max")
        if not 1 <= self.warm_up_factor <= MAX_WARM_UP_FACTOR:
            between = f"must lie between 1 and {MAX_WARM_UP_FACTOR}: a cold task is slower, not stopped"
            at.error(between, "warm-up-factor")
        if interval_ns > timeout_ns > 0 and at.written("heartbeat-interval") is not None:
            more = f"is more than the timeout, {format_duration(timeout_ns)}: Flink does not start"
            at.error(more, "heartbeat-interval")
        elif interval_ns > timeout_ns > 0:
            less = f"is less than heartbeat-interval, {format_duration(interval_ns)} by default: Flink does not start; write both"
            at.error(less, "heartbeat-timeout")
        return self

    @property
    def most_restarts(self) -> int | None:
        """The minimum number of restarts before the strategy gives up; None if it never does."""
        limit = RESTARTS[self.strategy].limit
        most: int | None = getattr(self, limit) if limit else 0
        return most

    @property
    def restarts_all(self) -> bool:
        """Whether a failure restarts the whole job.  The adaptive scheduler has no failover regions."""
        return self.failover == "full" or self.scheduler == "adaptive"


@dataclass(frozen=True, slots=True)
class Rescale:
    """From `at_ns` on the vertices have another parallelism: the job is restarted from its latest completed checkpoint."""

    at_ns: int
    parallelism: tuple[tuple[str, int], ...]
    savepoint: bool = False  # take one first and restart from it, instead of from the latest completed checkpoint


# ---- Distributions of the time between faults, drawn as a function of the seed (`sim.model.randomness`).

_SQUARE = 1 << 64


GAPS: dict[str, Callable[[float, Distribution], float]] = {
    "exponential": lambda u, _: -log(u),
    "lognormal": lambda u, law: exp(sqrt(log1p(law.cv**2)) * NormalDist().inv_cdf(u) - log1p(law.cv**2) / 2),
}
"""Kind of distribution -> time at a share of the law, as a multiple of its mean.  The tables of `sim.model.randomness` end too early."""


def gap_ns(law: Distribution, key: Stream, k: int) -> int:
    """Return the time from fault k - 1 (or the start) to fault k [ns], at least 1 ns."""
    # in (0, 1); one draw would not reach far enough into the tail
    u = ((draw(key, 2 * k) << 32) + draw(key, 2 * k + 1) + 0.5) / _SQUARE
    factor = 1.0 if law.kind == "constant" else GAPS[law.kind](u, law)
    return max(1, round(law.mean * factor))
