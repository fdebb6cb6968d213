"""A file of prices: ``prices.yaml`` with a currency, its source, and prices per thousand requests and per GB."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import ClassVar

from pydantic import Field

from sim.quantities.prices import S3_STANDARD, Prices
from sim.scenario.grammar.fields import Number
from sim.scenario.grammar.section import Section, Texts
from sim.scenario.text.plain import compose, read_text
from sim.scenario.text.problems import Reading
from sim.scenario.validation import validate_as


class PriceList(Section):
    """What an object store charges.  A price that is not written is that of S3 Standard."""

    HINTS: ClassVar[Texts] = {"delete-per-1000": "deleting is free"}

    source: str = Field(min_length=1)
    currency: str | None = Field(None, min_length=1)
    put_per_1000: Number | None = None
    list_per_1000: Number | None = None
    get_per_1000: Number | None = None
    stored_per_gb_month: Number | None = None
    moved_per_gb: Number | None = None


def load_prices(file: Path) -> Prices:
    """ScenarioError: all that is wrong with the file."""
    reading = Reading(str(file))
    plain = compose(read_text(file), reading)
    reading.stop_if_wrong()
    if not isinstance(plain, dict):
        reading.wrong((), "is no price list: it begins with source:, where the prices are from")
        reading.stop_if_wrong()
    found = validate_as(PriceList, plain, reading)
    reading.stop_if_wrong()
    assert found is not None  # noqa: S101 - nothing is wrong
    given = {name: getattr(found, name) for name in PriceList.model_fields if getattr(found, name) is not None}
    return Prices(**{**asdict(S3_STANDARD), **{name: own if isinstance(own, str) else float(own) for name, own in given.items()}})
