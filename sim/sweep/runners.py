"""A sweep from plan to table: what has no row yet runs, here or on Spark; every row is kept the moment it comes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from sim.sweep.cell import row, warm
from sim.sweep.local import Progress, Watch, cores, each, nobody_watches
from sim.sweep.plan import Cell
from sim.sweep.store import Store, collect

if TYPE_CHECKING:
    import pandas as pd

    from sim.plane import Engine

__all__ = ["sweep"]


def sweep(
    planned: Sequence[Cell],
    store: Store,
    *,
    engine: Engine = "compiled",
    jobs: int | None = None,
    master: str | None = None,
    watch: Watch = nobody_watches,
    check: bool = True,
) -> pd.DataFrame:
    """One row per cell in the order of the plan.  Interrupted, it goes on where it was when called again."""
    missing = store.missing(planned)
    if missing:
        for done in _local(missing, engine, jobs, watch, check) if master is None else _spark(missing, engine, master, watch, check):
            store.put(done)
    return collect(store, planned)


def _local(missing: Sequence[Cell], engine: Engine, jobs: int | None, watch: Watch, check: bool) -> Iterator[dict[str, Any]]:
    warm(engine)
    for _, done in each(partial(_row, engine, check), missing, jobs=jobs or min(len(missing), cores()), watch=watch):
        yield done


def _spark(missing: Sequence[Cell], engine: Engine, master: str, watch: Watch, check: bool) -> Iterator[dict[str, Any]]:
    from sim.sweep.spark import each_row

    yield from each_row(missing, master=master, engine=engine, watch=watch, check=check)


def _row(engine: Engine, check: bool, cell: Cell, progress: Progress) -> dict[str, Any]:
    return row(cell, engine, progress, check=check)
