"""What-ifs that recordings answered -> how far predictions of each kind of what-if are off, beyond what the history of a job tells.

A setting is a recording that was predicted from the import of another one.  The history of the import tells a factor:
chance, machine and backtest.  A kind is off by a factor beyond that: the smallest one with few enough settings outside.
Of a job that was not among the recordings the expected share outside is at most `MISSED_SHARE`.  That is conformal risk
control (Angelopoulos et al. 2022); its units are families of jobs, and it takes `ENOUGH` of them.  Fewer tell no such
share: a kind with fewer has the worst of all changes.  Changes that bring in what a job has never done (`UNSEEN`) are
apart: theirs count for no other kind, and nothing is said of one without a recording.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate

from sim.jobs.evidence.what_ifs import (
    KINDS,
    MIN_FACTOR,
    MIN_FAMILIES,
    MISSED_SHARE,
    UNSEEN,
    Kind,
    Learned,
    Pair,
    combined,
)

LEVELS = tuple(step / 20 for step in range(1, 20))
"""Where a distribution of ratios is kept."""


@dataclass(frozen=True, slots=True)
class CrossPrediction:
    """A recording, predicted from the import of another one, or of itself.  Pairs are of p50 and p90."""

    family: str  # of jobs that run one program
    imported: str
    predicted: str
    kinds: tuple[Kind, ...]  # what was changed
    observed_ms: Pair
    predicted_ms: Pair
    off_by: Pair  # factors; 1: below the noise of a machine
    history: Pair  # factors that the history of the import alone tells
    written: tuple[float, float] = (math.nan, math.nan)  # bytes per checkpoint: recorded and predicted

    def beyond(self, level: int) -> float:
        """0: it is inside of any factor."""
        return self.off_by[level] / self.history[level] if self.off_by[level] > MIN_FACTOR else 0.0


def learned(settings: Sequence[CrossPrediction]) -> dict[tuple[Kind, ...], Learned]:
    """A row for the job as it is, for each kind alone, and for each recorded combination of kinds."""
    changes = [
        (),
        *((kind,) for kind in KINDS),
        *sorted({setting.kinds for setting in settings if len(setting.kinds) > 1}),
    ]
    return {change: _learned(change, settings) for change in changes}


def _learned(change: tuple[Kind, ...], settings: Sequence[CrossPrediction]) -> Learned:
    own = [setting for setting in settings if setting.kinds == change]
    covered = [is_covered(setting, settings) for setting in own if is_promised(setting, settings)]
    p50, p90 = (sum(inside[level] for inside in covered) / max(len(covered), 1) for level in (0, 1))
    families, beyond = len({setting.family for setting in own}), _beyond(change, settings)
    return Learned(len(own), families, beyond, (p50, p90) if covered else None, ratios(change, settings))


def ratios(change: tuple[Kind, ...], settings: Sequence[CrossPrediction]) -> tuple[float, ...]:
    """Observed p90 over predicted p90 at `LEVELS`: of this change, or of all changes of one thing where too few families have it.

    Of a family that was not among the recordings, the expected share beyond a level is at most one minus the level, as
    of `_controlled`.
    """
    own = [setting for setting in settings if setting.kinds == change]
    if len({setting.family for setting in own}) < MIN_FAMILIES:
        own = [setting for setting in settings if len(setting.kinds) == 1]
    units: dict[tuple[str, tuple[Kind, ...]], list[float]] = defaultdict(list)
    for setting in own:
        units[setting.family, setting.kinds].append(setting.observed_ms[1] / setting.predicted_ms[1])
    weighted = sorted((ratio, 1 / len(values)) for values in units.values() for ratio in values)
    cumulated = list(accumulate(weight for _, weight in weighted))
    places = (
        next((i for i, sum_ in enumerate(cumulated) if sum_ >= level * (len(units) + 1) - 1e-9), -1) for level in LEVELS
    )
    return tuple(round(weighted[place][0], 3) for place in places)


def is_covered(setting: CrossPrediction, settings: Sequence[CrossPrediction]) -> tuple[bool, bool]:
    """Whether p50 and p90 of a setting lie inside of the factors that the recordings of all other families give."""
    beyond = _without(setting, settings)
    return setting.beyond(0) <= beyond[0], setting.beyond(1) <= beyond[1]


def is_promised(setting: CrossPrediction, settings: Sequence[CrossPrediction]) -> bool:
    """Whether the recordings of all other families give factors at all."""
    return math.isfinite(max(_without(setting, settings)))


def _without(setting: CrossPrediction, settings: Sequence[CrossPrediction]) -> Pair:
    return _beyond(setting.kinds, [other for other in settings if other.family != setting.family])


def _beyond(change: tuple[Kind, ...], settings: Sequence[CrossPrediction]) -> Pair:
    if len(change) > 1:
        return combined([_beyond((kind,), settings) for kind in change])
    own = [setting for setting in settings if setting.kinds == change]
    changes = [setting for setting in settings if len(setting.kinds) == 1 and UNSEEN.isdisjoint(setting.kinds)]
    if len({setting.family for setting in own}) >= MIN_FAMILIES:
        return _controlled(own, 0), _controlled(own, 1)
    judged = [*own, *changes] if own or UNSEEN.isdisjoint(change) else []
    p50, p90 = (max((setting.beyond(level) for setting in judged), default=math.inf) for level in (0, 1))
    return p50, p90


def _controlled(settings: Iterable[CrossPrediction], level: int) -> float:
    """The smallest factor with few enough outside, each family and kind counting once."""
    units: dict[tuple[str, tuple[Kind, ...]], list[float]] = defaultdict(list)
    for setting in settings:
        units[setting.family, setting.kinds].append(setting.beyond(level))
    for factor in sorted({value for values in units.values() for value in values}):
        missed = sum(sum(value > factor for value in values) / len(values) for values in units.values())
        if (missed + 1) / (len(units) + 1) <= MISSED_SHARE:
            return factor
    return math.inf  # too few families of all
