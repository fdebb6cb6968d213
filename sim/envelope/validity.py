"""The validity envelope: on which values of which features predictions were held to recordings, and how far off they were.

It lies beside this file (`make envelope` writes it from the recordings of this project), so that whoever has no recordings is told, too.
Features are looked at one by one: a combination that was never recorded is not noticed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from sim.envelope.features import FEATURES, Feature, Value, features
from sim.model.scenario import Scenario

__all__ = ["FILE", "QUANTITIES", "Envelope", "Error", "Evidence", "envelope", "read_envelope", "warning"]

FILE = Path(__file__).parent / "envelope.json"
QUANTITIES = (
    "end_to_end_duration", "start_delay", "persisted_data", "checkpointed_size", "numRecordsInPerSecond", "latency", "completed",
)  # fmt: skip
_WHERE = "see docs/truth.md"
_MOST_NAMED = 5  # features named in one line


@dataclass(frozen=True, slots=True)
class Error:
    """Absolute relative errors of a quantity over recordings, as `sim.validation.summary` gives them."""

    recordings: int
    median: float
    p90: float


@dataclass(frozen=True, slots=True)
class Evidence:
    """A value of a feature, or a family: how many recordings, and how far off each quantity that they show."""

    recordings: int
    errors: Mapping[str, Error]


@dataclass(frozen=True, slots=True)
class Envelope:
    recordings: int
    features: Mapping[str, Mapping[Value, Evidence]]  # numbers are the values that were recorded, each
    families: Mapping[str, Evidence]
    overall: Evidence

    def outside(self, scenarios: Iterable[Scenario]) -> list[str]:
        """One phrase per feature that has a value outside, in the order of `FEATURES`: 'parallelism 50 (recordings: 1 to 4)'."""
        found: dict[str, dict[Value, None]] = {}
        for scenario in scenarios:
            for name, values in features(scenario).items():
                found.setdefault(name, {}).update(dict.fromkeys(values))
        phrases = []
        for feature in FEATURES:
            known = self.features.get(feature.name, {})
            beyond = [value for value in found.get(feature.name, ()) if not _inside(feature, value, known)]
            if beyond:
                phrases.append(_phrase(feature, beyond, known))
        return phrases


def warning(scenarios: Iterable[Scenario]) -> str:
    """What of these scenarios nobody has held to a real Flink, in one line; empty if there is nothing."""
    phrases = envelope().outside(scenarios)
    if not phrases:
        return ""
    more = [f"{len(phrases) - _MOST_NAMED} more"] if len(phrases) > _MOST_NAMED else []
    return f"not validated: {', '.join([*phrases[:_MOST_NAMED], *more])}; {_WHERE}"


@cache
def envelope() -> Envelope:
    """The one that comes with this package."""
    return read_envelope(FILE.read_text(encoding="utf-8"))


def read_envelope(text: str) -> Envelope:
    given = json.loads(text)
    numbers = {feature.name for feature in FEATURES if feature.text is not None}
    return Envelope(
        given["recordings"],
        {
            name: {int(value) if name in numbers else value: _evidence(seen) for value, seen in values.items()}
            for name, values in given["features"].items()
        },
        {name: _evidence(seen) for name, seen in given["families"].items()},
        _evidence(given["overall"]),
    )


def _evidence(given: Mapping[str, Any]) -> Evidence:
    return Evidence(given["recordings"], {name: Error(*numbers) for name, numbers in given["errors"].items()})


def _inside(feature: Feature, value: Value, known: Mapping[Value, Evidence]) -> bool:
    if isinstance(value, str) or not known:
        return value in known
    numbers = [each for each in known if isinstance(each, int)]
    small = feature.sides == "up" or value * feature.slack >= min(numbers)
    large = feature.sides == "down" or value <= max(numbers) * feature.slack
    return small and large


def _phrase(feature: Feature, beyond: list[Value], known: Mapping[Value, Evidence]) -> str:
    return f"{feature.name} {_values_text(feature, beyond)} ({_recorded(feature, known)})"


def _recorded(feature: Feature, known: Mapping[Value, Evidence]) -> str:
    """'recordings: aligned, unaligned', 'recordings: 1 to 4', 'no recording'."""
    if not known:
        return "no recording"
    return f"recordings: {_values_text(feature, list(known))}"


def _values_text(feature: Feature, values: list[Value]) -> str:
    """Numbers as the smallest and the largest, words as a list of all."""
    numbers = [value for value in values if isinstance(value, int)]
    ends = dict.fromkeys((min(numbers), max(numbers))) if numbers else ()
    return " to ".join(map(feature.shown, ends)) if ends else ", ".join(map(feature.shown, values))
