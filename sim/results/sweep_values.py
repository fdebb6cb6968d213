"""The values of a sweep in each window and with each setting."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

# ---- Values by window and setting.
#
# Windows are the sample. The value of a window is the mean over its seeds. A *world* is a block of the experimental design:
# a window, a seed, and the values of all other axes that are not settings. All settings run in the same worlds, with the
# same random numbers.
#
# The column `unfinished` of a row lists the result columns whose values are lower bounds. The column `nothing` lists those
# that had nothing to measure. A value that is missing for another reason is *lost*, so that no setting benefits from a run
# that failed. A value that is missing for every setting of a world, although none failed, is not lost.

Floats = NDArray[np.float64]

DEAD = ("FAILED", "RESTARTING")
"""Prefixes of the status of jobs that failed, or restart forever."""
SEEDS = ("replication", "run.seed")
"""Axes that only repeat a run with other random numbers."""
_MARKS = ("strategy", "status", "job_status", "unfinished", "nothing")
"""Columns that say how the values of a row must be read."""
_NO_AXES = ("cell", "scenario", "seed")
"""Columns before `strategy` that are not axes."""


@dataclass(frozen=True)
class Observed:
    """The values of one result column, as tables with a row per window and a column per setting."""

    # means over seeds, in which a lower bound counts as the longest value in its world; NaN if a value is lost, or if there
    # was nothing to measure
    scores: pd.DataFrame
    unfinished: pd.DataFrame  # True if the value of some run is a lower bound
    lost: pd.DataFrame  # True if some run failed or lacks a value
    runs: pd.DataFrame  # number of runs; 0 if the setting did not run in this window
    # what a row is: "windows", "worlds" (there are no windows, but other axes) or "seeds" (of a single window)
    sample: str

    @property
    def hopeless(self) -> pd.Series[bool]:
        """Return, for each window, whether it has values and all of them are lower bounds."""
        known = self.scores.notna()
        return known.any(axis=1) & (self.unfinished | ~known).all(axis=1)

    @property
    def behind(self) -> pd.DataFrame:
        """Return, by window and setting, whether the value is a lower bound while that of another setting is not."""
        return self.unfinished[~self.hopeless].reindex(self.unfinished.index, fill_value=False)


def planned(results: pd.DataFrame) -> pd.DataFrame:
    """Return all rows, including failed ones, except the baselines without checkpoints."""
    return results[results["strategy"] != "none"]


def has_no_result(rows: pd.DataFrame) -> pd.Series[bool]:
    """Return, for each row, whether the cell has no result or its job failed."""
    wrong = rows["status"] != "ok"
    return wrong | _having(rows, "job_status", lambda status: status.startswith(DEAD))


def ended(rows: pd.DataFrame, column: str) -> pd.Series[float]:
    """Return the values of a column, with NaN in place of lower bounds."""
    return rows[column].mask(_named(rows, "unfinished", column))


def scored(results: pd.DataFrame, column: str) -> pd.DataFrame:
    """Return a table with a row per planned row: `value` of the column, and the flags `unfinished`, `lost` and `dead`.

    `unfinished`: the value is a lower bound.  `lost`: it is missing although there was something to measure.  `dead`: the
    run has no result or its job failed.
    """
    # select the needed columns first: `planned` copies them
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
    """Return the values of a result column by window and setting.

    `results`: rows of a sweep, in which the columns of all axes are before the column `strategy`.  `settings`: axes whose
    values form a setting.
    """
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
        """Return the sums of values by world and setting."""
        sums = np.zeros(shape)
        np.add.at(sums, (world_of, setting_of), values)
        return sums

    value = flags["value"].to_numpy(dtype=float)
    known, runs = summed((~np.isnan(value)).astype(float)), summed(np.ones(len(rows)))
    unfinished, lost, died = (summed(flags[name].to_numpy(dtype=float)) > 0 for name in ("unfinished", "lost", "dead"))
    score = np.where(known > 0, summed(np.nan_to_num(value)) / np.maximum(known, 1), np.nan)
    longest = np.max(np.where(known > 0, score, -np.inf), axis=1, keepdims=True)  # longest known value in each world
    score = np.where(unfinished, longest, score)  # so that a run does not benefit from being cut off early
    # not lost if no setting has a value and this one did not fail
    lost &= died | (known > 0).any(axis=1, keepdims=True)
    first_of = np.zeros(len(worlds), dtype=np.int64)
    first_of[world_of] = window_of

    def by_window(values: Floats) -> Floats:
        """Return the sums over the worlds of each window, by window and setting."""
        sums = np.zeros((len(windows), len(names)))
        np.add.at(sums, first_of, values)
        return sums

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
    """Return the distinct combinations of values, in order of appearance, and the index of each row's combination."""
    number_of = np.zeros(len(rows), dtype=np.int64)
    keys: list[tuple[str, ...]] = [()] if len(rows) or not columns else []
    for name in columns:
        codes, values = pd.factorize(rows[name], use_na_sentinel=False)
        texts = ["" if pd.isna(value) else str(value) for value in values]
        number_of, pairs = pd.factorize(number_of * max(len(texts), 1) + codes)
        keys = [(*keys[pair // len(texts)], texts[pair % len(texts)]) for pair in pairs.tolist()]
    return keys, number_of


def _sample(rows: pd.DataFrame, axes: Sequence[str]) -> tuple[list[str], list[str], str]:
    """Return (axes that identify a window, axes that vary within a window, name of the sample: see `Observed`)."""
    seeds = [axis for axis in axes if axis in SEEDS]
    others = [axis for axis in axes if axis not in SEEDS]
    if "window" in others and len(rows["window"].unique()) > 1:
        return ["window"], [axis for axis in axes if axis != "window"], "windows"
    if len(numbered(rows, others)[0]) > 1:
        return others, seeds, "worlds"
    return (seeds, others, "seeds") if len(numbered(rows, seeds)[0]) > 1 else (others, seeds, "windows")


def _named(rows: pd.DataFrame, mark: str, column: str) -> pd.Series[bool]:
    """Return, for each row, whether the list in column `mark` contains the name `column`."""
    return _having(rows, mark, lambda names: column in names.split())


def _having(rows: pd.DataFrame, column: str, holds: Callable[[str], bool]) -> pd.Series[bool]:
    """Return, for each row, whether the predicate `holds` is true for the text in `column`; False if there is no text.

    The predicate is called once per distinct text.
    """
    if column not in rows:
        return pd.Series(data=False, index=rows.index)
    codes, texts = pd.factorize(rows[column], use_na_sentinel=False)
    flags = np.array([not pd.isna(text) and holds(str(text)) for text in texts], dtype=bool)
    return pd.Series(flags[codes] if len(codes) else [], index=rows.index, dtype=bool)
