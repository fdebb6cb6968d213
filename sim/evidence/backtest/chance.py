"""How far predictions of other settings may be off, as far as a history tells: chance, the machine, and what the backtest found.

A history of few checkpoints says little about a 90 % quantile, and another run of as many has another one by chance alone.  Samples drawn
from the history itself show by how much.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from sim.model.backtest import OtherSettings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sim.model.backtest import ComparedQuantity
    from sim.quantities.observed import Level

MACHINE = 1.3
"""The factor between runs of one job on machines that do other things as well, beside chance."""
CONFIDENCE = 0.95
DRAWS = 1000
MOST = 2000
"""Checkpoints that are drawn at a time: more differ by less than machines do."""
_LEVELS: tuple[tuple[Level, float], ...] = (("p50", 0.5), ("p90", 0.9))


def other_settings(durations_ms: Sequence[float], row: ComparedQuantity | None) -> OtherSettings:
    """`row`: whole checkpoints, observed and predicted."""
    p50, p90 = (_factor(durations_ms, row, level, share) for level, share in _LEVELS)
    return OtherSettings(p50, p90)


def by_chance(durations_ms: Sequence[float], share: float) -> float:
    """The factor within which the quantiles of two runs lie, with 95 % confidence, if both draw from these durations."""
    random = np.random.default_rng(1)
    values = np.maximum(np.asarray(durations_ms, dtype=float), 1.0)
    shape = (DRAWS, min(len(values), MOST))
    first, second = (np.quantile(random.choice(values, shape), share, axis=1) for _ in range(2))
    return float(np.exp(np.quantile(np.abs(np.log(first / second)), CONFIDENCE)))


def _factor(durations_ms: Sequence[float], row: ComparedQuantity | None, level: Level, share: float) -> float:
    """Chance and machine are independent; what the backtest is off by comes on top."""
    off = 1.0 if row is None else row.agreement(level)
    if not off:
        return math.inf
    return math.exp(math.hypot(math.log(by_chance(durations_ms, share)), math.log(MACHINE))) / off
