"""Sentences about when snapshots are triggered: later than the interval says, and while a savepoint is under way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import pandas as pd

from sim.analysis.number_texts import ms_text
from sim.analysis.strategies.kinds_of_checkpoints import first_uploads, is_periodic
from sim.analysis.strategies.rates import Tables

_LATER = 1.05
"""A median distance of triggers beyond so many intervals is named."""
_SHORTEST_MS = 1000.0
"""Shorter intervals are those of benchmarks and tests: messages, restarts and savepoints decide when the next one begins."""
_FEWEST = 3
"""Distances that a median takes."""
_LONGER = 2.0
"""A savepoint is named if it takes so many times the longest checkpoint, but for first uploads."""


class LateTriggers(NamedTuple):
    """Checkpoints are further apart than their interval."""

    apart_ms: float  # median distance of triggers
    interval_ms: float
    why: str


class LongSavepoint(NamedTuple):
    """The longest savepoint, where it outlasts all checkpoints."""

    number: int
    kind: str  # canonical or native
    duration_ms: float
    is_alone: bool  # no checkpoint is triggered meanwhile, though the interval is shorter


def late_triggers(runs: Sequence[Tables], *, interval_ms: float, min_pause_ms: float, max_concurrent: int) -> LateTriggers | None:
    """None: the interval is kept, or too few checkpoints show whether it is.  `runs`: replications."""
    apart, durations = [], []
    for run in runs:
        rows = run["checkpoints"][is_periodic(run["checkpoints"])].sort_values("trigger_timestamp")
        jobs = rows["x_job"] if "x_job" in rows else pd.Series(0, rows.index)
        own = rows["trigger_timestamp"].diff()
        apart.append(own[jobs == jobs.shift()])
        durations.append(rows["end_to_end_duration"])
    between = pd.concat(apart).dropna()
    if interval_ms < _SHORTEST_MS or len(between) < _FEWEST or (median := float(between.median())) <= _LATER * interval_ms:
        return None
    if min_pause_ms:
        why = f"min-pause, {ms_text(min_pause_ms)}, begins at the end of the one before"
    elif max_concurrent == 1 and float(pd.concat(durations).median()) > interval_ms:
        why = "each waits for the one before, as max-concurrent is 1"
    else:
        why = ""
    return LateTriggers(median, interval_ms, why)


def late_triggers_sentence(found: Sequence[tuple[str, LateTriggers]], *, several: bool) -> str:
    """``Checkpoints are triggered every 13 s instead of every 10 s (min-pause, 5 s, ...).``; empty: all keep their interval."""
    parts = []
    for name, late in found:
        why = f" ({late.why})" if late.why else ""
        where = f" with {name}" if several else ""
        parts.append(f"every {ms_text(late.apart_ms)}{where} instead of every {ms_text(late.interval_ms)}{why}")
    return f" Checkpoints are triggered {'; '.join(parts)}." if parts else ""


def long_savepoint(run: Tables, *, interval_ms: float) -> LongSavepoint | None:
    """None: there is none, or a checkpoint takes as long."""
    rows = run["checkpoints"]
    done = rows[(rows["status"] == "COMPLETED").to_numpy() & (rows["savepointFormat"] != "").to_numpy()]
    if done.empty:
        return None
    row = done.iloc[int(done["end_to_end_duration"].to_numpy().argmax())]
    others = rows.loc[is_periodic(rows) & ~first_uploads(rows), "end_to_end_duration"]
    if row["end_to_end_duration"] < max(_SHORTEST_MS, _LONGER * others.max() if len(others) else 0.0):
        return None
    began, ended = row["trigger_timestamp"], row["trigger_timestamp"] + row["end_to_end_duration"]
    is_alone = 0 < interval_ms < ended - began and not ((rows["trigger_timestamp"] > began) & (rows["trigger_timestamp"] < ended)).any()
    return LongSavepoint(int(row["id"]), str(row["savepointFormat"]).lower(), float(row["end_to_end_duration"]), is_alone)


def long_savepoint_sentence(found: Sequence[tuple[str, LongSavepoint]], *, several: bool) -> str:
    """Of the longest one.  Empty: none outlasts the checkpoints."""
    if not found:
        return ""
    name, savepoint = max(found, key=lambda item: item[1].duration_ms)
    of = f" ({name})" if several else ""
    text = f" {savepoint.kind.capitalize()} savepoint {savepoint.number}{of} takes {ms_text(savepoint.duration_ms)}"
    return f"{text}, and no checkpoint is triggered meanwhile." if savepoint.is_alone else f"{text}."
