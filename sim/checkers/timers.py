"""Timers of processing time: each fires once, when it is due, in order, and goes on after a restore.  Law 90."""

from __future__ import annotations

from dataclasses import dataclass, field

from sim.checkers.violation import seconds

TIMERS_FIRE = "each timer of a window fires once: at its time, in order, also if it was restored"

Pending = tuple[int, int]
"""When a timer is due [ns], and the records that it lets go (served since the job began)."""


@dataclass(slots=True)
class Timers:
    """The timers of one task that have not fired.  `begun_ns`: when the task began."""

    step_ns: int
    phase_ns: int
    hold_ns: int
    begun_ns: int = 0
    pending: list[Pending] = field(default_factory=list)
    ended_ns: int = 0  # the last window that has ended

    def window_ended(self, now_ns: int, served: int) -> str | None:
        """A window ends: what its timer lets go is known."""
        fact = None
        if (now_ns - self.phase_ns) % self.step_ns:
            fact = f"a window ends at {seconds(now_ns)}, windows of {seconds(self.step_ns)} do not"
        self.ended_ns = now_ns
        if not (self.hold_ns and self.pending and self.pending[-1][1] == served):
            self.pending.append((now_ns + self.hold_ns, served))
        return fact

    def fire(self, now_ns: int, due_ns: int, records: int) -> str | None:
        """A timer fires."""
        missed = [timer for timer in self.pending if timer[0] < due_ns]
        expected = [timer for timer in self.pending if timer[0] == due_ns and timer[1] == records]
        self.pending = [timer for timer in self.pending if timer[0] > due_ns or timer[1] > records]
        if now_ns < due_ns:
            return f"the timer of {seconds(due_ns)} fires at {seconds(now_ns)}"
        if missed:
            return f"the timer of {seconds(missed[0][0])} has not fired, that of {seconds(due_ns)} fires; {len(missed)} were forgotten"
        return None if expected else f"a timer of {seconds(due_ns)} fires that was never set, and lets the records up to {records} go"

    def silent(self, now_ns: int) -> str | None:
        """A window has ended without a timer."""
        end_ns = (now_ns - 1 - self.phase_ns) // self.step_ns * self.step_ns + self.phase_ns
        if end_ns <= max(self.begun_ns, self.ended_ns):
            return None
        return f"the window that ended at {seconds(end_ns)} has no timer; the last one was set at {seconds(self.ended_ns)}"

    def kept(self, now_ns: int, served: int) -> tuple[Pending, ...]:
        """The timers of a snapshot: those pending, and that of the window that is open."""
        end_ns = now_ns + self.step_ns - (now_ns - self.phase_ns) % self.step_ns
        return (*self.pending, (end_ns + self.hold_ns, served))
