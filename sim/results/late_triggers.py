"""Find triggers that are later than the interval, and long savepoints, which delay triggers, and describe them in sentences.

The input is the result tables of the runs (replications) of a strategy.  Times are ms since the start of the run, except for
the columns `time` and `lag` of the table `series`, which are in s.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from sim.model.checkpoint import CheckpointOptions
from sim.model.units import MS
from sim.results.formats import bytes_text, ms_text
from sim.results.rates import Tables
from sim.results.tables import EXPIRED, first_uploads, is_periodic, job_of

# ---- Sentences on triggers that are later than the interval, and on long savepoints.

_LATE_FACTOR = 1.05
"""Triggers are late if the median time between them is above this multiple of the interval."""
_LATE_ONCE_FACTOR = 1.25
"""A single trigger that waits for an older checkpoint is late above this multiple of the interval."""
_MIN_REPORTED_MS = 1000.0
"""Intervals, savepoints and lags below this duration are not reported.

With such intervals, as in benchmarks and tests, messages and restarts determine the time between triggers.
"""
_MIN_GAPS_FOR_MEDIAN = 3
"""Minimum number of times between triggers from which a median is computed."""
_ALIKE_SHARE, _ALIKE_FACTOR = 0.75, 1.25
"""Minimum share of these times that are within this factor of their median: else they are of several kinds, and none is usual."""
_LONG_SAVEPOINT_FACTOR = 2.0
"""A savepoint is long if it takes at least this multiple of the longest checkpoint, first uploads excluded."""
_MAX_OVERDUE_WAIT_SHARE = 0.1
"""A checkpoint was overdue if it was triggered within this share of the interval after the previous one ended."""
_MIN_OVERDUE = 2
"""Minimum number of overdue checkpoints after a savepoint that are reported."""


class LateTriggers(NamedTuple):
    """Checkpoints of a strategy that are triggered less often than the interval demands."""

    gap_ms: float  # time between triggers: the median, or the longest
    interval_ms: float
    why: str  # reason, "" if unknown
    is_longest: bool = (
        False  # gap_ms is the longest time, because the median is on time, not usual, or of too few values
    )


class LongSavepoint(NamedTuple):
    """The longest savepoint of a run, if it takes longer than all checkpoints."""

    number: int
    kind: str  # canonical or native
    duration_ms: float
    written_bytes: float
    typical_bytes: float  # median of the bytes that checkpoints write
    blocks_checkpoints: bool  # it is longer than the interval, and no checkpoint is triggered while it is in progress
    overdue: int = 0  # number of overdue checkpoints after it, each triggered when the previous one ends
    overdue_ms: float = 0.0  # from the end of the savepoint to the end of the last overdue checkpoint
    are_majority: bool = False  # whether more than half of the checkpoints in percentiles are overdue ones
    lag_ms: float = 0.0  # largest lag from its trigger to the last overdue checkpoint; 0 if not larger than before
    failed: bool = False


def late_triggers(runs: Sequence[Tables], options: CheckpointOptions) -> LateTriggers | None:
    """Return how late checkpoints are triggered, and why, or None if they are on time.

    If the median time between triggers is late and usual, it is returned.  If it is late and none is usual, the longest time is
    returned.  If it is on time, or if there are too few triggers for a median, that is the longest time before a trigger that
    waits for an older checkpoint, provided that it is late.

    Intervals of less than a second, or with another value during backlogs, and triggers that wait for a first upload are not
    examined.  `runs`: replications of one strategy.
    """
    interval_ms, min_pause_ms = (options.interval_ns or 0) / MS, options.min_pause_ns / MS
    rows = pd.concat(
        [
            rows.assign(x_job=job_of(rows), run=number, first=first_uploads(rows))[is_periodic(rows)]
            for number, rows in enumerate(run["checkpoints"] for run in runs)
        ]
    ).sort_values("trigger_timestamp", ignore_index=True)
    if interval_ms < _MIN_REPORTED_MS or options.interval_during_backlog_ns is not None or len(rows) < 2:
        return None
    jobs = rows.assign(ended=rows["trigger_timestamp"] + rows["end_to_end_duration"]).groupby(["run", "x_job"])
    gaps_ms = jobs["trigger_timestamp"].diff().mask(jobs["first"].shift().eq(True))
    awaited, gap_ms = rows, float(gaps_ms.median()) if gaps_ms.count() else 0.0  # checkpoints that triggers waited for
    is_late = gaps_ms.count() >= _MIN_GAPS_FOR_MEDIAN and gap_ms > _LATE_FACTOR * interval_ms
    are_alike = gaps_ms.between(gap_ms / _ALIKE_FACTOR, gap_ms * _ALIKE_FACTOR).sum() >= _ALIKE_SHARE * gaps_ms.count()
    late = gaps_ms > _LATE_FACTOR * interval_ms
    if is_longest := not (is_late and are_alike):
        # time from the end of the older checkpoint and its min-pause until the trigger: hardly any if the trigger waited for it
        waits_ms = rows["trigger_timestamp"] - jobs["ended"].shift(options.max_concurrent) - min_pause_ms
        has_waited = waits_ms <= _MAX_OVERDUE_WAIT_SHARE * interval_ms
        longest_ms = gaps_ms[has_waited | is_late].nlargest(1)
        if not longest_ms.max() > _LATE_ONCE_FACTOR * interval_ms:  # no trigger waited, or it was on time
            return None
        late, gap_ms = gaps_ms.index == longest_ms.index[0], float(longest_ms.iloc[0])
        awaited = jobs.shift(options.max_concurrent).loc[longest_ms.index[has_waited[longest_ms.index]]]
    why = ""
    if len(awaited):
        why = _reason_of_late_triggers(awaited, gap_ms, interval_ms, options, is_longest=is_longest)
    if not why:
        begins_ms = rows["trigger_timestamp"] - gaps_ms
        spans = zip(rows["run"][late], begins_ms[late], rows["trigger_timestamp"][late], strict=True)
        restarted = sum(runs[run]["recoveries"]["failed"].between(begin, end).any() for run, begin, end in spans)
        why = "the job restarts in between" if 2 * restarted > late.sum() else ""
    return LateTriggers(gap_ms, interval_ms, why, is_longest)


def _reason_of_late_triggers(
    awaited: pd.DataFrame,
    gap_ms: float,
    interval_ms: float,
    options: CheckpointOptions,
    *,
    is_longest: bool,
) -> str:
    """Return why triggers are late, or "" if checkpoints do not delay them.  `awaited`: rows of those that triggers waited for."""
    max_concurrent = options.max_concurrent
    if options.min_pause_ns:
        completes = 2 * (awaited["status"] == "COMPLETED").sum() >= len(awaited)
        return f"min-pause, {ms_text(options.min_pause_ns / MS)}, " + (
            "starts when a checkpoint completes"
            if completes
            else "is the minimum interval; only a completed one starts a pause"
        )
    if is_longest or awaited["end_to_end_duration"].median() > max_concurrent * max(interval_ms, gap_ms - interval_ms):
        expired = awaited["failure_message"] == EXPIRED
        return f"{'a checkpoint' if is_longest else 'each'} waits " + (
            "until the one before expires"
            if 2 * expired.sum() > len(expired)
            else "for the one before, as max-concurrent is 1"
            if max_concurrent == 1
            else f"for an older one, as max-concurrent is {max_concurrent}"
        )
    return ""


def late_triggers_sentence(by_strategy: Sequence[tuple[str, LateTriggers]], *, several: bool) -> str:
    """Return ``Checkpoints are triggered every 13 s instead of every 10 s (min-pause, 5 s, ...).``, or "" if none are late.

    `by_strategy`: (label, late triggers) per strategy.  `several`: whether the sentence names the strategies.
    """
    parts = []
    for name, triggers in by_strategy:
        why = f" ({triggers.why})" if triggers.why else ""
        where = f" with {name}" if several else ""
        apart = (
            f"up to {ms_text(triggers.gap_ms)} apart" if triggers.is_longest else f"every {ms_text(triggers.gap_ms)}"
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
    overdue = int(np.logical_and.accumulate(waits_ms <= _MAX_OVERDUE_WAIT_SHARE * interval_ms).sum())
    if not savepoint.blocks_checkpoints or overdue < _MIN_OVERDUE:
        return savepoint
    until_ms = np.nanmax(ends_ms[:overdue])
    times_ms, lags_ms = run["series"]["time"] * 1e3, run["series"]["lag"] * 1e3
    lag_ms, before_ms = lags_ms[times_ms.between(began_ms, until_ms)].max(), lags_ms[times_ms < began_ms].max()
    return savepoint._replace(
        overdue=overdue,
        overdue_ms=float(until_ms - ended_ms),
        are_majority=2 * overdue > usual["end_to_end_duration"].count(),
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
        usual = "" if math.isnan(savepoint.typical_bytes) else f" (a checkpoint: {bytes_text(savepoint.typical_bytes)})"
        text += f"writes {bytes_text(savepoint.written_bytes)}{usual} and takes {ms_text(savepoint.duration_ms)}"
    if savepoint.blocks_checkpoints:
        text += ", during which no checkpoint is triggered"
    if savepoint.overdue:
        text += (
            f"; {savepoint.overdue} overdue checkpoints follow it back to back, within "
            f"{ms_text(savepoint.overdue_ms)}{', and determine the median' if savepoint.are_majority else ''}"
        )
    if savepoint.lag_ms:
        text += f"; records wait up to {ms_text(savepoint.lag_ms)}"
    return f"{text}."
