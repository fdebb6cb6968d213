"""A scenario: job, cluster, checkpoints, faults, planned actions; and the backtest of an imported one."""

from __future__ import annotations

import math
from dataclasses import MISSING, field, replace
from typing import TYPE_CHECKING, Annotated, Literal

from sim.model.checkpoint import CheckpointOptions
from sim.model.cluster import Cluster
from sim.model.faults import Fault, Rescale, Restart
from sim.model.frozen import frozen
from sim.model.job import Job, Vertex
from sim.model.options import ValidationContext, option
from sim.model.randomness import Residuals
from sim.model.storage import ClaimMode, Directories, Storage
from sim.model.units import UnitError, format_duration, parse_duration
from sim.model.value_types import DURATION, Duration, Natural, Positive, Real, quantity

if TYPE_CHECKING:
    from sim.model.quantities import Level


# ---- Requests to a running job: savepoints, and stop with savepoint.


@frozen
class Action:
    """A savepoint; with `stop` the job stops with it.

    drain: sources end, operators finish, and the savepoint holds that (`flink stop --drain`). no-drain: the savepoint
    contains the job in its current state. savepoint-then-finish: as before FLIP-147, operators finish after the savepoint and
    nothing holds what they emit.
    """

    at_ns: int
    format: Literal["canonical", "native"] = "canonical"
    stop: Literal["drain", "no-drain", "savepoint-then-finish"] | None = None


@frozen
class CheckpointUpdate:
    """Changes interval and timeout of checkpoints at run time (FLIP-571, a proposal: PATCH /jobs/:jobid/checkpoints/configuration)."""

    at_ns: int
    interval_ns: int | None = None  # None: unchanged
    timeout_ns: int | None = None  # None: unchanged


# ---- Consecutive job instances: each starts from a snapshot of the one before.


MAX_JOBS = 1000


@frozen
class Instances:
    """The job instances of a run, which share its duration."""

    count: Positive = option(1, "Number of job instances.")
    claim: ClaimMode = option(  # execution.state-recovery.claim-mode
        "no-claim", "Claim mode: who owns the snapshot that a job starts from (FLIP-193)."
    )
    start_from: Literal["checkpoint", "savepoint"] = option(
        "checkpoint", "Start from the latest retained checkpoint, or the latest savepoint (see actions).", key="from"
    )
    copied: Literal["nothing", "own", "job", "root"] = option(
        "nothing",
        "What is copied to another location before the start, with the originals deleted, to see which snapshots are "
        "relocatable (FLINK-24149): the snapshot's own directory, that of its job, or all.\n"
        "nothing: all files stay in place.",
    )

    def completed(self, at: ValidationContext) -> Instances:
        if self.count > MAX_JOBS:
            at.error(f"is {self.count}: at most {MAX_JOBS} jobs follow one another", "count")
        return self


# ---- The scenario of one run: a job on a cluster with one checkpoint strategy, the argument of `simulate`.

AUTO_WARM_UP = -1
"""A warm-up whose end is determined from the results."""


def _warm_up(value: object) -> int:
    if value == "auto":
        return AUTO_WARM_UP
    try:
        return parse_duration(value)
    except UnitError:
        raise ValueError(f"'{value}' is not a warm-up: write '30 s', or auto") from None


WarmUp = Annotated[int, quantity(_warm_up, DURATION, "30 s", or_else=("auto",), write=format_duration)]
"""ns, or AUTO_WARM_UP."""


@frozen
class Overheads:
    """What no configuration says [ns]: constants of an environment, where the scenario says no others.

    The defaults are those of our own recordings, Flink 2.3 on loopback with storage in memory; `benchmarks.lab
    calibrate` measures others. How each was estimated, and how sure it is:
    benchmarks/lab/calibration/overheads.yaml.
    """

    trigger_ns: Duration = option(
        3_000_000, "From the trigger timestamp to the execution of the trigger call by a source."
    )
    acknowledge_ns: Duration = option(
        3_000_000, "From the end of the asynchronous phase until the coordinator has processed the acknowledgement."
    )
    complete_ns: Duration = option(
        6_000_000, "From the last acknowledgement until the next trigger is possible, in addition to writing _metadata."
    )
    notify_ns: Duration = option(500_000, "From the coordinator's notification to its arrival at a task.")
    # in addition to min-pause
    first_trigger_ns: Duration = option(21_000_000, "From all tasks running to the first trigger, in Flink 2.x.")
    close_ns: Duration = option(9_500_000, "From the end of a task's last wait until its outputs are closed.")
    fail_ns: Duration = option(20_000_000, "From an exception in a task until the job is RESTARTING.")
    # tasks are cancelled by then
    restart_ns: Duration = option(34_000_000, "From the end of the restart delay to the start of the deployment.")
    deploy_ns: Duration = option(99_000_000, "From the start of the deployment until a task initializes.")
    file_ns: Duration = option(
        1_000_000, "Overhead per file of flat storage, in addition to its file-latency and transfer."
    )
    start_ns: Duration = option(1_100_000_000, "From submission until all tasks run.")  # where it was not measured
    flusher_ns: Duration = option(  # OutputFlusher sleeps, then works
        500_000, "Overhead of an output flush, in addition to the buffer timeout."
    )


@frozen
class Run:
    """The length of a run, what is left out of it, its seed and its replications."""

    duration_ns: Duration = option(MISSING, "Simulated time.")
    warmup_ns: WarmUp = option(  # or AUTO_WARM_UP
        0,
        "Initial time that results exclude (default: 0 s); auto: until checkpoints, queues and lag are in steady state "
        "(Conway's rule).",
    )
    cold_start_ns: Duration = option(
        0,
        "The job has just been submitted: its tasks start to run after this time, and are slow at first (restart: warm- "
        "up); due records\n"
        "wait in the log.  Default: 0 s, a job that has been running for a long time.",
    )
    seed: Natural = option(1, "Seed of all random numbers; a list is a sweep axis.")
    replications: Positive = option(1, "Runs of each combination, with different seeds.")
    until: Literal["duration", "caught-up"] = option(
        "duration",
        "End of the run: its duration, or caught-up, when the job has caught up after a failure (at most the duration).",
    )

    def completed(self, at: ValidationContext) -> Run:
        if self.duration_ns == 0:
            at.error("is 0: nothing would happen", "duration")
        elif self.warmup_ns >= self.duration_ns:
            at.error(
                f"leaves nothing of the run: it must be shorter than {format_duration(self.duration_ns)}", "warmup"
            )
        return self

    @property
    def finds_warm_up(self) -> bool:
        return self.warmup_ns == AUTO_WARM_UP

    @property
    def ends_caught_up(self) -> bool:
        return self.until == "caught-up"


@frozen
class Scenario:
    """A concrete run: job, cluster, checkpoint options, storage, faults."""

    question: str  # the first comment of the file
    name: str
    job: Job
    checkpoint: CheckpointOptions
    run: Run
    cluster: Cluster = Cluster()
    storage: Storage = Storage()
    overheads: Overheads = Overheads()
    actions: tuple[Action, ...] = ()  # in the order of time
    checkpoint_updates: tuple[CheckpointUpdate, ...] = ()  # in the order of time
    faults: tuple[Fault, ...] = ()
    restart: Restart = Restart()
    rescale: tuple[Rescale, ...] = ()  # in the order of time
    instances: Instances = Instances()
    directories: Directories = Directories()  # of checkpoint storage
    residuals: Residuals = Residuals()  # of a history: what the model does not explain
    expect: tuple[tuple[str, str], ...] = ()  # (metric, condition)
    axes: tuple[tuple[str, str], ...] = ()  # (axis, chosen value) when the file listed several values
    written_keys: tuple[tuple[str, str], ...] = ()  # (key of Flink or its operator, value): written, and not modelled
    # options that decide in many jobs and that the file leaves out, dotted, VERTEX for every vertex
    left_out: tuple[str, ...] = field(default=(), compare=False)

    @property
    def is_operated(self) -> bool:
        """Whether keys of the Kubernetes operator are set."""
        return any(key.startswith(("kubernetes.operator.", "job.autoscaler.")) for key, _ in self.written_keys)

    def checkpoint_at(self, at_ns: int) -> CheckpointOptions:
        """Return the checkpoint options with all updates up to `at_ns`."""
        options = self.checkpoint
        for update in self.checkpoint_updates:
            if update.at_ns <= at_ns:
                interval_ns = options.interval_ns if update.interval_ns is None else update.interval_ns
                timeout_ns = options.timeout_ns if update.timeout_ns is None else update.timeout_ns
                options = replace(options, interval_ns=options.interval_ns and interval_ns, timeout_ns=timeout_ns)
        return options

    @property
    def intervals_ns(self) -> tuple[int, ...]:
        """The intervals of periodic checkpoints [ns], in the order of time; empty without periodic checkpoints."""
        updated = (update.interval_ns for update in self.checkpoint_updates if update.interval_ns is not None)
        return (self.checkpoint.interval_ns, *updated) if self.checkpoint.interval_ns else ()

    @property
    def has_one_timeout(self) -> bool:
        """Whether the timeout of checkpoints never changes."""
        return all(update.timeout_ns is None for update in self.checkpoint_updates)

    def yields(self, vertex: Vertex) -> bool:
        """Return whether mails are processed between the timers of a firing (interruptible timers, AbstractStreamOperator#open).

        Flink supports this for event-time timers only.
        """
        options, window = self.checkpoint, vertex.window
        may = options.interruptible_timers and options.barriers.record.overtakes
        return may and window is not None and window.time == "event" and window.api == "sql" and not window.early

    @property
    def first_fault_s(self) -> float:
        """The time of the first planned fault, change or stop [s]; inf without any."""
        planned = [at_ns for fault in self.faults for at_ns in fault.when.at_ns]
        planned += [rescale.at_ns for rescale in self.rescale] + [
            action.at_ns for action in self.actions if action.stop
        ]
        return min(planned, default=math.inf) / 1e9

    @property
    def unlimited_bytes(self) -> int:
        """The most bytes that a subtask writes to storage without a bandwidth limit, of state or of a sink; 0 with a limit."""
        storage = self.storage
        if (
            storage.nic_bytes_per_second is not None
            or getattr(storage.options or storage, "bytes_per_second", 0) is not None
        ):
            return 0
        states = [(own.state, own.parallelism) for own in self.job.vertices if own.state is not None]
        written = [
            own.bytes // number
            for own, number in states
            if own.changelog is None and own.serialize_bytes_per_second is None
        ]
        return max(
            [*written, *(vertex.flush.bytes for vertex in self.job.vertices if vertex.flush is not None)], default=0
        )


# ---- The backtest of an imported job: how well its simulation agrees with the checkpoint history that it was inferred from.
# A backtest belongs to a scenario file and does not affect runs.

MAX_KEPT_DURATIONS = 20
"""Longest durations stored in a scenario: enough for the p99 of 2,000 checkpoints."""


@frozen
class Quantiles:
    """Quantiles of a quantity, in ms, bytes or records per second.  NaN without values."""

    p50: float = math.nan
    p90: float = math.nan
    largest: float = math.nan
    count: int = 0

    def at(self, level: Level) -> float:
        """Return the p50 or p90."""
        return self.p50 if level == "p50" else self.p90


@frozen
class ComparedQuantity:
    """The observed and the predicted quantiles of a quantity."""

    quantity: str
    observed: Quantiles
    predicted: Quantiles
    vertex: str = ""  # empty for quantities of whole checkpoints
    off: tuple[Level, ...] = ()  # levels at which the two differ by more than repeated runs of one job

    def change(self, level: Level) -> float | None:
        """Return (predicted - observed) / observed, or None if nothing was predicted or the observed value is 0."""
        observed, predicted = self.observed.at(level), self.predicted.at(level)
        return (predicted - observed) / observed if self.predicted.count and observed else None

    def agreement(self, level: Level) -> float:
        """Return the smaller value / the larger one, or 1 if they differ by no more than repeated runs."""
        values = (self.observed.at(level), self.predicted.at(level))
        if level not in self.off or math.isnan(values[0]):
            return 1.0
        return min(values) / max(values) if values[1] > 0 else 0.0  # the prediction may be NaN


@frozen
class OtherSettings:
    """Factors within which predicted durations under other settings are expected.  Infinite if unknown.

    The factors of a history cover the sampling error of its checkpoints, differences between machines, and the deviation
    of the backtest.  The error of a what-if also depends on what it changes (`sim.jobs.evidence`).
    """

    p50: Real = option(math.inf, "Factor of the median.", default_text="unknown")
    p90: Real = option(math.inf, "Factor of the 90th percentile.", default_text="unknown")

    def completed(self, at: ValidationContext) -> OtherSettings:
        if min(self.p50, self.p90) < 1:
            at.error("expected factors of 1 and more")
        return self


@frozen
class ObservedFailures:
    """Completed and failed checkpoints of the history and of the simulation, and failures of the job."""

    completed: Natural = option(MISSING, "Completed checkpoints in the history.")
    failed: Natural = option(MISSING, "Failed checkpoints in the history.")
    reason: str = option("", "Most frequent failure reason.")  # empty if unknown
    predicted_completed: Natural = option(0, "In all simulated runs.", is_required=True)
    predicted_failed: Natural = option(0, "In all simulated runs.", is_required=True)
    job_failures: Natural = option(0, "Failures of the job in the history.")
    ran_ns: Duration = option(0, "Time in which these failures happened.")  # 0 if unknown
    latest_failed: Natural = option(0, "Failed checkpoints since the last completed one, at the end of the history.")

    @property
    def are_missed(self) -> bool:
        """Whether at least half of the checkpoints of the history, or its latest ones, failed, but most of the simulation complete."""
        predicted = self.predicted_completed + self.predicted_failed
        have_failed = 0 < self.failed >= self.completed or self.latest_failed >= _MIN_LATEST_FAILED
        return have_failed and 2 * self.predicted_failed < predicted

    @property
    def mtbf_ms(self) -> float | None:
        """Mean time between failures of the job.  None without failures, or if the period is unknown."""
        return self.ran_ns / 1e6 / self.job_failures if self.job_failures and self.ran_ns else None


_MIN_LATEST_FAILED = 3


@frozen
class Backtest:
    """The backtest of an import."""

    compared: tuple[ComparedQuantity, ...]
    longest_ms: tuple[float, ...] = option(
        (),
        "Longest observed end-to-end durations, in descending order.",
        key="longest",
        has_custom_section=True,
    )
    tail: Real = option(
        1.0,
        "The tail of end-to-end durations, observed / predicted, where both differ by more than repetitions do.",
        must_be_positive=True,
    )
    runs: Positive = option(1, "Number of simulated runs.", is_required=True)
    simulated_ns: Duration = option(0, "Simulated time per run.", is_required=True)
    other_settings: OtherSettings | None = option(  # None in files of older versions
        None,
        "Factors within which other settings are predicted, from short histories, the machine, and the differences above.",
    )
    failures: ObservedFailures | None = option(None, "Not set: no checkpoint and no job failed.")
    # The scenario without command-line overrides.
    imported: Scenario | None = field(default=None, compare=False, repr=False)

    def of(self, quantity: str) -> ComparedQuantity | None:
        """Return the comparison of a quantity, if there is one."""
        return next((compared for compared in self.compared if compared.quantity == quantity), None)

    @property
    def off(self) -> tuple[ComparedQuantity, ...]:
        """The quantities whose prediction deviates from the history."""
        return tuple(compared for compared in self.compared if compared.off)

    @property
    def checkpoints(self) -> int:
        """Number of completed checkpoints of the history."""
        durations = self.of("end-to-end")
        return 0 if durations is None else durations.observed.count

    @property
    def p99_ms(self) -> float:
        """The 99 % quantile of the observed durations; the longest one of fewer than 100 checkpoints."""
        position = self.checkpoints // 100
        return self.longest_ms[min(position, len(self.longest_ms) - 1)] if self.longest_ms else 0.0
