"""Makes happen what a scenario says goes wrong: each fault at its times, on whom it names or whom it draws.

What follows from a fault is the business of whoever is hit: tasks fail over (`recovery_host`), storage retries, a slow task is slow.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import TYPE_CHECKING

from sim.metrics.journal import Happening
from sim.model.fault_times import gap_ns
from sim.model.faults import Fault, JobManagerDown, Kill, NetworkOutage, SlowTask, StorageOutage, Target, TaskManagerLost
from sim.model.random import draw, stream
from sim.runtime.by_kind import by_kind
from sim.storage.work import Work

if TYPE_CHECKING:
    from sim.runtime.run.world import World

__all__ = ["Faults"]


class Faults:
    def __init__(self, world: World) -> None:
        self.world = world
        self.env = world.env
        self._drawn = 0  # victims chosen so far, by all job instances
        self._storage_down_until_ns = 0
        self._cut_off_until_ns: dict[int, int] = {}  # by host
        self._slow: dict[int, list[int]] = {}  # factors in force, by task
        self._slow_until: list[tuple[SlowTask, int | None]] = []  # all there were; None: to the end of the run
        if world.beginning is not None:
            self._go_on(world.beginning.faults)
        for number, fault in enumerate(world.scenario.faults):
            self.env.process(self._happen(number, fault))

    def delay_ns(self, task: int) -> int:
        """What a message between the JobManager and a task waits for its network now."""
        if not self._cut_off_until_ns:
            return 0
        return max(0, self._cut_off_until_ns.get(self.world.hosts[task], 0) - self.env.now)

    def _go_on(self, before: Faults) -> None:
        """A new job instance neither repairs nor repeats what befell the one before it: machines and storage are the same."""
        self._drawn = before._drawn
        if before._storage_down_until_ns > self.env.now:
            self._fail_storage(before._storage_down_until_ns)
        self._cut_off_until_ns = {host: ns for host, ns in before._cut_off_until_ns.items() if ns > self.env.now}
        for what, until_ns in before._slow_until:
            if until_ns is None or until_ns > self.env.now:
                self._slow_down_until(what, until_ns)

    def _happen(self, number: int, fault: Fault) -> Work[None]:
        """Process: one line of the plan, time after time."""
        for at_ns in self._times(number, fault):
            if self.world.beginning is not None and at_ns <= self.world.beginning.at_ns:
                continue  # it struck the job instance before this one
            yield self.env.timeout(at_ns - self.env.now)
            self.strike(fault.what)

    def _times(self, number: int, fault: Fault) -> Iterator[int]:
        if fault.when.every is None:
            yield from fault.when.at_ns
            return
        key, at_ns, k = stream(self.world.scenario.run.seed, "faults", number), 0, 0
        while True:
            at_ns += gap_ns(fault.when.every, key, k)
            k += 1
            yield at_ns

    def _draw(self, choices: int) -> int:
        u = draw(stream(self.world.scenario.run.seed, "victims"), self._drawn)
        self._drawn += 1
        return u * choices >> 32

    @by_kind
    def strike(self, what: Target) -> None:
        """Make it happen now."""
        raise TypeError(f"nobody knows how {what} happens")

    def _tasks(self, vertex: str, subtask: int | None) -> list[int]:
        names = self.world.names()
        return [task for task, (name, index) in enumerate(names) if name == vertex and subtask in (None, index)]

    def _host(self, host: int | None) -> int:
        return self._draw(max(self.world.hosts) + 1) if host is None else host

    @strike.register
    def _kill(self, what: Kill) -> None:
        tasks = [self._draw(len(self.world.tasks))] if what.vertex is None else self._tasks(what.vertex, what.subtask)
        self.world.recovery.fail_tasks(tasks, "killed")

    @strike.register
    def _lose_task_manager(self, what: TaskManagerLost) -> None:
        restart = self.world.scenario.restart
        noticed_ns = restart.heartbeat_timeout_ns if what.silent else min(restart.connection_reset_ns, restart.heartbeat_timeout_ns)
        self.world.recovery.lose_host(self._host(what.host), noticed_ns)

    @strike.register
    def _lose_job_manager(self, what: JobManagerDown) -> None:
        self.world.recovery.lose_job_manager(what.down_ns)

    @strike.register
    def _stop_storage(self, what: StorageOutage) -> None:
        self._note(f"no storage for {what.lasts_ns / 1e9:g} s")
        self._fail_storage(self.env.now + what.lasts_ns)

    def _fail_storage(self, until_ns: int) -> None:
        self._storage_down_until_ns = max(self._storage_down_until_ns, until_ns)
        self.world.storage.fail_until(until_ns)

    @strike.register
    def _cut_off(self, what: NetworkOutage) -> None:
        """Its tasks wait at their next record: nothing they need reaches them, nothing they do reaches anybody."""
        host, until_ns = self._host(what.host), self.env.now + what.lasts_ns
        self._note(f"task manager {host} cut off for {what.lasts_ns / 1e9:g} s")
        heartbeat_ns = self.world.scenario.restart.heartbeat_timeout_ns
        if what.lasts_ns >= heartbeat_ns:
            self.world.recovery.lose_host(host, heartbeat_ns)
            return
        self._cut_off_until_ns[host] = max(until_ns, self._cut_off_until_ns.get(host, 0))
        for task, its_host in enumerate(self.world.hosts):
            if its_host == host:
                self.world.tasks[task].thread.suspend(what.lasts_ns, self.env.call_in)

    @strike.register
    def _slow_down(self, what: SlowTask) -> None:
        self._note(f"{what.vertex} slower by {what.factor}")
        self._slow_down_until(what, None if what.lasts_ns is None else self.env.now + what.lasts_ns)

    def _slow_down_until(self, what: SlowTask, until_ns: int | None) -> None:
        self._slow_until.append((what, until_ns))
        for task in self._tasks(what.vertex, what.subtask):
            self._slow.setdefault(task, []).append(what.factor)
            self._scale(task)
            if until_ns is not None:
                self.env.call_in(until_ns - self.env.now, lambda task=task: self._speed_up(task, what.factor))  # type: ignore[misc]

    def _speed_up(self, task: int, factor: int) -> None:
        self._slow[task].remove(factor)
        self._scale(task)

    def _scale(self, task: int) -> None:
        """The slowest of several causes rules."""
        self.world.speed.slow(task, "fault", Fraction(max(self._slow[task], default=1)))

    def _note(self, detail: str) -> None:
        self.world.journal.note(self.env.now, Happening.FAULT, detail=detail)
