"""The folder of a watch: checkpoints, looks, events, and the state that is needed to resume.

    watch.json                   the state of the watch
    events.jsonl                 the events
    looks-2026-11-28-0.parquet   a full part of PART_ROWS rows, never rewritten
    looks-2026-11-28-1.parquet   the last part, replaced at each look; its name has the day of its first row
    checkpoints-...              the same for checkpoints

Because only the last part is rewritten, the cost of a look does not grow with the age of the watch.  `watch.json` is
written last, so that the rows that it refers to exist.  After a crash in between, a checkpoint is processed again and has
two rows.  Readers use the last one.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from sim.jobs.watch.look import MeasuredLook, SeenCheckpoint
from sim.model.files import remove_partials, replace_file, replace_text

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


PART_ROWS = 500
"""Maximum rows of a part."""
_MAX_ROWS_READ = 1000
"""Minimum rows that are read when a watch resumes.  It is more than the watcher keeps in memory."""


@dataclass
class RowLog:
    """A table (checkpoints or looks) that is stored in Parquet files of limited size, its parts."""

    folder: Path
    name: str
    schema: pa.Schema
    key: tuple[str, ...]  # columns that identify a row
    part: Path | None = None  # file of the last part; None if a new one begins
    rows: list[dict[str, Any]] = field(default_factory=list)  # all rows of the last part
    is_written: bool = True  # whether all rows are in the file

    def parts(self) -> list[Path]:
        """Return the parts, oldest first."""
        return sorted(self.folder.glob(f"{self.name}-*.parquet"), key=_part_order)

    def open(self) -> None:
        """Read the last part, to continue it.  Raises `MemoryFileError` if it is damaged."""
        for part in self.parts()[-1:]:
            self.part, self.rows = part, _read_part(part)

    def write(self, day: str) -> None:
        """Write the last part if it has new rows.  The name of a new part contains `day`.

        Raises `OSError`.  Then the rows are written by the next call.
        """
        if self.is_written:
            return
        if self.part is None:
            number = len(list(self.folder.glob(f"{self.name}-{day}-*.parquet")))
            self.part = self.folder / f"{self.name}-{day}-{number}.parquet"
        rows = [{key: _map_to_pairs(value) for key, value in row.items()} for row in self.rows]
        table = pa.Table.from_pylist(rows, schema=self.schema)
        replace_file(self.part, lambda partial: pq.write_table(table, partial))
        self.is_written = True

    def append(self, rows: Sequence[dict[str, Any]]) -> None:
        """Add rows to the last part, or begin a new part if it is full.  They are stored by `write`."""
        if rows and self.is_written and len(self.rows) >= PART_ROWS:
            self.part, self.rows = None, []
        self.rows += rows
        self.is_written = self.is_written and not rows

    def read(self, max_rows: int | None = None) -> list[dict[str, Any]]:
        """Return the stored rows, oldest first.

        If `max_rows` is given, only the latest parts are read, until they have at least that many rows.  Of rows with the
        same key, the last one is returned.  Raises `MemoryFileError` if a part is damaged.
        """
        parts: list[list[dict[str, Any]]] = []
        for file in reversed(self.parts()):
            if max_rows is not None and sum(map(len, parts)) >= max_rows:
                break
            parts.append(_read_part(file))
        last = {tuple(row[column] for column in self.key): row for part in reversed(parts) for row in part}
        return list(last.values())


def row_logs(folder: Path) -> tuple[RowLog, RowLog]:
    """Return the logs of checkpoints and of looks in the folder of a watch."""
    return RowLog(folder, "checkpoints", CHECKPOINTS, ("job", "checkpoint")), RowLog(folder, "looks", LOOKS, ("time",))


class Memory:
    """The folder of a watch, with its tables of checkpoints and looks."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.checkpoints, self.looks = row_logs(folder)

    def open(self) -> dict[str, Any] | None:
        """Return the content of `watch.json`, or None if the folder is new.  Raises `MemoryFileError` if a file is damaged."""
        remove_partials(self.folder)
        for log in (self.checkpoints, self.looks):
            log.open()
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
        day = f"{datetime.fromtimestamp(now_ms / 1e3, UTC):%Y-%m-%d}"
        self.checkpoints.append(checkpoints)
        self.looks.append([look])
        for log in (self.checkpoints, self.looks):
            log.write(day)
        replace_text(self.folder / STATE, json.dumps({"version": VERSION} | state, indent=1) + "\n")

    def recent(self, job: str) -> tuple[list[SeenCheckpoint], list[MeasuredLook]]:
        """Return the latest checkpoints and looks of a job, oldest first."""
        points, looks = (log.read(_MAX_ROWS_READ) for log in (self.checkpoints, self.looks))
        found = [SeenCheckpoint(**_values(SeenCheckpoint, row, "trigger")) for row in points if row["job"] == job]
        done = [
            MeasuredLook(**_values(MeasuredLook, row, "time")) for row in looks if row["job"] == job and row["seconds"]
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
    row, (p50, p90) = asdict(point), forecast or (None, None)
    trigger = datetime.fromtimestamp(row.pop("trigger_ms") / 1e3, UTC)
    return row | {"trigger": trigger, "verdict": verdict, "forecast_p50_ms": p50, "forecast_p90_ms": p90}


def _values(kind: type[SeenCheckpoint | MeasuredLook], row: dict[str, Any], time: str) -> dict[str, Any]:
    """Return the fields of an object that was stored as a row.  `time` is the name of its time column."""
    values = row | {f"{time}_ms": round(row[time].timestamp() * 1e3)}
    return {field.name: values[field.name] for field in fields(kind)}


def _map_to_pairs(value: Any) -> Any:
    """Return the items of a dict, which is how PyArrow expects a map; other values are unchanged."""
    return list(value.items()) if isinstance(value, dict) else value


def _part_order(file: Path) -> tuple[str, int]:
    """Return a sort key of a part: its day and number, so that part 10 comes after part 9."""
    start, _, number = file.stem.rpartition("-")
    return (start, int(number)) if number.isdecimal() else (file.stem, -1)


def _read_part(file: Path) -> list[dict[str, Any]]:
    """Return the rows of a part.  Raises `MemoryFileError` if the file cannot be read."""
    try:
        rows = pq.read_table(file).to_pylist()
    except (pa.ArrowInvalid, pa.ArrowTypeError, OSError) as error:
        raise MemoryFileError(
            f"{file}: cannot be read ({str(error).splitlines()[0]}): move it away; watch resumes without it"
        ) from None
    return [{key: dict(value) if isinstance(value, list) else value for key, value in row.items()} for row in rows]
