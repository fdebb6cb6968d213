"""Plain document -> `Document` or another section, every mistake in the words of this project at the place of its key."""

from __future__ import annotations

from typing import Any, TypeVar

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from sim.scenario.document import Document
from sim.scenario.grammar.section import Section
from sim.scenario.text.example import example_of
from sim.scenario.text.plain import Mapping
from sim.scenario.text.problems import DocumentPath, Reading

T = TypeVar("T", bound=Section)


def validate(plain: Any, reading: Reading) -> Document | None:
    """The document, or None and problems in `reading`."""
    if not isinstance(plain, Mapping):
        reading.wrong(
            (),
            "is empty; a scenario has at least job:, checkpoint: and run:"
            if plain is None
            else "is no mapping; a scenario begins with keys such as job:, checkpoint: and run:",
        )
        return None
    return validate_as(Document, plain, reading)


def validate_as(kind: type[T], plain: Mapping, reading: Reading) -> T | None:
    """The section, or None and problems in `reading`."""
    try:
        return kind.model_validate(plain, context=reading)
    except ValidationError as error:
        mistakes = error.errors(include_url=False)
        lacks_a_key = any(details["type"] == "missing" for details in mistakes)
        schema = kind.model_json_schema(by_alias=True) if lacks_a_key else {}  # it takes a fifth of a second
        for details in mistakes:
            if details["type"] != "none_required":  # the other half of "or not given"
                path = _place(plain, details["loc"], missing=details["type"] == "missing")
                reading.wrong(path, _message(details) if details["type"] != "missing" else _missing(schema, path))
        return None


def _place(plain: Any, loc: tuple[str | int, ...], *, missing: bool) -> DocumentPath:
    """The steps of a pydantic location that exist in the document; its tags of unions and validators do not."""
    path: DocumentPath = ()
    for i, step in enumerate(loc):
        if (step in plain) if isinstance(plain, dict) else (isinstance(plain, list) and isinstance(step, int) and step < len(plain)):
            plain = plain[step]
        elif not (missing and i == len(loc) - 1):
            continue
        path = (*path, step)
    return path


def _missing(schema: dict[str, Any], path: DocumentPath) -> str:
    example = example_of(schema, path)
    return f"required key is missing{f', e.g. {example}' if example else ''}"


def _message(details: ErrorDetails) -> str:
    given = details["input"]
    match details["type"]:
        case "value_error":
            return str(details["ctx"]["error"])
        case "model_type" | "dict_type" | "model_attributes_type":
            return f"expected a mapping, not {_kind(given)}"
        case "list_type":
            return f"expected a list, not {_kind(given)}"
        case "string_type":
            return f"expected text, not {_kind(given)}"
        case "literal_error":
            known = str(details["ctx"]["expected"]).replace("'", "")
            return f"expected {known}, not {_kind(given)}"
        case "too_short" | "string_too_short":
            return "is empty: write at least one value"
        case _:
            return details["msg"]


def _kind(value: object) -> str:
    if isinstance(value, dict):
        return "a mapping"
    return "a list" if isinstance(value, list) else f"'{str(value)[:40]}'"
