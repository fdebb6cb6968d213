"""Price lists: a YAML file with a source, a currency, and prices per thousand requests and per GB."""

from __future__ import annotations

from dataclasses import fields
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar

from pydantic import Field, create_model

from sim.model.quantities import S3_STANDARD, Prices
from sim.model.schema.sections import Section, Texts, validate_as
from sim.model.schema.text import Mapping, Reading, compose, read_text
from sim.model.value_types import Number


class _PriceList(Section):
    """The prices of an object store.  Missing prices are those of S3 Standard."""

    HINTS: ClassVar[Texts] = {"delete-per-1000": "deleting is free"}

    source: str = Field(min_length=1)
    currency: str | None = Field(None, min_length=1)


_PRICES: dict[str, Any] = {
    field.name: (Number | None, None) for field in fields(Prices) if field.name not in ("source", "currency")
}
PriceList = create_model("PriceList", __base__=_PriceList, **_PRICES)


def load_prices(file: str | PathLike[str] | None) -> Prices:
    """Read a price list; without a file, return the prices of S3 Standard.  Raises `ScenarioError` with all errors of the file."""
    if file is None:
        return S3_STANDARD
    reading = Reading(str(file))
    plain = compose(read_text(Path(file)), reading)
    if not isinstance(plain, Mapping) and not reading.problems:
        reading.wrong((), "is not a price list: expected source: (where the prices come from) and prices")
    reading.stop_if_wrong()
    prices = validate_as(PriceList, plain, reading)
    reading.stop_if_wrong()
    written: dict[str, Any] = {
        name: value if isinstance(value, str) else float(value) for name, value in prices or () if value is not None
    }
    return Prices(**written)
