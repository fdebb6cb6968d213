"""The choice of a setting from the results of trials, and its certainty.

A setting is judged by the share of time that it loses: checkpoints cost throughput, those that fail may restart the job, and
each failure costs a recovery.
A value above its limit by less than `AT_LIMIT` breaks nothing, because runs do not tell it from one below.  A limit is kept
*with room* if it would still be kept after the value has grown by the prediction error, or by the spread of repeated runs
if that is larger.

The choice among the settings that keep all limits.  A setting does not count if a simpler one, with today's barrier mode or
interval or with one lever less, is about as good where it lacks room (`CandidateSearch.choose`).

1. If some have room, those that lose about as little time as the best of them are good (`EQUAL_LOSS_RELATIVE`,
   `EQUAL_LOSS_SHARE`), and those whose runs do not tell them apart from it (`loss_noise`).
2. If none has room, settings that lose notably more time than the best are excluded (`NOTABLE_LOSS_SHARE`).  Of the
   others, those whose shortfall of room is about the smallest are good (`EQUAL_SHORTFALL`).
3. Of the good settings, the one that changes fewest keys is advised (the current setting changes none); then the one with
   the longer interval; then the one whose barrier mode comes first in `sim.advice.settings.protocols`.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import NamedTuple

import numpy as np
import pandas as pd

from sim.advice.settings import SettingName, protocols
from sim.advice.trials import FAILURE, FAILURE_PHASE, INTERVAL, PROTOCOL, TRIAL, UNDISTURBED, WORLD
from sim.model.quantities import S3_STANDARD, USE, Prices
from sim.model.units import parse_duration
from sim.results.rates import MIN_SHORTFALL_SHARE
from sim.results.sweep_answers import ended

EQUAL_LOSS_RELATIVE, EQUAL_LOSS_SHARE = 0.02, 0.001
"""Losses count as equal up to this relative difference plus this share of time."""
EQUAL_SHORTFALL, NOTABLE_LOSS_SHARE = 0.05, 0.01
"""If no setting has room: shortfalls count as equal up to the first, and the second, a share of time, may be lost for more room."""
RESAMPLES = 400
"""Number of draws by which the certainty of the choice is estimated."""
ASSUMED_SPREAD = {"loss": (0.0, 0.003)}
"""Assumed (relative, absolute) standard deviation of a column with a single run."""
ROUGH_ELSE = (0.1, 0.0)
"""Assumed (relative, absolute) standard deviation of all other columns, which vary far more than throughput."""

AT_LIMIT = 0.01
"""Values above a limit by at most this share are at the limit: they may be chosen, with a warning, as those just below it."""
SPREAD_RUNS, SPREADS = 3, 2.0
"""Minimum runs to estimate the spread, and number of standard deviations for which a limit must have room."""

FULL = 0.98
"""Minimum busy share of a subtask that counts as fully busy."""
KEEPS_UP = 0.005
"""A job keeps up if its backlog grows by at most this share of the served records.  A pause at the end leaves some backlog."""


@dataclass(frozen=True, slots=True)
class Measured:
    """The measured values of a setting, as means over replications."""

    checkpoint_ms: float  # p99 of the end-to-end duration; inf: a checkpoint failed, e.g. expired, or none completed
    checkpoint_p50_ms: float
    loss: float  # share of throughput
    visible_ms: float  # p99 of the time until output is visible; NaN: no sink is transactional; inf: output was lost
    recovery_ms: float  # from a failure until all lost work is done again; inf: never
    again_ms: float  # downtime, plus the time to process the replayed records at the job's throughput
    replayed: float  # records processed again after the failure
    completed: float  # number of checkpoints in the undisturbed run
    persisted_bytes: float  # in-flight data, per checkpoint
    checkpointed_bytes: float  # written by a checkpoint, mean
    written_per_hour: float  # bytes written by checkpoints, and by materializations of changelogs
    per_second: float  # throughput, records/s
    longest_ms: float  # longest checkpoint
    checkpoint_p90_ms: float  # inf: as for checkpoint_ms
    storage_cost: float  # of the requests to an object store, per month; NaN: checkpoints are stored elsewhere
    # share of time between restarts by checkpoints that fail, and being caught up again, without any other failure
    restarting: float = field(default=0.0, kw_only=True)


MEASURED = tuple(column.name for column in fields(Measured))
_AT = {column: i for i, column in enumerate(MEASURED)}
_LOSING = ("recovery_ms", "again_ms", "replayed", "per_second", "loss", "restarting")
_Array = np.ndarray[tuple[int], np.dtype[np.float64]]
_Values = np.ndarray[tuple[int, int], np.dtype[np.float64]]
_Flags = np.ndarray[tuple[int, int], np.dtype[np.bool_]]
Trials = dict[SettingName, dict[str, _Values]]
"""(interval, protocol) -> world -> array of shape (replications, len(MEASURED))."""


Margins = Callable[[SettingName, str], float]
"""(setting, column) -> relative amount by which the real value may exceed the predicted one."""


def no_margin(name: SettingName, column: str) -> float:
    """Return 0, so that predictions count as exact."""
    del name, column
    return 0.0


def room(value: float, at_most: float) -> float:
    """Return by which share a value may grow until it reaches its limit: 0.25 for 8 s with a limit of 10 s; inf for 0.

    The result is negative if the limit is exceeded.
    """
    return at_most / value - 1 if value > 0 else math.inf


class NarrowLimit(NamedTuple):
    """A limit that is kept with too little room."""

    column: str  # the limited quantity, a name in MEASURED
    room: float  # share of the predicted value by which it may grow until it reaches the limit
    needed: float  # share of the predicted value by which the real one may be larger

    @property
    def lack(self) -> float:
        """Return the ratio of the largest likely value to the limit, above 1 if there is too little room."""
        return (1 + self.needed) / (1 + self.room)


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits given by the user.  None means that there is no such limit."""

    recovery_ms: float | None = None  # from a failure until all lost work is done again
    checkpoint_ms: float | None = None  # p99 of the end-to-end duration
    loss: float | None = None  # of throughput, as a share
    visible_ms: float | None = None  # p99 of the time until output of transactional sinks is visible

    @property
    def bounds(self) -> dict[str, float]:
        """Return {column: maximum} for each limit that is given."""
        return {column: bound for column, bound in asdict(self).items() if bound is not None}


@dataclass(frozen=True, slots=True)
class Setting(Measured):
    """A setting that has run, judged by the limits.  Each value is that of the world in which it is worst."""

    interval: str
    protocol: str
    runs: int  # replications of each kind
    lost: float  # share of time lost to checkpoints and failures, mean over worlds
    lost_by_run: tuple[float, ...]  # the same for each replication
    breaks: tuple[str, ...]  # fields of Measured whose limit is exceeded
    tight: tuple[NarrowLimit, ...] = ()  # limits kept with too little room
    checkpoints: int = 0  # number of checkpoints from which checkpoint_ms is computed, in the world with fewest
    rare: str = ""  # why rare checkpoints take as long as checkpoint_ms, though none of the trial's does
    ran_long: bool = False  # checkpoint_ms is the longest of long runs; else p99, or the longest of fewer than 100
    is_extrapolated: bool = False  # recovery_ms is estimated, because trials ended before the job had caught up
    # text instead of an infinite recovery_ms, if that is because the restart strategy gives up; else ""
    gives_up: str = ""

    @property
    def name(self) -> SettingName:
        return self.interval, self.protocol

    def value(self, column: str) -> float:
        return float(getattr(self, column))

    @property
    def keeps_limits(self) -> bool:
        return bool(self.completed) and not self.breaks and all(tight.room >= 0 for tight in self.tight)

    @property
    def lack(self) -> float:
        """Return the largest `NarrowLimit.lack`, or 1 if there is enough room."""
        return max((tight.lack for tight in self.tight), default=1.0)


@dataclass(frozen=True, slots=True)
class FileRun:
    """The limited quantities in the runs of one setting with the events in the file."""

    limited: Mapping[str, float] = field(default_factory=dict)  # limited column -> value; inf: never
    event: str = ""  # what the values are of, e.g. "a storage outage at 3.3 min"
    unsure: tuple[
        str, ...
    ] = ()  # columns whose value may be larger: the run ended before, or several failures are pooled
    restarts: str = ""  # what makes checkpoints fail, which restart the job; "": none does
    ends: str = ""  # the status of the job if it fails for good


@dataclass(frozen=True, slots=True)
class Choice:
    """The chosen setting and its certainty: shares of `RESAMPLES` draws of the means (`resample_choice`)."""

    chosen: SettingName | None  # None: no setting keeps the limits
    same_setting: float  # share of draws that choose the same setting
    same_protocol: float  # share of draws that choose the same protocol
    # other choices with their shares, the most frequent first
    others: tuple[tuple[SettingName | None, float], ...]


def measure(
    results: pd.DataFrame,
    *,
    now: str,
    unlimited: bool,
    prices: Prices = S3_STANDARD,
    observed: Callable[[SettingName], float],
    period: Callable[[SettingName, float], float],
    has_random_start: bool = False,
    intervals_later: int = 0,
) -> Trials:
    """Return the values of every setting in `results`, the rows of trials and baselines.

    `now`: name of today's protocol.  Unless it has debloating, losses are relative to baselines without debloating, which
    costs throughput, too.
    `unlimited`: sources always have more records, so that the job never catches up.  Recovery is then the downtime plus the
    time to process the replayed records.  Otherwise a job whose backlog does not grow counts as serving all arrivals.
    `observed(setting)`: time for which the undisturbed run is observed [s].
    `period(setting, p50_ms)`: time from one checkpoint to the next [s], given the median duration [ms].
    `has_random_start`: see `with_late_failures`.
    `intervals_later`: intervals after which output is visible, beyond those that are simulated.
    """
    rows = results[(results["status"] == "ok") & (results["strategy"] != "none") & results[TRIAL].notna()]
    keys = [WORLD, INTERVAL, PROTOCOL, "replication"]
    steady = rows[rows[TRIAL] == UNDISTURBED].drop_duplicates(keys).set_index(keys)
    failed = rows[rows[TRIAL] == FAILURE].drop_duplicates(keys).set_index(keys).reindex(steady.index)
    seconds = np.array([observed((interval, protocol)) for _, interval, protocol, _ in steady.index])
    # not computed from the number of checkpoints, because the last one may not complete within the run
    periods_s = np.array(
        [
            period((interval, protocol), p50_ms if math.isfinite(p50_ms) else 0.0)
            for (_, interval, protocol, _), p50_ms in zip(steady.index, steady["end_to_end_p50_ms"], strict=True)
        ]
    )
    # sinks get nothing, with checkpoints or without, while windows are longer than the trial
    is_silent = (steady["throughput_per_second"] == 0) & steady["throughput_change"].isna()
    rate = steady["throughput_per_second"].mask(is_silent, steady["emitted_per_second"])
    recovery_ms = recoveries_ms(failed, steady, rate, unlimited=unlimited)
    if has_random_start:
        failed, recovery_ms = with_late_failures(failed, recovery_ms, periods_s, steady["busiest_subtask_share"])
    again_ms = _reprocessing_ms(failed, rate)
    expired, bare = steady["failed"] - steady["interrupted"], _baseline_throughput(steady, now)
    bare = np.where(is_silent, 0.0, bare)
    backlog = KEEPS_UP * steady["throughput_per_second"] * seconds
    keeps_up = (not unlimited) & (steady["backlog_growth"] <= np.fmax(backlog, _delayed_records(steady)))
    checkpointed = steady["checkpointed_mean_bytes"].fillna(0.0)
    # may be negative, if restarts replay more records than are served
    served = steady["throughput_per_second"].where(~keeps_up, bare).clip(lower=0.0)
    # an undisturbed job restarts because checkpoints fail, after which it repeats more than it does after other failures; the
    # share of time between such restarts and being caught up again
    restarting = steady.reindex(columns=["disturbed_share"])["disturbed_share"].fillna(0.0)
    if restarting.any():
        longer = (restarting > 0) & ~(steady["caught_up_ms"] <= recovery_ms)
        recovery_ms = recovery_ms.where(~longer, steady["caught_up_ms"])
    table = pd.DataFrame(
        {
            "checkpoint_ms": steady["end_to_end_p99_ms"].where((expired == 0) & (steady["completed"] > 0), math.inf),
            "checkpoint_p50_ms": steady["end_to_end_p50_ms"],
            "loss": (1 - served / bare).mask(is_silent, 0.0),
            "visible_ms": (steady["visible_p99_ms"] + 1e3 * intervals_later * periods_s).where(
                ~(steady["lost_records"] > 0), math.inf
            ),
            "recovery_ms": again_ms if unlimited else recovery_ms,
            "again_ms": again_ms,
            "replayed": failed["replayed_records"],
            "completed": steady["completed"],
            "persisted_bytes": steady["persisted_bytes"],
            "checkpointed_bytes": checkpointed,
            "written_per_hour": checkpointed * 3600 / periods_s + steady["materialized_bytes_per_hour"],
            "per_second": served,
            "longest_ms": steady["end_to_end_max_ms"],
            "checkpoint_p90_ms": steady["end_to_end_p90_ms"].where(
                (expired == 0) & (steady["completed"] > 0), math.inf
            ),
            "storage_cost": storage_cost(steady, prices),
            "restarting": restarting,
        }
    )[list(MEASURED)]
    trials: Trials = {}
    for key, runs in table.groupby(level=[WORLD, INTERVAL, PROTOCOL], sort=False):
        world, interval, protocol = map(str, key)
        trials.setdefault((interval, protocol), {})[world] = _pool_p99(runs.to_numpy(dtype=float))
    return trials


def rows_of_kind(rows: pd.DataFrame, kind: str) -> pd.DataFrame:
    """Return the rows of the completed trials of one kind, without baselines."""
    return rows[(rows["status"] == "ok") & (rows["strategy"] != "none") & (rows[TRIAL] == kind)]


def rows_of(rows: pd.DataFrame, name: SettingName, kind: str) -> pd.DataFrame:
    """Return the rows of a setting's completed trials of one kind, without baselines."""
    of_kind = rows_of_kind(rows, kind)
    return of_kind[(of_kind[INTERVAL] == name[0]) & (of_kind[PROTOCOL] == name[1])]


def storage_cost(steady: pd.DataFrame, prices: Prices) -> list[float]:
    """Return the cost per month of each run's requests to an object store, or NaN if rows have no request counts."""
    if not set(USE) <= set(steady):
        return [math.nan] * len(steady)
    return [prices.cost_per_month(dict(zip(USE, row, strict=True))) for row in steady[list(USE)].to_numpy()]


def recoveries_ms(
    failed: pd.DataFrame, steady: pd.DataFrame, per_second: pd.Series[float] | float, *, unlimited: bool
) -> pd.Series[float]:
    """Return the time from each failure until all lost work is done again [ms]; inf: never.

    For a trial that ended before, the time is extrapolated from the backlog that was left at its end.  `failed`: rows of
    trials with a failure.  `steady`: rows of undisturbed runs of the same setting, with the same index, which serve
    `per_second` records/s.
    """
    if unlimited:
        return _reprocessing_ms(failed, per_second)
    recovery_ms = ended(failed, "caught_up_ms")
    if not (recovery_ms.isna() & failed["caught_up_ms"].notna()).any():
        return recovery_ms.fillna(math.inf)
    down_ms, seen_ms = failed["downtime_ms"], failed["caught_up_ms"]
    spent_ms = seen_ms - down_ms
    behind_ms = down_ms + 1e3 * failed["replayed_records"] / failed["offered_per_second"]
    done_ms = behind_ms - 1e3 * failed["ended_s"] * (1 - failed["throughput_per_second"] / per_second)
    estimated_ms = (down_ms + spent_ms * behind_ms / done_ms).clip(lower=seen_ms)
    catches_up = (spent_ms > 0) & (done_ms > KEEPS_UP * spent_ms) & ~falls_behind(steady)
    return recovery_ms.fillna(estimated_ms.where(catches_up, math.inf))


def with_late_failures(
    failed: pd.DataFrame, recovery_ms: pd.Series[float], periods_s: _Array, busy: pd.Series[float]
) -> tuple[pd.DataFrame, pd.Series[float]]:
    """Return trials with a failure, and their recoveries, as if each had failed as late in an interval as `FAILURE_PHASE` says.

    Flink 1.x takes its first checkpoint at a random time, so that a failure at a given time is anywhere in an interval.  The work
    that is missing is caught up as fast as a subtask allows that is `busy` for this share of its time, or as the trial was if that
    is faster: one that failed right behind a checkpoint has hardly anything to catch up, and its pace is chance.  `periods_s`:
    effective interval of each row [s].
    """
    rate, down_ms = failed["offered_per_second"], failed["downtime_ms"]
    rate = rate.where(np.isfinite(rate) & (rate > 0), failed["throughput_per_second"])
    replayed = failed["replayed_records"]
    late = (rate * periods_s * FAILURE_PHASE[0] / FAILURE_PHASE[1]).clip(lower=replayed)
    seen_pace = (recovery_ms - down_ms) / (1e3 * replayed / rate + down_ms)
    pace = np.fmin(seen_pace, busy / (1 - busy).clip(lower=0))
    more_ms = 1e3 * (late - replayed) / rate * pace
    return failed.assign(replayed_records=late), recovery_ms + more_ms.fillna(0.0)


def falls_short(steady: pd.DataFrame) -> pd.Series[bool]:
    """Return, for each undisturbed run, whether sources emit notably less than is offered, by more than a checkpoint delays."""
    missing = steady["offered_per_second"] - steady["emitted_per_second"]
    delayed = _delayed_records(steady)
    return (missing > MIN_SHORTFALL_SHARE * steady["offered_per_second"]) & (
        (delayed == 0) | (missing * steady.get("ended_s", 0.0) > delayed)
    )


def _delayed_records(steady: pd.DataFrame) -> pd.Series[float]:
    """Return how many records are due while a checkpoint stops a task thread, for each undisturbed run; 0 if a subtask is fully busy.

    A trial may end in such a pause, and these records are emitted after it.
    """
    return (steady["offered_per_second"] * pause_s(steady)).where(steady["busiest_subtask_share"] < FULL, 0.0)


def pause_s(steady: pd.DataFrame) -> pd.Series[float]:
    """Return for how long a checkpoint stops a task thread [s], for each undisturbed run."""
    return steady.reindex(columns=["tail_pre_barrier_ms", "tail_sync_ms"]).sum(axis=1) / 1e3


def falls_behind(steady: pd.DataFrame) -> pd.Series[bool]:
    """Return, for each undisturbed run, whether sources emit less than is offered, or will do so once buffers are full."""
    return falls_short(steady) | (steady["busiest_subtask_share"] >= FULL)


def _reprocessing_ms(failed: pd.DataFrame, per_second: pd.Series[float] | float) -> pd.Series[float]:
    """Return the downtime plus the time to process the replayed records at the job's throughput [ms]."""
    return failed["downtime_ms"] + 1e3 * failed["replayed_records"] / per_second


def _pool_p99(values: _Values) -> _Values:
    """Shift the p99 of all runs of a setting by the same amount, so that their mean is about the p99 of all their checkpoints.

    With fewer than 100 checkpoints in all, that is the longest one.  Without the shift, the mean over runs with two
    checkpoints each would be near their median.  Changes `values` in place.
    """
    p99, longest = values[:, _AT["checkpoint_ms"]], values[:, _AT["longest_ms"]]
    if not np.isfinite(p99).all() or not np.isfinite(longest).all():
        return values
    largest = np.sort(np.concatenate([p99, longest]))[::-1]
    values[:, _AT["checkpoint_ms"]] += (
        largest[min(int(values[:, _AT["completed"]].sum()) // 100, len(largest) - 1)] - p99.mean()
    )
    return values


def judge(
    trials: Trials, limits: Limits, mtbf_s: float, *, patience_ms: float = math.inf, margins: Margins = no_margin
) -> tuple[Setting, ...]:
    """Return the judged settings, in the order of `trials`.

    `mtbf_s`: mean time between failures.  `patience_ms`: time for which a trial waits for the recovery.
    """
    means = {
        name: {world: values.mean(axis=0)[np.newaxis] for world, values in worlds.items()}
        for name, worlds in trials.items()
    }
    bounds = _applicable_bounds(means, limits)
    settings = []
    for (interval, protocol), worlds in means.items():
        worst, lost = _worst_values(worlds), _lost_share(worlds, mtbf_s, patience_ms)
        values_of = dict(zip(MEASURED, worst[0].tolist(), strict=True))
        breaks = tuple(column for column, bound in bounds.items() if not values_of[column] <= bound * (1 + AT_LIMIT))
        runs_by_world = trials[(interval, protocol)]
        kept = (
            _margin_below(column, bound, values_of[column], runs_by_world, margins((interval, protocol), column))
            for column, bound in bounds.items()
            if column not in breaks
        )
        settings.append(
            Setting(
                **values_of,
                interval=interval,
                protocol=protocol,
                runs=min(map(len, runs_by_world.values())),
                lost=float(lost[0]),
                lost_by_run=_lost_share_by_run(runs_by_world, mtbf_s, patience_ms),
                breaks=breaks,
                tight=tuple(limit for limit in kept if limit.room < limit.needed),
                checkpoints=min(int(values[:, _AT["completed"]].sum()) for values in runs_by_world.values()),
            )
        )
    return tuple(settings)


def _margin_below(column: str, bound: float, value: float, worlds: Mapping[str, _Values], margin: float) -> NarrowLimit:
    """Return the room of a value below its limit, and the room that it needs.

    It needs the larger of the prediction margin and the spread of runs.  For checkpoint p99 the spread is ignored, because
    long runs confirm it.
    """
    if not value > 0:
        return NarrowLimit(column, math.inf, 0.0)
    spread = 0.0
    if column != "checkpoint_ms" and min(map(len, worlds.values())) >= SPREAD_RUNS:
        spread = SPREADS * max(float(values[:, _AT[column]].std(ddof=1)) for values in worlds.values()) / value
    return NarrowLimit(column, room(value, bound), max(margin, spread))


def choose(settings: Sequence[Setting], changes: Mapping[SettingName, int]) -> Setting | None:
    """Return the setting to advise, or None if none keeps the limits.  `changes`: number of keys that each setting changes."""
    if not settings:
        return None
    lost = np.array([[setting.lost for setting in settings]])
    kept = np.array([[not setting.breaks and bool(setting.completed) for setting in settings]])
    lack = np.array([[setting.lack for setting in settings]])
    (picked,) = _pick(lost, kept, lack, [setting.name for setting in settings], changes, loss_noise(settings))
    return None if picked < 0 else settings[picked]


def resample_choice(
    trials: Trials,
    limits: Limits,
    mtbf_s: float,
    changes: Mapping[SettingName, int],
    *,
    patience_ms: float = math.inf,
    margins: Margins = no_margin,
) -> Choice:
    """Return the choice, and how often it would be the same if all trials were repeated.

    Means are drawn from their distribution given the replications (Student's t).  All settings share the draws, because
    they ran with the same random numbers, so that common effects cancel.  For a single run a standard deviation is assumed
    (`ASSUMED_SPREAD`, `ROUGH_ELSE`).
    """
    settings = judge(trials, limits, mtbf_s, patience_ms=patience_ms, margins=margins)
    chosen = choose(settings, changes)
    chosen_name = None if chosen is None else chosen.name
    drawn, names = _draw_means(trials), list(trials)
    bounds = _applicable_bounds(drawn, limits)
    worst = [_worst_values(drawn[name]) for name in names]
    lost = np.stack([_lost_share(drawn[name], mtbf_s, patience_ms) for name in names], axis=1)
    kept = np.stack([values[:, _AT["completed"]] > 0 for values in worst], axis=1)
    lack = np.ones_like(lost)
    for column, bound in bounds.items():
        values = np.stack([values[:, _AT[column]] for values in worst], axis=1)
        needed = np.array([1 + margins(name, column) for name in names])
        kept &= values <= bound * (1 + AT_LIMIT)
        with np.errstate(divide="ignore", invalid="ignore"):
            lack = np.fmax(lack, np.where(values > 0, needed, 1.0) * values / bound)
    picks = _pick(lost, kept, lack, names, changes, loss_noise(settings))
    counted = Counter(None if picked < 0 else names[picked] for picked in picks)
    alike = sum(
        count
        for name, count in counted.items()
        if name == chosen_name or (name and chosen_name and name[1] == chosen_name[1])
    )
    others = tuple((name, count / RESAMPLES) for name, count in counted.most_common() if name != chosen_name)
    return Choice(chosen_name, counted[chosen_name] / RESAMPLES, alike / RESAMPLES, others)


def paired_noise(differences: _Array) -> float:
    """Return the mean difference of paired runs that is not told from 0: `SPREADS` standard errors; 0 if too few runs show it."""
    finite = differences[np.isfinite(differences)]
    return SPREADS * float(finite.std(ddof=1)) / math.sqrt(len(finite)) if len(finite) >= SPREAD_RUNS else 0.0


def loss_noise(settings: Sequence[Setting]) -> _Array:
    """Return, for each setting, the difference in lost time to the best one with room that its runs do not tell from 0.

    Replications that both have are compared, because they ran with the same random numbers.
    """
    roomy = [
        setting
        for setting in settings
        if setting.completed and not (setting.breaks or setting.tight) and math.isfinite(setting.lost)
    ]
    best = min(roomy, key=lambda setting: setting.lost, default=None)
    noise = np.zeros(len(settings))
    for i, setting in enumerate(settings):
        pairs = [] if best is None else zip(setting.lost_by_run, best.lost_by_run, strict=False)
        noise[i] = paired_noise(np.array([mine - least for mine, least in pairs]))
    return noise


def near_ties(settings: Sequence[Setting]) -> list[Setting]:
    """Return the settings with room that lose about as little time as the best one, or whose runs do not tell them from it."""
    lost = np.array([[setting.lost for setting in settings]])
    roomy = np.array([[bool(setting.completed) and not (setting.breaks or setting.tight) for setting in settings]])
    if not roomy.any():
        return []
    good = _with_margin(lost, roomy, loss_noise(settings))[0]
    return [setting for setting, is_good in zip(settings, good, strict=True) if is_good]


def _pick(
    lost: _Values,
    kept: _Flags,
    lack: _Values,
    names: Sequence[SettingName],
    changes: Mapping[SettingName, int],
    noise: _Array,
) -> list[int]:
    """Return the index in `names` of the setting to advise, for each draw; -1: none keeps the limits.

    `lost`, `kept` and `lack` have the shape (draws, settings).  `lack`: see `Setting.lack`.  `noise`: see `loss_noise`.
    """
    order = {protocol.name: i for i, protocol in enumerate(protocols())}
    efforts = [(changes.get(name, 0), -parse_duration(name[0]), order.get(name[1], len(order))) for name in names]
    rank = np.array([sorted(efforts).index(effort) for effort in efforts])
    kept = kept & np.isfinite(lost)
    roomy = kept & (lack <= 1)
    good: _Flags = np.where(
        roomy.any(axis=1, keepdims=True), _with_margin(lost, roomy, noise), _without_margin(lost, kept, lack)
    )
    ranks = np.where(good, rank, len(names))
    return [int(row.argmin()) if row.min() < len(names) else -1 for row in ranks]


def _with_margin(lost: _Values, roomy: _Flags, noise: _Array) -> _Flags:
    """Return which settings are good if some have room (rule 1 of the module)."""
    lost = np.where(roomy, lost, np.inf)
    least = lost.min(axis=1, keepdims=True)
    good: _Flags = roomy & (lost <= least + np.maximum(least * EQUAL_LOSS_RELATIVE + EQUAL_LOSS_SHARE, noise))
    return good


def _without_margin(lost: _Values, kept: _Flags, lack: _Values) -> _Flags:
    """Return which settings are good if none has room (rule 2 of the module)."""
    lost = np.where(kept, lost, np.inf)
    cheap = kept & (lost <= lost.min(axis=1, keepdims=True) + NOTABLE_LOSS_SHARE)
    lack = np.where(cheap, lack, np.inf)
    good: _Flags = cheap & (lack <= lack.min(axis=1, keepdims=True) * (1 + EQUAL_SHORTFALL))
    return good


_CAPACITY = re.compile(r"parallelism of|cores|async-io\.capacity")


def _baseline_throughput(steady: pd.DataFrame, now: str) -> _Array:
    """Return the throughput without checkpoints [records/s] for each run.

    Runs of the same world, interval and replication share the first baseline that is known, if they can serve as much.
    Baselines with debloating are shared only if today's protocol, `now`, has it, too.
    """
    baseline = steady["throughput_per_second"] / (1 + steady["throughput_change"])
    protocols = baseline.index.get_level_values(PROTOCOL)
    is_like_today = ~protocols.str.contains("debloating") | ("debloating" in now)
    keys = [baseline.index.get_level_values(level) for level in (WORLD, INTERVAL, "replication")]
    shared = baseline.where(is_like_today).groupby([*keys, protocols.map(_capacity)], sort=False).transform("first")
    throughput: _Array = shared.fillna(baseline).to_numpy()
    return throughput


def _capacity(protocol: str) -> str:
    """Return the levers of a setting that change how many records its job can serve."""
    return ", ".join(part for part in protocol.split(", ") if _CAPACITY.search(part))


def _applicable_bounds(means: Mapping[SettingName, Mapping[str, _Values]], limits: Limits) -> dict[str, float]:
    """Return the limits that apply: the one on visible output only applies to jobs with a transactional sink."""
    visible = any(
        np.isfinite(mean[:, _AT["visible_ms"]]).any() for worlds in means.values() for mean in worlds.values()
    )
    return {column: bound for column, bound in limits.bounds.items() if column != "visible_ms" or visible}


def _worst_values(worlds: Mapping[str, _Values]) -> _Values:
    """Return the largest value of each quantity over all worlds, and the smallest number of checkpoints."""
    table = np.stack(list(worlds.values()))
    worst: _Values = table.max(axis=0)
    worst[:, _AT["completed"]] = table[:, :, _AT["completed"]].min(axis=0)
    return worst


def _lost_share(worlds: Mapping[str, _Values], mtbf_s: float, patience_ms: float) -> _Array:
    """Return the share of time lost to checkpoints, to those that restart the job, and to failures, as a mean over worlds.

    The time to catch up is scaled down, because the failure of a trial is late in an interval, whereas a failure at a
    random time repeats half an interval of work on average.
    """
    table = np.stack(list(worlds.values()))
    recovery_ms, again_ms, replayed, per_second, loss, restarting = (table[:, :, _AT[name]] for name in _LOSING)
    again_ms = np.where(np.isnan(again_ms), patience_ms, again_ms)  # down for at least as long as the trial waits
    replayed = np.nan_to_num(replayed)
    waited_ms = np.where(
        np.isinf(recovery_ms),
        np.maximum(again_ms, patience_ms if math.isfinite(patience_ms) else again_ms),
        recovery_ms,
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        replay_ms = np.where(per_second > 0, replayed / per_second * 1e3, 0.0)
        down_ms = np.maximum(again_ms - replay_ms, 0.0)
        typical_ms = down_ms + (waited_ms - down_ms) * FAILURE_PHASE[1] / FAILURE_PHASE[0] / 2
    lost: _Array = (np.maximum(loss, 0.0) + restarting + typical_ms / 1e3 / mtbf_s).mean(axis=0)
    return lost


def _lost_share_by_run(worlds: Mapping[str, _Values], mtbf_s: float, patience_ms: float) -> tuple[float, ...]:
    """Return the share of time lost in each replication that has run in all worlds."""
    count = min(map(len, worlds.values()))
    return tuple(_lost_share({world: values[:count] for world, values in worlds.items()}, mtbf_s, patience_ms).tolist())


def _draw_means(trials: Trials) -> dict[SettingName, dict[str, _Values]]:
    """Return drawn means, for each setting and world, as an array of shape (RESAMPLES, len(MEASURED))."""
    random = np.random.default_rng(1)
    most = max((len(values) for worlds in trials.values() for values in worlds.values()), default=1)
    normal = random.standard_normal((RESAMPLES, most))
    spread = {n: np.sqrt((n - 1) / random.chisquare(n - 1, size=RESAMPLES)) for n in range(2, most + 1)}
    rough = np.array([ASSUMED_SPREAD.get(column, ROUGH_ELSE) for column in MEASURED])
    drawn: dict[SettingName, dict[str, _Values]] = {}
    for name, worlds in trials.items():
        alone = random.standard_normal((RESAMPLES, len(MEASURED)))
        drawn[name] = {}
        for world, values in worlds.items():
            n, mean = len(values), values.mean(axis=0)
            with np.errstate(invalid="ignore"):
                if n == 1:
                    off = (mean * rough[:, 0] + rough[:, 1]) * alone
                else:
                    off = normal[:, :n] @ (values - mean) / math.sqrt(n * (n - 1)) * spread[n][:, np.newaxis]
                drawn[name][world] = np.where(np.isfinite(off), mean + off, mean)
    return drawn
