"""After a failure: a restart goes back to the latest completed checkpoint, and no record is processed twice or left out.

Law 24 and the second half of 8 and 12: what a cut held twice or not at all becomes an effect when it is restored.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from sim.checkers.story import BEGIN_AND_END, CUTS, Teller
from sim.checkers.violation import Violation, count_is
from sim.metrics.journal import Entry, Happening

LATEST = "a restart goes back to the latest completed checkpoint"
ONCE = "every record takes effect on state once, whatever fails"

_FAILURES = frozenset({
    Happening.TASK_FAILED, Happening.TASK_MANAGER_LOST, Happening.JOB_MANAGER_LOST, Happening.JOB_RESTARTING, Happening.JOB_RESTORED,
})  # fmt: skip


class Surplus(NamedTuple):
    """The effect of restoring a completed checkpoint whose cut is not exact."""

    twice_bytes: int  # read again by tasks whose state has them already
    lost_bytes: int  # never read again by tasks whose state has them not
    channel: tuple[int, int]  # (writer, reader) of the worst one
    account: str


def broken_restores(
    journal: Sequence[Entry], surpluses: Mapping[int, Surplus], savepoints: Iterable[int], teller: Teller, begun_from: int = 0
) -> Iterator[Violation]:
    """`surpluses`: by checkpoint; `savepoints` are no candidates; `begun_from`: the snapshot a job instance began from (0: none)."""
    aside, latest = frozenset(savepoints), begun_from
    for row in journal:
        if row.happening is Happening.COMPLETED and row.checkpoint not in aside:
            latest = max(latest, row.checkpoint)
        elif row.happening is Happening.JOB_RESTORED:
            if max(row.checkpoint, 0) != latest:
                fact = f"checkpoint {row.checkpoint} is restored, the latest completed one is {latest}"
                story = story_of_restore(row, {row.checkpoint, latest}, (), teller)
                yield Violation(LATEST, row.time_ns, f"restart {row.number}", fact, story)
            if (surplus := surpluses.get(row.checkpoint)) is not None:
                yield _repeated(row, surplus, teller)


def _repeated(row: Entry, surplus: Surplus, teller: Teller) -> Violation:
    facts = [f"{count_is(surplus.twice_bytes, 'byte')} processed twice"] * (surplus.twice_bytes > 0)
    facts += [f"{count_is(surplus.lost_bytes, 'byte')} never processed"] * (surplus.lost_bytes > 0)
    writer, reader = (teller.task(task) for task in surplus.channel)
    story = (*story_of_restore(row, {row.checkpoint}, surplus.channel, teller), f"{writer} -> {reader}: {surplus.account}")
    return Violation(ONCE, row.time_ns, f"restart {row.number} from checkpoint {row.checkpoint}", " and ".join(facts), story)


def story_of_restore(restored: Entry, checkpoints: set[int], tasks: Sequence[int], teller: Teller) -> tuple[str, ...]:
    """How the checkpoints came about, then the failure and the restart that follows it."""
    restores = (row.time_ns for row in teller.journal if row.happening is Happening.JOB_RESTORED and row.time_ns < restored.time_ns)
    before = max(restores, default=-1)

    def matters(row: Entry) -> bool:
        if row.happening in _FAILURES:
            return before < row.time_ns <= restored.time_ns
        if row.checkpoint not in checkpoints or row.time_ns > restored.time_ns:
            return False
        return row.happening in BEGIN_AND_END or (row.task in tasks and row.happening in CUTS)

    return teller.story(matters)
