"""Create the checkpoint history (`History`) of a job from a source: answers of the REST API, a log, or a recording.

A single saved answer of the REST API is a source as well.  Then the history also has sentences on what is missing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import median
from typing import Any

from sim.jobs.history.history import (
    History,
    SubtaskId,
    ThreadShares,
    in_flight_text,
    sharing,
    sum_collections,
)
from sim.jobs.infer.cores import host_loads
from sim.jobs.infer.file_history import inline_bytes
from sim.jobs.infer.options import NEVER_MS
from sim.jobs.infer.state import is_incremental_configured
from sim.jobs.infer.windows import planned_window
from sim.jobs.reading import RecordingSource
from sim.jobs.source.job_log import (
    JobLog,
    Silence,
    clock,
    failures_apart,
    log_remarks,
    silence_of_job,
    silence_of_log,
)
from sim.jobs.source.recorded_job import ConfiguredJob, RecordedCheckpoint, RecordedSubtask
from sim.jobs.source.rest_answers import (
    CheckpointConfig,
    CheckpointStatistics,
    RestSnapshot,
    TaskDetails,
    Totals,
    list_names,
    objects_in,
    parsed,
    rows_of,
)
from sim.jobs.source.rest_job import RestJob
from sim.jobs.source.saved import LoneAnswer
from sim.model.series.columns import is_known
from sim.model.text import listed, masked_text, one_line
from sim.results.formats import bytes_text, ms_text

# ---- The history of any source that `ckptsim import` can read.  Values that a source does not contain are empty.

_LISTED_CHECKPOINTS = "of the listed checkpoints"
_OUTCOMES = "completed", "failed", "in_progress"
_MIN_REPORTED_SLOWDOWN = 1.2
"""Minimum slowdown by contention for cores that is reported."""


def history_of(source: RecordingSource) -> History:
    """Return the history of a source.  Raises `RecordingError` if its answers contradict each other, or the job is missing."""
    match source:
        case RestSnapshot():
            return _history_of_snapshot(source)
        case ConfiguredJob():
            return source.history()  # type: ignore[no-any-return]
        case JobLog():
            return _history_of_log(source)


# ------------------------------------------------------------------------------------------------------- Flink's REST API


def _history_of_snapshot(snapshot: RestSnapshot) -> History:
    """Return the history of a job from the answers of the REST API."""
    job = RestJob(snapshot)
    detailed = {point.id: point for point in job.checkpoints}
    listed = {point.id: point for point in job.statistics.history if point.id not in detailed}
    subtasks = {(vertex, row.subtask): row for vertex, details in job.details.items() for row in details.subtasks}
    threads = {key: thread for key, row in subtasks.items() if (thread := _thread_shares(row.metrics)) is not None}
    counts, counted = checked_counts(job.statistics, job.statistics.history)
    now_ms = job.job.now
    points = _with_current_durations([point for _, point in sorted((listed | detailed).items())], now_ms)
    backend = job.checkpoint_config.state_backend or ""
    shared = sharing(points, inline_bytes(job), backend=backend) if is_incremental_configured(job) else ""
    return History(
        job.job.name or job.job.jid,
        job.flink_version,
        job.vertices,
        points,
        job.checkpoint_config,
        {key: name for key, row in subtasks.items() if (name := row.taskmanager_id or row.endpoint or row.host)},
        {key: read for key, row in subtasks.items() if (read := row.metrics.records_in) is not None},
        threads,
        {vertex.name: window for vertex in job.vertices if (window := planned_window(vertex.description)) is not None},
        job.failures_ms,
        counts.get("restored", 0),
        counts.get("total", 0),
        {name: sum_collections(collectors) for name, collectors in job.collectors.items()},
        max(0, job.job.now - job.job.start_time) if job.job.start_time > 0 else 0,
        _find_silence(job, points, counts),
        job.statistics.slowest_ms,
        (),
        (
            *_end_sentences(snapshot, job),
            *filter(None, [counted, in_flight_text(points), shared]),
            *failures_apart(points, _LISTED_CHECKPOINTS),
        ),
        _contention_text(job, threads),
    )


def _end_sentences(snapshot: RestSnapshot, job: RestJob) -> Iterator[str]:
    """Yield sentences on when and why a job has failed for good."""
    if job.job.state == "FAILED":
        at = f" at {clock(job.job.end_time)}" if job.job.end_time > 0 else ""
        yield f"The job failed for good{at}."
        if isinstance(document := snapshot.of_job("/exceptions"), dict):
            yield " ".join(_exceptions_sentences(document))


def _with_current_durations(points: Iterable[RecordedCheckpoint], now_ms: int) -> tuple[RecordedCheckpoint, ...]:
    """Return the checkpoints.  The duration of one in progress is until now; Flink's is until its latest acknowledgement."""
    return tuple(
        point.model_copy(update={"end_to_end_duration": now_ms - point.trigger_timestamp})
        if point.status == "IN_PROGRESS" and now_ms - point.trigger_timestamp > point.end_to_end_duration
        else point
        for point in points
    )


def checked_counts(
    statistics: CheckpointStatistics, points: Sequence[RecordedCheckpoint]
) -> tuple[Mapping[str, int], str]:
    """Return Flink's checkpoint counts by outcome, and a sentence about them ("" if there is nothing to say).

    If the counts contradict the listed checkpoints or each other, only the number of restores is returned.  `total`
    includes triggers that were declined before the checkpoint got an id.
    """
    counts = statistics.counts
    shown = Counter(point.status.lower() for point in points) + Counter(restored=int(bool(statistics.latest.restored)))
    ended = {name: counts[name] for name in _OUTCOMES if name in counts}
    contradictions = [
        f"{counts[name]} {name.replace('_', ' ')} but shows {number}"
        for name, number in [*shown.items(), ("total", len(points))]
        if number > counts.get(name, number)
    ]
    if len(ended) == len(_OUTCOMES) and sum(ended.values()) != counts.get("total", sum(ended.values())):
        numbers = listed([f"{number} {name.replace('_', ' ')}" for name, number in ended.items()])
        contradictions.append(f"{counts['total']} in total but {numbers}")
    if contradictions:
        restored = {name: number for name, number in counts.items() if name == "restored"}
        return (
            restored,
            f"Flink's answer contradicts itself: it counts {'; '.join(contradictions)}. These counts are not used.",
        )
    if "failed" not in counts or counts.get("total", 0) <= len(points):
        return counts, ""
    among = f", and {shown['failed'] or 'none'} of them failed" if counts["failed"] and points else ""
    return counts, (
        f"Of {counts['total']} checkpoints that Flink has counted since the JobMaster of the job began {counts['failed'] or 'none'} failed; "
        f"the answer lists {len(points)}{among}."
    )


def _find_silence(job: RestJob, points: tuple[RecordedCheckpoint, ...], counts: Mapping[str, int]) -> Silence | None:
    """Return the period without completed checkpoints up to the time of the answers, or None if there is none."""
    if job.job.state != "RUNNING":
        return None
    interval_ms = job.checkpoint_config.interval
    known_ms = interval_ms if 0 < interval_ms < NEVER_MS else 0
    return silence_of_job(points, job.job.now, known_ms, counts, "the time of the answers")


def _contention_text(job: RestJob, threads: Mapping[SubtaskId, ThreadShares]) -> str:
    """Return a sentence about the host with the most contention for cores, or "" if there is none."""
    loads = host_loads(job, {subtask: thread.busy for subtask, thread in threads.items()})
    worst = max(loads, key=lambda load: load.independent_slowdown, default=None)
    if worst is None or worst.independent_slowdown < _MIN_REPORTED_SLOWDOWN or worst.is_blocked:
        return ""
    where = f"{worst.cores} core{'s' if worst.cores > 1 else ''}{'' if len(loads) == 1 else ' of one host'}"
    doubt = " It is not so if tasks block or sleep: Flink counts that as busy, too."
    return (
        f"Cores are scarce: {worst.threads:.2g} threads of tasks are busy at once on the {where}, so records take "
        f"{worst.slowdown:.2g} times as long as on idle ones, "
        f"and other work of the host waits as well.{doubt if worst.used_cores is None else ''}"
    )


def _thread_shares(totals: Totals) -> ThreadShares | None:
    """Return how a task thread spent its time, or None if Flink does not report it (before 1.16)."""
    times = totals.busy_ms, totals.idle_ms, totals.backpressured_ms
    if any(time is None for time in times) or not (spent := sum(time or 0 for time in times)):
        return None
    return ThreadShares((totals.busy_ms or 0) / spent, (totals.backpressured_ms or 0) / spent, totals.busy_ms or 0)


# ------------------------------------------------------------------------------------------------------- other sources


def _history_of_log(log: JobLog) -> History:
    """Return the history of a JobManager log.  It has no vertices and no statistics of subtasks."""
    offset_ms = log.clock_offset_ms
    points = _with_current_durations(log.recorded, -1 if offset_ms is None else log.ended_ms - offset_ms)
    return History(
        log.name or log.job,
        log.version,
        (),
        points,
        restarts_ms=() if offset_ms is None else tuple(at_ms - offset_ms for at_ms in log.restarts_ms if at_ms >= 0),
        restored=len(log.restores),
        counted=len(points),
        silence=silence_of_log(log),
        remarks=(*log_remarks(log), *filter(None, [in_flight_text(points)])),
    )


# ---- The history of a single answer of Flink's REST API, with sentences on its content, and on how to get what is missing.

_CHECKPOINTS, _CONFIG = "/jobs/JOB/checkpoints", "/jobs/JOB/checkpoints/config"
_DETAILS = "/jobs/JOB/checkpoints/details/N"
_REST = "`ckptsim explain http://HOST:8081 --job JOB` asks for all of it; `ckptsim import http://HOST:8081 --save FOLDER` keeps it in files."


def history_of_answer(lone: LoneAnswer) -> History:
    """Return the history of a single answer of the REST API.  Raises `RecordingError` if its values are invalid."""
    points = tuple(sorted({point.id: point for point in _checkpoints_in(lone)}.values(), key=lambda point: point.id))
    config = parsed(CheckpointConfig, lone.document if lone.path == _CONFIG else {}, lone.name, lone.path)
    is_list = lone.path == _CHECKPOINTS
    statistics = parsed(CheckpointStatistics, lone.document if is_list else {}, lone.name, lone.path)
    counts, counted = checked_counts(statistics, points)
    last_ms = max((point.trigger_timestamp + max(point.end_to_end_duration, 0) for point in points), default=-1)
    return History(
        one_line(lone.document.get("name") or lone.name),
        "",
        (),
        points,
        config,
        restored=counts.get("restored", 0),
        counted=counts.get("total", 0),
        silence=silence_of_job(points, last_ms, 0, counts, "the last moment in the answer") if is_list else None,
        slowest_ms=statistics.slowest_ms,
        partial=tuple(_answer_sentences(lone, counts)),
        remarks=(
            *filter(None, [counted, in_flight_text(points), sharing(points)]),
            *failures_apart(points, _LISTED_CHECKPOINTS),
        ),
    )


def _checkpoints_in(lone: LoneAnswer) -> Iterator[RecordedCheckpoint]:
    """Yield the checkpoints of an answer.  A checkpoint in `latest` is usually in `history`, too."""
    rows: list[Any] = []
    if lone.path == _CHECKPOINTS:
        latest = lone.document.get("latest")
        latest = [*latest.values()] if isinstance(latest, dict) else []
        rows = [row for row in objects_in(latest) if "status" in row]
        rows += lone.document["history"] if isinstance(lone.document["history"], list) else []
    elif lone.path == _DETAILS:
        rows = [lone.document]
    yield from (parsed(RecordedCheckpoint, row, lone.name, lone.path) for row in rows)


def _answer_sentences(lone: LoneAnswer, counts: Mapping[str, int]) -> Iterator[str]:
    """Yield sentences: which answer it is, what it contains, what is missing, and how to get that."""
    cut = f", {lone.cut}: what is whole before that is read" if lone.cut else ""
    yield f"{one_line(lone.name)} is the answer to {lone.path}{cut}."
    document = lone.document
    if lone.path == _CHECKPOINTS:
        for row in rows_of(document, "history")[:1]:
            yield from _vertices_sentences(row)
        if not document["history"] and document.get("counts", {}).get("total") == 0:
            yield (
                "No checkpoint has been triggered: the job has just begun, or execution.checkpointing.interval is not set "
                "(/jobs/JOB/checkpoints/config tells)."
            )
            return
        yield from _summary_sentences(document, counts)
        yield f"It has no subtasks, so it does not tell where a checkpoint spent its time: {_DETAILS} and its subtasks do. {_REST}"
    elif lone.path == _DETAILS:
        yield from _vertices_sentences(document)
        yield f"It has sums of vertices: {_DETAILS}/subtasks/VERTEX tells of each subtask. {_REST}"
    elif lone.path.endswith("VERTEX"):
        yield from _subtasks_sentences(lone)
        yield f"It is of one vertex: what other vertices waited for is not in it. {_REST}"
    elif lone.path == _CONFIG:
        yield from _config_sentences(document)
        yield f"It does not tell how checkpoints went: {_CHECKPOINTS} does. {_REST}"
    elif lone.path.endswith("exceptions"):
        yield from _exceptions_sentences(document)
        yield f"It has no checkpoints: {_CHECKPOINTS} has. {_REST}"
    else:
        count, state = len(document["vertices"]), one_line(document.get("state") or "in an unknown state")
        yield f"The job '{one_line(document.get('name') or document['jid'])}' is {state}, with {count} vertices."
        yield f"It has no checkpoints: {_CHECKPOINTS} has. {_REST}"


def _summary_sentences(document: dict[str, Any], counts: Mapping[str, int]) -> Iterator[str]:
    """Yield a sentence on Flink's own percentiles, which are of more checkpoints than the history has."""
    summary, completed = document.get("summary"), counts.get("completed", -1)
    took = summary.get("end_to_end_duration") if isinstance(summary, dict) else None
    at = [took.get(name) for name in ("p50", "p90", "max")] if isinstance(took, dict) else []
    if completed > len(document["history"]) and at and all(map(is_known, at)):
        half, tenth, longest = (ms_text(ms) for ms in at if ms is not None)
        yield f"Of all {completed} completed ones half took up to {half}, one in ten {tenth} or more, and the longest {longest}."


def _vertices_sentences(document: dict[str, Any]) -> Iterator[str]:
    """Yield sentences on the vertices of one checkpoint: which acknowledged last, and which have not acknowledged in full."""
    tasks = document.get("tasks")
    tasks = {name: task for name, task in tasks.items() if isinstance(task, dict)} if isinstance(tasks, dict) else {}
    ends = {
        name: task["end_to_end_duration"] for name, task in tasks.items() if is_known(task.get("end_to_end_duration"))
    }
    if ends:
        last = max(ends, key=lambda name: ends[name])
        number = document.get("id")
        before = [
            f"{one_line(name)} after {ms_text(ends[name])}{_vertex_bytes_text(tasks[name])}"
            for name in sorted(ends, key=lambda name: -ends[name])
            if name != last
        ]
        earlier = f"; before it {list_names(before, _MAX_NAMED_VERTICES)}" if before else ""
        yield (
            f"In checkpoint {number}, vertex {one_line(last)} acknowledged last, {ms_text(ends[last])} after the trigger"
            f"{_vertex_bytes_text(tasks[last])}{earlier}."
        )
    counts = {name: (task.get("num_acknowledged_subtasks"), task.get("num_subtasks")) for name, task in tasks.items()}
    unacknowledged = [
        f"{one_line(name)} ({one_line(acknowledged)} of {one_line(of)})"
        for name, (acknowledged, of) in counts.items()
        if acknowledged != of
    ]
    if unacknowledged:
        yield f"Not acknowledged in full by {list_names(unacknowledged, 3)}."


_MAX_NAMED_VERTICES = 4


def _vertex_bytes_text(task: dict[str, Any]) -> str:
    """Return the bytes that a vertex wrote, and that it read while barriers were aligned, in brackets, or ""."""
    columns = {"checkpointed_size": "written", "processed_data": "read during alignment"}
    texts = [
        f"{bytes_text(task[key])} {what}" for key, what in columns.items() if is_known(task.get(key)) and task[key] > 0
    ]
    return f" ({', '.join(texts)})" if texts else ""


def _subtasks_sentences(lone: LoneAnswer) -> Iterator[str]:
    """Yield sentences on the subtasks of one vertex: how many acknowledged, and how the last compares with the others."""
    rows = parsed(TaskDetails, lone.document, lone.name, lone.path).subtasks
    acknowledged = [row for row in rows if row.status == "completed" and row.end_to_end_duration >= 0]
    number = lone.document["id"] if is_known(lone.document["id"]) else "of an unknown id"
    of, done = (lone.document.get(name, -1) for name in ("num_subtasks", "num_acknowledged_subtasks"))
    is_part = is_known(of) and is_known(done) and of > len(rows)  # as people paste it
    said = f"{done} of {of} subtasks acknowledged; {len(rows)} of them are in it" if is_part else None
    yield f"Checkpoint {number}: {said or f'{len(acknowledged)} of {len(rows)} subtasks acknowledged'}."
    pending = [f"subtask {row.index}" for row in rows if row not in acknowledged]
    if pending:
        yield f"Not acknowledged: {list_names(pending, _MAX_NAMED_VERTICES)}{_pending_text(lone, acknowledged)}."
    if not acknowledged:
        return
    *others, last = sorted(acknowledged, key=lambda row: row.end_to_end_duration)
    yield f"The last{' of these' * is_part}{' that acknowledged' * bool(pending)} was subtask {last.index} after {_durations_text([last])}."
    if others:
        yield f"The {f'{len(others)} others, by their medians,' if len(others) > 1 else 'other one'} after {_durations_text(others)}."


def _pending_text(lone: LoneAnswer, acknowledged: Sequence[RecordedSubtask]) -> str:
    """Return a clause on how long subtasks have not acknowledged, or "" if the answer does not tell.

    The duration that Flink reports for a vertex usually ends with its latest acknowledgement, so it says nothing about the others.
    """
    last_ms = max((row.end_to_end_duration for row in acknowledged), default=-1)
    passed_ms = lone.document.get("end_to_end_duration", -1)
    return f", {ms_text(passed_ms)} after the trigger" if is_known(passed_ms) and passed_ms > last_ms else ""


def _durations_text(rows: Sequence[RecordedSubtask]) -> str:
    """Return the median end-to-end duration of subtasks, with the medians of its parts and of the bytes written, as text."""
    parts = {
        "start delay": [row.start_delay for row in rows],
        "alignment": [row.alignment.duration for row in rows],
        "synchronous part": [row.checkpoint.sync for row in rows],
        "asynchronous part": [row.checkpoint.async_ for row in rows],
    }
    spent = ", ".join(f"{name} {ms_text(median(values))}" for name, values in parts.items() if min(values) >= 0)
    size = median(row.checkpointed_size for row in rows)
    wrote = f"; {bytes_text(size)} written" if size >= 0 else ""
    return f"{ms_text(median(row.end_to_end_duration for row in rows))}{f': {spent}' if spent else ''}{wrote}"


def _config_sentences(document: dict[str, Any]) -> Iterator[str]:
    """Yield sentences on what the checkpoint configuration means, beyond what it says."""

    def written(key: str) -> str:
        value = document.get(key)
        return "not set" if value is None or not is_known(value) else ms_text(value)

    unaligned, at_least_once = document.get("unaligned_checkpoints"), document.get("mode") == "at_least_once"
    barriers = (
        "" if unaligned is None else f", {'unaligned' if unaligned else 'not aligned' if at_least_once else 'aligned'}"
    )
    aligned_ms, tolerated = (
        document.get("aligned_checkpoint_timeout", -1),
        document.get("tolerable_failed_checkpoints", -1),
    )
    if unaligned and is_known(aligned_ms) and aligned_ms > 0:
        barriers = f", aligned until {ms_text(aligned_ms)} after the trigger, then unaligned"
    interval = document.get("interval")
    is_off = interval is not None and interval >= NEVER_MS
    pause_ms = document["min_pause"] if is_known(document.get("min_pause")) and not is_off else 0
    often = "No periodic checkpoints (interval: none)" if is_off else f"Checkpoints every {written('interval')}"
    yield f"{often}, pause {written('min_pause')}, timeout {written('timeout')}{barriers}."
    if is_known(interval) and pause_ms > document["interval"]:
        yield f"The pause voids the interval: the next one begins {written('min_pause')} after the end of the one before."
    if is_known(tolerated) and tolerated < 2**31 - 1 and not is_off:
        yield f"Of checkpoints that fail in a row number {tolerated + 1} fails the job."
    if at_least_once:
        yield "At least once: barriers block no channel, and records behind them are counted twice after a restore."
    if document.get("state_changelog_enabled") is True and document.get("changelog_storage") == "memory":
        yield "The changelog is in memory: acknowledgements carry it to the JobManager, which writes it into the metadata."
    if document.get("checkpoint_storage") == "JobManagerCheckpointStorage":
        yield "The JobManager keeps checkpoints in its memory: one fails if a state of a subtask is larger than 5 MB, unless that is changed."
    if document.get("checkpoints_after_tasks_finish") is False:
        yield "Once a task has finished, no checkpoint is taken any more."


def _exceptions_sentences(document: dict[str, Any]) -> Iterator[str]:
    """Yield sentences on the failures of the job: their number, their mean distance, and the cause of the latest one.

    Flink before 1.13 has no `exceptionHistory`, but `all-exceptions` and `root-exception`.
    """
    history = document.get("exceptionHistory")
    history = history if isinstance(history, dict) else document | {"entries": document.get("all-exceptions")}
    entries = rows_of(history, "entries") or [{"exception": document.get("root-exception")}]
    entries = [entry for entry in entries if any(entry.values())]
    entries.sort(key=lambda entry: entry["timestamp"] if is_known(entry.get("timestamp")) else -1)
    times = [entry["timestamp"] for entry in entries if is_known(entry.get("timestamp"))]
    apart = f", {ms_text((times[-1] - times[0]) / (len(times) - 1))} apart on average" if len(times) > 1 else ""
    more = "At least " if history.get("truncated") else ""
    yield f"{more}{len(entries)} failure{'' if len(entries) == 1 else 's'} of the job{apart}."
    kinds: dict[str, list[dict[str, Any]]] = {}  # beginning of the message -> failures, the latest first
    for entry in reversed(entries):
        kinds.setdefault(" ".join(_lines_of_exception(entry)[0].split()[:4]), []).append(entry)
    for number, failures in enumerate([*kinds.values()][:_MAX_KINDS_OF_FAILURES]):
        yield f"{f'The last of another kind ({len(failures)})' if number else 'The last'}{_exception_text(failures[0])}."
        others = [other for other in rows_of(failures[0], "concurrentExceptions") if is_known(other.get("timestamp"))]
        first = min(others, key=lambda other: other["timestamp"], default=None)
        if first is not None and is_known(failures[0].get("timestamp")):
            apart_ms = failures[0]["timestamp"] - first["timestamp"]
            when = f"{ms_text(abs(apart_ms))} {'before' if apart_ms >= 0 else 'after'} it"
            likely = " (perhaps its cause)" if apart_ms > 0 else ""
            yield f"Flink lists one more with it, {when}{likely}{_exception_text(first)}."


def _lines_of_exception(entry: Mapping[str, Any]) -> list[str]:
    trace = entry.get("stacktrace") or entry.get("exception") or entry.get("exceptionName") or "unknown"
    return str(trace).strip().splitlines() or ["unknown"]


def _exception_text(entry: Mapping[str, Any]) -> str:
    """Return the task of a failure, its exception and its root cause, as text."""
    first, *rest = _lines_of_exception(entry)
    causes = [line for line in rest if line.startswith("Caused by: ")]
    task = entry.get("taskName") or entry.get("task")
    text = "; ".join(one_line(masked_text(line), 300).rstrip(". ") for line in [first, *causes[-1:]])
    return f"{f' of {one_line(task)}' if task else ''}: {text}"


_MAX_KINDS_OF_FAILURES = 3
