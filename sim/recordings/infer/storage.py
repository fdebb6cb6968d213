"""The speed of checkpoint storage, read off the asynchronous phases: latency per file, and bandwidth.

Every subtask gives a point per checkpoint: the bytes of its longest stream, and the duration of its asynchronous phase.  A line through
all points begins at the latency, and its slope is the bandwidth.  State below `data-inline-threshold` is written to no file and gives no
point.  Tables of RocksDB are written side by side.  A changelog waits for its batch before it writes.
Subtasks that write alike show only the sum.  Then late checkpoints may show the latency of the metadata, which stands for all.

With unaligned checkpoints an asynchronous phase also waits for the remaining barriers, and for tasks that share its file of channel
state (FLINK-26803).  Under an aligned timeout it waits for the barrier to leave the output queue as well.  Then only vertices without
readers give points, from snapshots that waited for no barrier; if these are no line, from those with little in flight.
Those may write no file.  Then all vertices give points, if each task has a file of channel state for itself: state and channel state are
written side by side, so the longer stream counts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise
from statistics import median
from types import MappingProxyType

from sim.model.scenario import Overheads
from sim.model.state import Changelog, Lsm, StateOptions
from sim.model.storage import Storage
from sim.recordings.infer.before_barrier import usual_checkpoints
from sim.recordings.infer.draft import Draft, rate_text
from sim.recordings.infer.file_history import written_bytes
from sim.recordings.infer.flows import Flows
from sim.recordings.infer.serializing import LOCAL_MOST_MS, LOCAL_MS, Serializing, is_local, serializing
from sim.recordings.infer.storage_line import FEWEST, AsyncPhase, FittedLine, line_through, stream_bytes
from sim.recordings.source.recorded_job import RecordedSubtask
from sim.recordings.source.rest.job import RestJob, RestVertex
from sim.units import UnitError, format_byte_rate, format_duration, parse_flink_size

INLINE_OPTIONS = (
    "execution.checkpointing.data-inline-threshold", "state.storage.fs.memory-threshold", "state.backend.fs.memory-threshold",
)  # fmt: skip
"""Names of one option over the years, the newest first."""
ASSUMED_BYTES_PER_SECOND = 100_000_000
FASTEST_BYTES_PER_SECOND = 10**12
LONG = 3  # latencies: a longer asynchronous phase is mostly transfer of bytes
PROMPT_MS = 10  # alignment of a snapshot that waited for no barrier
LITTLE = 0.1  # of the bytes of the state: so much in flight is written beside it
LONG_BEFORE = 0.25  # of the usual asynchronous phase: a barrier that came by then held nothing up
_QUESTION = "How fast does checkpoint storage write one file, in bytes per second?"


def infer_storage(draft: Draft, job: RestJob, flowed: Mapping[str, Flows] = MappingProxyType({})) -> None:
    """Set `storage:`, and `state.serialize`: what a core does in the same phase."""
    work = serializing(draft, job, flowed)
    phases = _phases(draft, job)
    metadata_ms, gaps = _metadata(job)
    if not phases:
        draft.ask("storage.bandwidth", format_byte_rate(ASSUMED_BYTES_PER_SECOND), _QUESTION, "100 MB/s: no completed checkpoint tells.")
        latency = f"{20 if metadata_ms is None else metadata_ms} ms"
        draft.ask("storage.file-latency", latency, "How long does it take to write the smallest file?", f"{latency}.")
        if metadata_ms is not None:
            draft.put("storage.metadata-latency", latency, gaps)
        return
    line = line_through(phases)
    told = line is not None and line.is_told
    latency_ms = _from_line(draft, phases, line) if line is not None and told else _from_sums(draft, job, phases, metadata_ms, work)
    if metadata_ms is None:
        metadata_ms, gaps = round(latency_ms), "as for any file: only late checkpoints show it"
    draft.put("storage.metadata-latency", format_duration(metadata_ms * 10**6), gaps)


def _from_line(draft: Draft, phases: list[AsyncPhase], line: FittedLine) -> float:
    """Set latency and bandwidth by a line.  Returns the latency [ms]."""
    low, high, sizes = _rate(line.slowest), _rate(line.fastest), [phase.stream_bytes for phase in phases]
    draft.put("storage.bandwidth", _rate(line.bytes_per_ms), (
        f"line (Theil-Sen) through {len(phases)} asynchronous phases of {min(sizes):,.0f} to {max(sizes):,.0f} bytes in one stream; "
        f"{low} to {high} with 95 % confidence"
    ))  # fmt: skip
    draft.put("storage.file-latency", format_duration(round(line.latency_ms) * 10**6), "where that line begins")
    return line.latency_ms


def _from_sums(draft: Draft, job: RestJob, phases: list[AsyncPhase], metadata_ms: int | None, work: Serializing | None = None) -> float:
    """Set latency or bandwidth by sums of latency and transfer, and what a core serialises if that is most.  Returns the latency [ms]."""
    took_ms, size = median(phase.took_ms for phase in phases), median(phase.stream_bytes for phase in phases)
    origin = f"median of {len(phases)} asynchronous phases: {size:,.0f} bytes in {took_ms:g} ms"
    works = work is not None and work.work_ms(size) > took_ms / 2
    if metadata_ms is not None and took_ms > LONG * metadata_ms and not works:
        draft.put("storage.bandwidth", _rate(size / (took_ms - metadata_ms)), f"{origin}; less the latency of the metadata")
        draft.put("storage.file-latency", format_duration(metadata_ms * 10**6), "as for the metadata")
        return metadata_ms
    fastest = max(phases, key=lambda phase: phase.stream_bytes / max(phase.took_ms, 1))
    at_least = fastest.stream_bytes / max(fastest.took_ms, 1)
    lasted = not is_unaligned(job) and fastest.took_ms > LONG * took_ms
    per_ms = max(0 if lasted else ASSUMED_BYTES_PER_SECOND / 1000, at_least)
    least, most = (pick(phase.stream_bytes for phase in phases) for pick in (min, max))
    alike = f"subtasks write {least:,.0f} to {most:,.0f} bytes, and the time does not tell how much of it goes into bytes"
    draft.ask("storage.bandwidth", _rate(per_ms), _QUESTION, f"{_rate(per_ms)}; {alike}; one wrote {at_least * 1000:,.0f} bytes/s.")
    latency_ms = max(took_ms - size / per_ms, 0.0)
    if work is None or not (works or (is_local(job) and latency_ms > LOCAL_MOST_MS)):
        draft.put("storage.file-latency", format_duration(round(latency_ms) * 10**6), f"{origin}, less the bytes at that rate")
        return latency_ms
    shared = f" x {work.slower:.2g}, for other threads want its cores" if work.slower > 1 else ""
    rate = rate_text(size / took_ms * 1000 * work.slower)
    draft.put("state.serialize", rate, f"{origin}{shared}: work of a core, one thread for each subtask", job=work.vertex)
    latency_ms = round(min(latency_ms or LOCAL_MS, LOCAL_MS, took_ms / 2)) if metadata_ms is None else metadata_ms
    assumed = f"{latency_ms:.0f} ms, at most {took_ms:.0f} ms: {origin}, most of which a core needs to serialise them."
    draft.ask("storage.file-latency", format_duration(int(latency_ms) * 10**6), "How long does it take to write a small file?", assumed)
    return latency_ms


def _rate(bytes_per_ms: float) -> str:
    return rate_text(min(bytes_per_ms * 1000, FASTEST_BYTES_PER_SECOND))


def _phases(draft: Draft, job: RestJob) -> list[AsyncPhase]:
    """Phases of all subtasks that write files, in all checkpoints."""
    if not is_unaligned(job):
        return [phase for vertex in job.vertices for phase in _of_vertex(draft, job, vertex, lambda _: True)]
    ends = [vertex for vertex in job.vertices if not job.readers(vertex.name)]
    prompt = [phase for vertex in ends for phase in _of_vertex(draft, job, vertex, _is_prompt)]
    line = line_through(prompt)
    if len(prompt) >= FEWEST and line is not None and line.is_told:
        return prompt
    calm = [phase for vertex in ends for phase in _of_vertex(draft, job, vertex, _has_little_in_flight(job, vertex))]
    return calm or prompt or _with_channel_state(draft, job)


def _with_channel_state(draft: Draft, job: RestJob) -> list[AsyncPhase]:
    """Phases of all vertices whose barriers came together; none where a file of channel state may hold that of other tasks as well.

    Under an aligned timeout a phase waits for the barrier to leave the output queue, which nothing tells.
    """
    timeout = job.checkpoint_config.aligned_checkpoint_timeout if job.checkpoint_config else None
    if timeout or draft.document.get("cluster", {}).get("placement") != "isolated":
        return []
    return [
        AsyncPhase(float(max(written_bytes(subtask), subtask.alignment.persisted)), float(subtask.checkpoint.async_))
        for point in usual_checkpoints(job) for name, task in point.tasks.items() for subtask in task.subtasks
        if subtask.status == "completed" and subtask.checkpoint.async_ >= 0 and subtask.alignment.duration <= PROMPT_MS
        and "async" not in draft.document["job"][name].get("snapshot", {})
        and max(written_bytes(subtask), subtask.alignment.persisted) > inline_bytes(job)
    ]  # fmt: skip


def _is_prompt(subtask: RecordedSubtask) -> bool:
    return not subtask.unaligned_checkpoint and subtask.alignment.duration <= PROMPT_MS


def _has_little_in_flight(job: RestJob, vertex: RestVertex) -> Callable[[RecordedSubtask], bool]:
    """Beside its state; and the last barrier was there when the asynchronous phase began, or long before it usually ends.

    The usual phase decides, not the own one: that would choose long phases among those that waited, and make storage slow.
    """
    usual_ms = _usual_ms(job, vertex)

    def counts(subtask: RecordedSubtask) -> bool:
        waited_ms = subtask.alignment.duration
        waits = waited_ms > max(subtask.checkpoint.sync, 0) + PROMPT_MS and waited_ms > LONG_BEFORE * usual_ms[subtask.index]
        return not waits and subtask.alignment.persisted < LITTLE * written_bytes(subtask)

    return counts


def _usual_ms(job: RestJob, vertex: RestVertex) -> dict[int, float]:
    """The median asynchronous phase of each subtask."""
    phases: dict[int, list[int]] = {}
    for point in usual_checkpoints(job):
        for subtask in point.tasks[vertex.name].subtasks if vertex.name in point.tasks else ():
            if subtask.status == "completed" and subtask.checkpoint.async_ >= 0:
                phases.setdefault(subtask.index, []).append(subtask.checkpoint.async_)
    return {index: median(durations) for index, durations in phases.items()}


def _of_vertex(draft: Draft, job: RestJob, vertex: RestVertex, counts: Callable[[RecordedSubtask], bool]) -> list[AsyncPhase]:
    inline, state = inline_bytes(job), draft.document["job"][vertex.name].get("state", {})
    logs, tables = "changelog" in state, "backend" in state
    batch_ms = Changelog().batch_delay_ns / 10**6 if logs else 0.0
    return [
        AsyncPhase(
            stream_bytes(size, Lsm().table_bytes, StateOptions().transfer_threads) if tables and not logs else float(size),
            max(subtask.checkpoint.async_ - batch_ms, 0.0),
        )
        for point in usual_checkpoints(job)
        if vertex.name in point.tasks
        for subtask in point.tasks[vertex.name].subtasks
        if subtask.status == "completed" and subtask.checkpoint.async_ >= 0 and counts(subtask)
        and (size := written_bytes(subtask)) > inline
    ]  # fmt: skip


def inline_bytes(job: RestJob) -> int:
    """The largest state that travels in the acknowledgement instead of a file."""
    threshold = next((job.options[key] for key in INLINE_OPTIONS if key in job.options), None)
    try:
        return Storage().inline_threshold_bytes if threshold is None else parse_flink_size(threshold)
    except UnitError:
        return Storage().inline_threshold_bytes


def is_unaligned(job: RestJob) -> bool:
    return job.checkpoint_config is not None and bool(job.checkpoint_config.unaligned_checkpoints)


def _metadata(job: RestJob) -> tuple[int | None, str]:
    """(latency [ms], origin): after a late checkpoint the next is triggered as soon as the metadata is written."""
    config, points = job.checkpoint_config, usual_checkpoints(job)
    if config is None or config.max_concurrent != 1 or config.min_pause:
        return None, ""
    gaps = [
        after.trigger_timestamp - before.latest_ack_timestamp
        for before, after in pairwise(points)
        if after.id == before.id + 1 and before.latest_ack_timestamp - before.trigger_timestamp > config.interval
    ]
    if len(gaps) < 3:
        return None, ""
    origin = f"median of {len(gaps)} gaps between the last acknowledgement of a late checkpoint and the next trigger"
    return max(0, round(median(gaps) - Overheads().complete_ns / 10**6)), origin
