"""The workers that run the cells of a sweep: processes of this machine, or a Spark cluster."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack, closing
from functools import partial
from typing import TYPE_CHECKING, Any

from sim.cells.cell import Row, died, timed, warm
from sim.cells.local import Progress, Watch, cores, run_all, run_each
from sim.cells.plan import Cell

if TYPE_CHECKING:
    from sim.plane import Engine


class Workers(ExitStack):
    """The workers of a sweep: `jobs` local processes, or a Spark cluster (`master`) with `conf` for its settings.

    Spark takes seven seconds of CPU to start.  It starts with the first cells and stays until the block ends: rounds share it.
    """

    def __init__(self, jobs: int | None = None, master: str | None = None, conf: Mapping[str, str] | None = None) -> None:
        super().__init__()
        self._jobs, self._master, self._conf = jobs, master, conf
        self._spark: Any = None

    def rows(
        self, missing: Sequence[Cell], engine: Engine, watch: Watch, check: bool, skip: Callable[[int], bool] = run_all
    ) -> Generator[Row]:
        """The rows of cells as they come; inside of the block, if there is a master.

        `skip` is asked for the index of a cell before it begins: whether it need not run any more.
        """
        if self._master is None:
            yield from self._local(missing, engine, watch, check, skip)
            return
        from sim.sweeps.spark.rows import QUICK_JAVA, rows_on
        from sim.sweeps.spark.session import context

        if self._spark is None:
            self._spark = self.enter_context(context(self._master, conf={**QUICK_JAVA, **(self._conf or {})}))
        yield from rows_on(self._spark, missing, engine=engine, watch=watch, check=check, skip=skip)

    def _local(self, missing: Sequence[Cell], engine: Engine, watch: Watch, check: bool, skip: Callable[[int], bool]) -> Generator[Row]:
        warm(engine)
        jobs = self._jobs or min(len(missing), cores())
        with closing(run_each(partial(_row, engine, check), missing, jobs=jobs, watch=watch, died=died, skip=skip)) as ended:
            for _, row in ended:
                yield row


def _row(engine: Engine, check: bool, cell: Cell, progress: Progress) -> Row:
    return timed(cell, engine, progress, check=check)
