"""The validity envelope: the values of features for which predictions were compared with recordings, and the errors there.

Its file is part of the package (`make envelope` writes it from the recordings of this project), so that users without recordings are
warned, too.  Features are checked one by one: a combination that was never recorded is not noticed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from sim.evidence.envelope.features import FEATURES, Feature, Value, features
from sim.model.scenario import Scenario
from sim.quantities.observed import quantities

FILE = Path(__file__).parent / "envelope.json"
QUANTITIES = tuple(quantity.name for quantity in quantities(lambda quantity: quantity.in_envelope))
_WHERE = "see docs/truth.md"
_MOST_NAMED = 5  # number of features in a line


@dataclass(frozen=True, slots=True)
class Error:
    """Absolute relative errors of a quantity over recordings (`sim.evidence.summary`)."""

    recordings: int
    median: float
    p90: float


@dataclass(frozen=True, slots=True)
class EnvelopeEvidence:
    """The evidence for a value of a feature, or for a family: number of recordings, and error per quantity."""

    recordings: int
    errors: Mapping[str, Error]


@dataclass(frozen=True, slots=True)
class Envelope:
    """The envelope of all recordings."""

    recordings: int
    features: Mapping[str, Mapping[Value, EnvelopeEvidence]]  # a number's values are the recorded ones
    families: Mapping[str, EnvelopeEvidence]
    overall: EnvelopeEvidence

    def unvalidated(self, scenarios: Iterable[Scenario]) -> list[str]:
        """A phrase per feature with a value outside, in the order of `FEATURES`: 'parallelism 50 (recordings: 1 to 4)'."""
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
    """A line about values that were never compared with a real Flink; empty if there are none."""
    phrases = envelope().unvalidated(scenarios)
    if not phrases:
        return ""
    others = [f"{len(phrases) - _MOST_NAMED} more"] if len(phrases) > _MOST_NAMED else []
    return f"not validated: {', '.join([*phrases[:_MOST_NAMED], *others])}; {_WHERE}"


@cache
def envelope() -> Envelope:
    """The envelope of this package."""
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


def _evidence(given: Mapping[str, Any]) -> EnvelopeEvidence:
    return EnvelopeEvidence(given["recordings"], {name: Error(*numbers) for name, numbers in given["errors"].items()})


def _inside(feature: Feature, value: Value, known: Mapping[Value, EnvelopeEvidence]) -> bool:
    if isinstance(value, str) or not known:
        return value in known
    numbers = [number for number in known if isinstance(number, int)]
    small = feature.sides == "up" or value * feature.slack >= min(numbers)
    large = feature.sides == "down" or value <= max(numbers) * feature.slack
    return small and large


def _phrase(feature: Feature, beyond: list[Value], known: Mapping[Value, EnvelopeEvidence]) -> str:
    return f"{feature.name} {_values_text(feature, beyond)} ({_recorded(feature, known)})"


def _recorded(feature: Feature, known: Mapping[Value, EnvelopeEvidence]) -> str:
    """'recordings: aligned, unaligned', 'recordings: 1 to 4', 'no recording'."""
    if not known:
        return "no recording"
    return f"recordings: {_values_text(feature, list(known))}"


def _values_text(feature: Feature, values: list[Value]) -> str:
    """Numbers as the smallest and the largest, words as a list."""
    numbers = [value for value in values if isinstance(value, int)]
    ends = dict.fromkeys((min(numbers), max(numbers))) if numbers else ()
    return " to ".join(map(feature.value_text, ends)) if ends else ", ".join(map(feature.value_text, values))
