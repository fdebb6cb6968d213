"""`sweep`: simulate many cells, a row each, and answer the question of a sweep file.  A repeated call resumes.  `check`: validate a
scenario or a sweep file only.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
import pandas as pd

from sim.app.verbs.common import (
    SILENT,
    Displayed,
    Listener,
    Picture,
    Stopped,
    Work,
    writable_folder,
)
from sim.app.verbs.findings import (
    Remark,
    axes_of,
    job_findings,
    keep_answer,
    known_issues_json,
    of_problem,
    report_remarks,
)
from sim.app.verbs.options import (
    CheckOptions,
    FilePath,
    SweepOptions,
    changes_as_lines,
    command_line,
    path_of,
    portable,
    with_all_options,
    with_defaults,
)
from sim.app.verbs.run import findings_of as findings_of_run
from sim.app.verbs.run import read_file
from sim.app.verbs.study import Study
from sim.model.files import locked
from sim.model.frozen import frozen
from sim.model.schema.flink_file import flink_change
from sim.model.text import capitalised
from sim.results.charts import figure, to_figure
from sim.results.columns import numbers_of, text, unit_of_ticks
from sim.results.formats import TextTable
from sim.results.stored import unlimited_text
from sim.results.summary import in_words
from sim.results.sweep_answers import means, planned
from sim.studies.cells import COLUMNS
from sim.studies.plan import CellPlan, cells, label, run_folder, with_baselines
from sim.studies.progress import Watch
from sim.studies.run_folder import ANSWER
from sim.studies.sweeps.answer import sample_size_notes, sections, sentence
from sim.studies.sweeps.design import override
from sim.studies.sweeps.results import read_results, write_results
from sim.studies.sweeps.run import MAX_COMPLETE, Workers, read_rows, run_missing
from sim.studies.sweeps.store import Store
from sim.studies.sweeps.sweep_file import Definition, define, is_sweep, of_study, varied_scenario

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SHOWN = ("completed", "end_to_end_p50_ms", "end_to_end_max_ms", "throughput_per_second")
"""Columns that notebooks show of a sweep without a question."""
_NOTE_CHARS = 80
"""Length of a line above a chart: as many characters of this size are as wide as the chart."""
MAX_LISTED = 10
"""Failed cells that are reported; the results list all of them."""


@dataclass(frozen=True, repr=False, eq=False)
class Sweep(Displayed):
    """The results of a sweep; displays the answer, or the main columns of `results` if the file asks no question."""

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

    def plot(self, y: str = "", x: str = "", by: str = "") -> Picture:
        """Return a chart: the mean of column `y` over the values of key `x`, a line for each value of key `by`.

        Without `y`: the answer, means by setting with confidence intervals and limits.  Without `x`: the first key that
        varies.  ValueError: no such column or key, no question or no values.
        """
        from sim.app.report.figures import intervals

        caption = self.definition.text or self.definition.name
        if y:
            return Picture(self._drawn_over(y, x, by), caption)
        question, drawn = self.definition.question, None
        if question is not None and self.sections:
            groups = [question.by] if question.by else []
            drawn = intervals(self.rows, [*groups, *question.settings], question.show, question.limits)
        if question is None or drawn is None:
            raise ValueError("there is nothing to draw: no values, or neither a column nor a question (answer:)")
        answer = to_figure(drawn)
        self._add_notes(answer, question.show)
        return Picture(answer, caption)

    def _add_notes(self, drawn: Figure, columns: Sequence[str]) -> None:
        """Write above a chart which of its columns are percentiles of too few observations."""
        notes = [sample_size_notes([column], self.results).replace(column, in_words(column), 1) for column in columns]
        if note := "".join(notes).removeprefix(". "):
            drawn.suptitle(fill(note, _NOTE_CHARS), fontsize="small")

    def _drawn_over(self, y: str, x: str, by: str) -> Figure:
        varied = list(self.definition.scenarios.values())
        keys = [key for key in varied if key != by]
        x = x or next(iter(keys), "")
        for name, value, known in (("y", y, COLUMNS), ("x", x, keys), ("by", by, varied)):
            if value and value not in known:
                raise ValueError(f"{name}: {value!r} is not among {', '.join(known)}")
        lines = means(self.results, [*filter(None, [by]), x], [y])[y].dropna()
        table = lines.unstack(0) if by else lines.to_frame()  # noqa: PD010  # a series of means
        column, numbers = numbers_of(x, map(str, table.index)) or (x, {})
        if numbers:  # quantities in their order, on an axis of numbers
            table = table.rename(index=numbers).sort_index()
        unit, size = unit_of_ticks(y, float(table.to_numpy().max()))
        axis, scale = unit_of_ticks(column, max(table.index)) if numbers else ("", 1.0)
        table = table.set_axis(table.index / scale, axis=0) if numbers else table
        labels = [f"{name} [{ending.strip()}]" if ending else name for name, ending in ((x, axis), (in_words(y), unit))]
        drawn = figure(3.0)
        (table / size).plot(ax=drawn.subplots(), marker="o", xlabel=labels[0], ylabel=labels[1], legend=bool(by))
        self._add_notes(drawn, [y])
        return drawn

    @property
    def known_issues(self) -> list[dict[str, Any]]:
        """Return the known defects that apply to a scenario of the sweep, or may, for `--json`."""
        return known_issues_json(self.definition.scenarios.different)

    @property
    def facts(self) -> dict[str, Any]:
        """Return what `--json` prints."""
        return {
            "name": self.definition.name,
            "question": self.definition.text,
            "sections": [section._asdict() for section in self.sections],
            "sentence": self.sentence,
            "known_issues": self.known_issues,
            "rows": json.loads(self.results.to_json(orient="records")),  # NaN becomes null
        }

    @cached_property
    def answer(self) -> list[str | TextTable]:
        """Return the question and its answer, with titles of columns instead of names."""
        from sim.app.report.results_page import heading, spelled

        names = [name for name in map(str, self.rows) if "_" in name]
        tables = [
            TextTable(spelled(section.title, names), [*map(heading, section.header)], section.rows)
            for section in self.sections
        ]
        parts: list[str | TextTable] = [self.definition.text, *tables, spelled(self.sentence, names)]
        return [part for part in parts if part]

    def _parts(self) -> Sequence[str | TextTable | pd.DataFrame]:
        """Return the question, remarks about job and load, and the answer."""
        if not self.sections:
            return [self._overview(), self.counted]
        counted = "" if self.failed.empty else self.counted
        return [self.definition.text, *self.findings, *self.sections, self.sentence, counted]

    def _overview(self) -> TextTable:
        """Return the main columns of the rows, as texts.  Runs of the job without checkpoints are only counted."""
        rows, keys = planned(self.results), list(self.definition.scenarios.values())
        bare = len(self.results) - len(rows)
        title = (
            f"{len(rows)} cells"
            + f", and {bare} without checkpoints (strategy none), for throughput_change" * bool(bare)
        )
        values = zip(rows[keys].to_numpy(), rows[list(_SHOWN)].to_numpy(float), strict=True)
        cells = [[*map(str, setting), *map(text, _SHOWN, numbers)] for setting, numbers in values]
        return TextTable(title, [*keys, *map(in_words, _SHOWN)], cells)


@frozen
class SweepRequest:
    """A sweep to run, and the command that repeats it."""

    definition: Definition
    file: Path
    changes: tuple[str, ...] = ()  # ``key=value``

    def command(self, folder: Path) -> str:
        return command_line("sweep", [self.file], SweepOptions, {"changes": self.changes, "folder": folder})


def read_request(
    source: Study | FilePath, axes: Mapping[str, Sequence[Any]] | None = None, **options: Unpack[SweepOptions]
) -> SweepRequest:
    """Read a sweep file, a scenario with lists, or a study, with the changes that `axes` and the options make.

    ScenarioError: mistakes in it.
    """
    given = with_defaults(SweepOptions, options)
    changes = [*changes_as_lines(given["changes"]), *_axes_as_changes(axes or {})]
    file = source.origin.file if isinstance(source, Study) else Path(source)
    if given["flink"] is not None:
        changes.insert(0, flink_change(Path(given["flink"]), varied_scenario(file)))
    if not isinstance(source, Study):
        return SweepRequest(define(file, changes), file, tuple(changes))
    changed = source.with_(changes)  # `pinned` reproduces the study, so that the printed command repeats the sweep
    return SweepRequest(replace(of_study(changed.read), name=changed.name), file, changed.pinned)


def _axes_as_changes(axes: Mapping[str, Sequence[Any]] | Any) -> list[str]:
    """Return axes as ``key=[...]`` changes.  TypeError: the values of an axis are not a list."""
    if not isinstance(axes, Mapping):
        raise TypeError(f'axes: expected {{"checkpoint.interval": ["10 s", "30 s"]}}, not {type(axes).__name__}')
    for key, values in axes.items():
        if isinstance(values, str) or not isinstance(values, Sequence) or not values:
            raise TypeError(f'axes: the values of {key} are not a list: write {{"{key}": ["10 s", "30 s"]}}')
    return [override(key, list(values)) for key, values in axes.items()]


@with_all_options(SweepOptions)
def sweep(
    source: Study | FilePath,
    axes: Mapping[str, Sequence[Any]] | None = None,
    *,
    listener: Listener = SILENT,
    **given: Unpack[SweepOptions],
) -> Sweep:
    """Run a sweep file, or every combination of a study and of `axes` (``{"checkpoint.interval": ["10 s", "30 s"]}``).

    Each cell has a row in `folder` (``runs/<name>-<id>`` by default); calling it again runs those that have none.  The answer of the
    file's question is stored there, too.  `jobs`: local processes; `master`: a Spark master instead, with settings in `conf`.

    ScenarioError: mistakes in file or changes.  OptionError: the folder cannot be written.  FolderInUseError: another command
    writes to it.  TooManyFailuresError: more than `max_failures` cells failed.
    """
    request = read_request(source, axes, **given)
    definition = request.definition
    findings = report_remarks(findings_of(definition), listener)
    folder = writable_folder(
        path_of(given["folder"]) or Path("runs") / run_folder(definition.name, definition.scenarios)
    )
    planned, store = with_baselines(cells(definition.scenarios)), Store(folder)
    with (
        locked(folder, listener.message),
        Workers(given["jobs"], given["master"], given["conf"]) as workers,
        _watching(listener, planned, store) as watch,
    ):
        run_missing(
            planned,
            store,
            workers,
            watch=watch,
            check=given["checks"],
            max_failures=given["max_failures"],
        )
        write_results(store, planned)
    found = Sweep(definition, read_rows(definition, folder, len(planned)), folder, findings)
    listener.result(found)
    _keep(found, request)
    _report_failures(found, request.command(folder), listener)
    return found


def findings_of(definition: Definition) -> Iterator[Remark]:
    """Yield remarks about a sweep that is not run yet."""
    yield from axes_of(definition.scenarios.different)
    if definition.load:
        yield Remark(definition.load)
    yield from map(of_problem, definition.warnings)
    if any(scenario.expect for scenario in definition.scenarios.different):
        yield Remark(
            f"{definition.name}: expect: is judged by 'ckptsim run', not by a sweep, and has no effect here",
            is_warning=True,
        )
    yield from job_findings(definition.name, definition.scenarios.different, definition.backtest)


@contextmanager
def _watching(listener: Listener, plan: CellPlan, store: Store) -> Iterator[Watch]:
    """Show progress.  After Ctrl-C, Stopped tells how many cells are stored."""
    missing, distinct = store.missing(plan), len(np.unique(plan.ids))
    for finding in store.report_invalid_files():
        listener.message(finding)
    if len(missing) < distinct:
        listener.message(f"{distinct - len(missing)} of {distinct} cells have results already")
    elif strangers := len(store.kept()):
        listener.message(
            f"{strangers} rows in {store.folder} belong to other settings or another version of ckptsim: they are kept, "
            f"and all {distinct} cells run"
        )
    with listener.progress(Work(store.folder.name, missing.simulated_ns(), len(missing))) as watch:
        try:
            yield watch
        except KeyboardInterrupt:
            left = len(store.missing(plan))
            raise Stopped(
                f"{distinct - left} of {distinct} cells are kept in {store.folder}; run the same command to resume"
            ) from None


def _keep(found: Sweep, request: SweepRequest) -> None:
    """Store the answer for `report`; nothing if the file asks no question."""
    definition, question = found.definition, found.definition.question
    if question is None:
        return
    from sim.jobs.evidence.what_ifs import history_of

    same = "Simulated; all settings meet the same windows with the same random numbers."
    keep_answer(
        found.folder,
        ANSWER,
        title=f"Sweep {definition.name}",
        question=definition.text,
        verdict=found.sentence,
        parts=found.sections,
        findings=found.findings,
        assumptions=[same],
        command=request.command(found.folder),
        settings=question.settings,
        show=question.show,
        history=history_of(definition.backtest, definition.scenarios.different),
    )


def _report_failures(found: Sweep, command: str, listener: Listener) -> None:
    """Report failed cells and violations, and the command that runs failed cells again."""
    failed, broken = found.failed, found.broken
    for _, row in failed[:MAX_LISTED].iterrows():
        listener.message(f"cell {row['cell']}: {row['error']}")
    if len(failed) > MAX_LISTED:
        listener.message(
            f"... and {len(failed) - MAX_LISTED} more, in the column error of {found.folder / 'results.parquet'}"
        )
    axes = [name for name, _ in next(iter(found.definition.scenarios.different)).axes]
    for _, row in broken[:MAX_LISTED].iterrows():
        values = ", ".join(f"{name} {row[name]}" for name in axes if name in broken)
        listener.message(f"violation: {values or row['cell']}: {row['violation'].splitlines()[0]}")
    if len(failed):
        listener.message(f"to run only the failed cells again: {command}")


# ---- `check`: validate a scenario or a sweep file without running it.


@with_all_options(CheckOptions)
def check_file(file: Path, *, listener: Listener = SILENT, **given: Unpack[CheckOptions]) -> str:
    """Return what would run, and report remarks as before a run.  ScenarioError: all mistakes in the file."""
    if is_sweep(file):
        definition = read_request(file, **given).definition
        report_remarks(findings_of(definition), listener)
        return f"{portable(file)}: valid; ckptsim sweep runs {len(definition.scenarios)} cells"
    request = read_file(file, **given)
    report_remarks(findings_of_run(request), listener)
    labels = [label(scenario) for scenario in request.study.scenarios]
    count = "1 strategy" if len(labels) == 1 else f"{len(labels)} strategies"
    return f"{portable(file)}: valid; ckptsim run simulates {count}: {', '.join(labels)}"
