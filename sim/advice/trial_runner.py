"""Runs the trials of an advice, stores every row in a folder, and adds up the processor time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from sim.cells.local import Watch
from sim.cells.plan import Cell, cells, with_baselines
from sim.sweeps.results import collect
from sim.sweeps.runners import sweep
from sim.sweeps.store import Store
from sim.sweeps.tally import Tally

if TYPE_CHECKING:
    import pandas as pd

    from sim.model.scenario import Scenario
    from sim.plane import Engine

__all__ = ["Display", "TrialRunner"]

Display = Callable[[Sequence[Cell], Tally], AbstractContextManager[Watch]]
"""(missing cells, tally) -> a context that displays their progress."""


class TrialRunner:
    def __init__(
        self, folder: Path, display: Display, *, engine: Engine = "compiled", jobs: int | None = None, master: str | None = None,
        conf: Mapping[str, str] | None = None, budget_s: float = float("inf"),
    ) -> None:  # fmt: skip
        self.store = Store(folder)
        self._display = display
        self._sweep = partial(sweep, engine=engine, jobs=jobs, master=master, conf=conf)
        self._budget_s = budget_s
        self._planned: dict[str, Cell] = {}

    def run(self, steady: Sequence[Scenario], failing: Sequence[Scenario]) -> pd.DataFrame:
        """The rows of undisturbed runs, of their baselines, and of those with a failure."""
        planned, tally = [*with_baselines(cells(steady)), *cells(failing)], Tally()
        self._planned |= {f"{cell.id} {cell.scenario.axes}": cell for cell in planned}
        with self._display(self.store.missing(planned), tally) as watch:
            return self._sweep(planned, self.store, watch=watch, on_row=tally.seen)

    def spent_s(self) -> float:
        """Processor time of all stored rows of these trials."""
        own = {cell.id for cell in self._planned.values()}
        return sum(row["cpu_s"] or 0.0 for name, row in self.store.rows().items() if name in own)

    def exhausted(self) -> bool:
        return self.spent_s() > self._budget_s

    def collected(self) -> pd.DataFrame:
        """All rows, and the files that hold them."""
        return collect(self.store, list(self._planned.values()))
