"""A rhythm in durations whose period is not known: all periods are tried, and chance may try as many."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

_DRAWS = 4_000
_SEED = 1
_ROUNDS = 4
"""A rhythm is told from so many rounds on."""
_FEWEST = 16
_FINER = 20


class UnknownRhythm(NamedTuple):
    """The period at which durations gather most."""

    period_ms: float
    p: float  # that durations dealt out at random would gather as much at any period
    others_ms: tuple[float, ...]  # shorter periods that look the same at the times of the checkpoints


def unknown_rhythm(times_ms: Sequence[float], durations_ms: Sequence[float]) -> UnknownRhythm | None:
    """`times_ms`: when each was triggered.  None: too few, or all alike.

    Of each frequency the length of the mean vector, weighted by what each takes beyond the shortest, is compared with its mean over
    permutations (Lomb's periodogram).  The probability is that of the largest over all frequencies (Westfall and Young 1993).
    """
    times, took = np.array(times_ms, dtype=float), np.array(durations_ms, dtype=float)
    if len(times) < _FEWEST:
        return None
    weights, apart, span = took - took.min(), float(median(np.diff(np.sort(times)))), float(np.ptp(times))
    if not weights.any() or apart <= 0 or span < 2 * _ROUNDS * apart:
        return None
    # Neighbouring frequencies are half a resolution apart; above one round per two checkpoints rhythms look like slower ones.
    frequencies = np.arange(_ROUNDS / span, 0.5 / apart, 0.5 / span)
    dealt = np.random.default_rng(_SEED).permuted(np.tile(weights, (_DRAWS, 1)), axis=1)
    by_chance = _powers(dealt, times - times.min(), frequencies)
    usual = by_chance.mean(axis=0)
    seen = _powers(weights[None], times - times.min(), frequencies)[0] / usual
    as_much = (by_chance / usual).max(axis=1) >= seen.max() - 1e-9
    finer = frequencies[int(seen.argmax())] + np.linspace(-0.5, 0.5, 2 * _FINER + 1) / span
    best = float(finer[_powers(weights[None], times - times.min(), finer)[0].argmax()])
    others = tuple(1 / (1 / apart + sign * best) for sign in (-1, 1))
    return UnknownRhythm(1 / best, float((1 + as_much.sum()) / (1 + _DRAWS)), others)


def _powers(weights: FloatArray, times: FloatArray, frequencies: FloatArray) -> FloatArray:
    """A row per row of weights, a column per frequency."""
    angles = 2 * np.pi * np.outer(times, frequencies)
    return np.square(weights @ np.cos(angles)) + np.square(weights @ np.sin(angles))
