"""Whether durations gather at one turn of a rhythm."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

_DRAWS = 20_000
_SEED = 1


def gathering(turns: Sequence[float], durations_ms: Sequence[float]) -> float:
    """The probability that durations dealt out at random would gather at one turn as much as these do.

    They gather as the length of the mean of unit vectors at the turns, weighted by what each takes beyond the shortest (Rayleigh's test,
    by permutation).  `turns`: shares of one round.
    """
    took = np.array(durations_ms, dtype=float)
    if not took.size:
        return 1.0
    weights = took - took.min()
    vectors = np.exp(2j * np.pi * np.array(turns))
    if not weights.any() or np.ptp(np.abs(vectors - vectors[0])) < 1e-9:
        return 1.0
    dealt = np.random.default_rng(_SEED).permuted(np.tile(weights, (_DRAWS, 1)), axis=1)
    as_much = np.abs(dealt @ vectors) >= abs(weights @ vectors) - 1e-9
    return float((1 + as_much.sum()) / (1 + _DRAWS))
