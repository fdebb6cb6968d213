"""Runs the trials of an advice, stores every row in a folder, adds up what they take, and says what more the bounds allow.

Two bounds.  The budget counts work, in seconds that depend on what is simulated and not on the machine: it decides what runs.  Time on the
clock only cuts: when it is up the runs that go on are given up, and those that have ended are handed over.  So an answer that no clock has
cut is the same on a quiet machine and on a busy one.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from math import ceil, inf
from pathlib import Path
from typing import TYPE_CHECKING

from sim.advice.running.bounds import OUT_OF_TIME, OVER_BUDGET, TimeUpError
from sim.advice.running.work import work_s
from sim.cells.local import Watch, no_watch
from sim.cells.plan import Cell, cells, with_baselines
from sim.cells.time_left import Clock, TimeLeft
from sim.sweeps.results import collect
from sim.sweeps.runners import sweep
from sim.sweeps.store import Store
from sim.sweeps.workers import Workers

if TYPE_CHECKING:
    import pandas as pd

    from sim.cells.cell import Row
    from sim.model.scenario import Scenario
    from sim.plane import Engine


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
        self, folder: Path, *, engine: Engine = "compiled", jobs: int | None = None, master: str | None = None,
        conf: Mapping[str, str] | None = None, budget_s: float = inf, within_s: float = inf, clock: Clock = time.monotonic,
    ) -> None:  # fmt: skip
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
