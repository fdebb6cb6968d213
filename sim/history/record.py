"""The answer about a real job as plain values for JSON.  Times are ns, as in records of simulated checkpoints."""

from __future__ import annotations

from typing import Any

from sim.explain.record import record
from sim.history.answer import HistoryAnswer
from sim.history.circumstances import circumstances
from sim.history.history import MS, History
from sim.history.moments import late_in
from sim.history.text import not_told
from sim.recordings.source.recorded_job import RecordedCheckpoint


def plain(answer: HistoryAnswer) -> dict[str, Any]:
    """`explained` has a record per checkpoint that is told in full, the same as of a simulated one."""
    history, known = answer.history, answer.split
    explained = [record(account) | _about(history, account.stats.number) for account in answer.accounts]
    common = answer.in_common
    return {
        "job": history.name,
        "flink_version": history.flink_version,
        "barriers": history.strategy,
        "known": [point.id for point in history.checkpoints],
        "median_ns": round(known.median_ms * MS),
        "slow": [_brief(point) for point in known.slow],
        "failed": [_brief(point) | {"failure": point.failure_message} for point in known.failed],
        "under_way": [point.id for point in known.under_way],
        "explained": explained,
        "where": [
            {"part": row.where[0].value, "vertex": row.where[1], "slow_ns": round(row.slow_ns), "others_ns": round(row.others_ns)}
            for row in answer.profile
        ],
        "in_common": None if common is None else {
            "slow": common.slow, "others": common.others, "tried": common.tried,
            "findings": [
                {"text": row.text, "how_sure": row.how_sure, "p": row.p, "p_corrected": row.corrected} for row in common.findings
            ],
        },
        "contention": history.contention,
        "not_told": list(not_told(history)),
    }  # fmt: skip


def _brief(point: RecordedCheckpoint) -> dict[str, Any]:
    return {"checkpoint": point.id, "duration_ns": max(point.end_to_end_duration, 0) * MS, "trigger_ns": point.trigger_timestamp * MS}


def _late(history: History, number: int) -> list[str]:
    point = history.checkpoint(number)
    return [] if point is None or point.status == "COMPLETED" else [f"{vertex}[{index}]" for vertex, index in late_in(history, point)]


def _about(history: History, number: int) -> dict[str, list[str]]:
    """What no account of a simulated checkpoint has."""
    point = history.checkpoint(number)
    return {"not_acknowledged": _late(history, number), "circumstances": [] if point is None else list(circumstances(history, point))}
