"""The interfaces of hosts to those that they do not import: the JobManager as tasks see it, and the observers of a run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from sim.invariants.state import RestoredState
from sim.protocol.options import FailureReason
from sim.protocol.task_finishing import Finishing
from sim.runtime.context import StateSnapshot, TaskSnapshot
from sim.storage.state_files import Handle


class JobManagerPort(Protocol):
    """The JobManager as tasks see it.  Messages to it take time."""

    @property
    def rule(self) -> Finishing:
        """The rules by which the tasks and the job end."""

    def message(self, delay_ns: int, arrive: Callable[[], None]) -> None:
        """Deliver a message of a task after a delay, unless its JobManager is lost by then."""

    def acknowledge(self, task: int, checkpoint: int, handles: Iterable[Handle]) -> None:
        """Acknowledge a checkpoint.  `handles`: files of the task's part."""

    def decline(self, task: int, checkpoint: int, reason: FailureReason) -> None: ...

    def abandon(self, handles: Iterable[Handle]) -> None:
        """Delete the files written so far for a snapshot that was cancelled."""

    def fail_task(self, task: int, reason: str) -> None:
        """Fail a task with an exception."""

    def task_runs(self, task: int) -> None:
        """Report that a restored task runs: it has its state and its recovered input."""

    def finished_in(self, task: int, checkpoint: int) -> None:
        """Report that a task takes its snapshot after its operators have finished."""

    def data_ended(self, task: int) -> None: ...

    def task_finished(self, task: int) -> None: ...


class Checks:
    """The events that hosts report to invariant monitors.  This class ignores them, for runs without monitors."""

    def cut(self, checkpoint: int, task: int, part: TaskSnapshot) -> None:
        """Observe that a task has reached its cut."""

    def part_kept(self, checkpoint: int, task: int, before: int) -> None:
        """Observe that a task reuses its part of the earlier checkpoint `before`."""

    def state_taken(self, checkpoint: int, task: int, snapshot: StateSnapshot) -> None:
        """Observe that the state of a task is frozen."""

    def completed(self, checkpoint: int, retained: Sequence[int]) -> None:
        """Observe that a checkpoint is complete and may be restored from now on."""

    def barrier_waits(self, checkpoint: int, task: int) -> None:
        """Observe that a task has forwarded a timeoutable barrier to its output queues."""

    def barrier_left(self, checkpoint: int, task: int) -> None:
        """Observe that a timeoutable barrier has left all output queues of the task."""

    def barrier_converted(self, checkpoint: int, task: int) -> None:
        """Observe that a timeoutable barrier was converted to an unaligned one."""

    def deadline_heard(self, checkpoint: int, task: int) -> None:
        """Observe that the task thread handles the timeout at which queued barriers are converted."""

    def restarting(self, restart: int) -> None:
        """Observe that the tasks of a restart are cancelled."""

    def restarted(self, checkpoint: int, tasks: Iterable[int]) -> None:
        """Observe that these tasks have just been started at their positions."""

    def restored(
        self, checkpoint: int, task: int, restored_parts: Sequence[RestoredState], restored_record_count: int
    ) -> None:
        """Observe that a task has got its state, which includes `restored_record_count` records, and is about to run."""

    def materialising(self, task: int, number: int) -> None:
        """Observe that the backend that a changelog backend wraps is frozen for a materialisation."""

    def watermark_arrived(self, task: int, channel: int, number: int) -> None:
        """Observe that a task processes a watermark or a watermark status of a channel."""

    def watermark_sent(self, task: int, number: int) -> None:
        """Observe that a task sends a watermark or a watermark status."""

    def records_left(self, task: int, until: int) -> None:
        """Observe that a watermark releases the records up to `until` from their windows."""

    def window_ended(self, task: int) -> None:
        """Observe that a processing-time window ends."""

    def timer_fired(self, task: int, due_ns: int, records: int) -> None:
        """Observe that a processing-time timer releases records."""

    def data_ended(self, task: int, ending: str) -> None:
        """Observe that a task forwards EndOfData.  `ending`: drain, no-drain or savepoint-then-finish."""

    def input_ended(self, task: int) -> None:
        """Observe that the input of a task has ended, and its operators finish."""

    def timers_quiet(self, task: int) -> None:
        """Observe that the data of a task has ended: no timer fires any more."""

    def materialised(self, task: int, number: int, handles: Sequence[Handle]) -> None:
        """Observe that the files of a materialisation are durable."""
