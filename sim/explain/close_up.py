"""Repeat a run with observers, to collect data that result tables do not contain.

They collect the data in channels when a barrier is sent, the records in windows, the files of storage, and the output of
compactions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from sim.model.frozen import frozen
from sim.model.scenario import Scenario
from sim.plane.interface import channels_out
from sim.runtime.context import Context, StateSnapshot, TaskSnapshot
from sim.runtime.job_instance import JobInstance
from sim.runtime.result import Result
from sim.runtime.sampling import Paths
from sim.runtime.simulate import simulate
from sim.storage.lsm import TreeImage


class Queued(NamedTuple):
    """The data in a channel in front of a barrier [bytes]."""

    at_writer: int  # not sent yet
    at_reader: int  # sent, but not read yet

    @property
    def total(self) -> int:
        return self.at_writer + self.at_reader


@dataclass(slots=True)
class ObservedInstance:
    """The observations of one job instance."""

    context: Context
    # (checkpoint, task) -> data in front of the task's barrier: a row per output channel, columns as in `Queued`
    queued: dict[tuple[int, int], np.ndarray] = field(default_factory=dict)
    # (checkpoint, task, reader) -> records in the reader's window, or its pending requests, when the task took its snapshot
    waiting: dict[tuple[int, int, int], int] = field(default_factory=dict)
    # (checkpoint, task) -> files of RocksDB below level 0, which compactions have written
    merged: dict[tuple[int, int], frozenset[str]] = field(default_factory=dict)
    paths: Paths | None = None

    def path_finder(self) -> Paths:
        """Return the finder of critical paths, which is created at the first call."""
        if self.paths is None:
            self.paths = Paths(self.context)
        return self.paths

    def fired(self, checkpoint: int, channel: int) -> int:
        """Return the minimum number of records that left the reader's window while the barrier was in this channel.

        This is from the snapshot of the writer to that of the reader; 0 if one of them is unknown.
        """
        writer, reader = self.context.layout.writer[channel], self.context.layout.reader[channel]
        before, after = self.waiting.get((checkpoint, writer, reader)), self.waiting.get((checkpoint, reader, reader))
        return 0 if before is None or after is None else max(0, before - after)

    def compacted(self, checkpoint: int, task: int) -> frozenset[str]:
        """Return the files of a task that compactions wrote since its previous checkpoint.

        Returns an empty set for the first checkpoint, which uploads all files.
        """
        earlier = [number for number, owner in self.merged if owner == task and number < checkpoint]
        if not earlier:
            return frozenset()
        return self.merged.get((checkpoint, task), frozenset()) - self.merged[max(earlier), task]

    def before_barrier(self, checkpoint: int, channel: int) -> Queued | None:
        """Return the data in the channel at the time at which the barrier was sent, or None if it was not sent."""
        writer = self.context.layout.writer[channel]
        rows = self.queued.get((checkpoint, writer))
        if rows is None:
            return None
        at_writer, at_reader = rows[channels_out(self.context.layout, writer).index(channel)].tolist()
        return Queued(at_writer, at_reader)


@frozen
class CloseUp:
    """The result of a run, together with the observations of its job instances."""

    result: Result
    instances: tuple[ObservedInstance, ...]


def rerun_with_observers(scenario: Scenario, *, progress: Callable[[int], None] | None = None) -> CloseUp:
    """Repeat a run with observers, which do not affect it.  `progress`: see `simulate`."""
    instances: list[ObservedInstance] = []

    def watch(job: JobInstance) -> None:
        instances.append(_observe(job))

    result = simulate(scenario, progress=progress, check=False, attach=watch)
    return CloseUp(result, tuple(instances))


def _observe(job: JobInstance) -> ObservedInstance:
    """Return the observations of a job instance, which are collected when a task takes a snapshot, and when state is stored."""
    instance = ObservedInstance(job.context)
    on_cut_before = job.contents.on_cut
    vertices = job.scenario.job.vertices
    holding = {
        task
        for task, vertex in enumerate(job.layout.vertex)
        if vertices[vertex].window is not None or vertices[vertex].async_io is not None
    }

    def cut(checkpoint: int, task: int, part: TaskSnapshot) -> None:
        on_cut_before(checkpoint, task, part)
        outputs = channels_out(job.layout, task)
        if outputs:
            rows = job.plane.channels()[outputs]
            queued = rows["written"] - rows["sent"], rows["sent"] - rows["taken"]
            instance.queued[checkpoint, task] = np.stack(queued, axis=1)
        for reader in sorted({task, *(job.layout.reader[channel] for channel in outputs)} & holding):
            instance.waiting[checkpoint, task, reader] = job.plane.position(reader).late

    def stored(checkpoint: int, task: int, files: StateSnapshot) -> None:
        if isinstance(files.keyed.image, TreeImage):
            instance.merged[checkpoint, task] = frozenset(
                table.name for level in files.keyed.image.levels[1:] for table in level
            )

    job.contents.on_cut, job.contents.on_stored = cut, stored
    return instance
