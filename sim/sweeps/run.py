"""A sweep file, run: all rows, their answer, and its picture.  For the command line and for notebooks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from sim.analysis.number_texts import ms_text
from sim.analysis.section import TextTable
from sim.analysis.strategies.storage_use import unlimited_text
from sim.analysis.sweeps.answer_picture import answer_picture
from sim.cells.cell import Row
from sim.cells.folder_name import run_folder
from sim.cells.local import Watch, no_watch
from sim.cells.plan import Cell, cells, with_baselines
from sim.cells.seeded import SeededScenarios
from sim.prose import capitalised
from sim.quantities.results import STATISTICS
from sim.sweeps.answer import groups, sections, sentence
from sim.sweeps.file.definition import Definition, define
from sim.sweeps.precision import more_replications
from sim.sweeps.racing import SweepRace
from sim.sweeps.results import keep, read_results
from sim.sweeps.runners import ignore_row, run_missing
from sim.sweeps.store import Store
from sim.sweeps.workers import Workers

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from sim.plane import Engine

MOST_COMPLETE = 200_000
"""Rows of more cells are read column by column, as they are needed."""
_ALWAYS = ("replication", "strategy", "status", "error", "job_status", "unfinished", "nothing", "warmup_ms", "violations", "violation")
"""Columns that answers and messages need, whatever is asked."""

Seen: TypeAlias = Callable[[Row], object]
Watching: TypeAlias = Callable[[Sequence[Cell], Store], AbstractContextManager[tuple[Watch, Seen]]]
"""(planned cells, store) -> a context, before cells run.  It gives (watch of their progress, receiver of every row)."""


@dataclass(frozen=True)
class SweepResult:
    """The results of a sweep, and the answer to its question."""

    definition: Definition
    rows: pd.DataFrame  # a row per cell, failed ones too; of many only the columns that an answer is made of
    folder: Path
    race: SweepRace | None = None
    findings: tuple[str, ...] = ()  # what is known of the job and the load before anything runs, as lines

    @cached_property
    def results(self) -> pd.DataFrame:
        """A row per cell, failed ones too; columns: `sim.cells.columns`."""
        return self.rows if len(self.rows) <= MOST_COMPLETE else read_results(self.folder)

    @cached_property
    def sections(self) -> list[TextTable]:
        """Tables of the answer; empty without a question."""
        if self.definition.question is None:
            return []
        if self.race is None:
            return sections(self.definition.question, self.rows)
        met_by_all = self.rows[self.rows["cell"].isin([cell.id for cell in self.race.first])]
        return [*sections(self.definition.question, self.rows, met_by_all, self.race.out), *self.race.sections()]

    @cached_property
    def sentence(self) -> str:
        """The recommendation; empty if the question wants none."""
        if self.definition.question is None:
            return ""
        left_out, out = ("", None) if self.race is None else (self.race.sentence(), self.race.out)
        unlimited = unlimited_text(max(scenario.unlimited_bytes for scenario in self.definition.scenarios.different))
        found = [sentence(self.definition.question, self.rows, out), left_out, f"{capitalised(unlimited)}." if unlimited else ""]
        return "\n".join(filter(None, found))

    @cached_property
    def left_out(self) -> str:
        """The warm-ups that were left out, if the runs determine them; empty: the scenarios say how long."""
        if not any(scenario.run.finds_warm_up for scenario in self.definition.scenarios.different):
            return ""
        found = self._fine.loc[self._fine["strategy"] != "none", "warmup_ms"]
        if found.empty:
            return ""
        least, middle, most = (ms_text(float(found.quantile(share))) for share in (0.0, 0.5, 1.0))
        return f"Left out as warm-up, until checkpoints, queues and lag have settled: {least} to {most}, median {middle}."

    def figure(self) -> Figure | None:
        """The columns of the answer over the settings, with confidence and limits; None: no question, or no values."""
        question = self.definition.question
        if question is None or not self.sections:
            return None
        parts = {f"{question.by} {value}" if value else "": rows for value, rows in groups(question, self.rows)}
        return answer_picture(parts, question.settings, question.show, question.limits, self.definition.text or self.definition.name)

    @property
    def failed(self) -> pd.DataFrame:
        """The rows of cells that have no result, with their `error`."""
        return self.rows[self.rows["status"] != "ok"]

    @property
    def broken(self) -> pd.DataFrame:
        """The rows of runs that broke what checkpoints promise, with their first `violation`."""
        return self.rows[self.rows["violations"] > 0]

    @property
    def counted(self) -> str:
        """``9 of 10 cells have a row in runs/day/results.parquet``, and why there is no answer if there is none."""
        count = len(self.rows)
        rows = f"{count - len(self.failed)} of {count} cells have a row in {self.folder / 'results.parquet'}"
        if self.definition.question is not None:
            return rows
        return f"{rows}; no answer was asked for: a sweep file says answer:, and ckptsim run compares the settings of a scenario"

    @property
    def _fine(self) -> pd.DataFrame:
        return self.rows[self.rows["status"] == "ok"]


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
    on_other: Callable[[str], object] = lambda _: None,
) -> SweepResult:
    """Run a sweep file (or a scenario with lists) and keep every row in `folder`; a repeated call continues it.

    `folder`: ``runs/<name>-<id>`` by default.  `jobs`: local processes; `master`: a Spark cluster instead, with `conf` for its settings.
    If the file asks for a precision, as many replications run as that takes.  If settings race, losers do not run in all worlds.
    `on_other` gets the owner of another command that runs cells of this folder.
    ScenarioError: mistakes in the file.  TooManyFailuresError: more than `max_failures` cells failed.
    """
    definition = study if isinstance(study, Definition) else define(Path(study), overrides)
    store = Store(Path("runs") / run_folder(definition.name, definition.scenarios) if folder is None else Path(folder))
    scenarios, question = definition.scenarios, definition.question
    race = SweepRace(question, cells(scenarios)) if question is not None and question.racing else None
    with store.sharing() as other, Workers(jobs, master, conf) as workers:
        if other:
            on_other(other)
        while True:
            planned = with_baselines(cells(scenarios) if race is None else race.cells)
            with (watching or _unwatched)(planned, store) as (watch, on_row):
                run_missing(
                    planned, store, workers, engine=engine, watch=watch, check=check, max_failures=max_failures, on_row=on_row,
                    shared=bool(other),
                )  # fmt: skip
            keep(store, planned)
            rows = _rows(definition, store.folder, len(planned))
            if race is not None and race.begin_next_round(rows):
                continue
            if definition.precision is None:
                return SweepResult(definition, rows, store.folder, race)
            extended = more_replications(scenarios, rows, definition.precision)
            if tuple(extended) == tuple(scenarios):
                return SweepResult(definition, rows, store.folder, race)
            scenarios = SeededScenarios.as_given(extended)


def _rows(definition: Definition, folder: Path, count: int) -> pd.DataFrame:
    """The results; of many those columns that an answer and the messages after a sweep are made of."""
    if count <= MOST_COMPLETE:
        return read_results(folder)
    question = definition.question
    requested = {definition.precision.of} if definition.precision is not None else set()
    if question is not None:
        requested |= {*question.show, *(limit.column for limit in question.limits), *filter(None, [question.least])}
        requested |= {"cell"} if question.racing else set()
    counted = {STATISTICS[column].counted_by for column in requested if column in STATISTICS} - {""}
    return read_results(folder, [*_ALWAYS, *definition.scenarios.values(), *requested, *counted])


@contextmanager
def _unwatched(_: Sequence[Cell], __: Store) -> Iterator[tuple[Watch, Seen]]:
    yield no_watch, ignore_row
