"""The answer of a sweep: means with confidence, differences under common random numbers, the best setting within limits.

A *setting* is a combination of values that a user decides on.  Settings are compared across *worlds*: windows of a trace, replications,
and all other variations.  All settings meet the same worlds with the same random numbers, so they are compared world by world.  Effects
that are common to all settings cancel (common random numbers; Law, Simulation Modeling and Analysis, 11.2).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from sim.analysis.intervals import half_width
from sim.analysis.resampling import resamples

__all__ = ["Best", "Limit", "best", "differences", "means", "worlds"]


@dataclass(frozen=True, slots=True)
class Limit:
    """A limit for the mean over all worlds; `at_most` and `at_least` in the unit of the column."""

    column: str
    at_most: float = np.inf
    at_least: float = -np.inf

    def kept(self, mean: float) -> bool:
        """Whether a mean keeps the limit.  A missing mean, e.g. a duration if no checkpoint completed, breaks every limit."""
        return self.at_least <= mean <= self.at_most


@dataclass(frozen=True, slots=True)
class Best:
    """The best setting; None if no setting keeps the limits."""

    setting: dict[str, str] | None
    value: float  # mean of the minimised column
    confidence: float  # share of resampled sets of worlds with the same best setting
    within_limits: int
    settings: int


def worlds(results: pd.DataFrame, settings: Sequence[str], column: str) -> pd.DataFrame:
    """A row per world, a column per setting; NaN: the setting has no value in that world.

    `results`: rows of a sweep with the columns of `settings`; failed runs and runs without checkpoints do not count.
    """
    rows = results[(results["status"] == "ok") & (results["strategy"] != "none")]
    others = [name for name in rows.columns[: rows.columns.get_loc("strategy")] if name not in (*settings, "cell", "scenario", "seed")]
    varied = rows[others].fillna("").astype(str)
    world = varied.agg(" | ".join, axis=1) if others else pd.Series("", index=rows.index)
    keys = [world, *(rows[name] for name in settings)]
    return rows[column].groupby(keys, sort=False).mean().unstack(list(settings))  # noqa: PD010 - a pivot drops settings without a value


def means(results: pd.DataFrame, settings: Sequence[str], columns: Sequence[str]) -> pd.DataFrame:
    """A row per setting with the mean over worlds for each column.  Column ``<column> ±`` is half of its 95 % confidence interval.

    Column ``<column> n`` is the number of ``worlds`` with a value: a recovery, for example, may not end within the run.
    """
    parts = {}
    for column in columns:
        table = worlds(results, settings, column)
        parts[column] = table.mean()
        parts[f"{column} ±"] = table.apply(lambda values: half_width(values.dropna().to_numpy()))
        parts[f"{column} n"] = table.count()
        parts["worlds"] = pd.Series(len(table), index=table.columns)
    return pd.DataFrame(parts)


def differences(results: pd.DataFrame, settings: Sequence[str], column: str, reference: Mapping[str, str]) -> pd.DataFrame:
    """A row per setting: mean difference to the reference, world by world, half its interval, and the number of worlds.

    KeyError: there is no such setting.
    """
    table = worlds(results, settings, column)
    key = tuple(reference[name] for name in settings)
    against = table[key if len(key) > 1 else key[0]]
    apart = table.sub(against, axis=0)
    return pd.DataFrame({
        "difference": apart.mean(),
        "±": apart.apply(lambda values: half_width(values.dropna().to_numpy())),
        "worlds": apart.count(),
    })  # fmt: skip


def best(results: pd.DataFrame, settings: Sequence[str], least: str, limits: Sequence[Limit] = (), *, seed: int = 1) -> Best:
    """The setting with the smallest mean of `least` among those that keep all limits, and its confidence.

    A setting without a value in a world where another has one (e.g. it did not catch up within the run) counts as the worst possible.
    Worlds are resampled with replacement: a limit kept by chance, or a lead due to a single world, lowers the confidence.
    """
    tables = {column: worlds(results, settings, column) for column in {least, *(limit.column for limit in limits)}}
    worst = dict.fromkeys(tables, np.inf) | {limit.column: -np.inf for limit in limits if np.isinf(limit.at_most)}
    tables = {column: table.mask(table.isna() & table.notna().any(axis=1).to_numpy()[:, None], worst[column])
              for column, table in tables.items()}  # fmt: skip
    index = tables[least].index

    def winner(rows: np.ndarray[tuple[int], np.dtype[np.int64]]) -> tuple[object, int, float]:
        picked = {column: table.to_numpy(dtype=float)[rows] for column, table in tables.items()}
        with np.errstate(all="ignore"):
            mean = {column: pd.Series(_mean(values), index=tables[column].columns) for column, values in picked.items()}
        allowed = np.isfinite(mean[least])
        for limit in limits:
            allowed &= mean[limit.column].map(limit.kept)
        left = mean[least][allowed]
        return (left.idxmin(), len(left), float(left.min())) if len(left) else (None, 0, np.nan)

    setting, within, value = winner(np.arange(len(index)))
    if setting is None:
        return Best(None, np.nan, 1.0, 0, tables[least].shape[1])
    samples = resamples(len(index), seed=seed)
    same = sum(winner(sample)[0] == setting for sample in samples)
    values = setting if isinstance(setting, tuple) else (setting,)
    return Best(dict(zip(settings, map(str, values), strict=True)), value, same / len(samples), within, tables[least].shape[1])


def _mean(values: np.ndarray[tuple[int, int], np.dtype[np.float64]]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """The mean over worlds that have a value."""
    known = ~np.isnan(values)
    mean: np.ndarray[tuple[int], np.dtype[np.float64]] = np.where(known, values, 0.0).sum(axis=0)
    mean /= np.where(known.any(axis=0), known.sum(axis=0), np.nan)
    return mean
