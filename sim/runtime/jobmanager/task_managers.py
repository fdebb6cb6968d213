"""The TaskManagers of a job: cut off from the network, warming up, or lost and replaced."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

from sim.model.faults import TaskManagerLost
from sim.model.randomness import draw, quantile_table, stream
from sim.protocol.recovery import Deployment, Heartbeats, LostSlots, Slots
from sim.runtime.context import Context
from sim.runtime.host_loop import without_task_managers

# ---- Unreachable TaskManagers, which delay messages between the JobManager and tasks.


class Reachability:
    """The TaskManagers that are cut off from the network."""

    def __init__(self, context: Context) -> None:
        self.env = context.env
        self.hosts = context.hosts
        self._cut_off_until_ns: dict[int, int] = {}  # by TaskManager

    def cut_off(self, manager: int, until_ns: int) -> None:
        """Cut a TaskManager off from the network until `until_ns`."""
        self._cut_off_until_ns[manager] = max(until_ns, self._cut_off_until_ns.get(manager, 0))

    def delay_ns(self, task: int) -> int:
        """Return the delay of a message between the JobManager and a task that is sent now."""
        if not self._cut_off_until_ns:
            return 0
        return max(0, self._cut_off_until_ns.get(self.hosts[task], 0) - int(self.env.now))

    def continue_from(self, before: Reachability) -> None:
        """Take over the cut-off TaskManagers of the previous job instance."""
        self._cut_off_until_ns = {host: ns for host, ns in before._cut_off_until_ns.items() if ns > self.env.now}


# ---- Warm-up: tasks are slow after a restart or a cold start.
#
# A new class loader or process loads and compiles code again, and caches are empty.


class WarmUp:
    """The warm-up of all tasks of a run.  If `Restart.warm_up_ns` is 0, there is none."""

    def __init__(self, context: Context) -> None:
        self.env = context.env
        self.restart = context.scenario.restart
        self.speed = context.speed
        self._warm_ns: dict[int, int] = {}  # task -> end of its warm-up

    def begin(self, task: int) -> None:
        """Start the warm-up of a task, or start it again if the task is still warming up."""
        if not self.restart.warm_up_ns:
            return
        self._warm_ns[task] = self.env.now + self.restart.warm_up_ns
        self.speed.set_factor(task, "warm-up", self.restart.warm_up_factor)
        self.env.call_in(self.restart.warm_up_ns, lambda: self._end(task))

    def _end(self, task: int) -> None:
        if self.env.now >= self._warm_ns[task]:
            self.speed.set_factor(task, "warm-up", Fraction(1))


# ---- Lost TaskManagers: when the loss is detected, and when they are replaced.
#
# `sim.protocol.recovery` has the rules of heartbeats, `sim.protocol.recovery` those of slots.

_HEARTBEAT_PHASES = 1024
"""Number of phases within a heartbeat interval, one of which is drawn."""


class TaskManagers:
    """The TaskManagers as JobMaster and ResourceManager know them.  The phases of the heartbeats of both are random."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.restart = context.scenario.restart
        self.slots = Slots.configured(self.restart)
        # TaskManagers in use, by their numbers in the scenario; fewer in a job that was scaled down
        self.numbers: Sequence[int] = range(max(context.hosts) + 1)
        self.written: Sequence[int] = self.numbers  # all TaskManagers of the scenario
        self.scenario, self.hosts = context.scenario, context.hosts  # before the job was scaled down
        self.absent: Mapping[int, LostSlots] = {}  # TaskManagers of the scenario that the job runs without
        # TaskManagers that have run tasks of the job, by their numbers in the scenario
        self._used = frozenset(self.numbers)
        self._losses = 0
        self._leaderless_ns = 0
        self._job_managers = 0
        self._job_master = self._heartbeats("job-master")
        self._resource_manager = self._heartbeats("resource-manager")

    def lose(self, loss: TaskManagerLost, number: int) -> int:
        """Lose TaskManager `number` now.  Return the time at which the JobMaster detects it [ns]."""
        now = self.context.env.now
        missed_ns = now if loss.orderly else self._job_master.missed_ns(now, silent=loss.silent)
        # Kubernetes and YARN report that a container has ended
        is_standalone = self.restart.provider == "standalone"
        is_known = loss.orderly or not (is_standalone or loss.silent)
        released_ns = now if is_known else self._resource_manager.missed_ns(now, silent=loss.silent)
        table = quantile_table(self.restart.replacement)
        random_bits = draw(stream(self.context.scenario.run.seed, "replacements"), self._losses)
        self._losses += 1
        # Flink requests a replacement from Kubernetes or YARN once it knows of the loss
        replaced_ns = (now if is_standalone else released_ns) + table[random_bits * len(table) >> 32]
        requested_ns = -1 if is_standalone else released_ns
        # a silent machine does not refuse a deployment, so the call times out
        refusal_ns = self.restart.ask_timeout_ns if loss.silent else 0
        lost = LostSlots(missed_ns, released_ns, replaced_ns, refusal_ns, requested_ns)
        self.slots = self.slots.lose(number, lost)
        return lost.gone_ns

    def silent_since(self, lost_ns: int) -> int:
        """Return the time at which TaskManagers detect the loss of a JobManager that was lost at `lost_ns`."""
        return self._job_master.missed_ns(lost_ns, silent=True)

    def lose_leader(self) -> None:
        """Lose the JobManager, and the ResourceManager in its process."""
        self._leaderless_ns = int(self.context.env.now)

    def elect(self) -> None:
        """Let another JobManager take over, with other heartbeat phases.

        Its ResourceManager requests the TaskManagers that nobody has requested from Kubernetes or YARN meanwhile.
        """
        now, lost = int(self.context.env.now), dict(self.slots.lost)
        for number, slots in lost.items():
            if slots.requested_ns >= self._leaderless_ns:
                starts_ns = slots.replaced_ns - slots.requested_ns
                lost[number] = replace(slots, requested_ns=now, replaced_ns=now + starts_ns)
        self._job_managers += 1
        self._job_master = self._heartbeats("job-master")
        self._resource_manager = self._heartbeats("resource-manager")
        self.slots = replace(self.slots, lost=lost).for_new_leader(now)

    def deployment(self, tasks: Iterable[int]) -> Deployment:
        """Return the outcome of a deployment of these tasks now."""
        return self.slots.deployment({self.context.hosts[task] for task in tasks}, self.context.env.now)

    def tasks_on_new_processes(self, tasks: Iterable[int]) -> frozenset[int]:
        """Return the tasks that are deployed on a new process, which has not run tasks of the job.

        It replaces a lost TaskManager, or was added for a larger parallelism.
        """
        managers = {self.context.hosts[task] for task in tasks}
        fresh_managers = self.slots.replaced(managers) | {
            manager for manager in managers if self._number(manager) not in self._used
        }
        return frozenset(task for task in tasks if self.context.hosts[task] in fresh_managers)

    def mark_deployed(self, tasks: Iterable[int]) -> None:
        """Record that tasks are deployed, which ends the outage of their TaskManagers."""
        managers = {self.context.hosts[task] for task in tasks}
        self.slots = self.slots.deployed(managers)
        self._used |= {self._number(manager) for manager in managers}

    def _number(self, manager: int) -> int:
        """Return the number of a TaskManager in the scenario.  TaskManagers added for a larger parallelism keep theirs."""
        return self.numbers[manager] if manager < len(self.numbers) else manager

    def continue_from(self, before: TaskManagers) -> None:
        """Take over the TaskManagers of the previous job instance, without those that an adaptive job has lost."""
        now = self.context.env.now
        self._used = before._used
        # the adaptive scheduler rescales a job under the same JobMaster and ResourceManager, which still wait for the lost slots
        known = before.slots if before.context.outcome.rescaled.triggered else before.slots.for_new_leader(now)
        self.slots, self._losses = known, before._losses if self.restart.scheduler == "adaptive" else 0
        if self.restart.scheduler == "adaptive":
            lost = {
                **before.absent,
                **{before.numbers[k]: slots for k, slots in known.lost.items() if k < len(before.numbers)},
            }
            self.absent = {number: slots for number, slots in lost.items() if slots.offered_ns > now}
            self.scenario, self.hosts, self.written = before.scenario, before.hosts, before.written
            self.numbers = [number for number in self.written if number not in self.absent]
            back = {k: lost[number] for k, number in enumerate(self.numbers) if number in lost}
            self.slots = replace(known, lost=back)

    def returning(self) -> dict[int, int]:
        """Return the missing TaskManagers of the scenario, each with the time of its replacement [ns]."""
        returning = {self.numbers[k]: slots for k, slots in self.slots.lost.items() if k < len(self.numbers)}
        now = self.context.env.now
        return {
            number: slots.offered_ns for number, slots in {**self.absent, **returning}.items() if slots.offered_ns > now
        }

    def without_any(self, missing: Collection[int]) -> bool:
        """Return whether all TaskManagers of the scenario are missing."""
        return set(self.written) <= set(missing)

    def has_slots_without(self, missing: Collection[int]) -> bool:
        """Return whether the job can run without these TaskManagers."""
        return without_task_managers(self.scenario, self.hosts, missing) is not None

    def _heartbeats(self, sender: str) -> Heartbeats:
        """Return the heartbeats of the JobMaster or the ResourceManager, with a random phase."""
        phase = draw(stream(self.context.scenario.run.seed, "heartbeats", sender), self._job_managers)
        return Heartbeats.configured(self.restart, phase * _HEARTBEAT_PHASES >> 32, _HEARTBEAT_PHASES)
