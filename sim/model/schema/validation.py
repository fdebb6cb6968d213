"""Validation of documents: single sections by pydantic, then contradictions between sections."""

from __future__ import annotations

from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from pydantic import Field, ValidationError, create_model
from pydantic_core import ErrorDetails

from sim.model.fields import Number
from sim.model.quantities import S3_STANDARD, Prices
from sim.model.schema.document import Document, check_sizes
from sim.model.schema.faults import rescale_sections
from sim.model.schema.sections import Section, Texts
from sim.model.schema.text import DocumentPath, Mapping, Reading, compose, example_of, read_text
from sim.model.state import BACKENDS
from sim.model.units import format_duration

if TYPE_CHECKING:
    from sim.model.schema.job import State


def check(document: Document, reading: Reading) -> None:
    """Add errors and warnings about combinations of keys to `reading`, for example times after the end of the run."""
    _check_times(document, reading)
    _check_rescale(document, reading)
    check_sizes(document, reading)
    cluster = document.cluster
    is_of_manifest = any(path == ("cluster", "cores") and mark.path for path, mark in reading.marks.items())
    if (
        cluster
        and cluster.cores is not None
        and cluster.services is None
        and not (is_of_manifest or _uses_cores(document))
    ):
        advice = "say services: idle-core, or serialize: of state on the heap, or take canonical savepoints"
        reading.warn(("cluster", "cores"), f"has no effect: no snapshot takes processor time, {advice}")
    for name, vertex in document.job.items():
        if _lacks_changes(vertex.state, document.checkpoint.incremental):
            advice = (
                "say update: (share of the records that rewrite an entry) or growth:, and update: 0 % if that is meant"
            )
            reading.warn(
                ("job", name, "state", "backend"),
                f"state never changes, so incremental checkpoints write nothing: {advice}",
            )
        if vertex.state is not None and vertex.state.ttl and _is_never_updated(vertex.state):
            advice = "say growth: (new keys per record) or update: (share of the records that rewrite an entry), which keep keys coming"
            reading.warn(
                ("job", name, "state", "ttl"), f"no record writes to this state, so all of it expires: {advice}"
            )


def _uses_cores(document: Document) -> bool:
    """Return whether some snapshot uses CPU time."""
    serialized = any(vertex.state is not None and vertex.state.serialize for vertex in document.job.values())
    return serialized or bool(document.actions or document.rescale or document.instances)


def _lacks_changes(state: State | None, incremental: bool | None) -> bool:
    """Return whether incremental checkpoints would be empty, because the file does not say how state changes."""
    if state is None or state.backend is None or not BACKENDS[state.backend].keeps_files:
        return False
    return bool(incremental) and _is_never_updated(state)


def _is_never_updated(state: State) -> bool:

    return state.update is None and state.growth is None


def _check_times(document: Document, reading: Reading) -> None:
    times: list[tuple[DocumentPath, int | None]] = [
        (("actions", i, "at"), action.at) for i, action in enumerate(document.actions or ())
    ]
    times += [(("faults", i, "at"), fault.at) for i, fault in enumerate(document.faults or ())]
    times += [((*path, "at"), rescale.at) for path, rescale in rescale_sections(document.rescale)]
    for place, at in times:
        if at is not None and at >= document.run.duration:
            reading.warn(place, f"has no effect: the run ends at {format_duration(document.run.duration)}")


def _check_rescale(document: Document, reading: Reading) -> None:
    stop_ns = min((action.at for action in document.actions or () if action.stop is not None), default=None)
    for path, rescale in rescale_sections(document.rescale):
        if stop_ns is not None and rescale.at >= stop_ns:
            reading.wrong((*path, "at"), f"the job has been stopped before, at {format_duration(stop_ns)}")
        elif rescale.at == 0:
            reading.wrong((*path, "at"), "is 0: there is nothing to go on from")
        elif not document.checkpoint.interval and rescale.from_ != "savepoint":
            reading.wrong(
                (*path, "from"),
                "there are no checkpoints to go on from: write from: savepoint, or an interval under checkpoint",
            )


# ---- Plain document -> `Document` or another section.  Errors of pydantic are reported at their keys, in our own words.

T = TypeVar("T", bound=Section)


def validate(plain: Any, reading: Reading) -> Document | None:
    """Return the validated document, or None with errors in `reading`."""
    if not isinstance(plain, Mapping):
        reading.wrong(
            (),
            "is empty; a scenario has at least job:, checkpoint: and run:"
            if plain is None
            else "is not a mapping; a scenario begins with keys such as job:, checkpoint: and run:",
        )
        return None
    return validate_as(Document, plain, reading)


def validate_as(kind: type[T], plain: Mapping, reading: Reading) -> T | None:
    """Return the validated section, or None with errors in `reading`."""
    try:
        return kind.model_validate(plain, context=reading)
    except ValidationError as error:
        mistakes = error.errors(include_url=False)
        lacks_a_key = any(details["type"] == "missing" for details in mistakes)
        schema = kind.model_json_schema(by_alias=True) if lacks_a_key else {}  # takes 0.2 s
        for details in mistakes:
            if details["type"] != "none_required":  # pydantic also reports the branch None of an optional key
                path = _document_path(plain, details["loc"], missing=details["type"] == "missing")
                reading.wrong(
                    path, _error_message(details) if details["type"] != "missing" else _missing_message(schema, path)
                )
        return None


def _document_path(plain: Any, loc: tuple[str | int, ...], *, missing: bool) -> DocumentPath:
    """Return the steps of a pydantic location that are keys or indices of the document, not tags of unions or validators."""
    path: DocumentPath = ()
    for i, step in enumerate(loc):
        if (
            (step in plain)
            if isinstance(plain, dict)
            else (isinstance(plain, list) and isinstance(step, int) and step < len(plain))
        ):
            plain = plain[step]
        elif not (missing and i == len(loc) - 1):
            continue
        path = (*path, step)
    return path


def _missing_message(schema: dict[str, Any], path: DocumentPath) -> str:
    example = example_of(schema, path)
    return f"required key is missing{f', e.g. {example}' if example else ''}"


def _error_message(details: ErrorDetails) -> str:
    value = details["input"]
    match details["type"]:
        case "value_error":
            return str(details["ctx"]["error"])
        case "model_type" | "dict_type" | "model_attributes_type":
            return f"expected a mapping, not {_kind_text(value)}"
        case "list_type":
            return f"expected a list, not {_kind_text(value)}"
        case "string_type":
            return f"expected text, not {_kind_text(value)}"
        case "literal_error":
            choices = str(details["ctx"]["expected"]).replace("'", "")
            return f"expected {choices}, not {_kind_text(value)}"
        case "too_short" | "string_too_short":
            return "is empty: write at least one value"
        case _:
            return details["msg"]


def _kind_text(value: object) -> str:
    if isinstance(value, dict):
        return "a mapping"
    return "a list" if isinstance(value, list) else f"'{str(value)[:40]}'"


# ---- Price lists: a YAML file with a source, a currency, and prices per thousand requests and per GB.


class _PriceList(Section):
    """The prices of an object store.  Missing prices are those of S3 Standard."""

    HINTS: ClassVar[Texts] = {"delete-per-1000": "deleting is free"}

    source: str = Field(min_length=1)
    currency: str | None = Field(None, min_length=1)


_PRICES: dict[str, Any] = {
    field.name: (Number | None, None) for field in fields(Prices) if field.name not in ("source", "currency")
}
PriceList = create_model("PriceList", __base__=_PriceList, **_PRICES)


def load_prices(file: Path) -> Prices:
    """Read a price list.  Raises `ScenarioError` with all errors of the file."""
    reading = Reading(str(file))
    plain = compose(read_text(file), reading)
    reading.stop_if_wrong()
    if not isinstance(plain, dict):
        reading.wrong((), "is not a price list: expected source: (where the prices come from) and prices")
        reading.stop_if_wrong()
    price_list = validate_as(PriceList, plain, reading)
    reading.stop_if_wrong()
    assert price_list is not None
    prices = {
        name: value if isinstance(value, str) else float(value) for name, value in price_list if value is not None
    }
    return Prices(**asdict(S3_STANDARD) | prices)
