"""The costs of a strategy beyond its checkpoints: delay of visible output, downtime, end of the job.

Several runs of a strategy are pooled: medians over all their commits and restarts, sums as means per run.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import pandas as pd

from sim.analysis.number_texts import NONE, count_text, ms_text
from sim.analysis.strategies.summary import Tables

__all__ = ["Consequences", "consequences", "consequences_sentence", "consequences_texts"]


@dataclass(frozen=True, slots=True)
class Consequences:
    """NaN: nothing of the kind happened, e.g. no failure and so no downtime."""

    commits: Annotated[float, "per run"]
    committed_records: Annotated[float, "per run"]
    visible_p50_ms: Annotated[float, "first write of a transaction -> its output visible, median"]
    visible_p99_ms: Annotated[float, "likewise, 99 % quantile"]
    lost_records: Annotated[float, "per run: of transactions that timed out, or whose files are not there"]
    restarts: Annotated[float, "per run"]
    downtime_ms: Annotated[float, "failure -> all tasks run again, median over restarts"]
    replayed_records: Annotated[float, "median over restarts"]
    caught_up_ms: Annotated[float, "failure -> the backlog is what it was, median over restarts; NaN: not within the run"]
    disturbed_share: Annotated[float, "of the run: between a failure and being caught up again"]
    lag_s: Annotated[float, "largest time a record has been due and was not emitted yet"]
    delay_mean_s: Annotated[float, "due -> served by a vertex nobody reads, mean of what is seen once a second"]
    delay_p99_s: Annotated[float, "likewise, 99 % quantile"]
    ended_s: Annotated[float, "end of the run: the job was over, or it was cut off"]

    @property
    def nothing_happened(self) -> bool:
        return not self.commits and not self.restarts


def consequences(runs: Sequence[Tables], durations_ms: Sequence[float], *, warmup_ms: float = 0.0) -> Consequences:
    """Consequences from the `commits` and `recoveries` of replications; `durations_ms`: the length of each run.

    Like checkpoints, commits count from the end of the warm-up: the trigger of their checkpoint decides.
    """
    commits = pd.concat([run["commits"] for run in runs], ignore_index=True)
    commits = commits[commits["time"] - commits["commit_latency"] >= warmup_ms]  # the trigger decides, as for checkpoints
    restarts = pd.concat([run["recoveries"] for run in runs], ignore_index=True)
    fresh = commits[~commits["again"].astype(bool)]
    over = restarts[restarts["running"] >= 0]
    caught_up = restarts[restarts["caught_up"] >= 0]
    delays = pd.concat([_delays_s(run["series"], warmup_ms / 1e3) for run in runs])
    return Consequences(
        commits=len(fresh) / len(runs),
        committed_records=fresh["records"].sum() / len(runs),
        visible_p50_ms=float(fresh["visible_latency"].median()) if len(fresh) else math.nan,
        visible_p99_ms=float(fresh["visible_latency"].quantile(0.99)) if len(fresh) else math.nan,
        lost_records=fresh["lost_records"].sum() / len(runs),
        restarts=len(restarts) / len(runs),
        downtime_ms=float(over["downtime"].median()) if len(over) else math.nan,
        replayed_records=float(restarts["replayed_records"].median()) if len(restarts) else math.nan,
        caught_up_ms=float((caught_up["caught_up"] - caught_up["failed"]).median()) if len(caught_up) else math.nan,
        disturbed_share=_disturbed_ms(runs, durations_ms) / sum(durations_ms) if len(restarts) else math.nan,
        lag_s=max(float(run["series"]["lag"].max()) for run in runs),
        delay_mean_s=float(delays.mean()),
        delay_p99_s=float(delays.quantile(0.99)),
        ended_s=sum(durations_ms) / len(runs) / 1e3,
    )


def _delays_s(series: pd.DataFrame, warmup_s: float) -> pd.Series[float]:
    """In each second: the waiting time of the oldest record at its source, plus the transit time of the served ones."""
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


def consequences_texts(labels: Sequence[str], statuses: Sequence[str], rows: Sequence[Consequences]) -> tuple[list[str], list[list[str]]]:
    """(header, rows) for a terminal; columns about commits or failures only if there were any."""
    columns = [("strategy", list(labels)), ("job", list(statuses))]
    if any(row.commits for row in rows):
        columns += [
            ("commits", [count_text(row.commits) for row in rows]),
            ("committed", [count_text(row.committed_records) for row in rows]),
            ("visible p50", [ms_text(row.visible_p50_ms) for row in rows]),
            ("visible p99", [ms_text(row.visible_p99_ms) for row in rows]),
        ]
    if any(row.lost_records for row in rows):
        columns.append(("lost", [count_text(row.lost_records) for row in rows]))
    if any(row.restarts for row in rows):
        columns += [
            ("restarts", [count_text(row.restarts) for row in rows]),
            ("downtime", [ms_text(row.downtime_ms) for row in rows]),
            ("replayed", [NONE if math.isnan(row.replayed_records) else count_text(row.replayed_records) for row in rows]),
            ("caught up after", [_caught_up(row) for row in rows]),
            ("largest lag", [ms_text(1e3 * row.lag_s) for row in rows]),
            ("disturbed", [NONE if math.isnan(row.disturbed_share) else f"{100 * row.disturbed_share:.0f} %" for row in rows]),
        ]
    return [name for name, _ in columns], [list(cells) for cells in zip(*(cells for _, cells in columns), strict=True)]


def consequences_sentence(labels: Sequence[str], rows: Sequence[Consequences]) -> str:
    """The difference that decides under failures: the share of disturbed time, or records replayed; empty: neither differs."""
    failing = [(row.disturbed_share, row.replayed_records, label, row) for label, row in zip(labels, rows, strict=True) if row.restarts]
    if len(failing) < 2:
        return ""
    best, worst = min(failing)[2:], max(failing)[2:]
    if worst[1].disturbed_share < 1.1 * best[1].disturbed_share + 0.01 and worst[1].replayed_records < 1.1 * best[1].replayed_records:
        return "A failure costs the same under all of them."

    def cost(row: Consequences) -> str:
        replayed, lag = count_text(row.replayed_records), ms_text(1e3 * row.lag_s)
        return f"replays {replayed} records, lags by up to {lag} and is disturbed {100 * row.disturbed_share:.0f} % of the time"

    return f"After a failure {worst[0]} {cost(worst[1])}; {best[0]} {cost(best[1])}."


def _caught_up(row: Consequences) -> str:
    return "not yet" if row.restarts and math.isnan(row.caught_up_ms) else ms_text(row.caught_up_ms)
