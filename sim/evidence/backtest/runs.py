"""Runs of the job as it is, as long and as many as a budget of processor time allows."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING

from sim.runtime.run.simulate import simulate

if TYPE_CHECKING:
    from sim.model.scenario import Scenario
    from sim.plane import Engine
    from sim.recordings import RecordedJob
    from sim.runtime.run.result import Result

BUDGET_S = 6.0
"""Processor time of all runs."""
RUNS = 3
PROBE_PERIODS = 4
"""Checkpoints of the first run of a job that may be slow to simulate: the queues are full from the second on."""
SPARE_PERIODS = 3
"""A run may show so many checkpoints beyond those of the history."""
CHANNELS = 200_000
"""A job of more channels takes longer to build than an import may last."""

Watch = Callable[[float], None]
"""Gets the share of the work that is done."""


class TooLargeError(Exception):
    """The job is too large for the budget."""


@dataclass
class _Clock:
    """A limit of processor time: it ends a run that takes longer."""

    budget_s: float
    watch: Watch
    total_ns: int = 1
    before_ns: int = 0
    share: float = 0.0
    begun_s: float = 0.0

    def __post_init__(self) -> None:
        self.begun_s = time.process_time()

    @property
    def spent_s(self) -> float:
        return time.process_time() - self.begun_s

    def __call__(self, simulated_ns: int) -> None:
        self.share = max(self.share, min((self.before_ns + simulated_ns) / self.total_ns, 1.0))
        self.watch(self.share)
        if self.spent_s > self.budget_s:
            raise TooLargeError(f"{simulated_ns / 1e9:.0f} s of the job take more than {self.budget_s:g} s of processor time")


def length_ns(scenario: Scenario, job: RecordedJob) -> int:
    """How long a run has to last to show as many checkpoints as the history has, at most as long as the history."""
    triggers = sorted(point.trigger_timestamp for point in job.checkpoints.list if not point.is_savepoint)
    enough = (len(triggers) + SPARE_PERIODS) * _period_ns(scenario, triggers)
    return min(scenario.run.duration_ns, enough) or scenario.run.duration_ns


def runs_within(
    scenario: Scenario, job: RecordedJob, *, budget_s: float = BUDGET_S, engine: Engine = "compiled", watch: Watch = lambda _: None
) -> list[Result]:
    """At least one run, `RUNS` at most.  TooLargeError: not even a short one fits into the budget."""
    _refuse_huge(scenario)
    full_ns = length_ns(scenario, job)
    triggers = sorted(point.trigger_timestamp for point in job.checkpoints.list if not point.is_savepoint)
    probe_ns = min(full_ns, PROBE_PERIODS * _period_ns(scenario, triggers) or full_ns)
    clock = _Clock(budget_s, watch, total_ns=RUNS * full_ns)
    probe = simulate(_of_length(scenario, probe_ns, 1), engine=engine, check=False, progress=clock)
    found = [probe] if probe_ns == full_ns else []
    left_s = (budget_s - clock.spent_s) / (RUNS - len(found))
    affordable_s = probe_ns / 1e9 * left_s / max(clock.spent_s, 1e-3)
    run_ns = min(full_ns, int(affordable_s) * 10**9)
    if run_ns < probe_ns:
        return [probe]
    try:
        while len(found) < RUNS:
            clock.before_ns = len(found) * run_ns
            run = simulate(_of_length(scenario, run_ns, len(found) + 1), engine=engine, check=False, progress=clock)
            found.append(run)
    except TooLargeError:
        return found or [probe]
    return found


def _of_length(scenario: Scenario, run_ns: int, seed: int) -> Scenario:
    return replace(scenario, run=replace(scenario.run, duration_ns=run_ns, seed=seed, warmup_ns=0))


def _period_ns(scenario: Scenario, triggers: list[int]) -> int:
    """From trigger to trigger; 0: the job has no periodic checkpoints."""
    gaps = [after - before for before, after in pairwise(triggers)]
    return max(scenario.checkpoint.interval_ns or 0, round(median(gaps)) * 10**6 if gaps else 0)


def _refuse_huge(scenario: Scenario) -> None:
    width = {vertex.name: vertex.parallelism for vertex in scenario.job.vertices}
    channels = sum(width[inlet.upstream] * vertex.parallelism for vertex in scenario.job.vertices for inlet in vertex.inputs)
    if channels > CHANNELS:
        raise TooLargeError(f"the job has {channels:,} channels")
