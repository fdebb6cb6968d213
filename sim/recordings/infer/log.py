"""The checkpoints of a log -> a scenario that is mostly questions.

A log tells times and sizes of checkpoints, the scheduled vertices, and the configuration of the cluster.  It tells neither the ways of
records nor their rates.  Checkpoints without a pause between them, each as late as the last, show that barriers wait behind data.
Then the job is saturated, and the assumed workload saturates it, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from sim.recordings.infer.draft import Draft, Inference, duration_text, rate_text
from sim.recordings.infer.options import SHORTEST_MS, infer_options, put_version
from sim.recordings.source.job_log import JobLog, LogCheckpoint
from sim.recordings.source.rest.names import operators, short_names
from sim.recordings.source.silence import silence_of_log
from sim.units import format_duration, format_size

AT_ONCE_MS = 100  # completion -> next trigger, if the coordinator does not wait
IN_FLIGHT_BYTES = 20 * 32768  # of a saturated hop between two tasks: 10 buffers at each end (NettyShuffleEnvironmentConfiguration)
RECORD_BYTES = 1000
LONGEST_MS = 10**11  # three years: a longer time means never
ASSUMED_TIMEOUT_MS = 600_000  # execution.checkpointing.timeout
LONGEST_RUN_MS = 3_600_000
CHECKPOINTS = 12


@dataclass(frozen=True, slots=True)
class TriggerRhythm:
    """The rhythm of periodic checkpoints [ms].  0: not seen."""

    gaps: tuple[int, ...]  # trigger -> next trigger
    interval: int = 0
    min_pause: int = 0
    at_once: int = 0  # number of gaps that ended as soon as their checkpoint was complete

    @property
    def is_saturated(self) -> bool:
        return self.at_once * 2 > len(self.gaps) > 0


def rhythm(points: list[LogCheckpoint]) -> TriggerRhythm:
    """Similar gaps show an interval; similar rests after the checkpoints show a minimum pause."""
    pairs = [(a, b) for a, b in pairwise(points) if b.id == a.id + 1 and a.triggered_ms >= 0 and b.triggered_ms > a.triggered_ms]
    gaps = tuple(b.triggered_ms - a.triggered_ms for a, b in pairs)
    rests = [gap - a.duration_ms for gap, (a, _) in zip(gaps, pairs, strict=True) if a.duration_ms >= 0]
    at_once = sum(rest < AT_ONCE_MS for rest in rests)
    if not gaps or at_once * 2 > len(gaps):
        return TriggerRhythm(gaps, at_once=at_once)
    free = [gap for gap, (a, _) in zip(gaps, pairs, strict=True) if gap - max(a.duration_ms, 0) >= AT_ONCE_MS]
    if len(rests) >= 3 and _spread(rests) < _spread(free) / 2:
        return TriggerRhythm(gaps, min_pause=round(median(rests)), at_once=at_once)
    return TriggerRhythm(gaps, interval=_rounded(median(free)), at_once=at_once)


def infer_log(log: JobLog) -> Inference:
    """The scenario of a log.  It runs, on assumptions that it names."""
    draft = Draft()
    draft.put("version", 1)
    points = [point for _, point in sorted(log.checkpoints.items()) if not point.is_savepoint]
    done = [point for point in points if point.status == "COMPLETED"]
    failed = [point for point in points if point.status == "FAILED"]
    beat = rhythm(points)
    took_ms = median(max(point.duration_ms, 0) for point in done) if done else 0
    draft.head.append(f"Imported from the log {log.source}, job {log.job}: a log tells of checkpoints, not of records.")
    counts = f"{len(done)} completed, {len(failed)} failed, {len(log.refusals)} refused, {log.restored} restores"
    durations = f"; median duration {took_ms:,.0f} ms, longest {max(point.duration_ms for point in done):,} ms" if done else ""
    draft.head.append(f"Checkpoints: {counts}{durations}.")
    if (silence := silence_of_log(log)) is not None:
        draft.head += silence.sentences()
    _job(draft, log, beat, done, took_ms)
    _checkpoint(draft, beat, points, failed)
    put_version(draft, log.version, f"version {log.version} in the log")
    infer_options(draft, log.options, log.version)
    _storage(draft, beat, done, took_ms)
    each_ms = max(beat.interval, beat.min_pause + round(took_ms), 5_000)
    draft.put("run.duration", format_duration(min(max(CHECKPOINTS * each_ms, 60_000), LONGEST_RUN_MS) * 10**6))
    return draft.inference("How would the job of this log checkpoint otherwise?")


def _job(draft: Draft, log: JobLog, beat: TriggerRhythm, done: list[LogCheckpoint], took_ms: float) -> None:
    """The vertices of the log in a chain, or a source and an operator."""
    vertices = log.vertices if len(log.vertices) > 1 else {"Source: source": 1, "operator": 1}
    names = short_names(list(vertices))
    unread: list[str] = []
    for (vertex, parallelism), name in zip(vertices.items(), names, strict=True):
        draft.remark(f"chain: {' -> '.join(operators(vertex))}" if log.vertices else "assumed", job=name)
        reads = [] if vertex.startswith("Source") or not unread else unread
        for upstream in reads:
            question = "What does it read, and how are records sent?"
            draft.ask(f"input.{upstream}", "hash", question, "what comes before it, by key.", job=name)
        unread = [*([] if reads else unread), name]
        if not reads:
            rate, why = ("unlimited", "its checkpoints wait behind data") if beat.is_saturated else ("1k/s", "nothing tells")
            draft.ask("source.rate", rate, "How many records per second arrive?", f"{rate}: {why}.", job=name)
            draft.ask("source.record", format_size(RECORD_BYTES), "How large are its records on the wire?", "1 kB.", job=name)
        if log.vertices:
            draft.put("parallelism", parallelism, "subtasks scheduled in the log", job=name)
        else:
            draft.ask("parallelism", parallelism, "How many subtasks has it?", "1.", job=name)
    last = names[-1]
    if beat.is_saturated:
        hops = max(len(names) - 1, 1)
        service = duration_text(min(took_ms, LONGEST_MS) * 1e6 * RECORD_BYTES / (IN_FLIGHT_BYTES * hops))
        why = f"that a barrier takes {took_ms:,.0f} ms behind {IN_FLIGHT_BYTES:,} bytes on each of {hops} hops."
        draft.ask("service", service, "How long does one record keep the slowest operator busy?", why, job=last)
    else:
        draft.ask("service", "1 us", "How long does one record keep it busy?", "next to nothing: checkpoints have pauses.", job=last)
    if done and done[-1].size_bytes > 0:
        size = format_size(done[-1].size_bytes)
        kept = f"all of the {size} of checkpoint {done[-1].id} is kept here."
        draft.ask("state.size", size, "Which vertices keep how much of the state?", kept, job=last)


def _checkpoint(draft: Draft, beat: TriggerRhythm, points: list[LogCheckpoint], failed: list[LogCheckpoint]) -> None:
    found = f"{len(beat.gaps)} gaps between triggers"
    question = "Which execution.checkpointing.interval is configured?"
    if beat.interval:
        draft.put("checkpoint.interval", _allowed(beat.interval), f"median of {found} that no late checkpoint ended")
    elif beat.gaps:
        shortest = _rounded(min(beat.gaps))
        what = "checkpoints follow one another at once" if beat.is_saturated else "a pause follows each checkpoint"
        why = f"the shortest of {found}: {what}, so it is no longer."
        draft.ask("checkpoint.interval", _allowed(shortest), question, why)
    else:
        draft.ask("checkpoint.interval", "1 min", question, "every minute: the log has too few checkpoints.")
    if beat.min_pause:
        draft.put("checkpoint.min-pause", _written(_rounded(beat.min_pause)), f"median pause after a checkpoint, {found}")
    expired = [point.duration_ms for point in failed if point.reason == "expired" and point.duration_ms > 0]
    if expired:
        timeout = _rounded(median(expired))
        draft.put("checkpoint.timeout", _allowed(timeout), f"trigger to expiry of {len(expired)} checkpoints")
    else:
        longest = max((point.duration_ms for point in points), default=0)
        timeout = max(ASSUMED_TIMEOUT_MS, longest)
        why = f"{_written(timeout)}: none expired{f', the longest took {longest:,} ms' if longest > 0 else ''}."
        draft.ask("checkpoint.timeout", _written(timeout), "Which execution.checkpointing.timeout is configured?", why)
    draft.ask("checkpoint.barriers", "aligned", "Are checkpoints aligned or unaligned?", "aligned, Flink's default.")


def _storage(draft: Draft, beat: TriggerRhythm, done: list[LogCheckpoint], took_ms: float) -> None:
    """The bandwidth of the storage, if barriers don't wait for data: then the storage takes all the time of a checkpoint."""
    question = "How fast does checkpoint storage write, in bytes per second?"
    size = done[-1].size_bytes if done else 0
    if beat.is_saturated or not size or not took_ms:
        draft.ask("storage.bandwidth", "100 MB/s", question, "100 MB/s: the log does not tell.")
    else:
        rate = rate_text(size / took_ms * 1000)
        why = f"{rate}: {size:,} bytes in the {took_ms:,.0f} ms that a checkpoint takes, as if one task wrote them all."
        draft.ask("storage.bandwidth", rate, question, why)


def _allowed(ms: int) -> str:
    """An interval or timeout that Flink accepts: a measured one may be too short by chance."""
    return _written(max(ms, SHORTEST_MS))


def _written(ms: int) -> str:
    return format_duration(min(ms, LONGEST_MS) * 10**6)


def _spread(values: list[int]) -> float:
    """Median absolute deviation."""
    middle = median(values)
    return median(abs(value - middle) for value in values)


def _rounded(ms: float) -> int:
    """The round number nearby, if it is within 2 %: 4998 -> 5000."""
    for unit in (60_000, 10_000, 5_000, 1_000, 500, 100, 10):
        nearest = round(ms / unit) * unit
        if nearest and abs(nearest - ms) <= ms / 50:
            return nearest
    return max(round(ms), 1)
