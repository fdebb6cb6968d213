"""The adaptive scheduler: how long a job waits for slots, and when it is rescaled.  Law 118.

Judged by what the journal says of failures, deployments, completed checkpoints and the end of a job instance.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from sim.checkers.story import Teller
from sim.checkers.violation import Violation, lasting
from sim.metrics.journal import Entry, Happening

STABLE_SLOTS = "an adaptive job goes on with other slots when these are stable; a running one after its cooldown, with a checkpoint"

TURNS = frozenset({
    Happening.JOB_RESTARTING, Happening.JOB_RESTORED, Happening.COMPLETED, Happening.RESCALED, Happening.TASK_MANAGER_LOST,
})  # fmt: skip
"""The rows of the journal that the law reads."""


class Waits(NamedTuple):
    """The times that a scheduler keeps."""

    stable_ns: int  # that a job waits without all of its slots
    cooldown_ns: int  # that a job runs before it is rescaled
    checkpoint_ns: int | None = None  # that it waits for a completed checkpoint then; None: it needs none
    deploy_ns: int = 0  # that its deployment takes: it counts as running from the beginning of that


def rescaled_too_soon(turns: Iterable[Entry], waits: Waits, teller: Teller) -> Iterator[Violation]:
    """`turns`: the rows of one job instance."""
    since, runs, completed_ns = 0, True, -1
    for row in turns:
        after_ns = row.time_ns - since
        if row.happening is Happening.COMPLETED:
            completed_ns = row.time_ns
        elif row.happening in (Happening.JOB_RESTARTING, Happening.JOB_RESTORED):
            runs = row.happening is Happening.JOB_RESTORED
            since = row.time_ns - (waits.deploy_ns if runs else 0)
        elif row.happening is Happening.RESCALED:
            fact = None
            if not runs and after_ns < waits.stable_ns:
                fact = f"it goes on without all slots after {lasting(after_ns)}, they are stable after {lasting(waits.stable_ns)}"
            elif runs and after_ns < waits.cooldown_ns:
                fact = f"it is rescaled after {lasting(after_ns)}, its cooldown takes {lasting(waits.cooldown_ns)}"
            elif runs and waits.checkpoint_ns is not None and completed_ns < row.time_ns:
                without_ns = waits.cooldown_ns + waits.checkpoint_ns
                if after_ns < without_ns:
                    fact = f"it is rescaled without a checkpoint after {lasting(after_ns)}, it waits {lasting(without_ns)} for one"
            if fact is not None:
                story = teller.story(lambda entry: entry.time_ns <= row.time_ns and entry.happening in TURNS)[-8:]  # noqa: B023
                yield Violation(STABLE_SLOTS, row.time_ns, "the job", fact, story)
                return
