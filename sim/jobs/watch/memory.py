"""The folder of a watch: checkpoints, looks, events, and the state that is needed to resume.

    watch.json                     the state of the watch
    events.jsonl                   the events
    looks-2026-11-28.jsonl         the looks of a day (UTC), one JSON object per line
    checkpoints-2026-11-28.jsonl   the checkpoints that were first seen on that day

Rows are only appended, so the cost of a look does not grow with the age of the watch.  `watch.json` is written last, so
that the rows that it refers to exist.  After a crash in between, a checkpoint is processed again and has two rows.
Readers use the last one.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sim.jobs.watch.look import MeasuredLook, SeenCheckpoint
from sim.model.files import remove_partials, replace_text

STATE, EVENTS = "watch.json", "events.jsonl"
VERSION = 2
MAX_EVENTS_BYTES = 5_000_000
"""Size at which `events.jsonl` is renamed to `events.1.jsonl`, replacing an older one."""
_MIN_ROWS_READ = 1000
"""Minimum rows that are read when a watch resumes.  It is more than the watcher keeps in memory."""


class MemoryFileError(Exception):
    """A file of the folder was not written by watch, or is damaged."""

    exit_code = 3


def to_utc(ms: float) -> datetime:
    return datetime.fromtimestamp(ms / 1e3, UTC)


def append_lines(file: Path, rows: Sequence[dict[str, Any]]) -> None:
    """Append rows to a file of JSON lines.  If a crash or a full disk has cut its last line off, a new line is begun first."""
    with file.open("ab+") as lines:
        if lines.tell():
            lines.seek(-1, os.SEEK_END)
            if lines.read() != b"\n":
                lines.write(b"\n")
        lines.writelines(f"{json.dumps(row)}\n".encode() for row in rows)


@dataclass(frozen=True, slots=True)
class RowLog:
    """A table (checkpoints or looks), which is stored in a file of JSON lines per day."""

    folder: Path
    name: str
    key: tuple[str, ...]  # columns that identify a row

    def append(self, now_ms: int, rows: Sequence[dict[str, Any]]) -> None:
        """Append rows to the file of the day.  Raises `OSError`; some of the rows may be stored nevertheless."""
        if rows:
            append_lines(self.folder / f"{self.name}-{to_utc(now_ms):%Y-%m-%d}.jsonl", rows)

    def read(self, min_rows: int | None = None) -> list[dict[str, Any]]:
        """Return the stored rows, oldest first, without lines that were cut off.

        If `min_rows` is given, only the latest files are read, until they have at least that many rows.  Of rows with the
        same key, the last one is returned.
        """
        rows: list[dict[str, Any]] = []
        for file in sorted(self.folder.glob(f"{self.name}-*.jsonl"), reverse=True):
            if min_rows is not None and len(rows) >= min_rows:
                break
            earlier = []
            for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
                with suppress(ValueError):
                    earlier.append(json.loads(line))
            rows = [*earlier, *rows]
        return [*{tuple(row[column] for column in self.key): row for row in rows}.values()]


def row_logs(folder: Path) -> tuple[RowLog, RowLog]:
    """Return the logs of checkpoints and of looks in the folder of a watch."""
    return RowLog(folder, "checkpoints", ("job", "checkpoint")), RowLog(folder, "looks", ("time",))


class Memory:
    """The folder of a watch, with its tables of checkpoints and looks."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.logs = row_logs(folder)
        self.unwritten: tuple[list[dict[str, Any]], ...] = ([], [])  # rows of each log that could not be stored yet

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

    def save(
        self, now_ms: int, checkpoints: Sequence[dict[str, Any]], look: dict[str, Any], state: dict[str, Any]
    ) -> None:
        """Store new rows, then replace `watch.json`.  Raises `OSError`; then the next call writes the rows again."""
        for log, rows, new in zip(self.logs, self.unwritten, (checkpoints, [look]), strict=True):
            rows += new
            log.append(now_ms, rows)
            rows.clear()
        replace_text(self.folder / STATE, json.dumps({"version": VERSION} | state, indent=1) + "\n")

    def recent(self, job: str) -> tuple[list[SeenCheckpoint], list[MeasuredLook]]:
        """Return the latest checkpoints and looks of a job, oldest first."""
        checkpoints, looks = ([row for row in log.read(_MIN_ROWS_READ) if row["job"] == job] for log in self.logs)
        return (
            [SeenCheckpoint(**_values(SeenCheckpoint, row, "trigger")) for row in checkpoints],
            [MeasuredLook(**_values(MeasuredLook, row, "time")) for row in looks if row["seconds"]],
        )

    def append_events(self, events: Sequence[dict[str, Any]]) -> None:
        """Append events to `events.jsonl`.  Raises `OSError`."""
        file = self.folder / EVENTS
        if file.exists() and file.stat().st_size > MAX_EVENTS_BYTES:
            file.replace(file.with_suffix(".1.jsonl"))
        append_lines(file, events)


def checkpoint_row(checkpoint: SeenCheckpoint, verdict: str, forecast: tuple[float, float] | None) -> dict[str, Any]:
    """Return a row of the checkpoints; `forecast` is the forecast p50 and p90 [ms] at that time."""
    row, (p50, p90) = asdict(checkpoint), forecast or (None, None)
    trigger = to_utc(row.pop("trigger_ms")).isoformat()
    return row | {"trigger": trigger, "verdict": verdict, "forecast_p50_ms": p50, "forecast_p90_ms": p90}


def _values(kind: type[SeenCheckpoint | MeasuredLook], row: dict[str, Any], time: str) -> dict[str, Any]:
    """Return the fields of an object that was stored as a row.  `time` is the name of its time column."""
    values = row | {f"{time}_ms": round(datetime.fromisoformat(row[time]).timestamp() * 1e3)}
    return {field.name: values[field.name] for field in fields(kind)}
