"""Which setting to take: the set of those that cannot be told apart from the best, and one of them with a reason.

A setting is out of the set if another one is surely better.  All pairs are compared, window by window, and share an error of 5 %
(Bonferroni).  The best is not known before, so choosing it costs as much as comparing all (Hsu, Multiple Comparisons, 1996).
With 95 % no setting is out whose true mean is the least.  So of equal settings a winner is named in at most 5 % of studies.

A percentile ranks only settings whose runs together have its smallest sample: the longest of two checkpoints is no p99.
Where no setting that could be chosen has it, all are compared by the longest.
So it is with limits: that a percentile keeps one is known with its sample only.  A limit that the longest breaks is broken.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from sim.analysis.intervals import critical, half_width
from sim.analysis.sweeps.answers import ERROR, Limit, settings_of
from sim.analysis.sweeps.observed import Observed, observed
from sim.analysis.sweeps.samples import pooled, smallest

Setting = tuple[str, ...]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

EQUAL = 1e-9
"""Values that agree to nine digits are a tie."""


@dataclass(frozen=True, slots=True)
class Exceeded:
    """A window whose value breaks a limit."""

    column: str
    window: str
    value: float


@dataclass(frozen=True, slots=True)
class UnknownPercentile:
    """A limit of a percentile that has too few observations."""

    column: str
    sample: int
    needed: int


@dataclass(frozen=True, slots=True)
class Standing:
    """The standing of one setting among the others."""

    setting: Setting
    value: float  # mean over the windows in which some setting ends
    half_width: float
    behind: int  # windows in which it does not end, and another setting does
    broken: tuple[str, ...] = ()  # columns of limits
    unsure: tuple[str, ...] = ()  # columns of limits to which the interval of its mean reaches
    exceeded: tuple[Exceeded, ...] = ()  # windows that break a limit, though the mean may keep it
    failed: int = 0  # windows in which a run failed or has no value, though another setting has one
    absent: int = 0  # not 0: it did not run in all worlds
    sample: int | None = None  # observations of a percentile in all its runs; None: it is no percentile
    unknown: tuple[UnknownPercentile, ...] = ()  # limits that it seems to keep, of percentiles without their sample
    ranked: bool = True  # False: its sample is too small for a percentile that others have

    @property
    def sound(self) -> bool:
        """Whether it ran everywhere, has a value, and keeps all limits."""
        return not (self.broken or self.failed or self.absent or np.isnan(self.value))

    @property
    def eligible(self) -> bool:
        return self.sound and self.ranked


@dataclass(frozen=True, slots=True)
class Selection:
    """The settings in their order, and the recommended one.  `best` is empty if no setting can be chosen.

    First stand settings with the samples of all percentiles, then the others that could be chosen, then the rest.
    Among them those with fewest windows behind come first, then those with the least mean.
    """

    standings: tuple[Standing, ...]
    windows: tuple[str, ...]
    sample: str  # what windows are: see `Observed`
    hopeless: tuple[str, ...]  # windows in which no setting ends
    failed: tuple[str, ...]  # windows in which every setting fails
    compared: int  # windows that tell settings apart
    unmeasured: tuple[str, ...]  # columns without a value in any run
    best: tuple[Setting, ...] = ()  # cannot be told apart
    advised: Setting | None = None  # the recommended one of them
    reason: str = ""  # only, reference, changes, least
    ties: tuple[Setting, ...] = ()  # equal to `advised` in every window
    needed: int = 1  # the smallest sample of the percentile

    @property
    def eligible(self) -> tuple[Standing, ...]:
        return tuple(standing for standing in self.standings if standing.eligible)

    def standing(self, setting: Setting) -> Standing:
        return next(standing for standing in self.standings if standing.setting == setting)


def choose(
    results: pd.DataFrame, settings: Sequence[str], least: str, limits: Sequence[Limit] = (), reference: Sequence[str] = (),
    out: Collection[Setting] = (),
) -> Selection:  # fmt: skip
    """The settings with the smallest mean of `least` that keep all limits.  `reference`: the values of today's setting.

    `out`: settings that lost a race and did not run everywhere.  A limit is broken if a run fails, and if no run has a value of
    its column.  An upper limit is broken by a bound.
    """
    seen = observed(results, settings, least)
    of_limits = {limit: observed(results, settings, limit.column) for limit in limits}
    hopeless, ran = seen.hopeless, seen.runs > 0
    failed = (seen.lost | ~ran).all(axis=1)
    counted = seen.scores[~hopeless & ~failed]
    counts_of = {column: pooled(results, settings, column) for column in (least, *(limit.column for limit in limits))}
    by_column = {least: seen} | {limit.column: table for limit, table in of_limits.items()}
    unmeasured = tuple(column for column, table in by_column.items() if not (table.scores.notna() | table.lost).to_numpy().any())
    standings = []
    values, behind = counted.to_numpy(dtype=float), seen.behind.to_numpy()
    lost = (seen.lost & ~failed.to_numpy()[:, np.newaxis]).to_numpy()
    for place, setting in enumerate(settings_of(seen.scores.columns)):
        own = values[:, place][~np.isnan(values[:, place])]
        standings.append(Standing(
            setting, float(own.mean()) if len(own) else np.nan, half_width(own), int(behind[:, place].sum()),
            tuple(limit.column for limit, table in of_limits.items() if not _keeps(table, place, limit)),
            tuple(limit.column for limit, table in of_limits.items() if _may_change(table, place, limit)),
            tuple(found for limit, table in of_limits.items() for found in _exceeded(table, place, limit)),
            int(lost[:, place].sum()), int((~ran.iloc[:, place]).sum()) + (setting in out),
            counts_of[least].get(setting), tuple(_unknown(counts_of, setting, limits)),
        ))  # fmt: skip
    needed = smallest(least)
    standings = _ranked(standings, needed)
    ordered = sorted(standings, key=lambda standing: (not standing.eligible, not standing.sound, standing.behind, standing.value))
    found = Selection(
        tuple(ordered), tuple(map(str, seen.scores.index)), seen.sample, tuple(map(str, hopeless.index[hopeless])),
        tuple(map(str, failed.index[failed])), int(counted.notna().any(axis=1).sum()), unmeasured, needed=needed,
    )  # fmt: skip
    return _chosen(found, seen, counted, tuple(reference))


def surely_worse(values: Floats, unfinished: Flags, error: float = ERROR) -> Flags:
    """``[i, j]``: setting i is surely worse than j.  `values`: windows x settings, NaN where there was nothing to measure.

    `unfinished`: the value is a bound.  The chance that any of two equal settings is called worse is at most `error`.
    Nothing is worse than a setting that did not end where it did: what that would have taken is open.
    """
    count = values.shape[1]
    confidence = 1 - error / max(1, count * (count - 1) // 2)
    worse = np.zeros((count, count), dtype=bool)
    for i in range(count):
        apart = values[:, [i]] - values
        apart[np.abs(apart) <= EQUAL * np.maximum(np.abs(values), np.abs(values[:, [i]]))] = 0.0
        only_here = unfinished[:, [i]] & ~unfinished
        for j in np.flatnonzero(only_here.any(axis=0)):
            apart[:, j] = _capped(apart[:, j], only_here[:, j])
        only_there = (~unfinished[:, [i]] & unfinished & ~np.isnan(apart)).any(axis=0)
        worse[i] = _surely_above_zero(apart, confidence) & ~only_there
    return worse


def _surely_above_zero(apart: Floats, confidence: float) -> Flags:
    """Column by column, with Student's t; differences that are all alike are sure, but for a single one."""
    known = ~np.isnan(apart)
    sizes = known.sum(axis=0)
    filled = np.where(known, apart, 0.0)
    mean = filled.sum(axis=0) / np.maximum(sizes, 1)
    squares = (np.where(known, apart - mean, 0.0) ** 2).sum(axis=0)
    squares[squares <= (EQUAL * np.abs(mean)) ** 2 * sizes] = 0.0
    error = np.sqrt(squares / np.maximum(sizes - 1, 1) / np.maximum(sizes, 1))
    bounds = {size: critical(int(size), confidence) for size in np.unique(sizes)}
    least = np.array([bounds[size] if size > 1 else 0.0 for size in sizes])
    return np.asarray((sizes > 1) & (mean > least * error))


def _capped(apart: Floats, unfinished: Flags) -> Floats:
    """Differences whose unfinished ones count no more than makes them clearest.

    A bound that lies far off raises the spread more than the mean: without a cap a worse run would make a setting look less surely worse.
    For differences d, x is the clearest further one at sum(d^2) / sum(d).
    """
    others = apart[~unfinished & ~np.isnan(apart)]
    if others.sum() <= 0:
        return apart
    return np.where(unfinished, np.minimum(apart, (others**2).sum() / others.sum()), apart)


def _ranked(standings: Sequence[Standing], needed: int) -> list[Standing]:
    """Settings with too small a sample are not ranked, if one that can be chosen has it: of the limits first, then of what ranks."""
    known = [standing for standing in standings if standing.sound and not standing.unknown]
    enough = [standing for standing in known or standings if standing.sound and (standing.sample is None or standing.sample >= needed)]
    if not known and not enough:
        return list(standings)
    ranked = {standing.setting for standing in enough or known}
    return [replace(standing, ranked=standing.setting in ranked or not standing.sound) for standing in standings]


def _unknown(counts_of: Mapping[str, Mapping[Setting, int]], setting: Setting, limits: Sequence[Limit]) -> Iterator[UnknownPercentile]:
    for column in dict.fromkeys(limit.column for limit in limits):
        sample, needed = counts_of[column].get(setting), smallest(column)
        if sample is not None and sample < needed:
            yield UnknownPercentile(column, sample, needed)


def _keeps(seen: Observed, place: int, limit: Limit) -> bool:
    """Whether the mean keeps a limit for all that is known."""
    if seen.lost.iloc[:, place].any() or (np.isfinite(limit.at_most) and seen.unfinished.iloc[:, place].any()):
        return False
    return limit.kept(float(seen.scores.iloc[:, place].mean()))


def _exceeded(seen: Observed, place: int, limit: Limit) -> list[Exceeded]:
    """The windows whose values are known to break a limit, the worst first."""
    own = seen.scores.iloc[:, place].dropna()
    found = [Exceeded(limit.column, str(window), float(value)) for window, value in own.items() if not limit.kept(float(value))]
    return sorted(found, key=lambda window: window.value, reverse=bool(np.isfinite(limit.at_most)))


def _may_change(seen: Observed, place: int, limit: Limit) -> bool:
    """Whether the limit lies within the interval of the mean."""
    own = seen.scores.iloc[:, place].dropna().to_numpy()
    if not len(own) or np.isinf(half := half_width(own)) or seen.lost.iloc[:, place].any():
        return False
    return bool(limit.kept(own.mean() - half) != limit.kept(own.mean() + half))


def _chosen(found: Selection, seen: Observed, counted: pd.DataFrame, reference: Setting) -> Selection:
    places = {setting: place for place, setting in enumerate(settings_of(counted.columns))}
    names = [standing.setting for standing in found.eligible]
    if not names:
        return found
    chosen = [places[name] for name in names]
    values = counted.iloc[:, chosen].to_numpy(dtype=float)
    worse = surely_worse(values, seen.unfinished.loc[counted.index].iloc[:, chosen].to_numpy(dtype=bool))
    best = tuple(name for name, is_worse in zip(names, [bool(row.any()) for row in worse], strict=True) if not is_worse) or (names[0],)
    least = min(found.standing(name).behind for name in best)
    sound = [name for name in best if found.standing(name).behind == least]
    advised, reason = _advised(sound, reference, alone=len(best) == 1)
    own = values[:, names.index(advised)]
    ties = tuple(name for i, name in enumerate(names) if name != advised and _equal(values[:, i], own))
    return replace(found, best=best, advised=advised, reason=reason, ties=ties)


def _advised(sound: Sequence[Setting], reference: Setting, *, alone: bool) -> tuple[Setting, str]:
    """(setting, reason); `sound` is in the order of the standings."""
    if alone:
        return sound[0], "only"
    if reference in sound:
        return reference, "reference"
    if not reference:
        return sound[0], "least"
    changes: Mapping[Setting, int] = {name: sum(a != b for a, b in zip(name, reference, strict=True)) for name in sound}
    fewest = min(changes.values())
    return next(name for name in sound if changes[name] == fewest), "changes" if len(set(changes.values())) > 1 else "least"


def _equal(values: Floats, others: Floats) -> bool:
    return bool(np.allclose(values, others, rtol=EQUAL, atol=0.0, equal_nan=True))
