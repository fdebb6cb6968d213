"""Storage use of a run: requests and bytes of an object store and their cost, commits of sinks, and retained snapshots."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from sim.model.frozen import frozen
from sim.model.job import Job, Vertex
from sim.model.quantities import COST, PLANNED_RESTARTS, Prices
from sim.model.sinks import SINKS, SinkKind
from sim.results.columns import Population, ResultColumn, columns_of, compute_columns, result_column
from sim.results.formats import MISSING, TextTable, bytes_text, count_text, ms_text
from sim.results.rates import Tables
from sim.results.tables import first_uploads, is_periodic, job_of

# ---- Requests and bytes of an object store per hour, after the warm-up and the first upload, without one-off events.

_NEGLIGIBLE_WRITE_BYTES = 8_000_000
"""Number of bytes that an object store with 80 MB/s writes within the noise of durations (`sim.results.estimates`)."""
_REGULAR_SHARE = 0.9
"""Triggers are regular if the next one follows after at least this share of the median time between triggers."""


def unlimited_text(unlimited_bytes: float) -> str:
    """Return a clause on writes that take no time because storage has no bandwidth limit, or "" if they are small.

    `unlimited_bytes`: bytes that a subtask writes to storage without a bandwidth limit.
    """
    if unlimited_bytes < _NEGLIGIBLE_WRITE_BYTES:
        return ""
    written = f"writing up to {bytes_text(unlimited_bytes)} per subtask takes no time here"
    return f"{written}, as storage has no limit: how long it takes is unknown until you write storage.bandwidth"


def table_sinks(job: Job) -> dict[str, SinkKind]:
    """Return the table formats that vertices write, by vertex.  Requests, bytes and costs exclude their metadata files."""
    return {name: kind for name, (_, kind) in known_sinks(job).items() if kind.metadata}


def known_sinks(job: Job) -> dict[str, tuple[Vertex, SinkKind]]:
    """Return {vertex name: (vertex, kind of sink)} for the vertices whose connector is a known sink."""
    candidates = ((vertex, SINKS.get(vertex.known_connector)) for vertex in job.vertices)
    return {vertex.name: (vertex, kind) for vertex, kind in candidates if kind is not None}


class _Requests(NamedTuple):
    """The table `requests` of a run, and the period of time to evaluate."""

    table: pd.DataFrame
    begin_s: float
    end_s: float
    one_off_events_s: Sequence[tuple[float, float]] = ()  # (begin, end): see `_one_off_events_s`

    def per_hour(self, columns: Sequence[str]) -> float:
        """Return the sum of these columns per hour, without one-off events, or NaN if unknown."""
        if not self.is_known:
            return np.nan
        times, period_s = self.table["time"], self.end_s - self.begin_s
        is_counted, latest_s = times.between(self.begin_s, self.end_s, inclusive="left"), self.begin_s
        for begin_s, end_s in sorted(self.one_off_events_s):
            begin_s, end_s = (
                max(math.floor(begin_s), latest_s),
                min(math.ceil(end_s), self.end_s),
            )  # one row per second
            if end_s > begin_s:
                is_counted &= ~times.between(begin_s, end_s, inclusive="left")
                period_s, latest_s = period_s - (end_s - begin_s), end_s
        rows = self.table[is_counted]
        return float(sum(rows[name].sum() for name in columns) * (3600 / period_s)) if period_s > 0 else np.nan

    @property
    def is_known(self) -> bool:
        return not self.table.empty and self.end_s > self.begin_s

    @property
    def mean_stored(self) -> float:
        """Return the time-weighted mean of stored bytes.  A second without a row has the value of the previous row."""
        if not self.is_known:
            return np.nan
        times = np.append(self.table["time"].to_numpy(dtype=float), self.end_s)
        lasts = np.diff(np.clip(times, self.begin_s, self.end_s))
        return float((self.table["stored"].to_numpy(dtype=float) * lasts).sum() / (self.end_s - self.begin_s))


def _hourly_rate_column(meaning: str, *columns: str, text: Callable[[float], str] = count_text, **options: Any) -> Any:
    """Return a field with the sum of columns of the table `requests`, per hour."""
    value = partial(_Requests.per_hour, columns=columns)
    return result_column(meaning, Population.AFTER_WARMUP, value, text=text, **options)


@frozen
class StorageUse:
    """Requests and bytes of an object store.  All values are NaN if checkpoints are not stored in one.

    One-off events, e.g. a redeployment, are left out of rates: in a month they would count as often as the run fits into it.
    """

    put_requests_per_hour: float = _hourly_rate_column(
        "PUT and POST requests that the object store answered, parts of large files among them, "
        "without one-off events (planned restarts, a single failure or savepoint)",
        "put",
        title="PUT requests to the object store",
        heading="PUT per hour",
    )
    list_requests_per_hour: float = _hourly_rate_column(
        "LIST requests, without one-off events",
        "list",
        title="LIST requests to the object store",
        heading="LIST per hour",
    )
    get_requests_per_hour: float = _hourly_rate_column(
        "GET and HEAD requests, without one-off events",
        "get",
        title="GET requests to the object store",
        heading="GET per hour",
    )
    refused_requests_per_hour: float = _hourly_rate_column(
        "requests that the object store refused with 503 (storage.object-store.requests); clients retry them",
        "refused",
        title="requests that the object store refused",
        heading="503 per hour",
    )
    stored_bytes: float = result_column(
        "bytes in the object store, time-weighted mean: retained checkpoints and shared files",
        Population.AFTER_WARMUP,
        lambda run: run.mean_stored,
        title="held by the object store, mean",
        heading="stored",
    )
    moved_bytes_per_hour: float = _hourly_rate_column(
        "bytes written to the object store and read from it",
        "written",
        "read",
        text=bytes_text,
        title="moved to and from the object store",
        heading="moved per hour",
    )

    @property
    def has_requests(self) -> bool:
        return not np.isnan(self.put_requests_per_hour)


COST_COLUMN = ResultColumn(
    "what a month of requests and bytes costs by a price list",
    title="cost of the object store",
    heading="cost per month",
    name=COST,
)


def storage_use(runs: Sequence[Tables], ends_s: Sequence[float], *, warmup_s: float = 0.0) -> StorageUse:
    """Return the storage use, mean over runs.

    The evaluated period begins after the warm-up and the first upload of the first job, and ends with the run (`ends_s`).
    It is cut to whole checkpoint intervals, and one-off events are left out.
    """
    of_runs = _evaluated_requests(runs, ends_s, warmup_s)
    rows = [compute_columns(StorageUse, requests)[0] for requests in of_runs]
    return StorageUse(**{name: float(np.mean([row[name] for row in rows])) for name in rows[0]})


class RateBasis(NamedTuple):
    """The part of the runs that the rates of `StorageUse` are of."""

    intervals: float  # between checkpoints, mean over runs
    growth: float  # requests in its second half, as a multiple of those in its first half


def rate_basis(runs: Sequence[Tables], ends_s: Sequence[float], *, warmup_s: float = 0.0) -> RateBasis:
    """Return on how many intervals the rates of the storage use are based, and how much they grow."""
    halves, count = np.zeros(2), 0
    for run, requests in zip(runs, _evaluated_requests(runs, ends_s, warmup_s), strict=True):
        triggers_s = run["checkpoints"].loc[is_periodic(run["checkpoints"]), "trigger_timestamp"] / 1e3
        count += int(triggers_s.between(requests.begin_s + 1, requests.end_s + 1, inclusive="left").sum())
        middle_s = math.floor((requests.begin_s + requests.end_s) / 2)
        parts = requests._replace(end_s=middle_s), requests._replace(begin_s=middle_s)
        halves += [part.per_hour(["put"]) for part in parts]
    return RateBasis(count / len(runs), halves[1] / halves[0] if halves[0] > 0 else math.nan)


def _evaluated_requests(runs: Sequence[Tables], ends_s: Sequence[float], warmup_s: float) -> list[_Requests]:
    """Return the requests of each run, with the period to evaluate."""
    of_runs = []
    for run, end_s in zip(runs, ends_s, strict=True):
        triggers_ms = run["checkpoints"].loc[is_periodic(run["checkpoints"]), "trigger_timestamp"]
        begin_ms = 1e3 * max(warmup_s, _first_upload_end_s(run["checkpoints"]))
        span_ms = whole_periods_ms(triggers_ms[triggers_ms >= begin_ms], begin_ms, 1e3 * end_s)
        begin_s, until_s = (math.floor(ms / 1e3) for ms in span_ms)  # one row per second
        events = one_off_events_s(run, end_s)
        whole = _Requests(
            run["requests"], begin_s, until_s, _whole_intervals_s(events, triggers_ms[triggers_ms >= begin_ms])
        )
        is_left = not np.isnan(whole.per_hour(["put"]))
        of_runs.append(whole if is_left else whole._replace(one_off_events_s=events))
    return of_runs


def _first_upload_end_s(checkpoints: pd.DataFrame) -> float:
    """Return the end of the first upload of the first job [s], or 0 if there is none.

    It is left out of the monthly cost, because it happens once, not once per simulated run.
    """
    rows = checkpoints[first_uploads(checkpoints)]
    rows = rows[job_of(rows) == job_of(checkpoints).min()]
    return float(rows[["trigger_timestamp", "end_to_end_duration"]].sum(axis=1).max()) / 1e3 if len(rows) else 0.0


def one_off_events_s(run: Tables, end_s: float) -> list[tuple[float, float]]:
    """Return (begin, end) [s] of planned restarts, and of a failure or a savepoint that is the only one of the run.

    A restart lasts until the first checkpoint afterwards has completed, because that may upload all state again.
    """
    restarts, checkpoints = run["recoveries"], run["checkpoints"]
    triggers, durations = checkpoints["trigger_timestamp"], checkpoints["end_to_end_duration"]
    ends = (triggers + durations).where(checkpoints["status"] == "COMPLETED", 1e3 * end_s)
    is_planned, is_savepoint = restarts["kind"].isin(PLANNED_RESTARTS), _savepoints(run)
    begins_ms = restarts.loc[is_planned | ((~is_planned).sum() == 1), "failed"]
    events = [(at_ms, ends[(triggers >= at_ms) & ~is_savepoint].min()) for at_ms in begins_ms]
    if is_savepoint.sum() == 1:
        events += zip(triggers[is_savepoint], ends[is_savepoint], strict=True)
    return [(begin_ms / 1e3, end_s if math.isnan(until_ms) else until_ms / 1e3) for begin_ms, until_ms in events]


def _whole_intervals_s(
    events_s: Sequence[tuple[float, float]], triggers_ms: pd.Series[float]
) -> list[tuple[float, float]]:
    """Return the events [s], from the last trigger before each to the first regular trigger after it, if there are both.

    What is left of a run is then whole intervals with their checkpoints: neither those that are overdue after a savepoint, nor an
    interval that a restart cuts short.  A trigger is regular if the next one does not follow sooner than usual.
    """
    times_s = np.floor(np.unique(triggers_ms.to_numpy(dtype=float)) / 1e3)  # rows are of seconds
    gaps_s = np.diff(times_s)
    regular_s = times_s[np.append(gaps_s >= _REGULAR_SHARE * np.median(gaps_s), True)] if len(gaps_s) else times_s
    whole = [(times_s[times_s <= begin_s], regular_s[regular_s >= until_s]) for begin_s, until_s in events_s]
    return [
        (before[-1], after[0]) if len(before) and len(after) else event
        for (before, after), event in zip(whole, events_s, strict=True)
    ]


def storage_use_table(by_strategy: Mapping[str, StorageUse], prices: Prices) -> TextTable | None:
    """Return a table with the storage use and its cost per month, a row per strategy, or None without an object store."""
    with_requests = {name: use for name, use in by_strategy.items() if use.has_requests}
    if not with_requests:
        return None
    columns = columns_of(StorageUse)
    rows = [
        [
            name,
            *(column.value_text(asdict(use)) for column in columns.values()),
            prices.text(prices.cost_per_month(asdict(use))) if use.has_requests else MISSING,
        ]
        for name, use in by_strategy.items()
    ]
    header = ["strategy", *(column.heading for column in (*columns.values(), COST_COLUMN))]
    title = (
        "Requests to the object store after the warm-up and the first upload, without one-off events (planned restarts, a single failure "
        f"or savepoint, and the checkpoint after each); prices: {prices.source}"
    )
    return TextTable(title, header, rows)


# ---- Commits of sinks, and repeated commits of jobs that start from an older snapshot.


def commits_per_hour(runs: Sequence[Tables], ends_s: Sequence[float], *, warmup_s: float) -> tuple[float, float]:
    """Return (commits, committed files) per hour after the warm-up, over whole periods.  `ends_s`: end of each run."""
    hours, count, files = 0.0, 0.0, 0.0
    for rows, end_s in zip((run["commits"] for run in runs), ends_s, strict=True):
        counted = rows[((rows["commit_timestamp"] >= 1e3 * warmup_s) & ~rows["again"].astype(bool)).to_numpy()]
        # the same for all committers of a checkpoint, though computed from floats
        triggers_ms = (counted["commit_timestamp"] - counted["commit_latency"].clip(lower=0.0)).astype(float).round(3)
        begin_ms, until_ms = whole_periods_ms(triggers_ms, 1e3 * warmup_s, 1e3 * end_s)
        counted = counted[(triggers_ms > begin_ms).to_numpy()]
        hours += max(until_ms - begin_ms, 0.0) / 3.6e6
        count, files = count + len(counted), files + float(counted["files"].sum())
    return (count / hours, files / hours) if hours else (math.nan, math.nan)


def whole_periods_ms(times_ms: pd.Series[float], begin_ms: float, end_ms: float) -> tuple[float, float]:
    """Return the begin and the end [ms] of a span of whole periods of events: rates in it do not depend on when a run ends.

    It is the span (first event, last event].  It is the given span if there are fewer than two
    events, or if the last one was more than two periods before the end.
    """
    times = np.unique(times_ms.to_numpy(dtype=float))
    if len(times) < 2 or end_ms - times[-1] > 2 * np.median(np.diff(times)):
        return begin_ms, end_ms
    return float(times[0]), float(times[-1])


def rolled_back_sentences(run: Tables, *, twice: int, connectors: Collection[str]) -> Iterator[str]:
    """Yield a sentence on repeated output per job that starts from a snapshot older than the newest commit.

    Iceberg sinks compare the id of a checkpoint with that of the newest commit (`known_issues.toml`, iceberg#10892):
    iceberg-v1 commits nothing until ids are larger, and iceberg-v2 drops output if the job keeps its job id.

    `twice`: number of records that are committed twice in the run.  `connectors`: connectors of the sinks.
    """
    commits, checkpoints, restarts, restores = (
        run[name] for name in ("commits", "checkpoints", "recoveries", "restores")
    )
    first_commits = commits[~commits["again"].astype(bool)]
    for job, old_job, kind, number, begun_ms in zip(
        *(restores[column].tolist() for column in ("job", "restored_job", "restored_type", "restored_id", "begun")),
        strict=True,
    ):
        before = first_commits[(first_commits["x_job"] == old_job) & (first_commits["commit_timestamp"] <= begun_ms)]
        newest = int(before["checkpoint"].max()) if len(before) else 0
        if newest <= number:
            continue
        replayed = float(restarts.loc[restarts["x_job"] == job, "replayed_records"].head(1).sum())
        committed = set(first_commits.loc[first_commits["x_job"] == job, "checkpoint"])
        completed = checkpoints[(checkpoints["x_job"] == job) & (checkpoints["status"] == "COMPLETED").to_numpy()]
        uncommitted = sorted(id_ for id_ in completed["id"].astype(int) if id_ <= newest and id_ not in committed)
        again = f", {count_text(twice)} of them are committed twice" if committed and twice else ""
        text = (
            f"job {job} begins from {kind} {number} of job {old_job}, which had committed up to checkpoint {newest}: "
            f"{count_text(replayed)} records are read again{again}"
        )
        if "iceberg-v2" in connectors and twice:
            text += (
                f", if it has a new job id; one that keeps its id (application mode with high availability, Kubernetes operator) drops the "
                f"output of its checkpoints {number + 1} to {newest} for good (iceberg#10892, not simulated)"
            )
        if "iceberg-v1" in connectors and uncommitted:
            text += (
                f"; its checkpoints {uncommitted[0]} to {uncommitted[-1]} commit nothing, as their numbers are not above {newest}: a failure before "
                "a later one is committed may lose their records (iceberg#10892)"
            )
        yield text


# ---- Printed tables on checkpoint storage: cost of snapshots, their dependencies, and consequences of deletions.


def snapshot_tables(runs: Mapping[str, Tables]) -> list[TextTable]:
    """Return the tables on snapshots of the strategies that have savepoints or jobs started from a snapshot.

    Tables without rows are left out.  `runs`: strategy -> tables of one run.
    """
    reporting = {name: run for name, run in runs.items() if len(run["restores"]) or _savepoints(run).any()}
    sections: tuple[tuple[str, list[str], Callable[[Tables], Iterator[list[str]]]], ...] = (
        (
            "Duration and size of snapshots",
            ["snapshot", "n", "p50", "max", "written", "state"],
            _snapshot_rows,
        ),
        (
            "Jobs restored from a snapshot",
            ["job", "from", "its first checkpoint", "written", "took", "old one unused after", "safe to delete"],
            _restore_rows,
        ),
        (
            "Retained snapshots and what they depend on",
            [
                "snapshot",
                "size",
                "files",
                "outside its dir",
                "outside the job's dir",
                "its dir suffices",
                "job's dir suffices",
                "all dirs suffice",
                "breaks if disposed of",
            ],
            _kept_rows,
        ),
        ("Directories that other snapshots need", ["rm -r", "lost"], _loss_rows),
    )
    tables = [
        TextTable(
            title, ["strategy", *header], [[name, *row] for name, run in reporting.items() for row in rows_of(run)]
        )
        for title, header, rows_of in sections
    ]
    return [table for table in tables if table.rows]


def _savepoints(run: Tables) -> pd.Series[bool]:
    return run["checkpoints"]["savepointFormat"] != ""


def _snapshot_rows(run: Tables) -> Iterator[list[str]]:
    """Yield a row per kind of snapshot: number, durations and sizes."""
    done = _completed_by_kind(run)
    for kind, rows in done.groupby(done["kind"].astype(str), sort=False):
        name = f"{kind!s} savepoint" if kind in ("canonical", "native") else str(kind)
        yield [
            name,
            str(len(rows)),
            ms_text(rows["end_to_end_duration"].median()),
            ms_text(rows["end_to_end_duration"].max()),
            bytes_text(rows["checkpointed_size"].median()),
            bytes_text(rows["state_size"].median()),
        ]


def _completed_by_kind(run: Tables) -> pd.DataFrame:
    """Return the completed checkpoints and savepoints, with additional columns `end` [ms] and `kind`.

    The first checkpoint after a savepoint is a kind of its own (FLINK-23949).
    """
    done = run["checkpoints"][run["checkpoints"]["status"] == "COMPLETED"].copy()
    done["end"] = done["trigger_timestamp"] + done["end_to_end_duration"] + done["x_finalization"]
    done["kind"] = done["savepointFormat"].str.lower().where(done["savepointFormat"] != "", "checkpoint")
    job = job_of(done)
    restores = run["restores"].to_dict("records")
    full = {(row["job"], row["first_id"]) for row in restores if row["first_type"] == "full"}
    done.loc[[pair in full for pair in zip(job, done["id"], strict=True)], "kind"] = "full checkpoint"
    for i in done.index[done["savepointFormat"] != ""]:
        after = done[
            (done["trigger_timestamp"] >= done.loc[i, "end"]) & (done["kind"] == "checkpoint") & (job == job[i])
        ]
        if len(after):
            done.loc[after["trigger_timestamp"].idxmin(), "kind"] = "checkpoint after a savepoint"
    return done


def _restore_rows(run: Tables) -> Iterator[list[str]]:
    """Yield a row per job that started from a snapshot: its first checkpoint, and when the old snapshot can be deleted."""
    for row in run["restores"].to_dict("records"):
        first, free_ms = row["first_id"] >= 0, row["time_until_old_snapshot_deletable"]
        yield [
            str(row["job"]),
            f"{row['restored_job']}/{row['restored_id']} {row['restored_type']}",
            f"{row['first_id']} {row['first_type']}" if first else MISSING,
            bytes_text(row["first_checkpointed_size"]) if first else MISSING,
            ms_text(row["first_duration"]) if first else MISSING,
            "never" if free_ms < 0 else ms_text(free_ms),
            "yes" if row["deletable"] else "no: it is the job's" if row["claim"] == "claim" else "no",
        ]


def _kept_rows(run: Tables) -> Iterator[list[str]]:
    """Yield a row per retained snapshot: its size, and whether a copy of a directory is enough to restore it."""
    for row in run["snapshots"].to_dict("records"):
        broken = "" if row["restorable"] else ", broken"
        owners = f" ({row['owners']})" if row["chain_length"] else ""
        yield [
            f"{row['job']}/{row['id']} {row['type']}{broken}",
            bytes_text(row["bytes_total"]),
            str(row["files_total"]),
            str(row["files_outside_chk_dir"]),
            f"{row['files_outside_job_dir']}{owners}",
            _yes_no(row["relocatable_own_dir"]),
            row["relocatable_job_dir"],
            _yes_no(row["relocatable_root"]) if row["relocatable_job_dir"] != "n/a" else "n/a",
            row["would_break"] or MISSING,
        ]


def _loss_rows(run: Tables) -> Iterator[list[str]]:
    """Yield a row per job directory that contains files of other jobs' snapshots, with those snapshots."""
    existing_files = run["files"][(run["files"]["deleted"] < 0) & (run["files"]["scope"] != "savepoint")]
    for owner, files in existing_files.groupby("owner"):
        needed = {
            name for names in files["needed_by"] for name in names.split() if name.partition("/")[0] != str(owner)
        }
        if needed:
            yield [
                f"directory of job {owner}",
                " ".join(sorted(needed, key=lambda name: [int(part) for part in name.split("/")])),
            ]


def _yes_no(relocatable: bool) -> str:
    return "yes" if relocatable else "no"
