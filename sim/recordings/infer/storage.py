"""The speed of checkpoint storage, read off the asynchronous phases: latency per file, and bandwidth.

Every vertex gives a point (median bytes written by a subtask, median duration of its asynchronous phase).  A line through the points
begins at the latency, and its slope is the bandwidth.  State below `data-inline-threshold` is written to no file and gives no point.
Vertices that write similar sizes show only the sum.  Then late checkpoints may show the latency of the metadata, which stands for all.

With unaligned checkpoints an asynchronous phase also waits for the remaining barriers, and for tasks that share its file of channel
state (FLINK-26803).  Under an aligned timeout it waits for the barrier to leave the output queue as well.  Then only vertices without
readers give points, from snapshots that waited for no barrier.
"""

from __future__ import annotations

from itertools import pairwise
from statistics import median

from sim.model.scenario import Overheads
from sim.model.storage import Storage
from sim.recordings.infer.before_barrier import settled
from sim.recordings.infer.draft import Draft
from sim.recordings.infer.state import written_bytes
from sim.recordings.source.recorded_job import Subtask
from sim.recordings.source.rest.job import RestJob
from sim.units import UnitError, format_byte_rate, format_duration, parse_flink_size

__all__ = ["infer_storage"]

INLINE_OPTIONS = (
    "execution.checkpointing.data-inline-threshold", "state.storage.fs.memory-threshold", "state.backend.fs.memory-threshold",
)  # fmt: skip
"""Names of one option over the years, the newest first."""
SPREAD = 10  # ratio of the most to the least bytes that tells latency and bandwidth apart
ASSUMED_BYTES_PER_SECOND = 100_000_000
FASTEST_BYTES_PER_SECOND = 10**12
LONG = 3  # latencies: a longer asynchronous phase is mostly transfer of bytes
PROMPT_MS = 10  # alignment of a snapshot that waited for no barrier


def infer_storage(draft: Draft, job: RestJob) -> None:
    """Set `storage:`."""
    points = _points(job)
    question = "How fast does checkpoint storage write one file, in bytes per second?"
    metadata_ms, gaps = _metadata(job)
    if not points:
        draft.ask("storage.bandwidth", format_byte_rate(ASSUMED_BYTES_PER_SECOND), question, "100 MB/s: no completed checkpoint tells.")
        latency = f"{20 if metadata_ms is None else metadata_ms} ms"
        draft.ask("storage.file-latency", latency, "How long does it take to write the smallest file?", f"{latency}.")
        if metadata_ms is not None:
            draft.put("storage.metadata-latency", latency, gaps)
        return
    latency_ms, per_ms, origin = _line(points, metadata_ms)
    if per_ms:
        rate = min(int(float(f"{per_ms * 1000:.3g}")), FASTEST_BYTES_PER_SECOND)
        draft.put("storage.bandwidth", format_byte_rate(max(rate, 1)), origin)
    else:
        fastest = max(_written(job), key=_bytes_per_second)
        at_least = _bytes_per_second(fastest)
        alike = f"subtasks write {min(points)[0]:,.0f} to {max(points)[0]:,.0f} bytes, too much alike to tell"
        bound = f"{alike}; one wrote {at_least:,.0f} bytes/s"
        lasted = not _is_unaligned(job) and fastest.checkpoint.async_ > LONG * latency_ms
        assumed = format_byte_rate(max(0 if lasted else ASSUMED_BYTES_PER_SECOND, int(float(f"{at_least:.3g}"))))
        draft.ask("storage.bandwidth", assumed, question, f"{assumed}; {bound}.")
    draft.put("storage.file-latency", format_duration(round(latency_ms) * 10**6), "where that line begins" if per_ms else origin)
    if metadata_ms is None:
        metadata_ms, gaps = round(latency_ms), "as for any file: only late checkpoints show it"
    draft.put("storage.metadata-latency", format_duration(metadata_ms * 10**6), gaps)


def _points(job: RestJob) -> list[tuple[float, float]]:
    """(bytes, ms) of each vertex that writes files."""
    config, inline = job.checkpoint_config, _inline_bytes(job)
    unaligned = config is not None and bool(config.unaligned_checkpoints)
    points = []
    for vertex in job.vertices:
        if unaligned and job.readers(vertex.name):
            continue
        snapshots = [
            (written_bytes(subtask), subtask.checkpoint.async_)
            for point in settled(job)
            if vertex.name in point.tasks
            for subtask in point.tasks[vertex.name].subtasks
            if subtask.status == "completed" and subtask.checkpoint.async_ >= 0
            and not (unaligned and (subtask.unaligned_checkpoint or subtask.alignment.duration > PROMPT_MS))
        ]  # fmt: skip
        if snapshots and (typical := median(size for size, _ in snapshots)) > inline:
            points.append((typical, median(took for _, took in snapshots)))
    return points


def _inline_bytes(job: RestJob) -> int:
    """The largest state that travels in the acknowledgement instead of a file."""
    threshold = next((job.options[key] for key in INLINE_OPTIONS if key in job.options), None)
    try:
        return Storage().inline_threshold_bytes if threshold is None else parse_flink_size(threshold)
    except UnitError:
        return Storage().inline_threshold_bytes


def _is_unaligned(job: RestJob) -> bool:
    return job.checkpoint_config is not None and bool(job.checkpoint_config.unaligned_checkpoints)


def _written(job: RestJob) -> list[Subtask]:
    """Acknowledgements of all asynchronous writes, waits included."""
    subtasks = [subtask for point in settled(job) for task in point.tasks.values() for subtask in task.subtasks]
    return [subtask for subtask in subtasks if subtask.status == "completed" and subtask.checkpoint.async_ >= 0]


def _bytes_per_second(subtask: Subtask) -> float:
    """A lower bound: the latency of the files is included in the time."""
    return written_bytes(subtask) / max(subtask.checkpoint.async_, 1) * 1000


def _line(points: list[tuple[float, float]], metadata_ms: int | None) -> tuple[float, float, str]:
    """(latency [ms], bytes per ms or 0, origin): a line of least squares whose latency is not negative."""
    points_text = ", ".join(f"{size:,.0f} bytes in {took:g} ms" for size, took in sorted(points))
    least, most = min(points), max(points)
    if most[0] < SPREAD * max(least[0], 1) or most[1] <= least[1]:
        took_ms = median(took for _, took in points)
        if metadata_ms is not None and took_ms > LONG * metadata_ms:
            per_ms = median(size for size, _ in points) / (took_ms - metadata_ms)
            return metadata_ms, per_ms, f"median asynchronous phases: {points_text}; less the latency of the metadata"
        return took_ms, 0, f"median asynchronous phases: {points_text}"
    mean_x, mean_y = (sum(values) / len(points) for values in zip(*points, strict=True))
    slope = sum((x - mean_x) * (y - mean_y) for x, y in points) / sum((x - mean_x) ** 2 for x, _ in points)
    latency = mean_y - slope * mean_x
    if latency < 0 or slope <= 0:
        latency, slope = (0, most[1] / most[0]) if slope > 0 else (least[1], (most[1] - least[1]) / (most[0] - least[0]))
    return latency, 1 / slope, f"line through the median asynchronous phases of the vertices: {points_text}"


def _metadata(job: RestJob) -> tuple[int | None, str]:
    """(latency [ms], origin): after a late checkpoint the next is triggered as soon as the metadata is written."""
    config, points = job.checkpoint_config, settled(job)
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
