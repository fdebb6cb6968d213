"""Racing: settings that are surely not the best are recognised from a part of the worlds (Birattari et al., Racing Algorithms, 2002).

A setting is compared with the one that leads, world by world.  It is out if its mean is worse, or breaks a limit, with a confidence that
holds for all settings and all rounds together (Bonferroni).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from sim.analysis.intervals import half_width
from sim.analysis.sweeps.answers import Limit, worlds

__all__ = ["ERROR", "Rule", "behind"]

Setting = tuple[str, ...]
Floats = NDArray[np.float64]

ERROR = 0.01
"""The chance that any setting is wrongly out, if differences between worlds are normally distributed."""


@dataclass(frozen=True, slots=True)
class Rule:
    """What settings race for, and the number of comparisons that share the error."""

    settings: tuple[str, ...]
    least: str
    limits: tuple[Limit, ...]
    comparisons: int

    @property
    def confidence(self) -> float:
        return 1 - ERROR / self.comparisons


def behind(results: pd.DataFrame, rule: Rule, racing: Collection[Setting]) -> dict[Setting, str]:
    """Settings that race and are surely not the best, each with the column that shows it.

    `results`: all rows so far, of worlds that all these settings have met.
    """
    values = {column: _values(results, rule, column, racing) for column in (rule.least, *(limit.column for limit in rule.limits))}
    out = {setting: limit.column for limit in rule.limits for setting in racing if _breaks(values[limit.column][setting], limit, rule)}
    leader = _leader(values, rule, racing)
    if leader is not None:
        of = values[rule.least]
        losers = [setting for setting in racing if setting not in out and _interval(of[setting] - of[leader], rule)[0] > 0]
        out |= dict.fromkeys(losers, rule.least)
    return out


def _values(results: pd.DataFrame, rule: Rule, column: str, racing: Collection[Setting]) -> dict[Setting, Floats]:
    """By setting, a value per world; NaN: none."""
    table = worlds(results, rule.settings, column)
    keys: list[Any] = table.columns.tolist()  # tuples, or the values of one key
    found = {key if isinstance(key, tuple) else (key,): table.iloc[:, place].to_numpy(float) for place, key in enumerate(keys)}
    return {setting: found.get(setting, np.full(len(table), np.nan)) for setting in racing}


def _leader(values: Mapping[str, Mapping[Setting, Floats]], rule: Rule, racing: Collection[Setting]) -> Setting | None:
    """The setting with the smallest mean, of those with a value in every world that surely keep all limits; None: there is none."""
    of = values[rule.least]
    met = np.any([~np.isnan(of[setting]) for setting in racing], axis=0)
    sure = [
        setting for setting in racing
        if met.any() and not np.isnan(of[setting][met]).any()
        and all(_keeps(values[limit.column][setting][met], limit, rule) for limit in rule.limits)
    ]  # fmt: skip
    return min(sure, key=lambda setting: float(of[setting][met].mean()), default=None)


def _breaks(values: Floats, limit: Limit, rule: Rule) -> bool:
    least, most = _interval(values, rule)
    return least > limit.at_most or most < limit.at_least


def _keeps(values: Floats, limit: Limit, rule: Rule) -> bool:
    least, most = _interval(values, rule)
    return not np.isnan(values).any() and limit.at_least <= least and most <= limit.at_most


def _interval(values: Floats, rule: Rule) -> tuple[float, float]:
    """The confidence interval of the mean."""
    known = values[~np.isnan(values)]
    if len(known) < 2:
        return -np.inf, np.inf
    mean, half = float(known.mean()), half_width(known.tolist(), rule.confidence)
    return mean - half, mean + half
