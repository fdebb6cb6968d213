"""A sweep from plan to table: cells without a row run, here or on Spark; every row is kept as it comes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from typing import TYPE_CHECKING

from sim.cells.cell import Row
from sim.cells.local import Watch, no_watch
from sim.cells.plan import Cell
from sim.sweeps.results import collect
from sim.sweeps.store import Store, WaitingRows
from sim.sweeps.workers import Workers

if TYPE_CHECKING:
    import pandas as pd

    from sim.plane import Engine


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
    if missing := store.missing(planned):
        failed = 0
        with store.keeping() as waiting, closing(workers.rows(missing, engine, _keeping(waiting, watch), check)) as coming:
            for row in coming:  # no worker outlives this block
                waiting.add(row)
                on_row(row)
                failed += row["status"] != "ok"
                if max_failures is not None and failed > max_failures:
                    raise TooManyFailuresError(f"stopped after {failed} failed cells, the last one {row['cell']}: {row['error']}")
    return collect(store, planned)


def _keeping(waiting: WaitingRows, watch: Watch) -> Watch:
    """A watch that writes waiting rows to disk, as the next cell may take an hour."""

    def look(finished: int, simulated_ns: int) -> None:
        waiting.put_if_due()
        watch(finished, simulated_ns)

    return look
