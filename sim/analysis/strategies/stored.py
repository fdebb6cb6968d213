"""The content of checkpoint storage, for people: the cost of each snapshot, its dependencies, the consequences of deletions.

It reads the tables `checkpoints`, `series`, `snapshots`, `restores` and `files` of a run per strategy.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from sim.analysis.number_texts import NONE, bytes_text, ms_text, per_second_text
from sim.analysis.section import TextTable
from sim.analysis.strategies.summary import Tables


def stored(runs: Mapping[str, Tables], edges: Sequence[tuple[str, str]]) -> list[TextTable]:
    """Tables per strategy, if it has savepoints, or jobs that began from a snapshot."""
    reporting = {name: run for name, run in runs.items() if len(run["restores"]) or _savepoints(run).any()}
    if not reporting:
        return []
    snapshots = TextTable(
        "What snapshots take", ["strategy", "snapshot", "n", "p50", "max", "written", "state", "throughput meanwhile"], []
    )
    restored = TextTable(
        "Jobs that began from a snapshot",
        ["strategy", "job", "from", "its first checkpoint", "written", "took", "old one free after", "user may delete it"], [],
    )  # fmt: skip
    kept = TextTable(
        "What is kept, and what it depends on",
        [
            "strategy", "snapshot", "size", "files", "elsewhere", "of other jobs", "copy of own dir", "of job's dir", "of all",
            "if disposed of, lost too",
        ],
        [],
    )  # fmt: skip
    losses = TextTable("Directories others depend on", ["strategy", "rm -r", "lost"], [])
    for name, run in reporting.items():
        snapshots.rows.extend([name, *row] for row in _snapshot_rows(run, edges))
        restored.rows.extend([name, *row] for row in _restore_rows(run["restores"]))
        kept.rows.extend([name, *row] for row in _kept_rows(run["snapshots"]))
        losses.rows.extend([name, *row] for row in _loss_rows(run))
    return [section for section in (snapshots, restored, kept, losses) if section.rows]


def _savepoints(run: Tables) -> pd.Series[bool]:
    return run["checkpoints"]["savepointFormat"] != ""


def _snapshot_rows(run: Tables, edges: Sequence[tuple[str, str]]) -> Iterator[list[str]]:
    """A row per kind of snapshot."""
    done = _completed_by_kind(run)
    for kind, rows in done.groupby(done["kind"].astype(str), sort=False):
        name = f"{kind!s} savepoint" if kind in ("canonical", "native") else str(kind)
        yield [
            name, str(len(rows)), ms_text(rows["end_to_end_duration"].median()), ms_text(rows["end_to_end_duration"].max()),
            bytes_text(rows["checkpointed_size"].median()), bytes_text(rows["state_size"].median()),
            per_second_text(_throughput(run["series"], edges, rows)) if (rows["savepointFormat"] != "").all() else NONE,
        ]  # fmt: skip


def _completed_by_kind(run: Tables) -> pd.DataFrame:
    """The completed snapshots with their `end` and `kind`; the first checkpoint after a savepoint is one of its own (FLINK-23949)."""
    done = run["checkpoints"][run["checkpoints"]["status"] == "COMPLETED"].copy()
    done["end"] = done["trigger_timestamp"] + done["end_to_end_duration"] + done["x_finalization"]
    done["kind"] = done["savepointFormat"].str.lower().where(done["savepointFormat"] != "", "checkpoint")
    job = done["x_job"] if "x_job" in done else pd.Series(0, done.index)
    full = {(row["job"], row["first_id"]) for row in _rows(run["restores"]) if row["first_type"] == "full"}
    for i in done.index:
        if (job[i], done.loc[i, "id"]) in full:
            done.loc[i, "kind"] = "full checkpoint"
    for i in done.index[done["savepointFormat"] != ""]:
        after = done[(done["trigger_timestamp"] >= done.loc[i, "end"]) & (done["kind"] == "checkpoint") & (job == job[i])]
        if len(after):
            done.loc[after["trigger_timestamp"].idxmin(), "kind"] = "checkpoint after a savepoint"
    return done


def _throughput(series: pd.DataFrame, edges: Sequence[tuple[str, str]], during: pd.DataFrame) -> float:
    """Records served by the sinks in the seconds between the triggers and ends of these snapshots."""
    sinks = series[~series["vertex"].isin({upstream for upstream, _ in edges})]
    inside = pd.Series(data=False, index=sinks.index)
    for begin, end in during[["trigger_timestamp", "end"]].itertuples(index=False, name=None):
        inside |= (sinks["time"] - 1 >= begin / 1e3) & (sinks["time"] <= end / 1e3)
    seconds = sinks.loc[inside, "time"].nunique()
    return float(sinks.loc[inside, "numRecordsInPerSecond"].sum()) / seconds if seconds else math.nan


def _restore_rows(restores: pd.DataFrame) -> Iterator[list[str]]:
    """A row per job that began from a snapshot: what its first checkpoint cost, and when the old snapshot may go."""
    for row in _rows(restores):
        first, free_ms = row["first_id"] >= 0, row["time_until_old_snapshot_deletable"]
        yield [
            str(row["job"]), f"{row['restored_job']}/{row['restored_id']} {row['restored_type']}",
            f"{row['first_id']} {row['first_type']}" if first else NONE,
            bytes_text(row["first_checkpointed_size"]) if first else NONE,
            ms_text(row["first_duration"]) if first else NONE,
            "never" if free_ms < 0 else ms_text(free_ms),
            "yes" if row["deletable"] else "no: it is the job's" if row["claim"] == "claim" else "no",
        ]  # fmt: skip


def _kept_rows(snapshots: pd.DataFrame) -> Iterator[list[str]]:
    """A row per snapshot that is kept: its size, and whether a copy of a directory is enough to restore it."""
    for row in _rows(snapshots):
        broken = "" if row["restorable"] else ", broken"
        owners = f" ({row['owners']})" if row["chain_length"] else ""
        yield [
            f"{row['job']}/{row['id']} {row['type']}{broken}", bytes_text(row["bytes_total"]), str(row["files_total"]),
            str(row["files_outside_chk_dir"]), f"{row['files_outside_job_dir']}{owners}", _works(row["relocatable_own_dir"]),
            row["relocatable_job_dir"], _works(row["relocatable_root"]), row["would_break"] or NONE,
        ]  # fmt: skip


def _rows(table: pd.DataFrame) -> list[dict[str, Any]]:
    return [{str(key): value for key, value in row.items()} for row in table.to_dict("records")]


def _loss_rows(run: Tables) -> Iterator[list[str]]:
    """A row per job with the snapshots of other jobs that are lost if its directory is deleted."""
    there = run["files"][(run["files"]["deleted"] < 0) & (run["files"]["scope"] != "savepoint")]
    for owner, files in there.groupby("owner"):
        needed = {name for names in files["needed_by"] for name in names.split() if name.partition("/")[0] != str(owner)}
        if needed:
            yield [f"directory of job {owner}", " ".join(sorted(needed, key=lambda name: [int(part) for part in name.split("/")]))]


def _works(relocatable: bool) -> str:
    return "yes" if relocatable else "no"
