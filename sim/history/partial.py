"""One answer of Flink's REST API as a history: what it is, what it tells, what it cannot tell, and how to get the rest."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sim.analysis.number_texts import bytes_text, ms_text
from sim.foreign import one_line
from sim.history.equal_sizes import sharing
from sim.history.history import History
from sim.prose import capitalised
from sim.recordings.infer.options import NEVER_MS
from sim.recordings.source.recorded_job import RecordedCheckpoint
from sim.recordings.source.rest.answers import CheckpointConfig, CheckpointStatistics, TaskDetails, parsed, with_tasks
from sim.recordings.source.rest.lone import LoneAnswer
from sim.recordings.source.rest.secrets import masked_text
from sim.stand_ins import is_known

_CHECKPOINTS, _CONFIG = "/jobs/JOB/checkpoints", "/jobs/JOB/checkpoints/config"
_DETAILS = "/jobs/JOB/checkpoints/details/N"
_REST = (
    "`ckptsim explain http://HOST:8081 --job JOB` asks for all of it; `ckptsim import http://HOST:8081 --save FOLDER` keeps it in files."
)


def history_of_answer(lone: LoneAnswer) -> History:
    """What one answer tells.  RecordingError: its values are not Flink's."""
    points = tuple(sorted({point.id: point for point in _points(lone)}.values(), key=lambda point: point.id))
    is_config = lone.path == _CONFIG
    config = parsed(CheckpointConfig, lone.document, lone.name, lone.path) if is_config else None
    counted, slowest_ms = 0, -1
    if lone.path == _CHECKPOINTS:
        statistics = parsed(CheckpointStatistics, lone.document, lone.name, lone.path)
        counted, slowest_ms = statistics.counts.get("total", 0), statistics.slowest_ms
    return History(
        one_line(lone.document.get("name") or lone.name), "", (), points, config, counted=counted, slowest_ms=slowest_ms,
        partial=tuple(_sentences(lone)), remarks=tuple(filter(None, [sharing(points)])),
    )  # fmt: skip


def _points(lone: LoneAnswer) -> Iterator[RecordedCheckpoint]:
    rows: list[Any] = []
    if lone.path == _CHECKPOINTS:
        latest = lone.document.get("latest")
        rows = [row for row in (latest if isinstance(latest, dict) else {}).values() if isinstance(row, dict) and "status" in row]
        rows += lone.document["history"] if isinstance(lone.document["history"], list) else []
    elif lone.path == _DETAILS:
        rows = [lone.document]
    yield from (parsed(RecordedCheckpoint, with_tasks(row, {}), lone.name, lone.path) for row in rows)


def _sentences(lone: LoneAnswer) -> Iterator[str]:
    cut = f", {lone.cut}: what is whole before that is read" if lone.cut else ""
    yield f"{one_line(lone.name)} is the answer to {lone.path}{cut}."
    document = lone.document
    if lone.path == _CHECKPOINTS:
        yield f"It has no subtasks, so it does not tell where a checkpoint spent its time: {_DETAILS} and its subtasks do. {_REST}"
    elif lone.path == _DETAILS:
        yield from _of_vertices(document)
        yield f"It has sums of vertices: {_DETAILS}/subtasks/VERTEX tells of each subtask. {_REST}"
    elif lone.path.endswith("VERTEX"):
        yield from _of_subtasks(lone)
        yield f"It is of one vertex: what other vertices waited for is not in it. {_REST}"
    elif lone.path == _CONFIG:
        yield from _of_config(document)
        yield f"It does not tell how checkpoints went: {_CHECKPOINTS} does. {_REST}"
    elif lone.path.endswith("exceptions"):
        yield from _of_exceptions(document)
        yield f"It has no checkpoints: {_CHECKPOINTS} has. {_REST}"
    else:
        count, state = len(document["vertices"]), one_line(document.get("state") or "in an unknown state")
        yield f"The job '{one_line(document.get('name') or document['jid'])}' is {state}, with {count} vertices."
        yield f"It has no checkpoints: {_CHECKPOINTS} has. {_REST}"


def _of_vertices(document: dict[str, Any]) -> Iterator[str]:
    tasks = document.get("tasks")
    tasks = {name: task for name, task in tasks.items() if isinstance(task, dict)} if isinstance(tasks, dict) else {}
    ends = {name: task["end_to_end_duration"] for name, task in tasks.items() if is_known(task.get("end_to_end_duration"))}
    if ends:
        last = max(ends, key=lambda name: ends[name])
        yield f"Vertex {one_line(last)} acknowledged last, {ms_text(ends[last])} after the trigger."
    late = [name for name, task in tasks.items() if task.get("num_acknowledged_subtasks") != task.get("num_subtasks")]
    if late:
        yield f"Not acknowledged in full by {', '.join(map(one_line, late[:3]))}{f' and {len(late) - 3} more' if len(late) > 3 else ''}."


def _of_subtasks(lone: LoneAnswer) -> Iterator[str]:
    rows = parsed(TaskDetails, lone.document, lone.name, lone.path).subtasks
    done = [row for row in rows if row.status == "completed" and row.end_to_end_duration >= 0]
    number = lone.document["id"] if is_known(lone.document["id"]) else "of an unknown id"
    yield f"Checkpoint {number}: {len(done)} of {len(rows)} subtasks acknowledged."
    if not done:
        return
    last = max(done, key=lambda row: row.end_to_end_duration)
    parts = (
        ("start delay", last.start_delay), ("alignment", last.alignment.duration), ("synchronous part", last.checkpoint.sync),
        ("asynchronous part", last.checkpoint.async_),
    )  # fmt: skip
    spent = ", ".join(f"{name} {ms_text(ms)}" for name, ms in parts if ms >= 0)
    size = f"; it wrote {bytes_text(last.checkpointed_size)}" if last.checkpointed_size >= 0 else ""
    yield f"The last was subtask {last.index} after {ms_text(last.end_to_end_duration)}{f': {spent}' if spent else ''}{size}."


def _of_config(document: dict[str, Any]) -> Iterator[str]:
    def written(key: str) -> str:
        value = document.get(key)
        if value is None or not is_known(value):
            return "not set"
        return "never" if key == "interval" and value >= NEVER_MS else ms_text(value)

    unaligned = document.get("unaligned_checkpoints")
    barriers = "" if unaligned is None else f", {'unaligned' if unaligned else 'aligned'}"
    yield f"Checkpoints every {written('interval')}, pause {written('min_pause')}, timeout {written('timeout')}{barriers}."
    others = [name.format(one_line(value, 60)) for key, name in _OTHERS.items() if (value := document.get(key)) not in (None, "")]
    others += [name for key, name in _SWITCHES.items() if document.get(key) is True]
    if others:
        yield f"{capitalised('; '.join(others))}."


_OTHERS = {
    "mode": "mode {}", "max_concurrent": "at most {} at once", "tolerable_failed_checkpoints": "{} failed ones in a row are tolerated",
    "state_backend": "state backend {}", "checkpoint_storage": "checkpoint storage {}",
}  # fmt: skip
_SWITCHES = {"state_changelog_enabled": "with a changelog", "checkpoints_after_tasks_finish": "checkpoints go on after tasks finish"}


def _of_exceptions(document: dict[str, Any]) -> Iterator[str]:
    history = document.get("exceptionHistory")
    entries = history.get("entries") if isinstance(history, dict) else document.get("all-exceptions")
    entries = [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []
    latest = max(entries, key=lambda entry: entry["timestamp"] if is_known(entry.get("timestamp")) else 0, default=None)
    yield f"{len(entries)} failure{'' if len(entries) == 1 else 's'} of the job."
    if latest is not None:
        what = latest.get("exceptionName") or latest.get("stacktrace") or latest.get("exception") or "unknown"
        where = f" of {one_line(latest.get('taskName') or latest.get('task'))}" if latest.get("taskName") or latest.get("task") else ""
        yield f"The last{where}: {one_line(masked_text(str(what)), 160)}."
