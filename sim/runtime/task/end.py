"""One task's end where the planes meet: ends of data and of partitions travel in its streams, its machine says what follows.

Decides nothing: when a task may finish is `sim.protocol.finishing`'s.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from sim.metrics.journal import Happening
from sim.plane.seam.interface import Marker, Notice, Trait
from sim.protocol import finishing as say
from sim.protocol import task_vocabulary as task_say
from sim.protocol.options import Ending
from sim.protocol.reasons import FailureReason
from sim.runtime.by_kind import by_kind
from sim.runtime.markers import END_OF_DATA, END_OF_PARTITION

if TYPE_CHECKING:
    from sim.runtime.run.world import World
    from sim.runtime.task.host import TaskHost

__all__ = ["TaskEnding"]


class TaskEnding:
    def __init__(self, world: World, host: TaskHost, rule: say.Finishing) -> None:
        layout, task = world.layout, host.task
        self.world = world
        self.host = host
        outputs = sum(len(layout.partitions[p][2]) for p in layout.task_partitions[task])
        self._unheard = sum(len(layout.gates[g][2]) for g in layout.task_gates[task])  # input channels whose data goes on
        self._ending = Ending.DRAIN
        self._open_gates = set(range(len(layout.task_gates[task])))
        checkpointing = world.scenario.checkpoint.interval_ns is not None
        self.machine = say.TaskEnd(rule, checkpointing, outputs, bool(self._open_gates))
        self._open: set[int] = set()  # snapshots under way; the machine is told of them when the end begins: most end long before
        self._heard: deque[say.EndEvent] = deque()
        self._telling = False
        host.on_abort.append(self._aborted)

    # ------------------------------------------------------------------------------------------ what the machine is told

    def exhausted(self) -> None:
        """The source has emitted what the plane had for it: the end of its log, or of what is due for now."""
        source = self.world.scenario.job.vertices[self.world.layout.vertex[self.host.task]].source
        if source is not None and source.total is not None and self.machine.state is say.EndState.RUNNING:
            if int(self.world.plane.served()[self.host.task]) >= source.total:
                self.tell(say.DataEnded(self.world.env.now, Ending.DRAIN))

    def still_takes_part(self, checkpoint: int, stop: Ending | None) -> bool:
        """A call for a checkpoint is executed: too late for a task that closes; a source ends its data first if the job stops with it."""
        if self.machine.closing:
            self.world.coordinator.hear_decline(self.host.task, checkpoint, FailureReason.CHECKPOINT_DECLINED_TASK_CLOSING)
            return False
        if stop is not None and not self.world.layout.task_gates[self.host.task]:
            self._stop(stop)
        return True

    def _stop(self, ending: Ending) -> None:
        """A source's reader is stopped: its data ends here, at a safe point (SourceOperatorStreamTask#triggerStopWithSavepointAsync)."""
        if self.machine.state is say.EndState.RUNNING:
            self.host.thread.serve_mails_only()
            if ending is not Ending.AFTERWARDS:
                self.tell(say.DataEnded(self.world.env.now, ending))

    def on_notice(self, notice: Notice) -> None:
        """An end of data or of a partition was processed on an input channel."""
        writer = self.world.tasks[self.world.layout.writer[notice.channel]].ending
        if notice.series == (END_OF_DATA if writer.machine.rule.end_of_data_first else END_OF_PARTITION):
            way_ns = 0 if self.world.layout.local[notice.channel] else self.world.scenario.cluster.latency_ns
            self.world.env.call_in(way_ns, lambda: writer.tell(say.OutputRead(self.world.env.now)))
        if notice.series == END_OF_DATA:
            self._unheard -= 1
            if writer.machine.ending is Ending.NO_DRAIN:
                self._ending = Ending.NO_DRAIN  # to drain, all must
            if not self._unheard:
                self.tell(say.DataEnded(self.world.env.now, self._ending))
        elif not self.machine.rule.after_finish:
            self.host.tell(task_say.InputEnded(self.world.env.now, notice.gate))
        if notice.series == END_OF_PARTITION and notice.last:
            self._open_gates.discard(notice.gate)
            self.host.tell(task_say.GateClosed(self.world.env.now, notice.gate))
            if not self._open_gates:
                self.tell(say.InputsClosed(self.world.env.now))

    def closed(self, gate: int) -> bool:
        """Whether no channel of the gate is open any more."""
        return gate not in self._open_gates

    @property
    def listens(self) -> bool:
        """Whether completions matter to the end of this task."""
        return self.machine.state is not say.EndState.RUNNING or self.machine.stop is not None

    def snapshot_begun(self, checkpoint: int) -> None:
        stop = next(one.options.stop for one in self.host.machine.snapshots if one.checkpoint == checkpoint)
        self._open.add(checkpoint)
        if stop is not None or self.machine.state is not say.EndState.RUNNING:
            self.tell(say.SnapshotBegun(self.world.env.now, checkpoint, stop))
        if self.machine.drained:
            self.world.job_end.snapshot_over(checkpoint, self.host.task)

    def snapshot_ended(self, checkpoint: int) -> None:
        self._open.discard(checkpoint)
        if checkpoint in self.machine.open:
            self.tell(say.SnapshotEnded(self.world.env.now, checkpoint))

    def completed(self, checkpoint: int) -> None:
        """The task has heard of a completion and done what it asks."""
        self.tell(say.CompletionHeard(self.world.env.now, checkpoint))
        if self.machine.stop == checkpoint and self.host.thread.mails_only and self.machine.state is say.EndState.RUNNING:
            self.tell(say.DataEnded(self.world.env.now, Ending.DRAIN))  # the savepoint first, the end afterwards

    def _aborted(self, checkpoint: int) -> None:
        """The task has heard that a checkpoint is aborted."""
        if self.machine.fails_with(checkpoint):
            self.world.fail_task(self.host.task, "stop-with-savepoint failed")

    def tell(self, event: say.EndEvent) -> None:
        """One event after the other, as everywhere; a task that was restarted has no end any more."""
        if self.host.stopped or self.world.tasks[self.host.task] is not self.host:
            return
        if self.machine.state is say.EndState.RUNNING and isinstance(event, say.DataEnded | say.InputsClosed):
            self._heard.extend(say.SnapshotBegun(self.world.env.now, checkpoint) for checkpoint in sorted(self._open - self.machine.open))
        self._heard.append(event)
        if self._telling:
            return
        self._telling = True
        while self._heard:
            self.machine, commands = self.machine.on(self._heard[0])
            for command in commands:
                self.carry_out(command)
            self._heard.popleft()
        self._telling = False

    # ------------------------------------------------------------------------------------------ what the machine asks for

    @by_kind
    def carry_out(self, command: say.EndCommand) -> None:
        raise TypeError(f"no task carries out {command}")

    def _note(self, happening: Happening, detail: str = "") -> None:
        self.world.journal.note(self.world.env.now, happening, task=self.host.task, detail=detail)

    @carry_out.register
    def _finish_operators(self, _: say.FinishOperators) -> None:
        def finished() -> None:
            self.tell(say.OperatorsFinished(self.world.env.now))

        self.host.operator.end_input(finished)

    @carry_out.register
    def _forward_end_of_data(self, command: say.ForwardEndOfData) -> None:
        self._note(Happening.END_OF_DATA, command.ending.value)
        self.world.plane.forward(self.host.task, Marker(1, Trait.NONE, END_OF_DATA))

    @carry_out.register
    def _report_end_of_data(self, _: say.ReportEndOfData) -> None:
        self._report(self.world.job_end.data_ended)

    @carry_out.register
    def _close_operators(self, _: say.CloseOperators) -> None:
        def close() -> None:
            closed = lambda: self.tell(say.OperatorsClosed(self.world.env.now))  # noqa: E731
            self.world.env.call_in(self.world.scenario.overheads.close_ns, closed)

        tail, checkpointing = self.machine.rule.tail, self.machine.checkpointing
        if tail == "at-finish" or (tail == "checkpoint" and not checkpointing):  # CommitterOperator#endInput: no checkpoint will
            self.host.operator.commit_at_finish()
            self.host.thread.post(close)  # when that is done
        else:
            close()

    @carry_out.register
    def _forward_end_of_partition(self, _: say.ForwardEndOfPartition) -> None:
        self.world.plane.forward(self.host.task, Marker(1, Trait.FINAL, END_OF_PARTITION))

    @carry_out.register
    def _report_finished(self, _: say.ReportFinished) -> None:
        self._note(Happening.TASK_FINISHED)
        self.host.in_flight.writer.leave(self.host.task)
        self._report(self.world.job_end.task_finished)

    def _report(self, arrive: Callable[[int], None]) -> None:
        """Tell the JobManager; of a task that was restarted meanwhile it does not listen."""
        task, tasks = self.host.task, self.world.tasks
        self.world.env.call_in(self.world.scenario.overheads.acknowledge_ns, lambda: arrive(task) if tasks[task] is self.host else None)
