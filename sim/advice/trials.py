"""Trials: settings simulated, with bounds, failures and work done."""

# One setting, its trials, and the rows they become:
#
#   candidate                 Bench                                          TrialRunner
#   ---------                 -----                                          -----------
#   (30 s, unaligned)  -->    for each world:
#                               undisturbed   60 s to settle, then at   -->  a cell and its baseline without
#                                             least 2 intervals and 60 s     checkpoints, per replication
#                               failure       task manager lost (or a   -->  a cell per replication
#                                             task), 9/10 into interval
#                             if asked for:
#                               long          up to 100 intervals       -->  limit on the tail of checkpoints
#                               failing-task  a task fails, keeps slot  -->  shown next to the main failure
#
#   point = common | world | extra | grown state | candidate | length        later entries win
#
# A trial with a failure ends when the job has caught up.  Before that change such trials were half of the CPU
# time of an advice (docs/performance.md).

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from math import ceil, inf
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

from sim.advice.horizon import Horizon, horizon
from sim.advice.settings import checkpoint_period_ns
from sim.model.quantities import S3_STANDARD
from sim.model.text import PrintableError
from sim.model.units import SECOND, format_duration, parse_duration
from sim.protocol.recovery import outages
from sim.studies.plan import Cell, cells, with_baselines
from sim.studies.progress import Clock, TimeLeft, Watch, no_watch
from sim.studies.sweeps.design import Point, override
from sim.studies.sweeps.results import collect
from sim.studies.sweeps.run import Workers, sweep
from sim.studies.sweeps.store import Store

if TYPE_CHECKING:
    import pandas as pd

    from sim.advice.settings import Candidate
    from sim.model.backtest import Backtest
    from sim.model.faults import Restart
    from sim.model.scenario import Scenario
    from sim.model.schema.flink_file import FlinkFile
    from sim.model.schema.text import Problem
    from sim.plane import Engine
    from sim.studies.cells import Row


# ---- The bounds of an advice: work of all runs, and time on the clock.  At a bound the answer is given from what has run.

GRID, LEVERS, CERTAINTY, RACE, ALL = 0.5, 0.6, 0.65, 0.85, 1.0
"""Shares of the budget.  The grid of intervals leaves room for levers, both for more runs of the best settings, and these for long runs.

The race leaves the rest: for the smallest change that would fit where nothing does, and for what is not known.
"""
OVER_BUDGET = "more work than the budget leaves (--budget)"
OUT_OF_TIME = "time was up"

Affords = Callable[["Sequence[Scenario]", "Sequence[Scenario]", float], bool]
"""(undisturbed runs, runs with a failure, share) -> whether that share of the budget covers these and all earlier runs."""
Lack = Callable[[], str]
"""Why the last runs were not covered."""


class BudgetUsedError(Exception):
    """The bounds do not cover these runs."""


class TimeUpError(BudgetUsedError):
    """Time was up while runs went on.  `rows`: of those that had ended."""

    def __init__(self, rows: pd.DataFrame) -> None:
        super().__init__(OUT_OF_TIME)
        self.rows = rows


class NothingRanError(PrintableError, RuntimeError):
    """Time was up before a single setting had run; says what to do."""


def any_amount(steady: Sequence[Scenario], failing: Sequence[Scenario], share: float) -> bool:
    """Unlimited bounds: they cover all runs."""
    del steady, failing, share
    return True


def over_budget() -> str:
    """The reason of a budget alone."""
    return OVER_BUDGET


# ---- How much work a run was, by what it simulated: the same number on a quiet machine, on a busy one and on another one.
#
# A budget that counted processor time would buy fewer runs on a busy machine, and the answer would be another one.

CELL_S = 0.06
PER_TASK_AND_SECOND_S = 4e-5
PER_TASK_AND_CHECKPOINT_S = 7e-4
PER_RECORD_AND_VERTEX_S = 1e-8
"""Processor time on a quiet machine, fitted to 649 runs of three jobs with six tasks each: sums of a job's runs are right within 12 %."""


def work_s(row: Row, scenario: Scenario) -> float:
    """Seconds of processor time that such a run takes on a machine that does nothing else."""
    vertices = scenario.job.vertices
    tasks, seconds = (
        sum(vertex.parallelism for vertex in vertices),
        _number(row.get("ended_s")) or scenario.run.duration_ns / 1e9,
    )
    checkpoints, rate = (_number(row.get(name)) for name in ("completed", "emitted_per_second"))
    per_task_s = PER_TASK_AND_SECOND_S * seconds + PER_TASK_AND_CHECKPOINT_S * checkpoints
    return CELL_S + tasks * per_task_s + PER_RECORD_AND_VERTEX_S * rate * seconds * len(vertices)


def _number(value: object) -> float:
    """0: the run has no such value."""
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else 0.0


# ---- Runs the trials of an advice, stores every row in a folder, adds up what they take, and says what more the bounds allow.
#
# Two bounds.  The budget counts work, in seconds that depend on what is simulated and not on the machine: it decides
# what runs.  Time on the clock only cuts: when it is up the runs that go on are given up, and those that have ended are
# handed over.  So an answer that no clock has cut is the same on a quiet machine and on a busy one.

SPARE = 1.25
"""The time that is advised to an answer that the clock has cut is longer than it seems to take, by this factor."""


class _TimeUp(BaseException):
    """The end of the time on the clock, raised in runs like Ctrl-C: a cell takes any other exception for its own error."""


class TrialRunner:
    """The runner of an advice's trials.  `watch` is called with (finished runs, work spent [ns], estimated for those that go on).

    `budget_s`: work of all stored rows.  `within_s`: time on the `clock` since the runner was made.
    On Spark `run` is called inside of a block of `workers`.
    """

    def __init__(
        self,
        folder: Path,
        *,
        engine: Engine = "compiled",
        jobs: int | None = None,
        master: str | None = None,
        conf: Mapping[str, str] | None = None,
        budget_s: float = inf,
        within_s: float = inf,
        clock: Clock = time.monotonic,
    ) -> None:
        self.store = Store(folder)
        self.watch: Watch = no_watch
        self.workers = Workers(jobs, master, conf)
        self._engine: Engine = engine
        self._budget_s, self._within_s = budget_s, within_s
        self._planned: dict[str, Cell] = {}
        self._clock, self._left = clock, TimeLeft(clock)
        self._begun_s = clock()
        self._kept_s = self._spent_now_s = 0.0  # by earlier calls of the command, and by this one
        self._lack = OVER_BUDGET
        self._cut = ""

    def run(self, steady: Sequence[Scenario], failing: Sequence[Scenario]) -> pd.DataFrame:
        """The rows of undisturbed runs, of their baselines, and of those with a failure.

        TimeUpError: time was up before all had ended.
        """
        planned = _cells(steady, failing)
        self._planned |= {f"{cell.id} {cell.scenario.axes}": cell for cell in planned}
        before, spent_s, rate = len(self._own_rows()), self.spent_s(), self._rate()
        self._kept_s = spent_s - self._spent_now_s

        def watch(finished: int, simulated_ns: int) -> None:
            self.watch(before + finished, round(spent_s * 1e9 + rate * simulated_ns))
            if self._passed_s() >= self._within_s:
                raise _TimeUp

        if self._passed_s() >= self._within_s and self.store.missing(planned):
            raise self._time_up(planned)
        try:
            return sweep(planned, self.store, self.workers, engine=self._engine, watch=watch, on_row=self._count)
        except _TimeUp:
            raise self._time_up(planned) from None

    def spent_s(self) -> float:
        """Work of all stored rows of these trials."""
        scenarios = self._scenarios()
        return sum(work_s(row, scenarios[name]) for name, row in self._own_rows().items())

    def cpu_s(self) -> float:
        """Processor time that these rows took."""
        return sum(row["cpu_s"] or 0.0 for row in self._own_rows().values())

    def affords(self, steady: Sequence[Scenario], failing: Sequence[Scenario], share: float) -> bool:
        """Whether these runs fit into a share of the budget, and there is time: they take what runs took so far, per simulated second."""
        missing = self.store.missing(_cells(steady, failing))
        if not missing:
            return True
        if self._passed_s() >= self._within_s:
            self._lack = self._out_of_time()
            return False
        simulated_ns = sum(cell.scenario.run.duration_ns for cell in missing)
        self._lack = OVER_BUDGET
        return self.spent_s() + self._rate() * simulated_ns / 1e9 <= share * self._budget_s

    def lack(self) -> str:
        """Why the last runs were not covered."""
        return self._lack

    def progress(self) -> str:
        """``34 of 90 s of work, at most 56 s left``; what is left is known once a run has ended."""
        spent_s, passed_s = self._kept_s + self._spent_now_s, self._passed_s()
        spent = f"{spent_s:.0f} of {self._budget_s:.0f} s of work"
        if not self._spent_now_s:
            return spent
        takes_s = passed_s / self._spent_now_s  # on the clock, for a second of work
        left_s = min(max(self._budget_s - spent_s, 0.0) * takes_s, max(self._within_s - passed_s, 0.0))
        return f"{spent}, {self._left.text(left_s, lambda: f'a second of work takes {takes_s:.1f} s now')}"

    def collected(self) -> pd.DataFrame:
        """All rows, and the files that hold them."""
        return collect(self.store, list(self._planned.values()))

    def _time_up(self, planned: Sequence[Cell]) -> TimeUpError:
        self._lack = self._out_of_time()
        return TimeUpError(collect(self.store, planned))

    def _out_of_time(self) -> str:
        """The reason, and the time that would have sufficed at this pace for all of the budget."""
        if self._cut:
            return self._cut
        done = min(max((self._kept_s + self._spent_now_s) / self._budget_s, 0.01), 1.0) if self._budget_s < inf else 1.0
        minutes = max(ceil(SPARE * self._passed_s() / done / 60), ceil((self._within_s + 1) / 60))
        self._cut = f"{OUT_OF_TIME} (--within '{minutes} min')"
        return self._cut

    def _passed_s(self) -> float:
        return self._clock() - self._begun_s

    def _own_rows(self) -> dict[str, Row]:
        own = {cell.id for cell in self._planned.values()}
        return {name: row for name, row in self.store.rows().items() if name in own}

    def _rate(self) -> float:
        """Work per simulated time, of all rows so far; 0: there are none."""
        scenarios = self._scenarios()
        simulated_ns = sum(scenarios[name].run.duration_ns for name in self._own_rows())
        return 1e9 * self.spent_s() / simulated_ns if simulated_ns else 0.0

    def _scenarios(self) -> dict[str, Scenario]:
        return {cell.id: cell.scenario for cell in self._planned.values()}

    def _count(self, row: Row) -> None:
        self._spent_now_s += work_s(row, self._scenarios()[row["cell"]])


def _cells(steady: Sequence[Scenario], failing: Sequence[Scenario]) -> list[Cell]:
    """The cells of undisturbed runs, of their baselines, and of runs with a failure."""
    return [*with_baselines(cells(steady)), *cells(failing)]


# ---- What a failure costs before any state is read: of a lost task manager a range, for heartbeats fall by chance.
#
# Trials lose a task manager once per run.  A few runs do not show the whole range, so the law of the outage says how
# wide it is.


def slots_ms(scenario: Scenario) -> tuple[float, float] | None:
    """A task manager is lost -> its tasks have slots again: the least and the most; None: the job may fail for good before."""
    return _slots_ms(scenario.restart, scenario.overheads.fail_ns, scenario.overheads.restart_ns)


@lru_cache(maxsize=256)
def _slots_ms(restart: Restart, fail_ns: int, restart_ns: int) -> tuple[float, float] | None:
    ready = [outage.ready_ns for outage in outages(restart, fail_ns=fail_ns, restart_ns=restart_ns)]
    known = [ready_ns for ready_ns in ready if ready_ns is not None]
    return (min(known) / 1e6, max(known) / 1e6) if len(known) == len(ready) else None


# ---- How a setting is tried: one undisturbed run, for its cost, and one run with a failure.
#
# The failure comes late in an interval, when the most work is lost, and after the job has settled.  A task manager is
# lost, unless trials are told to fail a task.  The run then lasts until the job has caught up, or long enough to show
# that it does not recover within the limit.  Both runs are plain changes of the scenario, so a sweep file can describe
# them.  Every trial, however long, has the state of the horizon: rows of a comparison are about one job.

SETTLED_NS = 60 * SECOND
"""Until then queues have filled and checkpoints have become regular."""
PERIODS, OBSERVED_NS = 2, 60 * SECOND
"""The least an undisturbed run observes: so many intervals, and so much time."""
FAILURE_PHASE = (9, 10)
"""The part of an interval before the failure, as a ratio: nearly all of its work is lost."""
PATIENCE_NS = 180 * SECOND

LONG_PERIODS, LONGEST_NS = 100, 7200 * SECOND
"""A long run sees enough checkpoints for a 99 % quantile, unless it would take longer than this."""

WORLD, INTERVAL, PROTOCOL, TRIAL = ("world", "interval", "protocol", "trial")
UNDISTURBED, FAILURE, LONG, FAILING_TASK = "undisturbed", "failure", "long", "failing-task"

Failure = Literal["task-manager", "task"]
TASK_MANAGER, TASK = FAILURES = get_args(Failure)
_KILLED = {TASK_MANAGER: "task-manager", TASK: "random-task"}


@dataclass(frozen=True, slots=True)
class Trial:
    """A run of a setting in one world, undisturbed or with a failure.  `point` is the complete change of the scenario."""

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


def observed_s(interval: str) -> float:
    """How long an undisturbed run is observed after it has settled, if checkpoints begin at this interval."""
    return _observed_ns(parse_duration(interval)) / 1e9


class Bench:
    """The job under trial: a scenario file, and the changes common to all trials.

    `worlds`: name -> further changes, e.g. a piece of the load's trace.  The unnamed world without changes is the job as it is.
    `backtest`: what the history of the job says of its simulation.  `horizon`: how large growing state is in trials.
    `failure`: what recovery is judged by.
    """

    def __init__(
        self,
        file: Path,
        common: Point,
        *,
        patience_ns: int,
        worlds: dict[str, Point] | None = None,
        backtest: Backtest | None = None,
        failure: Failure = TASK_MANAGER,
    ) -> None:
        self.backtest = backtest
        self.horizon = Horizon()  # the job of an advice sets it: it needs scenarios of this bench
        self.file = file
        self.common = common
        self.failure = failure
        self.warnings: Sequence[Problem] = ()  # of the reader of the file
        self.conf: FlinkFile | None = None  # the user's file of Flink's configuration, to be patched
        self.prices = S3_STANDARD  # of an object store; the command sets others
        self.patience_ns = max(patience_ns, PATIENCE_NS)
        self.worlds = worlds or {"": {}}
        self._loaded: dict[str, Scenario] = {}
        self._states: dict[str, Point] = {}
        # keys of states of which the file does not say how often records rewrite them
        self.unasked_updates: tuple[str, ...] = ()
        self.durations_ns: dict[tuple[str, str], float] = {}
        """Setting -> how long its checkpoints take, where that makes them begin later than its interval says."""

    def period_ns(self, candidate: Candidate) -> int:
        """The effective interval of a candidate: pause, and checkpoints that are longer than the interval, put off the next one."""
        options = self.load({**self.common, **candidate.point}).checkpoint
        return round(checkpoint_period_ns(options, self.durations_ns.get(candidate.name, 0.0)))

    def observed_s(self, candidate: Candidate) -> float:
        """How long an undisturbed run of a candidate is observed after it has settled."""
        return _observed_ns(self.period_ns(candidate)) / 1e9

    def trials(self, candidate: Candidate, extra: Point | None = None, ahead_s: float | None = None) -> Iterator[Trial]:
        """Both kinds of trial, in all worlds; `extra` overrides the changes of the world.

        State is that of the horizon, or of `ahead_s` from now.  ScenarioError: `extra` makes no scenario.
        """
        lengths = {UNDISTURBED: self._undisturbed(self.period_ns(candidate)), FAILURE: self._failure(candidate)}
        return self._in_all_worlds(candidate, lengths, extra or {}, ahead_s)

    def long_trials(self, candidate: Candidate, extra: Point | None = None) -> Iterator[Trial]:
        """An undisturbed run of many checkpoints in each world: what a limit on their tail is judged by.

        `extra` overrides the changes of the world.
        """
        period_ns = self.period_ns(candidate)
        length_ns = SETTLED_NS + max(min(LONG_PERIODS * period_ns, LONGEST_NS), _observed_ns(period_ns))
        length = self._undisturbed(period_ns) | {"run.duration": format_duration(length_ns)}
        return self._in_all_worlds(candidate, {LONG: length}, extra or {})

    def failing_task(self, candidate: Candidate) -> Iterator[Trial]:
        """The run in which a task fails, and keeps its slot, in each world."""
        return self._in_all_worlds(candidate, {FAILING_TASK: self._failure(candidate, TASK)}, {})

    def _in_all_worlds(
        self, candidate: Candidate, lengths: Mapping[str, Point], extra: Point, ahead_s: float | None = None
    ) -> Iterator[Trial]:
        """`lengths`: kind of trial -> how long it is, and what fails."""
        aged = self._state(extra, ahead_s)
        for name, changes in self.worlds.items():
            for kind, length in lengths.items():
                point = {**self.common, **changes, **extra, **aged, **candidate.point, **length}
                yield Trial(name, candidate, kind, point)

    def _state(self, extra: Point, ahead_s: float | None = None) -> Point:
        """The change that keeps state at its size in trials.  A job with other keys or another rate has another state by then."""
        if not self.horizon.states:
            return {}
        if not any(key.startswith("job.") for key in extra):
            return self.horizon.change(ahead_s)
        key = _text({**extra, "ahead": ahead_s})
        if key not in self._states:
            jobs = [self.load({**self.common, **changes, **extra}) for changes in self.worlds.values()]
            self._states[key] = horizon(jobs, self.backtest, self.horizon.ahead_ns).change(ahead_s)
        return self._states[key]

    def scenario(self, trial: Trial) -> Scenario:
        """ScenarioError: the change makes no scenario."""
        return replace(self.load(trial.point), axes=trial.axes)

    def load(self, point: Point) -> Scenario:
        from sim.model.schema.study import load

        key = _text(point)
        if key not in self._loaded:
            self._loaded[key] = load(self.file, key.split("\n") if key else []).scenarios[0]
        return self._loaded[key]

    def _undisturbed(self, period_ns: int) -> Point:
        return {
            "run.duration": format_duration(SETTLED_NS + _observed_ns(period_ns)),
            "run.warmup": format_duration(SETTLED_NS),
            "run.until": "duration",
            "faults": [],
        }

    def _failure(self, candidate: Candidate, failure: Failure | None = None) -> Point:
        """The failure comes late in an interval; the first of these begins when the first min-pause is over."""
        period_ns = self.period_ns(candidate)
        pause_ns = self.load({**self.common, **candidate.point}).checkpoint.min_pause_ns
        periods = max(-(-SETTLED_NS // period_ns), 1)  # at least one of them completes before the failure
        failure_ns = pause_ns % period_ns + periods * period_ns + period_ns * FAILURE_PHASE[0] // FAILURE_PHASE[1]
        fault = {"kill": _KILLED[failure or self.failure], "at": format_duration(failure_ns)}
        return {
            "run.duration": format_duration(failure_ns + self._slots_ns + self.patience_ns),
            "run.warmup": "0 s",
            "run.until": "caught-up",
            "faults": [fault],
        }

    @cached_property
    def _slots_ns(self) -> int:
        """How long a lost task manager leaves tasks without slots at the most, as the job is today; to a whole second."""
        slots = slots_ms(self.load(self.common)) if self.failure == TASK_MANAGER else None
        return 0 if slots is None else ceil(slots[1] / 1e3) * SECOND


def _text(point: Point) -> str:
    """An override per line."""
    return "\n".join(override(key, value) for key, value in point.items())


def _observed_ns(period_ns: int) -> int:
    return max(PERIODS * period_ns, OBSERVED_NS)
