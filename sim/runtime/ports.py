"""The ports of hosts: what each may ask of another.  Only the wiring in `run` knows the objects behind them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol

from sim.invariants.state import RestoredState
from sim.protocol.options import BarrierOptions, FailureReason
from sim.protocol.task_finishing import Finishing, TaskEnd
from sim.runtime.context import StateSnapshot, TaskSnapshot
from sim.storage.requests import Work
from sim.storage.state_files import Handle


class JobManagerPort(Protocol):
    """The JobManager as tasks see it.  Messages to it take time."""

    @property
    def rule(self) -> Finishing:
        """How the job ends."""

    @property
    def latest_completed(self) -> int:
        """The newest checkpoint that may be restored; 0: none."""

    def message(self, delay_ns: int, arrive: Callable[[], None]) -> None:
        """Deliver a message of a task after its delay.  It is lost if its JobManager is gone by then."""

    def acknowledge(self, task: int, checkpoint: int, handles: Iterable[Handle]) -> None:
        """The task's part of a checkpoint is durable; `handles`: the files it names."""

    def decline(self, task: int, checkpoint: int, reason: FailureReason) -> None: ...

    def abandon(self, handles: Iterable[Handle]) -> None:
        """A task gave its snapshot up: the files written for it so far are deleted."""

    def fail_task(self, task: int, reason: str) -> None:
        """An exception ends the task."""

    def task_runs(self, task: int) -> None:
        """A restored task has its state and its recovered input."""

    def finished_in(self, task: int, checkpoint: int) -> None:
        """The task takes part in a checkpoint, and its operators have finished."""

    def data_ended(self, task: int) -> None: ...

    def task_finished(self, task: int) -> None: ...


class TaskPort(Protocol):
    """A task as the JobManager sees it."""

    running: bool  # neither initializing nor stopped

    @property
    def task(self) -> int: ...

    @property
    def stopped(self) -> bool: ...

    @property
    def occupied(self) -> bool:
        """Whether the thread of the task is at work for the control plane."""

    @property
    def storing(self) -> bool:
        """Buffers of it are kept until they are in storage."""

    def trigger(self, checkpoint: int, options: BarrierOptions) -> None: ...

    def notify_complete(self, checkpoint: int) -> bool:
        """Whether it makes a difference to the task."""

    def notify_aborted(self, checkpoint: int, latest_completed: int) -> None: ...

    def suspend(self, for_ns: int) -> None:
        """The thread does nothing for so long, from its next mail on."""

    def stop(self) -> None:
        """The task fails or is cancelled."""

    def free(self) -> None:
        """The process of a stopped task is gone: its thread is at work no more."""

    def when_freed(self, then: Callable[[], None]) -> None:
        """Call `then` when the thread of a stopped task is at work no more."""

    def download(self, snapshot: TaskSnapshot, union: Iterable[StateSnapshot]) -> Work[int]:
        """Process: its state, the `union` of its vertex, and files of its parts; returns the bytes of state.  Raises StorageFailed."""

    def restored(self, checkpoint: int, snapshot: TaskSnapshot) -> None:
        """The task has what its part of the checkpoint holds: its thread begins."""


class Ends(Protocol):
    """The ends of tasks."""

    def end(self, task: int) -> TaskEnd: ...

    def drops(self, task: int) -> bool:
        """Whether its windows waited for a watermark that never came: all its sources were idle."""

    def at_work(self, task: int) -> bool:
        """Whether the thread of the task is at work for the control plane."""

    def in_use(self) -> Iterator[str]:
        """What tasks and task managers use now, in words."""

    def __len__(self) -> int: ...


class TasksPort(Protocol):
    """All tasks of the job, by number."""

    def __getitem__(self, task: int) -> TaskPort: ...

    def __iter__(self) -> Iterator[TaskPort]: ...

    def __len__(self) -> int: ...

    def renew(self, task: int) -> None:
        """A restarted task begins with nothing but what it is given."""


class Checks:
    """The checks of what checkpoints promise, as hosts call them.  These notice nothing: a run that is not watched has them."""

    def cut(self, checkpoint: int, task: int, part: TaskSnapshot) -> None:
        """A task stands at its cut."""

    def part_kept(self, checkpoint: int, task: int, before: int) -> None:
        """The task takes no part in a checkpoint: the part that it has in one before stands for it."""

    def state_taken(self, checkpoint: int, task: int, snapshot: StateSnapshot) -> None:
        """The state of a task is frozen."""

    def completed(self, checkpoint: int, retained: Sequence[int]) -> None:
        """The metadata of a checkpoint is durable: from now on it may be restored."""

    def barrier_waits(self, checkpoint: int, task: int) -> None:
        """A task has written a barrier that may time out in its outputs."""

    def barrier_left(self, checkpoint: int, task: int) -> None:
        """Such a barrier has left all outputs of the task."""

    def barrier_converted(self, checkpoint: int, task: int) -> None:
        """Such a barrier goes unaligned: it overtakes what is in front of it."""

    def deadline_heard(self, checkpoint: int, task: int) -> None:
        """The thread of the task hears of the deadline at which a barrier in an output is converted."""

    def restarting(self, restart: int) -> None:
        """The tasks of a restart are cancelled."""

    def restarted(self, checkpoint: int, tasks: Iterable[int]) -> None:
        """These tasks have just been started."""

    def restored(
        self, checkpoint: int, task: int, restored_parts: Sequence[RestoredState], restored_record_count: int
    ) -> None:
        """A task has got its state, which stands after so many records, and is about to run."""

    def materialising(self, task: int, number: int) -> None:
        """The backend below the changelog of a task is frozen."""

    def watermark_arrived(self, task: int, channel: int, number: int) -> None:
        """A task processes a watermark of a channel, or a status of it."""

    def watermark_sent(self, task: int, number: int) -> None:
        """A task sends a watermark, or a status."""

    def records_left(self, task: int, until: int) -> None:
        """A watermark lets the records up to `until` leave their windows."""

    def window_ended(self, task: int) -> None:
        """A window of processing time ends."""

    def timer_fired(self, task: int, due_ns: int, records: int) -> None:
        """A timer of processing time lets records go."""

    def data_ended(self, task: int, ending: str) -> None:
        """The end of data leaves a task: drain, no-drain or savepoint-then-finish."""

    def input_ended(self, task: int) -> None:
        """No record follows for a task, and its operators end."""

    def timers_quiet(self, task: int) -> None:
        """The data of a task ends: no timer fires any more."""

    def materialised(self, task: int, number: int, handles: Sequence[Handle]) -> None:
        """The files of a materialisation are durable."""
