"""The memory of a watch: a folder with what was seen, and what is to be known to resume.

    looks.jsonl              the latest rows, a line each: appended to at every look
    looks-2026-11-28-0.parquet
    looks-2026-11-28-1.parquet   parts of PART_ROWS rows, which are never written again

`checkpoints` has the same form.  So a look costs the same however long the watch has run.  A part is written before its lines are removed:
after a crash in between a row is in both, and readers keep the last of its copies.
`watch.json` has the rest: it is written last, so what it knows has been kept.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from sim.jobs.watch.look import MeasuredLook, SeenCheckpoint
from sim.model.files import locked, remove_partials, replace_file, replace_text

STATE, EVENTS = "watch.json", "events.jsonl"
VERSION = 1
LARGEST_EVENTS = 5_000_000
"""Bytes of the list of events; then it becomes `events.1.jsonl`, in place of an older one."""

_BY_NAME = pa.map_(pa.string(), pa.float64())
CHECKPOINTS = pa.schema(
    [
        ("job", pa.string()),
        ("checkpoint", pa.int64()),
        ("status", pa.string()),
        ("trigger", pa.timestamp("ms", "UTC")),
        ("duration_ms", pa.float64()),
        ("is_savepoint", pa.bool_()),
        ("checkpointed_bytes", pa.float64()),
        ("full_bytes", pa.float64()),
        ("verdict", pa.string()),
        ("forecast_p50_ms", pa.float64()),
        ("forecast_p90_ms", pa.float64()),
        ("failure", pa.string()),
        ("state_bytes", _BY_NAME),
        ("parts_ms", _BY_NAME),
    ]
)
LOOKS = pa.schema(
    [
        ("time", pa.timestamp("ms", "UTC")),
        ("job", pa.string()),
        ("outcome", pa.string()),
        ("took_s", pa.float64()),
        ("requests", pa.int64()),
        ("seconds", pa.float64()),
        ("load", _BY_NAME),
        ("busy", _BY_NAME),
        ("pressed", _BY_NAME),
    ]
)
"""`seconds`: since the look before, which the rest is of.  `load`: records per second of each source; `busy`, `pressed`: shares of the time
of each vertex's threads."""


class MemoryFileError(Exception):
    """A file of the folder is not ours, or is damaged."""


def alone_in(folder: Path, warn: Callable[[str], object]) -> AbstractContextManager[None]:
    """No other process enters a block with the same folder.  FolderInUseError: another one is in it."""
    return locked(folder, warn)


PART_ROWS = 500
"""Rows of a part; until then they are lines."""
_MAX_RECENT_ROWS = 1000
"""Rows that are read again when a watch resumes; the watcher holds fewer."""


@dataclass
class RowLog:
    """The rows of one kind, as lines and parts."""

    folder: Path
    name: str
    schema: pa.Schema
    key: tuple[str, ...]  # columns that tell rows apart
    day: str = ""
    line_count: int = 0
    pending: list[dict[str, Any]] = field(default_factory=list)  # rows that could not be written yet

    @property
    def lines(self) -> Path:
        return self.folder / f"{self.name}.jsonl"

    def open(self, day: str) -> None:
        """Count the lines that are there, and remove a last one that a crash cut off.  MemoryFileError: another one is damaged."""
        if self.lines.exists() and not (content := self.lines.read_bytes()).endswith(b"\n"):
            os.truncate(self.lines, content.rfind(b"\n") + 1)
        self.day, self.line_count = day, len(_read_lines(self.lines, self.schema))

    def append(self, rows: Sequence[dict[str, Any]], day: str) -> None:
        """Add rows; `day` begins a part of its own.  OSError: not written; they are written with the next ones."""
        self.pending += rows
        if self.line_count and (day != self.day or self.line_count >= PART_ROWS):
            self.close_part()
        self.day = day
        if not self.pending:
            return
        with self.lines.open("a+", encoding="utf-8") as file:
            before = file.seek(0, os.SEEK_END)
            try:
                file.writelines(json.dumps(row, default=datetime.isoformat) + "\n" for row in self.pending)
                file.flush()
            except OSError:
                with suppress(OSError):
                    file.truncate(before)  # half a line would hide the next one
                raise
        self.line_count += len(self.pending)
        self.pending = []

    def close_part(self) -> None:
        """Write the lines as a part.  OSError: they stay lines."""
        rows = _read_lines(self.lines, self.schema)
        if rows:
            number = len(list(self.folder.glob(f"{self.name}-{self.day}-*.parquet")))
            table = pa.Table.from_pylist(
                [{key: _listed(value) for key, value in row.items()} for row in rows], schema=self.schema
            )
            replace_file(
                self.folder / f"{self.name}-{self.day}-{number}.parquet", lambda partial: pq.write_table(table, partial)
            )
        self.lines.unlink(missing_ok=True)
        self.line_count = 0

    def read(self, max_rows: int | None = None) -> list[dict[str, Any]]:
        """The rows, oldest first; at least the last `max_rows`.  MemoryFileError: a file is damaged."""
        parts = [_read_lines(self.lines, self.schema)]
        for file in sorted(self.folder.glob(f"{self.name}-*.parquet"), key=_part_order, reverse=True):
            if max_rows is not None and sum(map(len, parts)) >= max_rows:
                break
            parts.append(_read_part(file))
        last = {tuple(row[column] for column in self.key): row for part in reversed(parts) for row in part}
        return list(last.values())


def row_logs(folder: Path) -> tuple[RowLog, RowLog]:
    """The rows of checkpoints and of looks in the folder of a watch."""
    return RowLog(folder, "checkpoints", CHECKPOINTS, ("job", "checkpoint")), RowLog(folder, "looks", LOOKS, ("time",))


class Memory:
    """The memory in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.checkpoints, self.looks = row_logs(folder)

    def open(self, now_ms: int) -> dict[str, Any] | None:
        """What `watch.json` says; None: the folder is new.  MemoryFileError: it cannot be read."""
        remove_partials(self.folder)
        for log in (self.checkpoints, self.looks):
            log.open(_day(now_ms))
        file = self.folder / STATE
        if not file.exists():
            return None
        try:
            state = json.loads(file.read_text(encoding="utf-8"))
        except (ValueError, RecursionError) as error:
            raise MemoryFileError(
                f"{file}: is damaged ({error}): remove it to begin anew; the histories beside it stay"
            ) from None
        if not isinstance(state, dict) or state.get("version") != VERSION:
            raise MemoryFileError(f"{file}: is not of this version of watch: give another folder")
        return state

    def keep(
        self, now_ms: int, checkpoints: Sequence[dict[str, Any]], look: dict[str, Any], state: dict[str, Any]
    ) -> None:
        """Add rows, and then what is to be known.  OSError: not written."""
        self.looks.pending.append(look)  # also if the rows of checkpoints cannot be written
        self.checkpoints.append(checkpoints, _day(now_ms))
        self.looks.append((), _day(now_ms))
        replace_text(self.folder / STATE, json.dumps({"version": VERSION} | state, indent=1) + "\n")

    def close(self) -> None:
        """Make parts of all lines, so that other programs find every row in Parquet.  OSError: not written."""
        for log in (self.checkpoints, self.looks):
            log.append((), log.day)
            log.close_part()

    def recent(self, job: str) -> tuple[list[SeenCheckpoint], list[MeasuredLook]]:
        """The latest checkpoints and looks of a job, oldest first."""
        names = [field.name for field in fields(SeenCheckpoint)]
        found = [
            SeenCheckpoint(
                **{
                    **{name: row[name] for name in names if name in row},
                    "number": row["checkpoint"],
                    "state": row["state_bytes"],
                    "trigger_ms": round(row["trigger"].timestamp() * 1e3),
                }
            )
            for row in self.checkpoints.read(_MAX_RECENT_ROWS)
            if row["job"] == job
        ]
        done = [
            MeasuredLook(round(row["time"].timestamp() * 1e3), row["seconds"], row["load"], row["busy"], row["pressed"])
            for row in self.looks.read(_MAX_RECENT_ROWS)
            if row["job"] == job and row["seconds"]
        ]
        return found, done

    def tell(self, events: Sequence[dict[str, Any]]) -> None:
        """Add events to their list.  OSError: not written."""
        if not events:
            return
        file = self.folder / EVENTS
        if file.exists() and file.stat().st_size > LARGEST_EVENTS:
            file.replace(file.with_suffix(".1.jsonl"))
        with file.open("a", encoding="utf-8") as lines:
            lines.writelines(json.dumps(event) + "\n" for event in events)


def row_of(point: SeenCheckpoint, verdict: str, forecast: tuple[float, float] | None) -> dict[str, Any]:
    """A row of `CHECKPOINTS`.  `forecast`: p50 and p90 [ms] at that time."""
    given = asdict(point)
    p50, p90 = forecast or (None, None)
    return {
        "job": point.job,
        "checkpoint": point.number,
        "trigger": datetime.fromtimestamp(point.trigger_ms / 1e3, UTC),
        "verdict": verdict,
        "forecast_p50_ms": p50,
        "forecast_p90_ms": p90,
        "state_bytes": dict(point.state),
        "parts_ms": dict(point.parts_ms),
        **{
            name: given[name]
            for name in ("status", "duration_ms", "is_savepoint", "checkpointed_bytes", "full_bytes", "failure")
        },
    }


def _listed(value: Any) -> Any:
    return list(value.items()) if isinstance(value, dict) else value


def _day(now_ms: int) -> str:
    return f"{datetime.fromtimestamp(now_ms / 1e3, UTC):%Y-%m-%d}"


def _part_order(file: Path) -> tuple[str, int]:
    """By day and number: part 10 comes after part 9."""
    start, _, number = file.stem.rpartition("-")
    return (start, int(number)) if number.isdecimal() else (file.stem, -1)


def _read_part(file: Path) -> list[dict[str, Any]]:
    """MemoryFileError: it is not a table of ours."""
    try:
        rows = pq.read_table(file).to_pylist()
    except (pa.ArrowInvalid, pa.ArrowTypeError, OSError) as error:
        raise MemoryFileError(
            f"{file}: cannot be read ({str(error).splitlines()[0]}): move it away; watch resumes without it"
        ) from None
    return [{key: dict(value) if isinstance(value, list) else value for key, value in row.items()} for row in rows]


def _read_lines(file: Path, schema: pa.Schema) -> list[dict[str, Any]]:
    """Rows of lines.  A last one may still be written, or was cut off by a crash.  MemoryFileError: another one is damaged."""
    if not file.exists():
        return []
    times = [column.name for column in schema if pa.types.is_timestamp(column.type)]
    rows: list[dict[str, Any]] = []
    lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    for number, line in enumerate(lines, 1):
        try:
            row = json.loads(line)
            rows.append(row | {name: datetime.fromisoformat(row[name]) for name in times})
        except (ValueError, TypeError, LookupError, RecursionError):
            if number == len(lines):
                break
            raise MemoryFileError(
                f"{file}:{number}: is not a row of watch: move the file away; watch resumes without it"
            ) from None
    return rows
