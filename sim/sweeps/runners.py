"""A sweep from plan to table: cells without a row run, here or on Spark; every row is kept as it comes."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import closing
from typing import TYPE_CHECKING

import numpy as np

from sim.cells.cell import Row
from sim.cells.local import Watch, no_watch
from sim.cells.plan import Cell, CellPlan
from sim.sweeps.results import collect
from sim.sweeps.store import Store, WaitingRows
from sim.sweeps.workers import Workers

if TYPE_CHECKING:
    import pandas as pd

    from sim.plane import Engine


LOOK_S = 2.0
"""The time between two looks for rows of other commands."""


def ignore_row(row: Row) -> None:
    """A receiver of rows that does nothing."""


class TooManyFailuresError(RuntimeError):
    """More cells failed than allowed; one line.  Finished rows are kept."""


def sweep(
    planned: Sequence[Cell],
    store: Store,
    workers: Workers,
    *,
    engine: Engine = "compiled",
    watch: Watch = no_watch,
    check: bool = True,
    max_failures: int | None = None,
    on_row: Callable[[Row], object] = ignore_row,
) -> pd.DataFrame:
    """A row per cell in the order of the plan.  After an interruption the next call continues.  `on_row` gets every new row.

    TooManyFailuresError: more than `max_failures` cells have failed in this call; raised at once.
    """
    run_missing(
        planned, store, workers, engine=engine, watch=watch, check=check, max_failures=max_failures, on_row=on_row,
    )  # fmt: skip
    return collect(store, planned)


def run_missing(
    planned: Sequence[Cell], store: Store, workers: Workers, *, engine: Engine, watch: Watch, check: bool, max_failures: int | None,
    on_row: Callable[[Row], object], shared: bool = False,
) -> None:  # fmt: skip
    """Run the cells that have no row, and keep theirs.  Cells that another command runs meanwhile are left out.

    `shared`: another command is at work on them: this one runs them in an order of its own.
    """
    missing = store.missing(planned)
    if not missing:
        return
    if shared:
        missing = missing.take(np.random.default_rng().permutation(len(missing)))  # in the same order both would run the same cells
    failed, look = 0, _RemoteRows(store, missing)
    with store.keeping() as waiting, closing(workers.rows(missing, engine, _keeping(waiting, watch), check, look.has_row)) as coming:
        for row in coming:  # no worker outlives this block
            waiting.add(row)
            on_row(row)
            failed += row["status"] != "ok"
            if max_failures is not None and failed > max_failures:
                raise TooManyFailuresError(f"stopped after {failed} failed cells, the last one {row['cell']}: {row['error']}")
    store.join()


class _RemoteRows:
    """Looks for rows that other commands put into the folder, before cells begin."""

    def __init__(self, store: Store, missing: CellPlan) -> None:
        self._store, self._missing = store, missing
        self._found: set[str] = set()
        self._looked_s = time.monotonic()

    def has_row(self, place: int) -> bool:
        if time.monotonic() - self._looked_s >= LOOK_S:
            self._found |= self._store.new_results()
            self._looked_s = time.monotonic()
        return bool(self._found) and self._missing.ids[place].decode() in self._found


def _keeping(waiting: WaitingRows, watch: Watch) -> Watch:
    """A watch that writes waiting rows to disk, as the next cell may take an hour."""

    def look(finished: int, simulated_ns: int) -> None:
        waiting.put_if_due()
        watch(finished, simulated_ns)

    return look
