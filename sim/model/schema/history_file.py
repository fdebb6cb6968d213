"""Read, validate and write the history file of an imported scenario."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from pydantic import Field, create_model

from sim.model.backtest import MAX_KEPT_DURATIONS
from sim.model.files import replace_file, replace_text
from sim.model.quantities import Kind, of_history, quantities
from sim.model.schema.fields import Natural, Number, choice
from sim.model.schema.sections import Section
from sim.model.schema.text import Mapping as Plain
from sim.model.schema.text import Mark, Reading, ScenarioError, compose, read_beside
from sim.model.schema.validation import validate_as
from sim.model.units import format_duration, format_rate, format_size

if TYPE_CHECKING:
    from sim.model.backtest import Backtest, ComparedQuantity, Quantiles
    from sim.model.quantities import Level


# ---- The verdict of a backtest as a sentence, for all verbs that run a file with one.


def verdict(backtest: Backtest) -> str:
    """``the simulation is off from the history of 24 checkpoints that was imported: end-to-end p90 -54 %``."""
    if missed := missed_failures(backtest):
        return missed
    history = f"the history of {backtest.checkpoints} checkpoints that was imported"
    if not backtest.off:
        return f"the simulation agrees with {history} as repetitions of one job do"
    changes = ", ".join(agreement_text(row, level) for row in backtest.off for level in row.off)
    return f"the simulation is off from {history}: {changes}"


def missed_failures(backtest: Backtest | None) -> str:
    """``the simulation does not reproduce the failures of this job: ...``.  Empty: it does, or there were few."""
    if backtest is None or (own := backtest.failures) is None or not own.are_missed:
        return ""
    reason = f" ({own.reason})" if own.reason else ""
    restarts = (
        f", and the job failed {'once' if own.job_failures == 1 else f'{own.job_failures} times'}"
        if own.job_failures
        else ""
    )
    seen, predicted = own.failed + own.completed, own.predicted_failed + own.predicted_completed
    return (
        f"the simulation does not reproduce the failures of this job: {own.failed} of {seen} checkpoints of its history "
        f"failed{reason}{restarts}; in the simulation {own.predicted_failed} of {predicted} failed. "
        "What it says of durations and recovery holds only once the cause of these failures is removed"
    )


def agreement_text(row: ComparedQuantity, level: Level) -> str:
    """``end-to-end p90 -54 %``: predicted against observed."""
    change = row.change(level)
    return f"{row.quantity} {level} {'not seen' if change is None else f'{100 * change:+.0f} %'}"


# ---- The model of a backtest -> `backtest:`, as `sim.model.schema.writer.write` takes it.


def section_of(backtest: Backtest) -> dict[str, Any]:
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
    return section | {compared.quantity: _compared(compared) for compared in backtest.compared}


def duration_text(ms: float) -> str:
    """A duration as the section `history` writes it."""
    return _text(ms, "duration")


def _compared(compared: ComparedQuantity) -> dict[str, Any]:
    kind = of_history()[compared.quantity][0].kind
    vertex = {"vertex": compared.vertex} if compared.vertex else {}
    off = {"off": list(compared.off)} if compared.off else {}
    cause = {"cause": compared.cause} if compared.cause else {}
    return (
        vertex
        | {"observed": _quantiles(compared.observed, kind), "predicted": _quantiles(compared.predicted, kind)}
        | off
        | cause
    )


def _quantiles(quantiles: Quantiles, kind: Kind) -> dict[str, Any]:
    if not quantiles.count:
        return {"count": 0}
    values = {"p50": quantiles.p50, "p90": quantiles.p90, "max": quantiles.largest}
    return {name: _text(value, kind) for name, value in values.items()} | {"count": quantiles.count}


def _text(value: float, kind: Kind) -> str:
    """Round to four significant digits; repetitions vary more."""
    rounded = Fraction(f"{value:.4g}")
    match kind:
        case "duration":
            return format_duration(round(rounded * 10**6))
        case "size":
            return format_size(round(rounded))
        case "rate":
            return format_rate(rounded)


# ---- The history file, JSON beside an imported scenario: its checkpoints, residuals and backtest.  The scenario names it in one line.
#
# Older files have the sections `residuals:` and `backtest:` themselves.  Both are read alike:  `put_history` puts the
# sections of the file into the document before it is checked, and mistakes are told at their place in the file.
# `split_history` takes them out of a text again.

ENDING = ".history.json"
SECTIONS = ("residuals", "backtest")
"""Scenario sections that are stored in the history file."""
_EXPECTED = "a history has version, checkpoints, residuals or backtest, as 'ckptsim import SOURCE -o job.yaml' writes it beside the scenario"
_MISSING = "'ckptsim import' writes it beside the scenario: keep both together, or remove the line and do without tails and backtest"

Checkpoints = Mapping[str, Any]
"""Column -> a value per completed checkpoint: `id`, and quantities in their units.  `first`: the number of the job's first checkpoint."""


class _Checkpoints(Section):
    """Completed checkpoints of the history, a value each.  Quantities are those of `sim.model.quantities`, in their units."""

    id: list[Natural]
    """Flink's numbers."""
    first: Natural | None = None
    """The job's first checkpoint, if listed: excluded from comparisons, because queues were still filling."""
    earlier: Natural | None = None
    """Number of earlier checkpoints that are not listed."""
    units: dict[str, str] | None = None
    """Quantity -> unit, for other programs."""


_COLUMNS: dict[str, Any] = {
    quantity.name: (list[Number | None] | None, Field(None, alias=quantity.name))
    for quantity in quantities(lambda quantity: quantity.rows == "checkpoint")
}


class _File(Section):
    """The content of a history file."""

    version: Annotated[str, choice("1")]
    about: str | None = None
    vertices: list[str] | None = None
    """The vertices of the job that was imported."""
    checkpoints: create_model("_Columns", __base__=_Checkpoints, **_COLUMNS) | None = None  # type: ignore[valid-type]
    residuals: dict[str, Any] | None = None
    backtest: dict[str, Any] | None = None


class ScenarioAndHistory(NamedTuple):
    """The texts of a scenario file and of its history file, which is None without a history."""

    scenario: str
    history: str | None


def name_beside(file: Path) -> str:
    """``job.yaml`` -> ``job.history.json``."""
    return f"{file.name.removesuffix(file.suffix)}{ENDING}"


def put_history(plain: Any, reading: Reading, folder: Path) -> None:
    """Insert the content of the `history:` file into the document.  Errors are added to `reading`, with file and line."""
    name = plain.get("history") if isinstance(plain, Plain) else None
    if not isinstance(name, str):
        return  # there is none, or the check of the document says what is wrong
    for key in SECTIONS:
        if key in plain:
            reading.wrong((key,), f"stands beside history: {name}: remove one of both")
            return
    try:
        found, given, source = _content(read_beside(folder / name), str(folder / name))
    except ScenarioError as error:
        (problem,) = error.problems
        reading.wrong(("history",), f"{folder / name}: {problem.message}; {_MISSING}")
        return
    reading.problems.update(source.problems)
    if found is None or given is None:
        return
    job = plain.get("job")
    if given.vertices and isinstance(job, Plain) and not set(given.vertices) & set(job):
        others = f"of {_listed(given.vertices)}; this one has {_listed(job)}"
        reading.wrong(("history",), f"{folder / name} is the history of another job, {others}")
        return
    plain.update({key: found[key] for key in SECTIONS if key in found})
    reading.marks.update({path: mark for path, mark in source.marks.items() if path and path[0] in SECTIONS})
    if (
        given.checkpoints
        and isinstance(backtest := plain.get("backtest"), Plain)
        and (longest := _longest(given.checkpoints))
    ):
        backtest.setdefault("longest", longest)


def split_history(text: str, name: str, checkpoints: Checkpoints | None = None) -> ScenarioAndHistory:
    """Split a self-contained scenario into scenario text and the text of its history file, which the scenario calls `name`.

    Comments stay where they are; that of a section that is taken out becomes `about`.
    """
    reading = Reading(name)
    plain = compose(text, reading)
    if not isinstance(plain, Plain):
        return ScenarioAndHistory(text, None)
    sections = {key: dict(plain[key]) for key in SECTIONS if isinstance(plain.get(key), Plain)}
    if not sections and not checkpoints:
        return ScenarioAndHistory(text, None)
    lines = text.splitlines(keepends=True)
    starts = sorted(_start(lines, mark.line - 1) for path, mark in reading.marks.items() if len(path) == 1)
    about, out = list[str](), set[int]()
    for key in sections:
        begin = _start(lines, reading.marks[key,].line - 1)
        end = next((start for start in starts if start > begin), len(lines))
        about += _comments(lines[begin:end], key)
        out |= set(range(begin, end))
    place = min(out, default=len(lines))
    quoted = name if re.fullmatch(r"[\w./-]+", name) else json.dumps(name, ensure_ascii=False)
    line = f"history: {quoted}  # what was seen of the job's checkpoints, and how well the simulation agrees\n"
    kept = [text for number, text in enumerate(lines) if number < place and number not in out]
    kept += [line, *(text for number, text in enumerate(lines) if number >= place and number not in out)]
    if checkpoints and not checkpoints.get("earlier") and "backtest" in sections:
        sections["backtest"].pop("longest", None)  # the checkpoints say it
    content: dict[str, Any] = {"version": "1", "about": "; ".join(about), "vertices": list(plain.get("job") or ())}
    content |= {"checkpoints": checkpoints or {}, **sections}
    return ScenarioAndHistory("".join(kept), _json({key: value for key, value in content.items() if value}) + "\n")


def joined(text: str, folder: Path) -> str:
    """The inverse of `split_history`: return a self-contained scenario.  Returned unchanged if its history cannot be read."""
    reading = Reading("")
    plain = compose(text, reading)
    if not isinstance(plain, Plain) or "history" not in plain:
        return text
    lines = text.splitlines(keepends=True)
    begin = reading.marks["history",].line - 1
    starts = sorted(_start(lines, mark.line - 1) for path, mark in reading.marks.items() if len(path) == 1)
    put_history(plain, reading, folder)
    if reading.problems:
        return text
    end = next((start for start in starts if start > begin), len(lines))
    sections = (
        f"{key}: {json.dumps(plain[key], ensure_ascii=False, default=_number)}\n" for key in SECTIONS if key in plain
    )
    return "".join([*lines[:begin], *sections, *lines[end:]])


def write_scenario_and_history(text: str, file: Path, checkpoints: Checkpoints | None = None) -> None:
    """Write a self-contained scenario to `file`, and beside it what belongs into its history; to a pipe or a device as it is.

    A scenario that is kept finds the history that it was written with, whatever fails in between.
    """
    scenario, history = (
        (text, None) if file.exists() and not file.is_file() else split_history(text, name_beside(file), checkpoints)
    )

    def write(partial: Path) -> None:
        partial.write_text(scenario, encoding="utf-8")
        if history is not None:
            replace_text(file.parent / name_beside(file), history)

    replace_file(file, write)


@lru_cache(maxsize=4)
def _content(text: str, file: str) -> tuple[Plain | None, _File | None, Reading]:
    """Return (raw, validated, Reading with positions and errors) of a history file.  Cached: the settings of a sweep share it."""
    source = Reading(file)
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        source.marks[()] = Mark(file, error.lineno, error.colno)
        source.wrong((), f"is not JSON: {error.msg}; {_EXPECTED}")
    except (RecursionError, ValueError):  # numbers of thousands of digits
        source.wrong((), f"is nested too deeply, or has too long numbers: {_EXPECTED}")
    found, given = None if source.problems else compose(text, source), None
    if isinstance(found, Plain) and {"version", "checkpoints", *SECTIONS} & set(found):
        given = validate_as(_File, found, source)
        _check(given.checkpoints if given is not None else None, source)
    elif not source.problems:
        source.wrong((), f"is not a history of a job: {_EXPECTED}")
    return (None, None, source) if source.problems else (found, given, source)


def _check(checkpoints: Any, source: Reading) -> None:
    columns = {} if checkpoints is None else {name: values for name, values in checkpoints if isinstance(values, list)}
    for name, values in columns.items():
        if len(values) != len(columns["id"]):
            source.wrong(
                ("checkpoints", name),
                f"has {len(values)} values: expected one for each of {len(columns['id'])} checkpoints",
            )


def _longest(checkpoints: Any) -> list[str]:
    """The longest durations, the longest first, as a backtest has them."""
    durations = zip(checkpoints.id, checkpoints.end_to_end_duration or (), strict=False)
    known = [float(ms) for number, ms in durations if ms is not None and number != checkpoints.first]
    return [duration_text(ms) for ms in sorted(known, reverse=True)[:MAX_KEPT_DURATIONS]]


def _start(lines: Sequence[str], at: int) -> int:
    """The first line of a section: comments directly above its key are its own, but not those that open the file."""
    first = at
    while first and lines[first - 1].startswith("#"):
        first -= 1
    return first or at


def _comments(lines: Sequence[str], key: str) -> Iterator[str]:
    for line in lines:
        if match := re.match(rf"(?:{key}:\s*)?#\s*(.*\S)", line):
            yield match[1]
        if line.startswith(key):
            return


def _json(value: Any, indent: int = 0) -> str:
    """A mapping with others inside takes a line per key, all else one line."""
    if isinstance(value, Mapping) and any(isinstance(inner, Mapping | list | tuple) for inner in value.values()):
        inner = (f"{' ' * (indent + 1)}{json.dumps(key)}: {_json(item, indent + 1)}" for key, item in value.items())
        return "{\n" + ",\n".join(inner) + f"\n{' ' * indent}}}"
    return json.dumps(value, ensure_ascii=False, allow_nan=False, default=_number)


def _number(value: Decimal) -> int | float:
    return int(value) if value == int(value) else float(value)


def _listed(names: Any) -> str:
    few = [str(name) for name in names][:4]
    return ", ".join(few) + (" and more" if len(names) > len(few) else "")
