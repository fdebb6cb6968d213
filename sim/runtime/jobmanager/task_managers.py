"""Lost task managers as the JobManager knows them: when it misses them, and when others take their place.

Decides nothing: heartbeats are `sim.protocol.recovery.detection`'s, slots `sim.protocol.recovery.slots`'.
"""

from __future__ import annotations

from collections.abc import Iterable

from sim.model.faults import TaskManagerLost
from sim.model.randomness.quantiles import quantile_table
from sim.model.randomness.streams import draw, stream
from sim.protocol.recovery.detection import Heartbeats
from sim.protocol.recovery.slots import Deployment, LostSlots, Slots
from sim.runtime.context import Context

_PHASES = 1024
"""The number of instants within a heartbeat interval from which one is drawn."""


class TaskManagers:
    """The task managers as the JobMaster and the ResourceManager see them.  The phases of both heartbeats are drawn."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.restart = context.scenario.restart
        self.slots = Slots(self.restart.slot_check_ns)
        self._losses = 0
        self._job_managers = 0
        self._job_master = self._heartbeats("job-master")
        self._resource_manager = self._heartbeats("resource-manager")

    def lose(self, what: TaskManagerLost, number: int) -> int:
        """Task manager `number` is gone now; returns when the JobMaster misses it."""
        now = self.context.env.now
        missed_ns = now if what.orderly else self._job_master.missed_ns(now, silent=what.silent)
        released_ns = missed_ns
        if self.restart.provider == "standalone":
            released_ns = now if what.orderly else self._resource_manager.missed_ns(now, silent=what.silent)
        elif not what.silent:
            released_ns = now  # Kubernetes and YARN tell of a container that has ended
        table = quantile_table(self.restart.replacement)
        u = draw(stream(self.context.scenario.run.seed, "replacements"), self._losses)
        self._losses += 1
        lost = LostSlots(missed_ns, released_ns, now + table[u * len(table) >> 32], self._refusal_ns(what))
        self.slots = self.slots.lose(number, lost)
        return lost.gone_ns

    def _refusal_ns(self, what: TaskManagerLost) -> int:
        """The time until a deployment to a silent machine is given up [ns].  Such a machine refuses no call."""
        return self.restart.ask_timeout_ns if what.silent else 0

    def silent_since(self, lost_ns: int) -> int:
        """When task managers miss a JobManager that is lost at that time."""
        return self._job_master.missed_ns(lost_ns, silent=True)

    def elect(self) -> None:
        """Another JobManager takes over, with heartbeats of its own."""
        self._job_managers += 1
        self._job_master = self._heartbeats("job-master")
        self._resource_manager = self._heartbeats("resource-manager")
        self.slots = self.slots.known(self.context.env.now)

    def deployment(self, tasks: Iterable[int]) -> Deployment:
        """The outcome of a deployment of these tasks that begins now."""
        return self.slots.deployment({self.context.hosts[task] for task in tasks}, self.context.env.now)

    def fresh(self, tasks: Iterable[int]) -> frozenset[int]:
        """The tasks, among these, that are deployed on a process that ran nothing of the job yet."""
        replaced = self.slots.replaced({self.context.hosts[task] for task in tasks})
        return frozenset(task for task in tasks if self.context.hosts[task] in replaced)

    def deployed(self, tasks: Iterable[int]) -> None:
        self.slots = self.slots.deployed({self.context.hosts[task] for task in tasks})

    def go_on(self, before: TaskManagers) -> None:
        """Another job instance has its own JobMaster, on the same machines."""
        self.slots = before.slots.known(self.context.env.now)

    def _heartbeats(self, sender: str) -> Heartbeats:
        restart = self.restart
        interval_ns = min(restart.heartbeat_interval_ns, restart.heartbeat_timeout_ns)
        u = draw(stream(self.context.scenario.run.seed, "heartbeats", sender), self._job_managers) * _PHASES >> 32
        return Heartbeats(interval_ns, restart.heartbeat_timeout_ns, restart.heartbeat_failures, u * interval_ns // _PHASES)
