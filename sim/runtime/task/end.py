"""The end of one task: ends of data and of partitions travel in its streams, and a machine decides what follows.

Decides nothing: when a task may finish is `sim.protocol.task_finishing`'s.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import assert_never

from sim.plane.interface import Marker, Notice, Trait, channels_out
from sim.protocol import task_finishing
from sim.protocol.options import Ending, FailureReason
from sim.protocol.task_finishing import EndCommand, EndEvent, EndState, TaskEnd
from sim.protocol.task_messages import GateClosed, InputEnded, TaskEvent
from sim.results.journal import Happening
from sim.runtime.context import END_OF_DATA, END_OF_PARTITION
from sim.runtime.host_loop import HostLoop
from sim.runtime.task.parts import TaskParts
from sim.runtime.task.slot import Slot


class TaskEnding:
    """The end of one task: a host of the machine that decides about it.

    `tell_barriers` reports barriers and snapshots to the machine; `ending_of` gives the end of another task.
    """

    _open: frozenset[int] = frozenset()
    """Snapshots under way, told to the machine when the end begins.  Tasks share the empty set: each of its own takes 216 B."""

    def __init__(
        self,
        slot: Slot,
        parts: TaskParts,
        tell_barriers: Callable[[TaskEvent], None],
        ending_of: Callable[[int], TaskEnding],
    ) -> None:
        context, layout, task = slot.context, slot.context.layout, slot.task
        self.slot = slot
        self.context = context
        self.parts = parts
        self.tell_barriers = tell_barriers
        self.ending_of = ending_of
        # operators are closed: nothing works for the task in the background any more
        self.on_close: Callable[[], None] = lambda: None
        self.replaced = False  # another host has taken the task over
        self._on_event_without_leader = len(slot.channels)  # input channels whose data goes on
        self._ending = Ending.DRAIN
        self._open_gates = set(range(len(layout.task_gates[task])))
        machine = TaskEnd(slot.job.rule, context.periodic, len(channels_out(layout, task)), bool(self._open_gates))
        self._loop = HostLoop(machine, TaskEnd.on, self.carry_out)

    @property
    def machine(self) -> TaskEnd:
        return self._loop.machine

    # ------------------------------------------------------------------------------------------ what the machine is told

    def exhausted(self) -> None:
        """The source has emitted what the plane had for it: the end of its log, or of what is due for now."""
        total = self.slot.vertex.total(self.context.layout.subtask[self.slot.task])
        if total is not None and self.machine.state is EndState.RUNNING:
            if int(self.context.plane.served()[self.slot.task]) >= total:
                self.dispatch(task_finishing.DataEnded(self.slot.now, Ending.DRAIN))

    def still_takes_part(self, checkpoint: int, stop: Ending | None, again: Callable[[], None]) -> bool:
        """A call for a checkpoint is executed: too late for a task that closes; a source ends its data first if the job stops with it.

        What its operators hold then is written first: the mail is executed `again`.
        """
        if self.machine.closing:
            self.slot.job.decline(self.slot.task, checkpoint, FailureReason.CHECKPOINT_DECLINED_TASK_CLOSING)
            return False
        if stop is not None and not self.context.layout.task_gates[self.slot.task]:
            self._stop(stop)
            if self.slot.thread.yields:
                self.slot.thread.post(again)
                return False
        return True

    def _stop(self, ending: Ending) -> None:
        """A source's reader is stopped: its data ends here, at a safe point (SourceOperatorStreamTask#triggerStopWithSavepointAsync)."""
        if self.machine.state is EndState.RUNNING:
            self.slot.thread.serve_mails_only()
            if ending is not Ending.AFTERWARDS:
                self.dispatch(task_finishing.DataEnded(self.slot.now, ending))

    def on_notice(self, notice: Notice) -> None:
        """An end of data or of a partition was processed on an input channel."""
        writer = self.ending_of(self.context.layout.writer[notice.channel])
        if notice.series == (END_OF_DATA if writer.machine.rule.end_of_data_first else END_OF_PARTITION):
            way_ns = 0 if self.context.layout.local[notice.channel] else self.context.scenario.cluster.latency_ns
            self.context.env.call_in(way_ns, lambda: writer.dispatch(task_finishing.OutputRead(self.slot.now)))
        if writer.machine.ending is not Ending.NO_DRAIN:
            for part in self.parts:
                part.channel_ended(notice.channel)
        if notice.series == END_OF_DATA:
            self._on_event_without_leader -= 1
            if writer.machine.ending is Ending.NO_DRAIN:
                self._ending = Ending.NO_DRAIN  # to drain, all must
            if not self._on_event_without_leader:
                self.dispatch(task_finishing.DataEnded(self.slot.now, self._ending))
        elif not self.machine.rule.after_finish:
            self.tell_barriers(InputEnded(self.slot.now, notice.gate))
        if notice.series == END_OF_PARTITION and notice.last:
            self._open_gates.discard(notice.gate)
            self.tell_barriers(GateClosed(self.slot.now, notice.gate))
            if not self._open_gates:
                self.dispatch(task_finishing.InputsClosed(self.slot.now))

    def closed(self, gate: int) -> bool:
        """Whether all channels of the gate are closed."""
        return gate not in self._open_gates

    @property
    def listens(self) -> bool:
        """Whether completions matter to the end of this task."""
        return self.machine.state is not EndState.RUNNING or self.machine.stop is not None

    def snapshot_begun(self, checkpoint: int, stop: Ending | None) -> None:
        """`stop`: how the data ends, if the job stops with it."""
        self._open |= {checkpoint}
        if stop is not None or self.machine.state is not EndState.RUNNING:
            self.dispatch(task_finishing.SnapshotBegun(self.slot.now, checkpoint, stop))
        if self.machine.drained:
            self.slot.job.finished_in(self.slot.task, checkpoint)

    def snapshot_ended(self, checkpoint: int) -> None:
        self._open -= {checkpoint}
        if checkpoint in self.machine.open:
            self.dispatch(task_finishing.SnapshotEnded(self.slot.now, checkpoint))

    def completed(self, checkpoint: int) -> None:
        """The task has heard of a completion and done what it asks."""
        self.dispatch(task_finishing.CompletionHandled(self.slot.now, checkpoint))
        if self.machine.stop == checkpoint and self.slot.thread.mails_only and self.machine.state is EndState.RUNNING:
            self.dispatch(
                task_finishing.DataEnded(self.slot.now, Ending.DRAIN)
            )  # the savepoint first, the end afterwards

    def aborted(self, checkpoint: int) -> None:
        """The task has heard that a checkpoint is aborted."""
        if self.machine.fails_with(checkpoint):
            self.slot.job.fail_task(self.slot.task, "stop-with-savepoint failed")

    def dispatch(self, event: EndEvent) -> None:
        """Pass an event to the machine, unless the task was restarted."""
        if self.slot.thread.stopped or self.replaced:
            return
        if self.machine.state is EndState.RUNNING and isinstance(
            event, task_finishing.DataEnded | task_finishing.InputsClosed
        ):
            for checkpoint in sorted(self._open - self.machine.open):
                self._loop.dispatch(task_finishing.SnapshotBegun(self.slot.now, checkpoint))
        self._loop.dispatch(event)

    # ------------------------------------------------------------------------------------------ what the machine asks for

    def carry_out(self, command: EndCommand) -> None:
        """Do what a command says, or have it done in time."""
        match command:
            case task_finishing.FinishOperators():
                self.parts.end_input(lambda: self.dispatch(task_finishing.OperatorsFinished(self.slot.now)))
            case task_finishing.QuiesceTimers():
                for part in self.parts:
                    part.quiesce()
            case task_finishing.ForwardEndOfData():
                self.slot.note(Happening.END_OF_DATA, detail=command.ending.value)
                self.slot.checks.data_ended(self.slot.task, command.ending.value)
                self.context.plane.forward(self.slot.task, Marker(1, Trait.NONE, END_OF_DATA))
            case task_finishing.ReportEndOfData():
                self._report(self.slot.job.data_ended)
            case task_finishing.CloseOperators():
                self._close_operators()
            case task_finishing.ForwardEndOfPartition():
                self.context.plane.forward(self.slot.task, Marker(1, Trait.FINAL, END_OF_PARTITION))
            case task_finishing.ReportFinished():
                self.slot.note(Happening.TASK_FINISHED)
                for part in self.parts:
                    part.finished()
                self._report(self.slot.job.task_finished)
            case _:
                assert_never(command)

    def _close_operators(self) -> None:
        def close() -> None:
            self.on_close()
            closed = lambda: self.dispatch(task_finishing.OperatorsClosed(self.slot.now))  # noqa: E731
            self.context.env.call_in(self.context.scenario.overheads.close_ns, closed)

        tail, checkpointing = self.machine.rule.tail, self.machine.checkpointing
        # CommitterOperator#endInput: no checkpoint will
        if tail == "at-finish" or (tail == "checkpoint" and not checkpointing):
            for part in self.parts:
                part.close()
        self.slot.thread.post(close)  # behind that work, and what a changelog's materialisation still freezes

    def _report(self, arrive: Callable[[int], None]) -> None:
        """Report to the JobManager.  It ignores reports of a task that was restarted meanwhile."""
        task = self.slot.task
        self.slot.job.message(
            self.context.scenario.overheads.acknowledge_ns, lambda: None if self.replaced else arrive(task)
        )
