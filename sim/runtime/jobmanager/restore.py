"""Tasks on their way back: deployed, state downloaded, standing where the checkpoint says, initializing until they run.

Flink: StreamTask#restoreInternal, SequentialChannelStateReaderImpl.  A task reads its recovered input while it is still INITIALIZING; it
runs when that is read, and the stages before it can send only then.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import simpy

from sim.metrics.journal import Happening
from sim.metrics.recoveries import RecoveryStats
from sim.runtime.contents import Held, beginning
from sim.runtime.observe.catch_up import CatchUp
from sim.storage.failures import StorageFailed
from sim.storage.work import Work

if TYPE_CHECKING:
    from sim.runtime.run.world import World

__all__ = ["Restore"]


class Restore:
    """Of the tasks of one restart."""

    def __init__(self, world: World, stats: RecoveryStats, tasks: frozenset[int]) -> None:
        self.world = world
        self.env = world.env
        self.stats = stats
        self.tasks = set(tasks)  # those no later failure has taken over
        self.checkpoint = world.coordinator.machine.latest_completed
        self._catch_up: CatchUp
        self._downloads: dict[int, simpy.Process] = {}
        self.env.call_in(self._slots_ns() + world.scenario.overheads.deploy_ns, self._deploy)

    def give_up(self, tasks: Iterable[int]) -> None:
        """These tasks have failed again."""
        for task in tasks:
            self.tasks.discard(task)
            if (download := self._downloads.pop(task, None)) is not None:
                download.interrupt()

    def _slots_ns(self) -> int:
        """Until every task has a slot: a lost task manager's come back with its replacement."""
        available = self.world.recovery.available_ns
        return max(0, *(available.get(self.world.hosts[task], 0) - self.env.now for task in self.tasks))

    def _deploy(self) -> None:
        """Everybody stands at its place; threads wait for their state.

        A region that has lost a task manager since is left to the restart which that brings once it is noticed.
        """
        regions = self.world.recovery.machine.regions
        self.tasks = set[int]().union(*(region for region in regions if region <= self.tasks))
        if not self.tasks:
            return
        world, stats = self.world, self.stats
        stats.deployed_ns, stats.checkpoint = self.env.now, self.checkpoint
        world.files.failed_over(self.checkpoint)
        tasks = sorted(self.tasks)
        world.journal.note(self.env.now, Happening.JOB_RESTORED, self.checkpoint, number=stats.number)
        held = {task: self._held(task) for task in tasks}
        self._catch_up = CatchUp(world, stats, held)
        world.counters.restart({task: part.position.served for task, part in held.items()})
        world.plane.start({task: part.position for task, part in held.items()})
        if world.checking is not None:
            world.checking.restarted(self.checkpoint, tasks)
        for task in tasks:
            world.renew(task)
            self._downloads[task] = self.env.process(self._download(task, held[task]))

    def _held(self, task: int) -> Held:
        part = self.world.contents.of(self.checkpoint, task)
        return Held(beginning(self.world.layout, task)) if part is None else part

    def _download(self, task: int, held: Held) -> Work[None]:
        """Process: output channel state, keyed and operator state, input channel state; then the thread begins."""
        host, place = self.world.hosts[task], self.world.names()[task]
        downloaded = 0
        try:
            if held.parts:
                state, served = self.world.tasks[task].state, held.position.served
                downloaded = yield from state.restore(self.world.storage, self.checkpoint, held.parts, served)
            if in_files_bytes := held.in_flight_bytes - held.inlined_bytes:
                name = ("restore", "channel-state", *place, self.checkpoint)
                yield from self.world.storage.read(in_files_bytes, *name, host=host)
        except simpy.Interrupt:
            return
        except StorageFailed as failure:
            del self._downloads[task]
            self.world.fail_task(task, f"restore: {failure}")
            return
        del self._downloads[task]
        self.stats.restored_bytes += downloaded
        self.stats.recovered_bytes += held.in_flight_bytes
        self.world.journal.note(self.env.now, Happening.TASK_RESTORED, self.checkpoint, task, downloaded)
        if self.world.checking is not None:
            self.world.checking.accounts.state.restored(self.checkpoint, task, self.world.tasks[task].state)
        self.world.tasks[task].restored(held)
        self.world.warm_up.begin(task)
        if not self.world.tasks[task].thread.occupied:  # by a commit of what the checkpoint held
            self.world.plane.release(task)
        if task in self._catch_up.readers:
            self._catch_up.begin(self.tasks)
        yield self.env.timeout(0)  # a process has at least one event

    def task_runs(self, task: int) -> None:
        """Its recovered input is read."""
        if task in self.tasks and all(self.world.tasks[t].running for t in self.tasks):
            self.stats.running_ns = self.env.now
