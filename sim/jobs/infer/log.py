"""The checkpoints of a log -> a scenario that is mostly questions.

A log tells times and sizes of checkpoints, the scheduled vertices, and the configuration of the cluster.  It tells
neither the ways of records nor their rates.  Checkpoints without a pause between them, each as late as the last, show
that barriers wait behind data.  Then the job is saturated, and the assumed workload saturates it, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from sim.jobs.infer.draft import Draft, Inference, duration_text, rate_text
from sim.jobs.infer.options import SHORTEST_MS, configured_ms, infer_options, put_restart_strategy, put_version
from sim.jobs.source.job_log import JobLog, LogCheckpoint, log_remarks, silence_of_log
from sim.jobs.source.rest_answers import operators, short_names
from sim.model.schema.flink_keys import INTERVAL
from sim.model.units import format_duration, format_size

AT_ONCE_MS = 100  # completion -> next trigger, if the coordinator does not wait
# of a saturated hop between two tasks: 10 buffers at each end (NettyShuffleEnvironmentConfiguration)
IN_FLIGHT_BYTES = 20 * 32768
RECORD_BYTES = 1000
LONGEST_MS = 10**11  # three years: a longer time means never
ASSUMED_TIMEOUT_MS = 600_000  # execution.checkpointing.timeout
MAX_RUN_MS = 3_600_000
CHECKPOINTS = 12


@dataclass(frozen=True, slots=True)
class TriggerRhythm:
    """The rhythm of periodic checkpoints [ms].  0: not seen."""

    gaps: tuple[int, ...]  # trigger -> next trigger, of checkpoints that did not expire, in one run of the job
    interval: int = 0
    free: int = 0  # number of gaps that no late checkpoint ended
    min_pause: int = 0
    at_once: int = 0  # number of gaps that ended as soon as their checkpoint was complete
    at_most: int = 0  # the shortest time to a next trigger in one run of the job, whatever became of the checkpoint

    @property
    def is_saturated(self) -> bool:
        return self.at_once * 2 > len(self.gaps) > 0


def rhythm(points: list[LogCheckpoint], runs_ms: Sequence[int] = ()) -> TriggerRhythm:
    """Similar gaps show an interval; similar rests after the checkpoints show a minimum pause.

    A restart begins a new rhythm (`runs_ms`: lines of the switches to RUNNING), and what expires holds the next trigger
    back.
    """
    in_one_run = [
        (a, b)
        for a, b in pairwise(points)
        if b.id == a.id + 1
        and a.triggered_ms >= 0
        and b.triggered_ms > a.triggered_ms
        and not any(a.line_ms < at_ms <= b.line_ms for at_ms in runs_ms)
    ]
    at_most = min((b.triggered_ms - a.triggered_ms for a, b in in_one_run), default=0)
    pairs = [(a, b) for a, b in in_one_run if not a.is_expired]
    gaps = tuple(b.triggered_ms - a.triggered_ms for a, b in pairs)
    rests = [gap - a.duration_ms for gap, (a, _) in zip(gaps, pairs, strict=True) if a.duration_ms >= 0]
    at_once = sum(rest < AT_ONCE_MS for rest in rests)
    if not gaps or at_once * 2 > len(gaps):
        return TriggerRhythm(gaps, at_once=at_once, at_most=at_most)
    free = [gap for gap, (a, _) in zip(gaps, pairs, strict=True) if gap - max(a.duration_ms, 0) >= AT_ONCE_MS]
    if len(rests) >= 3 and _spread(rests) < _spread(free) / 2:
        return TriggerRhythm(gaps, min_pause=round(median(rests)), at_once=at_once, at_most=at_most)
    return TriggerRhythm(gaps, _rounded(median(free)), len(free), at_once=at_once, at_most=at_most)


def infer_log(log: JobLog) -> Inference:
    """The scenario of a log.  It runs, on assumptions that it names."""
    draft = Draft()
    draft.put("version", 1)
    points = [point for _, point in sorted(log.checkpoints.items()) if not point.is_savepoint]
    done = [point for point in points if point.status == "COMPLETED"]
    failed = [point for point in points if point.status == "FAILED"]
    beat = rhythm(points, log.runs_ms)
    took_ms = median(max(point.duration_ms, 0) for point in done) if done else 0
    draft.head.append(f"Imported from the log {log.source}, job {log.job}: a log tells of checkpoints, not of records.")
    counts = f"{len(done)} completed, {len(failed)} failed, {len(log.refusals)} refused, {log.restored} restores"
    durations = (
        f"; median duration {took_ms:,.0f} ms, longest {max(point.duration_ms for point in done):,} ms" if done else ""
    )
    draft.head.append(f"Checkpoints: {counts}{durations}.")
    if (silence := silence_of_log(log)) is not None:
        draft.head += silence.sentences()
    draft.head += log_remarks(log)
    _job(draft, log, beat, done, took_ms)
    interval_ms = _checkpoint(draft, log, beat, points)
    put_version(draft, log.version, f"version {log.version} in the log")
    infer_options(draft, log.options, log.version)
    put_restart_strategy(draft, log.strategy, "strategy that the log names")
    _storage(draft, beat, done, took_ms)
    each_ms = max(interval_ms, beat.min_pause + round(took_ms), 5_000)
    draft.put("run.duration", format_duration(min(max(CHECKPOINTS * each_ms, 60_000), MAX_RUN_MS) * 10**6))
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
            rate, why = (
                ("unlimited", "its checkpoints wait behind data") if beat.is_saturated else ("1k/s", "nothing tells")
            )
            draft.ask("source.rate", rate, "How many records per second arrive?", f"{rate}: {why}.", job=name)
            draft.ask(
                "source.record", format_size(RECORD_BYTES), "How large are its records on the wire?", "1 kB.", job=name
            )
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
        why = "checkpoints have pauses" if beat.gaps else "nothing tells"
        draft.ask("service", "1 us", "How long does one record keep it busy?", f"next to nothing: {why}.", job=last)
    if done and done[-1].size_bytes > 0:
        size = format_size(done[-1].size_bytes)
        kept = f"all of the {size} of checkpoint {done[-1].id} is kept here."
        draft.ask("state.size", size, "Which vertices keep how much of the state?", kept, job=last)


def _checkpoint(draft: Draft, log: JobLog, beat: TriggerRhythm, points: list[LogCheckpoint]) -> int:
    """Set `checkpoint:`; returns the interval, or what is assumed of it [ms].  0: only that it is short, or nothing."""
    delays = [_rounded(delay) for delay in _first_delays(log, points)]
    found = f"{len(beat.gaps)} gaps between triggers"
    question = f"Which {INTERVAL} is configured?"
    configured = configured_ms(log.options, INTERVAL)
    if beat.interval:
        gaps = f"{beat.free} gap{'s' * (beat.free != 1)} between triggers"
        draft.put("checkpoint.interval", _allowed(beat.interval), f"median of {gaps} that no late checkpoint ended")
    elif configured:
        draft.put(
            "checkpoint.interval",
            _allowed(configured),
            "in the configuration of the cluster; the program may set another",
        )
    elif beat.gaps:
        shortest = _rounded(min(beat.gaps))
        what = "checkpoints follow one another at once" if beat.is_saturated else "a pause follows each checkpoint"
        why = f"the shortest of {found}: {what}, so it is no longer."
        draft.ask("checkpoint.interval", _allowed(shortest), question, why)
    elif delays:
        longest = max(delays)
        most = f", and no longer than {_written(_rounded(beat.at_most))}" if beat.at_most >= longest else ""
        runs = "once" if len(delays) == 1 else f"{len(delays)} times"
        why = (
            f"the longest time from RUNNING to the first trigger, seen {runs}. Flink draws it at random up to the interval, which is no "
            f"shorter{most}: the log shows no two triggers in one run with a checkpoint between them that did not expire."
        )
        draft.ask("checkpoint.interval", _allowed(longest), question, why)
    elif beat.at_most:
        why = "the shortest time between two triggers: it is no longer."
        draft.ask("checkpoint.interval", _allowed(_rounded(beat.at_most)), question, why)
    else:
        draft.ask("checkpoint.interval", "1 min", question, "every minute: the log has too few checkpoints.")
    if beat.min_pause:
        draft.put(
            "checkpoint.min-pause", _written(_rounded(beat.min_pause)), f"median pause after a checkpoint, {found}"
        )
    if log.tolerable is not None:
        count = log.tolerable + 1
        what = "the first failed checkpoint" if count == 1 else f"the failed checkpoint no. {count} in a row"
        draft.put("checkpoint.tolerable-failed", log.tolerable, f"{what} failed the job, {log.intolerable} times")
    expired = [point.duration_ms for point in points if point.is_expired and point.duration_ms > 0]
    if expired:
        timeout = _rounded(median(expired))
        draft.put("checkpoint.timeout", _allowed(timeout), f"trigger to expiry of {len(expired)} checkpoints")
    else:
        longest = max((point.duration_ms for point in points), default=0)
        timeout = max(ASSUMED_TIMEOUT_MS, longest)
        why = f"{_written(timeout)}: none expired{f', the longest took {longest:,} ms' if longest > 0 else ''}."
        draft.ask("checkpoint.timeout", _written(timeout), "Which execution.checkpointing.timeout is configured?", why)
    draft.ask("checkpoint.barriers", "aligned", "Are checkpoints aligned or unaligned?", "aligned, Flink's default.")
    return beat.interval or configured or (0 if beat.gaps else max(delays, default=beat.at_most))


def _first_delays(log: JobLog, points: list[LogCheckpoint]) -> Iterator[int]:
    """From each switch to RUNNING to the first trigger behind it [ms] (CheckpointCoordinator#getRandomInitDelay)."""
    for begin_ms, end_ms in pairwise([*log.runs_ms, log.ended_ms + 1]):
        times = [point.line_ms for point in points if 0 <= begin_ms <= point.line_ms < end_ms]
        if times and min(times) > begin_ms:
            yield min(times) - begin_ms


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
