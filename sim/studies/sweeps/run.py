"""Running a sweep on local processes or Spark, and its result."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from sim.model.files import locked
from sim.model.text import capitalised
from sim.results.formats import TextTable, ms_text
from sim.results.stored import unlimited_text
from sim.results.summary import STATISTICS
from sim.studies.cells import Row, died, timed, warm
from sim.studies.local import cores, run_each
from sim.studies.plan import Cell, cells, run_folder, with_baselines
from sim.studies.progress import Progress, Watch, no_watch
from sim.studies.sweeps.answer import sections, sentence
from sim.studies.sweeps.results import keep, read_results
from sim.studies.sweeps.store import Store, WaitingRows
from sim.studies.sweeps.sweep_file import Definition, define

if TYPE_CHECKING:
    import pandas as pd

    from sim.plane import Engine


# ---- Progress text.


class RowTally:
    """Counts finished rows, for the progress text."""

    def __init__(self) -> None:
        self._begun = time.monotonic()
        self._done = self._failed = 0
        self._slowest: tuple[float, str] = (0.0, "")

    def count(self, row: Row) -> None:
        self._done += 1
        self._failed += row["status"] != "ok"
        self._slowest = max(self._slowest, (row.get("wall_s") or 0.0, row["cell"]))

    def text(self) -> str:
        """Return ``3 failed, 2.4/s, slowest 7.1 s (1f00...)``, or "" before the first row."""
        if not self._done:
            return ""
        rate = self._done / max(time.monotonic() - self._begun, 1e-9)
        parts = [f"{self._failed} failed"] if self._failed else []
        parts.append(f"{rate:.1f}/s" if rate >= 1 else f"{60 * rate:.1f}/min")
        if self._slowest[1]:
            parts.append(f"slowest {self._slowest[0]:.1f} s ({self._slowest[1][:8]})")
        return ", ".join(parts)


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

    def rows(self, missing: Sequence[Cell], engine: Engine, watch: Watch, check: bool) -> Generator[Row]:
        """Run cells and yield their rows as they finish.  With Spark, call this inside the block of the context."""
        if self._master is None:
            yield from self._local(missing, engine, watch, check)
            return
        from sim.studies.sweeps.spark_rows import QUICK_START_CONF, rows_on
        from sim.studies.sweeps.spark_session import context

        if self._spark is None:
            self._spark = self.enter_context(context(self._master, conf={**QUICK_START_CONF, **(self._conf or {})}))
        yield from rows_on(self._spark, missing, engine=engine, watch=watch, check=check)

    def _local(self, missing: Sequence[Cell], engine: Engine, watch: Watch, check: bool) -> Generator[Row]:
        warm(engine)
        jobs = self._jobs or min(len(missing), cores())
        with closing(run_each(partial(_row, engine, check), missing, jobs=jobs, watch=watch, died=died)) as outcomes:
            for _, row in outcomes:
                yield row


def _row(engine: Engine, check: bool, cell: Cell, progress: Progress) -> Row:
    return timed(cell, engine, progress, check=check)


# ---- Running the cells of a plan that have no row yet.


OnRow: TypeAlias = Callable[[Row], object]


def ignore_row(row: Row) -> None:
    """Do nothing with a row."""


class TooManyFailuresError(RuntimeError):
    """Raised when more cells failed than allowed.  Finished rows are stored."""

    exit_code = 4


def run_missing(
    planned: Sequence[Cell],
    store: Store,
    workers: Workers,
    *,
    engine: Engine = "compiled",
    watch: Watch = no_watch,
    check: bool = True,
    max_failures: int | None = None,
    on_row: OnRow = ignore_row,
) -> None:
    """Run the cells that have no row, and store their rows.  A call after an interruption resumes.

    `on_row`: called with every new row.

    TooManyFailuresError: more than `max_failures` cells failed in this call; the others are not run.
    """
    missing = store.missing(planned)
    if not missing:
        return
    failed = 0
    with (
        store.keeping() as waiting,
        closing(workers.rows(missing, engine, _writing_rows(waiting, watch), check)) as rows,
    ):
        for row in rows:  # closing() stops all workers when the block ends
            waiting.add(row)
            on_row(row)
            failed += row["status"] != "ok"
            if max_failures is not None and failed > max_failures:
                raise TooManyFailuresError(
                    f"stopped after {failed} failed cells, the last one {row['cell']}: {row['error']}"
                )
    store.join()


def _writing_rows(waiting: WaitingRows, watch: Watch) -> Watch:
    """Return a progress function that also writes waiting rows to disk, because the next cell may take an hour."""

    def progress(finished: int, simulated_ns: int) -> None:
        waiting.put_if_due()
        watch(finished, simulated_ns)

    return progress


# ---- Running a sweep file, and its result.

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

Watching: TypeAlias = Callable[[Sequence[Cell], Store], AbstractContextManager[tuple[Watch, OnRow]]]
"""(planned cells, store) -> context around their runs, which yields (progress function, function called with every row)."""


@dataclass(frozen=True)
class SweepResult:
    """The results of a sweep, and the answer to its question."""

    definition: Definition
    rows: pd.DataFrame  # a row per cell, failed ones included; above MAX_COMPLETE cells, only the required columns
    folder: Path
    findings: tuple[str, ...] = ()  # remarks about job and load

    @cached_property
    def results(self) -> pd.DataFrame:
        """Return a row per cell, failed ones included, with the columns of `sim.studies.cells`.

        Rows with the strategy "none" are the job without checkpoints, with which `throughput_change` compares.
        """
        return self.rows if len(self.rows) <= MAX_COMPLETE else read_results(self.folder)

    @cached_property
    def sections(self) -> list[TextTable]:
        """Return the tables of the answer, or [] without a question."""
        question = self.definition.question
        return [] if question is None else sections(question, self.rows)

    @cached_property
    def sentence(self) -> str:
        """Return the recommendation, or "" if the question asks for none."""
        if self.definition.question is None:
            return ""
        unlimited = unlimited_text(max(scenario.unlimited_bytes for scenario in self.definition.scenarios.different))
        lines = [sentence(self.definition.question, self.rows), f"{capitalised(unlimited)}." if unlimited else ""]
        return "\n".join(filter(None, lines))

    @cached_property
    def left_out(self) -> str:
        """Return a sentence on warm-ups that were determined from the runs, or "" if the scenarios set the warm-up."""
        if not any(scenario.run.finds_warm_up for scenario in self.definition.scenarios.different):
            return ""
        has_warm_up = (self.rows["status"] == "ok") & (self.rows["strategy"] != "none")
        warmups_ms = self.rows.loc[has_warm_up, "warmup_ms"]
        if warmups_ms.empty:
            return ""
        least, middle, most = (ms_text(float(warmups_ms.quantile(share))) for share in (0.0, 0.5, 1.0))
        return (
            f"Left out as warm-up, until checkpoints, queues and lag have settled: {least} to {most}, median {middle}."
        )

    @property
    def failed(self) -> pd.DataFrame:
        """Return the rows of cells without a result; the column `error` has the reason."""
        return self.rows[self.rows["status"] != "ok"]

    @property
    def broken(self) -> pd.DataFrame:
        """Return the rows of runs that violated an invariant; the column `violation` has the first violation."""
        return self.rows[self.rows["violations"] > 0]

    @property
    def counted(self) -> str:
        """Return ``9 of 10 cells have a row in runs/day/results.parquet``, and a hint if there is no question."""
        count = len(self.rows)
        rows = f"{count - len(self.failed)} of {count} cells have a row in {self.folder / 'results.parquet'}"
        if self.definition.question is not None:
            return rows
        return f"{rows}; for an answer, add answer: to a sweep file, or compare the settings of a scenario with ckptsim run"


def run_sweep(
    study: str | Path | Definition,
    folder: str | Path | None = None,
    *,
    overrides: Sequence[str] = (),
    engine: Engine = "compiled",
    jobs: int | None = None,
    master: str | None = None,
    conf: Mapping[str, str] | None = None,
    watching: Watching | None = None,
    check: bool = True,
    max_failures: int | None = None,
    warn: Callable[[str], object] = lambda _: None,
) -> SweepResult:
    """Run a sweep file (or a scenario with lists), and store every row in `folder`; a repeated call resumes.

    `folder`: by default ``runs/<name>-<id>``.  `jobs`: local processes; `master`: a Spark master instead, with settings
    `conf`.  `warn`: called if the file system cannot lock the folder.

    ScenarioError: mistakes in the file.  FolderInUseError: another command runs cells of this folder.
    TooManyFailuresError: more than `max_failures` cells failed.
    """
    definition = study if isinstance(study, Definition) else define(Path(study), overrides)
    store = Store(Path("runs") / run_folder(definition.name, definition.scenarios) if folder is None else Path(folder))
    planned = with_baselines(cells(definition.scenarios))
    with locked(store.folder, warn), Workers(jobs, master, conf) as workers:
        with (watching or _unwatched)(planned, store) as (watch, on_row):
            run_missing(
                planned,
                store,
                workers,
                engine=engine,
                watch=watch,
                check=check,
                max_failures=max_failures,
                on_row=on_row,
            )
        keep(store, planned)
    return SweepResult(definition, _rows(definition, store.folder, len(planned)), store.folder)


def _rows(definition: Definition, folder: Path, count: int) -> pd.DataFrame:
    """Return the results; above MAX_COMPLETE cells, only the columns that the answer and messages need."""
    if count <= MAX_COMPLETE:
        return read_results(folder)
    question = definition.question
    columns = {*question.show, *(limit.column for limit in question.limits), question.least} if question else set()
    columns |= {STATISTICS[column].counted_by for column in columns if column in STATISTICS}
    return read_results(folder, [*_REQUIRED_COLUMNS, *definition.scenarios.values(), *(columns - {""})])


@contextmanager
def _unwatched(_: Sequence[Cell], __: Store) -> Iterator[tuple[Watch, OnRow]]:
    yield no_watch, ignore_row
