"""Runs the trials of an advice, stores every row in a folder, adds up what they take, and says what more the bounds allow.

Two bounds: processor time, which a busy machine does not change, and time on the clock, which it does.  When time is up the runs that go
on are given up, and those that have ended are handed over.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING

from sim.advice.running.bounds import OUT_OF_TIME, OVER_BUDGET, TimeUpError
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


class _TimeUp(BaseException):
    """The end of the time on the clock, raised in runs like Ctrl-C: a cell takes any other exception for its own error."""


class TrialRunner:
    """The runner of an advice's trials.  `watch` is called with (finished runs, processor time spent [ns], estimated for those that go on).

    `budget_s`: processor time of all stored rows.  `within_s`: time on the `clock` since the runner was made.
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
        self._ran_s, self._simulated_ns = 0.0, 0  # on the clock, for so much simulated time: by this call
        self._lack = OVER_BUDGET

    def run(self, steady: Sequence[Scenario], failing: Sequence[Scenario]) -> pd.DataFrame:
        """The rows of undisturbed runs, of their baselines, and of those with a failure.

        TimeUpError: time was up before all had ended.
        """
        planned = _cells(steady, failing)
        self._planned |= {f"{cell.id} {cell.scenario.axes}": cell for cell in planned}
        before, spent_s, rate = len(self._own_rows()), self.spent_s(), self._rate()
        self._kept_s = spent_s - self._spent_now_s
        begun_s = self._clock()

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
        finally:
            self._ran_s += self._clock() - begun_s

    def spent_s(self) -> float:
        """Processor time of all stored rows of these trials."""
        return sum(row["cpu_s"] or 0.0 for row in self._own_rows().values())

    def affords(self, steady: Sequence[Scenario], failing: Sequence[Scenario], share: float) -> bool:
        """Whether these runs fit into a share of both bounds: they take what runs took so far, per simulated second."""
        missing = self.store.missing(_cells(steady, failing))
        if not missing:
            return True
        simulated_ns = sum(cell.scenario.run.duration_ns for cell in missing)
        takes_s = self._ran_s / self._simulated_ns * simulated_ns if self._simulated_ns else 0.0
        if self._passed_s() + takes_s > share * self._within_s:
            self._lack = OUT_OF_TIME
            return False
        self._lack = OVER_BUDGET
        return self.spent_s() + self._rate() * simulated_ns / 1e9 <= share * self._budget_s

    def lack(self) -> str:
        """Why the last runs were not covered."""
        return self._lack

    def progress(self) -> str:
        """``34 of 90 s of processor time, at most 56 s left``; what is left is known once a run has ended."""
        spent_s, passed_s = self._kept_s + self._spent_now_s, self._passed_s()
        spent = f"{spent_s:.0f} of {self._budget_s:.0f} s of processor time"
        if not self._spent_now_s:
            return spent
        takes_s = passed_s / self._spent_now_s  # on the clock, for a second of processor time
        left_s = min(max(self._budget_s - spent_s, 0.0) * takes_s, max(self._within_s - passed_s, 0.0))
        return f"{spent}, {self._left.text(left_s, lambda: f'a second of processor time takes {takes_s:.1f} s now')}"

    def collected(self) -> pd.DataFrame:
        """All rows, and the files that hold them."""
        return collect(self.store, list(self._planned.values()))

    def _time_up(self, planned: Sequence[Cell]) -> TimeUpError:
        self._lack = OUT_OF_TIME
        return TimeUpError(collect(self.store, planned))

    def _passed_s(self) -> float:
        return self._clock() - self._begun_s

    def _own_rows(self) -> dict[str, Row]:
        own = {cell.id for cell in self._planned.values()}
        return {name: row for name, row in self.store.rows().items() if name in own}

    def _rate(self) -> float:
        """Processor time per simulated time, of all rows so far; 0: there are none."""
        rows, lengths = self._own_rows(), self._lengths_ns()
        simulated_ns = sum(lengths[name] for name in rows)
        return 1e9 * self.spent_s() / simulated_ns if simulated_ns else 0.0

    def _lengths_ns(self) -> dict[str, int]:
        return {cell.id: cell.scenario.run.duration_ns for cell in self._planned.values()}

    def _count(self, row: Row) -> None:
        self._spent_now_s += row["cpu_s"] or 0.0
        self._simulated_ns += self._lengths_ns().get(row["cell"], 0)


def _cells(steady: Sequence[Scenario], failing: Sequence[Scenario]) -> list[Cell]:
    """The cells of undisturbed runs, of their baselines, and of runs with a failure."""
    return [*with_baselines(cells(steady)), *cells(failing)]
