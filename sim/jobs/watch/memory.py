"""The folder of a watch: the checkpoints, and the state that is needed to resume.

    watch.json                     the state of the watch
    checkpoints-2026-11-28.jsonl   the checkpoints that were first seen on that day (UTC), one JSON object per line

Rows are only appended, so the cost of a poll does not grow with the age of the watch.  `watch.json` is written last, so
that the rows that it refers to exist.  After a crash in between, a checkpoint is processed again and has two rows.
Readers use the last one.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sim.jobs.watch.observation import SeenCheckpoint
from sim.model.files import remove_partials, replace_text

STATE = "watch.json"
VERSION = 3


class MemoryFileError(Exception):
    """A file of the folder was not written by watch, or is damaged."""

    exit_code = 3


def to_utc(ms: float) -> datetime:
    return datetime.fromtimestamp(ms / 1e3, UTC)


class Memory:
    """The folder of a watch."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.unwritten: list[dict[str, Any]] = []  # rows that could not be stored yet

    def open(self) -> dict[str, Any] | None:
        """Return the content of `watch.json`, or None if the folder is new.  Raises `MemoryFileError` if it is damaged."""
        remove_partials(self.folder)
        file = self.folder / STATE
        if not file.exists():
            return None
        try:
            state = json.loads(file.read_text(encoding="utf-8"))
        except (ValueError, RecursionError) as error:
            raise MemoryFileError(
                f"{file}: is damaged ({error}): remove it to start a new watch; the other files are kept"
            ) from None
        if not isinstance(state, dict) or state.get("version") != VERSION:
            raise MemoryFileError(f"{file}: was not written by this version of watch: use another folder")
        return state

    def save(self, now_ms: int, checkpoints: Sequence[dict[str, Any]], state: dict[str, Any]) -> None:
        """Append rows to the file of the day, then replace `watch.json`.

        Raises `OSError`; then the next call writes the rows again.  Some may be stored nevertheless.
        """
        self.unwritten += checkpoints
        if self.unwritten:
            append_lines(self.folder / f"checkpoints-{to_utc(now_ms):%Y-%m-%d}.jsonl", self.unwritten)
            self.unwritten.clear()
        replace_text(self.folder / STATE, json.dumps({"version": VERSION} | state) + "\n")


def append_lines(file: Path, rows: Sequence[dict[str, Any]]) -> None:
    """Append rows to a file of JSON lines.  If a crash or a full disk has cut its last line off, a new line is begun first."""
    with file.open("ab+") as lines:
        if lines.tell():
            lines.seek(-1, os.SEEK_END)
            if lines.read() != b"\n":
                lines.write(b"\n")
        lines.writelines(f"{json.dumps(row)}\n".encode() for row in rows)


def checkpoint_row(checkpoint: SeenCheckpoint, verdict: str, forecast: tuple[float, float] | None) -> dict[str, Any]:
    """Return a row of the checkpoints; `forecast` is the forecast p50 and p90 [ms] at that time."""
    row, (p50, p90) = asdict(checkpoint), forecast or (None, None)
    trigger = to_utc(row.pop("trigger_ms")).isoformat()
    return row | {"trigger": trigger, "verdict": verdict, "forecast_p50_ms": p50, "forecast_p90_ms": p90}


def read_checkpoints(folder: Path) -> list[dict[str, Any]]:
    """Return the rows of all checkpoints, oldest first, without lines that were cut off."""
    rows: dict[tuple[str, int], dict[str, Any]] = {}
    for file in sorted(folder.glob("checkpoints-*.jsonl")):
        for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
            with suppress(ValueError):
                row = json.loads(line)
                rows[row["job"], row["checkpoint"]] = row
    return [*rows.values()]
