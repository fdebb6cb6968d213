"""Checkpoints of real jobs as rows: recordings, saved REST answers, archives and JobManager logs, read by `sim.recordings`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from sim.recordings import RecordingError, read_any
from sim.recordings.source.budget import Budget
from sim.recordings.source.job_log import JobLog, read_jobs
from sim.traces.parsing import dates
from sim.traces.reading import RowOrigin, quarantined, rows_batch


def recording_rows(source: RowOrigin, copy: Path) -> Iterator[pa.RecordBatch]:
    """Rows of a recording, of an archive of the history server, or of saved answers (a folder or a zip of them)."""
    try:
        rows = read_any(copy).checkpoints_table()
    except RecordingError as error:
        yield quarantined(source, str(error).replace(f"{copy}: ", "").replace(str(copy), "it").removeprefix(f"{copy.name}: "))
        return
    yield rows_batch("checkpoints", source, pd.DataFrame({
        "line": range(1, len(rows) + 1),
        "t_s": rows["trigger_timestamp"].astype(float) / 1e3,
        "id": rows["id"],
        "type": rows["is_savepoint"].map({True: "SAVEPOINT", False: "CHECKPOINT"}),
        "status": rows["status"],
        "end_to_end_duration_ms": _known(rows["end_to_end_duration"]),
        "checkpointed_size": _known(rows["checkpointed_size"]),
    }))  # fmt: skip


def log_rows(source: RowOrigin, parts: Sequence[Path]) -> Iterator[pa.RecordBatch]:
    """Rows of a log, or of the parts of a rotated one.  Each job of a session cluster is a trace of its own."""
    try:
        jobs = read_jobs(parts)
    except RecordingError as error:
        yield quarantined(source, str(error).removeprefix(f"{', '.join(part.name for part in parts)}: "))
        return
    for name, log in sorted(jobs.items()):
        yield from _log(source if len(jobs) == 1 else RowOrigin(f"{source.trace}/{name}", source.file), log)


def _log(source: RowOrigin, log: JobLog) -> Iterator[pa.RecordBatch]:
    points = sorted(log.checkpoints.values(), key=lambda point: point.id)
    triggered = [point for point in points if point.triggered_ms >= 0]
    if triggered:
        yield rows_batch("checkpoints", source, pd.DataFrame({
            "line": range(1, len(triggered) + 1),
            "t_s": [point.triggered_ms / 1e3 for point in triggered],
            "id": [point.id for point in triggered],
            "type": ["SAVEPOINT" if point.is_savepoint else "CHECKPOINT" for point in triggered],
            "status": [point.status for point in triggered],
            "end_to_end_duration_ms": _known(pd.Series([point.duration_ms for point in triggered])),
            "checkpointed_size": _known(pd.Series([point.size_bytes for point in triggered])),
        }))  # fmt: skip
    for point in points:
        if point.triggered_ms < 0:
            yield quarantined(source, f"checkpoint {point.id} ends in the log and does not begin in it")


def labelled_windows(source: RowOrigin, copy: Path) -> Iterator[pa.RecordBatch] | None:
    """A JSON object of file -> [[begin, end], ...]: marked anomalies, as failures of the file's job.  None: another kind of document."""
    try:
        labels = Budget().parse(copy.read_bytes(), "labels")
    except (ValueError, RecursionError):
        return None
    if not isinstance(labels, dict) or not labels or not all(_is_windows(value) for value in labels.values()):
        return None
    return _labelled(source, labels)


def _labelled(source: RowOrigin, labels: dict[str, list[list[str]]]) -> Iterator[pa.RecordBatch]:
    marked = [(Path(name).name.partition(".")[0], *window) for name, windows in labels.items() for window in windows]
    rows = pd.DataFrame(marked, columns=["run", "begin", "end"])
    for column in ("begin", "end"):
        rows[column] = dates(rows[column])
    rows["lasts_s"] = rows["end"] - rows["begin"]
    good = rows[rows["lasts_s"] >= 0]
    yield rows_batch("failures", source, pd.DataFrame({
        "line": good.index + 1, "t_s": good["begin"], "lasts_s": good["lasts_s"], "what": "labelled anomaly", "run": good["run"],
    }))  # fmt: skip
    for _ in range(len(rows) - len(good)):
        yield quarantined(source, "a window ends before it begins, or is no time")


def _is_windows(value: object) -> bool:
    return isinstance(value, list) and all(
        isinstance(pair, list) and len(pair) == 2 and all(isinstance(moment, str) for moment in pair) for pair in value
    )


def _known(values: pd.Series[Any]) -> pd.Series[float]:
    """-1: unknown."""
    known = values.astype(float)
    return known.where(known >= 0)
