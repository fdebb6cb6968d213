"""Observations of a real job: the sections `backtest:` and `residuals:`, and the history file that `import` writes them to."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from pydantic import Field, create_model

from sim.model import randomness, scenario
from sim.model.files import replace_file, replace_text
from sim.model.job import Vertex
from sim.model.options import ValidationContext, attribute_of
from sim.model.quantities import Kind, Level, of_history
from sim.model.scenario import MAX_KEPT_DURATIONS
from sim.model.schema.sections import Options, Section, build_model, validate_as
from sim.model.schema.text import Mapping as Document
from sim.model.schema.text import Mark, Reading, ScenarioError, compose, read_referenced_text
from sim.model.text import did_you_mean
from sim.model.units import format_duration, format_rate, format_size
from sim.model.value_types import Duration, Natural, Positive, RecordRate, Size, choice

# ---- The keys of `backtest:`: one per quantity, with observed and predicted quantiles.


class _Quantiles(Section):
    """Quantiles over checkpoints, or over runs."""

    count: Natural
    """Number of values."""


class _Compared(Section):
    """A quantity, observed and predicted."""

    vertex: str | None = None
    """Not set: the whole checkpoint or job."""
    off: list[Annotated[str, choice("p50", "p90")]] | None = None
    """Quantiles that differ by more than repetitions do."""
    cause: str | None = None
    """Written by older versions of `import`; it has no effect."""


_LEAVES: dict[Kind, Any] = {"duration": Duration, "size": Size, "rate": RecordRate}
_LEVELS = {"p50": "Median.", "p90": "90 % are not larger.", "max": "The largest."}


def _compared(kind: Kind) -> type[Section]:
    """Return the section class for quantities of this kind, with observed and predicted quantiles."""
    levels: dict[str, Any] = {
        name: (_LEAVES[kind] | None, Field(None, description=text)) for name, text in _LEVELS.items()
    }
    quantiles = create_model(f"{kind.capitalize()}s", __base__=_Quantiles, __doc__=_Quantiles.__doc__, **levels)
    sides: dict[str, Any] = {
        "observed": (quantiles, Field(description="In the history.")),
        "predicted": (quantiles, Field(description="In simulation.")),
    }
    return create_model(
        f"Compared{kind.capitalize()}s", __base__=_Compared, __doc__=f"Observed and predicted {kind}s.", **sides
    )


_KINDS: dict[Kind, type[Section]] = {kind: _compared(kind) for kind in _LEAVES}


_ROWS: dict[str, Any] = {
    attribute_of(key): (
        _KINDS[own[0].kind] | None,
        Field(None, description=f"{own[0].title.capitalize()}: {own[0].meaning}."),
    )
    for key, own in of_history().items()
}
_Rows = create_model("_Rows", __base__=Options, **_ROWS)


class OtherSettings(Options, of=(scenario.OtherSettings,), axes=False):
    """Factors of end-to-end durations."""


class Failures(Options, of=(scenario.ObservedFailures,), axes=False):
    """Checkpoints that failed, and failures of the job."""

    reason: str | None = None


class Backtest(_Rows, of=(scenario.Backtest,), axes=False):  # type: ignore[misc, valid-type, call-arg]  # the base class is generated from the quantities
    """What `import` found when it simulated the job as it is.  Nothing of a run depends on it."""

    longest: list[Duration] | None = None
    other_settings: OtherSettings | None = None
    failures: Failures | None = None


# ---- `residuals:`: observed minus modelled durations of the checkpoints of a history.


class OfVertex(Section):
    """For each subtask a list with a number per checkpoint of the history, in units of `unit`.  Further subtasks take theirs in turn."""

    scheduling: list[list[Natural]] | None = None
    """Sources only: from the trigger call until the task thread processes it."""
    sync: list[list[Natural]] | None = None
    """Synchronous phase."""
    async_: list[list[Natural]] | None = None
    """Time in the asynchronous phase."""
    acknowledgement: list[list[Natural]] | None = None
    """From the end of the asynchronous phase until the coordinator has processed the acknowledgement."""
    backend: str | None = None
    """State backend of the observations, such as rocksdb or hashmap+changelog; with another one residuals are not used."""


class Residuals(Section):
    """What checkpoints of a real job took beyond the model.  Each simulated checkpoint draws one of the history, for all its subtasks."""

    checkpoints: Positive
    """Number of observed checkpoints."""
    unit: Duration
    """Unit of all numbers below."""
    of: dict[str, OfVertex]
    """Residuals by vertex."""


def build_residuals(section: Residuals | None, vertices: Iterable[Vertex], reading: Reading) -> randomness.Residuals:
    """Return the model of `residuals:`, which draws nothing if `section` is None.  Errors are reported to `reading`.

    `vertices`: vertices of the job.
    """
    if section is None:
        return randomness.Residuals()
    found = list(vertices)
    sources = {vertex.name: vertex.source is not None for vertex in found}
    backends = {vertex.name: vertex.state.backend_name for vertex in found if vertex.state is not None}
    return randomness.Residuals(section.checkpoints, tuple(_residuals(section, sources, backends, reading)))


def _residuals(
    section: Residuals, sources: dict[str, bool], backends: dict[str, str], reading: Reading
) -> Iterator[randomness.Residual]:
    """Yield the residuals of each vertex and phase [ns].  Errors are reported to `reading`.

    Residuals of the sync and async phases are left out if they were observed with another state backend.  `sources`: vertex name ->
    whether it is a source.  `backends`: vertex name -> its state backend.
    """
    for name, of_vertex in section.of.items():
        if name not in sources:
            reading.wrong(("residuals", "of", name), f"there is no vertex '{name}'{did_you_mean(name, list(sources))}")
            continue
        for part in randomness.PARTS:
            lists = getattr(of_vertex, attribute_of(part))
            if lists is None or (
                part in ("sync", "async") and of_vertex.backend is not None and of_vertex.backend != backends.get(name)
            ):
                continue
            path = ("residuals", "of", name, part)
            if not lists:
                reading.wrong(path, "is empty: write a list per subtask, or remove the key")
            if part == "scheduling" and not sources[name]:
                reading.wrong(path, "only sources are called; the others get a barrier")
            for index, numbers in enumerate(lists):
                if len(numbers) != section.checkpoints:
                    message = f"has {len(numbers)} numbers for subtask {index}: expected one for each of {section.checkpoints} checkpoints"
                    reading.wrong((*path, index), message)
            yield randomness.Residual(
                name, part, tuple(tuple(number * section.unit for number in numbers) for numbers in lists)
            )


def tail_sentence(found: randomness.Residuals) -> str:
    """Return a clause on the residuals that are drawn, or "" if none are."""
    if not found.checkpoints:
        return ""
    return f"tails are drawn from the residuals of {found.checkpoints} checkpoints of the job's own history"


# ---- Building the model of `backtest:`.

_UNIT: dict[Kind, float] = {"duration": 1e6, "size": 1.0, "rate": 1.0}
"""Divisors: a section has durations in ns, and its model has them in ms."""


def build_backtest(written: Backtest, reading: Reading) -> scenario.Backtest:
    """Return the model of `backtest:`, with compared durations in ms.  Errors are reported to `reading`."""
    at, longest, compared = ValidationContext(("backtest",), reading), written.longest or [], []
    if any(after > before for before, after in pairwise(longest)):
        at.error("write the longest duration first", "longest")
    for quantity, (first, *_) in of_history().items():
        if (section := getattr(written, attribute_of(quantity))) is None:
            continue
        observed, predicted = (
            _quantiles(getattr(section, side), first.kind, at.child(quantity).child(side))
            for side in ("observed", "predicted")
        )
        compared.append(
            scenario.ComparedQuantity(quantity, observed, predicted, section.vertex or "", tuple(section.off or ()))
        )
    longest_ms = tuple(duration / 1e6 for duration in longest)
    return build_model(scenario.Backtest, written, at, compared=tuple(compared), longest_ms=longest_ms)


def _quantiles(section: Any, kind: Kind, at: ValidationContext) -> scenario.Quantiles:
    """Return the quantiles of a section, in ms if they are durations.  p50 <= p90 <= max are all set, or none if `count` is 0."""
    values = [value for value in (section.p50, section.p90, section.max) if value is not None]
    if len(values) != (3 if section.count else 0):
        at.error("write p50, p90, max and count, or count: 0 alone")
    elif "unlimited" in values or sorted(values) != values:
        at.error("expected p50 <= p90 <= max")
    elif values:
        p50, p90, largest = (float(value) / _UNIT[kind] for value in values)
        return scenario.Quantiles(p50, p90, largest, section.count)
    return scenario.Quantiles()


# ---- The verdict of a backtest as a sentence, which every command that runs an imported file prints.


def verdict(backtest: scenario.Backtest) -> str:
    """Return whether the simulation agrees with the imported history, and by how much it deviates.

    For example ``the simulation deviates from the history of 24 checkpoints that was imported: end-to-end p90 -54 %``.
    """
    if missed := contradiction(backtest):
        return missed
    history = f"the history of {backtest.checkpoints} checkpoints that was imported"
    if not backtest.off:
        return f"the simulation agrees with {history}: it deviates by no more than repeated runs of one job"
    changes = ", ".join(agreement_text(row, level) for row in backtest.off for level in row.off)
    return f"the simulation deviates from {history}: {changes}"


def contradiction(backtest: scenario.Backtest | None) -> str:
    """Return a warning if the simulation completes most checkpoints and the history does not, or none and it does, else an empty text."""
    durations = None if backtest is None else backtest.of("end-to-end")
    if durations is not None and durations.observed.count and not durations.predicted.count:
        return (
            f"the simulation does not reproduce this job: {durations.observed.count} checkpoints of its history completed, and none does in "
            "the simulation"
        )
    if backtest is None or (failures := backtest.failures) is None or not failures.are_missed:
        return ""
    reason = f" ({failures.reason})" if failures.reason else ""
    restarts = (
        f", and the job failed {'once' if failures.job_failures == 1 else f'{failures.job_failures} times'}"
        if failures.job_failures
        else ""
    )
    observed, latest = failures.failed + failures.completed, failures.latest_failed
    since = f", the latest {latest} among them" if 1 < latest < observed else ""
    predicted = failures.predicted_failed + failures.predicted_completed
    return (
        f"the simulation does not reproduce the failures of this job: {failures.failed} of {observed} checkpoints of its "
        f"history failed{reason}{since}{restarts}; in the simulation {failures.predicted_failed} of {predicted} failed. "
        "Predicted durations and recovery times hold only after the cause of these failures is removed"
    )


def agreement_text(row: scenario.ComparedQuantity, level: Level) -> str:
    """Return the deviation of the prediction from the observation, for example ``end-to-end p90 -54 %``."""
    change = row.change(level)
    return f"{row.quantity} {level} {'not comparable' if change is None else f'{100 * change:+.0f} %'}"


# ---- Backtest -> the section `backtest:`, for `sim.model.schema.text.write`.


def section_of(backtest: scenario.Backtest) -> dict[str, Any]:
    """Return the content of `backtest:`."""
    section: dict[str, Any] = {"runs": backtest.runs, "simulated": format_duration(backtest.simulated_ns)}
    if backtest.longest_ms:
        section["longest"] = list(map(duration_text, backtest.longest_ms))
    if backtest.tail != 1:
        section["tail"] = Fraction(f"{backtest.tail:.3g}")
    if backtest.other_settings is not None:
        factors = {"p50": backtest.other_settings.p50, "p90": backtest.other_settings.p90}
        section["other-settings"] = {
            level: Fraction(f"{factor:.3g}") for level, factor in factors.items() if math.isfinite(factor)
        }
    if (failures := backtest.failures) is not None:
        given = {
            key.replace("_", "-"): value
            for key, value in asdict(failures).items()
            if value or "completed" in key or "failed" in key
        }
        if ran_ns := given.pop("ran-ns", 0):
            given["ran"] = format_duration(ran_ns)
        section["failures"] = given
    return section | {compared.quantity: _comparison_section(compared) for compared in backtest.compared}


def duration_text(ms: float) -> str:
    """Format a duration as in the sections `residuals:` and `backtest:`."""
    return _value_text(ms, "duration")


def _comparison_section(compared: scenario.ComparedQuantity) -> dict[str, Any]:
    kind = of_history()[compared.quantity][0].kind
    section = {
        "vertex": compared.vertex,
        "observed": _quantiles_section(compared.observed, kind),
        "predicted": _quantiles_section(compared.predicted, kind),
        "off": list(compared.off),
    }
    return {key: value for key, value in section.items() if value}


def _quantiles_section(quantiles: scenario.Quantiles, kind: Kind) -> dict[str, Any]:
    if not quantiles.count:
        return {"count": 0}
    values = {"p50": quantiles.p50, "p90": quantiles.p90, "max": quantiles.largest}
    return {name: _value_text(value, kind) for name, value in values.items()} | {"count": quantiles.count}


def _value_text(value: float, kind: Kind) -> str:
    """Round to four significant digits; repetitions vary more."""
    rounded = Fraction(f"{value:.4g}")
    match kind:
        case "duration":
            return format_duration(round(rounded * 10**6))
        case "size":
            return format_size(round(rounded))
        case "rate":
            return format_rate(rounded)


# ---- The history file of an imported scenario, in JSON.  The scenario refers to it by `history: job.history.json`.
#
#   job.yaml                               job.history.json
#     job: ...                               {"version": "1",
#     history: job.history.json   ---->       "checkpoints": {...},    completed checkpoints, for the page of results
#                                             "residuals": {...},      sections of the scenario
#                                             "backtest": {...}}
#
# Older scenarios contain the two sections.  Both forms are read in the same way: `put_history` inserts the sections into
# the document before validation, so that errors carry file and line.  `split_history` moves the sections of a text into
# a history file, and `inline_history` does the reverse.

HISTORY_SUFFIX = ".history.json"
HISTORY_SECTIONS = ("residuals", "backtest")
"""Scenario sections that are stored in the history file."""
_EXPECTED = (
    "a history file has the keys version, checkpoints, residuals or backtest; "
    "'ckptsim import SOURCE -o job.yaml' writes it next to the scenario"
)
_MISSING = (
    "'ckptsim import' writes it next to the scenario: keep both files together, or remove this line "
    "(then there are no residuals and no backtest)"
)

Checkpoints = Mapping[str, Any]
"""Completed checkpoints, for other programs and for the longest durations in `backtest:`.

* `id`, and each quantity of `sim.model.quantities`: a list with a value per checkpoint; null is unknown
* `units`: quantity -> unit
* `first`: id of the job's first checkpoint, if it is listed.  Comparisons exclude it, because queues were still filling.
* `earlier`: number of earlier checkpoints that are not listed
"""


class _HistoryFile(Section):
    """The content of a history file."""

    version: Annotated[str, choice("1")]
    about: str | None = None
    vertices: list[str] | None = None
    """The vertices of the job that was imported."""
    checkpoints: dict[str, Any] | None = None
    residuals: dict[str, Any] | None = None
    backtest: dict[str, Any] | None = None


class ScenarioAndHistory(NamedTuple):
    """The texts of a scenario file and of its history file, which is None without a history."""

    scenario: str
    history: str | None


def history_file_name(file: Path) -> str:
    """Return the name of a scenario's history file: ``job.yaml`` -> ``job.history.json``."""
    return f"{file.name.removesuffix(file.suffix)}{HISTORY_SUFFIX}"


def put_history(document: Any, reading: Reading, folder: Path) -> None:
    """Insert the content of the `history:` file into the document.  Errors are added to `reading`, with file and line."""
    name = document.get("history") if isinstance(document, Document) else None
    if not isinstance(name, str):
        return  # without a history, or with a value that the validation of the document reports
    for key in HISTORY_SECTIONS:
        if key in document:
            reading.wrong((key,), f"conflicts with history: {name}; remove one of the two")
            return
    try:
        history, source = _load_history(read_referenced_text(folder / name), str(folder / name))
    except ScenarioError as error:
        (problem,) = error.problems
        reading.wrong(("history",), f"{folder / name}: {problem.message}; {_MISSING}")
        return
    reading.problems.update(source.problems)
    job, vertices = document.get("job"), history.get("vertices")
    if vertices and isinstance(job, Document) and not set(vertices) & set(job):
        vertices = f"with the vertices {_names_text(vertices)}; this one has {_names_text(job)}"
        reading.wrong(("history",), f"{folder / name} is the history of another job, {vertices}")
        return
    document.update({key: history[key] for key in HISTORY_SECTIONS if key in history})
    reading.marks.update({path: mark for path, mark in source.marks.items() if path and path[0] in HISTORY_SECTIONS})
    if isinstance(backtest := document.get("backtest"), Document) and (longest := _longest_durations(history)):
        backtest.setdefault("longest", longest)


_BLOCK = re.compile(r"(?<=\n)(?:#.*\n)*(?:residuals|backtest):.*\n?(?:[ \t].*\n?|\n)*")
"""A section of the history with the comments directly above it, unless these open the file."""


def split_history(text: str, name: str, checkpoints: Checkpoints | None = None) -> ScenarioAndHistory:
    """Split a self-contained scenario into scenario text and the text of its history file, which the scenario calls `name`.

    Comments of moved sections are written to the key `about` of the history file; all others remain in place.
    """
    document, blocks = compose(text, Reading(name)), list(_BLOCK.finditer(text))
    plain = document if isinstance(document, Document) else Document()
    sections = {key: dict(plain[key]) for key in HISTORY_SECTIONS if isinstance(plain.get(key), Document)}
    if len(blocks) != len(sections) or not plain or not (sections or checkpoints):
        return ScenarioAndHistory(text, None)
    about = [comment for block in blocks for comment in re.findall(r"(?m)^(?:\w+:\s*)?#\s*(.*\S)", block[0])]
    place = blocks[0].start() if blocks else len(text)
    quoted = name if re.fullmatch(r"[\w./-]+", name) else json.dumps(name, ensure_ascii=False)
    line = f"history: {quoted}  # checkpoint history of the recorded job\n"
    if checkpoints and not checkpoints.get("earlier") and "backtest" in sections:
        sections["backtest"].pop("longest", None)  # `put_history` computes it from the checkpoints
    content: dict[str, Any] = {"version": "1", "about": "; ".join(about), "vertices": list(plain.get("job") or ())}
    content |= {"checkpoints": checkpoints or {}, **sections}
    history = _json({key: value for key, value in content.items() if value}) + "\n"
    return ScenarioAndHistory(text[:place] + line + _BLOCK.sub("", text)[place:], history)


def inline_history(text: str, folder: Path) -> str:
    """Return a self-contained scenario; the inverse of `split_history`.

    The text is returned unchanged if it names no history file, or one that cannot be read.
    """
    reading = Reading("")
    document = compose(text, reading)
    if not isinstance(document, Document) or "history" not in document:
        return text
    put_history(document, reading, folder)
    if reading.problems:
        return text
    sections = "".join(
        f"{key}: {json.dumps(document[key], ensure_ascii=False, default=_number)}\n"
        for key in HISTORY_SECTIONS
        if key in document
    )
    return re.sub(r"(?m)^history:.*\n?", lambda _: sections, text, count=1)


def write_scenario_and_history(text: str, file: Path, checkpoints: Checkpoints | None = None) -> None:
    """Write a self-contained scenario to `file`, and its history to the file next to it.

    The history file is replaced first, so that a new scenario never refers to an old history.  A pipe or device gets the
    self-contained text.
    """
    scenario, history = (
        (text, None)
        if file.exists() and not file.is_file()
        else split_history(text, history_file_name(file), checkpoints)
    )

    def write(partial: Path) -> None:
        partial.write_text(scenario, encoding="utf-8")
        if history is not None:
            replace_text(file.parent / history_file_name(file), history)

    replace_file(file, write)


@lru_cache(maxsize=4)
def _load_history(text: str, file: str) -> tuple[Document, Reading]:
    """Return (content, positions and errors) of a history file.

    The content is empty if there are errors.  Cached, because all settings of a sweep share the file.
    """
    source = Reading(file)
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        source.marks[()] = Mark(file, error.lineno, error.colno)
        source.wrong((), f"is not JSON: {error.msg}; {_EXPECTED}")
    except (RecursionError, ValueError):  # numbers of thousands of digits
        source.wrong((), f"is nested too deeply, or contains a number with too many digits: {_EXPECTED}")
    content = None if source.problems else compose(text, source)
    if isinstance(content, Document) and {"version", "checkpoints", *HISTORY_SECTIONS} & set(content):
        validate_as(_HistoryFile, content, source)
    elif not source.problems:
        source.wrong((), f"is not a history file: {_EXPECTED}")
    return content if isinstance(content, Document) and not source.problems else Document(), source


def _longest_durations(history: Document) -> list[str]:
    """Return the longest end-to-end durations in descending order, for the key `longest` of `backtest:`."""
    table = history.get("checkpoints") or {}
    ids, durations_ms = (
        values if isinstance(values := table.get(name), list) else () for name in ("id", "end_to_end_duration")
    )
    known_ms = [
        float(ms)
        for number, ms in zip(ids, durations_ms, strict=False)
        if isinstance(ms, int | Decimal) and number != table.get("first")
    ]
    return [duration_text(ms) for ms in sorted(known_ms, reverse=True)[:MAX_KEPT_DURATIONS]]


def _json(value: Any, indent: int = 0) -> str:
    """Format JSON with one line per key of a mapping that contains mappings or lists, and all other values on one line."""
    if isinstance(value, Mapping) and any(isinstance(inner, Mapping | list | tuple) for inner in value.values()):
        inner = (f"{' ' * (indent + 1)}{json.dumps(key)}: {_json(item, indent + 1)}" for key, item in value.items())
        return "{\n" + ",\n".join(inner) + f"\n{' ' * indent}}}"
    return json.dumps(value, ensure_ascii=False, allow_nan=False, default=_number)


def _number(value: Decimal) -> int | float:
    return int(value) if value == int(value) else float(value)


def _names_text(names: Any) -> str:
    few = [str(name) for name in names][:4]
    return ", ".join(few) + (" and more" if len(names) > len(few) else "")
