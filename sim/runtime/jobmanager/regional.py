"""Executes regional checkpoints in simulated time (FLIP-600): replaces the parts of failed regions, and notifies their tasks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from sim.protocol.coordinator_messages import CoordinatorCommand, Plan
from sim.protocol.regional import (
    AllSourcesEnded,
    NotifyRegionalComplete,
    RegionalCoordinator,
    WriteRegionalMetadata,
    without_claim,
    without_files,
)
from sim.results.journal import EventType
from sim.runtime.context import Contents, Context, TaskSnapshot
from sim.runtime.host_loop import HostLoop
from sim.runtime.jobmanager.coordinator_host import CoordinatorHost


@dataclass(slots=True)
class RegionalContents(Contents):
    """The snapshots of all tasks.  A task whose part was replaced does not know it, and may still take its snapshot."""

    replaced: set[tuple[int, int]] = field(default_factory=set)  # (checkpoint, task)
    # tasks without a part of the same subtask in the snapshot that the job began from
    added: set[int] = field(default_factory=set)

    def take_over(
        self,
        checkpoint: int,
        task: int,
        part: TaskSnapshot,
        before: Sequence[tuple[str, int]],
        after: Sequence[tuple[str, int]],
    ) -> None:
        Contents.take_over(self, checkpoint, task, part, before, after)
        if after[task] not in before:
            self.added.add(task)

    def add_part(self, checkpoint: int, task: int, part: TaskSnapshot) -> None:
        if (checkpoint, task) not in self.replaced:
            Contents.add_part(self, checkpoint, task, part)

    def writable_part(self, checkpoint: int, task: int) -> TaskSnapshot | None:
        return None if (checkpoint, task) in self.replaced else self.of(checkpoint, task)


class RegionalCoordinatorHost(CoordinatorHost):
    """Runs the machine of a coordinator with regional checkpoints."""

    contents: RegionalContents

    def __init__(self, context: Context, *others: Any) -> None:
        super().__init__(context, *others)
        exchanges = tuple(zip(context.layout.writer, context.layout.reader, strict=True))
        machine = RegionalCoordinator.of(self.machine, context.scenario.checkpoint.region, exchanges)
        self._loop: HostLoop[Any, Any, Any] = HostLoop(machine, RegionalCoordinator.on, self.carry_out)
        self._note = self._note_with_regions
        self._sources_ended = False  # as last told to the machine

    def plan(self) -> Plan | None:
        """Return the plan of a checkpoint that is triggered now.  The first one after the end of all sources is a global one."""
        ended = self.job_end.graph.sources <= self.job_end.ended | self.job_end.finished
        if ended and not self._sources_ended:
            self._loop.dispatch(AllSourcesEnded(self.env.now))
        self._sources_ended = ended
        return super().plan()

    def carry_out(self, command: CoordinatorCommand) -> None:
        """Execute a command, or schedule its execution."""
        if isinstance(command, WriteRegionalMetadata):
            self._replace_parts(command)
        super().carry_out(command)
        if isinstance(
            command, NotifyRegionalComplete
        ):  # a message that tasks ignore (notifyRegionalCheckpointFallback)
            tasks = len(command.failed)
            self._note(
                EventType.NOTIFIED_FALLBACK, command.checkpoint, number=command.fallback, detail=f"{tasks} tasks"
            )

    def _note_with_regions(
        self, event_type: EventType, checkpoint: int = -1, task: int = -1, number: int = 0, detail: str = ""
    ) -> None:
        """Add a journal row, which says of the last acknowledgement what it is without."""
        regional = self._loop.machine.replaced.get(checkpoint) if event_type is EventType.LAST_ACKNOWLEDGED else None
        without = "" if regional is None else f", without those of {len(regional.tasks)} tasks in failed regions,"
        self.context.note(event_type, checkpoint, task, number, detail or without)

    def _replace_parts(self, command: WriteRegionalMetadata) -> None:
        """Replace the parts of failed regions by those of the fallback.

        Parts are taken by subtask index.  A task that has none there, after a rescale, keeps what it has sent, or nothing.
        The others get the part that the rescale has given to them, which is not what the proposal gives them: the data
        plane cannot restore that.
        """
        checkpoint, stats = command.checkpoint, self.context.stats[command.checkpoint]
        for task in sorted(command.tasks):
            stats.acknowledged += stats.of(task).ack_ns < 0
            part, own = self.contents.of(command.fallback, task), self.contents.of(checkpoint, task)
            if part is None or (part.checkpoint <= self.context.begun_from and task in self.contents.added):
                continue
            self.files.store = without_files(self.files.store, checkpoint, () if own is None else own.files)
            self.contents.keep(checkpoint, task, command.fallback)
            self.contents.replaced.add((checkpoint, task))
            self.files.keep(checkpoint, part)
            self._note(EventType.PART_REPLACED, checkpoint, task, part.checkpoint)
            self.checks.part_reused(checkpoint, task, command.fallback)
        self.files.store = without_claim(self.files.store)
