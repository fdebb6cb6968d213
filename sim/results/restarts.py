"""Compute the costs of failures and planned restarts: downtime, replayed records, and the time until the job has caught up.

The input is the result tables of the runs (replications) of a strategy.  Times are ms since the start of the run, except for
the columns `time` and `lag` of the table `series`, which are in s.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from sim.model.quantities import PLANNED_RESTARTS
from sim.results.estimates import Duration, median_of_few
from sim.results.formats import MISSING, TextTable, bytes_text, count_text, ms_text
from sim.results.rates import Tables


def largest_lag_s(run: Tables) -> float:
    """Return the largest lag of a run [s], including the lag with which restored sources start.

    Samples are taken once a second, and a restored source may catch up between two of them.
    """
    restarts = run["recoveries"]
    # results of earlier versions lack this column
    at_restarts_s = restarts["lag_at_start"].max() / 1e3 if "lag_at_start" in restarts else math.nan
    return float(np.nanmax([run["series"]["lag"].max(), at_restarts_s, 0.0]))


def longest_lag_after_stop(run: Tables) -> float:
    """Return the largest lag [s] of records that became due at the first failure or planned restart, or later; NaN if none did.

    Between two samples a source reads at a constant rate.
    """
    series, stopped_s = run["series"].dropna(subset=["lag"]), run["recoveries"]["failed"].min() / 1e3
    longest_s = list[float]()
    for _, rows in series[series["time"] >= stopped_s].groupby("vertex"):
        time_s, lag_s = rows["time"].to_numpy(), rows["lag"].to_numpy()
        due_s = time_s - lag_s
        longest_s += lag_s[due_s >= stopped_s].tolist()
        for i in np.flatnonzero((due_s[:-1] < stopped_s) & (due_s[1:] >= stopped_s)):
            longest_s.append(float(np.interp(stopped_s, due_s[i : i + 2], time_s[i : i + 2])) - stopped_s)
    return max(longest_s, default=math.nan)


_MIN_REPORTED_DOWNTIME_MS = 1000.0
"""Shorter downtimes, as in benchmarks and tests, are not reported."""
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


def _failures(recoveries: pd.DataFrame) -> pd.DataFrame:
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


class _Downtime(NamedTuple):
    """A downtime that ended within the run, from the first failure until all tasks ran again."""

    ms: float
    strategy: str
    cause: str
    last: pd.Series[Any]  # row of the last failure in it
    begins_without_leader: bool  # it begins while no JobManager leads, and another failure follows
    spent_ms: npt.NDArray[np.float64]  # time in each of `_RESTART_PHASES`


def longest_downtime_sentence(
    runs: Mapping[str, Sequence[Tables]],
    recovering_while_running: Collection[str] = (),
    stabilizing: Collection[str] = (),
) -> str:
    """Return a sentence with the phases of the longest downtime that ended within the run, or "" if it was below a second.

    `runs`: label of a strategy -> its replications.  `recovering_while_running`: strategies whose tasks run before they have processed
    recovered in-flight data, so that this work is not part of the downtime.  `stabilizing`: strategies whose
    scheduler waits for more slots after the restart delay.
    """
    downtimes: list[_Downtime] = []
    failures = [(name, _failures(run["recoveries"])) for name, tables in runs.items() for run in tables]
    for name, rows in failures:
        for _, attempts in rows.groupby("outage"):
            last, ordered = attempts.iloc[-1], attempts.sort_values("failed", kind="stable")
            causes, kinds = ordered["cause"].tolist(), ordered["kind"].tolist()
            moments = last[[phase for phase, _ in _RESTART_PHASES]].astype(float)
            # The restart delay runs while the old tasks stop, and may end before they have stopped.  If a deployment fails because
            # slots are missing, another delay follows.  All time after the old tasks have stopped then counts as waiting for slots.
            is_first = last.get("deployments", 1) <= 1
            delayed_ms = moments["delayed"] if is_first else moments["cancelled"]
            moments["delayed"] = np.clip(delayed_ms, moments["cancelled"], moments["deployed"])
            spent = np.diff(moments, prepend=attempts["failed"].min())
            if (spent >= 0).all():
                cause = f"{causes[0]}; then {causes[-1]}" if len(causes) > 1 else causes[0]
                is_leaderless = len(kinds) > 1 and kinds[0] == "job-manager"
                downtimes.append(_Downtime(float(spent.sum()), name, cause, last, is_leaderless, spent))
    if not downtimes or (longest := max(downtimes, key=attrgetter("ms"))).ms < _MIN_REPORTED_DOWNTIME_MS:
        return ""
    downtime_ms, name, cause, last, begins_without_leader, spent = longest
    kind, restored_bytes, recovered_bytes = last[["kind", "restored_bytes", "recovered_bytes"]]
    phases = dict(_RESTART_PHASES) | ({"detected": "until another one leads"} if kind == "job-manager" else {})
    if begins_without_leader:
        phases["failed"] = "until another one leads"
    if name in stabilizing and kind == "task-manager":
        phases["delayed"] = "until the restart delay and the wait for more slots (restart.stabilization) are over"
    parts = ", ".join(f"{ms_text(ms)} {text}" for ms, text in zip(spent, phases.values(), strict=True) if ms > 0)
    read = [f"{bytes_text(restored_bytes)} are read"] if restored_bytes else []
    if recovered_bytes:
        before = "" if name in recovering_while_running else ", whose records are processed before"
        read.append(f"{bytes_text(recovered_bytes)} of in-flight data are recovered{before}")
    read_text = f" ({', and '.join(read)})" if read else ""
    only = ""
    if vertices := last.get("vertices"):  # results of earlier versions have no such column
        only = f" Only {int(last['tasks'])} tasks restart, of {vertices}; the others run on, and no checkpoint is taken meanwhile."
    is_open = any((rows["up"] < 0).any() for _, rows in failures)
    which = "longest downtime that ended" if is_open else "longest downtime"
    return f"The {which}, {ms_text(downtime_ms)} ({f'{cause}, {name}' if len(runs) > 1 else cause}): {parts}{read_text}.{only}"


_CensoredMs = tuple[float, bool]
"""(duration [ms], whether it ended within the run; otherwise it is a lower bound)."""


class _Restart(NamedTuple):
    """A restart of the job, with all attempts until it ran or the run ended."""

    is_planned: bool
    failures: int  # number of failures, including the first one
    down: _CensoredMs
    catching_up: _CensoredMs
    ran: bool  # whether all tasks ran again within the run
    replayed_records: float


def restarts_of(recoveries: pd.DataFrame, end_ms: float) -> Iterator[_Restart]:
    """Yield the restarts of a run, in order of time.

    A failure before the job runs again belongs to the restart that it interrupts: downtime counts from the first failure,
    and the replayed records of all attempts are added.

    Such a restart has caught up when the last of its attempts has: its backlog is then as small as usual.

    `end_ms`: end of the run.
    """
    rows = _failures(recoveries)
    is_planned = rows["kind"].isin(PLANNED_RESTARTS)
    caught_up_ms = rows["caught_up"].where(rows["caught_up"] >= 0).bfill()  # NaN: not by the end of the run
    for _, attempts in rows.groupby([rows["outage"], (is_planned != is_planned.shift()).cumsum()]):
        first, failed_ms = attempts.iloc[0], float(attempts["failed"].min())
        up_ms, caught_ms = float(first["up"]), float(caught_up_ms[attempts.index[0]])
        has_caught_up = not math.isnan(caught_ms)
        yield _Restart(
            bool(is_planned[attempts.index[0]]),
            len(attempts),
            ((up_ms if up_ms >= 0 else end_ms) - failed_ms, up_ms >= 0),
            ((caught_ms if has_caught_up else end_ms) - failed_ms, has_caught_up),
            bool(attempts["running"].iloc[-1] >= 0),
            float(attempts["replayed_records"].sum()),
        )


class RestartCosts(NamedTuple):
    """Costs of restarts of one kind."""

    per_run: float  # failures or planned restarts per run
    downtime: Duration
    caught_up: Duration
    replayed_records: float  # median over restarts after which the job ran, or over all if it never ran again


def restart_costs(restarts: Sequence[_Restart], runs: int) -> RestartCosts:
    """Return the costs of these restarts, which happened in this number of runs."""
    ran = [restart for restart in restarts if restart.ran] or restarts
    return RestartCosts(
        sum(restart.failures for restart in restarts) / runs,
        _median([restart.down for restart in restarts]),
        _median([restart.catching_up for restart in restarts]),
        float(np.median([restart.replayed_records for restart in ran])) if ran else math.nan,
    )


def _median(durations: Sequence[_CensoredMs]) -> Duration:
    """Return the median of durations [ms]; those that have not ended count as lower bounds."""
    times, ended = np.array(durations, dtype=float).reshape(-1, 2).T
    return median_of_few(times[ended > 0], times[ended == 0])


def disturbed_ms(runs: Sequence[Tables], durations_ms: Sequence[float]) -> float:
    """Return the total time [ms] from failures until the job has caught up.  Overlapping times count once."""
    disturbed: list[float] = []
    for run, duration_ms in zip(runs, durations_ms, strict=True):
        rows = _failures(run["recoveries"])
        # a restart that another one interrupts has caught up when the other one has
        rows = rows.assign(end=rows["caught_up"].where(rows["caught_up"] >= 0).bfill()).sort_values("failed")
        following = np.append(rows["failed"].to_numpy()[1:], duration_ms)
        disturbed += (np.fmin(following, rows["end"]) - rows["failed"]).tolist()
    return sum(disturbed)


def restarts_table(runs: Mapping[str, Sequence[Tables]]) -> TextTable | None:
    """Return a table with a row per restart.

    Returns None if every strategy has at most one restart, if there are more than `_MAX_RESTARTS`, or if a strategy has
    several replications.  `runs`: label of a strategy -> its replications.
    """
    rows = [
        (name, row)
        for name, tables in runs.items()
        for run in tables
        for row in _failures(run["recoveries"]).to_dict("records")
    ]
    per_strategy = Counter(name for name, _ in rows)
    if (
        max(per_strategy.values(), default=0) < 2
        or len(rows) > _MAX_RESTARTS
        or any(len(tables) > 1 for tables in runs.values())
    ):
        return None

    def time_until(row: Mapping[Any, Any], end: str) -> str:
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
                time_until(row, "up"),
                bytes_text(row["restored_bytes"]),
                bytes_text(row["recovered_bytes"]),
                count_text(row["replayed_records"]),
                time_until(row, "caught_up"),
            ]
            for name, row in rows
        ],
    )
