"""What a percentile stands on: how many observations the runs of a setting have together, and how many it needs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from sim.analysis.sweeps.observed import numbered, planned, scored
from sim.quantities.results import STATISTICS


def smallest(column: str) -> int:
    """The smallest sample of the percentile that a column is; 1 of other columns."""
    return STATISTICS[column].smallest_sample if column in STATISTICS else 1


def counts(results: pd.DataFrame, column: str) -> pd.Series[float]:
    """The observations of each planned run that has a value of `column`; empty: it is no percentile, or they are not known."""
    counted = STATISTICS[column].counted_by if column in STATISTICS else ""
    if smallest(column) == 1 or counted not in results:
        return pd.Series(dtype=float)
    rows = planned(results[[counted, "strategy"]])
    return rows.loc[scored(results, column)["value"].notna(), counted].dropna().astype(float)


def pooled(results: pd.DataFrame, settings: Sequence[str], column: str) -> dict[tuple[str, ...], int]:
    """Setting -> observations in all its runs; empty: `column` is no percentile, or they are not known."""
    found = counts(results, column)
    if found.empty:
        return {}
    keys, number_of = numbered(results.loc[found.index, list(settings)], settings)
    sums = np.zeros(len(keys))
    np.add.at(sums, number_of, found.to_numpy())
    return {key: int(sum_) for key, sum_ in zip(keys, sums, strict=True)}
