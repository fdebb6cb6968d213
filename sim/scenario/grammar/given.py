"""Values that were written, put into the model's defaults: every builder needs the same three."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import TypeVar

from sim.scenario.text.problems import DocumentPath, Reading

__all__ = ["given_values", "per_second", "switch"]

T = TypeVar("T")


def given_values(default: T, **values: object) -> T:
    """The default with every value that was written."""
    return replace(default, **{key: value for key, value in values.items() if value is not None})  # type: ignore[type-var]


def switch(given: str | None) -> bool | None:
    """`on` or `off`, `true` or `false`; None: nothing was written."""
    return None if given is None else given in ("on", "true")


def per_second(given: Fraction | str | None, here: DocumentPath, reading: Reading) -> int | None:
    """Whole records or requests per second; None: unlimited."""
    if given is None or isinstance(given, str):
        return None
    if given < 1:
        reading.wrong(here, "must be at least 1/s")
    return round(given)
