"""Runs the trials of an advice, stores every row in a folder, adds up the processor time, and says what more the budget allows."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sim.cells.local import Watch, no_watch
from sim.cells.plan import Cell, cells, with_baselines
from sim.sweeps.results import collect
from sim.sweeps.runners import sweep
from sim.sweeps.store import Store
from sim.sweeps.workers import Workers

if TYPE_CHECKING:
    import pandas as pd

    from sim.cells.cell import Row
    from sim.model.scenario import Scenario
    from sim.plane import Engine

__all__ = ["TrialRunner"]


class TrialRunner:
    """`watch` is called with (finished runs, processor time spent [ns]); of runs that go on, the time is an estimate.

    On Spark `run` is called inside of a block of `workers`.
    """

    def __init__(
        self, folder: Path, *, engine: Engine = "compiled", jobs: int | None = None, master: str | None = None,
        conf: Mapping[str, str] | None = None, budget_s: float = float("inf"),
    ) -> None:  # fmt: skip
        self.store = Store(folder)
        self.watch: Watch = no_watch
        self.workers = Workers(jobs, master, conf)
        self._engine: Engine = engine
        self._budget_s = budget_s
        self._planned: dict[str, Cell] = {}
        self._begun = time.monotonic()
        self._kept_s = self._spent_now_s = 0.0  # by earlier calls of the command, and by this one

    def run(self, steady: Sequence[Scenario], failing: Sequence[Scenario]) -> pd.DataFrame:
        """The rows of undisturbed runs, of their baselines, and of those with a failure."""
        planned = _cells(steady, failing)
        self._planned |= {f"{cell.id} {cell.scenario.axes}": cell for cell in planned}
        before, spent_s, rate = len(self._own_rows()), self.spent_s(), self._rate()
        self._kept_s = spent_s - self._spent_now_s

        def watch(finished: int, simulated_ns: int) -> None:
            self.watch(before + finished, round(spent_s * 1e9 + rate * simulated_ns))

        return sweep(planned, self.store, self.workers, engine=self._engine, watch=watch, on_row=self._count)

    def spent_s(self) -> float:
        """Processor time of all stored rows of these trials."""
        return sum(row["cpu_s"] or 0.0 for row in self._own_rows().values())

    def affords(self, steady: Sequence[Scenario], failing: Sequence[Scenario], share: float) -> bool:
        """Whether these runs fit into a share of the budget: they cost what runs cost so far, per simulated second."""
        missing = self.store.missing(_cells(steady, failing))
        cost_s = self._rate() * sum(cell.scenario.run.duration_ns for cell in missing) / 1e9
        return not missing or self.spent_s() + cost_s <= share * self._budget_s

    def progress(self) -> str:
        """``34 of 90 s of processor time, at most 56 s left``; what is left is known once a run has ended."""
        spent_s, passed_s = self._kept_s + self._spent_now_s, time.monotonic() - self._begun
        spent = f"{spent_s:.0f} of {self._budget_s:.0f} s of processor time"
        if not self._spent_now_s:
            return spent
        return f"{spent}, at most {max(self._budget_s - spent_s, 0.0) * passed_s / self._spent_now_s:.0f} s left"

    def collected(self) -> pd.DataFrame:
        """All rows, and the files that hold them."""
        return collect(self.store, list(self._planned.values()))

    def _own_rows(self) -> dict[str, Row]:
        own = {cell.id for cell in self._planned.values()}
        return {name: row for name, row in self.store.rows().items() if name in own}

    def _rate(self) -> float:
        """Processor time per simulated time, of all rows so far; 0: there are none."""
        rows, lengths = self._own_rows(), {cell.id: cell.scenario.run.duration_ns for cell in self._planned.values()}
        simulated_ns = sum(lengths[name] for name in rows)
        return 1e9 * self.spent_s() / simulated_ns if simulated_ns else 0.0

    def _count(self, row: Row) -> None:
        self._spent_now_s += row["cpu_s"] or 0.0


def _cells(steady: Sequence[Scenario], failing: Sequence[Scenario]) -> list[Cell]:
    """The cells of undisturbed runs, of their baselines, and of runs with a failure."""
    return [*with_baselines(cells(steady)), *cells(failing)]
