"""The JobManager where the planes meet: the coordinator machine's commands get their time and reach the tasks."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING

import simpy

from sim.metrics.journal import Happening
from sim.metrics.stats import CheckpointStats
from sim.model.random import chance, stream
from sim.protocol import vocabulary as say
from sim.protocol.coordinator import Coordinator
from sim.protocol.reasons import FailureReason
from sim.runtime.background import begin
from sim.runtime.by_kind import by_kind
from sim.runtime.observe.standstill import standstill
from sim.storage.failures import StorageFailed

if TYPE_CHECKING:
    from sim.runtime.run.world import World

__all__ = ["CoordinatorHost"]


class CoordinatorHost:
    def __init__(self, world: World, machine: Coordinator) -> None:
        self.world = world
        self.env = world.env
        self.machine = machine
        self.overheads = world.scenario.overheads
        self.silent = False  # it cannot tell anybody what it does
        self._lives = 0  # JobManagers lost so far
        self._timer: simpy.Event | None = None
        self._heard: deque[say.CoordinatorEvent] = deque()
        self._waiting: deque[Callable[[], None]] = deque()  # for the coordinator's lock
        self._at_work = False  # somebody goes through those that wait

    def start(self, first_delay_ns: int) -> None:
        """All tasks run."""
        self.tell(say.SchedulerStarted(self.env.now, first_delay_ns))

    def tell(self, event: say.CoordinatorEvent) -> None:
        """One event after the other: what a command brings about is heard when all commands before it are carried out."""
        self._heard.append(event)
        if len(self._heard) > 1:
            return
        while self._heard:
            self.machine, commands = self.machine.on(self._heard[0])
            for command in commands:
                self.carry_out(command)
            self._heard.popleft()
        self._go_on()

    def _in_turn(self, work: Callable[[], None]) -> None:
        """Now, or as soon as the lock is free: first come, first served."""
        self._waiting.append(work)
        self._go_on()

    def _go_on(self) -> None:
        if self._at_work:
            return
        self._at_work = True
        while self._waiting and not self.machine.locked:
            self._waiting.popleft()()
        self._at_work = False

    def hear_acknowledgement(self, task: int, checkpoint: int) -> None:
        """A task's acknowledgement sets out."""

        def arrive() -> None:
            if not self.world.files.acknowledged(checkpoint, task):
                self._note(Happening.STATE_UNKNOWN, checkpoint, task)
                return
            stats = self.world.stats[checkpoint]
            stats.of(task).ack_ns = self.env.now
            if stats.status == "IN_PROGRESS":
                stats.latest_ack_ns = self.env.now
                stats.acknowledged += 1
            self._note(Happening.ACKNOWLEDGED, checkpoint, task)
            self.tell(say.Acknowledged(self.env.now, task, checkpoint))

        self._message(task, arrive)

    def hear_decline(self, task: int, checkpoint: int, reason: FailureReason) -> None:
        self._message(task, lambda: self.tell(say.Declined(self.env.now, task, checkpoint, reason)))

    def lose(self) -> None:
        """The JobManager is gone: whatever it was told is lost with it, nobody hears from it; completed checkpoints are kept."""
        self._lives += 1
        self.silent = True
        self.tell(say.SchedulerStopped(self.env.now))
        self.silent = False

    def _message(self, task: int, arrive: Callable[[], None]) -> None:
        """From a task; one that sets out to a JobManager which is gone by then is lost."""
        life = self._lives
        delay_ns = self.overheads.acknowledge_ns + self.world.faults.delay_ns(task)
        self.env.call_in(delay_ns, lambda: self._in_turn(lambda: arrive() if life == self._lives else None))

    @by_kind
    def carry_out(self, command: say.CoordinatorCommand) -> None:
        """Do what a command says, or have it done in time."""
        raise TypeError(f"the coordinator does not carry out {command}")

    def _note(self, happening: Happening, checkpoint: int = -1, task: int = -1, number: int = 0, detail: str = "") -> None:
        self.world.journal.note(self.env.now, happening, checkpoint, task, number, detail)

    @carry_out.register
    def _arm_periodic_timer(self, command: say.ArmPeriodicTimer) -> None:
        timer = self.env.timeout(command.at_ns - self.env.now)
        timer.callbacks.append(self._periodic_timer_fired)
        self._timer = timer

    def _periodic_timer_fired(self, timer: simpy.Event) -> None:
        if timer is self._timer:
            self.tell(say.PeriodicTimerFired(self.env.now))

    @carry_out.register
    def _cancel_periodic_timer(self, _: say.CancelPeriodicTimer) -> None:
        self._timer = None

    @carry_out.register
    def _prepare_trigger(self, _: say.PrepareTrigger) -> None:
        self.env.call_in(self.overheads.trigger_ns, lambda: self.tell(say.TriggerReady(self.env.now, self.world.plan())))

    @carry_out.register
    def _trigger_tasks(self, command: say.TriggerTasks) -> None:
        options = self.world.files.begun(command.checkpoint, command.options)
        for task in sorted(command.tasks):
            self.world.tasks[task].trigger(command.checkpoint, options)

    @carry_out.register
    def _arm_checkpoint_timeout(self, command: say.ArmCheckpointTimeout) -> None:
        expire = lambda: self.tell(say.CheckpointTimedOut(self.env.now, command.checkpoint))  # noqa: E731
        self.env.call_in(command.at_ns - self.env.now, lambda: self._in_turn(expire))

    @carry_out.register
    def _write_metadata(self, command: say.WriteMetadata) -> None:
        self._note(Happening.LAST_ACKNOWLEDGED, command.checkpoint)
        if self.world.job_end.splits_union_state(command.checkpoint):
            reason = FailureReason.CHECKPOINT_DECLINED_TASK_CLOSING
            self.tell(say.MetadataWritten(self.env.now, command.checkpoint, failed=True, reason=reason))
        else:
            self.env.process(self._finalise(command.checkpoint))

    def _finalise(self, checkpoint: int) -> Generator[simpy.Event, None, None]:
        try:
            file = yield from self.world.storage.write_metadata(checkpoint)
        except StorageFailed:
            self.tell(say.MetadataWritten(self.env.now, checkpoint, failed=True))
            return
        self.world.files.metadata(checkpoint, file)
        yield self.env.timeout(self.overheads.complete_ns)
        self.tell(say.MetadataWritten(self.env.now, checkpoint))

    @carry_out.register
    def _notify_complete(self, command: say.NotifyComplete) -> None:
        self._note(Happening.NOTIFIED_COMPLETE, command.checkpoint)
        for task in sorted(command.tasks):
            if self._is_lost(command.checkpoint, task):
                continue
            host = self.world.tasks[task]
            self.env.call_in(self.overheads.notify_ns, lambda host=host: host.notify_complete(command.checkpoint))  # type: ignore[misc]

    def _is_lost(self, checkpoint: int, task: int) -> bool:
        """Notifications are sent once and nobody answers."""
        share = self.world.scenario.checkpoint.lost_notifications
        return bool(share) and chance(share, stream(self.world.scenario.run.seed, "lost-notification", task), checkpoint)

    @carry_out.register
    def _notify_aborted(self, command: say.NotifyAborted) -> None:
        if self.silent:
            return
        self._note(Happening.NOTIFIED_ABORTED, command.checkpoint)
        for task in sorted(command.tasks):
            host = self.world.tasks[task]
            hear = lambda host=host: host.notify_aborted(command.checkpoint, command.latest_completed)  # noqa: E731
            self.env.call_in(self.overheads.notify_ns, hear)

    @carry_out.register
    def _discard_state(self, command: say.DiscardState) -> None:
        self.world.contents.forget(command.checkpoint)
        discarded = lambda: self.tell(say.StateDiscarded(self.env.now, command.checkpoint))  # noqa: E731
        begin(self.env, self.world.storage.end_merging(command.checkpoint), lambda _: None)
        self.world.files.discard(command.checkpoint, discarded)

    @carry_out.register
    def _discard_late_state(self, _: say.DiscardLateState) -> None:
        """Private files of a late acknowledgement: deleted beside everything else."""

    @carry_out.register
    def _fail_job(self, command: say.FailJob) -> None:
        self._note(Happening.JOB_FAILED, task=-1 if command.task is None else command.task, detail=command.reason.name)
        what = "the savepoint to stop with failed" if command.stopping else "tolerable failed checkpoints exceeded"
        self.world.recovery.fail_job(f"{what}: {command.reason.name}", command.task)

    @carry_out.register
    def _record_refused(self, command: say.RecordRefused) -> None:
        self._note(Happening.REFUSED, detail=command.reason.name)

    @carry_out.register
    def _record_triggered(self, command: say.RecordTriggered) -> None:
        finished, savepoint = command.plan.finished, command.savepoint
        tasks = len(command.plan.wait_for) + len(finished)
        stats = CheckpointStats(command.checkpoint, command.trigger_ns, tasks, acknowledged=len(finished))
        if savepoint is not None:
            stats.savepoint_format, stats.stops = savepoint.format, savepoint.stop is not None
        self.world.stats[command.checkpoint] = stats
        for task in finished:
            self.world.contents.cut(command.checkpoint, task, finished=True)
        self.world.job_end.begun(command.checkpoint, finished)
        self.world.journal.note(command.trigger_ns, Happening.TRIGGERED, command.checkpoint, number=len(finished))

    @carry_out.register
    def _record_completed(self, command: say.RecordCompleted) -> None:
        stats = self.world.stats[command.checkpoint]
        stats.status, stats.latest_ack_ns, stats.completed_ns = "COMPLETED", command.latest_ack_ns, command.completed_ns
        self._note(Happening.COMPLETED, command.checkpoint)
        self.world.files.completed(command.checkpoint)
        self.world.contents.completed(command.checkpoint, self.machine.needed)
        if self.world.checking is not None:
            self.world.checking.completed(command.checkpoint)

    @carry_out.register
    def _record_failed(self, command: say.RecordFailed) -> None:
        stats = self.world.stats[command.checkpoint]
        stats.status, stats.failed_ns, stats.failure = "FAILED", command.failed_ns, command.reason.name
        if command.reason is FailureReason.CHECKPOINT_EXPIRED:
            stats.standstill = standstill(self.world)
        self._note(Happening.ABORTED, command.checkpoint, detail=command.reason.name)
