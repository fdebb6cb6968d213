"""Violations of invariants, and the formatting of journal rows as their evidence."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from sim.model.frozen import frozen
from sim.results.journal import Entry, EventType

# ---- A violation: which invariant, when, where, what was found instead, and the journal rows that prove it.


@frozen
class Violation:
    """A violation of an invariant by a simulated run."""

    invariant: str  # its text
    time_ns: int  # simulated time of the violation
    where: str  # checkpoint, task, channel or file
    fact: str  # what was found instead
    evidence: tuple[str, ...] = ()  # evidence: journal rows as sentences
    records_twice: int = 0  # number of records committed twice

    def __str__(self) -> str:
        lines = [f"{time_text(self.time_ns)}  {self.where}: {self.fact}", f"  but: {self.invariant}"]
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
LIFE = frozenset({EventType.TRIGGERED, EventType.LAST_ACKNOWLEDGED, EventType.COMPLETED, EventType.ABORTED})
"""Kinds of rows about the progress and the end of a checkpoint, without those of single tasks."""
OF_SNAPSHOTS = frozenset(
    {
        EventType.SNAPSHOT_BEGUN,
        EventType.BARRIER_FORWARDED,
        EventType.OUTPUT_CONVERTED,
        EventType.INPUT_PRIORITISED,
        EventType.CHANNEL_STATE_WRITTEN,
    }
)
"""Kinds of rows that determine which data belongs to the snapshot of a task."""
OF_JOB = frozenset(
    {
        EventType.TASK_FAILED,
        EventType.TASK_MANAGER_LOST,
        EventType.JOB_MANAGER_LOST,
        EventType.JOB_MANAGER_ELECTED,
        EventType.DEPLOYMENT_FAILED,
        EventType.RESCALED,
        EventType.JOB_RESTARTING,
        EventType.JOB_RESTORED,
        EventType.JOB_RECOVERED,
        EventType.GIVEN_UP,
        EventType.JOB_FAILED,
        EventType.JOB_FINISHED,
        EventType.CHECKPOINTS_CHANGED,
    }
)
"""Kinds of rows about failures, restarts and the end of the job."""
_OF_TASKS = frozenset({EventType.TASK_RESTORED, EventType.END_OF_DATA, EventType.TASK_FINISHED})
EVENTS = LIFE | OF_JOB | _OF_TASKS | {EventType.REFUSED, EventType.TASK_RUNS}
"""Kinds of rows of which there are few: none about snapshots of tasks."""
_MAX_EVENTS = 8
"""Maximum rows of evidence that are not about a checkpoint."""


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
        kinds: Collection[EventType] = OF_SNAPSHOTS,
    ) -> tuple[str, ...]:
        """Return the rows that show a violation at this time [ns] as sentences with their times, in order of time.

        They are the progress of the checkpoints, rows of these kinds about the tasks in them, and the latest events of the
        job and of the tasks.
        """
        rows, events = list[Entry](), list[Entry]()
        for row in self.journal:
            if row.time_ns > until_ns:
                continue
            if row.event_type in OF_JOB or (row.event_type in _OF_TASKS and row.task in tasks):
                events.append(row)
            elif row.checkpoint in checkpoints and (
                row.event_type in LIFE or (row.event_type in kinds and row.task in tasks)
            ):
                rows.append(row)
        rows = sorted(rows + events[-_MAX_EVENTS:], key=lambda row: row.time_ns)
        return tuple(f"{time_text(row.time_ns)}  {self.sentence(row)}" for row in rows)

    def sentence(self, row: Entry) -> str:
        """Return a row as a sentence without its time."""
        template = row.event_type.sentence
        if template:
            return template.format(
                who=self.task(row.task), n=row.checkpoint, number=row.number, detail=row.detail, **_counts(row.number)
            )
        checkpoint = f" (checkpoint {row.checkpoint})" if row.checkpoint >= 0 else ""
        number = f", {row.number}" if row.number else ""
        return f"{self.task(row.task)}: {row.event_type.value}{checkpoint}{number}{f', {row.detail}' if row.detail else ''}"


def _counts(number: int) -> dict[str, str]:
    """Return the number of a row with each noun that it may count, by the placeholder in a sentence of `EventType`."""
    return {f"{noun}s": number_of(number, noun) for noun in ("byte", "record", "file")}
