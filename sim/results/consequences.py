"""Compute and print the costs of a strategy beyond checkpoint durations: delay of visible output, restarts, lag, end of the run.

The input is the result tables of all runs (replications) of a strategy.  Times in these tables are ms since the start of the run,
except for the column `time` of the table `series`, which is in s.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict
from operator import attrgetter
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd

from sim.model.frozen import frozen
from sim.model.quantities import PLANNED_RESTARTS, title_of
from sim.results.columns import Population, columns_of, compute_columns, in_printing_order, result_column
from sim.results.estimates import Duration, quantiles
from sim.results.formats import MISSING, TextTable, count_text, ms_text, share_text
from sim.results.rates import Tables
from sim.results.restarts import RestartCosts, disturbed_ms, largest_lag_s, restart_costs, restarts_of
from sim.results.tables import is_periodic, pool_rows

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
MIN_UNLIKE_PHASE = 0.1
"""Minimum difference, as a share of the interval, between the times of failures after a trigger from which their costs are unlike."""
_FULL_SHARE = 0.95
"""Share of the replayed records from which all count as committed."""


def _cost_column(value: str, meaning: str, of: Literal["failures", "planned_restarts"], **options: Any) -> Any:
    """Return a field of `Consequences` for a value of `RestartCosts`.

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
        lambda pooled: pooled.visible[index],
        ends="make all output visible within the run",
        of="commits",
        title=f"time until output is visible, {name}",
        heading=f"visible {short}",
        printed_with="commits",
        cell=lambda line: line.visible_text(f"visible_{short}_ms"),
        **options,
    )


@frozen
class Consequences:
    """Costs of a strategy beyond its checkpoints.

    A value is NaN if there is nothing to measure: without a failure there is no downtime.
    """

    commits: float = result_column(
        "per run",
        Population.COMMITS,
        lambda pooled: len(pooled.first_commits) / len(pooled.runs),
        worse="less",
        heading="commits",
        printed_with="commits",
    )
    committed_records: float = result_column(
        "per run",
        Population.COMMITS,
        lambda pooled: pooled.first_commits["records"].sum() / len(pooled.runs),
        worse="less",
        heading="committed",
        printed_with="commits",
    )
    visible_p50_ms: float = _visibility_column(
        0, "first write of a transaction -> its output visible, median by records", "median", "p50"
    )
    visible_p99_ms: float = _visibility_column(
        1,
        "likewise, 99 % quantile; close to the longest for fewer than 100 commits",
        "p99",
        "p99",
        is_optional=True,
    )
    visible_max_ms: float = _visibility_column(
        2,
        "likewise, the longest; of records that a failure replays, since the checkpoint it restores",
        "longest",
        "max",
    )
    lost_records: float = result_column(
        "per run: of transactions that timed out, or whose files are missing",
        Population.COMMITS,
        lambda pooled: pooled.first_commits["lost_records"].sum() / len(pooled.runs),
        heading="lost",
        printed_with="lost_records",
    )
    restarts: float = result_column("per run", Population.RESTARTS, attrgetter("restarts.per_run"))
    failures: float = result_column(
        "per run, including one that ends the job; deployments that fail belong to the failure before",
        Population.FAILURES,
        lambda pooled: pooled.failures.per_run + _failures_at_the_end(pooled) / len(pooled.runs),
        heading="failures",
        printed_with="failures",
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
        "replayed_records",
        "emitted again by sources, median",
        "failures",
        title="records that a failure replays, median",
        heading="replayed",
    )
    caught_up_ms: float = _cost_column(
        "caught_up",
        "failure -> the backlog is as small as usual, median",
        "failures",
        ends=_CATCH_UP,
        title="time until caught up after a failure",
        heading="caught up after",
        cell=lambda line: line.cost_text("caught_up_ms", "never"),
    )
    interval_passed_share: float = result_column(
        "latest trigger of a checkpoint -> failure, as a share of the interval (at most 1), mean",
        Population.FAILURES,
        attrgetter("interval_passed"),
        worse="neither",
        of="failures",
        title="share of the interval before a failure",
    )
    planned_restarts: float = result_column("per run", Population.PLANNED, attrgetter("planned_restarts.per_run"))
    planned_downtime_ms: float = _cost_column(
        "downtime",
        "start of the restart -> all tasks run again, median",
        "planned_restarts",
        ends=_RUN,
        title="downtime of a planned restart, median",
    )
    planned_replayed_records: float = _cost_column(
        "replayed_records",
        "emitted again by sources, median",
        "planned_restarts",
        title="records that a planned restart replays, median",
    )
    planned_caught_up_ms: float = _cost_column(
        "caught_up",
        "start of the restart -> no backlog at the sources, median",
        "planned_restarts",
        ends=_CATCH_UP,
    )
    served_again_records: float = result_column(
        "per run: processed again by vertices without readers",
        Population.RESTARTS,
        lambda pooled: sum(run["recoveries"]["served_again"].sum() for run in pooled.runs) / len(pooled.runs),
        of="restarts",
        title="records that sinks process again",
    )
    disturbed_share: float = result_column(
        "share of the run between a restart and being caught up again",
        Population.RESTARTS,
        lambda pooled: (
            disturbed_ms(pooled.runs, pooled.durations_ms) / sum(pooled.durations_ms)
            if pooled.restarts.per_run
            else math.nan
        ),
        of="restarts",
        heading="disturbed",
        printed_with="restarts",
        after="lag_s",
        cell=lambda line: share_text(line.costs.disturbed_share),
    )
    lag_s: float = result_column(
        "largest time from when a record is due until a source emits it; NaN if the job failed for good",
        Population.RUN,
        lambda pooled: math.nan if any(pooled.failed_jobs) else max(map(largest_lag_s, pooled.runs)),
        ends=_LIVE,
        heading="largest lag",
        printed_with="restarts",
        cell=lambda line: line.status if line.costs.has_failed else _lag_text(line.costs.lag_s),
    )
    delay_mean_s: float = result_column(
        "due -> processed by a sink, mean of samples once a second",
        Population.AFTER_WARMUP,
        lambda pooled: float(pooled.delays.mean()),
        ends=_LIVE,
        title="mean delay of records",
    )
    delay_p99_s: float = result_column(
        "likewise, 99 % quantile",
        Population.AFTER_WARMUP,
        lambda pooled: float(pooled.delays.quantile(0.99)),
        ends=_LIVE,
        title="delay of records, p99",
    )
    ended_s: float = result_column(
        "time at which the job finished, or the run ended",
        Population.RUN,
        lambda pooled: sum(pooled.durations_ms) / len(pooled.runs) / 1e3,
        ends="come to an end within the run",
    )
    unfinished: str = result_column(
        "names of columns whose values are lower bounds, because the run ended before what they measure"
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

    @property
    def has_failed(self) -> bool:
        """Whether a job of the strategy failed permanently, so that its lag is NaN."""
        return math.isnan(self.lag_s)


def _lag_text(lag_s: float) -> str:
    """Return the lag of a job that was restarted.  It is 0 if no source has a rate: then no record is ever due."""
    return ms_text(1e3 * lag_s) if lag_s else MISSING


class _Pooled(NamedTuple):
    """Values of all runs of a strategy, from which the columns of `Consequences` are computed."""

    runs: Sequence[Tables]
    durations_ms: Sequence[float]  # length of each run
    failed_jobs: Sequence[bool]  # whether the job of a run failed permanently; empty if none did
    first_commits: pd.DataFrame  # commits of output that was not committed before
    restarts: RestartCosts
    failures: RestartCosts
    planned_restarts: RestartCosts
    visible: Sequence[Duration]  # quantiles `_VISIBLE_SHARES` of the time until output is visible
    delays: pd.Series[float]  # delay of records [s] in each second after the warm-up
    interval_passed: float  # share of the interval that has passed at a failure, mean


def consequences(
    runs: Sequence[Tables],
    durations_ms: Sequence[float],
    *,
    warmup_ms: float = 0.0,
    committers: Collection[str] = (),
    failed_jobs: Sequence[bool] = (),
    falls_behind: Sequence[bool] = (),
    sources: Collection[str] = (),
    interval_ms: float | None = None,
) -> Consequences:
    """Compute the costs of a strategy from the tables of its replications.

    Only commits whose checkpoint was triggered after the warm-up count.

    `durations_ms`: length of each run.  `committers`: vertices that commit, including those that have not committed
    anything.  `failed_jobs`: for each run, whether its job failed permanently; the lag is then unbounded.  `falls_behind`: for each run, whether its
    backlog keeps growing (`falls_behind`); its restarts then count as never caught up.  `sources`: vertices that emit what is
    replayed.  `interval_ms`: the configured one; None: there are no checkpoints.
    """
    runs = [
        {**run, "recoveries": run["recoveries"].assign(caught_up=-1.0)} if grows else run
        for run, grows in zip(runs, falls_behind or [False] * len(runs), strict=True)
    ]
    ended = list(zip(runs, durations_ms, strict=True))
    commits = pool_rows([run["commits"] for run in runs])
    # the time of the commit minus its latency is the time of the trigger
    commits = commits[commits["commit_timestamp"] - commits["commit_latency"] >= warmup_ms]
    first_commits = commits[~commits["again"].astype(bool)]  # not those that a restored job repeats
    restarts = [restart for run, end_ms in ended for restart in restarts_of(run["recoveries"], end_ms)]
    ages_ms = [age_ms for run, end_ms in ended for age_ms in _invisible_ages_ms(run, end_ms, committers)]
    visible_ms, records = (
        first_commits.loc[first_commits["visible_latency"] >= 0, ["visible_latency", "records"]].to_numpy(dtype=float).T
    )
    weights = np.fmax(records, 1) / max(records.mean(), 1) if len(records) else None
    *shorter, longest = quantiles(visible_ms, np.array(ages_ms), *_VISIBLE_SHARES, weights=weights)
    replays = (wait_ms for run in runs for wait_ms, _ in replay_waits_ms(run, sources))
    longest = longest._replace(value=float(np.fmax.reduce([longest.value, *replays])))
    values, bounds = compute_columns(
        Consequences,
        _Pooled(
            runs=runs,
            durations_ms=durations_ms,
            failed_jobs=failed_jobs,
            first_commits=first_commits,
            restarts=restart_costs(restarts, len(runs)),
            failures=restart_costs([restart for restart in restarts if not restart.is_planned], len(runs)),
            planned_restarts=restart_costs([restart for restart in restarts if restart.is_planned], len(runs)),
            visible=[*shorter, longest],
            delays=pd.concat([_delays_s(run["series"], warmup_ms / 1e3) for run in runs]),
            interval_passed=_interval_passed(runs, interval_ms) if interval_ms else math.nan,
        ),
    )
    return Consequences(**values, unfinished=" ".join(bounds))


def _failures_at_the_end(pooled: _Pooled) -> int:
    """Return the number of jobs that ended by a failure of their own, not by a deployment that failed after another one."""
    ended = (run["recoveries"] for run, failed in zip(pooled.runs, pooled.failed_jobs, strict=False) if failed)
    return sum(not len(rows) or rows["running"].iloc[-1] >= 0 for rows in ended)


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


def replay_waits_ms(run: Tables, sources: Collection[str]) -> Iterator[tuple[float, int]]:
    """Yield, for each failure, (time until all that it replays is visible [ms], checkpoint from which it counts).

    It ends at the commit by the last committer that commits these records within the run.  A failure is left out if none does.
    `sources`: vertices that emit what is replayed.
    """
    recoveries, commits = run["recoveries"], run["commits"][run["commits"]["commit_latency"] >= 0]
    if not sources or commits.empty or recoveries.empty:
        return
    started_ms, tasks = run["checkpoints"].groupby("id")["trigger_timestamp"].max(), run["tasks"]
    emitted = tasks.loc[tasks["vertex"].isin(sources), "numRecordsIn"].sum() - recoveries["replayed_records"].sum()
    for failure in recoveries[~recoveries["kind"].isin(PLANNED_RESTARTS)].to_dict("records"):
        number, visible_ms = failure["restored_checkpoint"], list[float]()
        for _, rows in commits.groupby("vertex"):
            is_after = rows["commit_timestamp"] - rows["commit_latency"] > failure["failed"]
            committed = rows[is_after].groupby("commit_timestamp")["records"].sum().cumsum()
            replayed = failure["replayed_records"] * rows["records"].sum() / emitted  # as this committer counts records
            visible_ms += committed.index[committed >= _FULL_SHARE * replayed][:1].tolist()
        if visible_ms and number in started_ms.index:
            yield max(visible_ms) - started_ms[number], number


def _interval_passed(runs: Sequence[Tables], interval_ms: float) -> float:
    """Return the mean share of the interval between the latest trigger of a checkpoint and a failure, or NaN without one."""
    shares = [
        min((failed_ms - triggers[triggers <= failed_ms].max()) / interval_ms, 1.0)
        for run in runs
        for triggers in [run["checkpoints"].loc[is_periodic(run["checkpoints"]), "trigger_timestamp"]]
        for failed_ms in run["recoveries"].loc[~run["recoveries"]["kind"].isin(PLANNED_RESTARTS), "failed"]
    ]
    return float(np.nanmean(shares)) if np.isfinite(shares).any() else math.nan


def _delays_s(series: pd.DataFrame, warmup_s: float) -> pd.Series[float]:
    """Return the delay of records [s] in each second: the largest lag of a source plus the largest latency of processed records."""
    worst = (
        series.loc[series["time"] > warmup_s, ["time", "lag", "x_latency"]].groupby("time")[["lag", "x_latency"]].max()
    )
    return worst["lag"] + worst["x_latency"].clip(lower=0.0) / 1e3


# ---- Print the costs of strategies beyond checkpoint durations: tables with a row per strategy, and a sentence that compares them.


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
                column.value_text(asdict(line.costs)) if column.cell is None else column.cell(line) for line in lines
            ]
            if not all(map(column.says_nothing, texts)):
                columns.append((column.heading, texts))
    return [name for name, _ in columns], [list(cells) for cells in zip(*(cells for _, cells in columns), strict=True)]


_COLUMNS = columns_of(Consequences)
_COST_COLUMNS = ("downtime_ms", "replayed_records", "caught_up_ms")


class _Line(NamedTuple):
    """A strategy as a row of the table of consequences."""

    status: str
    costs: Consequences
    runs: int
    is_at_once: bool  # output is visible immediately
    is_behind: bool  # the backlog grows

    def visible_text(self, name: str) -> str:
        """Return a cell with the time until output is visible, or `MISSING` if there are too few commits for the quantile."""
        column = _COLUMNS[name]
        if column.smallest_sample > 1 and not column.has_sample({"commits": self.costs.commits * self.runs}):
            return MISSING
        return "at once" if self.is_at_once else self.costs.ms_text(name)

    def cost_text(self, name: str, text_if_failed: str) -> str:
        """Return a cell with the cost of failures, or `text_if_failed` if the job failed permanently without a counted failure."""
        if self.costs.has_failed and math.isnan(self.costs.downtime_ms):
            return text_if_failed
        return _cost_text(self.costs, name, is_behind=self.is_behind)


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


def consequences_sentence(costs: Mapping[str, Consequences], *, overloaded: Collection[str] = ()) -> str:
    """Return a sentence that compares the best and the worst strategy by their cost of failures.

    Without failures it compares the cost of planned restarts.  Returns "" if fewer than two strategies can be compared, or
    if they replay equally many records but may differ in other costs, because downtimes differ or some costs are lower bounds.
    Strategies whose job failed permanently are ignored.

    `costs`: by label of the strategy.  `overloaded`: strategies that cannot keep up even before a restart.
    """
    alive = [(label, row) for label, row in costs.items() if row.restarts and not row.has_failed]
    kind, prefix = ("failure", "") if any(row.failures for _, row in alive) else ("planned restart", "planned_")
    compared = [_Compared(label, row, prefix) for label, row in alive if prefix or row.failures]
    if len(compared) < 2:
        return ""
    best, worst = _best_and_worst(compared, "disturbed_share", "replayed_records")
    if worst.row.disturbed_share < 1.1 * best.row.disturbed_share + 0.01:
        best, worst = _best_and_worst(compared, "replayed_records")
        if worst.value("replayed_records") <= 1.1 * best.value("replayed_records"):
            downtimes_ms = [line.value("downtime_ms") for line in compared]
            min_ms, max_ms = min(downtimes_ms), max(downtimes_ms)
            may_differ = any(line.bounds for line in compared) or max_ms - min_ms >= max(100.0, 0.1 * max_ms)
            times = _unlike_times(compared)
            alone = times and f" here, but failures come {times}, on average: at other times their costs may differ"
            same = f"Downtime and replay after a {kind} are the same with all of them{alone}."
            return "" if may_differ else same
    sentence = f"After a {kind} {worst}; {best}."
    if times := _unlike_times([worst, best]):
        sentence += f" Failures come {times}, on average: what is replayed may differ by that alone."
    if labels := " and ".join(line.label for line in (worst, best) if line.label in overloaded):
        sentence += f" {labels} cannot keep up before the {kind} either: lag and disturbed time are not its cost alone."
    return sentence


def _unlike_times(compared: Sequence[_Compared]) -> str:
    """Return after which part of the interval failures come with the two strategies in which it differs most, or "" if it does not."""
    share_of = attrgetter("row.interval_passed_share")
    first, last = (choose(compared, key=share_of) for choose in (max, min))
    if not (
        first.row.failures and share_of(first) - share_of(last) > MIN_UNLIKE_PHASE
    ):  # NaN: no checkpoint precedes a failure
        return ""
    lines = [line for line in compared if line in (first, last)]
    return ", ".join(f"after {share_text(share_of(line))} of the interval with {line.label}" for line in lines)


class _Compared(NamedTuple):
    """A strategy in the comparison of costs: of failures (`prefix` "") or of planned restarts (`prefix` "planned_")."""

    label: str
    row: Consequences
    prefix: str

    def value(self, column: str) -> float:
        """Return the value of a cost column for the compared kind of restart, if it is about one; most are medians."""
        return float(getattr(self.row, self.prefix * (column in _COST_COLUMNS) + column))

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
        lags = f", lags by up to {_lag_text(row.lag_s)}" if row.lag_s else ""
        return (
            f"{self.label} replays {count_text(self.value('replayed_records'))} records{lags} and is disturbed "
            f"{100 * row.disturbed_share:.0f} % of the time{counted}"
        )


def _best_and_worst(compared: Sequence[_Compared], *columns: str) -> tuple[_Compared, _Compared]:
    """Return the best and the worst strategy by these columns.  Of several equal worst ones, the one labelled most like the best.

    Any other label would suggest that options without an effect make the difference.
    """
    values = {line.label: [line.value(column) for column in columns] for line in compared}
    best = min(compared, key=lambda line: values[line.label])
    parts = set(best.label.split(", "))
    others = [line for line in compared if line is not best]
    return best, max(others, key=lambda line: (values[line.label], len(parts & set(line.label.split(", ")))))


def _count_with_noun(number: float, noun: str) -> str:
    """Return a number with its noun, e.g. ``1 failure`` or ``3 failures``."""
    return f"{count_text(number)} {noun}{'' if number == 1 else 's'}"
