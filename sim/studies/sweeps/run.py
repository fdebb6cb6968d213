"""Running the cells of a sweep on local processes or Spark, and reading the rows that its answer needs."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from sim.results.summary import STATISTICS
from sim.studies.cells import Row, died, timed, warm
from sim.studies.local import cores, run_each
from sim.studies.plan import Cell, CellPlan
from sim.studies.progress import Progress, Watch, no_watch
from sim.studies.sweeps.results import read_results
from sim.studies.sweeps.store import Store
from sim.studies.sweeps.sweep_file import Definition

# ---- Workers.


class Workers(ExitStack):
    """Context of the workers of a sweep: `jobs` local processes, or Spark (`master`) with the settings `conf`.

    Starting Spark takes seven seconds of CPU.  It is started with the first cells, and stopped when the block ends.
    """

    def __init__(
        self, jobs: int | None = None, master: str | None = None, conf: Mapping[str, str] | None = None
    ) -> None:
        super().__init__()
        self._jobs, self._master, self._conf = jobs, master, conf
        self._spark: Any = None

    def rows(self, missing: CellPlan, watch: Watch, check: bool) -> Generator[Row]:
        """Run cells and yield their rows as they finish.  With Spark, call this inside the block of the context."""
        if self._master is None:
            yield from self._local(missing, watch, check)
            return
        from sim.studies.sweeps.spark_rows import QUICK_START_CONF, rows_on
        from sim.studies.sweeps.spark_session import context

        if self._spark is None:
            self._spark = self.enter_context(context(self._master, conf={**QUICK_START_CONF, **(self._conf or {})}))
        yield from rows_on(self._spark, missing, watch=watch, check=check)

    def _local(self, missing: CellPlan, watch: Watch, check: bool) -> Generator[Row]:
        warm()
        jobs = self._jobs or min(len(missing), cores())
        with closing(run_each(partial(_row, check), missing, jobs=jobs, watch=watch, died=died)) as outcomes:
            for _, row in outcomes:
                yield row


def _row(check: bool, cell: Cell, progress: Progress) -> Row:
    return timed(cell, progress, check=check)


# ---- Running the cells of a plan that have no row yet.


class TooManyFailuresError(RuntimeError):
    """Raised when more cells failed than allowed.  Finished rows are stored."""

    exit_code = 4


def run_missing(
    planned: Sequence[Cell],
    store: Store,
    workers: Workers,
    *,
    watch: Watch = no_watch,
    check: bool = True,
    max_failures: int | None = None,
) -> None:
    """Run the cells that have no row, and store their rows.  A call after an interruption resumes.

    TooManyFailuresError: more than `max_failures` cells failed in this call; the others are not run.
    """
    missing = store.missing(planned)
    if not missing:
        return
    failed = 0
    with (
        store.buffered_rows(),
        closing(workers.rows(missing, _writing_rows(store, watch), check)) as rows,
    ):
        for row in rows:  # closing() stops all workers when the block ends
            store.add(row)
            failed += row["status"] != "ok"
            if max_failures is not None and failed > max_failures:
                raise TooManyFailuresError(
                    f"stopped after {failed} failed cells, the last one {row['cell']}: {row['error']}"
                )
    store.join()


def _writing_rows(store: Store, watch: Watch) -> Watch:
    """Return a progress function that also writes waiting rows to disk, because the next cell may take an hour."""

    def progress(finished: int, simulated_ns: int) -> None:
        store.flush_if_due()
        watch(finished, simulated_ns)

    return progress


# ---- The rows of a sweep.

MAX_COMPLETE = 200_000
"""Maximum cells whose rows are read with all columns; of more cells, only the required columns are read."""
_REQUIRED_COLUMNS = (
    "replication",
    "strategy",
    "status",
    "error",
    "job_status",
    "unfinished",
    "nothing",
    "warmup_ms",
    "violations",
    "violation",
)
"""Columns that answers and messages always need."""


def read_rows(definition: Definition, folder: Path, count: int) -> pd.DataFrame:
    """Return the results; above MAX_COMPLETE cells, only the columns that the answer and messages need."""
    if count <= MAX_COMPLETE:
        return read_results(folder)
    question = definition.question
    columns = {*question.show, *(limit.column for limit in question.limits), question.least} if question else set()
    columns |= {STATISTICS[column].counted_by for column in columns if column in STATISTICS}
    return read_results(folder, [*_REQUIRED_COLUMNS, *definition.scenarios.values(), *(columns - {""})])
