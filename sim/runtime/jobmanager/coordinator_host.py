"""The host of the checkpoint coordinator: it carries out the commands of the machine in simulated time, and sends them to the tasks."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator
from functools import partial
from typing import assert_never

import simpy

from sim.metrics.journal import Happening
from sim.metrics.stats import CheckpointStats
from sim.model.randomness.streams import chance, draw, stream
from sim.protocol import vocabulary
from sim.protocol.coordinator.coordinator import Coordinator
from sim.protocol.coordinator.plan import partial_plan
from sim.protocol.coordinator.timer import first_trigger_delay
from sim.protocol.options import BarrierOptions
from sim.protocol.reasons import FailureReason
from sim.protocol.vocabulary import CoordinatorCommand, CoordinatorEvent, Plan, RequestKind
from sim.runtime.background import begin
from sim.runtime.contents import Contents
from sim.runtime.context import Context
from sim.runtime.host_loop import HostLoop
from sim.runtime.jobmanager.job_end import JobEnd
from sim.runtime.jobmanager.reachability import Reachability
from sim.runtime.jobmanager.snapshot_files import SnapshotFiles
from sim.runtime.observe.standstill import standstill
from sim.runtime.ports import Checks, TasksPort
from sim.storage.failures import StorageFailed

PACKED_BEHIND = 8
"""So many checkpoints later the rows of a checkpoint's subtasks are packed: it is over as a rule, and else they are unpacked."""


class CoordinatorHost:
    """The host of the checkpoint coordinator.  `fail_job` is called with the reason and the task at fault, if there is one."""

    def __init__(
        self, context: Context, machine: Coordinator, tasks: TasksPort, contents: Contents, files: SnapshotFiles, job_end: JobEnd,
        reachability: Reachability, fail_job: Callable[[str, int | None], None], checks: Checks,
    ) -> None:  # fmt: skip
        self.context = context
        self.env = context.env
        self._note = context.note
        self.overheads = context.scenario.overheads
        self.tasks = tasks
        self.contents = contents
        self.files = files
        self.job_end = job_end
        self.reachability = reachability
        self.fail_job = fail_job
        self.checks = checks
        self.on_completed: Callable[[], None] = lambda: None  # called when a checkpoint is complete
        self.keeps: Callable[[Plan], frozenset[int]] = lambda _: frozenset()  # tasks that keep their part of the checkpoint before
        self._loop = HostLoop(machine, Coordinator.on, self.carry_out)
        self._timer: simpy.Event | None = None
        self._waiting: deque[Callable[[], None]] = deque()  # for the coordinator's lock
        self._at_work = False  # waiting calls are being served
        self._triggered_ns: dict[int, int] = {}  # task -> when the latest call reaches it

    @property
    def machine(self) -> Coordinator:
        return self._loop.machine

    def start(self, restarts: int = 0, *, restarted: bool = False) -> None:
        """The job runs: periodic checkpoints begin.  `restarts`: of the job so far; `restarted`: not all tasks run yet."""
        scenario, options = self.context.scenario, self.context.scenario.checkpoint
        if options.interval_ns is not None:
            delay_ns = first_trigger_delay(
                scenario.cluster.profile,
                interval_ns=options.interval_ns,
                min_pause_ns=options.min_pause_ns,
                first_trigger_ns=self.overheads.first_trigger_ns,
                restarted=restarted,
                draw=draw(stream(scenario.run.seed, "first-trigger"), restarts),
            )
            self.tell(vocabulary.SchedulerStarted(self.env.now, delay_ns))

    def tell(self, event: CoordinatorEvent) -> None:
        self._loop.tell(event)
        if not self._loop.busy:
            self._go_on()

    def lose_leader(self) -> None:
        """The JobManager is gone: what it was doing ends here, but for what storage has begun."""
        pending = [row.checkpoint for row in self.machine.pending]
        self.tell(vocabulary.LeaderLost(self.env.now))
        self.files.lose_store()
        for checkpoint in pending:
            self._end_contents(checkpoint)
        for row in self.context.stats.values():
            row.stop_forgotten = row.stops

    def elect_leader(self) -> None:
        """Another JobManager takes over."""
        self.tell(vocabulary.LeaderElected(self.env.now))

    def message(self, delay_ns: int, arrive: Callable[[], None]) -> None:
        """Call `arrive` after a delay, unless the present JobManager is gone by then."""
        leader = self.machine.leader
        self.env.call_in(delay_ns, lambda: arrive() if self.machine.hears(leader) else None)

    def plan(self, kind: RequestKind) -> Plan | None:
        """The tasks that take part in a checkpoint begun now.  None: a required task does not run.

        Parts are kept of the latest checkpoint that this job instance completed, if no other one may complete meanwhile.
        """
        full_plan = self.job_end.plan(frozenset(host.task for host in self.tasks if not host.running))
        alone = not self.machine.pending and self.machine.latest_completed > self.context.begun_from
        if full_plan is None or not alone or kind is RequestKind.SAVEPOINT:
            return full_plan
        return partial_plan(self.job_end.graph, full_plan, self.keeps(full_plan))

    def _in_turn(self, work: Callable[[], None]) -> None:
        """Call `work` when the lock of the coordinator is free: first come, first served."""
        self._waiting.append(work)
        self._go_on()

    def _go_on(self) -> None:
        if self._at_work:
            return
        self._at_work = True
        while self._waiting and not self.machine.locked:
            self._waiting.popleft()()
        self._at_work = False

    # ------------------------------------------------------------------------------------------ messages

    def hear_acknowledgement(self, task: int, checkpoint: int) -> None:
        """A task's acknowledgement sets out."""

        def arrive() -> None:
            if not self.files.acknowledged(checkpoint, task):
                self._note(Happening.STATE_UNKNOWN, checkpoint, task)
                return
            stats = self.context.stats[checkpoint]
            stats.of(task).ack_ns = self.env.now
            if stats.status == "IN_PROGRESS":
                stats.latest_ack_ns = self.env.now
                stats.acknowledged += 1
            self._note(Happening.ACKNOWLEDGED, checkpoint, task)
            self.tell(vocabulary.Acknowledged(self.env.now, task, checkpoint))

        self._message(task, arrive, self.context.residual_ns("acknowledgement", task, checkpoint))

    def hear_decline(self, task: int, checkpoint: int, reason: FailureReason) -> None:
        """A task's decline sets out."""
        self._message(task, lambda: self.tell(vocabulary.Declined(self.env.now, task, checkpoint, reason)))

    def _message(self, task: int, arrive: Callable[[], None], residual_ns: int = 0) -> None:
        leader = self.machine.leader
        delay_ns = self.overheads.acknowledge_ns + self.reachability.delay_ns(task) + residual_ns
        self.env.call_in(delay_ns, lambda: self._in_turn(lambda: arrive() if self.machine.hears(leader) else None))

    # ------------------------------------------------------------------------------------------ what the machine asks for

    def carry_out(self, command: CoordinatorCommand) -> None:
        """Do what a command says, or have it done in time."""
        match command:
            case vocabulary.ArmPeriodicTimer():
                self._arm_periodic_timer(command.at_ns)
            case vocabulary.CancelPeriodicTimer():
                self._timer = None
            case vocabulary.PrepareTrigger():
                self.message(self.overheads.trigger_ns, lambda: self.tell(vocabulary.TriggerReady(self.env.now, self.plan(command.kind))))
            case vocabulary.TriggerTasks():
                self._note(Happening.TASKS_TRIGGERED, command.checkpoint)
                options = self.files.begun(command.checkpoint, command.options)
                self._keep_parts(command.checkpoint)
                for task in sorted(command.tasks):
                    self._trigger(task, command.checkpoint, options)
            case vocabulary.ArmCheckpointTimeout():
                expire = lambda: self.tell(vocabulary.CheckpointTimedOut(self.env.now, command.checkpoint))  # noqa: E731
                self.env.call_in(command.at_ns - self.env.now, lambda: self._in_turn(expire))
            case vocabulary.WriteMetadata():
                self._write_metadata(command.checkpoint)
            case vocabulary.NotifyComplete():
                self._notify_complete(command)
            case vocabulary.NotifyAborted():
                self._notify_aborted(command)
            case vocabulary.DiscardState():
                self._discard_state(command.checkpoint)
            case vocabulary.FailJob():
                task = -1 if command.task is None else command.task
                self._note(Happening.JOB_FAILED, task=task, number=int(command.stopping), detail=command.reason.name)
                what = "the savepoint to stop with failed" if command.stopping else "tolerable failed checkpoints exceeded"
                self.fail_job(f"{what}: {command.reason.name}", command.task)
            case vocabulary.RecordRefused():
                asked_for = command.kind is RequestKind.SAVEPOINT
                self._note(Happening.REFUSED, number=int(asked_for), detail=command.reason.name)
            case vocabulary.RecordTriggered():
                self._record_triggered(command)
            case vocabulary.RecordCompleted():
                self._record_completed(command)
            case vocabulary.RecordFailed():
                self._record_failed(command)
            case _:
                assert_never(command)

    def _keep_parts(self, checkpoint: int) -> None:
        """The tasks that take no part stand in the checkpoint as in the latest completed one."""
        plan, before = self.machine.pending[-1].plan, self.machine.latest_completed
        for task in sorted(plan.kept):
            part = self.contents.keep(checkpoint, task, before)
            self.files.keep(checkpoint, task, part)
            self._note(Happening.PART_KEPT, checkpoint, task, part.checkpoint)
            self.checks.part_kept(checkpoint, task, before)

    def _trigger(self, task: int, checkpoint: int, options: BarrierOptions) -> None:
        """Calls to a task come in the order in which they set out."""
        at_ns = max(self.env.now + self.context.residual_ns("scheduling", task, checkpoint), self._triggered_ns.get(task, 0))
        self._triggered_ns[task] = at_ns
        if at_ns == self.env.now:
            self.tasks[task].trigger(checkpoint, options)
        else:
            self.env.call_in(at_ns - self.env.now, partial(self.tasks[task].trigger, checkpoint, options))

    def _arm_periodic_timer(self, at_ns: int) -> None:
        timer = self.env.timeout(at_ns - self.env.now)
        timer.callbacks.append(self._periodic_timer_fired)
        self._timer = timer

    def _periodic_timer_fired(self, timer: simpy.Event) -> None:
        if timer is self._timer:
            self.tell(vocabulary.PeriodicTimerFired(self.env.now))

    def _write_metadata(self, checkpoint: int) -> None:
        self._note(Happening.LAST_ACKNOWLEDGED, checkpoint)
        refusal = self.job_end.union_state.refusal(checkpoint)
        if refusal is not None:
            self.tell(vocabulary.MetadataWritten(self.env.now, checkpoint, failed=True, reason=refusal))
        else:
            self.env.process(self._finalise(checkpoint))

    def _finalise(self, checkpoint: int) -> Generator[simpy.Event, None, None]:
        leader = self.machine.leader
        try:
            file = yield from self.context.storage.write_metadata(checkpoint)
        except StorageFailed:
            self.tell(vocabulary.MetadataWritten(self.env.now, checkpoint, failed=True))
            return
        if self.machine.hears(leader):
            self.files.metadata(checkpoint, file)
            yield self.env.timeout(self.overheads.complete_ns)
            self.tell(vocabulary.MetadataWritten(self.env.now, checkpoint))

    def _notify_complete(self, command: vocabulary.NotifyComplete) -> None:
        self._note(Happening.NOTIFIED_COMPLETE, command.checkpoint)
        hosts = [self.tasks[task] for task in sorted(command.tasks) if not self._is_lost(command.checkpoint, task)]
        self.env.call_each_in(self.overheads.notify_ns, [partial(host.notify_complete, command.checkpoint) for host in hosts])

    def _is_lost(self, checkpoint: int, task: int) -> bool:
        """Whether a notification is lost: it is sent once, and the task does not confirm it."""
        share = self.context.scenario.checkpoint.lost_notifications
        return bool(share) and chance(share, stream(self.context.scenario.run.seed, "lost-notification", task), checkpoint)

    def _notify_aborted(self, command: vocabulary.NotifyAborted) -> None:
        self._note(Happening.NOTIFIED_ABORTED, command.checkpoint)
        for task in sorted(command.tasks):
            host, part = self.tasks[task], self.contents.of(command.latest_completed, task)
            latest = command.latest_completed if part is None else part.checkpoint
            hear = lambda host=host, latest=latest: host.notify_aborted(command.checkpoint, latest)  # noqa: E731
            self.env.call_in(self.overheads.notify_ns, hear)

    def _discard_state(self, checkpoint: int) -> None:
        self._end_contents(checkpoint)
        self.files.discard(checkpoint, lambda: self.tell(vocabulary.StateDiscarded(self.env.now, checkpoint)))

    def _end_contents(self, checkpoint: int) -> None:
        self.contents.forget(checkpoint)
        begin(self.env, self.context.storage.end_merging(checkpoint), lambda _: None)

    # ------------------------------------------------------------------------------------------ records

    def _record_triggered(self, command: vocabulary.RecordTriggered) -> None:
        finished, savepoint = command.plan.finished, command.savepoint
        settled = len(finished) + len(command.plan.kept)
        stats = CheckpointStats(command.checkpoint, command.trigger_ns, len(command.plan.wait_for) + settled, acknowledged=settled)
        if savepoint is not None:
            stats.savepoint_format, stats.stops = savepoint.format, savepoint.stop is not None
        self.context.stats[command.checkpoint] = stats
        if (past := self.context.stats.get(command.checkpoint - PACKED_BEHIND)) is not None:
            past.pack()
        for task in finished:
            self.contents.cut(command.checkpoint, task, finished=True)
        self.job_end.begun(command.checkpoint, finished)
        self.context.journal.note(command.trigger_ns, Happening.TRIGGERED, command.checkpoint, number=settled)

    def _record_completed(self, command: vocabulary.RecordCompleted) -> None:
        stats = self.context.stats[command.checkpoint]
        stats.status, stats.latest_ack_ns, stats.completed_ns = "COMPLETED", command.latest_ack_ns, command.completed_ns
        self._note(Happening.COMPLETED, command.checkpoint)
        self.files.completed(command.checkpoint)
        self.contents.completed(command.checkpoint, self.machine.needed)
        self.checks.completed(command.checkpoint, self.machine.retained)
        self.on_completed()

    def _record_failed(self, command: vocabulary.RecordFailed) -> None:
        stats = self.context.stats[command.checkpoint]
        stats.status, stats.failed_ns, stats.failure = "FAILED", command.failed_ns, command.reason.name
        if command.reason is FailureReason.CHECKPOINT_EXPIRED:
            stats.standstill = standstill(self.context, self.tasks)
        self._note(Happening.ABORTED, command.checkpoint, detail=command.reason.name)
