"""Executes the checkpoint coordinator in simulated time, also with regional checkpoints.

It tracks the end of a job and the backlog reports of sources.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, assert_never

import simpy

from sim.model.job import Backlog
from sim.model.randomness import chance, draw, stream
from sim.plane.interface import Layout
from sim.protocol import messages
from sim.protocol.checkpoint_requests import TaskGraph, UnionState, VertexLink, plan
from sim.protocol.coordinator import Coordinator, first_trigger_delay
from sim.protocol.messages import (
    BacklogReported,
    CheckpointRequested,
    CoordinatorCommand,
    CoordinatorEvent,
    Plan,
    RequestKind,
    SchedulerStopped,
)
from sim.protocol.options import BarrierOptions, FailureReason
from sim.protocol.regional import (
    AllSourcesEnded,
    NotifyRegionalComplete,
    RegionalCoordinator,
    WriteRegionalMetadata,
    without_claim,
    without_files,
)
from sim.protocol.task_finishing import FINISHING
from sim.results.journal import EventType
from sim.results.tables import TOO_MANY_FAILED, CheckpointStats
from sim.runtime.clock import begin
from sim.runtime.context import Checks, Contents, Context, TaskSnapshot
from sim.runtime.host_loop import HostLoop
from sim.runtime.jobmanager.snapshot_files import SnapshotFiles
from sim.runtime.jobmanager.task_managers import Reachability
from sim.runtime.standstill import standstill
from sim.runtime.task.tasks import Tasks
from sim.storage.ledger import StorageFailed
from sim.storage.state_files import Handle

# ---- The end of tasks as the JobManager knows it: data ended, finished, and the final checkpoint.
#
# Source: SchedulerBase#notifyEndOfData, VertexEndOfDataListener.  A task is in no plan after its last message has arrived.


class JobEnd:
    """Tracks tasks whose data has ended and tasks that have finished."""

    dispatch: Callable[[CoordinatorEvent], None]
    """Passes events to the coordinator, which sets it."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.rule = FINISHING[context.scenario.checkpoint.finish]
        self.graph = task_graph(context)
        self.ended: set[int] = set()  # tasks that reported the end of their data
        self.finished: frozenset[int] = frozenset()
        self.union_state = UnionState(
            self.graph, frozenset(n for n, row in enumerate(context.scenario.job.vertices) if row.union_state)
        )
        self._plan = plan(self.graph, frozenset())

    def plan(self, not_running: frozenset[int]) -> Plan | None:
        """Return the plan of a checkpoint that is triggered now, or None if a required task is not running."""
        if not_running or self.finished:
            return plan(self.graph, self.finished, not_running, after_finish=self.rule.after_finish)
        return self._plan

    def begun(self, checkpoint: int, finished: frozenset[int]) -> None:
        """Record that a checkpoint starts, with the tasks that have finished before it."""
        self.union_state = self.union_state.begun(checkpoint, finished)

    def finished_in(self, task: int, checkpoint: int) -> None:
        """Record that a task takes its snapshot after its operators have finished."""
        self.union_state = self.union_state.finished_in(task, checkpoint)

    def reset_task(self, task: int) -> None:
        """Reset the state of a restarted task (VertexEndOfDataListener#restoreVertices)."""
        self.ended.discard(task)
        self.finished -= {task}

    def data_ended(self, task: int) -> None:
        """Record the end of a task's data.  After the last one, request the final checkpoint."""
        self.ended.add(task)
        has_trigger = self.rule.final_trigger and self.context.scenario.cluster.has_final_trigger
        if has_trigger and len(self.ended) == len(self.graph.tasks) and self.context.periodic:
            self.dispatch(CheckpointRequested(self.context.env.now, RequestKind.MANUAL))

    def task_finished(self, task: int) -> None:
        """Record that a task has finished.  After the last one, the job finishes."""
        self.finished |= {task}
        if self.finished == self.graph.tasks:
            self.dispatch(SchedulerStopped(self.context.env.now, FailureReason.CHECKPOINT_COORDINATOR_SHUTDOWN))
            self.context.note(EventType.JOB_FINISHED)
            self.context.outcome.finish()


def task_graph(context: Context) -> TaskGraph:
    """Return the tasks of a job and the edges between them."""
    layout, job = context.layout, context.scenario.job
    number = {vertex.name: i for i, vertex in enumerate(job.vertices)}
    vertices = tuple(
        range(first, first + vertex.parallelism) for first, vertex in zip(layout.first_task, job.vertices, strict=True)
    )
    edges = [(inlet, number[reader.name]) for reader in job.vertices for inlet in reader.inputs]
    links = [
        VertexLink(
            number[inlet.upstream],
            reader,
            _predecessors(layout, edge, vertices[reader]) if inlet.shipping.pointwise else None,
        )
        for edge, (inlet, reader) in enumerate(edges)
    ]
    return TaskGraph(vertices, tuple(links))


def _predecessors(layout: Layout, edge: int, readers: range) -> tuple[tuple[int, ...], ...]:
    """Return the upstream tasks of each reader of a pointwise edge."""
    gates = [next(gate for gate in layout.task_gates[task] if layout.gates[gate][1] == edge) for task in readers]
    return tuple(tuple(layout.writer[channel] for channel in layout.gates[gate][2]) for gate in gates)


# ---- The checkpoint coordinator in simulated time: events for its machine, and the execution of its commands.

PACKED_AFTER_CHECKPOINTS = 8
"""Age, in checkpoints, at which the subtask rows of a checkpoint are packed to save memory.

Rows of a checkpoint that is still pending are unpacked again.
"""


class CoordinatorHost:
    """Runs the machine of the checkpoint coordinator, and executes its commands."""

    fail_job: Callable[[str, int | None], None]
    """Called with the reason, and with the task that declined or None."""

    def __init__(
        self,
        context: Context,
        tasks: Tasks,
        files: SnapshotFiles,
        job_end: JobEnd,
        reachability: Reachability,
        checks: Checks,
    ) -> None:
        self.context = context
        self.env = context.env
        self._note = context.note
        self.overheads = context.scenario.overheads
        self.tasks = tasks
        self.contents = context.contents
        self.files = files
        self.job_end = job_end
        job_end.dispatch = self.dispatch
        self.reachability = reachability
        self.checks = checks
        # called with the keyword `completed` when a checkpoint has completed or failed
        self.on_ended: Callable[..., None] = lambda **_: None
        options = context.scenario.checkpoint_at(context.env.now)
        machine = Coordinator.configured(options, num_retained=options.num_retained, restored=context.begun_from)
        self._loop = HostLoop(machine, Coordinator.on, self.carry_out)
        self._timer: simpy.Event | None = None
        self._waiting_calls: deque[Callable[[], None]] = deque()  # calls that wait for the coordinator's lock
        self._is_running_calls = False  # waiting calls are being executed
        self._triggered_ns: dict[int, int] = {}  # task -> arrival time of its latest trigger call
        # task of a lost TaskManager that the JobManager takes for running, because it has not detected the loss
        # -> time until a call to it fails [ns]
        self.presumed_running: dict[int, int] = {}

    @property
    def machine(self) -> Coordinator:
        return self._loop.machine

    def start(self, restarts: int = 0, *, restarted: bool = False) -> None:
        """Start periodic checkpoints, if the job has any.

        `restarts` is the number of restarts so far; `restarted` is whether some tasks may still be initializing.
        """
        scenario, options = self.context.scenario, self.context.scenario.checkpoint
        if self.machine.interval_ns is not None:
            delay_ns = first_trigger_delay(
                scenario.cluster.profile,
                interval_ns=self.machine.interval_ns,
                min_pause_ns=options.min_pause_ns,
                first_trigger_ns=self.overheads.first_trigger_ns,
                restarted=restarted,
                draw=draw(stream(scenario.run.seed, "first-trigger"), restarts),
            )
            self.dispatch(messages.SchedulerStarted(self.env.now, delay_ns))

    def dispatch(self, event: CoordinatorEvent) -> None:
        """Pass an event to the machine, then make the calls that wait for the coordinator's lock, if it is free."""
        self._loop.dispatch(event)
        if not self._loop.busy:
            self._run_waiting()

    def lose_leader(self) -> None:
        """Lose the JobManager.  Its work ends, except requests that storage has begun."""
        pending = [row.checkpoint for row in self.machine.pending]
        self.dispatch(messages.LeaderLost(self.env.now))
        self.files.lose_store()
        self.presumed_running.clear()
        for checkpoint in pending:
            self._end_contents(checkpoint)
        for row in self.context.stats.values():
            row.stop_forgotten = row.stops

    def message(self, delay_ns: int, arrive: Callable[[], None]) -> None:
        """Call `arrive` after a delay, unless the current JobManager is lost by then."""
        leader = self.machine.leader
        self.env.call_in(delay_ns, lambda: arrive() if self.machine.accepts_messages_from(leader) else None)

    def plan(self) -> Plan | None:
        """Return the plan of a checkpoint that is triggered now, or None if a required task is not running."""
        presumed = self.presumed_running
        return self.job_end.plan(
            frozenset(host.task for host in self.tasks if not host.running and host.task not in presumed)
        )

    def _in_turn(self, work: Callable[[], None]) -> None:
        """Call `work` when the coordinator's lock is free; first in, first out."""
        self._waiting_calls.append(work)
        self._run_waiting()

    def _run_waiting(self) -> None:
        """Make the calls that wait for the coordinator's lock, as long as it is free."""
        if self._is_running_calls:
            return
        self._is_running_calls = True
        while self._waiting_calls and not self.machine.locked:
            self._waiting_calls.popleft()()
        self._is_running_calls = False

    # ------------------------------------------------------------------------------------------ messages

    def acknowledge(self, task: int, checkpoint: int, handles: Iterable[Handle]) -> None:
        """Send the acknowledgement of a task, with the files of its snapshot, to the coordinator."""
        self.files.offer(checkpoint, task, handles)

        def arrive() -> None:
            if not self.files.acknowledged(checkpoint, task):
                self._note(EventType.STATE_UNKNOWN, checkpoint, task)
                return
            stats = self.context.stats[checkpoint]
            stats.of(task).ack_ns = self.env.now
            if stats.status == "IN_PROGRESS":
                stats.latest_ack_ns = self.env.now
                stats.acknowledged += 1
            self._note(EventType.ACKNOWLEDGED, checkpoint, task)
            self.dispatch(messages.Acknowledged(self.env.now, task, checkpoint))

        self._message(task, arrive, self.context.residual_ns("acknowledgement", task, checkpoint))

    def decline(self, task: int, checkpoint: int, reason: FailureReason) -> None:
        """Send the decline of a task to the coordinator."""
        self._message(task, lambda: self.dispatch(messages.Declined(self.env.now, task, checkpoint, reason)))

    def _message(self, task: int, arrive: Callable[[], None], residual_ns: int = 0) -> None:
        """Send a message from a task to the coordinator.  It is lost if another JobManager has taken over when it arrives."""
        leader = self.machine.leader
        delay_ns = self.overheads.acknowledge_ns + self.reachability.delay_ns(task) + residual_ns
        self.env.call_in(
            delay_ns, lambda: self._in_turn(lambda: arrive() if self.machine.accepts_messages_from(leader) else None)
        )

    # ------------------------------------------------------------------------------------------ commands

    def carry_out(self, command: CoordinatorCommand) -> None:
        """Execute a command, or schedule its execution."""
        match command:
            case messages.ArmPeriodicTimer():
                self._arm_periodic_timer(command.at_ns)
            case messages.CancelPeriodicTimer():
                self._timer = None
            case messages.PrepareTrigger():
                self.message(
                    self.overheads.trigger_ns,
                    lambda: self.dispatch(messages.TriggerReady(self.env.now, self.plan())),
                )
            case messages.TriggerTasks():
                self._note(EventType.TASKS_TRIGGERED, command.checkpoint)
                options = self.files.begun(command.checkpoint, command.options)
                for task in sorted(command.tasks):
                    self._trigger(task, command.checkpoint, options)
            case messages.ArmCheckpointTimeout():
                expire = lambda: self.dispatch(messages.CheckpointTimedOut(self.env.now, command.checkpoint))  # noqa: E731
                self.env.call_at(command.at_ns, lambda: self._in_turn(expire))
            case messages.WriteMetadata():
                self._write_metadata(command.checkpoint)
            case messages.NotifyComplete():
                self._notify_complete(command)
            case messages.NotifyAborted():
                self._notify_aborted(command)
            case messages.DiscardState():
                self._end_contents(command.checkpoint)
                discarded = lambda: self.dispatch(messages.StateDiscarded(self.env.now, command.checkpoint))  # noqa: E731
                self.files.discard(command.checkpoint, discarded)
            case messages.FailJob():
                task = -1 if command.task is None else command.task
                self._note(EventType.JOB_FAILED, task=task, number=int(command.stopping), detail=command.reason.name)
                what = "the savepoint to stop with failed" if command.stopping else TOO_MANY_FAILED
                self.fail_job(f"{what}: {command.reason.name}", command.task)
            case messages.RecordRefused():
                asked_for = command.kind is RequestKind.SAVEPOINT
                self._note(EventType.REFUSED, number=int(asked_for), detail=command.reason.name)
            case messages.RecordTriggered():
                self._record_triggered(command)
            case messages.RecordCompleted():
                self._record_completed(command)
            case messages.RecordFailed():
                self._record_failed(command)
            case _:
                assert_never(command)

    def _trigger(self, task: int, checkpoint: int, options: BarrierOptions) -> None:
        """Send the trigger call to a task.  Calls arrive in order; a call to an unreachable TaskManager times out."""
        ask_timeout_ns = self.context.scenario.restart.ask_timeout_ns
        unanswered = self.reachability.delay_ns(task) > ask_timeout_ns
        if unanswered or task in self.presumed_running:
            reason = FailureReason.TRIGGER_CHECKPOINT_FAILURE
            failed = partial(messages.Declined, task=task, checkpoint=checkpoint, reason=reason)
            self.message(
                self.presumed_running.get(task, ask_timeout_ns),
                lambda: self._in_turn(lambda: self.dispatch(failed(now=self.env.now))),
            )
        if task in self.presumed_running:
            return
        at_ns = max(
            self.env.now + self.context.residual_ns("scheduling", task, checkpoint), self._triggered_ns.get(task, 0)
        )
        self._triggered_ns[task] = at_ns
        if at_ns == self.env.now:
            self.tasks[task].trigger(checkpoint, options)
        else:
            self.env.call_at(at_ns, partial(self.tasks[task].trigger, checkpoint, options))

    def _arm_periodic_timer(self, at_ns: int) -> None:
        """Arm the periodic timer, which replaces the one armed before."""
        timer = self.env.timeout(at_ns - self.env.now)
        self._timer = timer

        def fire(_: simpy.Event) -> None:
            if timer is self._timer:
                self.dispatch(messages.PeriodicTimerFired(self.env.now))

        timer.callbacks.append(fire)

    def _write_metadata(self, checkpoint: int) -> None:
        """Write the metadata after the last acknowledgement, unless a partially finished vertex has union list state."""
        self._note(EventType.LAST_ACKNOWLEDGED, checkpoint)
        refusal = self.job_end.union_state.refusal(checkpoint)
        if refusal is not None:
            self.dispatch(messages.MetadataWritten(self.env.now, checkpoint, failed=True, reason=refusal))
        else:
            self.env.process(self._finalise(checkpoint))

    def _finalise(self, checkpoint: int) -> Generator[simpy.Event, None, None]:
        """Process: write the metadata file, then complete the checkpoint, unless the JobManager is lost in the meantime."""
        leader = self.machine.leader
        try:
            size_bytes = self.contents.inline_bytes(checkpoint)
            file = yield from self.context.storage.write_metadata(checkpoint, size_bytes)
        except StorageFailed:
            self.dispatch(messages.MetadataWritten(self.env.now, checkpoint, failed=True))
            return
        if self.machine.accepts_messages_from(leader):
            self.files.metadata(checkpoint, file)
            yield self.env.timeout(self.overheads.complete_ns)
            self.dispatch(messages.MetadataWritten(self.env.now, checkpoint))

    def _notify_complete(self, command: messages.NotifyComplete) -> None:
        """Notify tasks of a completed checkpoint."""
        self._note(EventType.NOTIFIED_COMPLETE, command.checkpoint)
        hosts = [self.tasks[task] for task in sorted(command.tasks) if not self._is_lost(command.checkpoint, task)]
        self.env.call_each_in(
            self.overheads.notify_ns, [partial(host.notify_complete, command.checkpoint) for host in hosts]
        )

    def _is_lost(self, checkpoint: int, task: int) -> bool:
        """Return whether the notification of a task is lost.  Notifications are sent once and not confirmed."""
        share = self.context.scenario.checkpoint.lost_notifications
        return bool(share) and chance(
            share, stream(self.context.scenario.run.seed, "lost-notification", task), checkpoint
        )

    def _notify_aborted(self, command: messages.NotifyAborted) -> None:
        """Notify tasks of an aborted checkpoint, and of the latest completed one."""
        self._note(EventType.NOTIFIED_ABORTED, command.checkpoint)
        for task in sorted(command.tasks):
            host, part = self.tasks[task], self.contents.of(command.latest_completed, task)
            latest = command.latest_completed if part is None else part.checkpoint
            notify = lambda host=host, latest=latest: host.notify_aborted(command.checkpoint, latest)  # noqa: E731
            self.env.call_in(self.overheads.notify_ns, notify)

    def _end_contents(self, checkpoint: int) -> None:
        """Drop the content of a checkpoint, and close the physical files that its snapshots share."""
        self.contents.forget(checkpoint)
        begin(self.env, self.context.storage.end_merging(checkpoint), lambda _: None)

    # ------------------------------------------------------------------------------------------ records

    def _record_triggered(self, command: messages.RecordTriggered) -> None:
        """Record that a checkpoint got its id, in the journal and in the results."""
        finished, savepoint = command.plan.finished, command.savepoint
        stats = CheckpointStats(
            command.checkpoint,
            command.trigger_ns,
            len(command.plan.wait_for) + len(finished),
            acknowledged=len(finished),
        )
        if savepoint is not None:
            stats.savepoint_format, stats.stops = savepoint.format, savepoint.stop is not None
        self.context.stats[command.checkpoint] = stats
        if (past := self.context.stats.get(command.checkpoint - PACKED_AFTER_CHECKPOINTS)) is not None:
            past.pack()
        for task in finished:
            self.contents.cut(command.checkpoint, task, finished=True)
        self.job_end.begun(command.checkpoint, finished)
        self.context.journal.note(command.trigger_ns, EventType.TRIGGERED, command.checkpoint, number=len(finished))

    def _record_completed(self, command: messages.RecordCompleted) -> None:
        """Record a completed checkpoint."""
        stats = self.context.stats[command.checkpoint]
        stats.status, stats.latest_ack_ns, stats.completed_ns = "COMPLETED", command.latest_ack_ns, command.completed_ns
        self._note(EventType.COMPLETED, command.checkpoint)
        self.files.completed(command.checkpoint)
        self.contents.completed(command.checkpoint, self.machine.needed)
        self.checks.completed(command.checkpoint, self.machine.retained)
        self.on_ended(completed=True)

    def _record_failed(self, command: messages.RecordFailed) -> None:
        """Record a failed checkpoint, and if it has expired, what the tasks were waiting for."""
        stats = self.context.stats[command.checkpoint]
        stats.status, stats.failed_ns, stats.failure = "FAILED", command.failed_ns, command.reason.name
        if command.reason is FailureReason.CHECKPOINT_EXPIRED:
            stats.standstill = standstill(self.context, self.tasks)
        self._note(EventType.ABORTED, command.checkpoint, detail=command.reason.name)
        self.on_ended(completed=False)


# ---- Enumerators that report to the coordinator whether their source processes a backlog (FLIP-309).
#
# Source: SplitEnumeratorContext#setIsProcessingBacklog.  HybridSourceSplitEnumerator reports a backlog until its last
# source starts; after a failure it continues from its checkpoint and may report it again.

BACKLOG_CHECK_NS = 100_000_000
"""Period at which an enumerator checks its source, and maximum delay of its report [ns]."""


def report_backlogs(context: Context, coordinator: CoordinatorHost) -> None:
    """Start the enumerators of all sources that report a backlog."""
    for number, vertex in enumerate(context.scenario.job.vertices):
        if vertex.source is not None and vertex.source.backlog is not None:
            _Enumerator(context, coordinator, number, vertex.source.backlog).look()


class _Enumerator:
    """The enumerator of one source, which reports whether the source processes a backlog."""

    def __init__(self, context: Context, coordinator: CoordinatorHost, vertex: int, backlog: Backlog) -> None:
        self.context = context
        self.coordinator = coordinator
        self.vertex = vertex
        self.backlog = backlog
        first = context.layout.first_task[vertex]
        self.tasks = slice(first, first + context.scenario.job.vertices[vertex].emitting)
        self.behind = False  # as last reported
        self._leader = 0  # leader that got the last report

    def look(self) -> None:
        """Check the source now, and again after each period."""
        machine = self.coordinator.machine
        if machine.leader != self._leader:
            self.behind, self._leader = False, machine.leader
        behind = not machine.absent and any(
            self._is_behind(served) for served in self.context.plane.served()[self.tasks].tolist()
        )
        if behind != self.behind:
            self.behind = behind
            self.coordinator.dispatch(BacklogReported(self.context.env.now, self.vertex, behind))
        self.context.env.call_in(BACKLOG_CHECK_NS, self.look)

    def _is_behind(self, served: int) -> bool:
        """Return whether a source subtask that has emitted `served` records still processes its backlog."""
        source = self.context.spec.vertices[self.vertex].source
        if source is None or served == source.total:
            return False
        if self.backlog.lag_ns is None:
            return served < (self.backlog.records or 0)
        return self.context.env.now - source.due(served) > self.backlog.lag_ns


# ---- Regional checkpoints (FLIP-600): replaces the parts of failed regions, and notifies their tasks.


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
