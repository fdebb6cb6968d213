"""Executes the checkpointing and the end of one task in simulated time.

It passes notices of the data plane and timers to the machine `TaskCheckpointing`, and executes the machine's commands.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from functools import partial
from typing import Literal, assert_never

import simpy

from sim.plane.interface import BARRIERS, FIRST_UNGROUPED_SERIES, Marker, Notice, NoticeKind, Trait, channels_out
from sim.protocol import messages, task_finishing
from sim.protocol.messages import GateClosed, InputEnded, Phase, TaskCommand, TaskEvent, Work
from sim.protocol.options import BarrierOptions, FailureReason, StopMode
from sim.protocol.task_checkpointing import TaskCheckpointing
from sim.protocol.task_finishing import EndCommand, EndEvent, EndState, TaskEnd
from sim.results.journal import EventType
from sim.results.tables import SubtaskStats
from sim.runtime.context import (
    CANCELLATIONS,
    END_OF_DATA,
    END_OF_PARTITION,
    WATERMARKS,
    StateSnapshot,
    TaskSnapshot,
    traits,
)
from sim.runtime.host_loop import HostLoop
from sim.runtime.task.parts import TaskParts
from sim.runtime.task.sink import SinkCommitter
from sim.runtime.task.subtask_state import SubtaskState
from sim.runtime.task.thread import AsyncThread, EqualSteps, Slot
from sim.storage import requests as storage_work
from sim.storage.state_files import CannotFreeze

# ---- Executes the end of a task (`sim.protocol.task_finishing`) in simulated time: EndOfData and EndOfPartition in its channels.


class TaskEnding:
    """Runs the machine that ends one task.

    `dispatch_to_checkpointing` passes events to the checkpointing of the task; `ending_of` returns the TaskEnding of another task.
    """

    _open: frozenset[int] = frozenset()
    """Snapshots in progress, reported to the machine when the end begins.  Tasks share the empty set, which takes 216 B each."""

    def __init__(
        self,
        slot: Slot,
        parts: TaskParts,
        dispatch_to_checkpointing: Callable[[TaskEvent], None],
        ending_of: Callable[[int], TaskEnding],
    ) -> None:
        context, layout, task = slot.context, slot.context.layout, slot.task
        self.slot = slot
        self.context = context
        self.parts = parts
        self.dispatch_to_checkpointing = dispatch_to_checkpointing
        self.ending_of = ending_of
        # called when the operators close, to stop background work of the task
        self.on_close: Callable[[], None] = lambda: None
        self.replaced = False  # the task was restarted, and has another TaskEnding
        self._channels_with_data = len(slot.channels)  # input channels without EndOfData
        self._ending = StopMode.DRAIN
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
                self.dispatch(task_finishing.DataEnded(self.slot.now, StopMode.DRAIN))

    def takes_part_in_checkpoint(self, checkpoint: int, stop: StopMode | None, again: Callable[[], None]) -> bool:
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

    def _stop(self, ending: StopMode) -> None:
        """Stop the reader of a source and end its data (SourceOperatorStreamTask#triggerStopWithSavepointAsync)."""
        if self.machine.state is EndState.RUNNING:
            self.slot.thread.serve_mails_only()
            if ending is not StopMode.FINISH_AFTER_SAVEPOINT:
                self.dispatch(task_finishing.DataEnded(self.slot.now, ending))

    def on_notice(self, notice: Notice) -> None:
        """Handle EndOfData or EndOfPartition of an input channel."""
        writer = self.ending_of(self.context.layout.writer[notice.channel])
        if notice.series == (END_OF_DATA if writer.machine.rule.end_of_data_first else END_OF_PARTITION):
            way_ns = 0 if self.context.layout.local[notice.channel] else self.context.scenario.cluster.latency_ns
            self.context.env.call_in(way_ns, lambda: writer.dispatch(task_finishing.OutputRead(self.slot.now)))
        if writer.machine.ending is not StopMode.NO_DRAIN:
            for part in self.parts:
                part.channel_ended(notice.channel)
        if notice.series == END_OF_DATA:
            self._channels_with_data -= 1
            if writer.machine.ending is StopMode.NO_DRAIN:
                self._ending = StopMode.NO_DRAIN  # the task drains only if all inputs do
            if not self._channels_with_data:
                self.dispatch(task_finishing.DataEnded(self.slot.now, self._ending))
        elif not self.machine.rule.after_finish:
            self.dispatch_to_checkpointing(InputEnded(self.slot.now, notice.gate))
        if notice.series == END_OF_PARTITION and notice.last:
            self._open_gates.discard(notice.gate)
            self.dispatch_to_checkpointing(GateClosed(self.slot.now, notice.gate))
            if not self._open_gates:
                self.dispatch(task_finishing.InputsClosed(self.slot.now))

    def closed(self, gate: int) -> bool:
        """Return whether all channels of the gate are closed."""
        return gate not in self._open_gates

    @property
    def listens(self) -> bool:
        """Whether the end of this task needs notifications of completed checkpoints."""
        return self.machine.state is not EndState.RUNNING or self.machine.stop is not None

    def snapshot_begun(self, checkpoint: int, stop: StopMode | None) -> None:
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
            # StopMode.FINISH_AFTER_SAVEPOINT: the data ends after the savepoint
            self.dispatch(task_finishing.DataEnded(self.slot.now, StopMode.DRAIN))

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
                self.slot.note(EventType.END_OF_DATA, detail=command.ending.value)
                self.slot.checks.data_ended(self.slot.task, command.ending.value)
                self.context.plane.forward(self.slot.task, Marker(1, Trait.NONE, END_OF_DATA))
            case task_finishing.ReportEndOfData():
                self._report(self.slot.job.data_ended)
            case task_finishing.CloseOperators():
                self._close_operators()
            case task_finishing.ForwardEndOfPartition():
                self.context.plane.forward(self.slot.task, Marker(1, Trait.FINAL, END_OF_PARTITION))
            case task_finishing.ReportFinished():
                self.slot.note(EventType.TASK_FINISHED)
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


class TaskHost:
    """One attempt of a task: its thread, its state, its parts, and the machines for checkpoints and for its end."""

    _channel_state_failed: frozenset[int] = frozenset()
    """Snapshots whose channel state failed before their asynchronous phase.  Tasks share the empty set, which takes 216 B each."""

    _woken_by = 0
    """The latest checkpoint whose barrier has woken the thread."""

    def __init__(
        self,
        slot: Slot,
        steps: EqualSteps,
        ending_of: Callable[[int], TaskEnding],
        committer_of: Callable[[str], SinkCommitter],
    ) -> None:
        self.slot = slot
        self._note = slot.note
        self.context = slot.context
        self.env, self.plane = slot.context.env, slot.context.plane
        self.task = slot.task
        self.job = slot.job
        self.thread = slot.thread
        self.state = SubtaskState(slot)
        self.async_thread = AsyncThread(self.env)
        self._loop = HostLoop(steps.first, steps.on, self.carry_out, self._on_event_after_stop)
        self.dispatch = self._loop.dispatch
        self.parts = TaskParts(slot, committer_of, lambda: self.ending.machine.drained)
        self.ending = TaskEnding(slot, self.parts, self.dispatch, ending_of)
        self.ending.on_close = lambda: self.state.keyed.stop()  # noqa: PLW0108  # a restore may replace it
        self.running = True  # neither initializing, nor cancelled or failed
        self.stopped = False  # cancelled or failed; a restarted task is another TaskHost
        self._closed = False  # restored as finished: its operators are not opened again (FLIP-147)
        self._outputs = self.context.outputs(slot.task)
        self._polled_at_first_barrier: dict[int, int] = {}
        # snapshot whose state is written after its in-flight data -> event that fires when the latter is written
        self._in_flight: dict[int, simpy.Event] = {}

    @property
    def machine(self) -> TaskCheckpointing:
        return self._loop.machine

    @property
    def storing(self) -> bool:
        """Whether captured buffers are being written to storage."""
        return any(part.storing for part in self.parts)

    # ------------------------------------------------------------------------------------------ events

    def on_notice(self, notice: Notice) -> None:
        """Handle a notice of the data plane about this task."""
        if self.stopped:
            return
        if notice.kind is NoticeKind.INTERRUPTED:
            self.thread.at_safe_point()
        elif notice.kind is NoticeKind.EXHAUSTED:
            self.ending.exhausted()
        elif notice.kind in (NoticeKind.DELAYED_OUTPUTS_WRITTEN, NoticeKind.WRITTEN) or notice.series == WATERMARKS:
            self.parts.on_notice(notice)
        elif notice.kind is NoticeKind.ARRIVED and notice.series == BARRIERS:
            self._barrier_arrived(notice)
        elif notice.kind is NoticeKind.ARRIVED and notice.series >= FIRST_UNGROUPED_SERIES:
            self.ending.on_notice(notice)
        elif notice.kind is NoticeKind.ARRIVED and notice.first:
            self.dispatch(messages.CancellationArrived(self.env.now, notice.gate, notice.number))
        elif notice.kind is NoticeKind.ANNOUNCED:
            edge = self.context.gate_edge(self.task, notice.gate)
            options = self.context.transit.announced_options(notice.number, edge)
            if self.thread.takes_mails:
                self.dispatch(messages.BarrierAnnounced(self.env.now, notice.gate, notice.number, options))
            else:  # the announcement is a mail, which waits for the task thread
                self.post(lambda now: messages.BarrierAnnounced(now, notice.gate, notice.number, options))
        elif notice.kind is NoticeKind.ANNOUNCED_SENT:
            self.slot.checks.barrier_left(notice.number, self.task)
            self.dispatch(messages.OutputBarriersLeft(self.env.now, notice.number))
        elif notice.kind is NoticeKind.RECOVERED:
            self.job.task_runs(self.task)

    def post(self, event: Callable[[int], TaskEvent]) -> None:
        """Pass an event to the machine by mail.  `event` is called with the time at which the task thread processes the mail."""
        self.thread.post(lambda: self.dispatch(event(self.env.now)))

    def notify_complete(self, checkpoint: int) -> bool:
        """Queue the notification of a completed checkpoint (StreamTask#notifyCheckpointCompleteAsync).

        Return whether the task needs it; otherwise the notification has no effect.
        """
        if listens := self.state.keyed.listens or self.parts.listens or self.ending.listens:
            self.thread.post(lambda: self._on_checkpoint_completed(checkpoint), notifies=True)
        return listens

    def _on_checkpoint_completed(self, checkpoint: int) -> None:
        """Process the notification of a completed checkpoint on the task thread."""
        if self.state.keyed.listens:
            self.state.keyed.notify_complete(checkpoint)
        for part in self.parts:
            part.completed(checkpoint)
        if self.ending.listens:
            # a separate mail, after the parts have handled the notification
            self.thread.post(lambda: self.ending.completed(checkpoint), notifies=True)

    def notify_aborted(self, checkpoint: int, latest_completed: int) -> None:
        """Queue the notification of an aborted checkpoint (StreamTask#notifyCheckpointAbortAsync).

        The task first processes that of `latest_completed`, in case it was lost; 0 if no checkpoint is complete.
        """

        def handle() -> None:
            if latest_completed:
                self._on_checkpoint_completed(latest_completed)
            self.dispatch(messages.AbortNotified(self.env.now, checkpoint))
            self.ending.aborted(checkpoint)
            for part in self.parts:
                part.aborted(checkpoint)

        self.thread.post(handle, notifies=True)

    def trigger(self, checkpoint: int, options: BarrierOptions) -> None:
        """Handle the coordinator's trigger call, which has reached the TaskManager."""
        self._polled_at_first_barrier[checkpoint] = 0
        self.thread.post(lambda: self._on_trigger(checkpoint, options))

    def _on_trigger(self, checkpoint: int, options: BarrierOptions) -> None:
        if self.ending.takes_part_in_checkpoint(
            checkpoint, options.stop, lambda: self._on_trigger(checkpoint, options)
        ):
            self._note(EventType.TRIGGER_RECEIVED, checkpoint)
            self.dispatch(messages.TriggerReceived(self.env.now, checkpoint, options))

    # ------------------------------------------------------------------------------------------ stop, restore, start

    def stop(self) -> None:
        """Stop the task, which fails or is cancelled.  Work that holds its thread continues to its end, without effect."""
        self.stopped, self.running, self._loop.is_over = True, False, True
        self.thread.stop()
        self.async_thread.stop()
        for part in self.parts:
            part.stop()
        self.state.keyed.stop()

    def download(self, snapshot: TaskSnapshot, union: Iterable[StateSnapshot]) -> storage_work.Work[int]:
        """Process: download the state of the task, the union list state of its vertex, and the files of its parts.

        Returns the size of the state [bytes].  Raises StorageFailed.
        """
        state_bytes = 0
        self._closed = snapshot.finished
        if snapshot.finished and not snapshot.holds_state:
            self.state.leave_closed_operators()
        if snapshot.checkpoint:  # even without parts: after rescaling, all key groups may be those of finished tasks
            served = snapshot.position.served
            state_bytes = yield from self.state.restore(snapshot.checkpoint, snapshot.parts, served, union)
        for part in self.parts:
            if (work := part.download(snapshot)) is not None:
                yield from work
        return state_bytes

    def restored(self, checkpoint: int, snapshot: TaskSnapshot) -> None:
        """Start the task after its part of the checkpoint is downloaded."""
        self.slot.checks.restored(
            checkpoint, self.task, self.state.restored_parts, self.state.keyed.restored_record_count
        )
        for part in self.parts:
            part.restored(snapshot)
        if not self.stopped:  # committing restored transactions may have failed the task
            self.begin()

    def begin(self) -> None:
        """Start the state backend and all parts."""
        self.state.keyed.start()
        for part in self.parts:
            part.begin()

    def _on_event_after_stop(self, event: TaskEvent) -> None:
        """Handle an event of a stopped task: only the end of work that holds its thread matters."""
        if isinstance(event, messages.PhaseFinished) and event.phase is not Phase.ASYNC:
            self.thread.free()

    def _barrier_arrived(self, notice: Notice) -> None:
        """Pass a barrier to the machine, after the wake-up time of the thread if it is the first one of its checkpoint."""
        layout, now = self.context.layout, self.env.now
        if self.ending.closed(notice.gate):
            return  # the end of the gate counted as its barrier
        writer, edge = layout.writer[notice.channel], layout.edge[notice.channel]
        options = self.context.transit.options(notice.number, writer, edge)
        if notice.number not in self._polled_at_first_barrier:
            self._polled_at_first_barrier[notice.number] = self.plane.polled(self.task)
        converted = (
            self.context.transit.was_sent(notice.number, writer, edge)
            and self.context.scenario.checkpoint.barriers.reaches_output
        )
        priority = options.has_priority(now, senders_convert=converted)
        self._note(EventType.BARRIER_ARRIVED, notice.number, notice.channel)

        def arrived() -> None:
            self.dispatch(
                messages.BarrierArrived(
                    self.env.now, notice.gate, notice.number, options, notice.first, notice.last, priority
                )
            )

        wake_up_ns = self.context.scenario.cluster.barrier_wake_up_ns
        if wake_up_ns and notice.number > self._woken_by and not self.thread.occupied:
            self._woken_by = notice.number
            self.thread.occupy()  # the thread processes no record until it has woken up
            self.env.call_in(wake_up_ns, lambda: self._take_barrier(arrived))
        else:
            arrived()

    def _take_barrier(self, arrived: Callable[[], None]) -> None:
        """Process the barrier after the thread has woken up."""
        self.thread.vacate()
        if not self.stopped:
            arrived()

    # ------------------------------------------------------------------------------------------ commands

    def carry_out(self, command: TaskCommand) -> None:
        """Execute a command, or schedule its execution."""
        checkpoint = command.checkpoint
        match command:
            case messages.ForwardBarrier():
                self._forward_barrier(command)
            case messages.RunPreBarrier():
                self._run_pre_barrier(command)
            case messages.RunSync():
                self._run_sync(command)
            case messages.ReleaseTask():
                self.thread.vacate()
            case messages.ResumeInputs():
                self.plane.resume(self.task, checkpoint)  # no effect if a newer barrier has aborted this checkpoint
                self._note(EventType.INPUTS_RESUMED, checkpoint)
            case messages.RunAsync():
                self._run_async(command)
            case messages.Acknowledge():
                self._acknowledge(command)
            case messages.StartChannelState():
                if self.slot.vertex.snapshot.after_in_flight:
                    self._in_flight[checkpoint] = self.env.event()
                for part in self.parts:
                    part.capture_begun(checkpoint)
            case messages.FinishChannelState():
                self.parts.capture_ended(
                    checkpoint,
                    lambda: self._on_channel_state_written(checkpoint),
                    lambda: self._fail_channel_state(checkpoint),
                )
            case messages.CaptureInput():
                for part in self.parts:
                    part.input_overtaken(checkpoint)
            case messages.FinishCapture():
                for part in self.parts:
                    part.barriers_complete(checkpoint)
            case messages.SettleBarriers():
                self.plane.settle(self.task, checkpoint)
            case messages.PrioritiseInput():
                self._note(EventType.INPUT_PRIORITISED, checkpoint)
                self.plane.prioritise(self.task, checkpoint)
            case messages.ArmAlignmentTimer():
                self._mail_at(command.at_ns, lambda now: messages.AlignmentTimedOut(now, checkpoint))
            case messages.ArmOutputTimer():
                self._mail_at(command.at_ns, lambda now: self._output_timed_out(now, checkpoint))
            case messages.ConvertOutput():
                overtaken_bytes = self.plane.convert_output(self.task, checkpoint)
                self._note(EventType.OUTPUT_CONVERTED, checkpoint, overtaken_bytes)
                self.slot.checks.barrier_converted(checkpoint, self.task)
                for part in self.parts:
                    part.output_converted(checkpoint, overtaken_bytes)
            case messages.DeclineCheckpoint():
                self._note(EventType.DECLINED, checkpoint, detail=command.reason.name)
                self.job.decline(self.task, checkpoint, command.reason)
            case messages.ForwardCancellation():
                self._note(EventType.CANCELLATION_FORWARDED, checkpoint)
                self.plane.forward(self.task, Marker(checkpoint, Trait.NONE, CANCELLATIONS))
            case messages.CancelSnapshot():
                self._cancel_snapshot(checkpoint)
            case _:
                assert_never(command)

    def _mail_at(self, at_ns: int, event: Callable[[int], TaskEvent]) -> None:
        """Pass an event to the machine by mail at `at_ns`, or now if it is over."""
        self.env.call_in(max(0, at_ns - self.env.now), lambda: self.post(event))

    def _output_timed_out(self, now: int, checkpoint: int) -> messages.OutputTimedOut:
        """Return the event that the alignment timeout has passed for barriers in the output queues."""
        self.slot.checks.deadline_announced(checkpoint, self.task)
        return messages.OutputTimedOut(now, checkpoint)

    def _run_pre_barrier(self, command: messages.RunPreBarrier) -> None:
        """Start a snapshot with the pre-barrier work of the operators."""
        stats = self._stats(command.checkpoint)
        stats.snapshot_begun_ns = self.env.now
        polled = self._polled_at_first_barrier.pop(command.checkpoint, None)
        stats.processed_bytes = self.plane.polled(self.task) - polled if polled else 0
        self._note(EventType.SNAPSHOT_BEGUN, command.checkpoint)
        stop = next(
            snapshot.options.stop for snapshot in self.machine.snapshots if snapshot.checkpoint == command.checkpoint
        )
        self.ending.snapshot_begun(command.checkpoint, stop)
        own_ns = self._thread_ns(command.work, "pre_barrier", command.checkpoint)
        self.parts.before_barrier(command, own_ns, partial(self._finish, command.checkpoint, Phase.PRE_BARRIER))

    def _forward_barrier(self, command: messages.ForwardBarrier) -> None:
        """Forward the barrier to all outputs, and take the snapshot of the position of the task."""
        overtaken_bytes, watched, overtakes = 0, False, False
        for edge, forced in self._outputs:
            options = command.options.with_unaligned_unsupported() if forced else command.options
            self.context.transit.send(command.checkpoint, self.task, edge, options)
            watched = watched or options.timeoutable
            overtakes = overtakes or options.unaligned
            overtaken_bytes += self.plane.forward(self.task, Marker(command.checkpoint, traits(options)), edge)
        self._note(EventType.BARRIER_FORWARDED, command.checkpoint, overtaken_bytes)
        if watched and self.context.scenario.checkpoint.barriers.reaches_output:
            self.slot.checks.barrier_waits(command.checkpoint, self.task)
        if overtakes:
            for part in self.parts:
                part.overtaken(command.checkpoint, overtaken_bytes)
        self.parts.cut(command.checkpoint, finished=self.ending.machine.drained or self._closed)
        self.state.begin(command.checkpoint, command.options.snapshot_type)
        self._finish(command.checkpoint, Phase.FORWARD_BARRIER)
        if command.options.timeoutable and not watched:  # no output queue in which the barrier could wait
            self.dispatch(messages.OutputBarriersLeft(self.env.now, command.checkpoint))

    def _run_sync(self, command: messages.RunSync) -> None:
        """Freeze the state and hold the task thread for the synchronous phase.  If freezing fails, the task fails."""
        try:
            frozen_ns = self.state.take(command.checkpoint, self.parts.waiting())
        except CannotFreeze as reason:  # StreamTask#triggerCheckpointOnBarrier: "Could not perform checkpoint"
            self.thread.end()
            self.job.fail_task(self.task, f"snapshot: {reason}")
            return
        own_ns = self._thread_ns(command.work, "sync", command.checkpoint) + self.context.residual_ns(
            "sync", self.task, command.checkpoint
        )
        if own_ns + frozen_ns:
            self.thread.occupy()
        self.env.call_in(own_ns + frozen_ns, partial(self._finish, command.checkpoint, Phase.SYNC))

    def _on_channel_state_written(self, checkpoint: int) -> None:
        """Handle that the in-flight data of a snapshot is durable."""
        if (written := self._in_flight.pop(checkpoint, None)) is not None:
            written.succeed()
        self.dispatch(messages.ChannelStateWritten(self.env.now, checkpoint))

    def _fail_channel_state(self, checkpoint: int) -> None:
        """Fail the asynchronous phase, now or when it starts, because writing the channel state failed."""
        if self._stats(checkpoint).async_begun_ns < 0:
            self._channel_state_failed |= {checkpoint}
        else:
            self._fail_async(checkpoint)

    def _fail_async(self, checkpoint: int) -> None:
        self.dispatch(messages.AsyncFailed(self.env.now, checkpoint))

    def _run_async(self, command: messages.RunAsync) -> None:
        """Queue the asynchronous phase of a snapshot on the asynchronous thread."""
        self._note(EventType.SYNC_FINISHED, command.checkpoint)
        self._stats(command.checkpoint).async_begun_ns = self.env.now
        finished = partial(self._finish, command.checkpoint, Phase.ASYNC)
        failed = partial(self._fail_async, command.checkpoint)
        self.async_thread.queue(command.checkpoint, self._async_work(command), finished, failed)
        if command.checkpoint in self._channel_state_failed:
            self._channel_state_failed -= {command.checkpoint}
            failed()

    def _async_work(self, command: messages.RunAsync) -> Generator[simpy.Event, None, None]:
        """Process: do the work of the asynchronous phase, one piece after the other."""
        stats = self._stats(command.checkpoint)
        stats.async_queue_ns = self.env.now - stats.async_begun_ns
        if (in_flight := self._in_flight.get(command.checkpoint)) is not None:
            yield in_flight
        for work in command.work:
            if work in (Work.OPERATOR_ASYNC, Work.OPERATOR_FLUSH):
                cost_ns = self.state.work_ns(
                    "async" if work is Work.OPERATOR_ASYNC else "pre_barrier", command.checkpoint
                )
                if cost_ns:
                    yield self.env.timeout(cost_ns)
                if work is Work.OPERATOR_FLUSH:
                    yield from self.parts.upload(command.checkpoint)
            elif work in (Work.KEYED_STATE, Work.OPERATOR_STATE):
                yield from self.state.write("keyed" if work is Work.KEYED_STATE else "operator", command.checkpoint)
        if residual_ns := self.context.residual_ns("async", self.task, command.checkpoint):
            yield self.env.timeout(residual_ns)
        self._note(EventType.STATE_WRITTEN, command.checkpoint, self.state.snapshots[command.checkpoint].written_bytes)

    def _acknowledge(self, command: messages.Acknowledge) -> None:
        """Acknowledge a snapshot and record its measurements."""
        self.async_thread.leave(command.checkpoint)
        stats, times = self._stats(command.checkpoint), command.times
        stats.first_barrier_ns, stats.alignment_ns = times.first_barrier_ns, times.alignment_ns
        stats.pre_barrier_ns, stats.sync_ns, stats.async_ns = times.pre_barrier_ns, times.sync_ns, times.async_ns
        stored = self.state.close(command.checkpoint)
        stats.state_bytes, stats.written_bytes = stored.full_bytes, stored.written_bytes
        self.context.contents.stored(command.checkpoint, self.task, stored.full_bytes, stored)
        self._note(EventType.ASYNC_FINISHED, command.checkpoint)
        self.job.acknowledge(self.task, command.checkpoint, stored.all_handles)
        self.ending.snapshot_ended(command.checkpoint)

    def _cancel_snapshot(self, checkpoint: int) -> None:
        """Cancel a snapshot and delete the files that it has written."""
        self._in_flight.pop(checkpoint, None)
        self.async_thread.leave(checkpoint)
        for part in self.parts:
            part.aborted(checkpoint)
        self.job.abandon(self.state.cancel(checkpoint))
        self._stats(checkpoint).aborted = True
        self.ending.snapshot_ended(checkpoint)

    # ------------------------------------------------------------------------------------------ time

    def _stats(self, checkpoint: int) -> SubtaskStats:
        return self.context.stats[checkpoint].of(self.task)

    def _thread_ns(self, work: tuple[Work, ...], phase: Literal["pre_barrier", "sync"], checkpoint: int) -> int:
        """Return the time of the operators' work in a phase [ns]."""
        return self.state.work_ns(phase, checkpoint) if Work.OPERATOR_FLUSH in work or Work.OPERATOR_SYNC in work else 0

    def _finish(self, checkpoint: int, phase: Phase) -> None:
        """Finish a phase of a snapshot."""
        self.dispatch(messages.PhaseFinished(self.env.now, checkpoint, phase))
