"""Where the time goes that breaks a limit: parts of the critical path of the slowest checkpoints, of a recovery, of throughput."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from sim.advice.levers.lever import (
    ALIGNMENT,
    ASYNC_WORK,
    CHANNEL_STATE,
    EXPIRY,
    LOSS,
    PARTS,
    PRE_BARRIER,
    QUEUE,
    REPLAY,
    RESTORE,
    SYNC,
    UPLOAD,
    Situation,
)
from sim.advice.trials import FAILURE, INTERVAL, PROTOCOL, TRIAL, UNDISTURBED
from sim.analysis.number_texts import bytes_text, ms_text
from sim.scenario.overrides import apply
from sim.scenario.text.plain import compose, read_text
from sim.scenario.text.problems import Reading
from sim.sweeps.file.design import override
from sim.units import parse_duration

if TYPE_CHECKING:
    import pandas as pd

    from sim.advice.judgement import Setting
    from sim.advice.race import Race

COLUMNS: dict[str, str] = {
    QUEUE: "tail_queue_ms", "waiting for the alignment timeout": "tail_timeout_ms", ALIGNMENT: "tail_alignment_ms",
    PRE_BARRIER: "tail_pre_barrier_ms", SYNC: "tail_sync_ms", ASYNC_WORK: "tail_async_work_ms",
    "waiting for the asynchronous thread": "tail_async_queue_ms", UPLOAD: "tail_upload_ms", CHANNEL_STATE: "tail_channel_state_ms",
}  # fmt: skip
"""Part -> the column of a run that holds it, for the slowest tenth of its checkpoints."""
_JOINED = {"waiting for the alignment timeout": QUEUE, "waiting for the asynchronous thread": UPLOAD}
FULL = 0.98
"""The share of time that the busiest subtask of a full vertex works."""


def situation_of(race: Race, name: tuple[str, str]) -> Situation:
    """The parts of a setting that ran."""
    setting = next(setting for setting in race.settings if setting.name == name)
    trial = next(trial for trial in race.bench.trials(race.candidate_of(name)) if trial.kind == UNDISTURBED)
    steady, failed = (_rows(race.rows, name, kind) for kind in (UNDISTURBED, FAILURE))
    parts = _checkpoint_parts(steady)
    expired = bool(len(steady)) and bool((steady["failed"] > steady["interrupted"]).any())
    worst = steady.sort_values("end_to_end_max_ms").iloc[-1] if len(steady) else None
    return Situation(
        scenario=race.bench.scenario(trial),
        plain=_plain(race),
        protocol=race.protocols.get(name[1], race.now),
        interval_ns=parse_duration(name[0]),
        shares=_shares(setting, parts, failed, expired=expired),
        milliseconds=parts,
        checkpoint_ms=setting.checkpoint_p50_ms if math.isfinite(setting.checkpoint_p50_ms) else 0.0,
        uploaded_bytes=0.0 if worst is None else _number(worst["checkpointed_bytes"]),
        full="" if worst is None or not _number(worst.get("busiest_subtask_share", 0.0)) >= FULL else str(worst["bottleneck"]),
    )


def dominant(situation: Situation) -> str:
    """``18 s of 20 s: upload of state (9.3 GB at 500 MB/s)``: the part that takes most; empty: nothing is known."""
    total_ms = sum(situation.milliseconds.values())
    if not total_ms:
        return ""
    part = max(situation.milliseconds, key=lambda part: situation.milliseconds[part])
    own_ms = situation.milliseconds[part]
    sentence = f"{ms_text(own_ms)} of {ms_text(total_ms)}: {PARTS[part]}"
    if part == UPLOAD and situation.uploaded_bytes > 0 and own_ms > 0:
        rate = situation.uploaded_bytes / own_ms * 1e3
        return f"{sentence} ({bytes_text(situation.uploaded_bytes)} at {bytes_text(rate)}/s)"
    return f"{sentence} ('{situation.full}' is full)" if part in (QUEUE, ALIGNMENT) and situation.full else sentence


def _rows(rows: pd.DataFrame, name: tuple[str, str], kind: str) -> pd.DataFrame:
    found = rows[(rows["status"] == "ok") & (rows["strategy"] != "none") & (rows[TRIAL] == kind)]
    return found[(found[INTERVAL] == name[0]) & (found[PROTOCOL] == name[1])]


def _checkpoint_parts(rows: pd.DataFrame) -> dict[str, float]:
    """Part -> ms, means over runs."""
    parts: dict[str, float] = {}
    for part, column in COLUMNS.items():
        if column in rows and len(rows):
            part = _JOINED.get(part, part)
            parts[part] = parts.get(part, 0.0) + _number(rows[column].mean())
    return parts


def _shares(setting: Setting, parts: Mapping[str, float], failed: pd.DataFrame, *, expired: bool) -> dict[str, float]:
    """Each limit that is broken counts alike."""
    of_limits = [_of_limit(column, parts, failed, expired=expired) for column in setting.breaks]
    if not setting.completed and not of_limits:
        of_limits = [{EXPIRY: 1.0}]
    found: dict[str, float] = {}
    for shares in of_limits:
        for part, share in shares.items():
            found[part] = found.get(part, 0.0) + share / len(of_limits)
    return found


def _of_limit(column: str, parts: Mapping[str, float], failed: pd.DataFrame, *, expired: bool) -> dict[str, float]:
    if column == "recovery_ms":
        down_ms = _number(failed["downtime_ms"].mean()) if len(failed) else 0.0
        replay_ms = max((_number(failed["caught_up_ms"].mean()) if len(failed) else 0.0) - down_ms, 0.0)
        return dict(_parted({RESTORE: down_ms, REPLAY: replay_ms or down_ms}))
    if column == "loss":
        return {LOSS: 1.0}
    found = dict(_parted(parts))
    return {EXPIRY: 0.5} | {part: share / 2 for part, share in found.items()} if expired else found


def _parted(parts: Mapping[str, float]) -> Iterator[tuple[str, float]]:
    total = sum(parts.values())
    yield from ((part, value / total) for part, value in parts.items() if total)


def _plain(race: Race) -> Mapping[str, Any]:
    """The document of the job, with the changes common to all trials."""
    reading = Reading(str(race.bench.file))
    changes = [override(key, value) for key, value in race.bench.common.items()]
    plain: Mapping[str, Any] = apply(compose(read_text(race.bench.file), reading), changes, reading)
    return plain


def _number(value: object) -> float:
    found = float(value)  # type: ignore[arg-type]  # a cell of a table
    return found if math.isfinite(found) else 0.0
