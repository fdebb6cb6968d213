"""An account of a checkpoint as plain values for JSON; all times are ns, so that sums are exact."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sim.explain.account import Account, AccountLine
from sim.explain.text import sentence
from sim.explain.what_if import WhatIf


def record(account: Account, simulated: Mapping[str, int | None] | None = None) -> dict[str, Any]:
    """`simulated`: by change, how long the checkpoint takes with it; null: it does not complete."""
    stats = account.stats
    return {
        "strategy": account.strategy,
        "job": account.job,
        "checkpoint": stats.number,
        "status": stats.status,
        "failure": stats.failure,
        "savepoint": stats.savepoint_format,
        "trigger_ns": stats.trigger_ns,
        "duration_ns": account.path.duration_ns,
        "sentence": sentence(account),
        "parts": [_part(account, line) for line in account.lines],
        "after": [_part(account, line) for line in account.after],
        "what_if": [_change(account, change, simulated or {}) for change in account.changes],
    }


def _part(account: Account, line: AccountLine) -> dict[str, Any]:
    return {
        "part": line.name,
        "place": line.place,
        "begin_ns": line.begin_ns - account.path.begin_ns,
        "duration_ns": line.duration_ns,
        "cause": line.cause,
    }


def _change(account: Account, change: WhatIf, simulated: Mapping[str, int | None]) -> dict[str, Any]:
    """The rest of the path, and what a simulation gave."""
    values = {"change": change.change, "rest_of_path_ns": account.path.duration_ns - change.saved_ns}
    return values | ({"simulated_duration_ns": simulated[change.change]} if change.change in simulated else {})
