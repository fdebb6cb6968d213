"""`diff`: compare the inputs of two scenarios, jobs or results folders, and the effect of the differences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Unpack

import pandas as pd

from sim.app.verbs.common import (
    SILENT,
    Displayed,
    Listener,
    Work,
    stoppable,
    writable_folder,
)
from sim.app.verbs.findings import different_issues, keep_answer, known_issues_json, of_problem, report_remarks
from sim.app.verbs.importing import draft_of, text_of
from sim.app.verbs.options import (
    DiffOptions,
    FilePath,
    changes_as_lines,
    command_line,
    path_of,
    portable,
    with_all_options,
)
from sim.app.verbs.study import Study
from sim.jobs.reading import read_source
from sim.model.files import replace_file
from sim.model.quantities import COST, Prices
from sim.model.schema.option_values import influential_defaults
from sim.model.schema.prices import load_prices
from sim.model.schema.text import read_text
from sim.model.units import format_duration
from sim.results.formats import TextTable
from sim.studies import effects
from sim.studies.differences import (
    InputDifferences,
    Side,
    input_differences,
    side_of,
)
from sim.studies.effects import QuantityDifference
from sim.studies.remarks.failures import has_one_phase
from sim.studies.remarks.load import rocksdb_access_sentence
from sim.studies.run_folder import ADVICE, ANSWER, DIFF, SUMMARY, FolderError


@dataclass(frozen=True, repr=False, eq=False)
class Diff(Displayed):
    """The result of `diff`: differing inputs and their effect on results."""

    verdict: str
    parts: tuple[str | TextTable, ...]  # the verdict, tables, notes
    facts: dict[str, Any]  # for --json
    trouble: tuple[str, ...]  # messages about failed runs and violations
    table: pd.DataFrame = field(repr=False)  # a row per run: columns of `sim.studies.cells`, and `side`
    folder: Path | None = None

    @property
    def has_failed(self) -> bool:
        return bool((self.table["status"] != "ok").any()) if len(self.table) else False

    @property
    def has_violations(self) -> bool:
        return bool((self.table["violations"] > 0).any()) if len(self.table) else False

    def _parts(self) -> Sequence[str | TextTable]:
        return self.parts


@with_all_options(DiffOptions)
def diff(
    a: Study | FilePath, b: Study | FilePath, *, listener: Listener = SILENT, **options: Unpack[DiffOptions]
) -> Diff:
    """Compare the inputs of `a` and `b`, and their results, and store the comparison and its rows in `folder` if it is given.

    `a`, `b`: studies, scenario files, sources that `import_job` reads, or folders written by `run`.  Scenarios and jobs are simulated
    with the same random numbers.

    ScenarioError, RecordingError, FolderError: a side cannot be read.  OptionError: `folder` cannot be written.
    """
    own_changes = [
        (*(side.pinned if isinstance(side, Study) else ()), *changes_as_lines(changes))
        for side, changes in ((a, options["changes_a"]), (b, options["changes_b"]))
    ]
    folder = path_of(options["folder"])
    if folder is not None:
        writable_folder(folder)
    sides = [_read_side(side, changes, options) for side, changes in zip((a, b), own_changes, strict=True)]
    result = _compare(sides, options, listener)
    if folder is not None:
        stored = {"changes": changes_as_lines(options["changes"]), "folder": folder}
        stored |= dict(zip(("changes_a", "changes_b"), own_changes, strict=True))
        command = command_line("diff", [side.name for side in sides], DiffOptions, {**options, **stored})
        _keep(result, folder, command)
        result = replace(result, folder=folder)
    listener.result(result)
    return result


def _compare(sides: Sequence[Side], options: DiffOptions, listener: Listener) -> Diff:
    """Compare the inputs of two sides, and simulate both if they differ."""
    a, b = sides
    warnings = report_remarks(map(of_problem, dict.fromkeys((*a.warnings, *b.warnings))), listener)
    differences = input_differences(a, b, options["replications"])
    notes = [differences.runs] if differences.runs else []
    rows, runs, answer = pd.DataFrame(), "", list[QuantityDifference]()
    trouble = list[str]()
    if differences.changes:
        prices = load_prices(options["prices"])
        count, duration_ns = 2 * options["replications"], differences.before.run.duration_ns
        progress = listener.progress(Work(f"{a.name} and {b.name}", count * duration_ns, count, "runs"))
        with progress as watch, stoppable("nothing is kept of an unfinished comparison"):
            rows = effects.run_both_sides(differences, prices=prices, jobs=options["jobs"], watch=watch)
        at_most = "" if (rows["job_status"] == "RUNNING").all() else "at most "
        seeds = f"{options['replications']} seed{'' if options['replications'] == 1 else 's'} on each side"
        runs = f"{count} runs of {at_most}{format_duration(duration_ns)}, {seeds}"
        answer, trouble = effects.quantities(rows), effects.trouble(rows)
        notes += _notes(a, differences, rows, prices)
    verdict = effects.verdict(differences, answer, rows)
    parts: tuple[str | TextTable, ...] = (
        verdict,
        *(
            f"{change}: {', '.join(names)}"
            for change, names in (("added", differences.added), ("removed", differences.removed))
            if names
        ),
        *effects.tables(differences, answer),
        *filter(None, [runs, *notes, *trouble, effects.same_quantities_sentence(answer)]),
    )
    facts = {
        "a": a.name,
        "b": b.name,
        "verdict": verdict,
        "inputs": [
            {
                "key": change.key,
                "before": change.before_text,
                "after": change.after_text,
                "flink": list(change.flink),
                "about": change.kind,
            }
            for change in differences.changes
        ],
        "added": list(differences.added),
        "removed": list(differences.removed),
        "known_issues": {
            side: known_issues_json([scenario])
            for side, scenario in (("a", differences.before), ("b", differences.after))
        },
        "quantities": [change.plain() for change in answer],
        "notes": [*filter(None, [runs]), *notes],
        "trouble": trouble,
        "findings": list(warnings),
    }
    return Diff(verdict, parts, facts, tuple(trouble), rows)


def _notes(a: Side, differences: InputDifferences, rows: pd.DataFrame, prices: Prices) -> Iterator[str]:
    """Yield notes on the comparison of results."""
    sides = [differences.before, differences.after]
    if len(differences.changes) > 1:
        alone = command_line("diff", [a.name] * 2)
        yield f"What one of them does alone: {alone} --set-b KEY=VALUE"
    yield from filter(
        None,
        [
            effects.unlike_failures_sentence(rows),
            effects.unlike_phases_sentence(rows),
            effects.few_checkpoints_sentence(rows, differences.before.run.duration_ns),
            rocksdb_access_sentence(sides),
        ],
    )
    weaker = [name for name, own in zip("AB", sides, strict=True) if not own.checkpoint.barriers.record.exactly_once]
    if len(weaker) == 1:
        yield (
            f"{weaker[0]} is at least once: after a failure state counts records twice that arrived while a barrier was awaited, which no "
            "row shows; ckptsim run says how many"
        )
    for name in dict.fromkeys(own.name for side in sides for own in side.job.vertices if has_one_phase(side, own)):
        yield (
            f"windows of '{name}' fire, and checkpoints are triggered, at the same distance in all of a run: it may be that no checkpoint "
            f"meets a firing; --set job.{name}.window.phase=VALUE shifts it"
        )
    yield from different_issues(dict(zip("AB", sides, strict=True)))
    if defaults := influential_defaults(sides):
        yield f"left at defaults that often matter, on both sides: {', '.join(defaults)}"
    if COST in rows and rows[COST].notna().any():
        yield f"costs in {prices.currency} per month; prices: {prices.source}"


def _read_side(side: Study | FilePath, changes: Sequence[str], options: DiffOptions) -> Side:
    """Read a side: a study, a scenario file, or a job to import.  `changes`: those to this side only."""
    changes = (*changes_as_lines(options["changes"]), *changes)
    place = side.origin.file if isinstance(side, Study) else Path(side)
    if isinstance(side, Study):
        text, folder = side.origin.text, side.origin.folder
    elif any((place / name).is_file() for name in (SUMMARY, ADVICE, ANSWER, DIFF)):
        raise FolderError(
            f"{place}: holds results, not a job: compare scenarios; 'ckptsim report {place} -o FILE' shows it"
        )
    elif place.suffix in (".yaml", ".yml"):
        text, folder = read_text(place), place.parent
    else:
        text, folder = text_of(draft_of(read_source([place]))), Path()
    return side_of(portable(place), text, folder, changes, options["strategy"])


def _keep(result: Diff, folder: Path, command: str) -> None:
    """Store the rows and the answer for `report`."""
    replace_file(folder / "results.parquet", result.table.to_parquet)
    keep_answer(
        folder,
        DIFF,
        title=f"{result.facts['a']} and {result.facts['b']}",
        question="What differs, and what does that do?",
        verdict=result.verdict,
        parts=result.parts,
        findings=result.facts["findings"],
        assumptions=["Simulated; both sides meet the same random numbers."] if len(result.table) else [],
        command=command,
        data=result.facts,
    )
