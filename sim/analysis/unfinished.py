"""Quantiles of durations of which some did not end: a value, and whether it is only a bound ("more than").

What the end of a run or a timeout cut off is censored, not missing (Kaplan and Meier 1958).  It lasted at least as long as was seen.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Durations = npt.NDArray[np.floating[Any]]


class Duration(NamedTuple):
    """A quantile of durations, or a bound of it.  NaN: nothing began."""

    value: float
    is_bound: bool  # it may be longer than the value


def median_of_few(ended: Durations, unfinished: Durations) -> Duration:
    """The median where every event counts: failures are few, and a late one is not like the others.

    It is as if all unfinished ones ended now.  It is a bound if it would be another one if they never ended.
    """
    return _least(ended, unfinished, 0.5)


def quantile(ended: Durations, unfinished: Durations, share: float) -> Duration:
    """The quantile where events follow each other all the time, so that the end of a run always cuts off the last ones.

    An unfinished one counts from the moment at which it has lasted longer than this quantile of the others: before, it says nothing.
    """
    late = unfinished[unfinished > np.quantile(ended, share)] if len(ended) else unfinished
    return _least(ended, late, share)


def quantiles(ended: Durations, unfinished: Durations, *shares: float) -> list[Duration]:
    """The quantiles of ascending shares: one that may still grow makes those above it grow."""
    found: list[Duration] = []
    for share in shares:
        own = quantile(ended, unfinished, share)
        is_bound = bool(found) and found[-1].is_bound
        found.append(Duration(max(found[-1].value, own.value), is_bound=True) if is_bound else own)
    return found


def _least(ended: Durations, unfinished: Durations, share: float) -> Duration:
    """The quantile if all unfinished ones ended now, and whether it would be another one if they took ten times the longest."""
    least = np.concatenate([ended, unfinished])
    if not len(least):
        return Duration(np.nan, is_bound=False)
    most = np.concatenate([ended, np.full(len(unfinished), 10 * least.max() + 1)])
    value = float(np.quantile(least, share))
    return Duration(value, is_bound=bool(np.quantile(most, share) > value))
