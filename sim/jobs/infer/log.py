"""Infer a scenario from a JobManager log.  Most of its values are assumptions with questions.

A log contains times and sizes of checkpoints, the scheduled vertices, and the configuration of the cluster, but neither
the edges of the job graph nor record rates.  If each checkpoint is triggered as soon as the one before completes,
barriers queue behind records, unless durations follow the sizes, or are those of slow uploads.  Then the job is saturated, and the assumed workload
saturates it, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from sim.jobs.infer.draft import Draft, duration_3_digits, format_whole_ms, rate_3_digits
from sim.jobs.infer.options import (
    CHECKPOINTS_PER_RUN,
    MIN_INTERVAL_MS,
    MIN_PAUSE,
    TIMEOUT,
    TOLERABLE,
    ask_for_barriers,
    ask_for_timeout,
    configured_ms,
    infer_options,
    put_version,
    run_ns,
)
from sim.jobs.infer.state import TTL, ask_for_update, infer_growth, put_backend
from sim.jobs.infer.storage import MAX_PHASES_FOR_LINE, AsyncPhase, FittedLine, fit_async_phases
from sim.jobs.source.job_log import JobLog, LogCheckpoint, log_remarks, silence_of_log
from sim.jobs.source.recorded_job import ImportedScenario
from sim.jobs.source.rest_answers import operators, short_names
from sim.model.schema.flink_keys import INTERVAL
from sim.model.text import one_line
from sim.model.units import format_duration, format_size

MAX_IMMEDIATE_TRIGGER_MS = 100  # completion -> next trigger, if the next checkpoint was due
# In flight between two tasks under back-pressure: 10 buffers at each end (NettyShuffleEnvironmentConfiguration).
IN_FLIGHT_BYTES = 20 * 32768
RECORD_BYTES = 1000  # assumed
MIN_UPLOAD_BYTES_PER_MS = 10_000  # checkpoints that write at least so much may be slow because of their bytes
NEVER_MS = 10**11  # three years; longer durations are "never"
MEASURED_SETTINGS = {"timeout": TIMEOUT, "min-pause": MIN_PAUSE, "tolerable-failed": TOLERABLE}
"""Keys of `checkpoint` -> options.  A value from the checkpoints of the log replaces the configured one."""
RECORDS_PER_SECOND = 1000  # assumed
LATEST_CHECKPOINTS = 5  # number of checkpoints for a median size


@dataclass(frozen=True, slots=True)
class TriggerRhythm:
    """The trigger times of periodic checkpoints [ms].  0 means unknown."""

    gaps: tuple[int, ...]  # trigger -> next trigger, without expired checkpoints and restarts in between
    interval: int = 0
    on_time: int = 0  # number of gaps whose checkpoint completed before the next one was due
    min_pause: int = 0
    immediate: int = 0  # number of gaps that ended when their checkpoint completed
    at_most: int = 0  # upper bound of the interval: the shortest gap, including expired checkpoints

    @property
    def is_saturated(self) -> bool:
        """Whether most checkpoints were triggered as soon as the one before had completed."""
        return self.immediate * 2 > len(self.gaps) > 0


def infer_trigger_rhythm(points: list[LogCheckpoint], runs_ms: Sequence[int] = ()) -> TriggerRhythm:
    """Infer the interval or the minimum pause of periodic checkpoints: the one of the two whose observed values vary less.

    `runs_ms` are the times of switches to RUNNING.  Gaps across a restart, and gaps after an expired checkpoint, which
    delays the next trigger, are left out.
    """
    in_one_run = [
        (a, b)
        for a, b in pairwise(points)
        if b.id == a.id + 1
        and a.trigger_timestamp >= 0
        and b.trigger_timestamp > a.trigger_timestamp
        and not (a.is_requested or b.is_requested)
        and not any(a.line_ms < running_ms <= b.line_ms for running_ms in runs_ms)
    ]
    at_most = min((b.trigger_timestamp - a.trigger_timestamp for a, b in in_one_run), default=0)
    pairs = [(a, b) for a, b in in_one_run if not a.is_expired]
    gaps = tuple(b.trigger_timestamp - a.trigger_timestamp for a, b in pairs)
    pauses = [
        gap - a.end_to_end_duration for gap, (a, _) in zip(gaps, pairs, strict=True) if a.end_to_end_duration >= 0
    ]
    immediate = sum(pause < MAX_IMMEDIATE_TRIGGER_MS for pause in pauses)
    if not gaps or immediate * 2 > len(gaps):
        return TriggerRhythm(gaps, immediate=immediate, at_most=at_most)
    on_time = [
        gap
        for gap, (a, _) in zip(gaps, pairs, strict=True)
        if gap - max(a.end_to_end_duration, 0) >= MAX_IMMEDIATE_TRIGGER_MS
    ]
    if len(pauses) >= 3 and _spread(pauses) < _spread(on_time) / 2:
        return TriggerRhythm(gaps, min_pause=round(median(pauses)), immediate=immediate, at_most=at_most)
    return TriggerRhythm(gaps, _round_nearby(median(on_time)), len(on_time), immediate=immediate, at_most=at_most)


def infer_state_size(done: Sequence[LogCheckpoint]) -> tuple[int, str]:
    """Return (median size of the latest completed checkpoints [bytes], origin as text): some jobs have single larger ones.

    The size is 0 without any.
    """
    latest = sorted(point.state_size for point in done[-LATEST_CHECKPOINTS:])
    if len(latest) < 2:
        return sum(latest), ""
    return latest[(len(latest) - 1) // 2], f", the median of the last {len(latest)} checkpoints"


def infer_log(log: JobLog) -> ImportedScenario:
    """Infer the scenario of a log.  It can be run; its comments name the assumptions."""
    draft = Draft()
    draft.put("version", 1)
    points = [point for _, point in sorted(log.checkpoints.items()) if not point.is_savepoint]
    done = [point for point in points if point.status == "COMPLETED"]
    failed = [point for point in points if point.status == "FAILED"]
    rhythm = infer_trigger_rhythm(points, log.runs_ms)
    took_ms = median(max(point.end_to_end_duration, 0) for point in done) if done else 0
    state_bytes, state_origin = infer_state_size(done)
    line = fit_async_phases(
        [AsyncPhase(point.state_size, point.end_to_end_duration) for point in done if point.end_to_end_duration > 0]
    )
    # With a latency of more than half of the duration, something else than bytes decides.
    by_bytes = (line and line.is_significant and line.latency_ms < took_ms / 2) or (
        done and state_bytes >= MIN_UPLOAD_BYTES_PER_MS * took_ms
    )
    saturated = rhythm.is_saturated and not by_bytes
    draft.remark(f"Imported from the log {log.source}, job {log.job}: a log contains checkpoints, not record rates.")
    counts = f"{len(done)} completed, {len(failed)} failed, {len(log.refusals)} refused, {len(log.restores)} restores"
    durations = (
        f"; median duration {took_ms:,.0f} ms, longest {max(point.end_to_end_duration for point in done):,} ms"
        if done
        else ""
    )
    draft.remark(f"Checkpoints: {counts}{durations}.")
    if log.strategy:
        draft.remark(f"Its restart strategy is {one_line(log.strategy, 160)}: `flink:` may set it.")
    if (silence := silence_of_log(log)) is not None:
        draft.header_lines += silence.sentences()
    draft.header_lines += log_remarks(log)
    grows = _job(draft, log, rhythm, state_bytes, state_origin, took_ms, line, saturated=saturated)
    interval_ms = _checkpoint(draft, log, rhythm, points)
    put_version(draft, log.version, f"version {log.version} in the log")
    measured = {option for key, option in MEASURED_SETTINGS.items() if key in draft.document["checkpoint"]}
    infer_options(
        draft, log.options, log.version, {INTERVAL, TTL, "state.backend.type", "parallelism.default"} | measured
    )
    _storage(draft, done, state_bytes, took_ms, line, saturated=saturated)
    each_ms = max(interval_ms, rhythm.min_pause + round(took_ms), 5_000)
    count = max(CHECKPOINTS_PER_RUN, len(points) * grows)  # the run begins where the log does
    draft.put("run.duration", format_duration(run_ns(each_ms, count)))
    return draft.finish("How would the job of this log checkpoint with other settings?")


def _job(
    draft: Draft,
    log: JobLog,
    rhythm: TriggerRhythm,
    state_bytes: int,
    state_origin: str,
    took_ms: float,
    line: FittedLine | None,
    *,
    saturated: bool,
) -> bool:
    """Set `job:`: the vertices of the log as a linear graph, or a source and an operator if the log has none.

    Returns whether the state grows.
    """
    is_scheduled, vertices, options = len(log.vertices) > 1, log.vertices, log.options
    if not is_scheduled:
        default = options.get("parallelism.default", "")
        parallelism = next(iter(vertices.values()), int(default) if default.isdecimal() else 1)
        vertices = dict.fromkeys(("Source: source", "operator"), parallelism)
    names = short_names(list(vertices))
    unread: list[str] = []
    per_second = 0.0
    for (vertex, parallelism), name in zip(vertices.items(), names, strict=True):
        section = draft.vertex(name)
        section.remark(f"chain: {' -> '.join(operators(vertex))}" if is_scheduled else "assumed")
        reads = [] if vertex.startswith("Source") or not unread else unread
        for upstream in reads:
            question = "What does it read, and how are records sent?"
            section.ask(f"input.{upstream}", "hash", question, "the vertex before it in the log, by key.")
        unread = [*([] if reads else unread), name]
        if not reads:
            per_second += RECORDS_PER_SECOND
            rate, why = (
                ("unlimited", "its barriers queue behind records") if saturated else ("1k/s", "the log does not tell")
            )
            section.ask("source.rate", rate, "How many records per second arrive?", f"{rate}: {why}.")
            section.ask("source.record", format_size(RECORD_BYTES), "How large are its records on the wire?", "1 kB.")
        if is_scheduled:
            section.put("parallelism", parallelism, "subtasks scheduled in the log")
        else:
            section.ask("parallelism", parallelism, "What is its parallelism?", f"{parallelism}.")
    last = draft.vertex(names[-1])
    if saturated:
        hops = max(len(names) - 1, 1)
        service_ns = max(min(took_ms, NEVER_MS) * 1e6 * RECORD_BYTES / (IN_FLIGHT_BYTES * hops), 1)
        service, per_second = duration_3_digits(service_ns), vertices[[*vertices][-1]] * 1e9 / service_ns
        why = (
            f"so long that a barrier takes {took_ms:,.0f} ms behind {IN_FLIGHT_BYTES:,} bytes on each of {hops} edges."
        )
        last.ask("service", service, "How long does one record keep the slowest operator busy?", why)
    else:
        why = "there are pauses between checkpoints" if rhythm.gaps else "the log does not tell"
        why = "the bytes explain how long checkpoints take" if rhythm.is_saturated else why
        last.ask("service", "1 us", "How long does one record keep it busy?", f"1 us: {why}.")
    question = "Which vertices keep how much of the state?"
    if line is None or line.is_significant:  # otherwise checkpoints do not write what the state grows by
        completed = [point for point in log.recorded if point.status == "COMPLETED" and not point.is_savepoint]
        sizes = [(point, point.state_size) for point in completed[:: len(completed) // MAX_PHASES_FOR_LINE + 1]]
        infer_growth(last, log.options, sizes, per_second)
    if grows := "state" in last.values:
        last.add_question("state.size", question, "this vertex has all of it.")
    elif state_bytes > 0:
        size = format_size(state_bytes)
        last.ask("state.size", size, question, f"this vertex has all of the {size}{state_origin}.")
    if "state" in last.values:
        put_backend(last, options.get("state.backend.type"), "hashmap, Flink's default.")
        if grows and last.values["state"]["backend"] == "hashmap":
            ask_for_update(last, None, per_second * median(rhythm.gaps or (0,)) / 1000, completed[-1].state_size)
    return grows


def _checkpoint(draft: Draft, log: JobLog, rhythm: TriggerRhythm, points: list[LogCheckpoint]) -> int:
    """Set `checkpoint:`.  Returns the interval or an assumption [ms], or 0 if it is unknown or only known to be short."""
    delays = [_round_nearby(delay) for delay in _first_delays(log, points)]
    gaps_text = f"{len(rhythm.gaps)} gaps between triggers"
    options, configured = log.options, configured_ms(log.options, INTERVAL)
    origin = ""  # empty: the interval is assumed
    if rhythm.interval:
        interval_ms, gaps = rhythm.interval, f"{rhythm.on_time} gap{'s' * (rhythm.on_time != 1)} between triggers"
        origin = f"median of {gaps} without a late checkpoint"
    elif configured:
        interval_ms, origin = configured, "in the configuration of the cluster; the program may set another"
    elif rhythm.gaps:
        at_once = "each is triggered as soon as the one before completes"
        rhythm_text = at_once if rhythm.is_saturated else "a pause follows each checkpoint"
        interval_ms = _round_nearby(min(rhythm.gaps))
        why = f"the shortest of {gaps_text}: {rhythm_text}, so the interval is not longer."
    elif delays:
        interval_ms, at_most = max(delays), _duration_text(_round_nearby(rhythm.at_most))
        most = f" and at most {at_most}" if rhythm.at_most >= interval_ms else ""
        runs = "once" if len(delays) == 1 else f"{len(delays)} times"
        why = (
            f"the longest time from RUNNING to the first trigger, observed {runs}. Flink chooses it at random up to the interval, so the "
            f"interval is at least that long{most}. The log does not contain two periodic triggers between which no checkpoint expired."
        )
    elif rhythm.at_most:
        interval_ms = _round_nearby(rhythm.at_most)
        why = "the shortest time between two triggers: the interval is not longer."
    else:
        interval_ms, why = 60_000, "every minute: the log has too few periodic checkpoints."
    interval = _duration_text(max(interval_ms, MIN_INTERVAL_MS))
    if origin:
        draft.put("checkpoint.interval", interval, origin)
    else:
        draft.ask("checkpoint.interval", interval, f"Which {INTERVAL} is configured?", why)
    if rhythm.min_pause:
        pause = _duration_text(_round_nearby(rhythm.min_pause))
        draft.put("checkpoint.min-pause", pause, f"median pause after a checkpoint, {gaps_text}")
    if log.tolerable is not None:
        count = log.tolerable + 1
        rhythm_text = "the first failed checkpoint" if count == 1 else f"the failed checkpoint no. {count} in a row"
        draft.put(
            "checkpoint.tolerable-failed", log.tolerable, f"{rhythm_text} failed the job, {len(log.exceeding)} times"
        )
    expired = [point.end_to_end_duration for point in points if point.is_expired and point.end_to_end_duration > 0]
    if expired:
        timeout = _duration_text(max(_round_nearby(median(expired)), MIN_INTERVAL_MS))
        draft.put("checkpoint.timeout", timeout, f"trigger to expiry of {len(expired)} checkpoints")
    else:
        ask_for_timeout(draft, options, max((point.end_to_end_duration for point in points), default=0))
    ask_for_barriers(draft, options, "aligned, Flink's default.")
    return rhythm.interval or configured or (0 if rhythm.gaps else max(delays, default=rhythm.at_most))


def _first_delays(log: JobLog, points: list[LogCheckpoint]) -> Iterator[int]:
    """Yield the time from each switch to RUNNING to the first trigger [ms] (CheckpointCoordinator#getRandomInitDelay)."""
    for begin_ms, end_ms in pairwise([*log.runs_ms, log.ended_ms + 1]):
        first = min(
            (point for point in points if 0 <= begin_ms <= point.line_ms < end_ms),
            key=lambda point: point.line_ms,
            default=None,
        )
        if first is not None and first.line_ms > begin_ms and not first.is_requested:
            yield first.line_ms - begin_ms


def _storage(
    draft: Draft,
    done: list[LogCheckpoint],
    size: int,
    took_ms: float,
    line: FittedLine | None,
    *,
    saturated: bool,
) -> None:
    """Set the storage bandwidth.  If barriers do not queue behind records, a checkpoint's duration is the time of its upload."""
    question = "How fast does checkpoint storage write, in bytes per second?"
    if saturated or not size or not took_ms:
        draft.ask("storage.bandwidth", "100 MB/s", question, "100 MB/s: the log does not tell.")
        return
    written = f"bytes and duration of the same of {len(done)} checkpoints"
    if line is None:
        per_ms = median(point.state_size / max(point.end_to_end_duration, 1) for point in done)
        why = f"median of {written}"
    elif line.is_significant:
        per_ms, why = line.bytes_per_ms, f"line (Theil-Sen) through {written}"
        draft.put("storage.file-latency", format_whole_ms(line.latency_ms), "intercept of that line")
    else:
        per_ms = size / took_ms
        why = f"{size:,} bytes in the {took_ms:,.0f} ms of a checkpoint; durations do not follow the sizes"
    rate = rate_3_digits(per_ms * 1000)
    draft.ask("storage.bandwidth", rate, question, f"{rate}: {why}, if one task writes all of them.")


def _duration_text(ms: int) -> str:
    return format_whole_ms(min(ms, NEVER_MS))


def _spread(values: list[int]) -> float:
    """Return the median absolute deviation."""
    middle = median(values)
    return median(abs(value - middle) for value in values)


def _round_nearby(ms: float) -> int:
    """Return a round number within 2 % of a duration if there is one, for example 5000 for 4998."""
    for unit in (60_000, 10_000, 5_000, 1_000, 500, 100, 10):
        nearest = round(ms / unit) * unit
        if nearest and abs(nearest - ms) <= ms / 50:
            return nearest
    return max(round(ms), 1)
