"""Why a setting exceeds the limits: the parts of checkpoints and of the recovery, and the time that each of them takes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sim.advice.judgement import FULL, rows_of
from sim.advice.settings import SettingName, Situation
from sim.advice.trials import FAILURE, FAILURE_PHASE, TASK_MANAGER, UNDISTURBED, is_lost_silently
from sim.model.faults import RESTARTS
from sim.model.units import format_duration
from sim.results.formats import bytes_text, ms_text
from sim.results.verdict import MAX_QUICK_MS

if TYPE_CHECKING:
    import pandas as pd

    from sim.advice.candidates import CandidateSearch
    from sim.advice.judgement import Setting


QUEUE, ALIGNMENT, PRE_BARRIER, SYNC = "queue", "alignment", "pre-barrier", "sync"
UPLOAD, ASYNC_WORK, CHANNEL_STATE = "upload", "asynchronous work", "channel state"
MESSAGES, HICCUPS = "messages", "hiccups"
EXPIRY, LOSS = "expiry", "loss"
OUTAGE, REPLACEMENT, RESTORE, REPLAY = "outage", "replacement", "restore", "replay"
FAILED_CHECKPOINTS = "failed checkpoints"
PARTS: dict[str, str] = {
    QUEUE: "barriers wait behind data",
    ALIGNMENT: "from the first to the last barrier",
    PRE_BARRIER: "work of operators before the barrier",
    SYNC: "synchronous parts",
    UPLOAD: "upload of state",
    ASYNC_WORK: "asynchronous work beside files",
    CHANNEL_STATE: "upload of data in flight",
    MESSAGES: "triggers and acknowledgements on their way",
    HICCUPS: "hiccups that its history shows and no setting explains",
    EXPIRY: "checkpoints expire",
    OUTAGE: "until a lost task manager's slots are replaced",
    REPLACEMENT: "until a new task manager has started",
    RESTORE: "restart and restore",
    REPLAY: "catching up",
    LOSS: "throughput that checkpoints cost",
    FAILED_CHECKPOINTS: "restarts by checkpoints that fail",
}
"""Part of a checkpoint, recovery or throughput loss -> description."""
OVERTAKEN = "barriers wait for a task thread"
"""Description of QUEUE if barriers overtake data."""
REPLAYED = "records processed again"
"""Description of REPLAY if a source always has more records, so that the job never catches up."""


FOLDER = "<a folder of the checkpoint storage>"
"""Placeholder in Flink configuration for a value that only the user knows."""


# ---- Parts of the critical path of the slowest checkpoints, of a recovery, and of the throughput loss.

COLUMNS: dict[str, str] = {
    QUEUE: "tail_queue_ms",
    "waiting for the alignment timeout": "tail_timeout_ms",
    ALIGNMENT: "tail_alignment_ms",
    PRE_BARRIER: "tail_pre_barrier_ms",
    SYNC: "tail_sync_ms",
    ASYNC_WORK: "tail_async_work_ms",
    "waiting for the asynchronous thread": "tail_async_queue_ms",
    UPLOAD: "tail_upload_ms",
    CHANNEL_STATE: "tail_channel_state_ms",
    MESSAGES: "tail_messages_ms",
}
"""Part -> result column with its time [ms] in the slowest tenth of checkpoints."""
_JOINED = {"waiting for the alignment timeout": QUEUE, "waiting for the asynchronous thread": UPLOAD}
_DRAWN = (MESSAGES, SYNC, ASYNC_WORK)
"""Parts that are lengthened by the residuals of a history (`sim.model.randomness`)."""
BUSY = 0.8
"""Minimum busy share of a subtask that leaves little for catching up."""
MAX_USUAL_OF_HOT = 0.8
"""A subtask is hot if its vertex is on average at most this share as busy as the subtask."""
_ALIKE = 0.8
"""The median checkpoint is like the slowest ones if it takes at least this share of their duration."""


def situation_of(search: CandidateSearch, name: SettingName) -> Situation:
    """Return the situation of a setting that has run.  Raises KeyError for any other."""
    candidate, setting = search.candidate_of(name), search.setting(name)
    if setting is None:
        raise KeyError(name)
    steady, failed = (rows_of(search.rows, name, kind) for kind in (UNDISTURBED, FAILURE))
    steady = search.long_rows.get(name, steady)  # they show more of the slow checkpoints
    backtest, is_today = search.bench.backtest, candidate == search.current_candidate
    parts = _checkpoint_parts(steady, has_residuals=search.scenario.residuals.checkpoints > 0)
    loses_slots, restart = (
        search.bench.failure == TASK_MANAGER and len(failed) > 0,
        search.bench.with_setting(candidate).restart,
    )
    slots = search.slots_ms(name) if loses_slots else (0.0, 0.0)
    outage_ms = math.inf if slots is None else sum(slots) / 2  # inf: the job may fail permanently
    replacement_ms = restart.replacement.mean / 1e6 if outage_ms else 0.0
    down_ms, seen_ms = (
        _finite(failed[column].mean()) if len(failed) else 0.0 for column in ("downtime_ms", "caught_up_ms")
    )
    is_recovered, period_ms = math.isfinite(setting.recovery_ms), search.period_ns(setting) / 1e6
    recovery_ms = setting.recovery_ms if is_recovered else max(seen_ms, down_ms)
    recovery = recovery_parts(recovery_ms, down_ms, outage_ms, replacement_ms, rescales=restart.scheduler == "adaptive")
    expired = bool(len(steady)) and bool((steady["failed"] > steady["interrupted"]).any())
    worst = steady.sort_values("end_to_end_max_ms").iloc[-1] if len(steady) else None
    busy = 0.0 if worst is None else _finite(worst.get("busiest_subtask_share", 0.0))
    return Situation(
        scenario=search.bench.scenario(next(search.bench.trials(candidate))),
        plain=search.bench.document,
        protocol=candidate.barriers,
        interval_ns=candidate.interval_ns,
        shares=_shares(setting, parts, recovery_causes(recovery, period_ms), expired=expired),
        milliseconds=parts,
        recovery=recovery if math.isfinite(outage_ms) else {},
        is_lost_silently=is_lost_silently(search.scenario),
        is_recovered=is_recovered,
        is_unlimited=search.unlimited,
        visible={"interval": period_ms, "checkpoint and commit": max(setting.visible_ms - period_ms, 0.0)},
        loss=setting.loss,
        breaks=setting.breaks,
        checkpoint_limit_ms=search.limits.checkpoint_ms,
        recovery_limit_ms=search.limits.recovery_ms,
        rare=search.rare[name],
        recorded_ms=max(backtest.longest_ms, default=0.0) if backtest is not None and is_today else 0.0,
        checkpoint_ms=setting.checkpoint_p50_ms if math.isfinite(setting.checkpoint_p50_ms) else 0.0,
        uploaded_bytes=0.0 if worst is None else _finite(worst["checkpointed_bytes"]),
        full="" if worst is None or not busy >= FULL else str(worst["bottleneck"]),
        hot="" if worst is None else hot_subtask(worst),
        busiest="" if worst is None or not busy >= BUSY else f"'{worst['bottleneck']}' is {100 * busy:.0f} % busy",
    )


def hot_subtask(row: pd.Series[Any]) -> str:
    """Return the busiest subtask of a run, e.g. ``sink[0]``, if it is far busier than the average of its vertex; else ""."""
    busy, usual = _finite(row.get("busiest_subtask_share", 0.0)), float(row.get("busy_share", math.inf))
    return f"{row['bottleneck']}[{row['busiest_subtask']}]" if usual <= MAX_USUAL_OF_HOT * busy else ""


def dominant(situation: Situation) -> str:
    """Return the part that takes most time, e.g. ``18 s of 20 s: upload of state (9.3 GB at 500 MB/s)``, or "" if unknown.

    It is a part of the slowest checkpoints; or of the recovery, or of the time until output is visible, if only that limit is
    exceeded.
    """
    if situation.breaks == ("recovery_ms",) and (recovery_ms := sum(situation.recovery.values())):
        part, own_ms = max(situation.recovery.items(), key=lambda item: item[1])
        first = "" if situation.is_recovered else "the first "
        what = REPLAYED if part == REPLAY and situation.is_unlimited else PARTS[part]
        why = f" ({situation.busiest})" if situation.busiest and (part == REPLAY or not situation.is_recovered) else ""
        restart = situation.scenario.restart
        if part == OUTAGE and "delay" in RESTARTS[restart.strategy].delays and 2 * restart.delay_ns / 1e6 > own_ms:
            what = f"the restart delay of {format_duration(restart.delay_ns)}"
        return f"{ms_text(own_ms)} of {first}{ms_text(recovery_ms)} of recovery: {what}{why}"
    if situation.breaks == ("visible_ms",) and math.isfinite(visible_ms := sum(situation.visible.values())):
        texts = [f"{part} {ms_text(own_ms)}" for part, own_ms in situation.visible.items()]
        return f"output visible after {ms_text(visible_ms)}: {', '.join(texts)}"
    total_ms = sum(situation.milliseconds.values())
    if not total_ms:
        return ""
    limit_ms, rare = situation.checkpoint_limit_ms, situation.rare
    if "loss" in situation.breaks and "checkpoint_ms" not in situation.breaks:
        part = max((PRE_BARRIER, SYNC), key=lambda part: situation.milliseconds.get(part, 0.0))
        own_ms, period_ms = situation.milliseconds.get(part, 0.0), situation.visible.get("interval", math.inf)
        if 2 * own_ms > situation.loss * period_ms:
            lost = f"{100 * situation.loss:.2g} % of throughput lost"
            return f"{lost}: {PARTS[part]}, {ms_text(own_ms)} every {ms_text(period_ms)}"
    if limit_ms is not None and "checkpoint_ms" in situation.breaks and total_ms < limit_ms:
        tenth = f"the slowest tenth takes {ms_text(total_ms)}"
        why = rare.why if rare is not None else _slow_key(situation)
        if situation.recorded_ms > limit_ms:
            return f"simulated, {tenth}; of its history up to {ms_text(situation.recorded_ms)}"
        return f"{why}; {tenth}" if why else f"{tenth}: rarer checkpoints break the limit"
    part = max(situation.milliseconds, key=lambda part: situation.milliseconds[part])
    own_ms = situation.milliseconds[part]
    if total_ms < MAX_QUICK_MS and not situation.breaks:
        return f"{ms_text(total_ms)}: nothing holds checkpoints up"
    what = OVERTAKEN if part == QUEUE and situation.protocol.barriers == "unaligned" else PARTS[part]
    sentence = f"{ms_text(own_ms)} of {ms_text(total_ms)}: {what}"
    if (
        rare is not None
        and part in ((QUEUE, ALIGNMENT) if rare.vertex else (UPLOAD,))
        and 2 * own_ms > rare.ms > own_ms / 2
    ):
        return f"{ms_text(own_ms)} of {ms_text(total_ms)}: {rare.why}" if rare.vertex else f"{sentence}, {rare.why}"
    if part == UPLOAD and (slow := _slow_key(situation)):
        return f"{sentence}; {slow}"
    if part == UPLOAD and situation.uploaded_bytes > 0 and own_ms > 0:
        written = bytes_text(situation.uploaded_bytes)
        if situation.checkpoint_ms < _ALIKE * total_ms:  # the bytes of the slowest checkpoints are not known
            return f"{sentence} (the median checkpoint writes {written})"
        return f"{sentence} ({written} at {bytes_text(situation.uploaded_bytes / own_ms * 1e3)}/s)"
    if part not in (QUEUE, ALIGNMENT) or not situation.full:
        return sentence
    full = f"'{situation.hot}' alone" if situation.hot else f"'{situation.full}'"
    return f"{sentence} ({full} is full)"


def _slow_key(situation: Situation) -> str:
    """Return a clause on the key by which nodes, prefixes or disks of storage are slow for a while, or "" without one."""
    storage = situation.scenario.storage
    places = {"dfs": storage.dfs, "object-store": storage.object_store, "disk": storage.disk}
    slow = (key for key, place in places.items() if place is not None and place.slow is not None)
    return next((f"some are slow (storage.{key}.slow)" for key in slow), "")


def _checkpoint_parts(rows: pd.DataFrame, *, has_residuals: bool) -> dict[str, float]:
    """Return {part: time [ms]} of the slowest checkpoints, as means over runs.

    `has_residuals`: the simulation draws residuals of a history.  Then the time by which the slowest checkpoints exceed the
    usual ones, in the parts that residuals lengthen, counts as the part HICCUPS.
    """
    parts: dict[str, float] = {}
    for part, column in COLUMNS.items():
        if column not in rows or not len(rows):
            continue
        spent_ms, joined = _finite(rows[column].mean()), _JOINED.get(part, part)
        usual = column.replace("tail_", "path_")
        if has_residuals and part in _DRAWN and usual in rows:
            more_ms = max(spent_ms - _finite(rows[usual].mean()), 0.0)
            parts[HICCUPS] = parts.get(HICCUPS, 0.0) + more_ms
            spent_ms -= more_ms
        parts[joined] = parts.get(joined, 0.0) + spent_ms
    return parts


def _shares(
    setting: Setting, parts: Mapping[str, float], recovery: Mapping[str, float], *, expired: bool
) -> dict[str, float]:
    """Return {part: share of the exceeding time}.

    Each exceeded limit has the same weight.  If none is exceeded, these are the limits with too little room.
    """
    if not setting.completed and not setting.breaks:
        return {EXPIRY: 1.0}
    of_checkpoints = _as_shares(parts)
    if expired:
        of_checkpoints = {EXPIRY: 0.5} | {part: share / 2 for part, share in of_checkpoints.items()}
    by_column = {"recovery_ms": _as_shares(recovery), "loss": {LOSS: 1.0}}
    columns = setting.breaks or [tight.column for tight in setting.tight]
    mean: dict[str, float] = {}
    for column in columns:
        for part, share in by_column.get(column, of_checkpoints).items():
            mean[part] = mean.get(part, 0.0) + share / len(columns)
    return mean


def recovery_parts(
    recovery_ms: float, down_ms: float, outage_ms: float, replacement_ms: float = 0.0, *, rescales: bool = False
) -> dict[str, float]:
    """Return {part: time [ms]} of a recovery, one after the other.

    `outage_ms`: time without slots, at its end that until a new TaskManager has started.  `rescales`: the job runs on the slots that
    are left, and has not caught up before the others are back if the recovery takes longer.
    """
    if math.isinf(outage_ms):
        return {OUTAGE: 1.0}  # the job may fail permanently
    slots_ms = outage_ms if rescales and outage_ms < recovery_ms else min(outage_ms, down_ms)
    if rescales and outage_ms >= recovery_ms:
        replacement_ms = 0.0  # it does not wait for the others
    return {
        OUTAGE: max(slots_ms - replacement_ms, 0.0),
        REPLACEMENT: min(slots_ms, replacement_ms),
        RESTORE: max(down_ms - slots_ms, 0.0),
        REPLAY: max(recovery_ms - max(down_ms, slots_ms), 0.0),
    }


def recovery_causes(parts: Mapping[str, float], period_ms: float) -> dict[str, float]:
    """Return {part: time [ms] of the recovery that it causes}.  `period_ms`: the effective interval.

    The job catches up with lost work and with the records that arrived during the downtime, so the outage causes its share
    of that time.
    """
    causes, replay_ms = dict(parts), parts.get(REPLAY, 0.0)
    behind_ms = sum(parts.values()) - replay_ms + period_ms * FAILURE_PHASE[0] / FAILURE_PHASE[1]
    for part in (OUTAGE, REPLACEMENT) if behind_ms else ():
        more_ms = replay_ms * parts.get(part, 0.0) / behind_ms
        causes |= {part: parts.get(part, 0.0) + more_ms, REPLAY: causes.get(REPLAY, 0.0) - more_ms}
    return causes


def _as_shares(parts: Mapping[str, float]) -> dict[str, float]:
    total = sum(parts.values())
    return {part: value / total for part, value in parts.items()} if total else {}


def _finite(value: object) -> float:
    number = float(value)  # type: ignore[arg-type]  # a cell of a table
    return number if math.isfinite(number) else 0.0
