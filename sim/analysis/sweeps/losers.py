"""Racing: settings that are surely not the best are recognised from a part of the worlds (Birattari et al., Racing Algorithms, 2002).

A setting is compared with the one that leads, window by window; seeds are averaged within.  It is out if its mean is worse, or breaks a
limit, with a confidence that holds for all settings and all rounds together (Bonferroni).  A setting whose job fails is out at once, and so
is one with a bound where a limit wants less: neither can be chosen any more.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from sim.analysis.intervals import half_width
from sim.analysis.sweeps.answers import Limit, settings_of
from sim.analysis.sweeps.choice import surely_worse
from sim.analysis.sweeps.observed import observed
from sim.analysis.sweeps.samples import pooled, smallest

Setting = tuple[str, ...]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

ERROR = 0.01
"""The chance that any setting is wrongly out, if differences between windows are normally distributed."""


@dataclass(frozen=True, slots=True)
class Rule:
    """The rule of a race: its column, its limits, and the number of comparisons that share the error."""

    settings: tuple[str, ...]
    least: str
    limits: tuple[Limit, ...]
    comparisons: int

    @property
    def error(self) -> float:
        return ERROR / self.comparisons

    @property
    def confidence(self) -> float:
        return 1 - self.error


@dataclass(frozen=True)
class _Values:
    """A column of one setting, window by window; NaN: lost, not run, or nothing to measure."""

    means: Floats
    unfinished: Flags
    lost: Flags


def losers_of(results: pd.DataFrame, rule: Rule, racing: Collection[Setting]) -> dict[Setting, str]:
    """Settings that race and are surely not the best, each with the column that shows it.

    `results`: all rows so far, of worlds that all these settings have met.
    """
    values = {column: _values(results, rule, column, racing) for column in (rule.least, *(limit.column for limit in rule.limits))}
    out = {setting: limit.column for limit in rule.limits for setting in racing if _breaks(values[limit.column], setting, limit, rule)}
    of = values[rule.least]
    out |= {setting: rule.least for setting in racing if setting not in out and _fails(of, setting)}
    counts = {column: pooled(results, rule.settings, column) for column in values}
    ranked = [
        setting for setting in racing
        if setting not in out and all(own.get(setting, smallest(column)) >= smallest(column) for column, own in counts.items())
    ]  # fmt: skip
    leader = _leader(values, rule, ranked)  # the longest of a few checkpoints is no percentile that puts others out
    if leader is not None:
        losers = [setting for setting in racing if setting not in out and _loses(of[setting], of[leader], rule)]
        out |= dict.fromkeys(losers, rule.least)
    return out


def _values(results: pd.DataFrame, rule: Rule, column: str, racing: Collection[Setting]) -> dict[Setting, _Values]:
    seen = observed(results, rule.settings, column)
    places = {setting: place for place, setting in enumerate(settings_of(seen.scores.columns))}
    found = {}
    for setting in racing:
        place = places.get(setting)
        if place is None:
            none = np.zeros(len(seen.scores), dtype=bool)
            found[setting] = _Values(np.full(len(none), np.nan), none, none)
        else:
            means, unfinished, lost = (table.iloc[:, place] for table in (seen.scores, seen.unfinished, seen.lost))
            found[setting] = _Values(means.to_numpy(dtype=float), unfinished.to_numpy(dtype=bool), lost.to_numpy(dtype=bool))
    return found


def _fails(of: Mapping[Setting, _Values], setting: Setting) -> bool:
    """Whether it is lost in a window where another setting has a value."""
    others = np.any([~np.isnan(values.means) for values in of.values()], axis=0)
    return bool((of[setting].lost & others).any())


def _leader(by_column: Mapping[str, Mapping[Setting, _Values]], rule: Rule, racing: Collection[Setting]) -> Setting | None:
    """The setting with the smallest mean, of those with a value in every window that surely keep all limits; None: there is none."""
    of = by_column[rule.least]
    met = np.any([~np.isnan(values.means) for values in of.values()], axis=0)
    sure = [
        setting for setting in racing
        if met.any() and not np.isnan(of[setting].means[met]).any()
        and all(_keeps(by_column[limit.column][setting], limit, rule) for limit in rule.limits)
    ]  # fmt: skip
    return min(sure, key=lambda setting: (int(of[setting].unfinished.sum()), float(of[setting].means[met].mean())), default=None)


def _loses(own: _Values, leading: _Values, rule: Rule) -> bool:
    means, unfinished = np.column_stack([own.means, leading.means]), np.column_stack([own.unfinished, leading.unfinished])
    return bool(surely_worse(means, unfinished, rule.error)[0, 1])


def _breaks(of: Mapping[Setting, _Values], setting: Setting, limit: Limit, rule: Rule) -> bool:
    values = of[setting]
    if _fails(of, setting) or (np.isfinite(limit.at_most) and values.unfinished.any()):
        return True
    least, most = _interval(values, rule)
    return least > limit.at_most or most < limit.at_least


def _keeps(values: _Values, limit: Limit, rule: Rule) -> bool:
    least, most = _interval(values, rule)
    return not np.isnan(values.means).any() and limit.at_least <= least and most <= limit.at_most


def _interval(values: _Values, rule: Rule) -> tuple[float, float]:
    """The confidence interval of the mean."""
    known = values.means[~np.isnan(values.means)]
    if len(known) < 2:
        return -np.inf, np.inf
    mean, half = float(known.mean()), half_width(known.tolist(), rule.confidence)
    return mean - half, mean + half
