"""A stretch at the end of a history in which a job runs and completes no checkpoint: since when, why, and what to look at.

completed   completed   refused   refused   refused   end of the log, or the moment that the REST API answers for
----|-----------|----------x---------x---------x------|
                <------------- silence -------------->
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby, pairwise
from statistics import median

from sim.foreign import one_line
from sim.recordings.source.job_log import DAY_MS, ENDED, JobLog, LogRefusal
from sim.recordings.source.recorded_job import RecordedCheckpoint

LONG = 3
"""A job is silent if it completes none for so many times its usual gap."""
_STORAGE = "Checkpoint storage could not be written: look at its address and access rights"
_WHAT_TO_DO = (
    ("tasks are currently running", "Look at why tasks do not run (slots, a restart loop, their last exception), not at checkpoints"),
    ("minimum time between", "The pause is as configured (execution.checkpointing.min-pause): no fault by itself"),
    ("maximum number of concurrent", "As many are under way as max-concurrent-checkpoints allows: look at what holds them"),
    ("queued", "Requests wait for a checkpoint that does not end: look at what holds it"),
    (
        "expired",
        "They take longer than execution.checkpointing.timeout; answers of the REST API tell where: `ckptsim explain http://HOST:8081`",
    ),
    ("declined", "A task declined: the log of its TaskManager says why"),
    ("IO-problem", _STORAGE),
    ("IOException", _STORAGE),
    ("task checkpoint failed", "A task could not write its state: the log of its TaskManager says why"),
    ("finished", "Tasks have ended: execution.checkpointing.checkpoints-after-tasks-finish allows checkpoints then"),
    ("scheduler is shut down", "The job stops or restarts: look at its state"),
    ("has failed", "Look at the exceptions of the job"),
)
"""(part of Flink's reason, what to look at); messages of CheckpointFailureReason, 1.9 to 2.3."""


@dataclass(frozen=True, slots=True)
class Silence:
    """A stretch without a completed checkpoint that lasts to the end of what is known."""

    since: str  # a time of the source's clock, and what was then
    lasts_ms: int
    is_whole: bool  # no checkpoint completed before, either
    refusals: tuple[LogRefusal, ...]
    failed: tuple[str, ...]  # reasons of checkpoints that failed
    intolerable: int = 0  # restarts because too many failed
    end: str = "the end of the log"

    def sentences(self) -> Iterator[str]:
        """First what is silent, then why, then what to look at."""
        begun = f" since {self.since}" if self.since else ""
        until = f": {_about(self.lasts_ms)} to {self.end}" if self.lasts_ms >= 1000 else ""
        yield f"No checkpoint has completed{begun}{until}."
        reasons = list[str]()
        for reason, count in Counter(refusal.reason for refusal in self.refusals).most_common():
            alike = [refusal for refusal in self.refusals if refusal.reason == reason]
            first = _clock(alike[0].line_ms)
            times = "" if alike[0].line_ms < 0 else f" from {first} on" if count > 1 else f" at {first}"
            why = one_line(reason, 160) or "the log gives no reason"
            yield f"{count} trigger{'s were' if count > 1 else ' was'} refused{times}: {why}."
            tasks = Counter(refusal.task for refusal in alike if refusal.task)
            if tasks:
                named = ", ".join(f"'{one_line(task, 120)}'" for task, _ in tasks.most_common(2))
                more = f" and {len(tasks) - 2} more" if len(tasks) > 2 else ""
                yield f"The task that did not run: {named}{more}."
            reasons.append(reason)
        for reason, count in Counter(self.failed).most_common(3):
            yield f"{count} checkpoint{'s' if count > 1 else ''} failed: {one_line(reason, 160) or 'no reason is known'}."
            reasons.append(reason)
        if self.intolerable:
            times = "once" if self.intolerable == 1 else f"{self.intolerable} times"
            yield f"The job failed {times}: more checkpoints failed in a row than it tolerates."
        yield from where_to_look(reasons)


def where_to_look(reasons: Sequence[str]) -> Iterator[str]:
    """What checkpoints that failed for these reasons, in Flink's words, ask for; two sentences at most."""
    advice = [what for part, what in _WHAT_TO_DO if any(part.lower() in reason.lower() for reason in reasons)]
    yield from (f"{what}." for what in advice[:2])


def silence_of_log(log: JobLog) -> Silence | None:
    """None: the job has ended, or completes checkpoints as often as it did."""
    is_whole = not any(point.status == "COMPLETED" for point in log.checkpoints.values())
    since_ms = log.running_ms if is_whole else log.completed_ms
    refusals = [refusal for refusal in log.refusals if is_whole or refusal.line_ms > log.completed_ms]
    points = [point for _, point in sorted(log.checkpoints.items())]
    last = max((point.id for point in points if point.status == "COMPLETED"), default=-1)
    failed = [point.reason for point in points if point.status == "FAILED" and point.id > last and not point.is_savepoint]
    begun = "the job began to run at " if is_whole else ""
    if is_whole and since_ms < 0:
        begun = "the first line about them at "
        times = [*(refusal.line_ms for refusal in refusals), *(point.line_ms for point in points)]
        since_ms = min((at for at in times if at >= 0), default=-1)
    lasts_ms = log.ended_ms - since_ms if 0 <= since_ms <= log.ended_ms else 0
    triggers = [point.triggered_ms for point in points if point.triggered_ms >= 0]
    longest_ms = max((point.duration_ms for point in points if point.status == "COMPLETED"), default=0)
    if log.state in ENDED or not _is_silent(lasts_ms, triggers, longest_ms, len(refusals) + len(failed), is_whole=is_whole):
        return None
    return Silence(
        f"{begun}{_clock(since_ms)}" if since_ms >= 0 else "", lasts_ms, is_whole, tuple(refusals), tuple(failed), log.intolerable
    )


def log_remarks(log: JobLog) -> Iterator[str]:
    """What its failures mean: those in a row, and restarts without a checkpoint."""
    yield from _failures_apart(log)
    yield from _fresh_restarts(log)


def _failures_apart(log: JobLog) -> Iterator[str]:
    """That failures which did not follow each other do not add up."""
    points = [point for _, point in sorted(log.checkpoints.items())]
    over = [point for point in points if point.status == "COMPLETED" or (point.status == "FAILED" and not point.is_savepoint)]
    stretches = [[point.id for point in own] for failed, own in groupby(over, lambda point: point.status == "FAILED") if failed]
    if len(stretches) < 2:
        return
    longest = max(stretches, key=len)
    ids = f"{longest[0]}" if len(longest) == 1 else f"{longest[0]} to {longest[-1]}"
    yield (
        f"{sum(map(len, stretches))} checkpoints failed, at most {len(longest)} in a row ({ids}). Flink compares the failures in a row "
        "with execution.checkpointing.tolerable-failed-checkpoints: a completed checkpoint sets their count to 0."
    )


def _fresh_restarts(log: JobLog) -> Iterator[str]:
    """What restarts without a checkpoint mean."""
    if count := log.fresh_restarts:
        restarts = "1 restart" if count == 1 else f"{count} restarts"
        yield (
            f"{restarts} found no checkpoint to restore: the job began again with empty state, and its sources where they begin without a "
            "position. Each time the records before are read again, and sinks that neither replace rows by key nor commit with checkpoints "
            "get them once more."
        )


def silence_of_job(points: Sequence[RecordedCheckpoint], now_ms: int, interval_ms: int) -> Silence | None:
    """Of a running job, by its REST API.  None: it completes checkpoints as often as it should."""
    done = [point for point in points if point.status == "COMPLETED" and point.end_to_end_duration >= 0]
    if not points or now_ms < 0:
        return None
    ends = [point.trigger_timestamp + point.end_to_end_duration for point in done]
    since_ms = max(ends, default=points[0].trigger_timestamp)
    failed = [point.failure_message for point in points if point.status == "FAILED" and point.trigger_timestamp >= since_ms]
    triggers = [point.trigger_timestamp for point in points] if interval_ms <= 0 else [0, interval_ms]
    longest_ms = max((point.end_to_end_duration for point in done), default=0)
    if not _is_silent(now_ms - since_ms, triggers, longest_ms, len(failed), is_whole=not done):
        return None
    begun = "" if done else "the first one that is known, at "
    return Silence(f"{begun}{_clock(since_ms)}", now_ms - since_ms, not done, (), tuple(failed), end="the time of the answers")


def _is_silent(lasts_ms: int, triggers: Sequence[int], longest_ms: int, given_up: int, *, is_whole: bool) -> bool:
    gaps = [after - before for before, after in pairwise(triggers) if after > before]
    usual_ms = max(median(gaps) if gaps else 0, longest_ms)
    return (is_whole and given_up > 0) or given_up > 1 or (0 < usual_ms * LONG < lasts_ms)


def _about(lasts_ms: int) -> str:
    unit, name = next((unit, name) for unit, name in _UNITS if lasts_ms >= 2 * unit or unit == 1000)
    return f"{lasts_ms / unit:.3g} {name}"


_UNITS = ((DAY_MS, "d"), (3_600_000, "h"), (60_000, "min"), (1000, "s"))


def _clock(at_ms: int) -> str:
    """A time of a line; a log without dates has the first days of 1970."""
    at = datetime.fromtimestamp(max(at_ms, 0) / 1000, UTC)
    return f"{at:%H:%M:%S}" if at_ms < 365 * DAY_MS else f"{at:%Y-%m-%d %H:%M:%S}"
