"""Trials: the simulations by which a setting is judged, one without and one with a failure, and the limits on their cost."""

# The trials of one setting, and the rows of results that they become:
#
#   candidate                 Bench                                          TrialRunner
#   ---------                 -----                                          -----------
#   (30 s, unaligned)  -->    for each world:
#                               undisturbed   60 s to settle, then at   -->  a cell and its baseline without
#                                             least 2 intervals and 60 s     checkpoints, per replication
#                               failure       TaskManager lost (or a    -->  a cell per replication
#                                             task), 9/10 into interval;
#                                             where a load that varies is largest
#                             if asked for:
#                               long          up to 100 intervals       -->  limit on the tail of checkpoints
#
#   point = common | world | extra | grown state | candidate | length        later entries override earlier ones
#
# A trial with a failure ends when the job has caught up.  When these trials had a fixed length, they took half of
# the CPU time of a search (docs/performance.md).

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from math import ceil, inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

from sim.advice.horizon import WINDOW_NS, Horizon, horizon
from sim.advice.settings import checkpoint_period_ns
from sim.model.faults import TaskManagerLost
from sim.model.quantities import S3_STANDARD
from sim.model.schema.study import apply, key_of
from sim.model.schema.text import Reading, compose, read_text
from sim.model.text import PrintableError
from sim.model.units import MS, SECOND, format_duration
from sim.protocol.recovery import outages
from sim.runtime.plane_spec import restarts_after_loss
from sim.studies.plan import Cell, cells, with_baselines
from sim.studies.progress import Clock, Watch, no_watch
from sim.studies.sweeps.design import Point, override
from sim.studies.sweeps.results import write_and_read_results
from sim.studies.sweeps.run import Workers, run_missing
from sim.studies.sweeps.store import Store
from sim.studies.work import finite_number, planned_work_s, work_s

if TYPE_CHECKING:
    import pandas as pd

    from sim.advice.settings import Candidate, SettingName
    from sim.model.faults import Restart
    from sim.model.quantities import Prices
    from sim.model.scenario import Backtest, Scenario
    from sim.model.schema.flink_file import FlinkFile
    from sim.model.schema.text import Problem
    from sim.studies.cells import Row


# ---- The budget (for the work of all runs) and the time limit. When one is reached, the answer is based on the finished runs.

GRID_SHARE, LEVER_SHARE, REPEAT_SHARE, CONFIRM_SHARE, REST_SHARE, FULL_BUDGET = 0.5, 0.6, 0.65, 0.85, 0.95, 1.0
"""Shares of the budget up to which the stages may plan runs (`sim.advice.optimizer`).

The grid of intervals leaves some budget for levers, both leave some for repeated runs of the best settings, and all of
these leave some for long runs.  What is left up to `REST_SHARE` is spent on a choice that is not confirmed.  The rest is for the
changes that would be enough if no setting keeps the limits, and for unknown values.
"""
OVER_BUDGET = "more work than the budget leaves (--budget)"
OUT_OF_TIME = "the time limit was reached: run the same command to resume"


class BudgetUsedError(Exception):
    """Raised if the budget or the time limit do not cover the next runs."""


class TimeUpError(BudgetUsedError):
    """Raised if the time limit is reached during runs.  `rows`: rows of all finished runs."""

    def __init__(self, rows: pd.DataFrame) -> None:
        super().__init__(OUT_OF_TIME)
        self.rows = rows


class NothingRanError(PrintableError, RuntimeError):
    """Raised if the time limit is reached before any setting has run.  The message says what to do."""

    exit_code = 4


# ---- The runner of trials. It stores every row, and enforces two limits.
#
# The budget counts work, which does not depend on the machine, and determines which trials run. The time limit abandons
# unfinished runs when it is reached. So a search that was not interrupted gives the same answer on any machine.


class _TimeUp(BaseException):
    """Raised in runs when the time limit is reached.  It is not an Exception, because cells record these as errors of the run."""


class TrialRunner:
    """Runs and stores the trials of a search, and decides whether budget and time limit cover more of them.

    `budget_s`: limit on the work of all stored rows [s].  `within_s`: limit on the time since the creation of the runner [s],
    measured by `clock`.  `watch` is called with (finished runs, work [ns]); the work of unfinished runs is estimated.  With
    Spark, call `run` inside the block of `workers`.
    """

    def __init__(
        self,
        folder: Path,
        *,
        jobs: int | None = None,
        master: str | None = None,
        conf: Mapping[str, str] | None = None,
        budget_s: float = inf,
        within_s: float = inf,
        clock: Clock = time.monotonic,
    ) -> None:
        self.store = Store(folder)
        self.watch: Watch = no_watch
        self.best = ""  # the best setting so far, as progress says it
        self.workers = Workers(jobs, master, conf)
        self._budget_s, self._within_s = budget_s, within_s
        self._planned: dict[str, Cell] = {}
        self._scenarios: dict[str, Scenario] = {}  # id of the cell, which is the name of its row -> scenario
        self._clock = clock
        self._begun_s = clock()
        self.lack = OVER_BUDGET  # the limit because of which `affords` was last False or `run` was interrupted

    def run(self, scenarios: Sequence[Scenario]) -> pd.DataFrame:
        """Run the cells of these scenarios that have no stored row.

        Returns the rows of the scenarios and of the baselines of undisturbed trials.  Raises TimeUpError if the time limit
        is reached before all runs have finished.
        """
        planned = _cells(scenarios)
        self._planned |= {f"{cell.id} {cell.scenario.axes}": cell for cell in planned}
        self._scenarios |= {cell.id: cell.scenario for cell in planned}
        before, spent_s, rate = len(self._own_rows()), self.spent_s(), self._rate()

        def watch(finished: int, simulated_ns: int) -> None:
            self.watch(before + finished, round(spent_s * 1e9 + rate * simulated_ns))
            if self._passed_s() >= self._within_s:
                raise _TimeUp

        if self._passed_s() >= self._within_s and self.store.missing(planned):
            raise self._time_up(planned)
        try:
            run_missing(planned, self.store, self.workers, watch=watch)
            return write_and_read_results(self.store, planned)
        except _TimeUp:
            raise self._time_up(planned) from None

    def spent_s(self) -> float:
        """Return the work of all stored rows of the search [s]."""
        return sum(work_s(row, self._scenarios[name]) for name, row in self._own_rows().items())

    def affords(self, scenarios: Sequence[Scenario], share: float) -> bool:
        """Return True if these runs fit in a share of the budget, and the time limit is not reached.

        Scenarios that are stored already cost nothing.  Runs with a failure end when the job has caught up: they count for as much
        of their duration as earlier ones took.
        """
        missing = self.store.missing(_cells(scenarios))
        if not missing:
            return True
        if self._passed_s() >= self._within_s:
            self.lack = OUT_OF_TIME
            return False
        self.lack = OVER_BUDGET
        rows = self._own_rows()
        per_second = max((finite_number(row.get("emitted_per_second")) for row in rows.values()), default=0.0)
        spent, planned = defaultdict[bool, float](float), defaultdict[bool, float](float)  # has a failure -> work [s]
        for name, row in rows.items():
            scenario = self._scenarios[name]
            spent[bool(scenario.faults)] += work_s(row, scenario)
            planned[bool(scenario.faults)] += planned_work_s(scenario, per_second)
        needed_s = 0.0
        for scenario in (cell.scenario for cell in missing):
            fails = bool(scenario.faults)
            taken = spent[fails] / planned[fails] if planned[fails] else 1.0
            needed_s += taken * planned_work_s(scenario, per_second)
        return sum(spent.values()) + needed_s <= share * self._budget_s

    def collected(self) -> pd.DataFrame:
        """Write all rows of the search to the result files, and return them."""
        return write_and_read_results(self.store, list(self._planned.values()))

    def _time_up(self, planned: Sequence[Cell]) -> TimeUpError:
        self.lack = OUT_OF_TIME
        return TimeUpError(write_and_read_results(self.store, planned))

    def left_s(self) -> float:
        """Return the time that the limit leaves [s]; inf without one."""
        return max(self._within_s - self._passed_s(), 0.0)

    def _passed_s(self) -> float:
        return self._clock() - self._begun_s

    def _own_rows(self) -> dict[str, Row]:
        return {name: row for name, row in self.store.rows().items() if name in self._scenarios}

    def _rate(self) -> float:
        """Return the work [s] per simulated second over all rows so far, or 0 without rows."""
        simulated_ns = sum(self._scenarios[name].run.duration_ns for name in self._own_rows())
        return 1e9 * self.spent_s() / simulated_ns if simulated_ns else 0.0


def _cells(scenarios: Sequence[Scenario]) -> list[Cell]:
    """Return the cells of trials in which throughput is compared, with their baselines, then those of all other trials."""
    steady, others = (
        [scenario for scenario in scenarios if (dict(scenario.axes)[TRIAL] == UNDISTURBED) == is_steady]
        for is_steady in (True, False)
    )
    return [*with_baselines(cells(steady)), *cells(others)]


# ---- The time until tasks of a lost TaskManager have slots again. It is a range, because the phase of heartbeats is random.
# A few trials do not show the width of the range, so it is computed from the distribution of outages.


def slots_ms(scenario: Scenario) -> tuple[float, float] | None:
    """Return (min, max) time [ms] until tasks of a lost TaskManager have slots, or None if the job may fail permanently."""
    overheads = scenario.overheads
    ready = [
        outage.ready_ns
        for own in restarts_after_losses(scenario)
        for outage in outages(own, fail_ns=overheads.fail_ns, restart_ns=overheads.restart_ns)
    ]
    finite = [ready_ns for ready_ns in ready if ready_ns is not None]
    return (min(finite) / 1e6, max(finite) / 1e6) if len(finite) == len(ready) else None


def is_lost_silently(scenario: Scenario) -> bool:
    """Return True if a fault of the scenario loses a TaskManager that falls silent, as trials then do."""
    return any(isinstance(fault.what, TaskManagerLost) and fault.what.silent for fault in scenario.faults)


def restarts_after_losses(scenario: Scenario) -> list[Restart]:
    """Return `restart:` for each kind of TaskManager that trials lose.  One that falls silent is detected by heartbeats that time out."""
    restart = scenario.restart
    if not is_lost_silently(scenario):
        return restarts_after_loss(scenario)
    latest_ns = restart.heartbeat_timeout_ns + restart.heartbeat_interval_ns
    return [replace(restart, heartbeat_failures=None, provider="standalone", connection_reset_ns=latest_ns)]


# ---- The trials of a setting: an undisturbed run for its cost, and a run with a failure.
#
# The failure is late in an interval, when most work is lost, and after the job has settled. A TaskManager is lost, or a task
# fails if the user chooses that. The run lasts until the job has caught up, or long enough to show that it does not recover
# within the limit. Trials are ordinary changes of the scenario, so that a sweep file can repeat them. In all trials, growing
# state has its size at the horizon, so that compared rows are about the same job.

SETTLED_NS = 60 * SECOND
"""Time from the start after which queues have filled and checkpoints are regular."""
PERIODS, OBSERVED_NS = 2, 60 * SECOND
"""Minimum intervals, and minimum time, for which an undisturbed run is observed."""
FAILURE_PHASE = (9, 10)
"""Fraction of the interval that has passed at the failure, as (numerator, denominator)."""
PATIENCE_NS = 180 * SECOND
"""Minimum time after the outage for which a trial waits for the recovery."""

WINDOW_LEAD_NS = 20 * MS
"""Time from the firing of a window to the trigger of the checkpoint that waits for it."""
WINDOW_PHASES = 20
"""Phases between windows and checkpoints that a long run with Flink 1.x shows."""
LONG_PERIODS, LONGEST_NS = 100, 7200 * SECOND
"""Number of checkpoints in a long run, enough for a p99, and its maximum length."""

WORLD, INTERVAL, PROTOCOL, TRIAL = ("world", "interval", "protocol", "trial")
UNDISTURBED, FAILURE, LONG, FILE = "undisturbed", "failure", "long", "file"
"""Kinds of trials.  FILE: with the events in the file (`sim.advice.file_runs`)."""

Failure = Literal["task-manager", "task"]
TASK_MANAGER, TASK = FAILURES = get_args(Failure)


@dataclass(frozen=True, slots=True)
class Trial:
    """A simulation of a setting in one world.  `point`: the complete change of the scenario.

    A world is a variant of the load, e.g. the busiest window of a trace.  `kind`: UNDISTURBED, FAILURE or LONG.
    """

    world: str
    candidate: Candidate
    kind: str
    point: Point = field(hash=False)

    @property
    def axes(self) -> tuple[tuple[str, str], ...]:
        return (
            (WORLD, self.world),
            (INTERVAL, self.candidate.interval),
            (PROTOCOL, self.candidate.protocol),
            (TRIAL, self.kind),
        )


class VaryingLoad(NamedTuple):
    """How trials meet a load that varies: all of them the same part of it, with the failure at the same moment."""

    until_ns: int  # trials last at least until then
    busiest_ns: int  # the failure: when the load becomes largest
    is_whole: bool  # whether the load does not vary after `until_ns`


def varying_load(scenario: Scenario, max_ns: int, own_ns: int) -> VaryingLoad | None:
    """Return how trials meet the load of a scenario within their first `max_ns`, or None if it is constant by then.

    `own_ns`: the duration that the user gave, for which trials follow the load at least.
    """
    rates = [  # of each source in the order of time
        (rate.start_ns, vertex.name, rate.per_second * vertex.emitting)
        for vertex in scenario.job.vertices
        if vertex.source is not None
        for rate in vertex.source.rates
    ]
    changes_ns = sorted({start_ns for start_ns, *_ in rates} - {0})
    if not changes_ns or changes_ns[0] >= max_ns:
        return None
    until_ns = min(max(changes_ns[-1] + OBSERVED_NS, own_ns), max_ns)

    def per_second(at_ns: int) -> Fraction:
        latest = {name: rate for start_ns, name, rate in rates if start_ns <= at_ns}
        return sum(latest.values(), Fraction())

    starts_ns = [SETTLED_NS, *(at_ns for at_ns in changes_ns if SETTLED_NS < at_ns < until_ns)]
    return VaryingLoad(until_ns, max(starts_ns, key=per_second), changes_ns[-1] <= until_ns)


@dataclass
class Bench:
    """The job under trial: a scenario file, the changes common to all trials, and everything known about the job.

    It turns a candidate into trials, and trials into scenarios.
    """

    file: Path
    common: Point
    as_written: Point = field(default_factory=dict)  # the same without what leaves out parts of the file
    patience_ns: int = 0  # minimum time for which a trial waits for the recovery
    worlds: Mapping[str, Point] = field(default_factory=lambda: {"": {}})  # e.g. windows of the load's trace
    backtest: Backtest | None = None  # comparison of the simulation with the history of the job; None without history
    failure: Failure = TASK_MANAGER  # the failure after which recovery is measured
    horizon: Horizon = field(default_factory=Horizon)  # size of growing state
    warnings: Sequence[Problem] = ()  # about the scenario file
    conf: FlinkFile | None = None  # the deployed Flink configuration, for which patches are made
    prices: Prices = S3_STANDARD  # of an object store
    # missing `update` keys: the file does not say which share of records rewrites entries of these states
    unasked_updates: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self.patience_ns = max(self.patience_ns, PATIENCE_NS)
        self._loaded: dict[str, Scenario] = {}
        self.durations_ns: dict[SettingName, float] = {}
        """Setting -> checkpoint duration [ns], for settings whose checkpoints take so long that they extend the interval."""
        self.settled_ns: dict[SettingName, float] = {}
        """Setting -> time from the start after which its checkpoints are regular, if that is after SETTLED_NS."""

    @cached_property
    def document(self) -> Mapping[str, Any]:
        """The scenario document of the job, with the changes that the user gave."""
        return document_of(self.file, [override(key, value) for key, value in self.as_written.items()])

    def with_setting(self, candidate: Candidate) -> Scenario:
        """Return the scenario of the job with another setting, without the changes of a trial."""
        return self.load({**self.common, **candidate.point})

    def period_ns(self, candidate: Candidate) -> int:
        """Return the effective interval [ns], which min-pause and long checkpoints may extend."""
        options = self.with_setting(candidate).checkpoint
        return round(checkpoint_period_ns(options, self.durations_ns.get(candidate.name, 0.0)))

    def observed_ns(self, candidate: Candidate) -> int:
        """Return the time for which an undisturbed run of a candidate is observed after it has settled [ns]."""
        followed_ns = max((load.until_ns for load in self.varying.values()), default=0)
        return max(PERIODS * self.period_ns(candidate), OBSERVED_NS, followed_ns - self.settling_ns(candidate))

    @cached_property
    def varying(self) -> dict[str, VaryingLoad]:
        """World -> its load, if it varies within trials."""
        max_ns, own_ns = WINDOW_NS * (1 if len(self.worlds) > 1 else 2), self.load(self.common).run.duration_ns
        read = {"run.duration": format_duration(2 * max_ns)}  # a trace is read as far as a run lasts
        loads = {
            world: varying_load(self.load({**self.common, **changes, **read}), max_ns, own_ns)
            for world, changes in self.worlds.items()
        }
        return {world: load for world, load in loads.items() if load is not None}

    def meets_whole_load(self, candidate: Candidate) -> bool:
        """Return True if checkpoints of a candidate meet all parts of the load: it is constant, or followed for several intervals."""
        period_ns = self.period_ns(candidate)
        return all(load.is_whole and PERIODS * period_ns <= load.until_ns for load in self.varying.values())

    def settling_ns(self, candidate: Candidate) -> int:
        """Return the time from the start of a trial after which a candidate's checkpoints are regular [ns]."""
        return round(max(SETTLED_NS, self.settled_ns.get(candidate.name, 0.0)))

    def duration_ns(self, candidate: Candidate, kind: str) -> int:
        """Return the length of a trial without a failure [ns], UNDISTURBED or LONG."""
        observed_ns = self.observed_ns(candidate)
        if kind == LONG:
            period_ns = self.period_ns(candidate)
            sizes_ns = [vertex.window.size_ns for vertex in self.with_setting(candidate).job.vertices if vertex.window]
            long_ns = max(LONG_PERIODS * period_ns, *(size_ns + PERIODS * period_ns for size_ns in sizes_ns), 0)
            observed_ns = max(min(long_ns, LONGEST_NS), observed_ns)  # long enough for each window to fire
        return self.settling_ns(candidate) + observed_ns

    def trials(
        self,
        candidate: Candidate,
        kinds: Sequence[str] = (UNDISTURBED, FAILURE),
        *,
        extra: Point | None = None,
        ahead_s: float | None = None,
    ) -> Iterator[Trial]:
        """Yield the trials of these kinds in all worlds.

        `extra`: changes of the job, which override those of the world.  `ahead_s`: give growing state its size in this many
        seconds from now, instead of that at the horizon.
        """
        extra = extra or {}
        aged = self._state(extra, ahead_s)
        for name, changes in self.worlds.items():
            for kind in kinds:
                length = self._length(kind, candidate, name)
                point = {**self.common, **changes, **extra, **aged, **candidate.point, **length}
                yield Trial(name, candidate, kind, point)

    def _state(self, extra: Point, ahead_s: float | None) -> Point:
        """Return the change that fixes the size of growing state.

        If `extra` changes the job, growth is computed again, because it depends on how many records vertices serve.
        """
        if not self.horizon.states:
            return {}
        if not any(key.startswith("job.") for key in extra):
            return self.horizon.change(ahead_s)
        jobs = [self.load({**self.common, **changes, **extra}) for changes in self.worlds.values()]
        return horizon(jobs, self.backtest, self.horizon.ahead_ns).change(ahead_s)

    def scenario(self, trial: Trial, replications: int | None = None) -> Scenario:
        """Return the scenario of a trial.  Raises ScenarioError if the change makes the scenario invalid."""
        scenario = self.load(trial.point)
        run = scenario.run if replications is None else replace(scenario.run, replications=replications)
        return replace(scenario, axes=trial.axes, run=run)

    def load(self, point: Point) -> Scenario:
        """Return the scenario of the file with a change.  Raises ScenarioError if it is invalid."""
        from sim.model.schema.study import load

        key = _text(point)
        if key not in self._loaded:
            self._loaded[key] = load(self.file, key.split("\n") if key else []).scenarios[0]
        return self._loaded[key]

    def _length(self, kind: str, candidate: Candidate, world: str) -> Point:
        """Return the changes that set the duration and the failure of a trial.

        A failure is late in an interval.  The first interval starts after the min-pause.  If the load varies, it is where that is
        largest for all settings alike, unless no checkpoint has completed by then.
        """
        period_ns, settled_ns = self.period_ns(candidate), self.settling_ns(candidate)
        if kind in (UNDISTURBED, LONG):
            duration_ns = self.duration_ns(candidate, kind)
            return {
                **self._window_ends(candidate, kind),
                "run.duration": format_duration(duration_ns),
                "run.warmup": format_duration(settled_ns),
                "run.until": "duration",
                "faults": [],
            }
        scenario = self.with_setting(candidate)
        pause_ns, late_ns = scenario.checkpoint.min_pause_ns, period_ns * FAILURE_PHASE[0] // FAILURE_PHASE[1]
        periods = max(-(-settled_ns // period_ns), 1)  # at least one of them completes before the failure
        failure_ns = pause_ns % period_ns + periods * period_ns + late_ns
        first_trigger = {}
        if (load := self.varying.get(world)) is not None and load.busiest_ns >= PERIODS * period_ns:
            failure_ns = load.busiest_ns
            if scenario.cluster.profile == "2.x":  # so that it is late in an interval there, too
                first_ns = (failure_ns - late_ns - pause_ns) % period_ns
                first_trigger = {"overheads.first-trigger": format_duration(first_ns)}
        # with all of its slots again, the job waits for a checkpoint to be rescaled with
        rescaled_ns = period_ns if scenario.restart.scheduler == "adaptive" and self.slots_ns else 0
        return {
            **first_trigger,
            "run.duration": format_duration(failure_ns + self.slots_ns + rescaled_ns + self.patience_ns),
            "run.warmup": "0 s",
            "run.until": "caught-up",
            "faults": [{**self.failing(scenario), "at": format_duration(failure_ns)}],
        }

    def _window_ends(self, candidate: Candidate, kind: str) -> Point:
        """Return the changes that let windows end right before a checkpoint of a trial.

        Such a checkpoint waits longest for all that fires.  Otherwise windows and checkpoints may have any other phase during
        the whole trial, and in the job a restart shifts it.  A late checkpoint is chosen, because windows are full then.
        Windows of event time fire when a watermark has passed their end.

        Flink 1.x takes its first checkpoint at a random time.  There the windows of long runs are a bit longer, so that their ends
        move through all phases.
        """
        scenario, period_ns, duration_ns = (
            self.with_setting(candidate),
            self.period_ns(candidate),
            self.duration_ns(candidate, kind),
        )
        windows = {
            vertex.name: window
            for vertex in scenario.job.vertices
            if (window := vertex.window) is not None and not window.hold_ns and window.size_ns <= duration_ns
        }
        if scenario.cluster.profile != "2.x":
            return {
                key_of(("job", name, "window", "tumbling")): format_duration(
                    window.size_ns + period_ns // WINDOW_PHASES
                )
                for name, window in windows.items()
                if kind == LONG and not window.every_ns
            }
        first_ns = scenario.checkpoint.min_pause_ns + scenario.overheads.first_trigger_ns
        trigger_ns = first_ns + max((duration_ns - first_ns) // period_ns - 1, 0) * period_ns
        marks = [vertex.source.watermark for vertex in scenario.job.vertices if vertex.source is not None]
        late_ns = max((mark.lateness_ns + mark.interval_ns for mark in marks), default=0)
        return {
            key_of(("job", name, "window", "phase")): format_duration(
                (trigger_ns - WINDOW_LEAD_NS - (late_ns if window.time == "event" else 0)) % window.step_ns
            )
            for name, window in windows.items()
        }

    def failing(self, scenario: Scenario) -> Point:
        """Return the fault by which recovery is judged, without its time."""
        if self.failure == TASK:
            return {"kill": "random-task"}
        is_silent = is_lost_silently(scenario)
        return {"task-manager": "random", "silent": True} if is_silent else {"kill": "task-manager"}

    @cached_property
    def slots_ns(self) -> int:
        """Return the maximum time without slots after a lost TaskManager in the current job [ns], rounded up to seconds.

        It is twice as long if the job runs on fewer slots meanwhile, because it may catch up only afterwards.
        """
        scenario = self.load(self.common)
        slots = slots_ms(scenario) if self.failure == TASK_MANAGER else None
        times = 2 if scenario.restart.scheduler == "adaptive" else 1
        return 0 if slots is None else times * ceil(slots[1] / 1e3) * SECOND


def document_of(file: Path, overrides: Sequence[str]) -> Mapping[str, Any]:
    """Return the document of a scenario file with overrides applied."""
    reading = Reading(str(file))
    document: Mapping[str, Any] = apply(compose(read_text(file), reading), overrides, reading)
    return document


def _text(point: Point) -> str:
    """Return the changes as overrides, ``key=value``, one a line."""
    return "\n".join(override(key, value) for key, value in point.items())
