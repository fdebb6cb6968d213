"""The costs of a strategy beyond its checkpoints: delay of visible output, downtime, end of the job.

Several runs of a strategy are pooled: medians over all their commits and restarts, sums as means per run.
A recovery or a transaction that did not end within its run counts with the time it had taken: its column is then "more than".
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Annotated

import numpy as np
import pandas as pd

from sim.analysis.number_texts import NONE, count_text, ms_text
from sim.analysis.strategies.summary import Tables
from sim.analysis.unfinished import Duration, median_of_few, quantile
from sim.quantities.results import has_sample


@dataclass(frozen=True, slots=True)
class Consequences:
    """The costs of a strategy beyond its checkpoints.  NaN: nothing of the kind happened, e.g. no failure and so no downtime."""

    commits: Annotated[float, "per run"]
    committed_records: Annotated[float, "per run"]
    visible_p50_ms: Annotated[float, "first write of a transaction -> its output visible, median"]
    visible_p99_ms: Annotated[float, "likewise, 99 % quantile; of fewer than 100 commits it is hardly less than the longest"]
    visible_max_ms: Annotated[float, "likewise, the longest"]
    lost_records: Annotated[float, "per run: of transactions that timed out, or whose files are not there"]
    restarts: Annotated[float, "per run"]
    downtime_ms: Annotated[float, "failure -> all tasks run again, median over restarts"]
    replayed_records: Annotated[float, "median over restarts"]
    caught_up_ms: Annotated[float, "failure -> as much waits as usual, median over restarts"]
    disturbed_share: Annotated[float, "of the run: between a failure and being caught up again"]
    lag_s: Annotated[float, "largest time a record has been due and was not emitted yet; of a job that failed for good there is none"]
    delay_mean_s: Annotated[float, "due -> served by a vertex without readers, mean of samples once a second"]
    delay_p99_s: Annotated[float, "likewise, 99 % quantile"]
    ended_s: Annotated[float, "end of the run: the job was over, or it was cut off"]
    unfinished: Annotated[str, "columns whose value is a bound, 'more than': what they measure had not ended when the run did"]

    @property
    def nothing_happened(self) -> bool:
        return not self.commits and not self.restarts


def consequences(
    runs: Sequence[Tables], durations_ms: Sequence[float], *, warmup_ms: float = 0.0, committers: Collection[str] = (), died: bool = False
) -> Consequences:
    """Consequences from the `commits` and `recoveries` of replications; `durations_ms`: the length of each run.

    Like checkpoints, commits count from the end of the warm-up: the trigger of their checkpoint decides.
    `committers`: vertices that commit, also those that never did.  `died`: some job failed for good; its lag then has no end.
    """
    commits = _pooled(runs, "commits")
    commits = commits[commits["commit_timestamp"] - commits["commit_latency"] >= warmup_ms]  # the trigger decides, as for checkpoints
    restarts = _pooled(runs, "recoveries")
    back = restarts[restarts["running"] >= 0]  # the others have not come to replay anything
    fresh = commits[~commits["again"].astype(bool)]
    lasted = [duration for run, end_ms in zip(runs, durations_ms, strict=True) for duration in _recoveries(run["recoveries"], end_ms)]
    down, caught_up = (_median([pair[i] for pair in lasted]) for i in (0, 1))
    late = np.array([age for run, end_ms in zip(runs, durations_ms, strict=True) for age in _open_ms(run, end_ms, committers)])
    visible = fresh.loc[fresh["visible_latency"] >= 0, "visible_latency"].to_numpy(dtype=float)
    p50, p99, longest = (quantile(visible, late, share) for share in (0.5, 0.99, 1.0))
    bounds = {"visible_p50_ms": p50, "visible_p99_ms": p99, "visible_max_ms": longest, "downtime_ms": down, "caught_up_ms": caught_up}
    delays = pd.concat([_delays_s(run["series"], warmup_ms / 1e3) for run in runs])
    return Consequences(
        commits=len(fresh) / len(runs),
        committed_records=fresh["records"].sum() / len(runs),
        visible_p50_ms=p50.value,
        visible_p99_ms=p99.value,
        visible_max_ms=longest.value,
        lost_records=fresh["lost_records"].sum() / len(runs),
        restarts=len(restarts) / len(runs),
        downtime_ms=down.value,
        replayed_records=float((back if len(back) else restarts)["replayed_records"].median()) if len(restarts) else math.nan,
        caught_up_ms=caught_up.value,
        disturbed_share=_disturbed_ms(runs, durations_ms) / sum(durations_ms) if len(restarts) else math.nan,
        lag_s=math.nan if died else max(float(run["series"]["lag"].max()) for run in runs),
        delay_mean_s=float(delays.mean()),
        delay_p99_s=float(delays.quantile(0.99)),
        ended_s=sum(durations_ms) / len(runs) / 1e3,
        unfinished=" ".join(column for column, duration in bounds.items() if duration.is_bound),
    )


def _pooled(runs: Sequence[Tables], name: str) -> pd.DataFrame:
    """The rows of all runs.  Empty tables are left out: pandas warns of them."""
    tables = [run[name] for run in runs if len(run[name])]
    return pd.concat(tables, ignore_index=True) if tables else runs[0][name]


_Lasted = tuple[float, bool]
"""How long something took [ms], and whether it ended."""


def _recoveries(restarts: pd.DataFrame, end_ms: float) -> Iterator[tuple[_Lasted, _Lasted]]:
    """(downtime, catching up) of each failure.

    A later failure may take a restart over.  The job is then down until that one runs.  When that one has caught up, the backlog is what it
    was at the later failure: the earlier one has not caught up by then.
    """
    down: _Lasted = (end_ms, False)
    known_until_ms = end_ms
    for failed, running, caught_up in restarts.sort_values("failed")[["failed", "running", "caught_up"]].to_numpy(dtype=float)[::-1]:
        down = (running, True) if running >= 0 else down
        known_until_ms = caught_up if caught_up >= 0 else known_until_ms
        yield (down[0] - failed, down[1]), (known_until_ms - failed, caught_up >= 0)


def _median(lasted: Sequence[_Lasted]) -> Duration:
    times, ended = np.array([time for time, _ in lasted], dtype=float), np.array([over for _, over in lasted], dtype=bool)
    return median_of_few(times[ended], times[~ended])


def _open_ms(run: Tables, end_ms: float, committers: Collection[str]) -> Iterator[float]:
    """How long output has waited that was not visible when the run ended: what was lost, and what no completed checkpoint covers."""
    commits, checkpoints = run["commits"], run["checkpoints"]
    yield from [end_ms] * int((commits["lost_records"] > 0).sum())
    if len(commits) or committers:
        completed = checkpoints.loc[checkpoints["status"] == "COMPLETED", "trigger_timestamp"]
        answered, visible = commits["commit_latency"] >= 0, commits["visible_latency"] >= 0
        at_the_end = commits.loc[visible & ~answered, "commit_timestamp"]  # a task ended without waiting for a checkpoint
        last_ms = [*completed, *(commits["commit_timestamp"] - commits["commit_latency"])[answered], *at_the_end, 0.0]
        yield end_ms - max(last_ms)


def _delays_s(series: pd.DataFrame, warmup_s: float) -> pd.Series[float]:
    """Delays by second: the waiting time of the oldest record at its source, plus the transit time of those served."""
    worst = series.loc[series["time"] > warmup_s, ["time", "lag", "x_latency"]].groupby("time")[["lag", "x_latency"]].max()
    return worst["lag"] + worst["x_latency"].clip(lower=0.0) / 1e3


def _disturbed_ms(runs: Sequence[Tables], durations_ms: Sequence[float]) -> float:
    """Time from failures until the job has caught up.  Overlapping ones count once: the next recovery works off the same backlog."""
    total = 0.0
    for run, duration_ms in zip(runs, durations_ms, strict=True):
        rows = run["recoveries"].sort_values("failed")
        failures = [*rows["failed"], duration_ms]
        for caught_up, failed, following in zip(rows["caught_up"], failures, failures[1:], strict=False):
            total += min(following, caught_up if caught_up >= 0 else following) - failed
    return total


def consequences_texts(
    labels: Sequence[str], statuses: Sequence[str], rows: Sequence[Consequences], runs: Sequence[int] = (), at_once: Sequence[bool] = ()
) -> tuple[list[str], list[list[str]]]:
    """(header, rows) for a terminal; columns about commits or failures only if there were any.

    `runs`: of each strategy, one if not given.  `at_once`: whether its output is visible at once, as no vertex commits.
    A percentile of commits stands there with its sample only (`sim.quantities.results`).
    """
    counts = [row.commits * number for row, number in zip(rows, runs or [1] * len(rows), strict=True)]
    p99 = [
        _bounded(row, "visible_p99_ms") if has_sample("visible_p99_ms", {"commits": count}) else NONE
        for row, count in zip(rows, counts, strict=True)
    ]
    columns = [("strategy", list(labels)), ("job", list(statuses))]
    if any(row.commits for row in rows):
        columns += [
            ("commits", [count_text(row.commits) for row in rows]),
            ("committed", [count_text(row.committed_records) for row in rows]),
            ("visible p50", _visible(rows, "visible_p50_ms", at_once)),
            *([("visible p99", p99)] if set(p99) != {NONE} else []),
            ("visible max", _visible(rows, "visible_max_ms", at_once)),
        ]
    if any(row.lost_records for row in rows):
        columns.append(("lost", [count_text(row.lost_records) for row in rows]))
    if any(row.restarts for row in rows):
        lag = [status if _died(row) else ms_text(1e3 * row.lag_s) for status, row in zip(statuses, rows, strict=True)]
        columns += [
            ("restarts", [count_text(row.restarts) for row in rows]),
            ("downtime", ["for good" if _died(row) and not row.restarts else _bounded(row, "downtime_ms") for row in rows]),
            ("replayed", [NONE if math.isnan(row.replayed_records) else count_text(row.replayed_records) for row in rows]),
            ("caught up after", ["never" if _died(row) and not row.restarts else _bounded(row, "caught_up_ms") for row in rows]),
            ("largest lag", lag),
            ("disturbed", [NONE if math.isnan(row.disturbed_share) else f"{100 * row.disturbed_share:.0f} %" for row in rows]),
        ]
    return [name for name, _ in columns], [list(cells) for cells in zip(*(cells for _, cells in columns), strict=True)]


def _visible(rows: Sequence[Consequences], column: str, at_once: Sequence[bool]) -> list[str]:
    return ["at once" if waits_for_nothing else _bounded(row, column) for row, waits_for_nothing in zip_longest(rows, at_once)]


def consequences_sentence(labels: Sequence[str], rows: Sequence[Consequences], *, overloaded: Collection[str] = ()) -> str:
    """The difference that decides under failures: the share of disturbed time, or records replayed; empty: neither differs.

    A job that failed for good is not compared.  `overloaded`: labels of those that do not keep up before they fail.
    """
    going_on = [(label, row) for label, row in zip(labels, rows, strict=True) if row.restarts and not _died(row)]
    failing = [(row.disturbed_share, row.replayed_records, label, row) for label, row in going_on]
    if len(failing) < 2:
        return ""
    best, worst = min(failing)[2:], max(failing)[2:]
    if worst[1].disturbed_share < 1.1 * best[1].disturbed_share + 0.01 and worst[1].replayed_records < 1.1 * best[1].replayed_records:
        return "" if _may_differ([row for *_, row in failing]) else "A failure costs the same under all of them."

    def cost(row: Consequences) -> str:
        replayed, lag = count_text(row.replayed_records), ms_text(1e3 * row.lag_s)
        return f"replays {replayed} records, lags by up to {lag} and is disturbed {100 * row.disturbed_share:.0f} % of the time"

    slow = [label for label in (worst[0], best[0]) if label in overloaded]
    also = f" {' and '.join(slow)} cannot keep up before the failure either: lag and disturbed time are not its cost alone." if slow else ""
    return f"After a failure {worst[0]} {cost(worst[1])}; {best[0]} {cost(best[1])}.{also}"


def _died(row: Consequences) -> bool:
    return math.isnan(row.lag_s)


def _may_differ(rows: Sequence[Consequences]) -> bool:
    """Whether a bound hides the cost of one of them, or their downtimes differ by more than noise (a tenth, or 100 ms)."""
    down = [row.downtime_ms for row in rows]
    is_open = any({"downtime_ms", "replayed_records", "caught_up_ms"} & set(row.unfinished.split()) for row in rows)
    return is_open or max(down) - min(down) >= max(100.0, 0.1 * max(down))


def _bounded(row: Consequences, column: str) -> str:
    """``more than 40 s``: it had not ended when the run did."""
    return ("more than " if column in row.unfinished.split() else "") + ms_text(getattr(row, column))
