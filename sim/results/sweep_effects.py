"""Effects in a sweep: which axis changes what, with its uncertainty."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod, sqrt
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

# ---- The rows of a sweep -> a value per window and setting: what did not end is a bound, what failed is lost, and both are counted.
#
# Windows are the sample: seeds repeat within them, so their mean is the value of a window.  A *world* is a window with
# a seed and with what else varies beside the settings (a block of the design).  All settings meet the same worlds with
# the same random numbers.
#
# A row says of its columns which values are bounds (`unfinished`) and where there was nothing to measure (`nothing`).
# A value that is missing for another reason is lost, unless it is missing for every setting: no setting gains by a run
# that failed, or that has no value.

Floats = NDArray[np.float64]

DEAD = ("FAILED", "RESTARTING")
"""How the status of a job begins that failed, or that restarts for ever."""
SEEDS = ("replication", "run.seed")
"""Columns that only repeat a run."""
_MARKS = ("strategy", "status", "job_status", "unfinished", "nothing")
"""Columns that say what the values of a row mean."""
_NO_AXES = ("cell", "scenario", "seed")


@dataclass(frozen=True)
class Observed:
    """The values of one column: tables with a row per window and a column per setting."""

    # means over seeds; what did not end counts as the longest known there; NaN: lost, or nothing to measure
    scores: pd.DataFrame
    unfinished: pd.DataFrame  # whether some run had not ended what the column measures
    lost: pd.DataFrame  # whether some run failed or has no value though it should
    runs: pd.DataFrame  # how many there were; 0: the setting did not run there
    sample: str  # what the rows are: windows, worlds (nothing is called a window) or seeds (of a single window)

    @property
    def hopeless(self) -> pd.Series[bool]:
        """Windows in which no setting ends, of those that have a value."""
        known = self.scores.notna()
        return known.any(axis=1) & (self.unfinished | ~known).all(axis=1)

    @property
    def behind(self) -> pd.DataFrame:
        """Where a setting had not ended, and another one had."""
        return self.unfinished[~self.hopeless].reindex(self.unfinished.index, fill_value=False)


def planned(results: pd.DataFrame) -> pd.DataFrame:
    """The rows of settings, failed ones too, without those of jobs without checkpoints."""
    return results[results["strategy"] != "none"]


def has_no_result(rows: pd.DataFrame) -> pd.Series[bool]:
    """Runs that say nothing about what a setting gives: the cell has no result, or its job failed."""
    wrong = rows["status"] != "ok"
    return wrong | _having(rows, "job_status", lambda status: status.startswith(DEAD))


def ended(rows: pd.DataFrame, column: str) -> pd.Series[float]:
    """The values of a column; NaN where they are bounds."""
    return rows[column].mask(_named(rows, "unfinished", column))


def scored(results: pd.DataFrame, column: str) -> pd.DataFrame:
    """`value` (NaN: none), `unfinished`, `lost` and `dead` of each planned row."""
    # all columns would be copied
    rows = planned(results[[name for name in results.columns if name in (column, *_MARKS)]])
    died = has_no_result(rows)
    value = rows[column].astype(float).mask(died)
    nothing = _named(rows, "nothing", column) & ~died
    return pd.DataFrame(
        {
            "value": value,
            "unfinished": _named(rows, "unfinished", column) & value.notna(),
            "lost": value.isna() & ~nothing,
            "dead": died,
        }
    )


def observed(results: pd.DataFrame, settings: Sequence[str], column: str) -> Observed:
    """`results`: rows of a sweep with the columns of `settings` and of what else varies, all of them before `strategy`."""
    before = list(results.columns).index("strategy")
    rows = planned(results[list(results.columns[: before + 1])])
    axes = [name for name in rows.columns[:-1] if name not in (*settings, *_NO_AXES)]
    window, seed, sample = _sample(rows, axes)
    windows, window_of = numbered(rows, window)
    worlds, world_of = numbered(rows, [*window, *seed])
    names, setting_of = numbered(rows, settings)
    flags = scored(results, column)
    shape = (len(worlds), len(names))

    def summed(values: Floats) -> Floats:
        """A row per world, a column per setting."""
        found = np.zeros(shape)
        np.add.at(found, (world_of, setting_of), values)
        return found

    value = flags["value"].to_numpy(dtype=float)
    known, runs = summed((~np.isnan(value)).astype(float)), summed(np.ones(len(rows)))
    unfinished, lost, died = (summed(flags[name].to_numpy(dtype=float)) > 0 for name in ("unfinished", "lost", "dead"))
    score = np.where(known > 0, summed(np.nan_to_num(value)) / np.maximum(known, 1), np.nan)
    longest = np.max(np.where(known > 0, score, -np.inf), axis=1, keepdims=True)  # known of this world
    score = np.where(unfinished, longest, score)  # no run gains by being cut off early
    lost &= died | (known > 0).any(axis=1, keepdims=True)  # that another setting failed says nothing about this one
    first_of = np.zeros(len(worlds), dtype=np.int64)
    first_of[world_of] = window_of

    def by_window(values: Floats) -> Floats:
        found = np.zeros((len(windows), len(names)))
        np.add.at(found, first_of, values)
        return found

    has = by_window((~np.isnan(score)).astype(float))
    is_lost = by_window(lost.astype(float)) > 0
    means = np.where((has > 0) & ~is_lost, by_window(np.nan_to_num(score)) / np.maximum(has, 1), np.nan)
    index, columns = pd.Index([" | ".join(name) for name in windows], name="window"), _columns(names, settings)

    def framed(table: NDArray[Any]) -> pd.DataFrame:
        return pd.DataFrame(table, index=index, columns=columns)

    any_unfinished, count = by_window(unfinished.astype(float)) > 0, by_window(runs).astype(np.int64)
    return Observed(framed(means), framed(any_unfinished), framed(is_lost), framed(count), sample)


def _columns(names: Sequence[tuple[str, ...]], settings: Sequence[str]) -> pd.Index:
    if len(settings) == 1:
        return pd.Index([name for (name,) in names], name=settings[0])
    return pd.MultiIndex.from_tuples(names, names=list(settings))


def numbered(rows: pd.DataFrame, columns: Sequence[str]) -> tuple[list[tuple[str, ...]], NDArray[np.int64]]:
    """The different combinations of values in their order, and the number of each row's."""
    number_of = np.zeros(len(rows), dtype=np.int64)
    keys: list[tuple[str, ...]] = [()] if len(rows) or not columns else []
    for name in columns:
        codes, values = pd.factorize(rows[name], use_na_sentinel=False)
        texts = ["" if pd.isna(value) else str(value) for value in values]
        number_of, pairs = pd.factorize(number_of * max(len(texts), 1) + codes)
        keys = [(*keys[pair // len(texts)], texts[pair % len(texts)]) for pair in pairs.tolist()]
    return keys, number_of


def _sample(rows: pd.DataFrame, axes: Sequence[str]) -> tuple[list[str], list[str], str]:
    """(columns that tell windows apart, columns that repeat within them, what the sample is)."""
    seeds = [axis for axis in axes if axis in SEEDS]
    others = [axis for axis in axes if axis not in SEEDS]
    if "window" in others and len(rows["window"].unique()) > 1:
        return ["window"], [axis for axis in axes if axis != "window"], "windows"
    if len(numbered(rows, others)[0]) > 1:
        return others, seeds, "worlds"
    return (seeds, others, "seeds") if len(numbered(rows, seeds)[0]) > 1 else (others, seeds, "windows")


def _named(rows: pd.DataFrame, mark: str, column: str) -> pd.Series[bool]:
    """Whether the column `mark` of a row names this column."""
    return _having(rows, mark, lambda names: column in names.split())


def _having(rows: pd.DataFrame, column: str, holds: Callable[[str], bool]) -> pd.Series[bool]:
    """Whether the text of a row `holds`, which each different text is asked once; no text, or no such column: it does not."""
    if column not in rows:
        return pd.Series(data=False, index=rows.index)
    codes, texts = pd.factorize(rows[column], use_na_sentinel=False)
    found = np.array([not pd.isna(text) and holds(str(text)) for text in texts], dtype=bool)
    return pd.Series(found[codes] if len(codes) else [], index=rows.index, dtype=bool)


# ---- The effect of each varied key: its share of the variance of a result (Sobol indices; Saltelli et al., Global Sensitivity Analysis).
#
# `first`: the variance that vanishes on average if only this key is fixed.  `total`: the variance that is left if all other keys are
# fixed; more than `first` if keys interact.  A complete grid gives both exactly.  Points of a sample give `first` only,
# from means over slices of each key (Plischke et al. 2013), corrected for the effect of noise.

MIN_PER_SLICE = 8


def effects(results: pd.DataFrame, axes: Sequence[str], column: str) -> pd.DataFrame:
    """A row per axis: `first` and `total` as shares of the variance between combinations; empty if nothing varies.

    Replications are averaged first: their spread is chance and belongs to no axis.  What had not ended counts with the
    time it had taken.
    """
    value = scored(results, column)["value"]
    rows = planned(results[[*dict.fromkeys((*axes, "strategy"))]]).assign(**{column: value})[value.notna()]
    axes = [axis for axis in axes if len(rows[axis].unique()) > 1]
    mean = rows.groupby(list(axes), observed=True)[[column]].mean().reset_index() if axes else rows[:0]
    if len(mean) < 2 or np.isclose(mean[column].var(ddof=0), 0):
        return pd.DataFrame(columns=["axis", "first", "total"])
    complete = len(mean) == prod(mean[axis].nunique() for axis in axes)
    shares = (
        _of_a_grid(mean, axes, column)
        if complete
        else [(axis, _of_slices(mean[axis], mean[column]), np.nan) for axis in axes]
    )
    return pd.DataFrame(shares, columns=["axis", "first", "total"]).sort_values(
        "first", ascending=False, ignore_index=True
    )


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
    slices = min(int(ranks.nunique()), max(2, min(count // MIN_PER_SLICE, int(sqrt(count)))))
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
    from sim.model import units

    try:
        _, value = units.parse_quantity(text)
    except units.UnitError:
        return np.inf, str(text)
    return (float(value) if value is not None else np.inf), ""
