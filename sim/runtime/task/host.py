"""One task where the planes meet: notices and timers go to its protocol machine, the machine's commands get their time.

Decides nothing: what to do is `sim.protocol`'s, what moves is `sim.plane`'s.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Literal

import simpy

from sim.metrics.journal import Happening
from sim.metrics.stats import SubtaskStats
from sim.plane.seam.interface import BARRIERS, SINGLES, Kind, Marker, Notice, Trait
from sim.protocol import task_vocabulary as say
from sim.protocol.options import BarrierOptions
from sim.protocol.task import TaskCheckpointing
from sim.protocol.vocabulary import Phase, Work
from sim.runtime.by_kind import by_kind
from sim.runtime.contents import Held
from sim.runtime.markers import CANCELLATIONS, traits
from sim.runtime.task.async_thread import AsyncThread
from sim.runtime.task.end import TaskEnding
from sim.runtime.task.in_flight import InFlightData
from sim.runtime.task.log_writer import LogWriter
from sim.runtime.task.operator_io import OperatorIO
from sim.runtime.task.state_snapshot import SubtaskState
from sim.runtime.task.thread import TaskThread
from sim.state.changelog import ChangelogBackend

if TYPE_CHECKING:
    from sim.runtime.run.world import World

__all__ = ["TaskHost"]


class TaskHost:
    def __init__(self, world: World, task: int, machine: TaskCheckpointing, state: SubtaskState, in_flight: InFlightData) -> None:
        self.world = world
        self.env = world.env
        self.plane = world.plane
        self.task = task
        self.machine = machine
        self.state = state
        self.in_flight = in_flight
        self.thread = TaskThread(world.plane, task)
        self.async_thread = AsyncThread(world.env)
        self.on_abort: list[Callable[[int], None]] = []
        self.ending = TaskEnding(world, self, world.job_end.rule)
        self.on_complete: list[Callable[[int], None]] = []  # what the thread does when a checkpoint is said to be complete
        if state.listens:
            self.on_complete.append(state.notify_complete)
        self.on_restore: list[Callable[[Held], None]] = []  # ... when it begins with what a checkpoint holds for it
        if isinstance(state.backend, ChangelogBackend):
            state.log = LogWriter(self, state.backend)
        self.operator = OperatorIO(world, self)
        self.running = True  # not initializing, cancelled or failed
        self.stopped = False  # for good: another host takes the task over when it is restarted
        self._when_freed: Callable[[], None] | None = None
        self.thread.freed = self.free
        self._polled_at_first_barrier: dict[int, int] = {}
        self._channel_state_failed: set[int] = set()  # before the asynchronous phase began
        self._heard: deque[say.TaskEvent] = deque()

    # ------------------------------------------------------------------------------------------ what the machine is told

    def on_notice(self, notice: Notice) -> None:
        """A notice of the data plane about this task."""
        if self.stopped:
            return
        if notice.kind is Kind.SAFE:
            self.thread.at_safe_point()
        elif notice.kind is Kind.EXHAUSTED:
            self.ending.exhausted()
        elif notice.kind is Kind.ARRIVED and notice.series == BARRIERS:
            self._barrier_arrived(notice)
        elif notice.kind is Kind.ARRIVED and notice.series >= SINGLES:
            self.ending.on_notice(notice)
        elif notice.kind is Kind.ARRIVED and notice.first:
            self.tell(say.CancellationArrived(self.env.now, notice.gate, notice.number))
        elif notice.kind is Kind.ANNOUNCED:
            edge = self.world.gate_edge(self.task, notice.gate)
            options = self.world.transit.announced_options(notice.number, edge)
            if self.thread.takes_mails:
                self.tell(say.BarrierAnnounced(self.env.now, notice.gate, notice.number, options))
            else:  # it looks at it when it is free
                self.post(lambda now: say.BarrierAnnounced(now, notice.gate, notice.number, options))
        elif notice.kind is Kind.LEFT:
            self.tell(say.OutputBarriersLeft(self.env.now, notice.number))
        elif notice.kind is Kind.RECOVERED:
            self.world.recovery.task_runs(self.task)
        elif notice.kind is Kind.NONE_LATE:
            self.operator.answered()

    def post(self, event: Callable[[int], say.TaskEvent]) -> None:
        """Tell the machine by mail: the event is made when the task thread gets to it."""
        self.thread.post(lambda: self.tell(event(self.env.now)))

    def notify_complete(self, checkpoint: int) -> None:
        """The coordinator's notification reaches the task manager (StreamTask#notifyCheckpointCompleteAsync)."""
        if self.on_complete or self.ending.listens:
            self.thread.post(lambda: self._hear_complete(checkpoint), notifies=True)

    def _hear_complete(self, checkpoint: int) -> None:
        for listen in self.on_complete:
            listen(checkpoint)
        if self.ending.listens:
            self.thread.post(lambda: self.ending.completed(checkpoint), notifies=True)  # when all that is done

    def notify_aborted(self, checkpoint: int, latest_completed: int) -> None:
        """Likewise of an aborted one; what was completed before is heard first (StreamTask#notifyCheckpointAbortAsync)."""

        def hear() -> None:
            if latest_completed:
                self._hear_complete(latest_completed)
            self.tell(say.AbortNotified(self.env.now, checkpoint))
            for listen in self.on_abort:
                listen(checkpoint)

        self.thread.post(hear, notifies=True)

    def trigger(self, checkpoint: int, options: BarrierOptions) -> None:
        """The coordinator's trigger call reaches the task manager."""
        self._polled_at_first_barrier[checkpoint] = 0

        def execute() -> None:
            if self.ending.still_takes_part(checkpoint, options.stop):
                self.tell(say.TriggerReceived(self.env.now, checkpoint, options))

        self.thread.post(execute)

    def tell(self, event: say.TaskEvent) -> None:
        """One event after the other: what a command brings about is heard when all commands before it are carried out."""
        if self.stopped:
            self._hear_the_end(event)
            return
        self._heard.append(event)
        if len(self._heard) > 1:
            return
        while self._heard and not self.stopped:
            self.machine, commands = self.machine.on(self._heard[0])
            for command in commands:
                if not self.stopped:
                    self.carry_out(command)
            self._heard.popleft()

    # ------------------------------------------------------------------------------------------ its end and its beginning

    def stop(self) -> None:
        """The task fails or is cancelled: nothing it was doing ends, but work that holds its thread goes on until it is over."""
        self.stopped, self.running = True, False
        self.thread.stop()
        self.async_thread.stop()
        self.in_flight.stop()
        self.operator.stop()
        self.state.stop()

    def restored(self, held: Held) -> None:
        """Its state is there; the thread begins."""
        for take_over in self.on_restore:
            take_over(held)
        self.begin()

    def begin(self) -> None:
        """The task has its state and runs."""
        if self.state.log is not None:
            self.state.log.start()

    def count_updates(self) -> None:
        """Tell the state how many records were served by now."""
        self.state.count(self._served(), self.env.now)

    def _served(self) -> int:
        """As far as the state needs to know."""
        return self.plane.position(self.task).served if self.state.counts_records else 0

    def when_freed(self, then: Callable[[], None]) -> None:
        """Call `then` when a stopped task's thread has done what it cannot be interrupted in."""
        self._when_freed = then

    def _hear_the_end(self, event: say.TaskEvent) -> None:
        if isinstance(event, say.PhaseFinished) and event.phase is not Phase.ASYNC:
            self.free()

    def free(self) -> None:
        """The thread of a stopped task is no longer at work: it is done, or its process is gone."""
        self.thread.occupied = False
        if self._when_freed is not None:
            then, self._when_freed = self._when_freed, None
            then()

    def _barrier_arrived(self, notice: Notice) -> None:
        layout, now = self.world.layout, self.env.now
        if self.ending.closed(notice.gate):
            return  # the gate's end has counted for it
        options = self.world.transit.options(notice.number, layout.writer[notice.channel], layout.edge[notice.channel])
        if notice.number not in self._polled_at_first_barrier:
            self._polled_at_first_barrier[notice.number] = self.plane.polled(self.task)
        # barriers are converted in a sender's queue at the deadline (since FLINK-27251), never before it
        sent = self.world.transit.was_sent(notice.number, layout.writer[notice.channel], layout.edge[notice.channel])
        converts = sent and self.world.scenario.checkpoint.barriers.reaches_output
        priority = options.unaligned or (converts and options.timeoutable and now >= options.deadline_ns)
        self.tell(say.BarrierArrived(now, notice.gate, notice.number, options, notice.first, notice.last, priority))

    # ------------------------------------------------------------------------------------------ what the machine asks for

    @by_kind
    def carry_out(self, command: say.TaskCommand) -> None:
        """Do what a command says, or have it done in time."""
        raise TypeError(f"no task carries out {command}")

    def _note(self, happening: Happening, checkpoint: int, number: int = 0, detail: str = "") -> None:
        self.world.journal.note(self.env.now, happening, checkpoint, self.task, number, detail)

    @carry_out.register
    def _capture_input(self, command: say.CaptureInput) -> None:
        self.in_flight.capture_input(command.checkpoint)

    @carry_out.register
    def _finish_capture(self, command: say.FinishCapture) -> None:
        self._end_capture(command.checkpoint)

    def _end_capture(self, checkpoint: int) -> None:
        if self.in_flight.capturing(checkpoint):
            self.in_flight.finish_capture(checkpoint)

    @carry_out.register
    def _resume_inputs(self, command: say.ResumeInputs) -> None:
        self.plane.resume(self.task, command.checkpoint)  # a newer barrier may have given this one up
        self._note(Happening.INPUTS_RESUMED, command.checkpoint)

    @carry_out.register
    def _settle_barriers(self, command: say.SettleBarriers) -> None:
        self.plane.settle(self.task, command.checkpoint)

    @carry_out.register
    def _prioritise_input(self, command: say.PrioritiseInput) -> None:
        self._note(Happening.INPUT_PRIORITISED, command.checkpoint)
        self.plane.prioritise(self.task, command.checkpoint)

    @carry_out.register
    def _arm_alignment_timer(self, command: say.ArmAlignmentTimer) -> None:
        self._mail_at(command.at_ns, lambda now: say.AlignmentTimedOut(now, command.checkpoint))

    @carry_out.register
    def _arm_output_timer(self, command: say.ArmOutputTimer) -> None:
        self._mail_at(command.at_ns, lambda now: say.OutputTimedOut(now, command.checkpoint))

    def _mail_at(self, at_ns: int, event: Callable[[int], say.TaskEvent]) -> None:
        self.env.call_in(max(0, at_ns - self.env.now), lambda: self.post(event))

    @carry_out.register
    def _cancel_alignment_timer(self, _: say.CancelAlignmentTimer) -> None:
        """The machine ignores a wake-up whose reason is gone."""

    @carry_out.register
    def _decline(self, command: say.DeclineCheckpoint) -> None:
        self._note(Happening.DECLINED, command.checkpoint, detail=command.reason.name)
        self.world.coordinator.hear_decline(self.task, command.checkpoint, command.reason)

    @carry_out.register
    def _forward_cancellation(self, command: say.ForwardCancellation) -> None:
        self._note(Happening.CANCELLATION_FORWARDED, command.checkpoint)
        self.plane.forward(self.task, Marker(command.checkpoint, Trait.NONE, CANCELLATIONS))

    @carry_out.register
    def _run_pre_barrier(self, command: say.RunPreBarrier) -> None:
        stats = self._stats(command.checkpoint)
        stats.snapshot_begun_ns = self.env.now
        polled = self._polled_at_first_barrier.pop(command.checkpoint, None)
        stats.processed_bytes = self.plane.polled(self.task) - polled if polled else 0
        self._note(Happening.SNAPSHOT_BEGUN, command.checkpoint)
        self.ending.snapshot_begun(command.checkpoint)
        finished = lambda: self.tell(say.PhaseFinished(self.env.now, command.checkpoint, Phase.PRE_BARRIER))  # noqa: E731
        self.operator.before_barrier(command, self._thread_ns(command.work, "pre_barrier", command.checkpoint), finished)

    @carry_out.register
    def _forward_barrier(self, command: say.ForwardBarrier) -> None:
        overtaken_bytes, watched = 0, False
        for edge, forced in self.world.outputs(self.task):
            options = command.options.on_forced_edge() if forced else command.options
            self.world.transit.send(command.checkpoint, self.task, edge, options)
            watched = watched or options.traits.announced
            overtaken_bytes += self.plane.forward(self.task, Marker(command.checkpoint, traits(options)), edge)
        self._note(Happening.BARRIER_FORWARDED, command.checkpoint, overtaken_bytes)
        self.in_flight.store_output(command.checkpoint, overtaken_bytes)
        self.operator.cut(command.checkpoint, finished=self.ending.machine.drained)
        self.state.begin(command.checkpoint, command.options.snapshot_type)
        self.tell(say.PhaseFinished(self.env.now, command.checkpoint, Phase.FORWARD_BARRIER))
        if command.options.timeoutable and not watched:  # no queue a barrier could wait in
            self.tell(say.OutputBarriersLeft(self.env.now, command.checkpoint))

    @carry_out.register
    def _convert_output(self, command: say.ConvertOutput) -> None:
        overtaken_bytes = self.plane.convert_output(self.task, command.checkpoint)
        self._note(Happening.OUTPUT_CONVERTED, command.checkpoint, overtaken_bytes)
        self.in_flight.store_output(command.checkpoint, overtaken_bytes)

    @carry_out.register
    def _run_sync(self, command: say.RunSync) -> None:
        served, requests = self._served(), self.operator.requests()
        frozen_ns = self.state.take(command.checkpoint, served, self.env.now, self.world.storage.may_reuse, requests=requests)
        self._occupy(self._thread_ns(command.work, "sync", command.checkpoint) + frozen_ns, command.checkpoint, Phase.SYNC)

    @carry_out.register
    def _release_task(self, _: say.ReleaseTask) -> None:
        self.thread.vacate()

    @carry_out.register
    def _start_channel_state(self, command: say.StartChannelState) -> None:
        self.in_flight.start(command.checkpoint)

    @carry_out.register
    def _finish_channel_state(self, command: say.FinishChannelState) -> None:
        def written() -> None:
            self._note(Happening.CHANNEL_STATE_WRITTEN, command.checkpoint, stats.persisted_bytes)
            self.tell(say.ChannelStateWritten(self.env.now, command.checkpoint))

        self._end_capture(command.checkpoint)  # with every barrier here at the start nobody said so
        stats = self._stats(command.checkpoint)
        stats.captured_input_bytes, stats.captured_output_bytes = self.in_flight.volume(command.checkpoint)
        self.world.contents.in_flight_final(
            command.checkpoint, self.task, captured=stats.captured_input_bytes > 0, overtaken=stats.captured_output_bytes > 0
        )
        self.in_flight.finish(command.checkpoint, written, lambda: self._fail_channel_state(command.checkpoint))

    def _fail_channel_state(self, checkpoint: int) -> None:
        """Storage gave up: the asynchronous phase fails, now or as soon as it begins."""
        if self._stats(checkpoint).async_begun_ns < 0:
            self._channel_state_failed.add(checkpoint)
        else:
            self.tell(say.AsyncFailed(self.env.now, checkpoint))

    @carry_out.register
    def _run_async(self, command: say.RunAsync) -> None:
        def failed() -> None:
            self.tell(say.AsyncFailed(self.env.now, command.checkpoint))

        self._note(Happening.SYNC_FINISHED, command.checkpoint)
        self._stats(command.checkpoint).async_begun_ns = self.env.now
        finished = lambda: self.tell(say.PhaseFinished(self.env.now, command.checkpoint, Phase.ASYNC))  # noqa: E731
        self.async_thread.queue(command.checkpoint, lambda: self._async_work(command), finished, failed)
        if command.checkpoint in self._channel_state_failed:
            self._channel_state_failed.remove(command.checkpoint)
            failed()

    @carry_out.register
    def _acknowledge(self, command: say.Acknowledge) -> None:
        self.async_thread.leave(command.checkpoint)
        stats, times = self._stats(command.checkpoint), command.times
        stats.first_barrier_ns, stats.alignment_ns = times.first_barrier_ns, times.alignment_ns
        stats.pre_barrier_ns, stats.sync_ns, stats.async_ns = times.pre_barrier_ns, times.sync_ns, times.async_ns
        stored = self.state.close(command.checkpoint)
        stats.state_bytes, stats.written_bytes = stored.full_bytes, stored.written_bytes
        self.world.contents.stored(command.checkpoint, self.task, stored.full_bytes, stored)
        self._note(Happening.ASYNC_FINISHED, command.checkpoint)
        self.world.files.offer(command.checkpoint, self.task, stored.all_handles)
        self.world.coordinator.hear_acknowledgement(self.task, command.checkpoint)
        self.ending.snapshot_ended(command.checkpoint)

    @carry_out.register
    def _cancel_snapshot(self, command: say.CancelSnapshot) -> None:
        self.async_thread.leave(command.checkpoint)
        self.operator.abort(command.checkpoint)
        self.world.files.abandon(self.state.cancel(command.checkpoint))
        self.in_flight.cancel(command.checkpoint)
        self._stats(command.checkpoint).aborted = True
        self.ending.snapshot_ended(command.checkpoint)

    # ------------------------------------------------------------------------------------------ time

    def _stats(self, checkpoint: int) -> SubtaskStats:
        return self.world.stats[checkpoint].of(self.task)

    def _thread_ns(self, work: tuple[Work, ...], phase: Literal["pre_barrier", "sync"], checkpoint: int) -> int:
        """What the task thread spends in a phase [ns]."""
        own = {Work.OPERATOR_FLUSH, Work.OPERATOR_SYNC}
        return self.state.work_ns(phase, checkpoint) if own & set(work) else 0

    def _occupy(self, cost_ns: int, checkpoint: int, phase: Phase) -> None:
        if cost_ns:
            self.thread.occupy()
        self.env.call_in(cost_ns, lambda: self.tell(say.PhaseFinished(self.env.now, checkpoint, phase)))

    def _async_work(self, command: say.RunAsync) -> Generator[simpy.Event, None, None]:
        """Process: one piece after the other in the task's one asynchronous thread."""
        stats = self._stats(command.checkpoint)
        stats.async_queue_ns = self.env.now - stats.async_begun_ns
        for work in command.work:
            if work in (Work.OPERATOR_ASYNC, Work.OPERATOR_FLUSH):
                cost_ns = self.state.work_ns("async" if work is Work.OPERATOR_ASYNC else "pre_barrier", command.checkpoint)
                if cost_ns:
                    yield self.env.timeout(cost_ns)
                if work is Work.OPERATOR_FLUSH:
                    yield from self.operator.upload(command.checkpoint)
            elif work in (Work.KEYED_STATE, Work.OPERATOR_STATE):
                yield from self.state.write(self.world.storage, "keyed" if work is Work.KEYED_STATE else "operator", command.checkpoint)
        self._note(Happening.STATE_WRITTEN, command.checkpoint, self.state.snapshots[command.checkpoint].written_bytes)
