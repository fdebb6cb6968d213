"""The unknown inputs of a job: values that its scenario file marks UNKNOWN, and plausible other values.

State and bandwidth may be off by a factor of ten, as no metric shows them.  Service times are visible in metrics, so
two is enough for them.  Where a mark says what is known ("at least 1,186/s", "at most 1 kB", "between 0.5 and 0.7"), no
value is outside.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from sim.model.schema.axes import key_of
from sim.model.schema.text import DocumentPath, Reading, compose, value_at
from sim.model.units import format_rate
from sim.studies.sweeps.design import ParsedQuantity, QuantityError

_MARK = re.compile(r"(?:^|\s)#\s*UNKNOWN:\s*(.*)$")
_SETTINGS = ("interval", "timeout", "barriers", "min-pause", "max-concurrent")
"""Keys of `checkpoint` that are settings: advice chooses them."""
_FACTORS: dict[str, tuple[Fraction, Fraction]] = {
    "size": (Fraction(1, 10), Fraction(10)),  # of state
    "bandwidth": (Fraction(1, 10), Fraction(10)),
    "file-latency": (Fraction(1, 10), Fraction(10)),
    "metadata-latency": (Fraction(1, 10), Fraction(10)),
    "value": (Fraction(1, 10), Fraction(10)),
    "limit": (Fraction(1), Fraction(2)),  # of state: the keys that are there have come
    "update": (Fraction(1, 10), Fraction(10)),
    "record": (Fraction(1, 5), Fraction(5)),
    "parallelism": (Fraction(1, 2), Fraction(2)),
}
_ELSE = (Fraction(1, 2), Fraction(2))
_KEEPS_UP = (Fraction(4, 5), Fraction(19, 20))
"""Shares of the greatest rate that a job can serve: at these it keeps up."""
_AMOUNT = r"(?:the )?([\d.,]*\d(?: ?[A-Za-z%/]+)?)"
_LEAST, _MOST = re.compile(rf"\bat least {_AMOUNT}"), re.compile(rf"\bat most {_AMOUNT}")
_BETWEEN = re.compile(rf"\bbetween {_AMOUNT} and {_AMOUNT}")
_SHIPS = ("hash", "rebalance", "forward")
_PROFILES = ("2.x", "1.20")


@dataclass(frozen=True, slots=True)
class Unknown:
    """An input that the scenario marks UNKNOWN.  `path` is its place in the scenario, `assumed` the value there."""

    path: DocumentPath
    assumed: Any
    question: str
    least: ParsedQuantity | None = None  # what is known of it
    most: ParsedQuantity | None = None
    others: tuple[Any, ...] = ()  # values to try instead; empty: see `plausible`

    @property
    def key(self) -> str:
        """The key of an override."""
        return key_of(self.path)

    @property
    def name(self) -> str:
        """The input in plain text: ``sink: state size``."""
        if self.vertex:
            return f"{self.vertex}: {' '.join(str(step) for step in self.path[2:])}"
        return " ".join(map(str, self.path))

    @property
    def vertex(self) -> str:
        """The vertex that has the input; empty: none."""
        return str(self.path[1]) if self.path[0] == "job" else ""

    @property
    def is_setting(self) -> bool:
        return self.path[0] == "checkpoint" and self.path[-1] in _SETTINGS


def unknowns(text: str) -> list[Unknown]:
    """All marks of a scenario file, in its order.  A mark is a comment at the end of the value's line, or on lines above it."""
    reading = Reading("scenario")
    plain = compose(text, reading)
    places: dict[int, DocumentPath] = {}
    for path, mark in sorted(reading.marks.items(), key=lambda item: (item[1].line, item[1].column)):
        if path:
            places.setdefault(mark.line, path)
    lines = text.splitlines()
    found = []
    for number, line in enumerate(lines, 1):
        if (match := _MARK.search(line)) is None:
            continue
        remark, at = [match[1]], number
        if line.lstrip().startswith("#"):
            at += 1
            while at <= len(lines) and lines[at - 1].lstrip().startswith("#"):
                remark.append(lines[at - 1].lstrip(" #"))
                at += 1
        if (place := places.get(at)) is not None:
            question, _, known = " ".join(remark).partition("Assumed:")
            found.append(Unknown(place, value_at(plain, place), question.strip(), *_bounds(known)))
    return found


def _bounds(known: str) -> tuple[ParsedQuantity | None, ParsedQuantity | None]:
    """The least and the most value that a remark speaks of."""
    if both := _BETWEEN.search(known):
        return _amount(both[1]), _amount(both[2])
    least, most = _LEAST.search(known), _MOST.search(known)
    return (None if least is None else _amount(least[1])), (None if most is None else _amount(most[1]))


def _amount(text: str) -> ParsedQuantity | None:
    """``1,186.1/s``; a word that is no unit belongs to the sentence."""
    number = text.replace(",", "")
    for known in (number, number.partition(" ")[0]):
        try:
            return ParsedQuantity.parse(float(known) if re.fullmatch(r"[\d.]+", known) else known)
        except QuantityError:
            continue
    return None


def plausible(unknown: Unknown, served_per_second: float) -> list[Any]:
    """Other values, ascending; empty: none to try.  `served_per_second`: the greatest rate that the source can emit."""
    value, last = unknown.assumed, str(unknown.path[-1])
    if unknown.is_setting:
        return []
    if last == "profile":
        return [other for other in _PROFILES if other != value]
    if len(unknown.path) > 2 and unknown.path[-2] == "input":
        return [other for other in _SHIPS if other != value]
    if unknown.others:
        return list(unknown.others)
    if value == "unlimited":
        return [format_rate(rate) for rate in _rates(unknown, Fraction(served_per_second))]
    try:
        quantity = ParsedQuantity.parse(value)
    except QuantityError:
        return []
    if last == "limit" and "expire" in unknown.question:
        return ["0 B"]  # growth and ttl count then: keys go on coming, and leave
    others = _within(unknown, _scaled(quantity, *_FACTORS.get(last, _ELSE)))
    return [other.written() for other in others if other.value != quantity.value]


def _rates(unknown: Unknown, served: Fraction) -> list[Fraction]:
    """Rates that the job keeps up with, ascending.  Empty: it serves no more than is known to arrive, so any of them is a backlog."""
    least, most = (
        bound.value if bound is not None and bound.kind == "rate" else None for bound in (unknown.least, unknown.most)
    )
    low, high = (Fraction(f"{float(served * part):.3g}") for part in _KEEPS_UP)
    if most is not None:
        high = min(high, most)
    if least is not None:
        middle = Fraction(f"{float((least + high) / 2):.4g}")
        return [least, middle, high] if least < middle < high else []
    return [low, high] if 0 < low < high else []


def _within(unknown: Unknown, others: Iterator[ParsedQuantity]) -> Iterator[ParsedQuantity]:
    """The values, none outside of the bounds."""
    for other in others:
        value = other.value
        if unknown.least is not None and _alike(unknown.least, other):
            value = max(value, unknown.least.value)
        if unknown.most is not None and _alike(unknown.most, other):
            value = min(value, unknown.most.value)
        yield replace(other, value=value)


def _alike(bound: ParsedQuantity, value: ParsedQuantity) -> bool:
    return bound.kind == value.kind or {bound.kind, value.kind} == {"number", "count"}


def _scaled(quantity: ParsedQuantity, less: Fraction, greater: Fraction) -> Iterator[ParsedQuantity]:
    for factor in (less, greater):
        scaled = Fraction(f"{float(quantity.value * factor):.4g}")
        if quantity.kind == "share":
            scaled = min(scaled, Fraction(1))
        is_whole = quantity.kind in ("duration", "size", "byte rate", "count")
        other = ParsedQuantity(quantity.kind, Fraction(max(round(scaled), 1)) if is_whole else scaled)
        if other.value != quantity.value:
            yield other
