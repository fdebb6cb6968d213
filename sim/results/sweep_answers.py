"""The answer of a sweep: samples, what keeps a limit, what loses, the choice."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from sim.model import units
from sim.model.quantities import parse_condition
from sim.model.text import PrintableError
from sim.results.columns import text, unit_of
from sim.results.estimates import critical, half_width
from sim.results.summary import STATISTICS
from sim.results.sweep_effects import Observed, numbered, observed, planned, scored

# ---- What a percentile stands on: how many observations the runs of a setting have together, and how many it needs.


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


# ---- The answer of a sweep: means with confidence, and differences under common random numbers.
#
# A *setting* is a combination of values that a user decides on.  Settings are compared across windows of a trace; seeds
# repeat within them.  All settings meet the same windows with the same random numbers, so they are compared window by
# window.  Effects that are common to all settings cancel (common random numbers; Law, Simulation Modeling and Analysis,
# 11.2).
#
# Means are restricted: what had not ended when its run did counts with the longest time known in its world (Royston and
# Parmar 2013). A setting that fails anywhere has no mean.

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
        parts |= {
            f"{column} n": known,
            f"{column} unfinished": unfinished,
            f"{column} lost": lost,
            f"{column} of": (seen.runs > 0).sum(),
        }
    return pd.DataFrame(parts)


def differences(
    results: pd.DataFrame, settings: Sequence[str], column: str, reference: Mapping[str, str]
) -> pd.DataFrame:
    """A row per setting: mean difference to the reference, window by window, half its interval, and the number of windows.

    The intervals hold together, with 95 % (Bonferroni over the other settings).  Dunnett's are narrower, but ask for
    independent samples of equal variance; windows are shared, and settings that are alike differ by nothing.
    ``unfinished``: windows where one of both is a bound.  NaN: one of them fails somewhere.  KeyError: there is no such setting.
    """
    seen = observed(results, settings, column)
    key = tuple(reference[name] for name in settings)
    against = key if len(key) > 1 else key[0]
    apart = seen.scores.sub(seen.scores[against], axis=0)
    open_ones = seen.unfinished.apply(lambda column: column | seen.unfinished[against]) & apart.notna()
    lost = seen.lost.any() | bool(seen.lost[against].any())
    confidence = 1 - ERROR / max(1, seen.scores.shape[1] - 1)
    return pd.DataFrame(
        {
            "difference": apart.mean().mask(lost),
            "±": apart.apply(lambda values: half_width(values.dropna().to_numpy(), confidence)).mask(lost, np.inf),
            "windows": apart.count(),
            "unfinished": open_ones.sum(),
        }
    )


def settings_of(index: pd.Index) -> list[tuple[str, ...]]:
    """The values of the settings, row by row."""
    return [tuple(map(str, key if isinstance(key, tuple) else (key,))) for key in index]


# ---- Which setting to take: the set of those that cannot be told apart from the best, and one of them with a reason.
#
# A setting is out of the set if another one is surely better.  All pairs are compared, window by window, and share an
# error of 5 % (Bonferroni).  The best is not known before, so choosing it costs as much as comparing all (Hsu, Multiple
# Comparisons, 1996).  With 95 % no setting is out whose true mean is the least.  So of equal settings a winner is named
# in at most 5 % of studies.
#
# A percentile ranks only settings whose runs together have its smallest sample: the longest of two checkpoints is no
# p99.  Where no setting that could be chosen has it, all are compared by the longest.  So it is with limits: that a
# percentile keeps one is known with its sample only.  A limit that the longest breaks is broken.

Setting = tuple[str, ...]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

TIE_TOLERANCE = 1e-9
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
    results: pd.DataFrame,
    settings: Sequence[str],
    least: str,
    limits: Sequence[Limit] = (),
    reference: Sequence[str] = (),
    out: Collection[Setting] = (),
) -> Selection:
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
    unmeasured = tuple(
        column for column, table in by_column.items() if not (table.scores.notna() | table.lost).to_numpy().any()
    )
    standings = []
    values, behind = counted.to_numpy(dtype=float), seen.behind.to_numpy()
    lost = (seen.lost & ~failed.to_numpy()[:, np.newaxis]).to_numpy()
    for place, setting in enumerate(settings_of(seen.scores.columns)):
        own = values[:, place][~np.isnan(values[:, place])]
        standings.append(
            Standing(
                setting,
                float(own.mean()) if len(own) else np.nan,
                half_width(own),
                int(behind[:, place].sum()),
                tuple(limit.column for limit, table in of_limits.items() if not _keeps_limit(table, place, limit)),
                tuple(limit.column for limit, table in of_limits.items() if _may_change(table, place, limit)),
                tuple(found for limit, table in of_limits.items() for found in _exceeded(table, place, limit)),
                int(lost[:, place].sum()),
                int((~ran.iloc[:, place]).sum()) + (setting in out),
                counts_of[least].get(setting),
                tuple(_unknown(counts_of, setting, limits)),
            )
        )
    needed = smallest(least)
    standings = _ranked(standings, needed)
    ordered = sorted(
        standings, key=lambda standing: (not standing.eligible, not standing.sound, standing.behind, standing.value)
    )
    found = Selection(
        tuple(ordered),
        tuple(map(str, seen.scores.index)),
        seen.sample,
        tuple(map(str, hopeless.index[hopeless])),
        tuple(map(str, failed.index[failed])),
        int(counted.notna().any(axis=1).sum()),
        unmeasured,
        needed=needed,
    )
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
        apart[np.abs(apart) <= TIE_TOLERANCE * np.maximum(np.abs(values), np.abs(values[:, [i]]))] = 0.0
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
    squares[squares <= (TIE_TOLERANCE * np.abs(mean)) ** 2 * sizes] = 0.0
    error = np.sqrt(squares / np.maximum(sizes - 1, 1) / np.maximum(sizes, 1))
    bounds = {size: critical(int(size), confidence) for size in np.unique(sizes)}
    least = np.array([bounds[size] if size > 1 else 0.0 for size in sizes])
    return np.asarray((sizes > 1) & (mean > least * error))


def _capped(apart: Floats, unfinished: Flags) -> Floats:
    """Differences whose unfinished ones count no more than makes them clearest.

    A bound that lies far off raises the spread more than the mean: without a cap a worse run would make a setting look
    less surely worse. For differences d, x is the clearest further one at sum(d^2) / sum(d).
    """
    others = apart[~unfinished & ~np.isnan(apart)]
    if others.sum() <= 0:
        return apart
    return np.where(unfinished, np.minimum(apart, (others**2).sum() / others.sum()), apart)


def _ranked(standings: Sequence[Standing], needed: int) -> list[Standing]:
    """Settings with too small a sample are not ranked, if one that can be chosen has it: of the limits first, then of what ranks."""
    known = [standing for standing in standings if standing.sound and not standing.unknown]
    enough = [
        standing
        for standing in known or standings
        if standing.sound and (standing.sample is None or standing.sample >= needed)
    ]
    if not known and not enough:
        return list(standings)
    ranked = {standing.setting for standing in enough or known}
    return [replace(standing, ranked=standing.setting in ranked or not standing.sound) for standing in standings]


def _unknown(
    counts_of: Mapping[str, Mapping[Setting, int]], setting: Setting, limits: Sequence[Limit]
) -> Iterator[UnknownPercentile]:
    for column in dict.fromkeys(limit.column for limit in limits):
        sample, needed = counts_of[column].get(setting), smallest(column)
        if sample is not None and sample < needed:
            yield UnknownPercentile(column, sample, needed)


def _keeps_limit(seen: Observed, place: int, limit: Limit) -> bool:
    """Whether the mean keeps a limit for all that is known."""
    if seen.lost.iloc[:, place].any() or (np.isfinite(limit.at_most) and seen.unfinished.iloc[:, place].any()):
        return False
    return limit.kept(float(seen.scores.iloc[:, place].mean()))


def _exceeded(seen: Observed, place: int, limit: Limit) -> list[Exceeded]:
    """The windows whose values are known to break a limit, the worst first."""
    own = seen.scores.iloc[:, place].dropna()
    found = [
        Exceeded(limit.column, str(window), float(value))
        for window, value in own.items()
        if not limit.kept(float(value))
    ]
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
    best = tuple(
        name for name, is_worse in zip(names, [bool(row.any()) for row in worse], strict=True) if not is_worse
    ) or (names[0],)
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
    return next(name for name in sound if changes[name] == fewest), "changes" if len(
        set(changes.values())
    ) > 1 else "least"


def _equal(values: Floats, others: Floats) -> bool:
    return bool(np.allclose(values, others, rtol=TIE_TOLERANCE, atol=0.0, equal_nan=True))


# ---- Racing: settings that are surely not the best are recognised from a part of the worlds (Birattari et al., Racing Algorithms, 2002).
#
# A setting is compared with the one that leads, window by window; seeds are averaged within.  It is out if its mean is
# worse, or breaks a limit, with a confidence that holds for all settings and all rounds together (Bonferroni).  A
# setting whose job fails is out at once, and so is one with a bound where a limit wants less: neither can be chosen any
# more.

ELIMINATION_ERROR = 0.01
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
        return ELIMINATION_ERROR / self.comparisons

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
    values = {
        column: _values(results, rule, column, racing)
        for column in (rule.least, *(limit.column for limit in rule.limits))
    }
    out = {
        setting: limit.column
        for limit in rule.limits
        for setting in racing
        if _breaks(values[limit.column], setting, limit, rule)
    }
    of = values[rule.least]
    out |= {setting: rule.least for setting in racing if setting not in out and _fails(of, setting)}
    counts = {column: pooled(results, rule.settings, column) for column in values}
    ranked = [
        setting
        for setting in racing
        if setting not in out
        and all(own.get(setting, smallest(column)) >= smallest(column) for column, own in counts.items())
    ]
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
            found[setting] = _Values(
                means.to_numpy(dtype=float), unfinished.to_numpy(dtype=bool), lost.to_numpy(dtype=bool)
            )
    return found


def _fails(of: Mapping[Setting, _Values], setting: Setting) -> bool:
    """Whether it is lost in a window where another setting has a value."""
    others = np.any([~np.isnan(values.means) for values in of.values()], axis=0)
    return bool((of[setting].lost & others).any())


def _leader(
    by_column: Mapping[str, Mapping[Setting, _Values]], rule: Rule, racing: Collection[Setting]
) -> Setting | None:
    """The setting with the smallest mean, of those with a value in every window that surely keep all limits; None: there is none."""
    of = by_column[rule.least]
    met = np.any([~np.isnan(values.means) for values in of.values()], axis=0)
    sure = [
        setting
        for setting in racing
        if met.any()
        and not np.isnan(of[setting].means[met]).any()
        and all(_keeps(by_column[limit.column][setting], limit, rule) for limit in rule.limits)
    ]
    return min(
        sure,
        key=lambda setting: (int(of[setting].unfinished.sum()), float(of[setting].means[met].mean())),
        default=None,
    )


def _loses(own: _Values, leading: _Values, rule: Rule) -> bool:
    means, unfinished = (
        np.column_stack([own.means, leading.means]),
        np.column_stack([own.unfinished, leading.unfinished]),
    )
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


# ---- Limits as users write them.


class MeasureError(PrintableError, ValueError):
    """A bound that does not fit its column; one line."""


def limit(column: str, condition: str) -> Limit:
    """``limit("end_to_end_p99_ms", "< 60 s")``; for a mean, < and <= are the same."""
    parsed = parse_condition(condition)
    if parsed is None or parsed.comparison in ("==", "!="):
        raise MeasureError(f"'{condition}' is not a condition: write '< 60 s' or '> 10'")
    try:
        bound = unit_of(column).parse(parsed.bound)
    except units.UnitError as error:
        raise MeasureError(str(error)) from None
    return Limit(column, at_most=bound) if parsed.comparison.startswith("<") else Limit(column, at_least=bound)


def limit_text(limit: Limit) -> str:
    """``end_to_end_p99_ms at most 60 s``."""
    upper = math.isfinite(limit.at_most)
    return f"{limit.column} {'at most' if upper else 'at least'} {text(limit.column, limit.at_most if upper else limit.at_least)}"
