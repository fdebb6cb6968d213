"""All invariant monitors of a job instance: they get the events of the run, and report violations at its end."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from sim.invariants import checkpoints, recovery
from sim.invariants import output as invariants_output
from sim.invariants.files import KeptSnapshot
from sim.invariants.violation import Violation
from sim.protocol.coordinator import Coordinator
from sim.runtime.context import Checks, CommittedOutput, Contents, Context
from sim.runtime.monitors.checkpoints import JobManagerMonitor, RestartMonitor, TimingMonitor
from sim.runtime.monitors.files import FileMonitor, StoredStateMonitor
from sim.runtime.monitors.monitor import EndOfRun, InvariantMonitor, WatchedRun
from sim.runtime.monitors.output import CommitMonitor, EndOfTaskMonitor
from sim.runtime.monitors.records import ConversionMonitor, CutMonitor, RecordMonitor, RouteMonitor, StateMonitor
from sim.runtime.monitors.state import KeyedStateMonitor
from sim.runtime.monitors.windows import WindowMonitor
from sim.runtime.task.tasks import Tasks

CONSERVED = "records, credits, buffers, segments and bytes are conserved"
_EVENT_KINDS = (
    checkpoints.EVENT_KINDS | recovery.EVENT_KINDS | recovery.ELASTICITY_EVENT_KINDS | invariants_output.EVENT_KINDS
)
"""Kinds of journal rows about rare events, which monitors read at the end of a run."""
_MOMENTS = tuple(name for name in vars(Checks) if not name.startswith("_"))


class InvariantMonitors(Checks):
    """The monitors of one job instance.  Each event is passed to the monitors that override its method, in a fixed order."""

    def __init__(self, context: Context, contents: Contents, output: CommittedOutput, ends: Tasks) -> None:
        watched = WatchedRun.of(context, contents, output, ends)
        self.context = context
        self.cuts = CutMonitor(watched)
        self._monitors: Sequence[InvariantMonitor] = (
            self.cuts,
            RecordMonitor(watched, self.cuts, self._forget),  # must precede the monitors that read its ledger
            StateMonitor(watched),
            KeyedStateMonitor(watched),
            WindowMonitor(watched),
            StoredStateMonitor(watched),
            TimingMonitor(watched),
            RestartMonitor(watched),
            EndOfTaskMonitor(watched),
            JobManagerMonitor(watched),
            CommitMonitor(watched),
            FileMonitor(watched),
            ConversionMonitor(watched),
            RouteMonitor(watched),
        )
        for moment in _MOMENTS:
            setattr(self, moment, _to_all([getattr(row, moment) for row in self._monitors if _overrides(row, moment)]))

    def continue_from(self, before: InvariantMonitors, checkpoint: int) -> None:
        """Handle that the job starts from a checkpoint of another job instance."""
        for monitor, previous in zip(self._monitors, before._monitors, strict=True):
            monitor.continue_from(previous, checkpoint)

    def _forget(self, gone: Callable[[int], bool]) -> None:
        """Let all monitors drop the data of checkpoints that can neither complete nor be restored any more."""
        for monitor in self._monitors:
            monitor.forget(gone)

    def violations(
        self, coordinator: Coordinator, kept: Iterable[KeptSnapshot], *, finished: bool
    ) -> tuple[Violation, ...]:
        """Return all violations at the end of the run, by time.

        `kept` are the snapshots that can be restored then; `finished` is whether the job has finished.
        """
        end = EndOfRun(list(self.context.journal.only(_EVENT_KINDS)), coordinator, kept, finished)
        violations = [violation for monitor in self._monitors for violation in monitor.found]
        violations.extend(violation for monitor in self._monitors for violation in monitor.at_the_end(end))
        try:
            self.context.plane.check()
        except AssertionError as error:
            violations.append(Violation(CONSERVED, self.context.env.now, "the data plane", str(error)))
        return tuple(sorted(violations, key=lambda violation: violation.time_ns))


def _overrides(monitor: InvariantMonitor, moment: str) -> bool:
    """Return whether a monitor overrides the method of an event."""
    return getattr(type(monitor), moment) is not getattr(Checks, moment)


def _to_all(observers: Sequence[Callable[..., None]]) -> Callable[..., None]:
    """Return a function that calls all of the functions with its arguments."""
    if len(observers) == 1:
        return observers[0]

    def notify_all(*facts: Any) -> None:
        for observe in observers:
            observe(*facts)

    return notify_all
