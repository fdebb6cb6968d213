"""Executes the end of a task (`sim.protocol.task_finishing`) in simulated time: EndOfData and EndOfPartition in its channels."""

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
from sim.runtime.task.thread import Slot


class TaskEnding:
    """Runs the machine that ends one task.

    `tell_barriers` passes events to the checkpointing of the task; `ending_of` returns the TaskEnding of another task.
    """

    _open: frozenset[int] = frozenset()
    """Snapshots in progress, reported to the machine when the end begins.  Tasks share the empty set, which takes 216 B each."""

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
        # called when the operators close, to stop background work of the task
        self.on_close: Callable[[], None] = lambda: None
        self.replaced = False  # the task was restarted, and has another TaskEnding
        self._channels_with_data = len(slot.channels)  # input channels without EndOfData
        self._ending = Ending.DRAIN
        self._open_gates = set(range(len(layout.task_gates[task])))
        machine = TaskEnd(slot.job.rule, context.periodic, len(channels_out(layout, task)), bool(self._open_gates))
        self._loop = HostLoop(machine, TaskEnd.on, self.carry_out)

    @property
    def machine(self) -> TaskEnd:
        return self._loop.machine

    # ------------------------------------------------------------------------------------------ events

    def exhausted(self) -> None:
        """Handle that a source has no record to emit: at the end of its data, or until the next one is due."""
        total = self.slot.vertex.total(self.context.layout.subtask[self.slot.task])
        if total is not None and self.machine.state is EndState.RUNNING:
            if int(self.context.plane.served()[self.slot.task]) >= total:
                self.dispatch(task_finishing.DataEnded(self.slot.now, Ending.DRAIN))

    def still_takes_part(self, checkpoint: int, stop: Ending | None, again: Callable[[], None]) -> bool:
        """Return whether the task takes part in a checkpoint whose trigger call is executed now.

        A closing task declines.  In a stop-with-savepoint a source ends its data first; if its operators have to emit
        records then, the call is executed `again` afterwards.
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
        """Stop the reader of a source and end its data (SourceOperatorStreamTask#triggerStopWithSavepointAsync)."""
        if self.machine.state is EndState.RUNNING:
            self.slot.thread.serve_mails_only()
            if ending is not Ending.AFTERWARDS:
                self.dispatch(task_finishing.DataEnded(self.slot.now, ending))

    def on_notice(self, notice: Notice) -> None:
        """Handle EndOfData or EndOfPartition of an input channel."""
        writer = self.ending_of(self.context.layout.writer[notice.channel])
        if notice.series == (END_OF_DATA if writer.machine.rule.end_of_data_first else END_OF_PARTITION):
            way_ns = 0 if self.context.layout.local[notice.channel] else self.context.scenario.cluster.latency_ns
            self.context.env.call_in(way_ns, lambda: writer.dispatch(task_finishing.OutputRead(self.slot.now)))
        if writer.machine.ending is not Ending.NO_DRAIN:
            for part in self.parts:
                part.channel_ended(notice.channel)
        if notice.series == END_OF_DATA:
            self._channels_with_data -= 1
            if writer.machine.ending is Ending.NO_DRAIN:
                self._ending = Ending.NO_DRAIN  # the task drains only if all inputs do
            if not self._channels_with_data:
                self.dispatch(task_finishing.DataEnded(self.slot.now, self._ending))
        elif not self.machine.rule.after_finish:
            self.tell_barriers(InputEnded(self.slot.now, notice.gate))
        if notice.series == END_OF_PARTITION and notice.last:
            self._open_gates.discard(notice.gate)
            self.tell_barriers(GateClosed(self.slot.now, notice.gate))
            if not self._open_gates:
                self.dispatch(task_finishing.InputsClosed(self.slot.now))

    def closed(self, gate: int) -> bool:
        """Return whether all channels of the gate are closed."""
        return gate not in self._open_gates

    @property
    def listens(self) -> bool:
        """Whether the end of this task needs notifications of completed checkpoints."""
        return self.machine.state is not EndState.RUNNING or self.machine.stop is not None

    def snapshot_begun(self, checkpoint: int, stop: Ending | None) -> None:
        """Handle the start of a snapshot.  For a stop-with-savepoint, `stop` is how the data ends; otherwise None."""
        self._open |= {checkpoint}
        if stop is not None or self.machine.state is not EndState.RUNNING:
            self.dispatch(task_finishing.SnapshotBegun(self.slot.now, checkpoint, stop))
        if self.machine.drained:
            self.slot.job.finished_in(self.slot.task, checkpoint)

    def snapshot_ended(self, checkpoint: int) -> None:
        """Handle that a snapshot is acknowledged or cancelled."""
        self._open -= {checkpoint}
        if checkpoint in self.machine.open:
            self.dispatch(task_finishing.SnapshotEnded(self.slot.now, checkpoint))

    def completed(self, checkpoint: int) -> None:
        """Handle that the task has processed the notification of a completed checkpoint."""
        self.dispatch(task_finishing.CompletionHandled(self.slot.now, checkpoint))
        if self.machine.stop == checkpoint and self.slot.thread.mails_only and self.machine.state is EndState.RUNNING:
            # Ending.AFTERWARDS: the data ends after the savepoint
            self.dispatch(task_finishing.DataEnded(self.slot.now, Ending.DRAIN))

    def aborted(self, checkpoint: int) -> None:
        """Handle the notification of an aborted checkpoint."""
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

    # ------------------------------------------------------------------------------------------ commands

    def carry_out(self, command: EndCommand) -> None:
        """Execute a command, or schedule its execution."""
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
        """Close the operators.  A sink that does not wait for a final checkpoint commits first."""

        def close() -> None:
            self.on_close()
            closed = lambda: self.dispatch(task_finishing.OperatorsClosed(self.slot.now))  # noqa: E731
            self.context.env.call_in(self.context.scenario.overheads.close_ns, closed)

        tail, checkpointing = self.machine.rule.tail, self.machine.checkpointing
        # CommitterOperator#endInput: without checkpoints, commit at the end
        if tail == "at-finish" or (tail == "checkpoint" and not checkpointing):
            for part in self.parts:
                part.close()
        # a mail, so that it runs after that work, and after a materialisation that is freezing state
        self.slot.thread.post(close)

    def _report(self, arrive: Callable[[int], None]) -> None:
        """Report to the JobManager.  Reports of a task that has been restarted are ignored."""
        task = self.slot.task
        self.slot.job.message(
            self.context.scenario.overheads.acknowledge_ns, lambda: None if self.replaced else arrive(task)
        )
