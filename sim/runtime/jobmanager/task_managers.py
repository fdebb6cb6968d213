"""TaskManagers as the JobManager sees them: reachable, lost, warming up."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

import simpy

from sim.model.faults import Restart, TaskManagerLost
from sim.model.randomness import draw, quantile_table, stream
from sim.protocol.recovery import Heartbeats
from sim.protocol.restart_strategy import Deployment, LostSlots, Slots
from sim.runtime.clock import TwoPlaneEnvironment
from sim.runtime.context import Context
from sim.runtime.host_loop import Speed, without_task_managers

# ---- Task managers that are cut off: what a message between the JobManager and a task waits for.


class Reachability:
    """The task managers that are cut off.  `hosts`: the task manager of each task."""

    def __init__(self, env: simpy.Environment, hosts: Sequence[int]) -> None:
        self.env = env
        self.hosts = hosts
        self._cut_off_until_ns: dict[int, int] = {}  # by task manager

    def cut_off(self, host: int, until_ns: int) -> None:
        self._cut_off_until_ns[host] = max(until_ns, self._cut_off_until_ns.get(host, 0))

    def delay_ns(self, task: int) -> int:
        """What a message between the JobManager and a task waits for its network now."""
        if not self._cut_off_until_ns:
            return 0
        return max(0, self._cut_off_until_ns.get(self.hosts[task], 0) - int(self.env.now))

    def continue_from(self, before: Reachability) -> None:
        """A new job instance repairs no network."""
        self._cut_off_until_ns = {host: ns for host, ns in before._cut_off_until_ns.items() if ns > self.env.now}


# ---- Tasks are slow at first, restarted ones and those of a cold start.
#
# Code is loaded and compiled anew (a new class loader or process), caches are empty.


class WarmUp:
    """The warm-up of all tasks of a run; `Restart.warm_up_ns` 0: there is none."""

    def __init__(self, env: TwoPlaneEnvironment, restart: Restart, speed: Speed) -> None:
        self.env = env
        self.restart = restart
        self.speed = speed
        self._warm_ns: dict[int, int] = {}  # by task: since when, or when it will be

    def begin(self, task: int) -> None:
        """A task begins, restarted or in a job that has just been submitted; one that was still cold begins its warm-up anew."""
        if not self.restart.warm_up_ns:
            return
        self._warm_ns[task] = self.env.now + self.restart.warm_up_ns
        self.speed.slow(task, "warm-up", self.restart.warm_up_factor)
        self.env.call_in(self.restart.warm_up_ns, lambda: self._end(task))

    def _end(self, task: int) -> None:
        if self.env.now >= self._warm_ns[task]:
            self.speed.slow(task, "warm-up", Fraction(1))


# ---- Lost task managers as the JobManager knows them: when it misses them, and when others take their place.
#
# Decides nothing: heartbeats are `sim.protocol.recovery`'s, slots `sim.protocol.restart_strategy`'.

_PHASES = 1024
"""The number of instants within a heartbeat interval from which one is drawn."""


class TaskManagers:
    """The task managers as the JobMaster and the ResourceManager see them.  The phases of both heartbeats are drawn."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.restart = context.scenario.restart
        self.slots = Slots(self.restart.slot_check_ns)
        # of the task managers in the scenario, where the job runs on fewer
        self.numbers: Sequence[int] = range(max(context.hosts) + 1)
        self.written: Sequence[int] = self.numbers  # all of these
        self.scenario, self.hosts = context.scenario, context.hosts  # as written, where the job runs on fewer
        self.absent: Mapping[int, LostSlots] = {}  # task managers that the job runs without
        # task managers that ran something of the job, by their numbers in the scenario
        self._used = frozenset(self.numbers)
        self._losses = 0
        self._job_managers = 0
        self._job_master = self._heartbeats("job-master")
        self._resource_manager = self._heartbeats("resource-manager")

    def lose(self, what: TaskManagerLost, number: int) -> int:
        """Task manager `number` is gone now; returns when the JobMaster misses it."""
        now = self.context.env.now
        missed_ns = now if what.orderly else self._job_master.missed_ns(now, silent=what.silent)
        # Kubernetes and YARN tell of a container that has ended
        is_told = self.restart.provider != "standalone" and not what.silent
        released_ns = now if what.orderly or is_told else self._resource_manager.missed_ns(now, silent=what.silent)
        # Flink asks Kubernetes and YARN for another one, and only once it knows of the loss
        begun_ns = now if self.restart.provider == "standalone" else released_ns
        table = quantile_table(self.restart.replacement)
        u = draw(stream(self.context.scenario.run.seed, "replacements"), self._losses)
        self._losses += 1
        lost = LostSlots(missed_ns, released_ns, begun_ns + table[u * len(table) >> 32], self._refusal_ns(what))
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
        self.slots = self.slots.for_new_leader(self.context.env.now)

    def deployment(self, tasks: Iterable[int]) -> Deployment:
        """The outcome of a deployment of these tasks that begins now."""
        return self.slots.deployment({self.context.hosts[task] for task in tasks}, self.context.env.now)

    def fresh(self, tasks: Iterable[int]) -> frozenset[int]:
        """The tasks, among these, that are deployed on a process that ran nothing of the job yet.

        It replaces a lost one, or a larger parallelism brings it in.
        """
        hosts = {self.context.hosts[task] for task in tasks}
        fresh = self.slots.replaced(hosts) | {host for host in hosts if self._number(host) not in self._used}
        return frozenset(task for task in tasks if self.context.hosts[task] in fresh)

    def deployed(self, tasks: Iterable[int]) -> None:
        hosts = {self.context.hosts[task] for task in tasks}
        self.slots = self.slots.deployed(hosts)
        self._used |= {self._number(host) for host in hosts}

    def _number(self, host: int) -> int:
        """A larger parallelism brings in task managers that the scenario begins without."""
        return self.numbers[host] if host < len(self.numbers) else host

    def continue_from(self, before: TaskManagers) -> None:
        """Another job instance has its own JobMaster, on the same machines, or without those that an adaptive job does without."""
        now = self.context.env.now
        self._used = before._used
        known = before.slots.for_new_leader(now)
        self.slots, self._losses = known, before._losses if self.restart.scheduler == "adaptive" else 0
        if self.restart.scheduler == "adaptive":
            lost = {
                **before.absent,
                **{before.numbers[k]: slots for k, slots in known.lost.items() if k < len(before.numbers)},
            }
            self.absent = {number: slots for number, slots in lost.items() if slots.given_ns > now}
            self.scenario, self.hosts, self.written = before.scenario, before.hosts, before.written
            self.numbers = [number for number in self.written if number not in self.absent]
            back = {k: lost[number] for k, number in enumerate(self.numbers) if number in lost}
            self.slots = replace(known, lost=back)

    def returning(self) -> dict[int, int]:
        """Task managers of the scenario that are missing now -> when there are others in their place."""
        here = {self.numbers[k]: slots for k, slots in self.slots.lost.items() if k < len(self.numbers)}
        now = self.context.env.now
        return {number: slots.given_ns for number, slots in {**self.absent, **here}.items() if slots.given_ns > now}

    def without_any(self, missing: Collection[int]) -> bool:
        return set(self.written) <= set(missing)

    def can_do_without(self, missing: Collection[int]) -> bool:
        """Whether the job can run on the others."""
        return without_task_managers(self.scenario, self.hosts, missing) is not None

    def _heartbeats(self, sender: str) -> Heartbeats:
        restart = self.restart
        interval_ns = min(restart.heartbeat_interval_ns, restart.heartbeat_timeout_ns)
        u = draw(stream(self.context.scenario.run.seed, "heartbeats", sender), self._job_managers) * _PHASES >> 32
        return Heartbeats(
            interval_ns, restart.heartbeat_timeout_ns, restart.heartbeat_failures, u * interval_ns // _PHASES
        )
