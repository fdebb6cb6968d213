"""The answer of a sweep: means with confidence, and differences under common random numbers.

A *setting* is a combination of values that a user decides on.  Settings are compared across windows of a trace; seeds repeat within them.
All settings meet the same windows with the same random numbers, so they are compared window by window.  Effects that are common to all
settings cancel (common random numbers; Law, Simulation Modeling and Analysis, 11.2).

Means are restricted: what had not ended when its run did counts with the longest time known in its world (Royston and Parmar 2013).
A setting that fails anywhere has no mean.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from sim.analysis.intervals import half_width
from sim.analysis.sweeps.observed import observed

ERROR = 0.05
"""The chance that an interval misses its mean, or that any of the differences to the reference misses its own."""


@dataclass(frozen=True, slots=True)
class Limit:
    """A limit for the mean over all windows; `at_most` and `at_least` in the unit of the column."""

    column: str
    at_most: float = np.inf
    at_least: float = -np.inf

    def kept(self, mean: float) -> bool:
        """Whether a mean keeps the limit.  A missing mean, e.g. a duration if no checkpoint completed, breaks every limit."""
        return self.at_least <= mean <= self.at_most

    def keeps(self, value: float, *, is_bound: bool) -> bool:
        """Whether a value is known to keep the limit: what had not ended may be more, and keeps no upper one."""
        return self.kept(value) and not (is_bound and np.isfinite(self.at_most))


def means(results: pd.DataFrame, settings: Sequence[str], columns: Sequence[str]) -> pd.DataFrame:
    """A row per setting with the mean over windows for each column.  Column ``<column> ±`` is half of its 95 % confidence interval.

    ``<column> n``: windows with a value; ``<column> unfinished``: those of them with a bound; ``<column> lost``: those where a run failed,
    or gave no value though it should.  A setting with lost windows has no mean.  One that never ended has no interval.
    ``<column> of``: the number of windows in which it ran.
    """
    parts = {}
    for column in columns:
        seen = observed(results, settings, column)
        lost, unfinished, known = seen.lost.sum(), seen.unfinished.sum(), seen.scores.count()
        parts[column] = seen.scores.mean().where(lost == 0)
        spread = seen.scores.apply(lambda values: half_width(values.dropna().to_numpy()))
        parts[f"{column} ±"] = spread.where((lost == 0) & (unfinished < known), np.inf)
        parts |= {f"{column} n": known, f"{column} unfinished": unfinished, f"{column} lost": lost, f"{column} of": (seen.runs > 0).sum()}
    return pd.DataFrame(parts)


def differences(results: pd.DataFrame, settings: Sequence[str], column: str, reference: Mapping[str, str]) -> pd.DataFrame:
    """A row per setting: mean difference to the reference, window by window, half its interval, and the number of windows.

    The intervals hold together, with 95 % (Bonferroni over the other settings).  Dunnett's are narrower, but ask for independent samples of
    equal variance; windows are shared, and settings that are alike differ by nothing.
    ``unfinished``: windows where one of both is a bound.  NaN: one of them fails somewhere.  KeyError: there is no such setting.
    """
    seen = observed(results, settings, column)
    key = tuple(reference[name] for name in settings)
    against = key if len(key) > 1 else key[0]
    apart = seen.scores.sub(seen.scores[against], axis=0)
    open_ones = seen.unfinished.apply(lambda column: column | seen.unfinished[against]) & apart.notna()
    lost = seen.lost.any() | bool(seen.lost[against].any())
    confidence = 1 - ERROR / max(1, seen.scores.shape[1] - 1)
    return pd.DataFrame({
        "difference": apart.mean().mask(lost),
        "±": apart.apply(lambda values: half_width(values.dropna().to_numpy(), confidence)).mask(lost, np.inf),
        "windows": apart.count(),
        "unfinished": open_ones.sum(),
    })  # fmt: skip


def settings_of(index: pd.Index) -> list[tuple[str, ...]]:
    """The values of the settings, row by row."""
    return [tuple(map(str, key if isinstance(key, tuple) else (key,))) for key in index]
