"""The end of a task: its data ends, its operators finish, and it waits for what must hold its last output (FLIP-147).

Source:  StreamTask#endData, #afterInvoke.  End of data runs ahead of the end of the task, so that all operators finish
before one final checkpoint.  How jobs ended before FLIP-147 is data of the same rule.  What finishing costs and what is
committed is the business of the host that carries the commands out.
"""

from __future__ import annotations

from dataclasses import replace
from enum import Enum
from typing import Literal

from sim.protocol.machine import InvalidTransition, value_class
from sim.protocol.options import Ending


@value_class
class Finishing:
    """The rules by which jobs end."""

    name: str
    end_of_data_first: bool = True  # else the end of a task is the first that others hear of
    waits: bool = True  # a task stays until a checkpoint holds its end
    after_finish: bool = True  # checkpoints go on when tasks have finished
    final_trigger: bool = True  # one at once when all data has ended (FLINK-28386)
    # what becomes of output no checkpoint holds
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
"""flink: FLIP-147.  naive: every task waits for a checkpoint of its own before the next one may finish.  If such a job is drained, its
savepoint is the last one: what tasks finish with behind it is lost.  off:  FLIP-147's switch turned off;
commit-at-finish and discard: what sinks did with their last transaction before it."""


# ---------------------------------------------------------------------------------------------- events


@value_class
class DataEnded:
    """The source is exhausted or stopped, or every input delivered its end of data."""

    now: int
    ending: Ending


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
    """A reader has come to the end of an output channel: of its data (AllUserRecordsProcessed), or of itself if that is told first."""

    now: int


@value_class
class InputsClosed:
    """The last input channel is closed."""

    now: int


@value_class
class SnapshotBegun:
    """The task takes part in a checkpoint; `stop`: it is the savepoint the job stops with, and how."""

    now: int
    checkpoint: int
    stop: Ending | None = None


@value_class
class SnapshotEnded:
    """A snapshot was acknowledged, declined or cancelled."""

    now: int
    checkpoint: int


@value_class
class CompletionHandled:
    """The task has done what the completion of a checkpoint asks of it."""

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
    """endInput() and finish(), head to tail: what is left comes out.  OperatorsFinished."""


@value_class
class QuiesceTimers:
    """No timer of processing time fires any more, and nothing comes out (StreamOperatorWrapper#finish without a drain)."""


@value_class
class ForwardEndOfData:
    """No record follows on any output."""

    ending: Ending


@value_class
class ReportEndOfData:
    """Tell the coordinator."""


@value_class
class CloseOperators:
    """close(), head to tail: nothing comes out any more.  OperatorsClosed."""


@value_class
class ForwardEndOfPartition:
    """Nothing follows on any output."""


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
    FINISHING = "finishing"  # operators finish
    WAITING = "waiting"  # the end of data is out
    LEAVING = "leaving"  # no snapshot begins any more, those under way end
    CLOSING = "closing"  # operators close
    FINISHED = "finished"


_Answer = tuple["TaskEnd", tuple[EndCommand, ...]]


@value_class
class TaskEnd:
    """The end of one task."""

    rule: Finishing
    checkpointing: bool
    unread: int  # output channels that have not been read to the end
    inputs_open: bool
    state: EndState = EndState.RUNNING
    ending: Ending = Ending.DRAIN  # while it runs: how its data will end if its inputs just close
    final: int | None = None  # the first checkpoint after the end of data (finalCheckpointMinId)
    # the savepoint the job stops with: only this one counts (StreamTask#isCurrentSyncSavepoint)
    stop: int | None = None
    stop_completed: bool = False  # ... and its completion is heard
    completed: int = 0  # newest one heard of
    open: frozenset[int] = frozenset()  # snapshots under way

    @property
    def data_ended(self) -> bool:
        """Whether the operators have finished.  A snapshot taken now holds all of their output."""
        return self.state not in (EndState.RUNNING, EndState.FINISHING)

    @property
    def drained(self) -> bool:
        """The operators have finished: they hold nothing back any more."""
        return self.data_ended and self.ending is Ending.DRAIN

    @property
    def closing(self) -> bool:
        """Whether it is too late for another checkpoint."""
        return self.state in (EndState.LEAVING, EndState.CLOSING, EndState.FINISHED)

    def on(self, event: EndEvent) -> _Answer:
        match event:
            case DataEnded():
                after, commands = self._data_ended(event)
            case OperatorsFinished():
                if self.state is not EndState.FINISHING:
                    raise InvalidTransition("task end", self, event)
                after, commands = _ended(self)
            case OperatorsClosed():
                if self.state is not EndState.CLOSING:
                    raise InvalidTransition("task end", self, event)
                after = replace(self, state=EndState.FINISHED)
                commands = (ForwardEndOfPartition(), *_known_to_readers(after))
            case OutputRead():
                if not self.unread:
                    raise InvalidTransition("task end", self, event, "every channel is read")
                after = replace(self, unread=self.unread - 1)
                commands = _known_to_readers(after) if after.state is EndState.FINISHED else ()
            case InputsClosed():
                if self.state is EndState.RUNNING and self.rule.end_of_data_first:
                    raise InvalidTransition("task end", self, event, "the end of data comes first")
                ended = DataEnded(event.now, self.ending)
                after, commands = self._data_ended(ended) if self.state is EndState.RUNNING else (self, ())
                after = replace(after, inputs_open=False)
            case SnapshotBegun():
                after, commands = self._snapshot_begun(event), ()
            case SnapshotEnded():
                after, commands = replace(self, open=self.open - {event.checkpoint}), ()
            case CompletionHandled():
                stop_completed = self.stop_completed or event.checkpoint == self.stop
                after, commands = (
                    replace(self, completed=max(self.completed, event.checkpoint), stop_completed=stop_completed),
                    (),
                )
        after, follow_ups = _settled(after)
        return after, (*commands, *follow_ups)

    def _data_ended(self, event: DataEnded) -> _Answer:
        if self.state is not EndState.RUNNING:
            raise InvalidTransition("task end", self, event, "its data has ended before")
        after = replace(self, state=EndState.FINISHING, ending=event.ending)
        if event.ending is Ending.DRAIN:
            return after, (FinishOperators(),)
        after, commands = _ended(after)
        return after, (QuiesceTimers(), *commands)

    def fails_with(self, aborted: int) -> bool:
        """Whether the task fails as it hears that this checkpoint is aborted: it has begun to stop with it, and cannot go on.

        StreamTask#notifyCheckpointAbortAsync: "Stop-with-savepoint failed."
        """
        return self.stop == aborted and self.state is not EndState.FINISHED

    def _snapshot_begun(self, event: SnapshotBegun) -> TaskEnd:
        after = replace(self, open=self.open | {event.checkpoint})
        if event.stop is not None:
            after = replace(after, stop=event.checkpoint, stop_completed=False)
        if event.stop is Ending.NO_DRAIN and self.state is EndState.RUNNING:
            # StreamTask#setSynchronousSavepointId: endInput is ignored from now on
            after = replace(after, ending=Ending.NO_DRAIN)
        if after.data_ended and after.final is None:
            after = replace(after, final=event.checkpoint)
        return after

    @property
    def durable(self) -> bool:
        """Whether a completed checkpoint holds the end of this task."""
        if self.stop is not None:
            return self.stop_completed
        return not (self.rule.waits and self.checkpointing) or (self.final is not None and self.completed >= self.final)


def _ended(end: TaskEnd) -> _Answer:
    """The end of data leaves; the coordinator hears of it unless the job is made to stop where it stands."""
    forward = (ForwardEndOfData(end.ending),) if end.rule.end_of_data_first else ()
    stopped = end.stop is not None and end.durable  # the savepoint came first
    report = (ReportEndOfData(),) if end.ending is Ending.DRAIN and not stopped else ()
    return replace(end, state=EndState.WAITING), (*forward, *report)


def _known_to_readers(end: TaskEnd) -> tuple[EndCommand, ...]:
    """Whether readers have read all output.  A finished task takes no part in checkpoints, so none of its output may be in flight."""
    return () if end.unread else (ReportFinished(),)


def _settled(end: TaskEnd) -> _Answer:
    """Leave when nothing is left to wait for, close when no snapshot is under way (StreamTask#afterInvoke)."""
    unread = end.unread if end.rule.end_of_data_first else 0
    if end.state is EndState.WAITING and not unread and not end.inputs_open and end.durable:
        end = replace(end, state=EndState.LEAVING)
    if end.state is EndState.LEAVING and not end.open:
        return replace(end, state=EndState.CLOSING), (CloseOperators(),)
    return end, ()
