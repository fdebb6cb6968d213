"""The end of a task: its data ends, its operators finish, and it waits for a final checkpoint (FLIP-147).

Source: StreamTask#endData, #afterInvoke.  The end of data is forwarded before the task ends, so that the operators of
all tasks finish before one final checkpoint.  `FINISHING` also has the rules by which jobs ended before FLIP-147.
"""

from __future__ import annotations

from enum import Enum
from typing import Literal

from sim.protocol.machine import InvalidTransition, replace, value_class
from sim.protocol.options import StopMode


@value_class
class Finishing:
    """The rules by which jobs end."""

    name: str
    end_of_data_first: bool = True  # tasks forward EndOfData before the end of the partition
    waits: bool = True  # a task waits until a completed checkpoint contains its end
    after_finish: bool = True  # checkpoints continue after tasks have finished
    final_trigger: bool = True  # trigger a checkpoint as soon as all data has ended (FLINK-28386, since 1.18)
    # what happens to output that no checkpoint contains
    tail: Literal["checkpoint", "at-finish", "dropped", "left"] = "checkpoint"


FINISHING: dict[str, Finishing] = {
    rule.name: rule
    for rule in (
        Finishing("flink"),
        Finishing("naive", end_of_data_first=False, final_trigger=False),
        Finishing("commit-at-finish", waits=False, after_finish=False, final_trigger=False, tail="at-finish"),
        Finishing("discard", waits=False, after_finish=False, final_trigger=False, tail="dropped"),
        Finishing("off", waits=False, after_finish=False, final_trigger=False, tail="left"),
    )
}
"""The rules by name.

* flink: FLIP-147.
* naive: each task waits for its own final checkpoint before downstream tasks may finish.  If such a job is drained, the
  output that tasks emit in finish() after the savepoint is lost.
* off: FLIP-147 is disabled by its option.
* commit-at-finish, discard: sinks commit or drop their last transaction at the end, as before FLIP-147.
"""


# ---------------------------------------------------------------------------------------------- events


@value_class
class DataEnded:
    """The source has finished or was stopped, or all inputs have delivered EndOfData."""

    now: int
    ending: StopMode


@value_class
class OperatorsFinished:
    """Answer to FinishOperators."""

    now: int


@value_class
class OperatorsClosed:
    """Answer to CloseOperators."""

    now: int


@value_class
class OutputRead:
    """A downstream task has processed an output channel up to EndOfData (AllUserRecordsProcessed).

    Without `Finishing.end_of_data_first`, up to EndOfPartition.
    """

    now: int


@value_class
class InputsClosed:
    """The last input channel is closed."""

    now: int


@value_class
class SnapshotBegun:
    """The task starts its snapshot of a checkpoint.  `stop`: if it is a stop-with-savepoint, how data ends."""

    now: int
    checkpoint: int
    stop: StopMode | None = None


@value_class
class SnapshotEnded:
    """A snapshot was acknowledged, declined or cancelled."""

    now: int
    checkpoint: int


@value_class
class CompletionHandled:
    """The task has handled notifyCheckpointComplete."""

    now: int
    checkpoint: int


EndEvent = (
    DataEnded
    | OperatorsFinished
    | OperatorsClosed
    | OutputRead
    | InputsClosed
    | SnapshotBegun
    | SnapshotEnded
    | CompletionHandled
)

# ---------------------------------------------------------------------------------------------- commands


@value_class
class FinishOperators:
    """Call endInput() and finish() of the operators, head to tail, which emits their last records; answer OperatorsFinished."""


@value_class
class QuiesceTimers:
    """Stop processing-time timers without emitting records (StreamOperatorWrapper#finish without drain)."""


@value_class
class ForwardEndOfData:
    """Write EndOfData to all outputs: no record follows."""

    ending: StopMode


@value_class
class ReportEndOfData:
    """Report the end of data to the coordinator."""


@value_class
class CloseOperators:
    """Call close() of the operators, head to tail; answer OperatorsClosed."""


@value_class
class ForwardEndOfPartition:
    """Write EndOfPartition to all outputs: nothing follows."""


@value_class
class ReportFinished:
    """The task is FINISHED."""


EndCommand = (
    FinishOperators
    | QuiesceTimers
    | ForwardEndOfData
    | ReportEndOfData
    | CloseOperators
    | ForwardEndOfPartition
    | ReportFinished
)

# ---------------------------------------------------------------------------------------------- the machine


class EndState(Enum):
    """The states of a task's end."""

    RUNNING = "running"
    FINISHING = "finishing"  # operators are finishing
    WAITING = "waiting"  # EndOfData is forwarded; waits for readers and the final checkpoint
    LEAVING = "leaving"  # starts no snapshot, and waits for those in progress
    CLOSING = "closing"  # operators are closing
    FINISHED = "finished"


_Answer = tuple["TaskEnd", tuple[EndCommand, ...]]


@value_class
class TaskEnd:
    """The end of one task."""

    rule: Finishing
    checkpointing: bool
    unread: int  # output channels not read to the end
    inputs_open: bool
    state: EndState = EndState.RUNNING
    ending: StopMode = StopMode.DRAIN  # while RUNNING: how data ends if the inputs close without EndOfData
    final: int | None = None  # the first checkpoint after the end of data (finalCheckpointMinId)
    # the savepoint of a stop-with-savepoint, which replaces the final checkpoint (StreamTask#isCurrentSyncSavepoint)
    stop: int | None = None
    stop_completed: bool = False  # the task was notified of its completion
    completed: int = 0  # newest checkpoint whose completion was notified
    open: frozenset[int] = frozenset()  # snapshots in progress

    @property
    def data_ended(self) -> bool:
        """Whether the data has ended, so that a snapshot taken now contains all output of the operators."""
        return self.state not in (EndState.RUNNING, EndState.FINISHING)

    @property
    def drained(self) -> bool:
        """Whether finish() was called: the operators hold no records back."""
        return self.data_ended and self.ending is StopMode.DRAIN

    @property
    def closing(self) -> bool:
        """Whether the task starts no further snapshot."""
        return self.state in (EndState.LEAVING, EndState.CLOSING, EndState.FINISHED)

    def on(self, event: EndEvent) -> _Answer:
        """Return the next machine and its commands.  Raise InvalidTransition if the event is impossible in this state."""
        after, commands = self._respond(event)
        after, follow_ups = _close_if_ready(after)
        return after, (*commands, *follow_ups)

    def _respond(self, event: EndEvent) -> _Answer:
        """Return the machine after an event, before it may leave, and the commands that follow from the event alone."""
        match event:
            case DataEnded():
                return self._data_ended(event)
            case OperatorsFinished():
                if self.state is not EndState.FINISHING:
                    raise InvalidTransition(self, event)
                return _end_data(self)
            case OperatorsClosed():
                if self.state is not EndState.CLOSING:
                    raise InvalidTransition(self, event)
                after = replace(self, state=EndState.FINISHED)
                return after, (ForwardEndOfPartition(), *_finish_if_read(after))
            case OutputRead():
                if not self.unread:
                    raise InvalidTransition(self, event, "all channels are read already")
                after = replace(self, unread=self.unread - 1)
                return after, _finish_if_read(after) if after.state is EndState.FINISHED else ()
            case InputsClosed():
                if self.state is EndState.RUNNING and self.rule.end_of_data_first:
                    raise InvalidTransition(self, event, "EndOfData is missing")
                ended = DataEnded(event.now, self.ending)
                after, commands = self._data_ended(ended) if self.state is EndState.RUNNING else (self, ())
                return replace(after, inputs_open=False), commands
            case SnapshotBegun():
                return self._snapshot_begun(event), ()
            case SnapshotEnded():
                return replace(self, open=self.open - {event.checkpoint}), ()
            case CompletionHandled():
                completed, stopped = max(self.completed, event.checkpoint), event.checkpoint == self.stop
                return replace(self, completed=completed, stop_completed=self.stop_completed or stopped), ()

    def _data_ended(self, event: DataEnded) -> _Answer:
        """End the data: with a drain the operators finish first, otherwise only timers are stopped."""
        if self.state is not EndState.RUNNING:
            raise InvalidTransition(self, event, "the data has ended already")
        after = replace(self, state=EndState.FINISHING, ending=event.ending)
        if event.ending is StopMode.DRAIN:
            return after, (FinishOperators(),)
        after, commands = _end_data(after)
        return after, (QuiesceTimers(), *commands)

    def fails_with(self, aborted: int) -> bool:
        """Return whether the abort of this checkpoint fails the task, because its data has ended for that stop-with-savepoint.

        Source: StreamTask#notifyCheckpointAbortAsync ("Stop-with-savepoint failed.").
        """
        return self.stop == aborted and self.state is not EndState.FINISHED

    def _snapshot_begun(self, event: SnapshotBegun) -> TaskEnd:
        """Record the start of a snapshot.  The first one after the end of data belongs to the final checkpoint."""
        after = replace(self, open=self.open | {event.checkpoint})
        if event.stop is not None:
            after = replace(after, stop=event.checkpoint, stop_completed=False)
        if event.stop is StopMode.NO_DRAIN and self.state is EndState.RUNNING:
            # StreamTask#setSynchronousSavepointId: endInput is ignored from now on
            after = replace(after, ending=StopMode.NO_DRAIN)
        if after.data_ended and after.final is None:
            after = replace(after, final=event.checkpoint)
        return after

    @property
    def durable(self) -> bool:
        """Whether a completed checkpoint contains the end of this task."""
        if self.stop is not None:
            return self.stop_completed
        return not (self.rule.waits and self.checkpointing) or (self.final is not None and self.completed >= self.final)


def _end_data(end: TaskEnd) -> _Answer:
    """Forward EndOfData, and report it to the coordinator if the job drains."""
    forward = (ForwardEndOfData(end.ending),) if end.rule.end_of_data_first else ()
    stopped = end.stop is not None and end.durable  # the savepoint is complete already
    report = (ReportEndOfData(),) if end.ending is StopMode.DRAIN and not stopped else ()
    return replace(end, state=EndState.WAITING), (*forward, *report)


def _finish_if_read(end: TaskEnd) -> tuple[EndCommand, ...]:
    """Report FINISHED if readers have read all output.  A finished task is in no checkpoint, so no output may be in flight."""
    return () if end.unread else (ReportFinished(),)


def _close_if_ready(end: TaskEnd) -> _Answer:
    """Leave when the end is read and durable, close when no snapshot is in progress (StreamTask#afterInvoke)."""
    unread = end.unread if end.rule.end_of_data_first else 0
    if end.state is EndState.WAITING and not unread and not end.inputs_open and end.durable:
        end = replace(end, state=EndState.LEAVING)
    if end.state is EndState.LEAVING and not end.open:
        return replace(end, state=EndState.CLOSING), (CloseOperators(),)
    return end, ()
