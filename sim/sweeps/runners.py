"""A sweep from plan to table: cells without a row run, here or on Spark; every row is kept as it comes."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING

from sim.cells.cell import Row, died, timed, warm
from sim.cells.local import Progress, Watch, cores, no_watch, run_each
from sim.cells.plan import Cell
from sim.sweeps.results import collect
from sim.sweeps.store import Store

if TYPE_CHECKING:
    import pandas as pd

    from sim.plane import Engine

__all__ = ["TooManyFailuresError", "sweep"]


def ignore_row(row: Row) -> None:
    """A receiver of rows that does nothing."""


class TooManyFailuresError(RuntimeError):
    """More cells failed than allowed; one line.  Finished rows are kept."""


def sweep(
    planned: Sequence[Cell],
    store: Store,
    *,
    engine: Engine = "compiled",
    jobs: int | None = None,
    master: str | None = None,
    conf: Mapping[str, str] | None = None,
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
        rows = partial(_spark, master=master, conf=conf) if master is not None else partial(_local, jobs=jobs)
        with store.keeping() as keep, closing(rows(missing, engine, watch, check)) as coming:  # no worker outlives this block
            for row in coming:
                keep(row)
                on_row(row)
                failed += row["status"] != "ok"
                if max_failures is not None and failed > max_failures:
                    raise TooManyFailuresError(f"stopped after {failed} failed cells, the last one {row['cell']}: {row['error']}")
    return collect(store, planned)


def _local(missing: Sequence[Cell], engine: Engine, watch: Watch, check: bool, *, jobs: int | None) -> Generator[Row]:
    warm(engine)
    with closing(run_each(partial(_row, engine, check), missing, jobs=jobs or min(len(missing), cores()), watch=watch, died=died)) as ended:
        for _, row in ended:
            yield row


def _spark(
    missing: Sequence[Cell], engine: Engine, watch: Watch, check: bool, *, master: str, conf: Mapping[str, str] | None
) -> Generator[Row]:
    from sim.sweeps.spark.rows import each_row

    yield from each_row(missing, master=master, engine=engine, watch=watch, check=check, conf=conf)


def _row(engine: Engine, check: bool, cell: Cell, progress: Progress) -> Row:
    return timed(cell, engine, progress, check=check)
