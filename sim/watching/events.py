"""Events: what a watch says, each with its time and its kind, and how times are written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal

Kind = Literal[
    "forecast", "left", "within", "away", "answers", "strange", "changed", "restarted", "failed", "state", "load", "limit", "missed"
]


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """Something that is worth a line."""

    time_ms: int  # by our clock
    kind: Kind
    text: str
    data: Mapping[str, Any] = field(default_factory=dict)  # its numbers, for machines

    @property
    def line(self) -> str:
        return f"{stamp(self.time_ms)}  {self.text}"

    @property
    def plain(self) -> dict[str, Any]:
        return {"time": f"{moment(self.time_ms).isoformat(timespec='seconds')}", "kind": self.kind, "text": self.text, **self.data}


def moment(ms: float) -> datetime:
    return datetime.fromtimestamp(ms / 1e3, UTC)


def stamp(ms: float) -> str:
    """``2026-11-23 14:03:20``; UTC."""
    return f"{moment(ms):%Y-%m-%d %H:%M:%S}"


def clock_text(ms: float, now_ms: float) -> str:
    """``14:03:20`` of today, else with the date."""
    same_day = moment(ms).date() == moment(now_ms).date()
    return f"{moment(ms):%H:%M:%S}" if same_day else stamp(ms)


def day_text(ms: float, now_ms: float) -> str:
    """``today 14:00``, ``Tuesday 14:00``, or ``Tuesday 2026-12-08 14:00`` of another week; UTC."""
    days = (moment(ms).date() - moment(now_ms).date()).days
    if days == 0:
        return f"today {moment(ms):%H:%M} UTC"
    return f"{moment(ms):%A %H:%M} UTC" if 0 < days < 7 else f"{moment(ms):%A %Y-%m-%d %H:%M} UTC"
