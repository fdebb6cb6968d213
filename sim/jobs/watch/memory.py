"""The folder of a watch: observed checkpoints and looks, events, and the state needed to resume.

    watch.json                   the state of the watch
    events.jsonl                 the events
    looks.jsonl                  the latest rows, one per line, appended to at each look
    looks-2026-11-28-0.parquet   older rows in parts of PART_ROWS rows, which are never rewritten
    looks-2026-11-28-1.parquet
    checkpoints...               in the same form as looks

So the cost of a look does not depend on how long the watch has run.  A part is written before its lines are removed:
after a crash in between a row is in both, and readers use the last copy.  `watch.json` is written last, so that the rows
it refers to exist.
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
MAX_EVENTS_BYTES = 5_000_000
"""Size at which `events.jsonl` is renamed to `events.1.jsonl`, replacing an older one."""

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
"""`seconds` is the time since the look before, to which the following columns refer: `load` is the records per second of
each source, `busy` and `pressed` are shares of the time of each vertex's threads."""


class MemoryFileError(Exception):
    """A file of the folder was not written by watch, or is damaged."""

    exit_code = 3


def lock_folder(folder: Path, warn: Callable[[str], object]) -> AbstractContextManager[None]:
    """Lock the folder for this process.  Raises `FolderInUseError` if another process has it locked."""
    return locked(folder, warn)


PART_ROWS = 500
"""Rows of a Parquet part."""
_MAX_ROWS_READ = 1000
"""Rows read when a watch resumes; more than the watcher keeps in memory."""


@dataclass
class RowLog:
    """The rows of one kind, in a JSON lines file and Parquet parts."""

    folder: Path
    name: str
    schema: pa.Schema
    key: tuple[str, ...]  # columns that identify a row
    day: str = ""  # of the lines
    line_count: int = 0
    pending: list[dict[str, Any]] = field(default_factory=list)  # rows whose writing failed

    @property
    def lines(self) -> Path:
        return self.folder / f"{self.name}.jsonl"

    def open(self, day: str) -> None:
        """Count the existing lines, and remove an incomplete last one.  Raises `MemoryFileError` if another is damaged."""
        if self.lines.exists() and not (content := self.lines.read_bytes()).endswith(b"\n"):
            os.truncate(self.lines, content.rfind(b"\n") + 1)
        self.day, self.line_count = day, len(_read_lines(self.lines, self.schema))

    def append(self, rows: Sequence[dict[str, Any]], day: str) -> None:
        """Append rows; a new `day` begins a new part.  On `OSError` the rows are written with the next ones."""
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
                    file.truncate(before)  # the next line must not be appended to an incomplete one
                raise
        self.line_count += len(self.pending)
        self.pending = []

    def close_part(self) -> None:
        """Write the lines as a Parquet part.  On `OSError` the lines are kept."""
        rows = _read_lines(self.lines, self.schema)
        if rows:
            number = len(list(self.folder.glob(f"{self.name}-{self.day}-*.parquet")))
            table = pa.Table.from_pylist(
                [{key: _map_to_pairs(value) for key, value in row.items()} for row in rows], schema=self.schema
            )
            replace_file(
                self.folder / f"{self.name}-{self.day}-{number}.parquet", lambda partial: pq.write_table(table, partial)
            )
        self.lines.unlink(missing_ok=True)
        self.line_count = 0

    def read(self, max_rows: int | None = None) -> list[dict[str, Any]]:
        """Return the rows, oldest first: all, or at least the last `max_rows`.  Raises `MemoryFileError`."""
        parts = [_read_lines(self.lines, self.schema)]
        for file in sorted(self.folder.glob(f"{self.name}-*.parquet"), key=_part_order, reverse=True):
            if max_rows is not None and sum(map(len, parts)) >= max_rows:
                break
            parts.append(_read_part(file))
        last = {tuple(row[column] for column in self.key): row for part in reversed(parts) for row in part}
        return list(last.values())


def row_logs(folder: Path) -> tuple[RowLog, RowLog]:
    """Return the logs of checkpoints and of looks in the folder of a watch."""
    return RowLog(folder, "checkpoints", CHECKPOINTS, ("job", "checkpoint")), RowLog(folder, "looks", LOOKS, ("time",))


class Memory:
    """The folder of a watch."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.checkpoints, self.looks = row_logs(folder)

    def open(self, now_ms: int) -> dict[str, Any] | None:
        """Return the content of `watch.json`, or None if the folder is new.  Raises `MemoryFileError`."""
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
                f"{file}: is damaged ({error}): remove it to start a new watch; the other files are kept"
            ) from None
        if not isinstance(state, dict) or state.get("version") != VERSION:
            raise MemoryFileError(f"{file}: was not written by this version of watch: use another folder")
        return state

    def save(
        self, now_ms: int, checkpoints: Sequence[dict[str, Any]], look: dict[str, Any], state: dict[str, Any]
    ) -> None:
        """Append rows, and replace `watch.json`.  Raises `OSError`."""
        self.looks.pending.append(look)  # first, so that it is not lost if writing the checkpoints fails
        self.checkpoints.append(checkpoints, _day(now_ms))
        self.looks.append((), _day(now_ms))
        replace_text(self.folder / STATE, json.dumps({"version": VERSION} | state, indent=1) + "\n")

    def close(self) -> None:
        """Write all lines as parts, so that all rows are in Parquet files.  Raises `OSError`."""
        for log in (self.checkpoints, self.looks):
            log.append((), log.day)
            log.close_part()

    def recent(self, job: str) -> tuple[list[SeenCheckpoint], list[MeasuredLook]]:
        """Return the latest checkpoints and looks of a job, oldest first."""
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
            for row in self.checkpoints.read(_MAX_ROWS_READ)
            if row["job"] == job
        ]
        done = [
            MeasuredLook(round(row["time"].timestamp() * 1e3), row["seconds"], row["load"], row["busy"], row["pressed"])
            for row in self.looks.read(_MAX_ROWS_READ)
            if row["job"] == job and row["seconds"]
        ]
        return found, done

    def append_events(self, events: Sequence[dict[str, Any]]) -> None:
        """Append events to `events.jsonl`.  Raises `OSError`."""
        if not events:
            return
        file = self.folder / EVENTS
        if file.exists() and file.stat().st_size > MAX_EVENTS_BYTES:
            file.replace(file.with_suffix(".1.jsonl"))
        with file.open("a", encoding="utf-8") as lines:
            lines.writelines(json.dumps(event) + "\n" for event in events)


def checkpoint_row(point: SeenCheckpoint, verdict: str, forecast: tuple[float, float] | None) -> dict[str, Any]:
    """Return a row of `CHECKPOINTS`; `forecast` is the forecast p50 and p90 [ms] at that time."""
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


def _map_to_pairs(value: Any) -> Any:
    return list(value.items()) if isinstance(value, dict) else value


def _day(now_ms: int) -> str:
    return f"{datetime.fromtimestamp(now_ms / 1e3, UTC):%Y-%m-%d}"


def _part_order(file: Path) -> tuple[str, int]:
    """Sort parts by day and number, so that part 10 comes after part 9."""
    start, _, number = file.stem.rpartition("-")
    return (start, int(number)) if number.isdecimal() else (file.stem, -1)


def _read_part(file: Path) -> list[dict[str, Any]]:
    """Read the rows of a part.  Raises `MemoryFileError` if it is not one."""
    try:
        rows = pq.read_table(file).to_pylist()
    except (pa.ArrowInvalid, pa.ArrowTypeError, OSError) as error:
        raise MemoryFileError(
            f"{file}: cannot be read ({str(error).splitlines()[0]}): move it away; watch resumes without it"
        ) from None
    return [{key: dict(value) if isinstance(value, list) else value for key, value in row.items()} for row in rows]


def _read_lines(file: Path, schema: pa.Schema) -> list[dict[str, Any]]:
    """Read the rows of a JSON lines file, without an incomplete last line.  Raises `MemoryFileError` if another is damaged."""
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
