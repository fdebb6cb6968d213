"""`run`: simulate every combination of a scenario, compare them, check its expectations, and store the results."""

from __future__ import annotations

import math
import os
import shlex
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, Unpack

from sim.app.verbs.common import SILENT, Listener, OptionError, Stopped, Work, writable_folder
from sim.app.verbs.findings import (
    Remark,
    axes_of,
    job_findings,
    known_issues_json,
    of_problem,
    report_remarks,
    with_provenance,
)
from sim.app.verbs.options import (
    RunFileOptions,
    RunOptions,
    changes_as_lines,
    command_line,
    path_of,
    portable,
    relative_path,
    with_all_options,
    with_defaults,
)
from sim.jobs.evidence.known_issues import unsafe_issues
from sim.jobs.evidence.what_ifs import history_of
from sim.model.frozen import frozen
from sim.model.schema.flink_file import flink_change
from sim.model.schema.history_file import contradiction, inline_history
from sim.model.schema.prices import load_prices
from sim.model.schema.study import ScenarioFile, loads
from sim.model.schema.text import Reading, ScenarioError, assumptions_note, compose_document, read_text
from sim.model.text import masked_change
from sim.results.formats import ms_text
from sim.results.restarts import longest_lag_after_stop
from sim.studies.compare import compare, comparison_json, write_comparison
from sim.studies.comparison import Comparison
from sim.studies.deciding import deciding, trials
from sim.studies.expectations import Expectation, check
from sim.studies.plan import cells, run_folder, with_baselines
from sim.studies.progress import no_watch
from sim.studies.run_folder import kept_scenario, replacing

_MAX_NAMED = 4
"""Strategies named in one line."""
_MAX_LATER_SHARE = 0.95
"""The wait of records due after the stop is reported if it is below this share of the longest wait.

Larger shares are within the resolution of series, which have a value per second.
"""


@frozen
class StudySource:
    """Text of a scenario, its file, and changes to it."""

    text: str
    name: str
    file: Path  # its file; for a text from Python, the file it would have in the current folder
    changes: tuple[str, ...] = ()  # ``key=value``

    @property
    def folder(self) -> Path:
        """Return the folder to which paths in the scenario are relative."""
        return self.file.parent


@frozen
class RunRequest:
    """A study to run, and the command that repeats it."""

    origin: StudySource
    study: ScenarioFile
    expectations: tuple[Expectation, ...]
    pinned: tuple[str, ...]  # ``key=value`` changes with which the file yields exactly these combinations

    def command(self, folder: Path | None) -> str:
        return command_line("run", [self.origin.file], RunFileOptions, {"changes": self.pinned, "folder": folder})


@frozen
class RunOutcome:
    """The result of `run`: a comparison of strategies, and whether the expectations of the scenario hold."""

    request: RunRequest
    comparison: Comparison
    # a row per expectation and strategy: metric, condition, value, whether it holds
    expectations: tuple[dict[str, Any], ...]
    findings: tuple[str, ...]  # remarks about the job
    folder: Path | None

    @property
    def keeps_expectations(self) -> bool:
        return all(row["holds"] for row in self.expectations)

    @property
    def outcomes(self) -> list[str]:
        """Return sentences on further outcomes, and on expectations."""
        comparison, rows = self.comparison, self.expectations
        lines = [*comparison.outcomes]
        lines += filter(None, (_longer_waits(expected, comparison) for expected in self.request.expectations))
        failed = [row for row in rows if not row["holds"]]
        for row in failed:
            fate = "failed" if math.isfinite(row["value"]) else "unknown"
            lines.append(f"expectation {fate}: {row['strategy']}: {row['metric']} {row['condition']}: {row['reached']}")
        lost = any(row.lost_records for row in comparison.consequences.values()) or comparison.violations
        if (
            comparison.consequences_texts() is not None
            and not (lost or comparison.continued_after_drain or comparison.commits_less)
            and (unsafe := unsafe_issues(self.request.study.scenarios))
        ):
            lines.append(f"Nothing lost in the simulation; {unsafe.sentence}")
        if rows and not failed:
            lines.append(f"All {len(rows)} expectations hold." if len(rows) > 1 else "The expectation holds.")
        return lines

    @property
    def facts(self) -> dict[str, Any]:
        """Return what `--json` prints."""
        return {**self.kept_facts, "folder": str(self.folder)}

    @property
    def kept_facts(self) -> dict[str, Any]:
        """Return `facts` without the folder, as they are stored in it."""
        history = history_of(self.request.study.backtest, self.request.study.scenarios)
        verdicts = [
            {**row, "value": row["value"] if math.isfinite(row["value"]) else None} for row in self.expectations
        ]
        lines: dict[str, Any] = {
            "findings": list(self.findings),
            "notes": self.comparison.notes,
            "outcomes": self.outcomes,
        }
        lines |= {"known_issues": known_issues_json(self.request.study.scenarios)}
        return {**comparison_json(self.comparison), **lines, "history": history, "expectations": verdicts}


def read_request(
    origin: StudySource, study: ScenarioFile | None = None, pinned: Sequence[str] | None = None
) -> RunRequest:
    """Read a study, unless `study` is given, and its expectations.  ScenarioError: mistakes in it."""
    study, reading = study or _read(origin), Reading(str(origin.file))
    compose_document(origin.text, reading)
    expectations = check(study.scenarios[0].expect, reading) if study.scenarios else []
    reading.stop_if_wrong()
    return RunRequest(origin, study, tuple(expectations), origin.changes if pinned is None else tuple(pinned))


def _read(origin: StudySource) -> ScenarioFile:
    try:
        return loads(origin.text, origin.name, overrides=origin.changes, folder=origin.folder, file=str(origin.file))
    except ScenarioError:
        from sim.studies.sweeps.sweep_file import is_sweep  # imported here: only needed for this error

        if not is_sweep(origin.file):
            raise
        hint = f"is a sweep file, which names a scenario and what varies: ckptsim sweep {shlex.quote(str(origin.file))}"
        raise ScenarioError.of(origin.file, hint) from None


def origin_of(file: Path, changes: Sequence[str] = ()) -> StudySource:
    """Read the text of a scenario file.  ScenarioError: it cannot be read."""
    return StudySource(read_text(file), file.name.removesuffix(file.suffix), file, tuple(changes))


def read_file(file: Path, **options: Unpack[RunFileOptions]) -> RunRequest:
    """Read a scenario file, and apply the changes that the options make.  ScenarioError: mistakes in it."""
    options = with_defaults(RunFileOptions, options)
    changes = changes_as_lines(options["changes"])
    if options["flink"] is not None:
        changes.insert(0, flink_change(Path(options["flink"]), file))
    return read_request(origin_of(file, changes))


def default_folder(study: ScenarioFile) -> Path:
    """Return ``runs/<name>-<id>``."""
    return Path("runs") / run_folder(study.name, study.scenarios)


@with_all_options(RunOptions)
def run(request: RunRequest, *, listener: Listener = SILENT, **given: Unpack[RunOptions]) -> RunOutcome:
    """Run every combination, and the same job without checkpoints as a baseline.

    Results are stored in `folder`; if None, nothing is stored.

    OptionError: the folder cannot be written, or has results of another scenario.  FolderInUseError: another command
    writes to it.
    """
    folder = path_of(given["folder"])
    if folder is not None and not given["force"]:
        _keep_other_results(folder, request)
    prices = load_prices(given["prices"])
    findings = report_remarks(findings_of(request), listener)

    def outcome(place: Path | None) -> RunOutcome:
        compared = _compared(request.study, place, given, listener)
        comparison = replace(compared, prices=prices, caveat=contradiction(request.study.backtest))
        if given["try_assumptions"]:
            comparison = _with_assumptions(comparison, listener)
        return RunOutcome(request, comparison, tuple(_checked(comparison, request.expectations)), findings, folder)

    if folder is None:
        return outcome(None)
    with replacing(writable_folder(folder), listener.message) as place:
        found = outcome(place)
        listener.result(found)
        _keep(found, place)
    return found


def _keep_other_results(folder: Path, request: RunRequest) -> None:
    """Raise OptionError if a folder has the results of another scenario file.  Folders named by scenario have only its own."""
    kept = kept_scenario(folder)
    if kept in (None, request.origin.file.resolve()) or folder.name == default_folder(request.study).name:
        return
    raise OptionError(
        "folder", f"{folder} has the results of {relative_path(kept)}: --force replaces them, another --out leaves them"
    )


def findings_of(request: RunRequest) -> Iterator[Remark]:
    """Yield remarks about a scenario that is not run yet."""
    origin, study = request.origin, request.study
    yield from axes_of(study.scenarios)
    yield from map(of_problem, study.warnings)
    if values := assumptions_note(origin.text):
        yield Remark(f"{portable(origin.file)}: {values}", is_warning=True)
    yield from job_findings(study.name, study.scenarios, study.backtest)


def _compared(study: ScenarioFile, place: Path | None, given: RunOptions, listener: Listener) -> Comparison:
    """Run all cells of the study.  Each is stored in `place` when it ends, if `place` is given."""
    planned = with_baselines(cells(study.scenarios))
    total_ns = sum(cell.scenario.run.duration_ns for cell in planned)
    with listener.progress(Work(study.name, total_ns, len(planned))) as watch:
        try:
            return compare(
                study,
                engine=given["engine"],
                jobs=given["jobs"],
                folder=place,
                watch=watch,
                check=given["checks"],
            )
        except KeyboardInterrupt:
            if place is None:
                raise
            finished = len(list(place.glob("*/journal.jsonl")))
            raise Stopped(f"{finished} of {len(planned)} runs are kept in {place}") from None


def _with_assumptions(comparison: Comparison, listener: Listener) -> Comparison:
    """Return the comparison with the unspecified values that would change it, found by short runs with other values."""
    planned = trials(comparison)
    what = f"{comparison.name}: trying {' and '.join(trial.assumption.key for trial in planned)}"
    total_ns = sum(trial.scenario.run.duration_ns for trial in planned)
    with listener.progress(Work(what, total_ns, len(planned), "runs")) if planned else nullcontext(no_watch) as watch:
        assumptions = deciding(comparison, planned, watch=watch)
    return comparison.with_deciding(assumptions)


def _checked(comparison: Comparison, expectations: Sequence[Expectation]) -> Iterator[dict[str, Any]]:
    """Yield a row per expectation and strategy."""
    for line in expectations:
        for name, results in comparison.results.items():
            value = line.value(results)
            yield {
                "strategy": name,
                "metric": line.metric,
                "condition": str(line.condition),
                "value": value.number,
                "n": value.sample,
                "holds": line.holds(value),
                "reached": line.reached(value),
            }


def _longer_waits(expected: Expectation, comparison: Comparison) -> str:
    """Return a sentence if an expectation bounds downtime and records wait longer than the bound, else ""."""
    if (expected.table, expected.column) != ("recoveries", "downtime") or expected.condition.comparison not in (
        "<",
        "<=",
    ):
        return ""
    waits = {
        name: 1e3 * row.lag_s
        for name, row in comparison.consequences.items()
        if row.restarts and 1e3 * row.lag_s > expected.bound
    }
    if not waits:
        return ""
    named = []
    for name, wait_ms in waits.items():
        later_ms = 1e3 * max(longest_lag_after_stop(result.tables) for result in comparison.results[name])
        later = (
            f" ({ms_text(later_ms)} for records due after the job stopped)"
            if later_ms < _MAX_LATER_SHARE * wait_ms
            else ""
        )
        named.append(f"up to {ms_text(wait_ms)} with {name}{later}")
    more = f" and {len(named) - _MAX_NAMED} more" if len(named) > _MAX_NAMED else ""
    return (
        f"Records wait longer than {expected.metric}, which ends when all tasks run and includes neither a savepoint before nor the "
        f"backlog after: {'; '.join(named[:_MAX_NAMED])}{more}. To limit that, use series.lag.max."
        + f" No strategy keeps all waits below {ms_text(expected.bound)}."
        * (len(waits) == len(comparison.consequences))
    )


def _keep(outcome: RunOutcome, place: Path) -> None:
    """Write comparison and scenario to `place`, a temporary folder that becomes the results folder."""
    assert outcome.folder is not None
    origin, folder = outcome.request.origin, outcome.folder
    report = command_line("report", [folder])
    # with its history inline, so that the folder can be copied to another machine; not with a history file that a change names
    is_named = any(line.startswith("history=") for line in origin.changes)
    text = origin.text if is_named else inline_history(origin.text, origin.folder)
    summary = {
        **outcome.kept_facts,
        "overrides": list(map(masked_change, origin.changes)),
        "source": Path(os.path.relpath(origin.file, folder)).as_posix(),
        "command": f"{outcome.request.command(folder)}\n{report} -o report.html",
    }
    write_comparison(outcome.comparison, place, text, with_provenance(summary))
