"""`diff`: compare the inputs of two scenarios, jobs or results folders, and the effect of the differences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Unpack

from sim.app.verbs.common import (
    SILENT,
    Displayed,
    Listener,
    Work,
    stoppable,
    writable_folder,
)
from sim.app.verbs.findings import different_issues, keep_answer, known_issues_json
from sim.app.verbs.importing import draft_of, text_of
from sim.app.verbs.options import DiffOptions, command_line, lines_of, path_of, portable, with_all_options
from sim.app.verbs.run import StudySource
from sim.jobs.reading import read_source
from sim.model.files import replace_file
from sim.model.quantities import COST, S3_STANDARD
from sim.model.schema.flink_text import deciding_defaults
from sim.model.schema.text import read_text
from sim.model.schema.validation import load_prices
from sim.model.units import format_duration
from sim.results.formats import TextTable
from sim.studies import effects
from sim.studies.comparison import rocksdb_access_sentence
from sim.studies.differences import InputDifferences, input_differences
from sim.studies.run_folder import ADVICE, ANSWER, DIFF, FolderError
from sim.studies.sides import (
    Side,
    side_of,
    side_of_folder,
)

if TYPE_CHECKING:
    import pandas as pd

    from sim.studies.effects import QuantityDifference


@dataclass(frozen=True, slots=True)
class DiffRequest:
    """The two sides to compare, and the options of the comparison."""

    a: Path | StudySource
    b: Path | StudySource
    options: DiffOptions  # with defaults filled in

    def side(self, name: Literal["a", "b"]) -> tuple[Path, tuple[str, ...]]:
        """Return the path of a side and the changes to this side only."""
        given: Path | StudySource = getattr(self, name)
        own = tuple(lines_of(self.options["changes_a"] if name == "a" else self.options["changes_b"]))
        return (given.file, (*given.changes, *own)) if isinstance(given, StudySource) else (given, own)

    def command(self, folder: Path | None) -> str:
        (a, of_a), (b, of_b) = self.side("a"), self.side("b")
        changes = {"changes": lines_of(self.options["changes"]), "changes_a": of_a, "changes_b": of_b}
        return command_line("diff", [a, b], DiffOptions, {**self.options, **changes, "folder": folder})


@dataclass(frozen=True, repr=False, eq=False)
class Diff(Displayed):
    """The result of `diff`: differing inputs and their effect on results."""

    verdict: str
    parts: tuple[str | TextTable, ...]  # an overview that fits a screen, then tables
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
    a: Path | StudySource, b: Path | StudySource, *, listener: Listener = SILENT, **options: Unpack[DiffOptions]
) -> Diff:
    """Compare A with B, and store the result in `folder` if it is given.

    Scenarios and jobs are simulated with the same random numbers.

    ScenarioError, RecordingError, FolderError: a side cannot be read.  OptionError: `folder` cannot be written.
    """
    request = DiffRequest(a, b, options)
    folder = path_of(request.options["folder"])
    if folder is not None:
        writable_folder(folder)
    found = _of_sides(request, _side(request, "a"), _side(request, "b"), listener=listener)
    if folder is not None:
        found = _kept(found, request, folder)
    listener.result(found)
    return found


def _of_sides(request: DiffRequest, a: Side, b: Side, *, listener: Listener) -> Diff:
    given = request.options
    found = input_differences(a, b, given["replications"])
    notes = [*a.notes, *b.notes, *filter(None, [found.runs])]
    if not found.changes:
        return _result(request, found, [], _no_rows(), "", notes)
    prices = S3_STANDARD if given["prices"] is None else load_prices(Path(given["prices"]))
    count, total_ns = effects.simulated_ns(found)
    progress = listener.progress(Work(f"{a.name} and {b.name}", total_ns, count, "runs"))
    with progress as watch, stoppable("nothing is kept of an unfinished comparison"):
        rows = effects.run_both_sides(found, prices=prices, engine=given["engine"], jobs=given["jobs"], watch=watch)
    at_most = "" if (rows["job_status"] == "RUNNING").all() else "at most "
    seeds = f"{given['replications']} seed{'' if given['replications'] == 1 else 's'} on each side"
    runs = f"{count} runs of {at_most}{format_duration(found.before.run.duration_ns)}, {seeds}"
    if len(found.changes) > 1:
        alone = command_line("diff", [request.side("a")[0]] * 2, DiffOptions, {})
        notes.append(f"What one of them does alone: {alone} --set-b KEY=VALUE")
    notes += filter(None, [effects.unlike_failures(rows), rocksdb_access_sentence([found.before, found.after])])
    notes += different_issues({"A": found.before, "B": found.after})
    if defaults := deciding_defaults([found.before, found.after]):
        notes.append(f"at their defaults on both sides, which decide in many jobs: {', '.join(defaults)}")
    if rows.get(COST) is not None and rows[COST].notna().any():
        notes.append(f"costs in {prices.currency} per month; prices: {prices.source}")
    return _result(request, found, effects.quantities(rows), rows, runs, notes)


def _result(
    request: DiffRequest,
    found: InputDifferences,
    answer: Sequence[QuantityDifference],
    rows: pd.DataFrame,
    runs: str,
    notes: Sequence[str],
) -> Diff:
    trouble = effects.trouble(rows) if len(rows) else []
    place_a, place_b = request.side("a")[0], request.side("b")[0]
    verdict = effects.verdict(found, answer, has_failed=bool(len(rows) and (rows["status"] != "ok").any()))
    screen = effects.screen(found, answer, verdict, runs)
    others = [*notes, *trouble, effects.same_quantities(answer)]
    parts: tuple[str | TextTable, ...] = (screen, *effects.tables(found, answer), *filter(None, others))
    inputs = [
        {
            "key": own.key,
            "before": own.before_text,
            "after": own.after_text,
            "flink": list(own.flink),
            "about": own.kind,
        }
        for own in found.changes
    ]
    data = {
        "a": portable(place_a),
        "b": portable(place_b),
        "verdict": verdict,
        "inputs": inputs,
        "renamed": [list(pair) for pair in found.renamed],
        "added": list(found.added),
        "removed": list(found.removed),
        "known_issues": {
            side: known_issues_json([scenario]) for side, scenario in (("a", found.before), ("b", found.after))
        },
        "quantities": [own.plain() for own in answer],
        "notes": [*filter(None, [runs]), *notes],
        "trouble": trouble,
    }
    return Diff(verdict, parts, data, tuple(trouble), rows)


def _side(request: DiffRequest, name: Literal["a", "b"]) -> Side:
    """Return a side: a study, a scenario file, the scenario of a results folder, or an imported job."""
    given, strategy = getattr(request, name), request.options["strategy"]
    place, own = request.side(name)
    changes = (*lines_of(request.options["changes"]), *own)
    if isinstance(given, StudySource):
        return side_of(portable(place), given.text, given.folder, changes, strategy)
    if place.is_dir() and (place / "comparison.json").is_file():
        return side_of_folder(place, changes, strategy)
    if any((place / name).is_file() for name in (ADVICE, ANSWER, DIFF)):
        raise FolderError(
            f"{place}: holds an answer, not a job: compare scenarios; 'ckptsim report {place} -o FILE' shows it"
        )
    if place.suffix in (".yaml", ".yml"):
        return side_of(portable(place), read_text(place), place.parent, changes, strategy)
    return side_of(portable(place), text_of(draft_of(read_source([place]))), Path(), changes, strategy)


def _no_rows() -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame()


def _kept(found: Diff, request: DiffRequest, folder: Path) -> Diff:
    """Store the rows and the answer for `report`, and return the result with its folder."""
    replace_file(folder / "results.parquet", found.table.to_parquet)
    keep_answer(
        folder,
        DIFF,
        title=f"{found.facts['a']} and {found.facts['b']}",
        question="What differs, and what does that do?",
        verdict=found.verdict,
        parts=found.parts,
        findings=[],
        assumptions=["Simulated; both sides meet the same random numbers."] if len(found.table) else [],
        command=request.command(folder),
        data=found.facts,
    )
    return replace(found, folder=folder)
