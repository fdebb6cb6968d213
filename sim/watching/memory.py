"""The memory of a watch: a folder with what was seen as Parquet, a file a day, and what is to be known to go on.

`checkpoints-DATE.parquet` and `looks-DATE.parquet` have a row per checkpoint and per look; the date is that of our clock, in UTC.
`watch.json` has the rest: it is written last, so what it knows has been kept.  Each file is written as a whole or not at all.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from sim.folder_lock import locked
from sim.watching.circumstances import MeasuredLook
from sim.watching.look import SeenCheckpoint
from sim.whole_file import remove_partials, replace_file, replace_text

STATE, EVENTS = "watch.json", "events.jsonl"
VERSION = 1
LARGEST_EVENTS = 5_000_000
"""Bytes of the list of events; then it becomes `events.1.jsonl`, in place of an older one."""

_BY_NAME = pa.map_(pa.string(), pa.float64())
CHECKPOINTS = pa.schema(
    [
        ("job", pa.string()), ("checkpoint", pa.int64()), ("status", pa.string()), ("trigger", pa.timestamp("ms", "UTC")),
        ("duration_ms", pa.float64()), ("is_savepoint", pa.bool_()), ("checkpointed_bytes", pa.float64()), ("full_bytes", pa.float64()),
        ("verdict", pa.string()), ("forecast_p50_ms", pa.float64()), ("forecast_p90_ms", pa.float64()), ("failure", pa.string()),
        ("state_bytes", _BY_NAME), ("parts_ms", _BY_NAME),
    ]
)  # fmt: skip
LOOKS = pa.schema(
    [
        ("time", pa.timestamp("ms", "UTC")), ("job", pa.string()), ("outcome", pa.string()), ("took_s", pa.float64()),
        ("requests", pa.int64()), ("seconds", pa.float64()), ("load", _BY_NAME), ("busy", _BY_NAME), ("pressed", _BY_NAME),
    ]
)  # fmt: skip
"""`seconds`: since the look before, which the rest is of.  `load`: records per second of each source; `busy`, `pressed`: shares of the time
of each vertex's threads."""


class MemoryFileError(Exception):
    """A file of the folder is not ours, or is damaged."""


def alone_in(folder: Path, warn: Callable[[str], object]) -> AbstractContextManager[None]:
    """No other process enters a block with the same folder.  FolderInUseError: another one is in it."""
    return locked(folder, warn)


@dataclass
class Memory:
    """The memory in a folder.  Rows of today are held, those of other days are on disk only."""

    folder: Path
    day: str = ""
    checkpoints: list[dict[str, Any]] = field(default_factory=list)
    looks: list[dict[str, Any]] = field(default_factory=list)
    is_behind: bool = False  # the disk has less than `checkpoints`

    def open(self, now_ms: int) -> dict[str, Any] | None:
        """What `watch.json` says; None: the folder is new.  MemoryFileError: it cannot be read."""
        remove_partials(self.folder)
        self._turn_to(now_ms)
        file = self.folder / STATE
        if not file.exists():
            return None
        try:
            state = json.loads(file.read_text(encoding="utf-8"))
        except (ValueError, RecursionError) as error:
            raise MemoryFileError(f"{file}: is damaged ({error}): remove it to begin anew; the histories beside it stay") from None
        if not isinstance(state, dict) or state.get("version") != VERSION:
            raise MemoryFileError(f"{file}: is not of this version of watch: give another folder")
        return state

    def keep(self, now_ms: int, checkpoints: Sequence[dict[str, Any]], look: dict[str, Any], state: dict[str, Any]) -> None:
        """Add rows, and then what is to be known.  OSError: not written."""
        self._turn_to(now_ms)
        if checkpoints or self.is_behind:
            self.is_behind = True
            new = {(row["job"], row["checkpoint"]) for row in checkpoints}
            self.checkpoints = [row for row in self.checkpoints if (row["job"], row["checkpoint"]) not in new] + list(checkpoints)
            self._write("checkpoints", CHECKPOINTS, self.checkpoints)
            self.is_behind = False
        self.looks.append(look)
        self._write("looks", LOOKS, self.looks)
        replace_text(self.folder / STATE, json.dumps({"version": VERSION} | state, indent=1) + "\n")

    def recent(self, job: str) -> tuple[list[SeenCheckpoint], list[MeasuredLook]]:
        """Checkpoints and looks of a job, of today and of the day before, oldest first."""
        yesterday = datetime.fromisoformat(self.day).date() - timedelta(days=1)
        points, looks = (
            [*_rows(self.folder / f"{name}-{yesterday}.parquet"), *rows]
            for name, rows in (("checkpoints", self.checkpoints), ("looks", self.looks))
        )
        names = [field.name for field in fields(SeenCheckpoint)]
        found = [
            SeenCheckpoint(**{
                **{name: row[name] for name in names if name in row}, "number": row["checkpoint"], "state": row["state_bytes"],
                "trigger_ms": round(row["trigger"].timestamp() * 1e3),
            })
            for row in points if row["job"] == job
        ]  # fmt: skip
        done = [
            MeasuredLook(round(row["time"].timestamp() * 1e3), row["seconds"], row["load"], row["busy"], row["pressed"])
            for row in looks if row["job"] == job and row["seconds"]
        ]  # fmt: skip
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

    def _turn_to(self, now_ms: int) -> None:
        day = f"{datetime.fromtimestamp(now_ms / 1e3, UTC):%Y-%m-%d}"
        if day != self.day:
            self.day = day
            self.checkpoints, self.looks = (_rows(self._file(name)) for name in ("checkpoints", "looks"))

    def _file(self, name: str) -> Path:
        return self.folder / f"{name}-{self.day}.parquet"

    def _write(self, name: str, schema: pa.Schema, rows: list[dict[str, Any]]) -> None:
        table = pa.Table.from_pylist([{key: _listed(value) for key, value in row.items()} for row in rows], schema=schema)
        replace_file(self._file(name), lambda partial: pq.write_table(table, partial), others_follow=True)


def row_of(point: SeenCheckpoint, verdict: str, forecast: tuple[float, float] | None) -> dict[str, Any]:
    """A row of `CHECKPOINTS`.  `forecast`: p50 and p90 [ms] at that time."""
    given = asdict(point)
    p50, p90 = forecast or (None, None)
    return {
        "job": point.job, "checkpoint": point.number, "trigger": datetime.fromtimestamp(point.trigger_ms / 1e3, UTC), "verdict": verdict,
        "forecast_p50_ms": p50, "forecast_p90_ms": p90, "state_bytes": dict(point.state), "parts_ms": dict(point.parts_ms),
        **{name: given[name] for name in ("status", "duration_ms", "is_savepoint", "checkpointed_bytes", "full_bytes", "failure")},
    }  # fmt: skip


def _listed(value: Any) -> Any:
    return list(value.items()) if isinstance(value, dict) else value


def _rows(file: Path) -> list[dict[str, Any]]:
    """MemoryFileError: it is not a table of ours."""
    if not file.exists():
        return []
    try:
        rows = pq.read_table(file).to_pylist()
    except (pa.ArrowInvalid, pa.ArrowTypeError, OSError) as error:
        raise MemoryFileError(f"{file}: cannot be read ({str(error).splitlines()[0]}): move it away; watch goes on without it") from None
    return [{key: dict(value) if isinstance(value, list) else value for key, value in row.items()} for row in rows]
