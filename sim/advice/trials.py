"""How a setting is tried: one undisturbed run, for its cost, and one run with a failure.

The failure comes late in an interval, when the most work is lost, and after the job has settled.  A task manager is lost, unless trials
are told to fail a task.  The run then lasts until the job has caught up, or long enough to show that it does not recover within the limit.
Both runs are plain changes of the scenario, so a sweep file can describe them.
Every trial, however long, has the state of the horizon: rows of a comparison are about one job.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

from sim.advice.failures import slots_ms
from sim.advice.future.horizon import Horizon, horizon
from sim.advice.settings import checkpoint_period_ns
from sim.quantities.prices import S3_STANDARD
from sim.sweeps.file.design import Point, override
from sim.units import SECOND, format_duration, parse_duration

if TYPE_CHECKING:
    from sim.advice.settings import Candidate
    from sim.model.backtest import Backtest
    from sim.model.scenario import Scenario
    from sim.scenario.flink.file import FlinkFile
    from sim.scenario.text.problems import Problem

SETTLED_NS = 60 * SECOND
"""Until then queues have filled and checkpoints have become regular."""
PERIODS, OBSERVED_NS = 2, 60 * SECOND
"""The least an undisturbed run observes: so many intervals, and so much time."""
LATE = (9, 10)
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
        return (WORLD, self.world), (INTERVAL, self.candidate.interval), (PROTOCOL, self.candidate.protocol), (TRIAL, self.kind)


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
        self, file: Path, common: Point, *, patience_ns: int, worlds: dict[str, Point] | None = None, backtest: Backtest | None = None,
        failure: Failure = TASK_MANAGER,
    ) -> None:  # fmt: skip
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
        self.unasked_updates: tuple[str, ...] = ()  # keys of states of which the file does not say how often records rewrite them
        self.durations_ns: dict[tuple[str, str], float] = {}
        """Setting -> how long its checkpoints take, where that makes them begin later than its interval says."""

    def period_ns(self, candidate: Candidate) -> int:
        """The effective interval of a candidate: pause, and checkpoints that are longer than the interval, put off the next one."""
        options = self.load({**self.common, **candidate.point}).checkpoint
        return round(checkpoint_period_ns(options, self.durations_ns.get(candidate.name, 0.0)))

    def observed_s(self, candidate: Candidate) -> float:
        """How long an undisturbed run of a candidate is observed after it has settled."""
        return _observed_ns(self.period_ns(candidate)) / 1e9

    def trials(
        self, candidate: Candidate, extra: Point | None = None, world: str | None = None, ahead_s: float | None = None
    ) -> Iterator[Trial]:
        """Both kinds of trial, in all worlds or in one; `extra` overrides the changes of the world.

        State is that of the horizon, or of `ahead_s` from now.  ScenarioError: `extra` makes no scenario.
        """
        extra = extra or {}
        aged = self._state(extra, ahead_s)
        lengths = {UNDISTURBED: self._undisturbed(self.period_ns(candidate)), FAILURE: self._failure(candidate)}
        for name in self.worlds if world is None else [world]:
            for kind, length in lengths.items():
                point = {**self.common, **self.worlds.get(name, {}), **extra, **aged, **candidate.point}
                yield Trial(name, candidate, kind, point | length)

    def long_trials(self, candidate: Candidate, extra: Point | None = None) -> Iterator[Trial]:
        """An undisturbed run of many checkpoints in each world: what a limit on their tail is judged by.

        `extra` overrides the changes of the world.
        """
        extra = extra or {}
        for name, changes in self.worlds.items():
            period_ns = self.period_ns(candidate)
            observed_ns = max(min(LONG_PERIODS * period_ns, LONGEST_NS), _observed_ns(period_ns))
            length_ns = SETTLED_NS + observed_ns
            length = self._undisturbed(period_ns) | {"run.duration": format_duration(length_ns)}
            point = {**self.common, **changes, **extra, **self._state(extra), **candidate.point}
            yield Trial(name, candidate, LONG, point | length)

    def failing_task(self, candidate: Candidate) -> Iterator[Trial]:
        """The run in which a task fails, and keeps its slot, in each world."""
        for name, changes in self.worlds.items():
            length = self._failure(candidate, TASK)
            yield Trial(name, candidate, FAILING_TASK, {**self.common, **changes, **self._state({}), **candidate.point, **length})

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

    def scenarios(self, trials: Sequence[Trial], replications: int) -> list[Scenario]:
        return [replace(scenario, run=replace(scenario.run, replications=replications)) for scenario in map(self.scenario, trials)]

    def scenario(self, trial: Trial) -> Scenario:
        """ScenarioError: the change makes no scenario."""
        return replace(self.load(trial.point), axes=trial.axes)

    def load(self, point: Point) -> Scenario:
        from sim.scenario import load

        key = _text(point)
        if key not in self._loaded:
            self._loaded[key] = load(self.file, key.split("\n") if key else []).scenarios[0]
        return self._loaded[key]

    def _undisturbed(self, period_ns: int) -> Point:
        return {
            "run.duration": format_duration(SETTLED_NS + _observed_ns(period_ns)), "run.warmup": format_duration(SETTLED_NS),
            "run.until": "duration", "faults": [],
        }  # fmt: skip

    def _failure(self, candidate: Candidate, failure: Failure | None = None) -> Point:
        """The failure comes late in an interval; the first of these begins when the first min-pause is over."""
        period_ns = self.period_ns(candidate)
        pause_ns = self.load({**self.common, **candidate.point}).checkpoint.min_pause_ns
        periods = max(-(-SETTLED_NS // period_ns), 1)  # at least one of them completes before the failure
        failure_ns = pause_ns % period_ns + periods * period_ns + period_ns * LATE[0] // LATE[1]
        fault = {"kill": _KILLED[failure or self.failure], "at": format_duration(failure_ns)}
        return {
            "run.duration": format_duration(failure_ns + self._slots_ns + self.patience_ns), "run.warmup": "0 s", "run.until": "caught-up",
            "faults": [fault],
        }  # fmt: skip

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
