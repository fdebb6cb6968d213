"""All invariants of a job instance: they get the events of the run, and report violations at its end."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from sim.protocol.coordinator import Coordinator
from sim.results.violations import Violation
from sim.runtime.context import Checks, Context, KeptSnapshot
from sim.runtime.invariants.coordinator import CheckpointOrder, CheckpointTiming, StopWithSavepoint
from sim.runtime.invariants.event_time import EventTime
from sim.runtime.invariants.files import FileLifetimes, StoredSnapshots
from sim.runtime.invariants.invariant import Invariant, ObservedRun
from sim.runtime.invariants.limits import ObjectStoreRequests, Slowdowns
from sim.runtime.invariants.output import Commits, EndOfData
from sim.runtime.invariants.records import BarrierTimeouts, ConsistentCuts, Partitioning, RecordPositions
from sim.runtime.invariants.recovery import Restarts
from sim.runtime.invariants.regional import forget_replaced_parts, regional_invariants
from sim.runtime.invariants.state import KeyedStates, Materialisations, RestoredStates
from sim.runtime.task.tasks import Tasks

INVARIANTS: tuple[type[Invariant], ...] = (
    ConsistentCuts,
    RecordPositions,  # must precede those that read its ledger
    RestoredStates,
    KeyedStates,
    Materialisations,
    EventTime,
    StoredSnapshots,
    CheckpointTiming,
    CheckpointOrder,
    StopWithSavepoint,
    Restarts,
    EndOfData,
    Commits,
    FileLifetimes,
    BarrierTimeouts,
    Partitioning,
    ObjectStoreRequests,
    Slowdowns,
)
CONSERVED = "records, credits, buffers, segments and bytes are conserved"


class Invariants(Checks):
    """The invariants of one job instance.  Each event is passed to those that override its method, in a fixed order."""

    def __init__(self, context: Context, ends: Tasks) -> None:
        self._run = ObservedRun.of(context, ends)
        self._run.forget = self._forget
        is_regional = context.scenario.checkpoint.region.enabled
        invariants = regional_invariants(INVARIANTS) if is_regional else INVARIANTS
        self._all = [invariant(self._run) for invariant in invariants]
        for name in (name for name in vars(Checks) if not name.startswith("_")):
            observers = [row for row in self._all if getattr(type(row), name) is not getattr(Checks, name)]
            setattr(self, name, _to_all([getattr(row, name) for row in observers]))
        if is_regional:
            forget_replaced_parts(self, self._all)

    @property
    def cuts(self) -> ConsistentCuts:
        """The invariant that has the cuts of checkpoints."""
        return next(row for row in self._all if isinstance(row, ConsistentCuts))

    def continue_from(self, before: Invariants, checkpoint: int) -> None:
        """Handle that the job starts from a checkpoint of another job instance."""
        for invariant, previous in zip(self._all, before._all, strict=True):
            invariant.continue_from(previous, checkpoint)

    def _forget(self, gone: Callable[[int], bool]) -> None:
        """Drop the data of checkpoints that can neither complete nor be restored any more."""
        for invariant in self._all:
            invariant.forget(gone)

    def violations(
        self, coordinator: Coordinator, kept: Iterable[KeptSnapshot], *, finished: bool
    ) -> tuple[Violation, ...]:
        """Return all violations at the end of the run, by time.

        `kept` are the snapshots that can be restored then; `finished` is whether the job has finished.
        """
        self._run.end(coordinator, kept, finished=finished)
        for invariant in self._all:
            invariant.at_the_end()
        violations = [violation for invariant in self._all for violation in invariant.found]
        context = self._run.context
        try:
            context.plane.check()
        except AssertionError as error:
            violations.append(Violation(CONSERVED, context.env.now, "the data plane", str(error)))
        return tuple(sorted(violations, key=lambda violation: violation.time_ns))


def _to_all(observers: Sequence[Callable[..., None]]) -> Callable[..., None]:
    """Return a function that calls all of the functions with its arguments."""
    if len(observers) == 1:
        return observers[0]

    def notify_all(*facts: Any) -> None:
        for observe in observers:
            observe(*facts)

    return notify_all
