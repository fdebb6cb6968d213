"""The adaptive scheduler: rescales a running job when slots are lost or return.

`sim.protocol.recovery` decides when, and `sim.runtime.host_loop` computes the parallelism.  A rescaled job is another job
instance, which starts from the latest completed checkpoint.
"""

from __future__ import annotations

from collections.abc import Callable

from sim.protocol.recovery import compute_rescale_ns, compute_start
from sim.results.journal import Happening
from sim.runtime.context import Context
from sim.runtime.jobmanager.coordinator_host import CoordinatorHost
from sim.runtime.jobmanager.task_managers import TaskManagers
from sim.runtime.result import Outcome

RESCALES_WITH_CHECKPOINT = "2.x"
"""Profile whose scheduler waits for a completed checkpoint (FLIP-461)."""
_MAX_CHECKPOINT_INTERVALS = 3
"""Checkpoint intervals to wait for a checkpoint: `rescale-trigger.max-checkpoint-failures` + 1."""


class Elasticity:
    """Rescales one job instance.  `is_current` returns whether a restart is still the latest one."""

    def __init__(
        self,
        context: Context,
        managers: TaskManagers,
        coordinator: CoordinatorHost,
        outcome: Outcome,
        is_current: Callable[[int], bool],
    ) -> None:
        self.context = context
        self.env = context.env
        self.options = context.scenario.restart
        self.managers = managers
        self.coordinator = coordinator
        self.outcome = outcome
        self.is_current = is_current
        self._rescales_with_checkpoint = False
        coordinator.on_completed = self._on_checkpoint_completed

    @property
    def is_adaptive(self) -> bool:
        """Whether the job has the adaptive scheduler."""
        return self.options.scheduler == "adaptive"

    def waits(self, restart: int) -> bool:
        """Return whether a restart must wait for slots, and is then left to another job instance with fewer slots.

        If so, the rescale is scheduled.
        """
        now, lost = self.env.now, self.managers.returning()
        if not self.is_adaptive or not lost:
            return False
        first_ns = now
        if self.managers.without_any(lost):  # wait for the first slot, and then until slots are stable
            first_ns = min(lost.values())
            self._give_up_later(restart, first_ns)
        start = compute_start(first_ns, lost.values(), self.options)
        left = [number for number, back_ns in lost.items() if back_ns > start.at_ns]
        if start.complete or not self.managers.can_do_without(left) or not self.coordinator.machine.latest_completed:
            return False
        self.env.call_in(start.at_ns - now, lambda: self._rescale(restart))
        return True

    def executes(self, restart: int, at_ns: int) -> None:
        """Handle a deployment at `at_ns`.  If TaskManagers are missing, schedule a rescale for when they return."""
        self._rescales_with_checkpoint = False
        missing = [slots.given_ns for slots in self.managers.absent.values()]
        if self.is_adaptive and missing:
            ready_ns = compute_rescale_ns(at_ns, missing, self.options)
            self.env.call_in(ready_ns - self.env.now, lambda: self._ready(restart))

    def _ready(self, restart: int) -> None:
        """Rescale the job now, or after the next completed checkpoint (2.x), for which it waits a limited time."""
        interval_ns = self.context.scenario.checkpoint.interval_ns
        if self.context.scenario.cluster.profile != RESCALES_WITH_CHECKPOINT or interval_ns is None:
            self._rescale(restart)
        elif self.is_current(restart):
            self._rescales_with_checkpoint = True
            most_ns = self.options.rescale_delay_ns
            self.env.call_in(
                _MAX_CHECKPOINT_INTERVALS * interval_ns if most_ns is None else most_ns, lambda: self._rescale(restart)
            )

    def _on_checkpoint_completed(self) -> None:
        """Rescale a job that waits for a completed checkpoint."""
        lost = self.managers.returning()
        if self._rescales_with_checkpoint and self.managers.can_do_without(lost):
            self.outcome.rescale(frozenset(lost))

    def _rescale(self, restart: int) -> None:
        """Rescale the job to the available slots, or wait for the first one."""
        if not self.is_current(restart) or not self.coordinator.machine.latest_completed:
            return
        lost = self.managers.returning()
        if self.managers.can_do_without(lost):
            self.outcome.rescale(frozenset(lost))
        else:
            self.env.call_in(min(lost.values()) - self.env.now, lambda: self._rescale(restart))

    def _give_up_later(self, restart: int, ready_ns: int) -> None:
        """Fail the job after the resource timeout if it gets no slot (NoResourceAvailableException)."""
        wait_ns = None if self.options.reactive else self.options.resource_wait_ns

        def give_up() -> None:
            if self.is_current(restart):
                reason = "no slot for as long as it waits for resources"
                self.context.note(Happening.GIVEN_UP, detail=reason)
                self.outcome.fail(reason)

        if wait_ns is not None and ready_ns > self.env.now + wait_ns:
            self.env.call_in(wait_ns, give_up)
