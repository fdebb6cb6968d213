"""The coordinator's promises, read off the journal: ids grow, and a checkpoint completes after all its acknowledgements.

Laws 18, 22 and 23 of every run; one pass over the journal.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from sim.checkers.story import LIFE, Teller
from sim.checkers.violation import Violation
from sim.metrics.journal import Entry, Happening
from sim.metrics.stats import CheckpointStats

IDS_GROW = "checkpoint ids grow from trigger to trigger, over restarts too"
ALL_ACKNOWLEDGED = "a checkpoint completes after all its tasks have acknowledged it and its metadata is durable"
ENDS_ONCE = "a checkpoint completes or fails, once"
TOLD_AFTERWARDS = "tasks hear of a completion after it"
RETAINED = "no more completed checkpoints are retained than configured, the latest always is"

WATCHED = frozenset({
    Happening.TRIGGERED, Happening.ACKNOWLEDGED, Happening.LAST_ACKNOWLEDGED, Happening.COMPLETED, Happening.ABORTED,
    Happening.NOTIFIED_COMPLETE,
})  # fmt: skip
"""The rows of the journal that these laws read."""


def broken_promises(journal: Iterable[Entry], stats: Mapping[int, CheckpointStats], teller: Teller) -> Iterator[Violation]:
    newest = 0
    awaited: dict[int, int] = {}  # tasks that must acknowledge
    acknowledged: dict[int, set[int]] = {}
    durable: set[int] = set()  # all tasks have acknowledged; the metadata is next
    ended: dict[int, Happening] = {}
    for row in journal:
        happening, checkpoint = row.happening, row.checkpoint
        if happening not in WATCHED:
            continue

        def broken(law: str, fact: str, row: Entry = row) -> Violation:
            return Violation(law, row.time_ns, f"checkpoint {row.checkpoint}", fact, teller.about(row.checkpoint, (), LIFE))

        if happening is Happening.ACKNOWLEDGED:
            if checkpoint not in durable and checkpoint not in ended:
                acknowledged.setdefault(checkpoint, set()).add(row.task)
        elif happening is Happening.TRIGGERED:
            if checkpoint <= newest:
                yield broken(IDS_GROW, f"it is triggered after checkpoint {newest}")
            newest = max(newest, checkpoint)
            awaited[checkpoint] = stats[checkpoint].tasks - row.number
        elif happening is Happening.LAST_ACKNOWLEDGED:
            durable.add(checkpoint)
            missing = awaited.get(checkpoint, 0) - len(acknowledged.pop(checkpoint, ()))
            if missing:
                yield broken(ALL_ACKNOWLEDGED, f"its metadata is written although {missing} of {awaited[checkpoint]} tasks are missing")
        elif happening is Happening.NOTIFIED_COMPLETE:
            if ended.get(checkpoint) is not Happening.COMPLETED:
                yield broken(TOLD_AFTERWARDS, "tasks are told that it is complete, which it is not")
        else:
            if happening is Happening.COMPLETED and checkpoint not in durable:
                yield broken(ALL_ACKNOWLEDGED, "it completes although no metadata was written")
            if checkpoint in ended:
                yield broken(ENDS_ONCE, f"it is {happening.value} after it was {ended[checkpoint].value}")
            ended[checkpoint] = happening
            acknowledged.pop(checkpoint, None)


def too_many_retained(retained: Sequence[int], limit: int, latest: int, time_ns: int, teller: Teller) -> Violation | None:
    """At the end of a run; `latest` is the latest completed checkpoint that is no savepoint (0: none)."""
    if len(retained) <= limit and (latest == 0 or latest in retained):
        return None
    kept = ", ".join(map(str, retained)) or "none"
    story = teller.story(lambda row: row.happening is Happening.COMPLETED and (row.checkpoint in retained or row.checkpoint == latest))
    return Violation(RETAINED, time_ns, "the completed checkpoints", f"{kept} are retained, {limit} may be, {latest} must be", story)
