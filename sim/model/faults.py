"""Restart strategies, faults, and distributions of the time between faults."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import exp, log, log1p, sqrt
from statistics import NormalDist
from typing import Literal

from sim.model.catalogs import Catalog
from sim.model.frozen import frozen
from sim.model.job import Distribution, RandomDuration
from sim.model.options import Flink, ValidationContext, option
from sim.model.randomness import Stream, draw
from sim.model.units import MS, SECOND, format_duration
from sim.model.value_types import Duration, Natural, Number, Positive, Share, Switch

# ---- The restart strategies of Flink: one record each, with the facts that other packages need.
#
# The behaviour of a strategy is a class of `sim.protocol.recovery`; documents, Flink's keys and advice read these
# records.


@frozen
class RestartKind:
    """A restart strategy."""

    name: str  # as a scenario writes it
    limit: str = ""  # the option of `restart:` that says when it gives up; empty: it restarts nothing
    delays: tuple[str, ...] = ()  # options with its delays, the longest first
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


@frozen
class When:
    """Either times of the run, or a distribution of the time from one fault to the next."""

    at_ns: tuple[int, ...] = ()
    every: Distribution | None = None


@frozen
class Kill:
    """An exception in a task.  No vertex: any task of the job, drawn; no subtask: every subtask of the vertex."""

    vertex: str | None = None
    subtask: int | None = None


@frozen
class TaskManagerLost:
    """A TaskManager's process is killed, which resets connections to its peers, or its machine falls `silent`, or it is `orderly`.

    Orderly is what SIGTERM brings about: it tells JobMaster and ResourceManager.  No host: any, drawn.
    """

    host: int | None = None
    silent: bool = False
    orderly: bool = False


@frozen
class JobManagerDown:
    """No coordinator for this time; then a new one restarts the job from the latest completed checkpoint."""

    down_ns: int


@frozen
class StorageOutage:
    """Nothing written or read makes progress."""

    lasts_ns: int


@frozen
class NetworkOutage:
    """A TaskManager is cut off from all others; beyond the heartbeat's timeout it counts as lost.  No host: any, drawn."""

    lasts_ns: int
    host: int | None = None


@frozen
class SlowTask:
    """Services that begin during this time take `factor` times as long.  No subtask: every subtask of the vertex."""

    vertex: str
    factor: int
    lasts_ns: int | None = None  # None: to the end
    subtask: int | None = None


@frozen
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


@frozen
class Fault:
    """A fault, and its times."""

    what: Target
    when: When


MAX_WARM_UP_FACTOR = 1000


@frozen
class Restart:
    """Restart strategy, failover and detection.  Names and defaults are Flink's.

    restart-strategy.*, jobmanager.execution.failover-strategy, heartbeat.*, task.cancellation.*,
    slotmanager.requirement-check.delay, pekko.ask.timeout.
    """

    strategy: str = option(
        "exponential-delay",
        "Restart strategy.  Default: exponential-delay; before Flink 1.19 fixed-delay without limit; none if checkpoints are off.",
        choices=lambda: RESTARTS,
        flink=Flink("restart-strategy.type", older={"restart-strategy": "1.16"}, form="strategy"),
    )
    delay_ns: Duration = option(
        SECOND,
        "fixed-delay, failure-rate: delay before a restart.",
        needs=("strategy", ("fixed-delay", "failure-rate")),
        flink=(
            Flink("restart-strategy.fixed-delay.delay", when="fixed-delay"),
            Flink("restart-strategy.failure-rate.delay", when="failure-rate"),
        ),
    )
    attempts: Natural | None = option(
        None,
        "fixed-delay, exponential-delay: restarts before the job fails.",
        default_text="unlimited",
        needs=("strategy", ("fixed-delay", "exponential-delay")),
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
        "exponential-delay: factor from one delay to the next.  Default before Flink 1.19: 2.",
        needs=_EXPONENTIAL,
        flink=f"{_BACKOFF}.backoff-multiplier",
    )
    max_ns: Duration = option(
        60 * SECOND,
        "exponential-delay: maximum delay.  Default before Flink 1.19: 5 min.",
        needs=_EXPONENTIAL,
        flink=f"{_BACKOFF}.max-backoff",
    )
    jitter: Share = option(
        Fraction(1, 10),
        "exponential-delay: random share that is added to or subtracted from the delay.",
        needs=_EXPONENTIAL,
        flink=f"{_BACKOFF}.jitter-factor",
    )
    reset_ns: Duration = option(
        3600 * SECOND,
        "exponential-delay: time without a failure after which the delay is the initial one again.",
        needs=_EXPONENTIAL,
        flink=f"{_BACKOFF}.reset-backoff-threshold",
    )
    rate: Positive = option(
        1,
        "failure-rate: maximum failures within `within` before the job fails.",
        needs=("strategy", ("failure-rate",)),
        flink="restart-strategy.failure-rate.max-failures-per-interval",
    )
    rate_interval_ns: Duration = option(
        60 * SECOND,
        "failure-rate: length of the interval in which failures are counted.",
        key="within",
        needs=("strategy", ("failure-rate",)),
        must_be_positive=True,
        flink="restart-strategy.failure-rate.failure-rate-interval",
    )
    failover: Literal["region", "full"] = option(
        "region",
        "Failover strategy: restart the affected regions, or the whole job.",
        flink=Flink("jobmanager.execution.failover-strategy", form="failover"),
    )
    heartbeat_timeout_ns: Duration = option(
        50 * SECOND,
        "Time without a heartbeat after which a TaskManager is considered lost.",
        must_be_positive=True,
        flink=Flink("heartbeat.timeout", form="milliseconds"),
    )
    heartbeat_interval_ns: Duration = option(
        10 * SECOND,
        "Time between two heartbeats; at most the timeout.",
        must_be_positive=True,
        flink=Flink("heartbeat.interval", form="milliseconds"),
    )
    heartbeat_failures: Natural | None = option(
        2,
        "Consecutive failed heartbeat RPCs after which a TaskManager is considered lost; 0: only heartbeat-timeout applies.",
        zero_means_never=True,
        flink=Flink("heartbeat.rpc-failure-threshold", form="threshold", since="1.14"),  # FLINK-23209
    )
    connection_reset_ns: Duration = option(
        150 * MS, "From the end of a process until the tasks that read from it report the failure."
    )
    provider: Literal["standalone", "kubernetes", "yarn"] = option(
        "standalone",
        "Resource provider.  kubernetes and yarn report a process that has ended; in a standalone cluster only missing "
        "heartbeats tell.",
    )
    replacement: RandomDuration = option(
        Distribution(0),
        "From the loss of a TaskManager (kubernetes, yarn: from its detection) until a new one offers slots, as a time or "
        "a distribution.\n"
        "Default: spare TaskManagers exist.",
    )
    slot_check_ns: Duration = option(
        50 * MS,
        "Delay between a slot request and its processing by the SlotManager.",
        flink="slotmanager.requirement-check.delay",
    )
    slot_timeout_ns: Duration = option(
        300 * SECOND,
        "Time after which a slot request fails the deployment, which uses up an attempt.  A standalone cluster without "
        "slots fails it at once, except\n"
        "during this time after the start of its JobManager.  Not for the adaptive scheduler.",
        flink=Flink("slot.request.timeout", form="milliseconds"),
    )
    ask_timeout_ns: Duration = option(
        10 * SECOND,
        "Time after which a deployment to an unreachable host fails.",
        flink=Flink("pekko.ask.timeout", older={"akka.ask.timeout": "1.17"}),
    )
    fresh_start_ns: Duration = option(  # 0.8 to 1.7 s in our recordings, in addition to overheads: deploy
        SECOND,
        "Additional time of a task's first deployment on a new TaskManager process, which loads classes and libraries.",
    )
    state_start_ns: Duration = option(
        0,
        "From INITIALIZING of a restarted task with keyed state until it reads state, as classes of the backend and of "
        "serializers are loaded.\n"
        "Default: 0 s.",
    )
    cancellation_timeout_ns: Duration = option(
        180 * SECOND,
        "Time after which a task that does not stop takes down its TaskManager.",
        flink=Flink("task.cancellation.timeout", form="milliseconds"),
    )
    warm_up_ns: Duration = option(
        0,
        "Time after a restart (or a start with run: cold-start) in which tasks are slow, as code is not compiled and "
        "caches are empty.\n"
        "Default: 0 s.",
    )
    warm_up_factor: Number = option(
        Fraction(2), "Factor on service times in the warm-up.  Default: 2.", needs=("warm-up", ())
    )
    scheduler: Literal["default", "adaptive"] = option(
        "default",
        "adaptive: the job restarts with the available slots and is rescaled when more arrive; it also uses spare slots.",
        flink=Flink("jobmanager.scheduler", form="scheduler"),
    )
    reactive: Switch = option(
        False,
        "adaptive: reactive mode: it starts with any number of slots at once, and waits for the first one without limit.",
        needs=_ADAPTIVE,
        flink=Flink("scheduler-mode", form="reactive"),
    )
    stabilization_ns: Duration = option(
        10 * SECOND,
        "adaptive: time after a failure in which it waits for more slots than are available.",
        needs=_ADAPTIVE,
        flink=Flink(
            f"{_OF_ADAPTIVE}.submission.resource-stabilization-timeout",
            {f"{_OF_ADAPTIVE}.resource-stabilization-timeout": "1.20"},
        ),
    )
    resource_wait_ns: Duration | None = option(
        300 * SECOND,
        "adaptive: time without any slot after which the job fails; 0 s: never.",
        needs=_ADAPTIVE,
        zero_means_never=True,
        flink=Flink(
            f"{_OF_ADAPTIVE}.submission.resource-wait-timeout",
            {f"{_OF_ADAPTIVE}.resource-wait-timeout": "1.20"},
            form="wait",
        ),
    )
    cooldown_ns: Duration = option(
        30 * SECOND,
        "adaptive: minimum time that the job runs between two rescales.",
        needs=_ADAPTIVE,
        flink=Flink(
            f"{_OF_ADAPTIVE}.executing.cooldown-after-rescaling", {f"{_OF_ADAPTIVE}.scaling-interval.min": "1.20"}
        ),
    )
    rescale_stabilization_ns: Duration = option(
        60 * SECOND,
        "adaptive: time that it waits for the desired slots when only some of them have arrived.",
        needs=_ADAPTIVE,
        flink=Flink(
            f"{_OF_ADAPTIVE}.executing.resource-stabilization-timeout", {f"{_OF_ADAPTIVE}.scaling-interval.max": "1.20"}
        ),
    )
    rescale_failures: Positive = option(
        2,
        "adaptive: failed checkpoints after which it rescales without waiting for a completed one.",
        needs=_ADAPTIVE,
        flink=Flink(f"{_OF_ADAPTIVE}.rescale-trigger.max-checkpoint-failures"),
    )
    rescale_delay_ns: Duration | None = option(
        None,
        "adaptive: maximum time that it waits for a checkpoint before it rescales.  Default: an interval for each of "
        "rescale-failures, and one more.",
        needs=_ADAPTIVE,
        default_text="three intervals",
        flink=Flink(f"{_OF_ADAPTIVE}.rescale-trigger.max-delay"),
    )

    rescale_checkpoint: Switch = option(  # false and true are both defaults in versions of its pull request
        False,
        "adaptive: when slots arrive, it triggers a checkpoint to rescale from, min-pause after the last one and unless "
        "one is in progress\n"
        "(FLINK-36753, Flink 2.4).  Default: it waits for the next periodic one.",
        needs=_ADAPTIVE,
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
            at.error(
                f"must lie between 1 and {MAX_WARM_UP_FACTOR}: a cold task is slower, not stopped", "warm-up-factor"
            )
        if interval_ns > timeout_ns > 0 and at.written("heartbeat-interval") is not None:
            at.error(
                f"is more than the timeout, {format_duration(timeout_ns)}: Flink does not start", "heartbeat-interval"
            )
        elif interval_ns > timeout_ns > 0:
            at.error(
                f"is less than heartbeat-interval, {format_duration(interval_ns)} by default: Flink does not start; write both",
                "heartbeat-timeout",
            )
        return self

    @property
    def max_restarts(self) -> int | None:
        """The minimum number of restarts before the strategy gives up; None if it never does."""
        limit = RESTARTS[self.strategy].limit
        most: int | None = getattr(self, limit) if limit else 0
        return most

    @property
    def restarts_all(self) -> bool:
        """Whether a failure restarts the whole job.  The adaptive scheduler has no failover regions."""
        return self.failover == "full" or self.scheduler == "adaptive"


@frozen
class Rescale:
    """From `at_ns` on the vertices have another parallelism: the job is restarted from its latest completed checkpoint."""

    at_ns: int
    parallelism: tuple[tuple[str, int], ...]
    savepoint: bool = False  # take one first and restart from it, instead of from the latest completed checkpoint


# ---- Distributions of the time between faults, drawn as a function of the seed (`sim.model.randomness`).

_SQUARE = 1 << 64


GAPS: dict[str, Callable[[float, Distribution], float]] = {
    "exponential": lambda u, _: -log(u),
    "lognormal": lambda u, distribution: exp(
        sqrt(log1p(distribution.cv**2)) * NormalDist().inv_cdf(u) - log1p(distribution.cv**2) / 2
    ),
}
"""Kind of distribution -> quantile at a probability, as a multiple of its mean.  The tables of `sim.model.randomness` end too early."""


def gap_ns(distribution: Distribution, key: Stream, k: int) -> int:
    """Return the time from fault k - 1 (or the start) to fault k [ns], at least 1 ns."""
    # in (0, 1); one draw would not reach far enough into the tail
    u = ((draw(key, 2 * k) << 32) + draw(key, 2 * k + 1) + 0.5) / _SQUARE
    factor = 1.0 if distribution.kind == "constant" else GAPS[distribution.kind](u, distribution)
    return max(1, round(distribution.mean * factor))
