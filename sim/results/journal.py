"""The journal of a run: columns that grow, packed rows."""

# Three structures, smallest first.  All keep columns.
#
#   GrowingColumn    _cells [ 3 7 7 9 . . . . ]      one NumPy array; `_length` cells are used
#                             `_length` = 4
#
#   PackedRows       _fresh  [(t, "map", 5), ...]    tuples, until there are _CHUNK = 4096
#                    _packed [int64 | list | int64]  a GrowingColumn per column; int64 becomes float64, and
#                                                    numbers become a list, when a cell needs it
#
#   Journal          _blocks [ bytes, bytes, ... ]   4096 entries each, compressed (zlib, level 1):
#                              times | kinds | checkpoints | tasks | numbers     5 x 4096 int64, by column
#                    _latest [ (time, happening, checkpoint, task, number), ... ]   fewer than 4096
#                    _details { position: text }     few entries have one
#                    _looked_at                      the block that was unpacked last
#
# Position p of the journal is row p % 4096 of block p // 4096.  Entries are never changed or removed.
# Reading one entry unpacks a block, so readers ask for kinds (`only`) or positions in order (`at`), which
# unpack each block once.
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
from itertools import chain, groupby
from typing import Any, NamedTuple, TypeAlias, overload
from zlib import compress, decompress

import numpy as np
import pandas as pd

# ---- A column of numbers that grows in place, in memory that is taken once.
#
# Arrays that grow side by side leave holes between them, and a day has a dozen: holes were a quarter of what it left
# behind.

MAX_ROOM = 1 << 20
"""No more is asked for before it is needed: a run may be said to last a year, and end with its data."""


class GrowingColumn:
    """Numbers of one type.  `room`: so many may come; memory that nothing is written to is not taken from the machine."""

    __slots__ = ("_cells", "_length")

    def __init__(self, kind: type[np.number], room: int = 0) -> None:
        self._cells = np.empty(min(room, MAX_ROOM), kind)
        self._length = 0

    def __len__(self) -> int:
        return self._length

    @property
    def cells(self) -> np.ndarray:
        """All numbers so far, without a copy."""
        return self._cells[: self._length]

    @property
    def kind(self) -> type[np.number]:
        kind: type[np.number] = self._cells.dtype.type
        return kind

    def extend(self, cells: np.ndarray | Sequence[float]) -> None:
        """Numbers that the type holds."""
        end = self._length + len(cells)
        if end > len(self._cells):
            self._cells = self._moved(self.kind, max(end, 2 * len(self._cells)))
        self._cells[self._length : end] = cells
        self._length = end

    def cut(self, length: int) -> None:
        """Keep so many."""
        self._length = min(self._length, length)

    def of_reals(self) -> GrowingColumn:
        """The same numbers, beside which others may stand that are not whole."""
        column = GrowingColumn(np.float64)
        column._cells, column._length = self._moved(np.float64, len(self._cells)), self._length
        return column

    def _moved(self, kind: type[np.number], room: int) -> np.ndarray:
        moved = np.empty(room, kind)
        moved[: self._length] = self.cells
        return moved


# ---- Rows kept as columns: a day of samples takes a tenth of the room that tuples of numbers take.

_CHUNK = 4096
"""Rows that stay tuples until they are packed: packing one by one takes longer than the row."""

_Cells: TypeAlias = GrowingColumn | list[Any]


class PackedRows:
    """Rows as columns, in the order in which they are added.  Columns of numbers become arrays; others stay as they are.

    `room`: so many rows may come, where that is known.
    """

    def __init__(self, columns: Sequence[str], room: int = 0) -> None:
        self.columns = list(columns)
        self._fresh: list[tuple[Any, ...]] = []
        self._packed: list[_Cells] = [GrowingColumn(np.int64, room) for _ in columns]

    def __len__(self) -> int:
        return len(self._fresh) + (len(self._packed[0]) if self._packed else 0)

    def add(self, row: tuple[Any, ...]) -> None:
        """A cell per column."""
        self._fresh.append(row)
        if len(self._fresh) == _CHUNK:
            self._pack()

    def extend(self, columns: Sequence[np.ndarray | Sequence[Any]]) -> None:
        """Many rows by column, in the order of the columns; arrays are of int64 or float64."""
        self._pack()
        self._packed = [_extended(column, cells) for column, cells in zip(self._packed, columns, strict=True)]

    def frame(self) -> pd.DataFrame:
        """All rows as a table; the buffer is empty afterwards.  pandas infers the types of the columns."""
        if not len(self):
            return pd.DataFrame.from_records([], columns=self.columns)
        self._pack()
        columns = {name: _without_copy(column) for name, column in zip(self.columns, self._packed, strict=True)}
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
    """Numbers are int64 or double.  Columns of anything else hold objects."""
    kinds = {cells.dtype.type} if isinstance(cells, np.ndarray) else set(map(type, cells))
    if isinstance(column, list) or not kinds <= {int, float, np.int64, np.float64}:
        column = column if isinstance(column, list) else column.cells.tolist()
    elif column.kind is np.int64 and not kinds <= {int, np.int64}:
        column = column.of_reals()
    column.extend(cells)
    return column


def _without_copy(column: _Cells) -> Any:
    """Objects as a list, so that pandas infers their type."""
    return column if isinstance(column, list) else column.cells


# ---- What happened, in order: rows are only ever added, and every table, story and picture is made from them.


class Happening(StrEnum):
    """The kind of an entry.  Beside each stands what `number` and `detail` mean; elsewhere they are -1 and empty."""

    TRIGGERED = "triggered"  # the coordinator took the trigger timestamp; number: tasks that need not acknowledge
    PART_KEPT = "part kept"  # the task takes no part in the checkpoint; number: the one whose part stands for it
    TASKS_TRIGGERED = "tasks triggered"  # the calls set out to the tasks that begin
    REFUSED = "refused"  # a trigger that never got an id; number: 1 if a user asked for it (a savepoint, a stop)
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
    COMMIT_FAILED = "commit failed"  # number: records that it was to make visible; detail: what follows
    # number: records; it was open for longer than its timeout, or its commit was given up
    TRANSACTION_LOST = "transaction lost"
    OUTPUT_DROPPED = "output dropped"  # number: records; the committer forgets them; detail: why
    FILE_MISSING = "file missing"  # number: files named by what was committed and not there in full
    END_OF_DATA = "end of data"  # detail: drain or no-drain
    TASK_FINISHED = "task finished"
    JOB_FINISHED = "job finished"
    JOB_FAILED = "job failed"  # by a checkpoint; number: 1 if it was to stop with it; detail: the reason
    TASK_FAILED = "task failed"  # detail: why
    TASK_MANAGER_LOST = "task manager lost"  # number: which
    JOB_MANAGER_LOST = "job manager lost"
    JOB_MANAGER_ELECTED = "job manager elected"  # another one takes over
    RESCALED = "rescaled"  # the job is cancelled, to go on with another parallelism
    GIVEN_UP = "given up"  # the restart strategy allows no other restart; detail: why it would be needed
    JOB_RESTARTING = "job restarting"  # number: of the restart; detail: why
    DEPLOYMENT_FAILED = "deployment failed"  # a task's slot is on a task manager that is gone; number: which
    JOB_RESTORED = "job restored"  # tasks are deployed with the state of this checkpoint; number: of the restart
    TASK_RESTORED = "task restored"  # its state is there; number: bytes
    TASK_RUNS = "task runs"  # its recovered input is read
    JOB_RECOVERED = "job recovered"  # all tasks run
    FAULT = "fault"  # detail: storage, network, a slow task or commits, and for how long


class Entry(NamedTuple):
    """One entry of the journal."""

    time_ns: int
    happening: Happening
    checkpoint: int = -1
    task: int = -1  # -1: the coordinator
    number: int = 0
    detail: str = ""


_HAPPENINGS = tuple(Happening)
_NUMBER_OF = {happening: number for number, happening in enumerate(_HAPPENINGS)}
_BLOCK = 4096
"""Entries that are packed together."""


_Row = tuple[int, Happening, int, int, int]
"""An entry without its detail."""


class _Columns(NamedTuple):
    """Entries without their details."""

    times: array[int]
    happenings: list[Happening]
    checkpoints: array[int]
    tasks: array[int]
    numbers: array[int]

    @classmethod
    def of(cls, rows: Sequence[_Row]) -> _Columns:
        if not rows:
            return cls(array("q"), [], array("q"), array("q"), array("q"))
        times, happenings, checkpoints, tasks, numbers = zip(*rows, strict=True)
        return cls(array("q", times), list(happenings), array("q", checkpoints), array("q", tasks), array("q", numbers))

    def packed(self) -> bytes:
        kinds = array("q", map(_NUMBER_OF.__getitem__, self.happenings))
        columns = self.times, kinds, self.checkpoints, self.tasks, self.numbers
        return compress(b"".join(column.tobytes() for column in columns), level=1)

    @classmethod
    def unpacked(cls, block: bytes) -> _Columns:
        cells = array("q", decompress(block))
        times, kinds, *others = (cells[first : first + _BLOCK] for first in range(0, len(cells), _BLOCK))
        return cls(times, [_HAPPENINGS[kind] for kind in kinds], *others)


class Journal(Sequence[Entry]):
    """The journal of a run.

    It is kept as columns, all but the latest compressed: a run of a day has a million entries, and they take a
    thirtieth of the room.
    """

    __hash__ = None  # type: ignore[assignment]  # it grows

    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        self._blocks: list[bytes] = []
        self._latest: list[_Row] = []
        self._details: dict[int, str] = {}  # by position; few entries have one
        self._looked_at = (-1, 0, _Columns.of(()))  # a block, its length and its entries: readers ask for neighbours
        for entry in entries:
            self.note(*entry)

    def note(
        self,
        time_ns: int,
        happening: Happening,
        checkpoint: int = -1,
        task: int = -1,
        number: int = 0,
        detail: str = "",
    ) -> None:
        if detail:
            self._details[len(self)] = detail
        self._latest.append((time_ns, happening, checkpoint, task, number))
        if len(self._latest) == _BLOCK:
            self._blocks.append(_Columns.of(self._latest).packed())
            self._latest = []

    def story(self, checkpoint: int) -> list[Entry]:
        """All entries about one checkpoint, in order."""
        return [entry for entry in self if entry.checkpoint == checkpoint]

    def last(self, happening: Happening) -> Entry:
        """The latest entry of this kind.  There must be one."""
        return next(row for row in reversed(self) if row.happening is happening)

    def only(self, happenings: Collection[Happening]) -> Iterator[Entry]:
        """The entries of these kinds, in order."""
        details, first = self._details, 0
        chosen = frozenset(map(id, happenings))  # they are singletons, and an enumerator's own hash is slow
        for block in self._columns():
            for offset, kind in enumerate(map(id, block.happenings)):
                if kind in chosen:
                    cells = (column[offset] for column in block)
                    yield Entry(*cells, details.get(first + offset, ""))  # type: ignore[call-arg, arg-type]  # a cell of each column
            first += len(block.happenings)

    def places(self) -> dict[int, array[int]]:
        """The positions of entries, by checkpoint."""
        places: dict[int, array[int]] = {}
        for place, checkpoint in enumerate(number for block in self._columns() for number in block.checkpoints):
            if checkpoint not in places:
                places[checkpoint] = array("q")
            places[checkpoint].append(place)
        return places

    def at(self, places: Iterable[int]) -> list[Entry]:
        """The entries at these positions, each from 0 on."""
        details, found = self._details, list[Entry]()
        for number, together in groupby(places, _BLOCK.__rfloordiv__):
            times, happenings, checkpoints, tasks, numbers = self._block(number)
            for place in together:
                row = place % _BLOCK
                found.append(
                    Entry(
                        times[row], happenings[row], checkpoints[row], tasks[row], numbers[row], details.get(place, "")
                    )
                )
        return found

    def _columns(self) -> Iterator[_Columns]:
        return chain(map(_Columns.unpacked, self._blocks), (self._block(len(self._blocks)),))

    def __len__(self) -> int:
        return len(self._blocks) * _BLOCK + len(self._latest)

    def __iter__(self) -> Iterator[Entry]:
        details = self._details
        for place, cells in enumerate(cells for block in self._columns() for cells in zip(*block, strict=True)):
            yield Entry(*cells, details.get(place, ""))

    @overload
    def __getitem__(self, place: int) -> Entry: ...

    @overload
    def __getitem__(self, place: slice) -> list[Entry]: ...

    def __getitem__(self, place: int | slice) -> Entry | list[Entry]:
        if isinstance(place, slice):
            return [self[i] for i in range(*place.indices(len(self)))]
        at = place if place >= 0 else place + len(self)
        if not 0 <= at < len(self):
            raise IndexError(place)
        block, row = divmod(at, _BLOCK)
        if block == len(self._blocks):
            return Entry(*self._latest[row], self._details.get(at, ""))
        return Entry(*(column[row] for column in self._block(block)), self._details.get(at, ""))  # type: ignore[call-arg, arg-type]  # a cell of each column

    def _block(self, number: int) -> _Columns:
        is_latest = number == len(self._blocks)
        length = len(self._latest) if is_latest else _BLOCK
        if self._looked_at[:2] != (number, length):
            entries = _Columns.of(self._latest) if is_latest else _Columns.unpacked(self._blocks[number])
            self._looked_at = number, length, entries
        return self._looked_at[2]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Journal):
            return NotImplemented
        return (self._blocks, self._latest, self._details) == (other._blocks, other._latest, other._details)
