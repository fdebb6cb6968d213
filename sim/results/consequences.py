"""Compute the costs of a strategy beyond checkpoint durations: savepoints, failures, delay of output, end of the job.

The input is the result tables of all runs (replications) of a strategy.  Times in these tables are ms since the start of the run,
except for the column `time` of the table `series`, which is in s.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from operator import attrgetter
from types import MappingProxyType, SimpleNamespace
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from sim.model.quantities import PLANNED_RESTARTS, title_of
from sim.results.columns import Population, columns_of, compute_columns, in_printing_order, result_column
from sim.results.estimates import Duration, median_of_few, quantiles
from sim.results.formats import MISSING, TextTable, bytes_text, count_text, ms_text, share_text
from sim.results.rates import Tables
from sim.results.tables import EXPIRED

# ---- Kinds of checkpoints in the table `checkpoints`: savepoints, first uploads, and periodic checkpoints.
#
# With incremental checkpoints, the first checkpoint of a job uploads all state and is much larger than later ones. So are
# those that are triggered before the first one completes, because there are no files that they could reuse. A checkpoint
# counts as a first upload if
#
# * it writes nearly all the state that it references,
# * this is more than twice what later checkpoints write (median), and
# * later checkpoints reference more than twice what they write.
#
# Jobs that write full state each time have no first upload. If a job instance (in a chain of jobs, or after a rescale) has no
# later checkpoints, its checkpoints are compared with the later checkpoints of the other instances.

MIN_WRITTEN_SHARE = 0.9
"""Minimum share of its referenced state that a first upload writes."""
FIRST_UPLOAD_FACTOR = 2.0
"""Minimum ratio of a first upload's written bytes to the median of later checkpoints."""


def is_periodic(checkpoints: pd.DataFrame) -> npt.NDArray[np.bool_]:
    """Return, for each row of the table `checkpoints`, whether it is a periodic or final checkpoint, not a savepoint."""
    return (checkpoints["savepointFormat"] == "").to_numpy()


def job_of(table: pd.DataFrame) -> pd.Series[int]:
    """Return the number of the job instance of each row, which is 0 if the run has only one."""
    return table["x_job"] if "x_job" in table else pd.Series(0, table.index)


def has_savepoints(run: Tables) -> bool:
    """Return whether a savepoint of the run completed or failed."""
    rows = run["checkpoints"]
    return bool((rows["status"] != "IN_PROGRESS")[~is_periodic(rows)].any())


def first_uploads(checkpoints: pd.DataFrame) -> npt.NDArray[np.bool_]:
    """Return, for each row of the table `checkpoints` of one run, whether it is a first upload of its job.

    The only checkpoint of a run does not count, because it is unknown whether later ones would be smaller.
    """
    is_first, job = np.zeros(len(checkpoints), dtype=bool), job_of(checkpoints).to_numpy()
    candidates = (checkpoints["status"] == "COMPLETED").to_numpy() & is_periodic(checkpoints)
    columns = ["trigger_timestamp", "end_to_end_duration", "persisted_data", "checkpointed_size", "state_size"]
    trigger, duration, in_flight, written, referred = checkpoints[columns].to_numpy(dtype=float).T
    ended, written, referred = trigger + duration, written - in_flight, referred - in_flight
    # first rule: the checkpoint writes nearly all the state that it references
    is_all = (written > 0) & (written >= MIN_WRITTEN_SHARE * referred)
    of_jobs = [candidates & (job == number) for number in np.unique(job[candidates])]
    # later checkpoints: those that do not write all state, or that are triggered after the first one of their job has completed
    later = candidates.copy()
    for of_job in of_jobs:
        later &= ~(of_job & is_all & (trigger < ended[of_job][trigger[of_job].argmin()]))
    for of_job in of_jobs:
        compared = of_job & later if (of_job & later).any() else later
        if compared.any():
            usual, usually_referred = np.median(written[compared]), np.median(referred[compared])
            # second rule: it writes much more than later ones; third rule: they reference much more than they write
            is_first |= of_job & ~later & (np.minimum(written, usually_referred) > FIRST_UPLOAD_FACTOR * usual)
    return is_first


# ---- Sentences on triggers that are later than the interval, and on long savepoints.

_LATE_FACTOR = 1.05
"""Triggers are late if the median time between them is above this multiple of the interval."""
_LATE_ONCE_FACTOR = 1.25
"""A single trigger that waits for an older checkpoint is late above this multiple of the interval."""
_MIN_REPORTED_MS = 1000.0
"""Intervals, savepoints, lags and downtimes below this duration are not reported.

With such intervals, as in benchmarks and tests, messages and restarts determine the time between triggers.
"""
_MIN_GAPS_FOR_MEDIAN = 3
"""Minimum number of times between triggers from which a median is computed."""
_LONG_SAVEPOINT_FACTOR = 2.0
"""A savepoint is long if it takes at least this multiple of the longest checkpoint, first uploads excluded."""
_MAX_WAIT_SHARE = 0.1
"""A checkpoint was overdue if it was triggered within this share of the interval after the previous one ended."""
_MIN_FOLLOWING = 2
"""Minimum number of overdue checkpoints after a savepoint that are reported."""


class LateTriggers(NamedTuple):
    """Checkpoints of a strategy that are triggered less often than the interval demands."""

    apart_ms: float  # time between triggers: the median, or the longest
    interval_ms: float
    why: str  # reason, "" if unknown
    is_longest: bool = False  # apart_ms is the longest time, because the median is on time or has too few values


class LongSavepoint(NamedTuple):
    """The longest savepoint of a run, if it takes longer than all checkpoints."""

    number: int
    kind: str  # canonical or native
    duration_ms: float
    written_bytes: float
    usual_bytes: float  # median of the bytes that checkpoints write
    is_alone: bool  # it is longer than the interval, and no checkpoint is triggered while it is in progress
    following: int = 0  # number of overdue checkpoints after it, each triggered when the previous one ends
    followed_ms: float = 0.0  # from the end of the savepoint to the end of the last overdue checkpoint
    decide_median: bool = False  # whether more than half of the checkpoints in percentiles are overdue ones
    lag_ms: float = 0.0  # largest lag from its trigger to the last overdue checkpoint; 0 if not larger than before
    failed: bool = False


def late_triggers(
    runs: Sequence[Tables], *, interval_ms: float, min_pause_ms: float, max_concurrent: int
) -> LateTriggers | None:
    """Return how late checkpoints are triggered, and why, or None if they are on time.

    If the median time between triggers is late, it is returned.  If it is on time, or if there are too few triggers for a median,
    the longest time before a trigger that waits for an older checkpoint is returned, provided that it is late.

    Intervals of less than a second are not examined.  `runs`: replications of one strategy.
    """
    rows = pd.concat(
        [
            rows[is_periodic(rows)].assign(x_job=job_of(rows), run=number)
            for number, rows in enumerate(run["checkpoints"] for run in runs)
        ]
    ).sort_values("trigger_timestamp", ignore_index=True)
    if interval_ms < _MIN_REPORTED_MS or len(rows) < 2:
        return None
    jobs = rows.assign(ended=rows["trigger_timestamp"] + rows["end_to_end_duration"]).groupby(["run", "x_job"])
    gaps_ms, factor = jobs["trigger_timestamp"].diff(), _LATE_FACTOR
    is_longest = gaps_ms.count() < _MIN_GAPS_FOR_MEDIAN or gaps_ms.median() <= _LATE_FACTOR * interval_ms
    if is_longest:
        # time from the end of the older checkpoint and its min-pause until the trigger: hardly any if the trigger waited for it
        waits_ms = rows["trigger_timestamp"] - jobs["ended"].shift(max_concurrent) - min_pause_ms
        gaps_ms = gaps_ms[waits_ms <= _MAX_WAIT_SHARE * interval_ms].sort_values().tail(1)
        # from here on, `gaps_ms` is the longest time only, and `rows` has the checkpoint that its trigger waited for
        rows, factor = jobs.shift(max_concurrent).loc[gaps_ms.index], _LATE_ONCE_FACTOR
    taken_ms, apart_ms = float(rows["end_to_end_duration"].median()), float(gaps_ms.median())
    if not apart_ms > factor * interval_ms:
        return None
    if min_pause_ms:
        completes = 2 * (rows["status"] == "COMPLETED").sum() >= len(rows)
        why = f"min-pause, {ms_text(min_pause_ms)}, " + (
            "begins at the end of the one before"
            if completes
            else "is the least interval; only completed ones begin a pause"
        )
    elif taken_ms > max_concurrent * max(interval_ms, apart_ms - interval_ms):  # otherwise restarts delay the triggers
        expired = rows["failure_message"] == EXPIRED
        why = f"{'a checkpoint' if is_longest else 'each'} waits " + (
            "until the one before expires"
            if 2 * expired.sum() > len(expired)
            else "for the one before, as max-concurrent is 1"
            if max_concurrent == 1
            else f"for an older one, as max-concurrent is {max_concurrent}"
        )
    else:
        why = ""
    return LateTriggers(apart_ms, interval_ms, why, is_longest)


def late_triggers_sentence(by_strategy: Sequence[tuple[str, LateTriggers]], *, several: bool) -> str:
    """Return ``Checkpoints are triggered every 13 s instead of every 10 s (min-pause, 5 s, ...).``, or "" if none are late.

    `by_strategy`: (label, late triggers) per strategy.  `several`: whether the sentence names the strategies.
    """
    parts = []
    for name, triggers in by_strategy:
        why = f" ({triggers.why})" if triggers.why else ""
        where = f" with {name}" if several else ""
        apart = (
            f"up to {ms_text(triggers.apart_ms)} apart"
            if triggers.is_longest
            else f"every {ms_text(triggers.apart_ms)}"
        )
        parts.append(f"{apart}{where} instead of every {ms_text(triggers.interval_ms)}{why}")
    return f" Checkpoints are triggered {'; '.join(parts)}." if parts else ""


def long_savepoint(run: Tables, *, interval_ms: float) -> LongSavepoint | None:
    """Return the longest savepoint of a run that completed or failed, if it takes much longer than checkpoints.

    Returns None if it takes less than a second, or less than twice as long as the longest checkpoint.
    """
    rows = run["checkpoints"]
    done = rows[rows["status"].isin(["COMPLETED", "FAILED"]) & ~is_periodic(rows)]
    if done.empty:
        return None
    row = done.iloc[int(done["end_to_end_duration"].argmax())]
    usual, triggers_ms = rows[is_periodic(rows) & ~first_uploads(rows)], rows["trigger_timestamp"]
    began_ms, took_ms = float(row["trigger_timestamp"]), float(row["end_to_end_duration"])
    longest_ms = usual["end_to_end_duration"].max()  # NaN without checkpoints; `max` then returns its first argument
    if took_ms < max(_MIN_REPORTED_MS, _LONG_SAVEPOINT_FACTOR * longest_ms):
        return None
    ended_ms = began_ms + took_ms
    savepoint = LongSavepoint(
        int(row["id"]),
        str(row["savepointFormat"]).lower(),
        took_ms,
        float(row["checkpointed_size"]),
        float(usual.loc[usual["status"] == "COMPLETED", "checkpointed_size"].median()),
        0 < interval_ms < took_ms and not triggers_ms.between(began_ms, ended_ms, inclusive="neither").any(),
        failed=row["status"] == "FAILED",
    )
    later = rows[is_periodic(rows) & (triggers_ms >= ended_ms)].sort_values("trigger_timestamp")
    ends_ms = later["trigger_timestamp"] + later["end_to_end_duration"]
    waits_ms = later["trigger_timestamp"] - ends_ms.shift(fill_value=ended_ms)
    # a wait is NaN if the previous checkpoint has not ended; the comparison is then False
    following = int(np.logical_and.accumulate(waits_ms <= _MAX_WAIT_SHARE * interval_ms).sum())
    if not savepoint.is_alone or following < _MIN_FOLLOWING:
        return savepoint
    until_ms = np.nanmax(ends_ms[:following])
    times_ms, lags_ms = run["series"]["time"] * 1e3, run["series"]["lag"] * 1e3
    lag_ms, before_ms = lags_ms[times_ms.between(began_ms, until_ms)].max(), lags_ms[times_ms < began_ms].max()
    return savepoint._replace(
        following=following,
        followed_ms=float(until_ms - ended_ms),
        decide_median=2 * following > usual["end_to_end_duration"].count(),
        lag_ms=float(lag_ms) if lag_ms > max(_MIN_REPORTED_MS, np.nan_to_num(before_ms)) else 0.0,
    )


def long_savepoint_sentence(by_strategy: Sequence[tuple[str, LongSavepoint]], *, several: bool) -> str:
    """Return a sentence on the longest savepoint of all strategies, or "" if `by_strategy` is empty.

    `by_strategy`: (label, longest savepoint) per strategy.  `several`: whether the sentence names the strategy.
    """
    if not by_strategy:
        return ""
    name, savepoint = max(by_strategy, key=lambda item: item[1].duration_ms)
    of = f" ({name})" if several else ""
    text = f" {savepoint.kind.capitalize()} savepoint {savepoint.number}{of} "
    if savepoint.failed:
        text += f"fails after {ms_text(savepoint.duration_ms)}"
    else:
        usual = "" if math.isnan(savepoint.usual_bytes) else f" (a checkpoint: {bytes_text(savepoint.usual_bytes)})"
        text += f"writes {bytes_text(savepoint.written_bytes)}{usual} and takes {ms_text(savepoint.duration_ms)}"
    if savepoint.is_alone:
        text += ", and no checkpoint is triggered meanwhile"
    if savepoint.following:
        text += (
            f"; {savepoint.following} checkpoints that were due follow it one after another, within "
            f"{ms_text(savepoint.followed_ms)}{', and decide the median' if savepoint.decide_median else ''}"
        )
    if savepoint.lag_ms:
        text += f"; records wait up to {ms_text(savepoint.lag_ms)}"
    return f"{text}."


def _largest_lag_s(run: Tables) -> float:
    """Return the largest lag of a run [s], including the lag with which restored sources start.

    Samples are taken once a second, and a restored source may catch up between two of them.
    """
    restarts = run["recoveries"]
    # results of earlier versions lack this column
    at_restarts_s = restarts["lag_at_start"].max() / 1e3 if "lag_at_start" in restarts else math.nan
    return float(np.nanmax([run["series"]["lag"].max(), at_restarts_s, 0.0]))


def longest_lag_after_stop(run: Tables) -> float:
    """Return the largest lag [s] of records that became due after the first failure or planned restart."""
    series, stopped_ms = run["series"], run["recoveries"]["failed"].min()
    due_s = series["time"] - series["lag"]
    return float(series.loc[due_s * 1e3 >= stopped_ms, "lag"].max())


# ---- Costs of a strategy beyond its checkpoints: delay of visible output, downtime, end of the job.
#
# Replications of a strategy are pooled: medians are over all commits and restarts, counts are means per run. Failures and
# planned restarts are separate populations: the rescale of an idle job is quick and would make failures look cheap. A
# recovery or a transaction that is still in progress at the end of the run counts with its time so far, and the column is
# then marked as a lower bound ("more than").


# Values of `ends` below: a value is a lower bound until this has happened, e.g. "catch up within the run".
_RUN = "run again within the run"
_CATCH_UP = "catch up within the run"
_LIVE = "live until the end of the run"


_VISIBLE_SHARES = (0.5, 0.99, 1.0)


def _cost_column(value: str, meaning: str, of: Literal["failures", "planned_restarts"], **options: Any) -> Any:
    """Return a field of `Consequences` for a value of `_RestartCosts`.

    `of`: whether failures or planned restarts are counted.  The column is printed only if there were any.
    """
    population = Population.FAILURES if of == "failures" else Population.PLANNED
    return result_column(meaning, population, attrgetter(f"{of}.{value}"), of=of, printed_with=of, **options)


def _visibility_column(index: int, meaning: str, name: str, short: str, **options: Any) -> Any:
    """Return a field of `Consequences` for a quantile of the time until output is visible [ms].

    `index`: index in `_VISIBLE_SHARES`.  `name`, `short`: the quantile in the title and in the heading.
    """
    share = _VISIBLE_SHARES[index]
    if share < 1:
        options |= {"quantile": share, "counted_by": "commits"}
    return result_column(
        meaning,
        Population.COMMITS,
        lambda run: run.visible[index],
        ends="make all output visible within the run",
        of="commits",
        title=f"time until output is visible, {name}",
        heading=f"visible {short}",
        printed_with="commits",
        cell=lambda line: line.visible_text(f"visible_{short}_ms"),
        **options,
    )


@dataclass(frozen=True, slots=True)
class Consequences:
    """Costs of a strategy beyond its checkpoints.

    A value is NaN if there is nothing to measure: without a failure there is no downtime.
    """

    commits: float = result_column(
        "per run",
        Population.COMMITS,
        lambda run: len(run.fresh) / len(run.runs),
        worse="less",
        heading="commits",
        printed_with="commits",
    )
    committed_records: float = result_column(
        "per run",
        Population.COMMITS,
        lambda run: run.fresh["records"].sum() / len(run.runs),
        worse="less",
        heading="committed",
        printed_with="commits",
    )
    visible_p50_ms: float = _visibility_column(
        0, "first write of a transaction -> its output visible, median by records", "median", "p50"
    )
    visible_p99_ms: float = _visibility_column(
        1,
        "likewise, 99 % quantile; of fewer than 100 it is hardly less than the longest",
        "99th percentile",
        "p99",
        is_optional=True,
    )
    visible_max_ms: float = _visibility_column(2, "likewise, the longest", "longest", "max")
    lost_records: float = result_column(
        "per run: of transactions that timed out, or whose files are missing",
        Population.COMMITS,
        lambda run: run.fresh["lost_records"].sum() / len(run.runs),
        heading="lost",
        printed_with="lost_records",
    )
    restarts: float = result_column("per run", Population.RESTARTS, attrgetter("restarts.per_run"))
    failures: float = result_column(
        "per run", Population.FAILURES, attrgetter("failures.per_run"), heading="failures", printed_with="failures"
    )
    downtime_ms: float = _cost_column(
        "downtime",
        "failure -> all tasks run again, median",
        "failures",
        ends=_RUN,
        title=title_of("downtime"),
        heading="downtime",
        cell=lambda line: line.cost_text("downtime_ms", "for good"),
    )
    replayed_records: float = _cost_column(
        "replayed_records", "emitted again by sources, median", "failures", heading="replayed"
    )
    caught_up_ms: float = _cost_column(
        "caught_up",
        "failure -> as much waits as usual, median",
        "failures",
        ends=_CATCH_UP,
        title="time until caught up after a failure",
        heading="caught up after",
        cell=lambda line: line.cost_text("caught_up_ms", "never"),
    )
    planned_restarts: float = result_column("per run", Population.PLANNED, attrgetter("planned_restarts.per_run"))
    planned_downtime_ms: float = _cost_column(
        "downtime", "start of the restart -> all tasks run again, median", "planned_restarts", ends=_RUN
    )
    planned_replayed_records: float = _cost_column(
        "replayed_records", "emitted again by sources, median", "planned_restarts"
    )
    planned_caught_up_ms: float = _cost_column(
        "caught_up",
        "start of the restart -> nothing waits in the logs of sources, median",
        "planned_restarts",
        ends=_CATCH_UP,
    )
    disturbed_share: float = result_column(
        "share of the run between a restart and being caught up again",
        Population.RESTARTS,
        lambda run: (
            _disturbed_ms(run.runs, run.durations_ms) / sum(run.durations_ms) if run.restarts.per_run else math.nan
        ),
        of="restarts",
        heading="disturbed",
        printed_with="restarts",
        after="lag_s",
        cell=lambda line: share_text(line.row.disturbed_share),
    )
    lag_s: float = result_column(
        "largest time a record is due and not emitted; a job that failed for good has none",
        Population.RUN,
        lambda run: math.nan if run.died else max(map(_largest_lag_s, run.runs)),
        ends=_LIVE,
        heading="largest lag",
        printed_with="restarts",
        cell=lambda line: line.status if _has_died(line.row) else ms_text(1e3 * line.row.lag_s),
    )
    delay_mean_s: float = result_column(
        "due -> served by a vertex without readers, mean of samples once a second",
        Population.AFTER_WARMUP,
        lambda run: float(run.delays.mean()),
        ends=_LIVE,
        title="mean delay of records",
    )
    delay_p99_s: float = result_column(
        "likewise, 99 % quantile",
        Population.AFTER_WARMUP,
        lambda run: float(run.delays.quantile(0.99)),
        ends=_LIVE,
        title="delay of records, 99th percentile",
    )
    ended_s: float = result_column(
        "end of the run: the job was over, or it was cut off",
        Population.RUN,
        lambda run: sum(run.durations_ms) / len(run.runs) / 1e3,
        ends="come to an end within the run",
    )
    unfinished: str = result_column(
        "columns whose value is a bound, 'more than': what they measure had not ended when the run did"
    )

    def is_bound(self, column: str) -> bool:
        """Return whether the value of a column is a lower bound."""
        return column in self.unfinished.split()

    def ms_text(self, column: str) -> str:
        """Return the value of a column, e.g. ``40 s``, or ``more than 40 s`` for a lower bound."""
        return ("more than " if self.is_bound(column) else "") + ms_text(getattr(self, column))

    @property
    def nothing_happened(self) -> bool:
        """Return whether there were neither commits nor restarts."""
        return not self.commits and not self.restarts


def consequences(
    runs: Sequence[Tables],
    durations_ms: Sequence[float],
    *,
    warmup_ms: float = 0.0,
    committers: Collection[str] = (),
    died: bool = False,
    behind: Sequence[bool] = (),
) -> Consequences:
    """Compute the costs of a strategy from the tables of its replications.

    Only commits whose checkpoint was triggered after the warm-up count.

    `durations_ms`: length of each run.  `committers`: vertices that commit, including those that have not committed
    anything.  `died`: whether some job failed permanently; its lag is then unbounded.  `behind`: for each run, whether its
    backlog keeps growing (`falls_behind`); its restarts then count as never caught up.
    """
    runs = [
        _without_catch_up(run) if grows else run for run, grows in zip(runs, behind or [False] * len(runs), strict=True)
    ]
    commits = pool_rows([run["commits"] for run in runs])
    # the time of the commit minus its latency is the time of the trigger
    commits = commits[commits["commit_timestamp"] - commits["commit_latency"] >= warmup_ms]
    fresh = commits[~commits["again"].astype(bool)]
    restarts = [
        restart
        for run, end_ms in zip(runs, durations_ms, strict=True)
        for restart in _restarts(run["recoveries"], end_ms, run["series"])
    ]
    open_ms = [
        age_ms
        for run, end_ms in zip(runs, durations_ms, strict=True)
        for age_ms in _invisible_ages_ms(run, end_ms, committers)
    ]
    visible_ms, records = (
        fresh.loc[fresh["visible_latency"] >= 0, ["visible_latency", "records"]].to_numpy(dtype=float).T
    )
    weights = np.fmax(records, 1) / max(records.mean(), 1) if len(records) else None
    values, bounds = compute_columns(
        Consequences,
        # the argument `run` of the functions in `Consequences`: values of all runs of the strategy
        SimpleNamespace(
            runs=runs,
            durations_ms=durations_ms,
            died=died,
            fresh=fresh,
            restarts=_restart_costs(restarts, len(runs)),
            failures=_restart_costs([restart for restart in restarts if not restart.is_planned], len(runs)),
            planned_restarts=_restart_costs([restart for restart in restarts if restart.is_planned], len(runs)),
            visible=quantiles(visible_ms, np.array(open_ms), *_VISIBLE_SHARES, weights=weights),
            delays=pd.concat([_delays_s(run["series"], warmup_ms / 1e3) for run in runs]),
        ),
    )
    return Consequences(**values, unfinished=" ".join(bounds))


def _without_catch_up(run: Tables) -> Tables:
    """Return the tables of a run without the times at which restarts caught up."""
    return {**run, "recoveries": run["recoveries"].assign(caught_up=-1.0)}


def pool_rows(tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Return the rows of all tables.

    Empty tables are skipped, because their columns have other types and pandas would warn about it.
    """
    filled = [table for table in tables if len(table)] or [tables[0]]
    return filled[0] if len(tables) == 1 else pd.concat(filled, ignore_index=True)


_MAX_RESTARTS = 12
"""Maximum restarts that a table lists one by one."""
_RESTART_PHASES = (
    ("failed", "in attempts that failed"),
    ("detected", "until it is detected"),
    ("cancelled", "until the old tasks are gone"),
    ("delayed", "until the restart delay is over"),
    ("deployed", "until the new ones have slots and are deployed"),
    ("running", "until all of them run"),
)


def _failures_of(recoveries: pd.DataFrame) -> pd.DataFrame:
    """Return the failures of a job in the order in which the JobManager detects them.

    Tasks that fail at the same instant are one failure of the job, because one restart serves all of them.

    Additional columns: `up` is the time [ms] at which the job runs again, possibly after a later restart, or -1 if it does
    not run again.  `outage` is the number of the period without a running job: failures that interrupt a restart have the number of
    the failure that caused it.
    """
    ordered = recoveries.sort_values(["detected", "failed"], kind="stable")
    rows = ordered.drop_duplicates("failed", keep="last")
    running = rows["running"]
    ran_before = running.shift(fill_value=0.0) >= 0
    return rows.assign(up=running.where(running >= 0).bfill().fillna(-1.0), outage=ran_before.cumsum())


def longest_downtime_sentence(runs: Mapping[str, Sequence[Tables]], during: Collection[str] = ()) -> str:
    """Return a sentence with the phases of the longest downtime that ended within the run, or "" if it was below a second.

    `runs`: label of a strategy -> its replications.  `during`: strategies whose tasks run before they have processed
    recovered in-flight data, so that this work is not part of the downtime.
    """
    # (total [ms], strategy, cause, row of the last failure, time in each phase [ms])
    downtimes: list[tuple[float, str, str, pd.Series[Any], npt.NDArray[np.float64]]] = []
    failures = [(name, _failures_of(run["recoveries"])) for name, tables in runs.items() for run in tables]
    for name, rows in failures:
        for _, attempts in rows.groupby("outage"):
            last, causes = attempts.iloc[-1], attempts.sort_values("failed", kind="stable")["cause"].tolist()
            moments = last[[phase for phase, _ in _RESTART_PHASES]].astype(float)
            # The restart delay runs while the old tasks stop, and may end before they have stopped.  If a deployment fails because
            # slots are missing, another delay follows.  All time after the old tasks have stopped then counts as waiting for slots.
            is_first = last.get("deployments", 1) <= 1
            delayed_ms = moments["delayed"] if is_first else moments["cancelled"]
            moments["delayed"] = np.clip(delayed_ms, moments["cancelled"], moments["deployed"])
            spent = np.diff(moments, prepend=attempts["failed"].min())
            if (spent >= 0).all():
                cause = f"{causes[0]}; then {causes[-1]}" if len(causes) > 1 else causes[0]
                downtimes.append((spent.sum(), name, cause, last, spent))
    if not downtimes or (longest := max(downtimes, key=lambda downtime: downtime[0]))[0] < _MIN_REPORTED_MS:
        return ""
    downtime_ms, name, cause, last, spent = longest
    kind, restored_bytes, recovered_bytes = last[["kind", "restored_bytes", "recovered_bytes"]]
    phases = dict(_RESTART_PHASES) | ({"detected": "until another one leads"} if kind == "job-manager" else {})
    parts = ", ".join(f"{ms_text(ms)} {text}" for ms, text in zip(spent, phases.values(), strict=True) if ms > 0)
    read = [f"{bytes_text(restored_bytes)} are read"] if restored_bytes else []
    if recovered_bytes:
        before = "" if name in during else ", whose records are processed before"
        read.append(f"{bytes_text(recovered_bytes)} of in-flight data are recovered{before}")
    read_text = f" ({', and '.join(read)})" if read else ""
    only = ""
    if vertices := last.get("vertices"):  # results of earlier versions have no such column
        only = f" Only {int(last['tasks'])} tasks restart, of {vertices}; the others run on, and no checkpoint is taken meanwhile."
    is_open = any((rows["up"] < 0).any() for _, rows in failures)
    which = "longest downtime that ended" if is_open else "longest downtime"
    return f"The {which}, {ms_text(downtime_ms)} ({f'{cause}, {name}' if len(runs) > 1 else cause}): {parts}{read_text}.{only}"


_Lasted = tuple[float, bool]
"""(duration [ms], whether it ended within the run)."""


class _Restart(NamedTuple):
    """A restart of the job, with all attempts until it ran or the run ended."""

    is_planned: bool
    attempts: int  # number of failures, including the first one
    down: _Lasted
    catching_up: _Lasted
    ran: bool  # whether all tasks ran again within the run
    replayed_records: float


def _restarts(recoveries: pd.DataFrame, end_ms: float, series: pd.DataFrame) -> Iterator[_Restart]:
    """Yield the restarts of a run, in order of time.

    A failure before the job runs again belongs to the restart that it interrupts: downtime counts from the first failure,
    and the replayed records of all attempts are added.

    The table records such a restart as caught up when sources reach the positions that they had at its last failure, which may be
    behind those at its first failure.  This time is a lower bound, unless the lag shows that the job has caught up: it rose above
    all earlier values after the first failure, and is not above them when the restart is recorded as caught up.

    `end_ms`: end of the run.  `series`: the table with the lag of sources, sampled once a second.
    """
    rows = _failures_of(recoveries)
    is_planned = rows["kind"].isin(PLANNED_RESTARTS)
    caught_up_ms = rows["caught_up"].where(rows["caught_up"] >= 0).bfill().fillna(end_ms)
    for _, attempts in rows.groupby([rows["outage"], (is_planned != is_planned.shift()).cumsum()]):
        first, failed_ms = attempts.iloc[0], float(attempts["failed"].min())
        up_ms, caught_ms = float(first["up"]), float(caught_up_ms[attempts.index[0]])
        lags = [series.loc[series["time"] * 1e3 <= ms, "lag"].max() for ms in (failed_ms, caught_ms)]
        level = series[series["time"] * 1e3 >= caught_ms].groupby("time")["lag"].max().head(1).max()
        is_level = caught_ms < end_ms and max(lags[0], level) < lags[1] and level <= lags[0]
        yield _Restart(
            bool(is_planned[attempts.index[0]]),
            len(attempts),
            ((up_ms if up_ms >= 0 else end_ms) - failed_ms, up_ms >= 0),
            (caught_ms - failed_ms, bool(first["caught_up"] >= 0 or is_level)),
            bool(attempts["running"].iloc[-1] >= 0),
            float(attempts["replayed_records"].sum()),
        )


class _RestartCosts(NamedTuple):
    """Costs of restarts of one kind."""

    per_run: float  # failures or planned restarts per run
    downtime: Duration
    caught_up: Duration
    replayed_records: float  # median over restarts after which the job ran, or over all if it never ran again


def _restart_costs(restarts: Sequence[_Restart], runs: int) -> _RestartCosts:
    """Return the costs of these restarts, which happened in this number of runs."""
    ran = [restart for restart in restarts if restart.ran] or restarts
    return _RestartCosts(
        sum(restart.attempts for restart in restarts) / runs,
        _median([restart.down for restart in restarts]),
        _median([restart.catching_up for restart in restarts]),
        float(np.median([restart.replayed_records for restart in ran])) if ran else math.nan,
    )


def _median(lasted: Sequence[_Lasted]) -> Duration:
    """Return the median of durations [ms]; those that have not ended count as lower bounds."""
    times, ended = np.array(lasted, dtype=float).reshape(-1, 2).T
    return median_of_few(times[ended > 0], times[ended == 0])


def _invisible_ages_ms(run: Tables, end_ms: float, committers: Collection[str]) -> Iterator[float]:
    """Yield the ages [ms] of output that is not visible at the end of the run.

    * For each commit with lost records, the age is the length of the run.
    * If there are commits or committers, there is one more age: the time since the last trigger whose output is visible.
    """
    commits, checkpoints = run["commits"], run["checkpoints"]
    yield from [end_ms] * int((commits["lost_records"] > 0).sum())
    if len(commits) or committers:
        completed = checkpoints.loc[
            (checkpoints["status"] == "COMPLETED").to_numpy() & is_periodic(checkpoints), "trigger_timestamp"
        ]
        answered, visible = commits["commit_latency"] >= 0, commits["visible_latency"] >= 0
        # commits by tasks that finished without waiting for a checkpoint
        at_the_end = commits.loc[visible & ~answered, "commit_timestamp"]
        last_ms = [*completed, *(commits["commit_timestamp"] - commits["commit_latency"])[answered], *at_the_end, 0.0]
        yield end_ms - max(last_ms)


def _delays_s(series: pd.DataFrame, warmup_s: float) -> pd.Series[float]:
    """Return the delay of records [s] in each second: the largest lag of a source plus the largest latency of processed records."""
    worst = (
        series.loc[series["time"] > warmup_s, ["time", "lag", "x_latency"]].groupby("time")[["lag", "x_latency"]].max()
    )
    return worst["lag"] + worst["x_latency"].clip(lower=0.0) / 1e3


def _disturbed_ms(runs: Sequence[Tables], durations_ms: Sequence[float]) -> float:
    """Return the total time [ms] from failures until the job has caught up.  Overlapping times count once."""
    disturbed: list[float] = []
    for run, duration_ms in zip(runs, durations_ms, strict=True):
        rows = _failures_of(run["recoveries"])
        # a restart that another one interrupts has caught up when the other one has
        rows = rows.assign(end=rows["caught_up"].where(rows["caught_up"] >= 0).bfill()).sort_values("failed")
        following = np.append(rows["failed"].to_numpy()[1:], duration_ms)
        disturbed += (np.fmin(following, rows["end"]) - rows["failed"]).tolist()
    return sum(disturbed)


def consequences_texts(
    costs: Mapping[str, Consequences],
    statuses: Mapping[str, str],
    runs: Mapping[str, int] = MappingProxyType({}),
    at_once: Collection[str] = (),
    behind: Collection[str] = (),
) -> tuple[list[str], list[list[str]]]:
    """Return (header, rows) of the table of consequences as texts.

    Columns on commits, failures or restarts are left out if there were none.  Percentiles of commits are shown only if
    the sample is large enough (`sim.model.quantities`).

    `costs`: by label of the strategy.  `statuses`: status of the job of each strategy.  `runs`: number of runs of each
    strategy (default: 1).  `at_once`: strategies whose output is visible immediately because no vertex commits.  `behind`:
    strategies whose backlog grows.
    """
    lines = [
        _Line(statuses[label], row, runs.get(label, 1), label in at_once, label in behind)
        for label, row in costs.items()
    ]
    columns = [("strategy", list(costs)), ("job", [line.status for line in lines])]
    for column in in_printing_order(_COLUMNS.values()):
        if any(getattr(row, column.printed_with) for row in costs.values()):
            texts = [
                column.value_text(asdict(line.row)) if column.cell is None else column.cell(line) for line in lines
            ]
            if not all(map(column.says_nothing, texts)):
                columns.append((column.heading, texts))
    return [name for name, _ in columns], [list(cells) for cells in zip(*(cells for _, cells in columns), strict=True)]


_COLUMNS = columns_of(Consequences)
_COST_COLUMNS = ("downtime_ms", "replayed_records", "caught_up_ms")


class _Line(NamedTuple):
    """A strategy as a row of the table of consequences."""

    status: str
    row: Consequences
    runs: int
    is_at_once: bool  # output is visible immediately
    is_behind: bool  # the backlog grows

    def visible_text(self, name: str) -> str:
        """Return a cell with the time until output is visible, or `MISSING` if there are too few commits for the quantile."""
        column = _COLUMNS[name]
        if column.smallest_sample > 1 and not column.has_sample({"commits": self.row.commits * self.runs}):
            return MISSING
        return "at once" if self.is_at_once else self.row.ms_text(name)

    def cost_text(self, name: str, of_dead: str) -> str:
        """Return a cell with the cost of failures, or `of_dead` if the job failed permanently without a counted failure."""
        if _has_died(self.row) and not self.row.failures:
            return of_dead
        return _cost_text(self.row, name, is_behind=self.is_behind)


def _cost_text(row: Consequences, column: str, *, is_behind: bool) -> str:
    """Return a cost as text, or "not in this run" if a job whose backlog grows never catches up."""
    is_never = column.endswith("caught_up_ms") and is_behind and row.is_bound(column)
    return "not in this run" if is_never else row.ms_text(column)


def planned_restarts_table(costs: Mapping[str, Consequences], behind: Collection[str] = ()) -> TextTable | None:
    """Return a table of the costs of planned restarts, with a row per strategy that has any, or None if none has.

    `costs`: by label of the strategy.  `behind`: strategies whose backlog grows.
    """
    rows = [
        [
            label,
            count_text(row.planned_restarts),
            _cost_text(row, "planned_downtime_ms", is_behind=label in behind),
            count_text(row.planned_replayed_records),
            _cost_text(row, "planned_caught_up_ms", is_behind=label in behind),
        ]
        for label, row in costs.items()
        if row.planned_restarts
    ]
    header = ["strategy", "restarts", *(_COLUMNS[name].heading for name in _COST_COLUMNS)]
    title = "Planned restarts (rescales, and jobs that start from a snapshot)"
    return TextTable(title, header, rows) if rows else None


def restarts_table(runs: Mapping[str, Sequence[Tables]]) -> TextTable | None:
    """Return a table with a row per restart.

    Returns None if every strategy has at most one restart, if there are more than `_MAX_RESTARTS`, or if a strategy has
    several replications.  `runs`: label of a strategy -> its replications.
    """
    rows = [
        (name, row)
        for name, tables in runs.items()
        for run in tables
        for row in _failures_of(run["recoveries"]).to_dict("records")
    ]
    per_strategy = Counter(name for name, _ in rows)
    if (
        max(per_strategy.values(), default=0) < 2
        or len(rows) > _MAX_RESTARTS
        or any(len(tables) > 1 for tables in runs.values())
    ):
        return None

    def lasted(row: Mapping[Any, Any], end: str) -> str:
        """Return the time from the failure to `end`, or `MISSING` if that did not happen within the run."""
        return ms_text(row[end] - row["failed"]) if row[end] >= 0 else MISSING

    return TextTable(
        "Each restart",
        ["strategy", "at", "cause", "downtime", "state read", "in-flight data read", "replayed", "caught up after"],
        [
            [
                name,
                ms_text(row["failed"]),
                str(row["cause"]),
                lasted(row, "up"),
                bytes_text(row["restored_bytes"]),
                bytes_text(row["recovered_bytes"]),
                count_text(row["replayed_records"]),
                lasted(row, "caught_up"),
            ]
            for name, row in rows
        ],
    )


def consequences_sentence(costs: Mapping[str, Consequences], *, overloaded: Collection[str] = ()) -> str:
    """Return a sentence that compares the best and the worst strategy by their cost of failures.

    Without failures it compares the cost of planned restarts.  Returns "" if fewer than two strategies can be compared, or
    if they replay equally many records but may differ in other costs, because downtimes differ or some costs are lower bounds.
    Strategies whose job failed permanently are ignored.

    `costs`: by label of the strategy.  `overloaded`: strategies that cannot keep up even before a restart.
    """
    alive = [(label, row) for label, row in costs.items() if row.restarts and not _has_died(row)]
    kind, prefix = ("failure", "") if any(row.failures for _, row in alive) else ("planned restart", "planned_")
    compared = [_Compared(label, row, prefix) for label, row in alive if prefix or row.failures]
    if len(compared) < 2:
        return ""
    ranked = sorted(compared, key=lambda line: (line.row.disturbed_share, line.value("replayed_records")))
    best, worst = ranked[0], _worst_most_similar(ranked)
    if worst.row.disturbed_share < 1.1 * best.row.disturbed_share + 0.01:
        ranked = sorted(compared, key=lambda line: line.value("replayed_records"))
        best, worst = ranked[0], _worst_most_similar(ranked)
        if worst.value("replayed_records") <= 1.1 * best.value("replayed_records"):
            may_differ = any(line.bounds for line in compared) or _downtimes_differ(
                [line.value("downtime_ms") for line in compared]
            )
            return "" if may_differ else f"A {kind} stops the job and replays as much under all of them."
    also = " and ".join(line.label for line in (worst, best) if line.label in overloaded)
    also = (
        f" {also} cannot keep up before the {kind} either: lag and disturbed time are not its cost alone."
        if also
        else ""
    )
    return f"After a {kind} {worst}; {best}.{also}"


class _Compared(NamedTuple):
    """A strategy in the comparison of costs: of failures (`prefix` "") or of planned restarts (`prefix` "planned_")."""

    label: str
    row: Consequences
    prefix: str

    def value(self, column: str) -> float:
        """Return the value of a cost column for the compared kind of restart; most are medians."""
        return float(getattr(self.row, self.prefix + column))

    @property
    def bounds(self) -> list[str]:
        """Return the cost columns whose values are lower bounds."""
        return [name for name in _COST_COLUMNS if self.row.is_bound(self.prefix + name)]

    def __str__(self) -> str:
        """Return a clause with the replayed records of the compared kind, and the lag and disturbed time of all restarts."""
        row, others = self.row, 0 if self.prefix else self.row.planned_restarts
        counted = (
            f" by {_count_with_noun(row.failures, 'failure')} and {_count_with_noun(others, 'planned restart')}"
            if others
            else ""
        )
        return (
            f"{self.label} replays {count_text(self.value('replayed_records'))} records, lags by up to {ms_text(1e3 * row.lag_s)} and is disturbed "
            f"{100 * row.disturbed_share:.0f} % of the time{counted}"
        )


def _worst_most_similar(ranked: Sequence[_Compared]) -> _Compared:
    """Return the worst strategy.  Of several equal ones, return that whose label is most similar to the best one's.

    Any other label would suggest that options without an effect make the difference.  For example, if the best strategy is
    ``aligned, 10 s`` and both ``aligned, 60 s`` and ``unaligned, 60 s`` are worst, the first of these is returned.

    `ranked`: best first.
    """

    def effect(line: _Compared) -> tuple[object, ...]:
        """Return the values by which two strategies count as equal."""
        return line.row.disturbed_share, *map(line.value, _COST_COLUMNS), line.bounds

    parts = set(ranked[0].label.split(", "))
    equals = [line for line in ranked[1:] if effect(line) == effect(ranked[-1])]
    return max(equals, key=lambda line: len(parts & set(line.label.split(", "))), default=ranked[-1])


def _count_with_noun(number: float, noun: str) -> str:
    """Return a number with its noun, e.g. ``1 failure`` or ``3 failures``."""
    return f"{count_text(number)} {noun}{'' if number == 1 else 's'}"


def _has_died(row: Consequences) -> bool:
    """Return whether a job of the strategy failed permanently, so that its lag is NaN."""
    return math.isnan(row.lag_s)


def _downtimes_differ(downtimes_ms: Sequence[float]) -> bool:
    """Return True if downtimes differ by more than noise: a tenth, or 100 ms."""
    return max(downtimes_ms) - min(downtimes_ms) >= max(100.0, 0.1 * max(downtimes_ms))


# ---- The end of bounded jobs: the time after the last record, and whether checkpoints stop before the job does.

_MAX_SILENT_INTERVALS = 3
"""Checkpoints count as stopped after this many intervals without a trigger."""
_ROUNDING_RECORDS = 0.5
"""Tolerance for rounding errors of rates [records]."""


@dataclass(frozen=True, slots=True)
class Finish:
    """The end of the bounded job of a strategy.  Times and counts are means over its runs."""

    at_s: float  # end of the job
    idle_s: float  # time after the last second in which a record was served
    checkpoints: float  # number of completed checkpoints that were triggered in that time
    final: int | None  # id of the final checkpoint in the first run; None if it did not complete
    of: str  # the run or job that the id belongs to, e.g. `` of job 1``; "" if there is only one
    final_ms: float  # time from the trigger of the final checkpoint to its completion
    committed: float  # number of records


def finish(runs: Sequence[Tables], ends_s: Sequence[float], committed: float) -> Finish:
    """Summarize the end of finished jobs.

    `runs`: tables of the replications.  `ends_s`: end of each run.  `committed`: number of committed records.
    """
    after_last = [_after_last_record(run, end_s) for run, end_s in zip(runs, ends_s, strict=True)]
    holding = _final_checkpoint(runs[0])
    final = None if holding.empty else holding.iloc[-1]
    return Finish(
        at_s=sum(ends_s) / len(runs),
        idle_s=sum(idle_s for idle_s, _ in after_last) / len(runs),
        checkpoints=sum(len(rows) for _, rows in after_last) / len(runs),
        final=None if final is None else int(final["id"]),
        of="" if final is None else _of_run(final, several=len(runs) > 1),
        final_ms=math.nan if final is None else float(final["end_to_end_duration"] + final["x_finalization"]),
        committed=committed,
    )


def _final_checkpoint(run: Tables) -> pd.DataFrame:
    """Return the completed final checkpoint, which includes the end of data of all tasks, as a table with at most one row.

    If the first such checkpoint fails, tasks wait for the next periodic one (FLIP-147).
    """
    tasks, rows = (_of_last_job(run[name]) for name in ("tasks", "checkpoints"))
    first = tasks["x_finalCheckpoint"].max()
    holds = (rows["id"] == first) | (is_periodic(rows) & (rows["id"] > first) & (first > 0))
    final: pd.DataFrame = rows[(rows["status"] == "COMPLETED") & holds].head(1)
    return final


def _of_last_job(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of the last job instance in a chain."""
    last: pd.DataFrame = table[job_of(table) == job_of(table).max()]
    return last


def _of_run(row: pd.Series[Any], *, several: bool) -> str:
    """Return the text that follows a checkpoint id, with its job instance and replication if there are several."""
    return (f" of job {int(row['x_job'])}" if "x_job" in row.index else "") + (" of replication 0" if several else "")


def _after_last_record(run: Tables, end_s: float) -> tuple[float, pd.DataFrame]:
    """Return (time after the last processed record [s], rows of completed checkpoints that were triggered in that time)."""
    series, rows = run["series"], run["checkpoints"]
    served = series.loc[series["numRecordsInPerSecond"] > 0, "time"]
    last_s = min(end_s, float(served.max())) if len(served) else 0.0
    late = rows[(rows["status"] == "COMPLETED") & (rows["trigger_timestamp"] >= 1e3 * last_s)]
    if _served_after_samples(run):
        # the last, partial second has no sample, so the time of its records is unknown
        return 0.0, late.tail(1)
    return end_s - last_s, late


def _served_after_samples(run: Tables) -> bool:
    """Return True if tasks of the last job processed records after the last sample.  Samples are taken once a second."""
    tasks, series = _of_last_job(run["tasks"]), _of_last_job(run["series"])
    return bool(tasks["numRecordsIn"].sum() > series["numRecordsInPerSecond"].sum() + _ROUNDING_RECORDS)


def last_trigger_s(runs: Sequence[Tables], ends_s: Sequence[float], interval_s: float) -> float:
    """Return the time of the last trigger in all runs [s], or NaN if checkpoints continue until the end of some run.

    Checkpoints continue if at most `_MAX_SILENT_INTERVALS` intervals passed since the last trigger or restart, if a checkpoint is in
    progress, or if the job is down at the end of the run.  `ends_s`: end of each run.
    """
    latest_s = -math.inf
    for run, end_s in zip(runs, ends_s, strict=True):
        rows, restarts = run["checkpoints"], run["recoveries"]
        last_s = float(rows["trigger_timestamp"].max()) / 1e3 if len(rows) else 0.0
        down = len(restarts) and float(restarts["running"].iloc[-1]) < 0
        begun_s = float(restarts["running"].max()) / 1e3 if len(restarts) else 0.0
        if (
            down
            or (rows["status"] == "IN_PROGRESS").any()
            or end_s - max(last_s, begun_s) <= _MAX_SILENT_INTERVALS * interval_s
        ):
            return math.nan
        latest_s = max(latest_s, last_s)
    return latest_s
