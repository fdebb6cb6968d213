"""Violations, and the journal rows that show them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

from sim.results.journal import Entry, Happening

# ---- A violation as a value: the law, when, where, the fact instead, and the shortest story that shows it.


@dataclass(frozen=True, slots=True)
class Violation:
    """A law that a run has broken."""

    law: str  # what must hold
    time_ns: int  # when it stopped holding
    where: str  # checkpoint, task, channel or file
    fact: str  # what holds instead
    story: tuple[str, ...] = ()  # what led to it, one line each
    records_twice: int = 0  # committed twice

    def __str__(self) -> str:
        lines = [f"{time_text(self.time_ns)}  {self.where}: {self.fact}", f"  but: {self.law}"]
        return "\n".join([*lines, *(f"    {line}" for line in self.story)])


def time_text(time_ns: int) -> str:
    """A simulated time as stories show it: seconds, to the microsecond."""
    return f"{time_ns / 1e9:.6f} s"


def seconds(time_ns: int) -> str:
    """A simulated time in a fact: seconds, as many digits as it needs."""
    return f"{time_ns / 1e9:g} s"


def lasting(span_ns: int) -> str:
    """A span of simulated time: milliseconds."""
    return f"{span_ns / 1e6:g} ms"


def number_of(count: int, noun: str) -> str:
    """``1 record``, ``3 records``."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def count_is(count: int, noun: str) -> str:
    """``1 record is``, ``3 records are``."""
    return f"{number_of(count, noun)} {'is' if count == 1 else 'are'}"


# ---- Stories: selected rows of the journal, as sentences with simulated times.

COORDINATOR = "the coordinator"
FRAME = (Happening.TRIGGERED, Happening.COMPLETED)
BEGIN_AND_END = (*FRAME, Happening.ABORTED)
LIFE = (*BEGIN_AND_END, Happening.LAST_ACKNOWLEDGED)
"""What becomes of a checkpoint."""
CUTS = frozenset(
    {
        Happening.SNAPSHOT_BEGUN,
        Happening.BARRIER_FORWARDED,
        Happening.OUTPUT_CONVERTED,
        Happening.INPUT_PRIORITISED,
        Happening.CHANNEL_STATE_WRITTEN,
    }
)
"""What a task does that decides which data belongs to its snapshot."""
SENTENCES: dict[Happening, str] = {
    Happening.TRIGGERED: "{who} triggers checkpoint {n}",
    Happening.PART_KEPT: "{who} takes no part in checkpoint {n}: its part of checkpoint {number} stands for it",
    Happening.REFUSED: "{who} refuses a trigger: {detail}",
    Happening.SNAPSHOT_BEGUN: "{who} begins snapshot {n}",
    Happening.BARRIER_FORWARDED: "{who} writes barrier {n} to its outputs, overtaking {bytes}",
    Happening.OUTPUT_CONVERTED: "{who} lets barrier {n} overtake {bytes} in its outputs",
    Happening.INPUT_PRIORITISED: "{who} stops waiting for barrier {n} to come in order",
    Happening.SYNC_FINISHED: "{who} ends the synchronous part of snapshot {n}",
    Happening.INPUTS_RESUMED: "{who} reads again the channels that barrier {n} had blocked",
    Happening.STATE_WRITTEN: "{who} has written {bytes} of state for snapshot {n}",
    Happening.CHANNEL_STATE_WRITTEN: "{who} has written {bytes} of in-flight data for snapshot {n}",
    Happening.ASYNC_FINISHED: "{who} has everything of snapshot {n} on storage",
    Happening.ACKNOWLEDGED: "{who} acknowledges checkpoint {n}",
    Happening.DECLINED: "{who} declines checkpoint {n}: {detail}",
    Happening.LAST_ACKNOWLEDGED: "{who} has all acknowledgements of checkpoint {n} and writes its metadata",
    Happening.COMPLETED: "checkpoint {n} is complete",
    Happening.ABORTED: "{who} gives checkpoint {n} up: {detail}",
    Happening.CANCELLATION_FORWARDED: "{who} tells its readers that checkpoint {n} is off",
    Happening.NOTIFIED_COMPLETE: "{who} tells the tasks that checkpoint {n} is complete",
    Happening.NOTIFIED_ABORTED: "{who} tells the tasks that checkpoint {n} is off",
    Happening.COMMITTED: "{who} makes {records} visible on completion of checkpoint {n}",
    Happening.TRANSACTION_LOST: "{who} finds {records} gone: the transaction was open for too long",
    Happening.OUTPUT_DROPPED: "{who} drops {records} that it held: {detail}",
    Happening.FILE_MISSING: "{who} has committed what is not there in full: {files}",
    Happening.END_OF_DATA: "{who} has come to the end of its data ({detail})",
    Happening.TASK_FINISHED: "{who} has finished",
    Happening.JOB_FINISHED: "the job has finished",
    Happening.JOB_FAILED: "the job fails: {detail}",
    Happening.TASK_FAILED: "{who} fails: {detail}",
    Happening.TASK_MANAGER_LOST: "task manager {number} is lost",
    Happening.JOB_MANAGER_LOST: "the JobManager is lost",
    Happening.JOB_MANAGER_ELECTED: "another JobManager takes over",
    Happening.RESCALED: "the job is cancelled, to go on with another parallelism",
    Happening.GIVEN_UP: "the restart strategy gives up: {detail}",
    Happening.JOB_RESTARTING: "restart {number} begins: {detail}",
    Happening.DEPLOYMENT_FAILED: "{who} cannot be deployed: task manager {number} is gone, and the JobManager does not know it yet",
    Happening.JOB_RESTORED: "restart {number} deploys its tasks with the state of checkpoint {n} (0: none, from the beginning)",
    Happening.TASK_RESTORED: "{who} has read {bytes} of state of checkpoint {n}",
    Happening.TASK_RUNS: "{who} runs again",
    Happening.JOB_RECOVERED: "all tasks run again",
    Happening.FAULT: "something goes wrong: {detail}",
}
"""Kinds of rows without a sentence are told by their name."""


class JournalFormatter:
    """Tells stories from a journal, with the names of tasks."""

    def __init__(self, journal: Sequence[Entry], names: Sequence[tuple[str, int]]) -> None:
        self.journal = journal
        self.names = names

    def task(self, task: int) -> str:
        """``sink[3]``; the coordinator is task -1."""
        return COORDINATOR if task < 0 else f"{self.names[task][0]}[{self.names[task][1]}]"

    def story(self, chosen: Callable[[Entry], bool]) -> tuple[str, ...]:
        """The chosen rows in the order of their times."""
        return self.lines(row for row in self.journal if chosen(row))

    def about(self, checkpoint: int, tasks: Collection[int], frame: Collection[Happening] = FRAME) -> tuple[str, ...]:
        """What some tasks did for one checkpoint, between its trigger and its end."""
        return self.story(lambda row: row.checkpoint == checkpoint and (row.task in tasks or row.happening in frame))

    def cut(self, checkpoint: int, tasks: Collection[int]) -> tuple[str, ...]:
        """The story of some tasks at their cuts, and of the end of the checkpoint."""
        return self.story(
            lambda row: (
                row.checkpoint == checkpoint
                and (row.happening in FRAME or (row.task in tasks and row.happening in CUTS))
            )
        )

    def lines(self, rows: Iterable[Entry]) -> tuple[str, ...]:
        return tuple(
            f"{time_text(row.time_ns)}  {self.sentence(row)}" for row in sorted(rows, key=lambda row: row.time_ns)
        )

    def sentence(self, row: Entry) -> str:
        template = SENTENCES.get(row.happening)
        if template is not None:
            return template.format(
                who=self.task(row.task), n=row.checkpoint, number=row.number, detail=row.detail, **_counts(row.number)
            )
        checkpoint = f" (checkpoint {row.checkpoint})" if row.checkpoint >= 0 else ""
        number = f", {row.number}" if row.number else ""
        return (
            f"{self.task(row.task)}: {row.happening.value}{checkpoint}{number}{f', {row.detail}' if row.detail else ''}"
        )


def _counts(number: int) -> dict[str, str]:
    """The number of a row with each noun it may count."""
    return {f"{noun}s": number_of(number, noun) for noun in ("byte", "record", "file")}
