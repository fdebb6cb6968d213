"""The journal of a run, which records all its events, and the compact columns and rows that it and samples are stored in."""

# Three structures, smallest first.  All keep columns.
#
#   GrowingColumn    _cells [ 3 7 7 9 . . . . ]      one NumPy array; `_length` cells are used
#                             `_length` = 4
#
#   PackedRows       _fresh  [(t, "map", 5), ...]    tuples, until there are _CHUNK_ROWS
#                    _packed [int64 | list | int64]  a GrowingColumn per column; int64 becomes float64, and
#                                                    numbers become a list, when a cell needs it
#
#   Journal          _blocks [ bytes, bytes, ... ]   4096 entries each, compressed (zlib, level 1):
#                              times | types | checkpoints | tasks | numbers     5 x 4096 int64, by column
#                    _latest [ (time, event type, checkpoint, task, number), ... ]   fewer than 4096
#                    _details { position: text }     few entries have one
#                    _cached_block                   the block that was unpacked last
#
# Position p of the journal is row p % 4096 of block p // 4096.  Entries are never changed or removed.
# Reading one entry unpacks its block unless that was unpacked last, so readers ask for kinds (`only`), or for positions in
# ascending order, which unpacks each block once.
#
# Why packed: the journal and the rows of past checkpoints were two thirds of the memory that a run of a day
# added (commit bbf7d381).  Why memory is reserved at the start: a dozen columns that grew side by side left
# holes between them, 17 of the 55 MB that a day leaves behind (commit f1decaa0).  Packing row by row takes
# longer than the row.
#
# One store for the journal, rows of samples and records of a rate was rejected: they share no operation.  The
# journal compresses five fixed columns, rows of samples become a table once, records of a rate are looked up
# by time (docs/decisions/13-what-stays-although-it-is-long.md).

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterable, Iterator, Sequence
from enum import StrEnum
from itertools import chain
from typing import Any, NamedTuple, Self, TypeAlias, overload
from zlib import compress, decompress

import numpy as np
import pandas as pd

# ---- A column of numbers that grows in place, in memory that is allocated once.

MAX_ROOM = 1 << 20
"""Maximum cells that are reserved in advance: the scenario may allow for a year, and the job end early."""


class GrowingColumn:
    """A growing array of numbers of one type.

    `room`: expected number of cells.  Memory for them is reserved; unused pages cost nothing, because the OS maps them
    lazily.
    """

    __slots__ = ("_cells", "_length")

    def __init__(self, kind: type[np.number], room: int = 0) -> None:
        self._cells = np.empty(min(room, MAX_ROOM), kind)
        self._length = 0

    def __len__(self) -> int:
        return self._length

    @property
    def cells(self) -> np.ndarray:
        """Return all numbers so far, without copying them."""
        return self._cells[: self._length]

    @property
    def kind(self) -> type[np.number]:
        kind: type[np.number] = self._cells.dtype.type
        return kind

    def extend(self, cells: np.ndarray | Sequence[float]) -> None:
        """Append numbers, which must fit the type."""
        end = self._length + len(cells)
        if end > len(self._cells):
            self._cells = self._moved(self.kind, max(end, 2 * len(self._cells)))
        self._cells[self._length : end] = cells
        self._length = end

    def cut(self, length: int) -> None:
        """Keep the first `length` numbers, and drop the others."""
        self._length = min(self._length, length)

    def of_reals(self) -> GrowingColumn:
        """Return a float64 copy of the column."""
        column = GrowingColumn(np.float64)
        column._cells, column._length = self._moved(np.float64, len(self._cells)), self._length
        return column

    def _moved(self, kind: type[np.number], room: int) -> np.ndarray:
        moved = np.empty(room, kind)
        moved[: self._length] = self.cells
        return moved


# ---- Rows stored as columns: the samples of a day take a tenth of the memory of tuples.

_CHUNK_ROWS = 4096
"""Rows that are packed together; packing single rows is slow."""

_Cells: TypeAlias = GrowingColumn | list[Any]


class PackedRows:
    """Rows stored as columns, in the order in which they are added.  Columns of numbers become arrays, others stay lists.

    `room`: expected number of rows, to reserve memory.
    """

    def __init__(self, columns: Sequence[str], room: int = 0) -> None:
        self.columns = list(columns)
        self._fresh: list[tuple[Any, ...]] = []
        self._packed: list[_Cells] = [GrowingColumn(np.int64, room) for _ in columns]

    def __len__(self) -> int:
        return len(self._fresh) + (len(self._packed[0]) if self._packed else 0)

    def add(self, row: tuple[Any, ...]) -> None:
        """Append a row with a cell per column."""
        self._fresh.append(row)
        if len(self._fresh) == _CHUNK_ROWS:
            self._pack()

    def extend(self, columns: Sequence[np.ndarray | Sequence[Any]]) -> None:
        """Append many rows, given by column; arrays are int64 or float64."""
        self._pack()
        self._packed = [_extended(column, cells) for column, cells in zip(self._packed, columns, strict=True)]

    def frame(self) -> pd.DataFrame:
        """Return all rows as a table, and clear the buffer.  pandas infers the types of the columns."""
        if not len(self):
            return pd.DataFrame.from_records([], columns=self.columns)
        self._pack()
        # a list of objects stays a list, so that pandas infers its type
        columns = {
            name: column if isinstance(column, list) else column.cells
            for name, column in zip(self.columns, self._packed, strict=True)
        }
        self._packed = [GrowingColumn(np.int64) for _ in columns]
        return pd.DataFrame(columns, copy=False)

    def _pack(self) -> None:
        if self._fresh:
            self._packed = [
                _extended(column, cells)
                for column, cells in zip(self._packed, zip(*self._fresh, strict=True), strict=True)
            ]
            self._fresh.clear()


def _extended(column: _Cells, cells: np.ndarray | Sequence[Any]) -> _Cells:
    """Append cells to a column, and return it: int64, float64, or a list if some cell is not a number."""
    kinds = {cells.dtype.type} if isinstance(cells, np.ndarray) else set(map(type, cells))
    if isinstance(column, list) or not kinds <= {int, float, np.int64, np.float64}:
        column = column if isinstance(column, list) else column.cells.tolist()
    elif column.kind is np.int64 and not kinds <= {int, np.int64}:
        column = column.of_reals()
    column.extend(cells)
    return column


# ---- Entries of the journal, in order of time. Tables, explanations and timelines are made from them.


NO_HEARTBEAT = "no heartbeat of a JobManager"
"""Detail of TASK_FAILED if a TaskManager misses the heartbeats of the JobManager."""


class EventType(StrEnum):
    """The kind of an entry: its name, and a template of the sentence that violations quote, if any.

    Comments say what `number` and `detail` of the entry mean; otherwise these are unused.
    """

    sentence: str

    def __new__(cls, value: str, sentence: str = "") -> Self:
        member = str.__new__(cls, value)
        member._value_, member.sentence = value, sentence
        return member

    # the coordinator took the trigger timestamp; number: count of tasks that need not acknowledge
    TRIGGERED = "triggered", "{who} triggers checkpoint {n}"
    # its region failed; number: the earlier checkpoint whose state is used
    PART_REPLACED = (
        "part replaced",
        "the region of {who} fails in checkpoint {n}: its part of checkpoint {number} replaces its own",
    )
    TASKS_TRIGGERED = "tasks triggered"  # the calls are sent to the source tasks
    # a trigger that never got an id; number: 1 if a user asked for it (a savepoint, a stop)
    REFUSED = "refused", "{who} refuses a trigger: {detail}"
    TRIGGER_RECEIVED = "trigger received"  # the task thread executes the coordinator's call
    BARRIER_ARRIVED = "barrier arrived"  # the first or last one of an input gate; number: channel
    # the first phase of the task begins; number: 1 if unaligned
    SNAPSHOT_BEGUN = "snapshot begun", "{who} begins snapshot {n}"
    # number: bytes of output captured
    BARRIER_FORWARDED = "barrier forwarded", "{who} writes barrier {n} to its outputs, overtaking {bytes}"
    # the barrier in an output queue became unaligned; number: bytes of output captured
    OUTPUT_CONVERTED = "output converted", "{who} lets barrier {n} overtake {bytes} in its outputs"
    # after the alignment timeout, the task no longer waits for aligned barriers
    INPUT_PRIORITISED = "input prioritised", "{who} stops waiting for barrier {n} to come in order"
    SYNC_FINISHED = "sync finished", "{who} ends the synchronous part of snapshot {n}"
    INPUTS_RESUMED = "inputs resumed", "{who} reads again the channels that barrier {n} had blocked"
    IN_FLIGHT_COMPLETE = "in-flight data complete"  # the channel state of this task is complete, but not yet written
    # number: bytes
    STATE_WRITTEN = "state written", "{who} has written {bytes} of state for snapshot {n}"
    # number: bytes
    CHANNEL_STATE_WRITTEN = "channel state written", "{who} has written {bytes} of in-flight data for snapshot {n}"
    ASYNC_FINISHED = "async finished", "{who} has everything of snapshot {n} on storage"
    ACKNOWLEDGED = "acknowledged", "{who} acknowledges checkpoint {n}"
    STATE_UNKNOWN = "state unknown"  # an acknowledgement references deleted files, and is ignored
    DECLINED = "declined", "{who} declines checkpoint {n}: {detail}"
    # all tasks have acknowledged; the coordinator writes the metadata; detail: without which tasks
    LAST_ACKNOWLEDGED = (
        "last acknowledged",
        "{who} has all acknowledgements of checkpoint {n}{detail} and writes its metadata",
    )
    # _metadata is durable
    COMPLETED = "completed", "checkpoint {n} is complete"
    # detail: the reason
    ABORTED = "aborted", "{who} aborts checkpoint {n}: {detail}"
    CANCELLATION_FORWARDED = "cancellation forwarded", "{who} forwards the cancellation of checkpoint {n}"
    NOTIFIED_COMPLETE = "notified complete", "{who} notifies the tasks that checkpoint {n} is complete"
    NOTIFIED_ABORTED = "notified aborted", "{who} notifies the tasks that checkpoint {n} is aborted"
    # the tasks of failed regions; number: the fallback; detail: how many tasks
    NOTIFIED_FALLBACK = (
        "notified fallback",
        "{who} notifies {detail} of failed regions that checkpoint {number} stands for checkpoint {n}",
    )
    # number: records made visible
    COMMITTED = "committed", "{who} makes {records} visible on completion of checkpoint {n}"
    COMMIT_FAILED = "commit failed"  # number: records that it was to make visible; detail: what follows
    # number: records; the transaction was open for longer than its timeout, or its commit was abandoned
    TRANSACTION_LOST = "transaction lost", "{who} finds {records} gone: the transaction was open for too long"
    # number: records that the committer discards; detail: why
    OUTPUT_DROPPED = "output dropped", "{who} drops {records} that it held: {detail}"
    # number: committed files that are missing or incomplete
    FILE_MISSING = "file missing", "{who} has committed what is not there in full: {files}"
    # detail: drain or no-drain
    END_OF_DATA = "end of data", "{who} has come to the end of its data ({detail})"
    TASK_FINISHED = "task finished", "{who} has finished"
    JOB_FINISHED = "job finished", "the job has finished"
    # because of a checkpoint; number: 1 if that was a stop-with-savepoint; detail: the reason
    JOB_FAILED = "job failed", "the job fails: {detail}"
    # detail: the reason
    TASK_FAILED = "task failed", "{who} fails: {detail}"
    # number: the TaskManager
    TASK_MANAGER_LOST = "task manager lost", "task manager {number} is lost"
    JOB_MANAGER_LOST = "job manager lost", "the JobManager is lost"
    JOB_MANAGER_ELECTED = "job manager elected", "another JobManager takes over"
    # the job is cancelled, and restarts with another parallelism
    RESCALED = "rescaled", "the job is cancelled, to go on with another parallelism"
    # the restart strategy allows no further restart; detail: the failure
    GIVEN_UP = "given up", "the restart strategy gives up: {detail}"
    # number: number of the restart; detail: the reason
    JOB_RESTARTING = "job restarting", "restart {number} begins: {detail}"
    # for lack of a slot on a lost TaskManager; number: the TaskManager
    DEPLOYMENT_FAILED = "deployment failed", "{who} cannot be deployed: {detail}"
    # tasks are deployed with the state of the checkpoint; number: number of the restart
    JOB_RESTORED = (
        "job restored",
        "restart {number} deploys its tasks with the state of checkpoint {n} (0: none, from the beginning)",
    )
    # its state is downloaded; number: bytes
    TASK_RESTORED = "task restored", "{who} has read {bytes} of state of checkpoint {n}"
    # its recovered input has been read
    TASK_RUNS = "task runs", "{who} runs again"
    # all tasks run
    JOB_RECOVERED = "job recovered", "all tasks run again"
    # by the user, at run time; number: the timeout [ns]; detail: interval and timeout
    CHECKPOINTS_CHANGED = "checkpoints changed", "the user changes checkpoints: {detail}"
    # detail: storage, network, a slow task or commits, and for how long
    FAULT = "fault", "a fault: {detail}"


class Entry(NamedTuple):
    """One entry of the journal."""

    time_ns: int
    event_type: EventType
    checkpoint: int = -1
    task: int = -1  # -1 for the coordinator
    number: int = 0  # depends on the kind: see `EventType`
    detail: str = ""  # depends on the kind: see `EventType`


_EVENT_TYPES = tuple(EventType)
_NUMBER_OF = {event_type: number for number, event_type in enumerate(_EVENT_TYPES)}
_BLOCK_ENTRIES = 4096
"""Number of entries that are compressed together."""


_Row = tuple[int, EventType, int, int, int]
"""An entry without its detail."""


def _packed(rows: Sequence[_Row]) -> bytes:
    """Return a full block of entries as compressed bytes, column by column."""
    times, event_types, *others = zip(*rows, strict=True)
    columns = times, list(map(_NUMBER_OF.__getitem__, event_types)), *others
    return compress(b"".join(array("q", column).tobytes() for column in columns), level=1)


def _unpacked(block: bytes) -> list[_Row]:
    cells = array("q", decompress(block))
    times, numbers, *others = (cells[first : first + _BLOCK_ENTRIES] for first in range(0, len(cells), _BLOCK_ENTRIES))
    return list(zip(times, map(_EVENT_TYPES.__getitem__, numbers), *others, strict=True))


class Journal(Sequence[Entry]):
    """The journal of a run: a sequence of all its entries.

    Entries are stored as columns, and all but the latest are compressed.  A run of a day has a million entries, and
    compression reduces their size to a thirtieth.
    """

    __hash__ = None  # type: ignore[assignment]  # it grows

    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        self._blocks: list[bytes] = []
        self._latest: list[_Row] = []
        self._details: dict[int, str] = {}  # by position; few entries have one
        self._cached_block: tuple[int, list[_Row]] = (-1, [])  # number and entries of the last block that was unpacked
        for entry in entries:
            self.note(*entry)

    def note(
        self,
        time_ns: int,
        event_type: EventType,
        checkpoint: int = -1,
        task: int = -1,
        number: int = 0,
        detail: str = "",
    ) -> None:
        """Append an entry."""
        if detail:
            self._details[len(self)] = detail
        self._latest.append((time_ns, event_type, checkpoint, task, number))
        if len(self._latest) == _BLOCK_ENTRIES:
            self._blocks.append(_packed(self._latest))
            self._latest = []

    def entries_of(self, checkpoint: int) -> list[Entry]:
        """Return all entries about one checkpoint, in order."""
        return [entry for entry in self if entry.checkpoint == checkpoint]

    def last(self, event_type: EventType) -> Entry:
        """Return the last entry of this kind, which must exist."""
        return next(row for row in reversed(self) if row.event_type is event_type)

    def only(self, event_types: Collection[EventType]) -> Iterator[Entry]:
        """Yield the entries of these kinds, in order."""
        chosen = frozenset(map(id, event_types))  # enum members are singletons, and their hash is slow
        for position, row in enumerate(self._rows()):
            if id(row[1]) in chosen:
                yield Entry(*row, self._details.get(position, ""))

    def positions(self) -> dict[int, array[int]]:
        """Return the positions of the entries of each checkpoint."""
        positions: dict[int, array[int]] = {}
        for position, (_, _, checkpoint, _, _) in enumerate(self._rows()):
            if checkpoint not in positions:
                positions[checkpoint] = array("q")
            positions[checkpoint].append(position)
        return positions

    def _rows(self) -> Iterator[_Row]:
        """Return all entries, without details."""
        return chain(chain.from_iterable(map(_unpacked, self._blocks)), list(self._latest))

    def __len__(self) -> int:
        return len(self._blocks) * _BLOCK_ENTRIES + len(self._latest)

    def __iter__(self) -> Iterator[Entry]:
        for position, row in enumerate(self._rows()):
            yield Entry(*row, self._details.get(position, ""))

    @overload
    def __getitem__(self, position: int) -> Entry: ...

    @overload
    def __getitem__(self, position: slice) -> list[Entry]: ...

    def __getitem__(self, position: int | slice) -> Entry | list[Entry]:
        at = range(len(self))[position]
        if isinstance(at, range):
            return [self[i] for i in at]
        block, row = divmod(at, _BLOCK_ENTRIES)
        return Entry(*self._block(block)[row], self._details.get(at, ""))

    def _block(self, number: int) -> list[_Row]:
        """Return the entries of a block, without details.  The last one that was unpacked is cached."""
        if number == len(self._blocks):
            return self._latest
        if self._cached_block[0] != number:
            self._cached_block = number, _unpacked(self._blocks[number])
        return self._cached_block[1]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Journal):
            return NotImplemented
        return (self._blocks, self._latest, self._details) == (other._blocks, other._latest, other._details)
