"""Violations of invariants, and the formatting of journal rows as their evidence."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from sim.results.journal import Entry, Happening

# ---- A violation: which invariant, when, where, what was found instead, and the journal rows that prove it.


@dataclass(frozen=True, slots=True)
class Violation:
    """A violation of an invariant by a simulated run."""

    law: str  # text of the invariant
    time_ns: int  # simulated time of the violation
    where: str  # checkpoint, task, channel or file
    fact: str  # what was found instead
    evidence: tuple[str, ...] = ()  # evidence: journal rows as sentences
    records_twice: int = 0  # number of records committed twice

    def __str__(self) -> str:
        lines = [f"{time_text(self.time_ns)}  {self.where}: {self.fact}", f"  but: {self.law}"]
        return "\n".join([*lines, *(f"    {line}" for line in self.evidence)])


def time_text(time_ns: int) -> str:
    """Format a simulated time in seconds with microseconds, for evidence."""
    return f"{time_ns / 1e9:.6f} s"


def seconds(time_ns: int) -> str:
    """Format a simulated time in seconds, with as many digits as needed."""
    return f"{time_ns / 1e9:g} s"


def milliseconds(span_ns: int) -> str:
    """Format a duration in milliseconds."""
    return f"{span_ns / 1e6:g} ms"


def number_of(count: int, noun: str) -> str:
    """Return e.g. ``1 record`` or ``3 records``."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def count_is(count: int, noun: str) -> str:
    """Return e.g. ``1 record is`` or ``3 records are``."""
    return f"{number_of(count, noun)} {'is' if count == 1 else 'are'}"


# ---- Evidence: selected rows of the journal as sentences with simulated times.

COORDINATOR = "the coordinator"
LIFE = frozenset({Happening.TRIGGERED, Happening.LAST_ACKNOWLEDGED, Happening.COMPLETED, Happening.ABORTED})
"""Kinds of rows about the progress and the end of a checkpoint, without those of single tasks."""
OF_SNAPSHOTS = frozenset(
    {
        Happening.SNAPSHOT_BEGUN,
        Happening.BARRIER_FORWARDED,
        Happening.OUTPUT_CONVERTED,
        Happening.INPUT_PRIORITISED,
        Happening.CHANNEL_STATE_WRITTEN,
    }
)
"""Kinds of rows that determine which data belongs to the snapshot of a task."""
OF_JOB = frozenset(
    {
        Happening.TASK_FAILED,
        Happening.TASK_MANAGER_LOST,
        Happening.JOB_MANAGER_LOST,
        Happening.JOB_MANAGER_ELECTED,
        Happening.DEPLOYMENT_FAILED,
        Happening.RESCALED,
        Happening.JOB_RESTARTING,
        Happening.JOB_RESTORED,
        Happening.JOB_RECOVERED,
        Happening.GIVEN_UP,
        Happening.JOB_FAILED,
        Happening.JOB_FINISHED,
        Happening.CHECKPOINTS_CHANGED,
    }
)
"""Kinds of rows about failures, restarts and the end of the job."""
_OF_TASKS = frozenset({Happening.TASK_RESTORED, Happening.END_OF_DATA, Happening.TASK_FINISHED})
EVENTS = LIFE | OF_JOB | _OF_TASKS | {Happening.REFUSED, Happening.TASK_RUNS}
"""Kinds of rows of which there are few: none about snapshots of tasks."""
_MAX_EVENTS = 8
"""Maximum rows of evidence that are not about a checkpoint."""
SENTENCES: dict[Happening, str] = {
    Happening.TRIGGERED: "{who} triggers checkpoint {n}",
    Happening.PART_KEPT: "{who} takes no part in checkpoint {n}: its part of checkpoint {number} stands for it",
    Happening.PART_REPLACED: "the region of {who} fails in checkpoint {n}: its part of checkpoint {number} replaces its own",
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
    Happening.LAST_ACKNOWLEDGED: "{who} has all acknowledgements of checkpoint {n}{detail} and writes its metadata",
    Happening.COMPLETED: "checkpoint {n} is complete",
    Happening.ABORTED: "{who} gives checkpoint {n} up: {detail}",
    Happening.CANCELLATION_FORWARDED: "{who} tells its readers that checkpoint {n} is off",
    Happening.NOTIFIED_COMPLETE: "{who} tells the tasks that checkpoint {n} is complete",
    Happening.NOTIFIED_ABORTED: "{who} tells the tasks that checkpoint {n} is off",
    Happening.NOTIFIED_FALLBACK: "{who} tells {detail} of failed regions that checkpoint {number} stands for checkpoint {n}",
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
    Happening.DEPLOYMENT_FAILED: "{who} cannot be deployed: {detail}",
    Happening.JOB_RESTORED: "restart {number} deploys its tasks with the state of checkpoint {n} (0: none, from the beginning)",
    Happening.TASK_RESTORED: "{who} has read {bytes} of state of checkpoint {n}",
    Happening.TASK_RUNS: "{who} runs again",
    Happening.JOB_RECOVERED: "all tasks run again",
    Happening.CHECKPOINTS_CHANGED: "the user changes checkpoints: {detail}",
    Happening.FAULT: "something goes wrong: {detail}",
}
"""Templates of sentences by kind of row.  Rows of other kinds are shown with the name of their kind."""


class JournalFormatter:
    """Formats journal rows as sentences.  `names`: (vertex, subtask) of each task."""

    def __init__(self, journal: Sequence[Entry], names: Sequence[tuple[str, int]]) -> None:
        self.journal = journal
        self.names = names

    def task(self, task: int) -> str:
        """Return the name of a task, e.g. ``sink[3]``.  Task -1 is the coordinator."""
        return COORDINATOR if task < 0 else f"{self.names[task][0]}[{self.names[task][1]}]"

    def evidence(
        self,
        until_ns: int,
        checkpoints: Collection[int],
        tasks: Collection[int],
        kinds: Collection[Happening] = OF_SNAPSHOTS,
    ) -> tuple[str, ...]:
        """Return the rows that show a violation at this time [ns] as sentences with their times, in order of time.

        They are the progress of the checkpoints, rows of these kinds about the tasks in them, and the latest events of the
        job and of the tasks.
        """
        rows, events = list[Entry](), list[Entry]()
        for row in self.journal:
            if row.time_ns > until_ns:
                continue
            if row.happening in OF_JOB or (row.happening in _OF_TASKS and row.task in tasks):
                events.append(row)
            elif row.checkpoint in checkpoints and (
                row.happening in LIFE or (row.happening in kinds and row.task in tasks)
            ):
                rows.append(row)
        rows = sorted(rows + events[-_MAX_EVENTS:], key=lambda row: row.time_ns)
        return tuple(f"{time_text(row.time_ns)}  {self.sentence(row)}" for row in rows)

    def sentence(self, row: Entry) -> str:
        """Return a row as a sentence without its time."""
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
    """Return the number of a row with each noun that it may count, by the placeholder in `SENTENCES`."""
    return {f"{noun}s": number_of(number, noun) for noun in ("byte", "record", "file")}
