"""The effect of each varied key: its share of the variance of a result (Sobol indices; Saltelli et al., Global Sensitivity Analysis).

`first`: the variance that vanishes on average if only this key is fixed.  `total`: the variance that is left if all other keys are fixed;
more than `first` if keys interact.  A complete grid gives both exactly.  Points of a sample give `first` only, from means over slices
of each key (Plischke et al. 2013), corrected for the effect of noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod, sqrt

import numpy as np
import pandas as pd

from sim.analysis.sweeps.observed import planned, scored

FEWEST_PER_SLICE = 8


def effects(results: pd.DataFrame, axes: Sequence[str], column: str) -> pd.DataFrame:
    """A row per axis: `first` and `total` as shares of the variance between combinations; empty if nothing varies.

    Replications are averaged first: their spread is chance and belongs to no axis.  What had not ended counts with the time it had taken.
    """
    value = scored(results, column)["value"]
    rows = planned(results[[*dict.fromkeys((*axes, "strategy"))]]).assign(**{column: value})[value.notna()]
    axes = [axis for axis in axes if len(rows[axis].unique()) > 1]
    mean = rows.groupby(list(axes), observed=True)[[column]].mean().reset_index() if axes else rows[:0]
    if len(mean) < 2 or np.isclose(mean[column].var(ddof=0), 0):
        return pd.DataFrame(columns=["axis", "first", "total"])
    complete = len(mean) == prod(mean[axis].nunique() for axis in axes)
    shares = _of_a_grid(mean, axes, column) if complete else [(axis, _of_slices(mean[axis], mean[column]), np.nan) for axis in axes]
    return pd.DataFrame(shares, columns=["axis", "first", "total"]).sort_values("first", ascending=False, ignore_index=True)


def _of_a_grid(mean: pd.DataFrame, axes: Sequence[str], column: str) -> list[tuple[str, float, float]]:
    variance = mean[column].var(ddof=0)
    shares = []
    for axis in axes:
        others = [other for other in axes if other != axis]
        first = mean.groupby(axis, observed=True)[column].mean().var(ddof=0) / variance
        rest = mean.groupby(others, observed=True)[column].mean().var(ddof=0) / variance if others else 0.0
        shares.append((axis, float(first), float(1 - rest)))
    return shares


def _of_slices(values: pd.Series[str], measured: pd.Series[float]) -> float:
    """Variance of the means of slices; for n points in k slices pure noise has (k - 1) / (n - 1)."""
    ranks = _ranks(values)
    count = len(measured)
    slices = min(int(ranks.nunique()), max(2, min(count // FEWEST_PER_SLICE, int(sqrt(count)))))
    groups = pd.qcut(ranks.rank(method="first"), slices, labels=False) if ranks.nunique() > slices else ranks
    sizes, centres = measured.groupby(groups).size(), measured.groupby(groups).mean()
    between = float((sizes * (centres - measured.mean()) ** 2).sum() / count / measured.var(ddof=0))
    chance = (len(sizes) - 1) / (count - 1)
    return max(0.0, (between - chance) / (1 - chance)) if chance < 1 else 0.0


def _ranks(values: pd.Series[str]) -> pd.Series[float]:
    """Ranks by magnitude if values have one ("10 s" after "2 s"), else by name."""
    order = {value: i for i, value in enumerate(sorted(values.unique(), key=_magnitude))}
    return values.map(order).astype(float)


def _magnitude(text: str) -> tuple[float, str]:
    from sim import units

    try:
        _, value = units.parse_quantity(text)
    except units.UnitError:
        return np.inf, str(text)
    return (float(value) if value is not None else np.inf), ""
