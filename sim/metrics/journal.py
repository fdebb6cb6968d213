"""What happened, in order: rows are only ever added, and every table, story and picture is made from them."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from typing import NamedTuple, overload

__all__ = ["Entry", "Happening", "Journal"]


class Happening(StrEnum):
    """Each kind of row.  What `number` and `detail` mean is said beside it; -1 and 0 mean nothing elsewhere."""

    TRIGGERED = "triggered"  # the coordinator took the trigger timestamp; number: tasks that have finished and need not acknowledge
    TASKS_TRIGGERED = "tasks triggered"  # the calls set out to the tasks that begin
    REFUSED = "refused"  # a trigger that never got an id
    TRIGGER_RECEIVED = "trigger received"  # the task thread executes the coordinator's call
    BARRIER_ARRIVED = "barrier arrived"  # the first or last one of an input gate; number: channel
    SNAPSHOT_BEGUN = "snapshot begun"  # all phases follow in this task; number: 1 if unaligned
    BARRIER_FORWARDED = "barrier forwarded"  # number: bytes of output captured
    OUTPUT_CONVERTED = "output converted"  # number: bytes of output captured
    INPUT_PRIORITISED = "input prioritised"
    SYNC_FINISHED = "sync finished"
    INPUTS_RESUMED = "inputs resumed"
    IN_FLIGHT_COMPLETE = "in-flight data complete"  # nothing is added to the channel state of this task any more
    STATE_WRITTEN = "state written"  # number: bytes
    CHANNEL_STATE_WRITTEN = "channel state written"  # number: bytes
    ASYNC_FINISHED = "async finished"
    ACKNOWLEDGED = "acknowledged"
    STATE_UNKNOWN = "state unknown"  # an acknowledgement names files that are gone: it comes to nothing
    DECLINED = "declined"
    LAST_ACKNOWLEDGED = "last acknowledged"
    COMPLETED = "completed"  # _metadata is durable
    ABORTED = "aborted"  # detail: the reason
    CANCELLATION_FORWARDED = "cancellation forwarded"
    NOTIFIED_COMPLETE = "notified complete"
    NOTIFIED_ABORTED = "notified aborted"
    COMMITTED = "committed"  # number: records made visible
    TRANSACTION_LOST = "transaction lost"  # number: records; it was open for longer than its timeout
    FILE_MISSING = "file missing"  # number: files named by what was committed and not there in full
    END_OF_DATA = "end of data"  # detail: drain or no-drain
    TASK_FINISHED = "task finished"
    JOB_FINISHED = "job finished"
    JOB_FAILED = "job failed"  # detail: the reason
    TASK_FAILED = "task failed"  # detail: why
    TASK_MANAGER_LOST = "task manager lost"  # number: which
    JOB_MANAGER_LOST = "job manager lost"
    GIVEN_UP = "given up"  # the restart strategy allows no other restart; detail: why it would be needed
    JOB_RESTARTING = "job restarting"  # number: of the restart; detail: why
    JOB_RESTORED = "job restored"  # tasks are deployed with the state of this checkpoint; number: of the restart
    TASK_RESTORED = "task restored"  # its state is there; number: bytes
    TASK_RUNS = "task runs"  # its recovered input is read
    JOB_RECOVERED = "job recovered"  # all tasks run
    FAULT = "fault"  # detail: storage, network or a slow task, and for how long


class Entry(NamedTuple):
    time_ns: int
    happening: Happening
    checkpoint: int = -1
    task: int = -1  # -1: the coordinator
    number: int = 0
    detail: str = ""


class Journal(Sequence[Entry]):
    """Kept as columns: a run of a day has a million entries, and an entry of its own takes four times the room."""

    __hash__ = None  # type: ignore[assignment]  # it grows

    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        self._happenings: list[Happening] = []
        self._times, self._checkpoints, self._tasks, self._numbers = array("q"), array("q"), array("q"), array("q")
        self._details: dict[int, str] = {}  # few have one
        for entry in entries:
            self.note(*entry)

    def note(self, time_ns: int, happening: Happening, checkpoint: int = -1, task: int = -1, number: int = 0, detail: str = "") -> None:
        if detail:
            self._details[len(self._times)] = detail
        self._times.append(time_ns)
        self._happenings.append(happening)
        self._checkpoints.append(checkpoint)
        self._tasks.append(task)
        self._numbers.append(number)

    def story(self, checkpoint: int) -> list[Entry]:
        """Everything about one checkpoint, in order."""
        return [self[place] for place, number in enumerate(self._checkpoints) if number == checkpoint]

    def places(self) -> dict[int, array[int]]:
        """By checkpoint, where its entries stand."""
        places: dict[int, array[int]] = {}
        for place, checkpoint in enumerate(self._checkpoints):
            if checkpoint not in places:
                places[checkpoint] = array("q")
            places[checkpoint].append(place)
        return places

    def __len__(self) -> int:
        return len(self._times)

    def __iter__(self) -> Iterator[Entry]:
        columns = zip(self._times, self._happenings, self._checkpoints, self._tasks, self._numbers, strict=True)
        details = self._details
        for place, cells in enumerate(columns):
            yield Entry(*cells, details.get(place, ""))

    @overload
    def __getitem__(self, place: int) -> Entry: ...

    @overload
    def __getitem__(self, place: slice) -> list[Entry]: ...

    def __getitem__(self, place: int | slice) -> Entry | list[Entry]:
        if isinstance(place, slice):
            return [self[i] for i in range(*place.indices(len(self)))]
        columns = (self._times, self._happenings, self._checkpoints, self._tasks, self._numbers)
        at = place if place >= 0 else place + len(self)
        return Entry(*(column[place] for column in columns), self._details.get(at, ""))  # type: ignore[call-arg, arg-type]  # a cell of each column

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Journal):
            return NotImplemented
        return vars(self) == vars(other)
