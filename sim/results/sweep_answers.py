"""The values of a sweep by window and setting, and its answer: means, differences, limits, and the recommended setting."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from sim.model import units
from sim.model.frozen import frozen
from sim.model.quantities import parse_condition
from sim.model.text import PrintableError
from sim.results.columns import Population, numbers_of, text, unit_of
from sim.results.estimates import MIN_INTERVALS, count_intervals, critical
from sim.results.summary import STATISTICS

# ---- The values of a sweep in each window and with each setting.

# ---- Values by window and setting.
#
# Windows are the sample. The value of a window is the mean over its seeds. A *world* is a block of the experimental design:
# a window, a seed, and the values of all other axes that are not settings. All settings run in the same worlds, with the
# same random numbers.
#
# The column `unfinished` of a row lists the result columns whose values are lower bounds. The column `nothing` lists those
# that had nothing to measure. A value that is missing for another reason is *lost*, so that no setting benefits from a run
# that failed. A value that is missing for every setting of a world, although none failed, is not lost.


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
    return wrong | _runs_where(rows, "job_status", lambda status: status.startswith(DEAD))


def ended(rows: pd.DataFrame, column: str) -> pd.Series[float]:
    """Return the values of a column, with NaN in place of lower bounds."""
    return rows[column].mask(is_named(rows, "unfinished", column))


def scored(results: pd.DataFrame, column: str) -> pd.DataFrame:
    """Return a table with a row per planned row: `value` of the column, and the flags `unfinished`, `lost` and `dead`.

    `unfinished`: the value is a lower bound.  `lost`: it is missing although there was something to measure.  `dead`: the
    run has no result or its job failed.
    """
    # select the needed columns first: `planned` copies them
    rows = planned(results[[name for name in results.columns if name in (column, *_MARKS)]])
    died = has_no_result(rows)
    value = rows[column].astype(float).mask(died)
    nothing = is_named(rows, "nothing", column) & ~died
    return pd.DataFrame(
        {
            "value": value,
            "unfinished": is_named(rows, "unfinished", column) & value.notna(),
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
    _, world_of = numbered(rows, [*window, *seed])
    names, setting_of = numbered(rows, settings)
    flags = scored(results, column).assign(window=window_of, world=world_of, setting=setting_of)
    runs = flags.groupby(["window", "world", "setting"]).agg(
        value=("value", "mean"),
        unfinished=("unfinished", "any"),
        lost=("lost", "any"),
        dead=("dead", "any"),
        runs=("value", "size"),
    )
    longest = runs["value"].groupby("world").transform("max")
    runs["value"] = runs["value"].mask(runs["unfinished"], longest)  # so that no run benefits from being cut off early
    # not lost if no setting has a value and this one did not fail
    runs["lost"] &= runs["dead"] | longest.notna()
    cells = runs.groupby(["window", "setting"]).agg(
        scores=("value", "mean"), unfinished=("unfinished", "any"), lost=("lost", "any"), runs=("runs", "sum")
    )
    cells["scores"] = cells["scores"].mask(cells["lost"])
    index, columns = pd.Index([" | ".join(name) for name in windows], name="window"), _columns(names, settings)

    every = pd.MultiIndex.from_product([range(len(windows)), range(len(names))])

    def table(name: str, missing: float) -> pd.DataFrame:
        """Return a column of `cells` as a table, with `missing` where a setting did not run."""
        found = cells[name].reindex(every, fill_value=missing).to_numpy()
        return pd.DataFrame(found.reshape(len(windows), len(names)), index, columns)

    return Observed(
        table("scores", np.nan),
        table("unfinished", missing=False),
        table("lost", missing=False),
        table("runs", 0),
        sample,
    )


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


def is_named(rows: pd.DataFrame, mark: str, column: str) -> pd.Series[bool]:
    """Return, for each row, whether the list in column `mark` contains the name `column`."""
    return _runs_where(rows, mark, lambda names: column in names.split())


def _runs_where(rows: pd.DataFrame, column: str, holds: Callable[[str], bool]) -> pd.Series[bool]:
    """Return, for each row, whether the predicate `holds` is true for the text in `column`; False if there is no text.

    The predicate is called once per distinct text.
    """
    if column not in rows:
        return pd.Series(data=False, index=rows.index)
    texts = rows[column]
    return texts.isin([text for text in texts.dropna().unique() if holds(str(text))])


# ---- Sample sizes of percentiles: the observations in all runs of a setting, and the minimum that a percentile requires.


def smallest_sample_of(column: str) -> int:
    """Return the minimum sample size of a column that is a percentile, or 1 for other columns."""
    return STATISTICS[column].smallest_sample if column in STATISTICS else 1


def counts(results: pd.DataFrame, column: str) -> pd.Series[float]:
    """Return the number of observations in each planned run that has a value of `column`.

    The series is empty if `column` is not a percentile, or if the numbers are unknown.
    """
    counted = STATISTICS[column].counted_by if column in STATISTICS else ""
    if smallest_sample_of(column) == 1 or counted not in results:
        return pd.Series(dtype=float)
    rows = planned(results[[counted, "strategy"]])
    return rows.loc[scored(results, column)["value"].notna(), counted].dropna().astype(float)


def pooled_samples(results: pd.DataFrame, settings: Sequence[str], column: str) -> dict[tuple[str, ...], int]:
    """Return {setting: number of observations in all its runs}, or {} if `column` is not a percentile or they are unknown."""
    found = counts(results, column)
    keys, number_of = numbered(results.loc[found.index, list(settings)], settings)
    sums = np.bincount(number_of, found, len(keys))
    return {key: int(sum_) for key, sum_ in zip(keys, sums, strict=True)}


INTERVAL_KEYS = ("checkpoint.interval", "flink.execution.checkpointing.interval")


def intervals_ms(results: pd.DataFrame, settings: Sequence[str]) -> dict[tuple[str, ...], float]:
    """Return {setting: interval of checkpoints [ms]}, without settings that switch them off; {} if the interval is not a setting."""
    names = numbered(planned(results[[*settings, "strategy"]]), settings)[0]
    places = [place for place, key in enumerate(settings) if key in INTERVAL_KEYS]
    found = {name: numbers_of(settings[place], [name[place]]) for place in places for name in names}
    return {name: numbers[1][name[places[0]]] for name, numbers in found.items() if numbers is not None}


def too_few_intervals(results: pd.DataFrame, settings: Sequence[str], column: str) -> list[tuple[str, ...]]:
    """Return the settings of whose intervals some run has too few, if `column` is of checkpoints and another interval is shorter."""
    measured = ["completed", "ended_s", "warmup_ms"]
    of_checkpoints = column in STATISTICS and STATISTICS[column].population is Population.COMPLETED
    if not of_checkpoints or column == "completed" or not {*measured} <= {*results.columns}:
        return []
    rows = planned(results[[*settings, *measured, "strategy", "status", "job_status"]])
    rows = rows[~has_no_result(rows)].astype(dict.fromkeys(settings, str))
    lengths_ms, found = intervals_ms(results, settings), list[tuple[str, ...]]()
    for key, own in rows.groupby(list(settings), sort=False):
        name = tuple(map(str, key))
        interval_ms = lengths_ms.get(name, 0.0)
        if interval_ms > min(lengths_ms.values(), default=0.0):
            counts = count_intervals(own["completed"], 1e3 * own["ended_s"] - own["warmup_ms"], interval_ms)
            found += [name] if counts.min() < MIN_INTERVALS else []
    return found


# ---- Means with confidence intervals, and differences under common random numbers.
#
# A *setting* is a combination of option values that the user chooses. Each setting runs in the same windows of a trace
# with the same seeds, and values are averaged over the seeds of a window. Settings are compared window by window, so that
# effects common to all settings cancel (common random numbers; Law, Simulation Modeling and Analysis, 11.2).
#
# Means are restricted: a duration that had not ended when its run did counts as the longest duration of any setting with
# the same window and seed (Royston and Parmar 2013). A setting that fails in any run has no mean.

ERROR_PROBABILITY = 0.05
"""Error probability of a single confidence interval, and the joint one of all differences between two settings."""


@frozen
class Limit:
    """A limit on the mean of a column over all windows.  `at_most` and `at_least` are in the unit of the column."""

    column: str
    at_most: float = np.inf
    at_least: float = -np.inf

    def kept(self, mean: float) -> bool:
        """Return True if a mean is within the limit.

        NaN breaks every limit: it is, for example, a duration if no checkpoint completed.
        """
        return self.at_least <= mean <= self.at_most


def means(results: pd.DataFrame, settings: Sequence[str], columns: Sequence[str]) -> pd.DataFrame:
    """Return a row per setting with the mean over windows of each column.

    Additional columns:

    * ``<column> ±``: half width of the 95 % confidence interval
    * ``<column> n``: number of windows with a value
    * ``<column> unfinished``: number of windows with a lower bound
    * ``<column> lost``: number of windows in which a run failed or lacks a value
    * ``<column> of``: number of windows in which the setting ran

    A setting with lost windows has no mean.  A setting that has only lower bounds has an infinite interval.
    """
    parts = {}
    for column in columns:
        table = observed(results, settings, column)
        lost, unfinished, counted = table.lost.sum(), table.unfinished.sum(), table.scores.count()
        parts[column] = table.scores.mean().where(lost == 0)
        parts[f"{column} ±"] = half_widths(table.scores).where((lost == 0) & (unfinished < counted), np.inf)
        parts |= {
            f"{column} n": counted,
            f"{column} unfinished": unfinished,
            f"{column} lost": lost,
            f"{column} of": (table.runs > 0).sum(),
        }
    return pd.DataFrame(parts)


def half_widths(values: pd.DataFrame, confidence: float = 0.95) -> pd.Series[float]:
    """Return, for each column, half the width of the confidence interval of its mean; inf for fewer than two values."""
    found: pd.Series[float] = values.sem().mul(critical(values.count(), confidence)).fillna(np.inf)
    return found


def joint_confidence(count: int) -> float:
    """Return the confidence of each difference with which those of all pairs of `count` settings hold together (Bonferroni).

    The choice compares all pairs, and tables show some of them: with another correction they would contradict it.
    """
    return 1 - ERROR_PROBABILITY / max(1, count * (count - 1) // 2)


def differences(
    results: pd.DataFrame, settings: Sequence[str], column: str, reference: Mapping[str, str]
) -> pd.DataFrame:
    """Return the mean differences of all settings to the setting `reference`, with a row per setting.

    Columns: ``difference``, NaN if one of the two settings fails in some run; ``±``, the half width of its confidence
    interval; ``windows``, their number; ``unfinished``, the number of windows in which one of the two values is a lower
    bound.  Windows in which all values are lower bounds do not count.

    The intervals are those of the choice (`joint_confidence`).  Dunnett's would be narrower, but require independent samples
    of equal variance; here settings share windows, and some do not differ at all.

    Raises KeyError if the reference is not among the settings.
    """
    table = observed(results, settings, column)
    key = tuple(reference[name] for name in settings)
    against = key if len(key) > 1 else key[0]
    scores = table.scores[~table.hopeless]
    differences = scores.sub(scores[against], axis=0)
    unfinished = (
        table.behind.apply(lambda column: column | table.behind[against]).loc[scores.index] & differences.notna()
    )
    lost = table.lost.any() | bool(table.lost[against].any())
    confidence = joint_confidence(scores.shape[1])
    return pd.DataFrame(
        {
            "difference": differences.mean().mask(lost),
            "±": half_widths(differences, confidence).mask(lost, np.inf),
            "windows": differences.count(),
            "unfinished": unfinished.sum(),
        }
    )


def settings_of(index: pd.Index) -> list[tuple[str, ...]]:
    """Return the settings that an index contains, each as a tuple of texts."""
    return [tuple(map(str, key if isinstance(key, tuple) else (key,))) for key in index]


# ---- The choice of a setting: the set of settings that are not significantly worse than the best, and one of them.
#
# A setting is excluded from the set if another one is significantly better. All pairs are compared, window by window, with
# a joint error of 5 % (Bonferroni): the best is not known in advance, so finding it is as hard as comparing all pairs (Hsu,
# Multiple Comparisons, 1996). With 95 % probability the setting with the smallest true mean is in the set; among equal
# settings, a single winner is named in at most 5 % of studies.
#
# If settings are ranked by a percentile, only those with its minimum sample in all their runs take part: the longest of two
# checkpoints is not a p99. If no candidate has the sample, all are compared by the value nevertheless, which is then nearly
# the longest duration. Likewise, a percentile is known to be within a limit only with its minimum sample. A value above an
# upper limit breaks the limit with any sample.

Setting = tuple[str, ...]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

TIE_TOLERANCE = 1e-9
"""Maximum relative difference of two values that count as equal."""


@frozen
class Exceeded:
    """A window in which a setting breaks a limit."""

    column: str
    window: str
    value: float


@frozen
class Standing:
    """Mean, limits and sample of one setting in a comparison."""

    setting: Setting
    value: float  # mean over the windows in which the value of some setting is not a lower bound
    half_width: float  # half width of the confidence interval of `value`
    behind: int  # number of windows in which its value is a lower bound and that of another setting is not
    broken: tuple[str, ...] = ()  # columns whose limit it breaks
    unsure: tuple[str, ...] = ()  # columns whose limit is inside the confidence interval of the mean
    exceeded: tuple[Exceeded, ...] = ()  # windows that break a limit, even if the mean keeps it
    failed: int = 0  # number of windows in which a run failed or lacks a value that another setting has
    absent: int = 0  # number of windows in which it did not run
    sample: int | None = None  # observations of the ranking percentile in all its runs; None if it is not a percentile
    # column of a percentile whose sample is too small to check its limit -> number of observations
    unknown: Mapping[str, int] = field(default_factory=dict)
    ranked: bool = True  # False if its sample is too small for a percentile, while other settings have the sample, or if `is_short`
    # whether its runs have too few intervals, and the ranking column is one of checkpoints (`too_few_intervals`)
    is_short: bool = False

    @property
    def sound(self) -> bool:
        """Return True if the setting ran without failures in all windows, has a value, and is within all limits."""
        return not (self.broken or self.failed or self.absent or np.isnan(self.value))

    @property
    def eligible(self) -> bool:
        """Return True if the setting is sound and has a sample that is large enough to rank it."""
        return self.sound and self.ranked


@frozen
class Selection:
    """All settings in order of rank, and the recommended one.

    Eligible settings come first, then other sound ones, then the rest.  Within these groups they are ordered by `behind`,
    then by mean.
    """

    standings: tuple[Standing, ...]
    windows: tuple[str, ...]
    sample: str  # what a window is: see `Observed`
    hopeless: tuple[str, ...]  # windows in which all values are lower bounds
    failed: tuple[str, ...]  # windows in which every setting fails
    compared: int  # number of windows in which settings are compared
    unmeasured: tuple[str, ...]  # columns without a value in any run
    best: tuple[Setting, ...] = ()  # settings that are not significantly worse than the best; () if none is eligible
    advised: Setting | None = None  # the recommended setting, one of `best`; None if none is eligible
    # why it is recommended: "only" (the others are significantly worse), "reference" (it is the current setting),
    # "changes" (fewest changes from the current setting) or "least" (smallest mean)
    reason: str = ""
    ties: tuple[Setting, ...] = ()  # settings that equal `advised` in every window

    @property
    def eligible(self) -> tuple[Standing, ...]:
        """Return the eligible settings in order of rank."""
        return tuple(standing for standing in self.standings if standing.eligible)

    def standing(self, setting: Setting) -> Standing:
        """Return the standing of a setting.  Raises StopIteration if there is none."""
        return next(standing for standing in self.standings if standing.setting == setting)


def choose(
    results: pd.DataFrame,
    settings: Sequence[str],
    least: str,
    limits: Sequence[Limit] = (),
    reference: Sequence[str] = (),
) -> Selection:
    """Rank all settings by their mean of column `least`, and recommend one of those that are within all limits.

    A setting breaks a limit if one of its runs fails, or if none has a value of the column.  A lower bound breaks an upper
    limit.  `reference`: values of the current setting, empty if unknown.
    """
    ranking = observed(results, settings, least)
    of_limits = {limit: observed(results, settings, limit.column) for limit in limits}
    hopeless, ran = ranking.hopeless, ranking.runs > 0
    failed = (ranking.lost | ~ran).all(axis=1)
    counted = ranking.scores[~hopeless & ~failed]
    counts_of = {
        column: pooled_samples(results, settings, column) for column in (least, *(limit.column for limit in limits))
    }
    by_column = {least: ranking} | {limit.column: table for limit, table in of_limits.items()}
    unmeasured = tuple(
        column for column, table in by_column.items() if not (table.scores.notna() | table.lost).to_numpy().any()
    )
    broken = [(limit.column, _breaks_limit(table, limit)) for limit, table in of_limits.items()]
    unsure = [(limit.column, _may_change(table, limit)) for limit, table in of_limits.items()]
    counts_by_setting = zip(
        settings_of(ranking.scores.columns),
        counted.mean(),
        half_widths(counted),
        ranking.behind.sum(),
        ranking.lost[~failed].sum(),
        (~ran).sum(),
        strict=True,
    )
    standings = [
        Standing(
            setting,
            float(mean),
            float(half),
            int(behind),
            tuple(column for column, breaks in broken if breaks.iloc[position]),
            tuple(column for column, may_change in unsure if may_change.iloc[position]),
            tuple(window for limit, table in of_limits.items() for window in _exceeded_windows(table, position, limit)),
            int(lost),
            int(absent),
            counts_of[least].get(setting),
            {
                limit.column: sample
                for limit in limits
                if (sample := counts_of[limit.column].get(setting)) is not None
                and sample < smallest_sample_of(limit.column)
            },
        )
        for position, (setting, mean, half, behind, lost, absent) in enumerate(counts_by_setting)
    ]
    short = too_few_intervals(results, settings, least)
    standings = [replace(standing, is_short=standing.setting in short) for standing in standings]
    standings = _with_ranks(standings, smallest_sample_of(least))
    ordered = sorted(
        standings, key=lambda standing: (not standing.eligible, not standing.sound, standing.behind, standing.value)
    )
    selection = Selection(
        tuple(ordered),
        tuple(map(str, ranking.scores.index)),
        ranking.sample,
        tuple(map(str, hopeless.index[hopeless])),
        tuple(map(str, failed.index[failed])),
        int(counted.notna().any(axis=1).sum()),
        unmeasured,
    )
    return _with_choice(selection, ranking, counted, tuple(reference))


def is_significantly_worse(values: Floats, unfinished: Flags, confidence: float) -> Flags:
    """Return a (settings x settings) matrix whose element [i, j] is True if setting i is significantly worse than j.

    `confidence`: of each comparison (`joint_confidence`).  No setting is worse than one that
    has a lower bound in a window in which its own value is exact, because the true value of the other may be larger.

    `values`: windows x settings, NaN if there is no value.  `unfinished`: same shape, True if the value is a lower bound.
    """
    count = values.shape[1]
    worse = np.zeros((count, count), dtype=bool)
    for i in range(count):
        differences = values[:, [i]] - values
        differences[np.abs(differences) <= TIE_TOLERANCE * np.maximum(np.abs(values), np.abs(values[:, [i]]))] = 0.0
        only_i = unfinished[:, [i]] & ~unfinished
        for j in np.flatnonzero(only_i.any(axis=0)):
            differences[:, j] = _cap_bounds(differences[:, j], only_i[:, j])
        only_other = (~unfinished[:, [i]] & unfinished & ~np.isnan(differences)).any(axis=0)
        # Student's t-test: a single difference is never significant; two or more equal, positive ones are
        columns = pd.DataFrame(differences)
        worse[i] = (columns.mean() > half_widths(columns, confidence)).to_numpy() & ~only_other
    return worse


def _cap_bounds(differences: Floats, unfinished: Flags) -> Floats:
    """Return the differences with a cap on those from windows with a lower bound (`unfinished`).

    A very large difference raises the spread more than the mean, so that a worse run would make a setting look less
    significantly worse.  For the other differences d, the t-statistic is largest with an additional one of
    sum(d^2) / sum(d).  That is the cap.
    """
    others = differences[~unfinished & ~np.isnan(differences)]
    if others.sum() <= 0:
        return differences
    return np.where(unfinished, np.minimum(differences, (others**2).sum() / others.sum()), differences)


def _with_ranks(standings: Sequence[Standing], needed: int) -> list[Standing]:
    """Set `ranked` to False for sound settings with too small a sample, if another sound setting has the sample.

    Samples of the limits count first, then the sample of the ranking percentile, whose minimum is `needed`.  Settings with too
    few intervals are never ranked.
    """
    sound = [standing for standing in standings if standing.sound and not standing.is_short]
    known = [standing for standing in sound if not standing.unknown]
    enough = [standing for standing in known or sound if standing.sample is None or standing.sample >= needed]
    ranked = {standing.setting for standing in enough or known or sound}
    return [replace(standing, ranked=standing.setting in ranked or not standing.sound) for standing in standings]


def _breaks_limit(table: Observed, limit: Limit) -> pd.Series[bool]:
    """Return, for each setting, whether its mean breaks the limit, a run failed, or, for an upper limit, a value is a lower bound."""
    is_broken: pd.Series[bool] = ~table.scores.mean().map(limit.kept)
    is_broken |= table.lost.any() | (table.unfinished.any() & np.isfinite(limit.at_most))
    return is_broken


def _exceeded_windows(table: Observed, position: int, limit: Limit) -> list[Exceeded]:
    """Return the windows whose values break the limit, the worst first.  `position`: column of the setting."""
    windows = [
        Exceeded(limit.column, str(window), float(value))
        for window, value in table.scores.iloc[:, position].dropna().items()
        if not limit.kept(float(value))
    ]
    return sorted(windows, key=lambda window: window.value, reverse=bool(np.isfinite(limit.at_most)))


def _may_change(table: Observed, limit: Limit) -> pd.Series[bool]:
    """Return, for each setting, whether the limit is inside the confidence interval of the mean."""
    mean, half = table.scores.mean(), half_widths(table.scores)
    is_inside: pd.Series[bool] = (mean - half).map(limit.kept) != (mean + half).map(limit.kept)
    is_inside &= (half < np.inf) & ~table.lost.any()
    return is_inside


def _with_choice(selection: Selection, ranking: Observed, counted: pd.DataFrame, reference: Setting) -> Selection:
    """Return the selection with the best settings, the recommended one and its ties.  `counted`: scores of the compared windows."""
    places = {setting: place for place, setting in enumerate(settings_of(counted.columns))}
    names = [standing.setting for standing in selection.eligible]
    if not names:
        return selection
    chosen = [places[name] for name in names]
    values = counted.iloc[:, chosen].to_numpy(dtype=float)
    unfinished = ranking.unfinished.loc[counted.index].iloc[:, chosen].to_numpy(dtype=bool)
    worse = is_significantly_worse(values, unfinished, joint_confidence(counted.shape[1]))
    best = tuple(
        name for name, is_worse in zip(names, [bool(row.any()) for row in worse], strict=True) if not is_worse
    ) or (names[0],)
    least = min(selection.standing(name).behind for name in best)
    sound = [name for name in best if selection.standing(name).behind == least]
    advised, reason = _recommendation(sound, reference, alone=len(best) == 1)
    of_advised = values[:, names.index(advised)]
    ties = tuple(
        name
        for i, name in enumerate(names)
        if name != advised
        and selection.standing(name).behind == selection.standing(advised).behind  # a bound equals no value
        and np.allclose(values[:, i], of_advised, rtol=TIE_TOLERANCE, atol=0.0, equal_nan=True)
    )
    return replace(selection, best=best, advised=advised, reason=reason, ties=ties)


def _recommendation(sound: Sequence[Setting], reference: Setting, *, alone: bool) -> tuple[Setting, str]:
    """Return (recommended setting, reason).

    `sound`: candidates in order of rank.  `reference`: current setting, empty if unknown.  `alone`: all other settings are
    significantly worse.
    """
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


# ---- Parsing and printing of limits.


class MeasureError(PrintableError, ValueError):
    """A limit cannot be parsed, or has the wrong unit for its column."""


def limit(column: str, condition: str) -> Limit:
    """Parse a limit, e.g. ``limit("end_to_end_p99_ms", "< 60 s")``.  < and <= mean the same.

    Raises MeasureError.
    """
    parsed = parse_condition(condition)
    if parsed is None or parsed.comparison in ("==", "!="):
        raise MeasureError(f"'{condition}' is not a condition: write '< 60 s' or '> 10'")
    try:
        bound = unit_of(column).parse(parsed.bound)
    except units.UnitError as error:
        raise MeasureError(str(error)) from None
    return Limit(column, at_most=bound) if parsed.comparison.startswith("<") else Limit(column, at_least=bound)


def limit_text(limit: Limit) -> str:
    """Return ``end_to_end_p99_ms at most 60 s``."""
    upper = math.isfinite(limit.at_most)
    return f"{limit.column} {'at most' if upper else 'at least'} {text(limit.column, limit.at_most if upper else limit.at_least)}"
