"""`KernelPlane`, the data plane that runs on the compiled or interpreted kernel, and the restart of its tasks."""

# The path of a call.  Python checks arguments and copies tables.  Only the kernel changes rows, in `dispatch_operation`
# (text/loop.py).  There is one exception: when tasks are restarted, `place` writes their rows between two operations of
# the kernel.
#
#   host                KernelPlane                            Kernel.dispatch_operation(op, t, a, b, c, d)
#   ----                -----------                            --------------------------------------------
#   forward(marker) --> check arguments, grow the pool  -->    FORWARD: change rows, append to the work list
#   advance(until)  --> a pending notice, if any; else  -->    ADVANCE: work items and events before `until`,
#                                                              up to the first step that reports something
#                       `_collect`: words -> Notice     <--    returns the number of notices in `notes`
#   position(task)  --> `_copied`: words -> array       <--    POSITION: copy the offsets of a task to `words`
#
#   backend        `_state`, a PlaneState of                 `self` in the kernel's text
#   compiled       NumPy record arrays (`record_dtype`)      the address of a table of base addresses
#   interpreted    lists of row objects (`as_objects`)       a `Kernel` of the same lists
#
# One signature for all operations lets the compiler produce one function.  Rows are plain memory behind one
# pointer, because arrays in a tuple, the first form under Numba, cost a factor of 5 (commit 6f1f2d1d).  LLVM
# replaced Numba because it compiles the same text to the same speed in 3 CPU s instead of 27
# (docs/decisions/01-two-data-planes.md).
#
# The kernel allocates nothing.  The element pool is bounded by segments and credits, except for markers and
# for recovered output that exceeds the pools.  Before an operation that adds those, `_make_room` or
# `_make_excess_room` copies the pool into a larger one, and `_use_state` takes the new addresses.

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from sim.model.frozen import frozen
from sim.plane import machine_code
from sim.plane.assembly import (
    CHANNEL_COLUMNS,
    TASK_COLUMNS,
    TOTALS,
    Column,
    as_objects,
    assemble,
    assign,
    column,
    select_field,
    sum_by_owner,
    table,
    total,
    totals,
    with_more_elements,
)
from sim.plane.conservation import check_state
from sim.plane.interface import (
    ANY_NUMBER,
    BARRIERS,
    EDGE_COLUMNS,
    MAX_SERIES,
    MAX_SERVED_SAMPLES,
    VERTEX_COLUMNS,
    ChannelPlaces,
    Layout,
    Marker,
    Notice,
    NoticeKind,
    PlaneSpec,
    Position,
    RecordCounts,
    Trait,
    channels_in,
    channels_out,
    places,
    validate_start_positions,
    zero_column,
)
from sim.plane.rows import Channel, Gate, Partition, PlaneState, Task, renewed_fields
from sim.plane.text import loop
from sim.plane.text.basics import BROADCAST, NOTE_WORDS, REBALANCE, RESCALE, RESETTING, SEGMENT, SERIES

# ---- Positions of tasks, read from the rows of the kernel and written to them (P2-P6).
#
# Tasks are started at positions in three steps:
#
# 1. SWEEP (kernel): remove the tasks' elements and work items from all queues and lists.
# 2. Python: reset the fields of their rows, except those that last, and write their positions.
# 3. RESTORE_TASK (kernel): derive all other fields from the positions, and queue the recovered input and output.


@frozen
class RowNumbers:
    """The row numbers of some tasks, and of their partitions, gates and channels."""

    tasks: list[int]
    partitions: list[int]
    gates: list[int]
    channels: list[int]

    @classmethod
    def of(cls, plan: Layout, tasks: Iterable[int]) -> RowNumbers:
        """Return the rows of these tasks."""
        every = sorted(tasks)
        return cls(
            every,
            [p for t in every for p in plan.task_partitions[t]],
            [g for t in every for g in plan.task_gates[t]],
            [c for t in every for c in channels_out(plan, t)],
        )


def position_of(cells: Column, inputs: int, outputs: int, late: int) -> Position:
    """Return the position without captured data (P2), from the `cells` that the kernel has copied.

    The fields of captures are left out because reading them is slow: they are on cache lines of their own.
    """
    read, written = cells[1 : 1 + 2 * inputs], cells[1 + 2 * inputs :]
    return Position(
        int(cells[0]),
        consumed=read[:inputs],
        records_read=read[inputs:],
        captured=zero_column(inputs),
        written=written[:outputs],
        records_written=written[outputs:],
        overtaken=zero_column(outputs),
        late=late,
    )


def with_captures(state: PlaneState, bare: Position, inputs: ChannelPlaces, outputs: ChannelPlaces) -> Position:
    """Return the position with captured data (P2).  `inputs` and `outputs` are the channels of the task."""
    rows = state.channels
    so_far = select_field(rows, "arrived", inputs) - select_field(rows, "captured_from", inputs)
    return bare._replace(
        captured=np.where(select_field(rows, "capturing", inputs) > 0, so_far, select_field(rows, "cap_in", inputs)),
        overtaken=select_field(rows, "cap_out", outputs),
    )


def excess_segments(state: PlaneState, plan: Layout, segment_bytes: int, positions: Mapping[int, Position]) -> int:
    """Return how many segments more than the pools contain are in use after the tasks have been started at these positions."""
    used = column(state.partitions, "used")
    for t, position in positions.items():
        segments = iter((-(-position.overtaken // segment_bytes)).tolist())
        for p in plan.task_partitions[t]:
            used[p] = sum(next(segments) for _ in plan.partitions[p][2])
    return int(np.maximum(used - column(state.partitions, "limit"), 0).sum())


def start_at_positions(
    state: PlaneState, spec: PlaneSpec, plan: Layout, positions: Mapping[int, Position], do: Callable[[int, int], int]
) -> None:
    """Start the tasks at their positions (P3).  `do(operation, task)` executes an operation of the kernel."""
    where = RowNumbers.of(plan, positions)
    before, counts_before = totals(state), record_counts(state, where)
    assign(state.tasks, "held", where.tasks, RESETTING)
    do(loop.SWEEP, 0)
    reset_rows(state, spec, where)
    captured = np.zeros(len(plan.reader), np.int64)
    for t, position in positions.items():
        captured[channels_in(plan, t)] = position.captured
    for t, position in positions.items():
        outputs = channels_out(plan, t)
        write_position(state, t, position, outputs, captured[outputs])
        count_copies(state, plan.task_partitions[t], position)
        seek_due(state, t, position.served)
    for t in where.tasks:
        do(loop.RESTORE_TASK, t)
    after = totals(state)
    for name, (field, _, _) in TOTALS.items():
        earlier = column(state.tasks, field) + before[name] - after[name]
        assign(state.tasks, field, where.tasks, earlier[where.tasks])
    counts_after = record_counts(state, where)
    for rows, numbers, field in (
        (state.tasks, where.tasks, "earlier_served"),
        (state.channels, where.channels, "earlier_read"),
        (state.channels, where.channels, "earlier_written"),
    ):
        assign(rows, field, numbers, select_field(rows, field, numbers) + counts_before[field] - counts_after[field])


def record_counts(state: PlaneState, where: RowNumbers) -> dict[str, np.ndarray[Any, Any]]:
    """Return the record counts of tasks and channels that a start sets back.

    Keys are the fields that preserve the differences, so that total counts never decrease (P8).
    """
    return {
        "earlier_served": select_field(state.tasks, "served", where.tasks),
        "earlier_read": select_field(state.channels, "records_in", where.channels),
        "earlier_written": select_field(state.channels, "records_out", where.channels),
    }


def reset_rows(state: PlaneState, spec: PlaneSpec, where: RowNumbers) -> None:
    """Reset the rows to their initial values, except the fields marked as kept."""
    for row, rows, numbers in (
        (Task, state.tasks, where.tasks),
        (Partition, state.partitions, where.partitions),
        (Gate, state.gates, where.gates),
        (Channel, state.channels, where.channels),
    ):
        for field in renewed_fields(row):
            assign(rows, field.name, numbers, field.default)
    assign(state.tasks, "last_used", where.tasks, select_field(state.tasks, "last_gate", where.tasks) - 1)
    assign(state.gates, "idle", where.gates, spec.floating)
    assign(state.gates, "last_size", where.gates, spec.starting_buffer_bytes << 32)
    assign(state.gates, "announced_bytes", where.gates, spec.starting_buffer_bytes)
    assign(state.channels, "buffer_bytes", where.channels, spec.starting_buffer_bytes)
    exclusive = np.where(select_field(state.channels, "local", where.channels) == 1, 0, spec.exclusive)
    for name in ("credit", "required", "ex_free"):
        assign(state.channels, name, where.channels, exclusive)
    for settled, closed, counts in zip(
        *(select_field(state.gates, n, where.gates) for n in ("settled", "closed_bits", "counts")), strict=True
    ):
        for i in (*range(settled, settled + SERIES), *range(closed, counts)):
            state.words[i] = 0


def write_position(
    state: PlaneState, task: int, position: Position, outputs: list[int], captured: np.ndarray[Any, Any]
) -> None:
    """Write the number of records a task has served, and the offsets of its output channels (P5).  `captured`: input bytes of their readers."""
    assign(state.tasks, "served", [task], position.served)
    assign(state.tasks, "late", [task], position.late)
    sent = position.written - position.overtaken
    for name, values in (
        ("written", position.written),
        ("sent", sent),
        ("arrived", sent),
        ("taken", sent - captured),
        ("consumed", sent - captured),
        ("records_out", position.records_written),
    ):
        assign(state.channels, name, outputs, values)


def count_copies(state: PlaneState, partitions: Sequence[int], position: Position) -> None:
    """Write, for each partition of a task, the number of copies of the records whose outputs are written, and the next channel (P4)."""
    columns = (
        select_field(state.partitions, name, partitions).tolist()
        for name in ("fan_num", "fan_den", "ship", "turn", "copies", "channels", "traverse")
    )
    first = 0
    for p, num, den, ship, turn, copies, channels, traverse in zip(partitions, *columns, strict=True):
        made = (position.served - position.late) * num // den
        assign(state.partitions, "copies", [p], made)
        counted = position.records_written[first : first + (1 if ship == BROADCAST else channels)]
        assign(state.partitions, "uncounted", [p], made - int(counted.sum()))
        first += channels
        if ship in (REBALANCE, RESCALE):
            assign(state.partitions, "turn", [p], 0 if traverse else (turn + made - copies) % channels)


def seek_due(state: PlaneState, task: int, served: int) -> None:
    """Write when the next record of a source is due, and by which rate segment (W1)."""
    begin, end = (int(select_field(state.tasks, name, [task])[0]) for name in ("first_segment", "last_segment"))
    segments = range(begin, end, SEGMENT)
    at = (
        segments[max(bisect_right(segments, served, key=lambda place: state.words[place]) - 1, 0)]
        if segments
        else begin
    )
    assign(state.tasks, "segment", [task], at)
    if begin < end:
        first, start, num, quotient, rest = (int(word) for word in state.words[at : at + SEGMENT])
        parts = (served - first) * rest
        assign(state.tasks, "due", [task], start + (served - first) * quotient + parts // num)
        assign(state.tasks, "due_part", [task], parts % num)


# ---- The data plane: methods are operations of the kernel, tables are copies of its rows.
#
# The same class uses the compiled and the interpreted kernel.  It checks the arguments and whether a call is legal; the
# kernel does the rest.

KINDS = tuple(sorted(NoticeKind))  # by number, because a lookup in the enumeration is slower
MARKER_ROOM = 1024  # initial elements of the pool for markers; at least one per channel


class KernelPlane:
    """A data plane that runs on the compiled or interpreted kernel.  Its state consists of rows of integers.

    Docstrings refer to the rules of ``sim/plane/RULES.md``.  The reference implementation of the tests has the same methods.
    """

    def __init__(self, spec: PlaneSpec, backend: Literal["compiled", "interpreted"] = "compiled") -> None:
        self.spec = spec
        arrays: Any
        arrays, self.layout = assemble(spec, MARKER_ROOM)
        enter = machine_code.load_compiled_entry_point() if backend == "compiled" else None
        self.backend = "interpreted" if enter is None else "compiled"
        self._enter: Callable[..., int] = enter or loop.Kernel.dispatch_operation
        sums = int(arrays.g["sums"][0])
        self._sums = slice(sums, sums + len(spec.vertices) * len(VERTEX_COLUMNS) + len(spec.edges) * len(EDGE_COLUMNS))
        self._horizon = int(arrays.g["horizon"][0])
        self._use_state(as_objects(arrays) if enter is None else arrays)
        self._notices: deque[Notice] = deque()
        self._marker_room = max(MARKER_ROOM, len(self.layout.writer))  # a checkpoint sends a marker on every channel
        self._excess_room = 0
        self._copied_to, self._samples_at = int(arrays.g["copied"][0]), int(arrays.g["served_samples"][0])
        self._channels: dict[int, tuple[int, int]] = {}  # (inputs, outputs) of each task, computed on demand
        self._partitions: dict[tuple[int, int | None], tuple[int, int]] = {}
        # (inputs, outputs) of each task, computed on demand
        self._places: dict[int, tuple[ChannelPlaces, ChannelPlaces]] = {}
        # returned by `sample_served` if a notice precedes its first time
        self._no_samples = np.zeros((0, len(self.layout.vertex)), np.int64)
        self._started = 0  # 1: some task has had several attempts
        self.now = spec.begin_ns
        self._execute(loop.START)

    def _use_state(self, state: PlaneState) -> None:
        """Use this state, or its new addresses, for all later operations."""
        self._state = state
        self._handle: Any = loop.Kernel(*state)
        if self.backend == "compiled":
            self._addresses = machine_code.addresses(state)
            self._handle = self._addresses.ctypes.data

    def _execute(self, op: int, task: int = 0, a: int = 0, b: int = 0, c: int = 0, d: int = 0) -> int:
        """Execute an operation of the kernel, and return its result."""
        return self._enter(self._handle, op, task, a, b, c, d)

    def _collect(self, n: int) -> None:
        """Copy the n pending notices of the kernel to the queue of notices."""
        words: Any = self._state.notes[: n * NOTE_WORDS]
        numbers = words.tolist() if self.backend == "compiled" else words
        for i in range(0, len(numbers), NOTE_WORDS):
            time, kind, task, gate, series, number, channel, first, last = numbers[i : i + NOTE_WORDS]
            self._notices.append(Notice(time, KINDS[kind], task, gate, series, number, channel, first == 1, last == 1))

    def advance(self, until: int) -> Notice:
        """Process events up to `until` [ns], or up to the first notice, and return it (E3)."""
        if self._notices:
            return self._notices.popleft()
        if until == self.now:  # common: several control events at the same time
            return Notice(until, NoticeKind.REACHED_TIME)
        self._require_future(until, until)
        noted = self._execute(loop.ADVANCE, 0, until)
        if noted == 0:
            self.now = until
            return Notice(until, NoticeKind.REACHED_TIME)
        return self._first_notice(noted)

    def _require_future(self, first: int, last: int) -> None:
        """Raise ValueError unless both times are possible and not in the past."""
        if not self.now <= first <= last <= self._horizon:
            raise ValueError(
                f"advance to {last} ns: now is {self.now}, the last possible time of this job {self._horizon}"
            )

    def _first_notice(self, noted: int) -> Notice:
        """Collect the pending notices, and return the first one.  The clock is set to its time."""
        self._collect(noted)
        notice = self._notices.popleft()
        self.now = notice.time
        return notice

    def forward(self, task: int, marker: Marker, edge: int | None = None) -> int:
        """Send a marker on the output channels of a task, or on those of one edge.  Return the bytes captured (M1)."""
        if marker.number <= 0 or not 0 <= marker.series < MAX_SERIES:
            raise ValueError(f"{marker}: a number is positive, a series below {MAX_SERIES}")
        only, channels = self._written_by(task, edge)
        self._make_room(1 + channels)
        captured = self._execute(loop.FORWARD, task, only, marker.series, marker.number, int(marker.traits))
        if not channels and Trait.ANNOUNCED in marker.traits:
            self._collect(self._general("noted"))
        return captured

    def _written_by(self, task: int, edge: int | None) -> tuple[int, int]:
        """Return the partition of a task on an edge (-1 for all, if `edge` is None), and the number of output channels of the task."""
        if (task, edge) not in self._partitions:
            of_edge = {self.layout.partitions[p][1]: p for p in self.layout.task_partitions[task]}
            if edge is not None and edge not in of_edge:
                raise ValueError(f"task {task} does not write edge {edge}")
            self._partitions[task, edge] = -1 if edge is None else of_edge[edge], self._channel_counts(task)[1]
        return self._partitions[task, edge]

    def _general(self, name: str) -> int:
        """Return a field of `General`, the row of the plane as a whole."""
        g: Any = self._state.g
        return int(g[name][0]) if self.backend == "compiled" else int(getattr(g, name))

    def _make_room(self, markers: int) -> None:
        """Enlarge the element pool, if necessary, before an operation that adds markers.  The room for markers is at least doubled."""
        needed = self._general("markers") + markers
        if needed > self._marker_room:
            extra = max(needed, 2 * self._marker_room) - self._marker_room
            self._use_state(with_more_elements(self._state, extra))
            self._marker_room += extra

    def _make_excess_room(self, segments: int) -> None:
        """Enlarge the element pool, if necessary, before recovered output needs more segments than the buffer pools have (P6)."""
        if segments > self._excess_room:
            self._use_state(with_more_elements(self._state, segments - self._excess_room))
            self._excess_room = segments

    def convert_output(self, task: int, number: int) -> int:
        """Convert the queued marker of a task to a priority marker.  Return the bytes captured (M2)."""
        return self._execute(loop.CONVERT, task, number)

    def prioritise(self, task: int, number: int) -> None:
        """Process the markers that wait in the receive queues of a task before its data (M3)."""
        self._execute(loop.PRIORITISE, task, number)

    def resume(self, task: int, number: int = ANY_NUMBER) -> None:
        """Resume the channels that the markers up to `number` have blocked (M5)."""
        self._execute(loop.RESUME_ALL, task, number)

    def settle(self, task: int, number: int, series: int = BARRIERS) -> None:
        """Report no more markers of a series up to `number` to a task (M5)."""
        self._execute(loop.SETTLE, task, series, number)

    def capture(self, task: int, number: int) -> None:
        """Begin to capture the input of a task, up to the markers of `number` (C1)."""
        if number <= 0:
            raise ValueError(f"capture of number {number}: numbers are positive")
        self._execute(loop.CAPTURE, task, number)

    def captured(self, task: int) -> int:
        """Return the input bytes that a task has captured (C5)."""
        return self._execute(loop.CAPTURED_INPUT, task)

    def release_capture(self, task: int) -> None:
        """Give the captured buffers back (C4)."""
        self._execute(loop.RELEASE_CAPTURE, task)

    def interrupt(self, task: int) -> None:
        """Stop a task at its next safe point, which a notice reports (E4)."""
        self._execute(loop.INTERRUPT, task)

    def interrupt_after_next_element(self, task: int) -> None:
        """Stop a task behind one more element, if there is one (E4)."""
        self._execute(loop.INTERRUPT, task, 1)

    def hold(self, task: int) -> None:
        """Hold an interrupted or idle task (E4)."""
        if not self._execute(loop.HOLD, task):
            raise ValueError(f"hold of task {task} at {self.now} ns: it is in service, inside a record or halted")

    def release(self, task: int) -> None:
        """Let a held task continue (E4)."""
        if not self._execute(loop.RELEASE, task):
            raise ValueError(f"release of task {task} at {self.now} ns: it is not held")

    def scale(self, task: int, num: int, den: int) -> None:
        """Multiply the service times of a task by `num / den` (E4)."""
        if not 0 < num < 1 << 20 or not 0 < den < 1 << 20:
            raise ValueError(f"scale of task {task} by {num} / {den}: both stand between 1 and 2**20")
        self._execute(loop.SCALE, task, num, den)

    def release_late_outputs(self, task: int, until: int) -> None:
        """Write the pending outputs of the records up to `until` (L5)."""
        self._execute(loop.RELEASE_LATE_OUTPUTS, task, until)

    def wait_for_late(self, task: int) -> None:
        """Let a task process nothing until its pending outputs are written (L6)."""
        self._execute(loop.WAIT_FOR_LATE, task)

    def report_written(self, task: int) -> None:
        """Report when a task has written its released outputs (L9)."""
        self._execute(loop.REPORT_WRITTEN, task)

    def halt(self, tasks: Iterable[int]) -> None:
        """Stop tasks for good: they have failed, are cancelled or finished (P1)."""
        halted = set(tasks)
        for task in halted:
            self._execute(loop.HALT, task)
        self._drop_notices(halted)

    def _drop_notices(self, tasks: Iterable[int]) -> None:
        """Discard the pending notices of these tasks."""
        self._notices = deque(notice for notice in self._notices if notice.task not in tasks)

    def _state_now(self) -> PlaneState:
        """Return the state at the current time.  Records that tasks have served ahead of it are taken back."""
        self._execute(loop.CATCH_UP)
        return self._state

    def position(self, task: int) -> Position:
        """Return the position of a task in its streams (P2)."""
        if task not in self._places:
            self._places[task] = places(channels_in(self.layout, task)), places(channels_out(self.layout, task))
        return with_captures(self._state, self.bare_position(task), *self._places[task])

    def bare_position(self, task: int) -> Position:
        """Return the position without captures: `captured` and `overtaken` are 0 (P2)."""
        late = self._execute(loop.POSITION, task)
        inputs, outputs = self._channel_counts(task)
        return position_of(self._copied(1 + 2 * (inputs + outputs)), inputs, outputs, late)

    def counted(self, task: int) -> RecordCounts:
        """Return the records counted over all attempts (P8)."""
        served = self._execute(loop.COUNTED, task, self._started)
        inputs, outputs = self._channel_counts(task)
        records = self._copied(inputs + outputs)
        return RecordCounts(served, records[:inputs], records[inputs:])

    def _channel_counts(self, task: int) -> tuple[int, int]:
        """Return the numbers of input and output channels of a task."""
        if task not in self._channels:
            self._channels[task] = len(channels_in(self.layout, task)), len(channels_out(self.layout, task))
        return self._channels[task]

    def _copied(self, n: int) -> np.ndarray[Any, Any]:
        """Return the first n words that the previous operation has copied."""
        return np.array(self._state.words[self._copied_to : self._copied_to + n], np.int64)

    def start(self, positions: Mapping[int, Position]) -> None:
        """Start tasks at these positions (P3)."""
        validate_start_positions(self.layout, positions)
        self._drop_notices(positions)
        self._started = 1
        self._make_excess_room(excess_segments(self._state, self.layout, self.spec.segment_bytes, positions))
        start_at_positions(self._state_now(), self.spec, self.layout, positions, self._execute)

    def polled(self, task: int) -> int:
        """Return the bytes that a task has taken from its gates so far: `bytes_in` of its row."""
        return self._execute(loop.POLLED, task)

    def served(self) -> np.ndarray[Any, Any]:
        """Return the column of this name of `tasks` alone."""
        return column(self._state_now().tasks, "served")

    def sample_served(self, first: int, every: int, times: int) -> tuple[np.ndarray[Any, Any], Notice]:
        """Advance to `first`, then in steps of `every`, until a notice or `min(times, MAX_SERVED_SAMPLES)` steps (E3).

        Return one row of `served` per time reached, and the notice.
        """
        times = min(times, MAX_SERVED_SAMPLES)
        last = first + every * (times - 1)
        if self._notices:
            return self._no_samples, self._notices.popleft()
        self._require_future(first, last)
        seen = self._execute(loop.SAMPLE_SERVED, 0, first, every, times)
        rows = self._samples(seen) if seen else self._no_samples
        if seen == times:
            self.now = last
            return rows, Notice(last, NoticeKind.REACHED_TIME)
        return rows, self._first_notice(self._general("noted"))

    def _samples(self, n: int) -> np.ndarray[Any, Any]:
        """Return the rows that the first n looks have copied: records served by task."""
        begin, tasks = self._samples_at, len(self.layout.vertex)
        return np.array(self._state.words[begin : begin + n * tasks], np.int64).reshape(n, tasks)

    def in_flight(self) -> np.ndarray[Any, Any]:
        """Return int64 by task: records written to its output channels minus records that it has read.

        The sum over tasks that are connected to each other only is the number of records in flight between them.
        """
        self._execute(loop.SUM_IN_FLIGHT)
        return self._copied(len(self.layout.vertex))

    def sums(self) -> np.ndarray[Any, Any]:
        """Return a flat int64 array: `VERTEX_COLUMNS` of each vertex, then `EDGE_COLUMNS` of each edge."""
        self._execute(loop.SUM_UP)
        return np.array(self._state.words[self._sums], np.int64)

    def tasks(self, *columns: str) -> np.ndarray[Any, Any]:
        """Return a table with one row per task and these columns, or all.

        They are state, served, records_out, bytes_in (taken), bytes_out (written), buffers_in (taken), buffers_out (sent;
        local: polled), busy_ns, idle_ns, soft_ns, hard_ns (all up to now), digest.
        """
        state = self._state_now()

        def values(name: str) -> Column:
            if name in TOTALS:  # slow in large jobs
                return total(state, name)
            if name == "buffers_out":
                rows = state.partitions
                return sum_by_owner(len(state.tasks), column(rows, "task"), column(rows, name))
            return column(state.tasks, name)

        return table({name: values(name) for name in columns or TASK_COLUMNS})

    def channels(self, *columns: str) -> np.ndarray[Any, Any]:
        """Return a table with one row per channel and these columns, or all.

        They are written, sent, arrived, taken, consumed, records_in, records_out, credit, blocked, queued (elements in the
        sender's queue), received (elements in the receive queue), buffer_bytes, cap_in, cap_out, digest.
        """
        rows = self._state_now().channels
        return table({name: column(rows, name) for name in columns or CHANNEL_COLUMNS})

    def partitions(self) -> np.ndarray[Any, Any]:
        """Return a table with one row per partition, by task, then edge: task, edge, used, size, available."""
        rows, edge = self._state.partitions, np.array([e for _, e, _ in self.layout.partitions], np.int64)
        used, size = column(rows, "used"), column(rows, "pool")
        available = ((used < size) & (column(rows, "full") == 0)).astype(np.int64)
        return table({"task": column(rows, "task"), "edge": edge, "used": used, "size": size, "available": available})

    def gates(self) -> np.ndarray[Any, Any]:
        """Return a table with one row per gate, by task, then edge: task, edge, idle_floating, buffer_bytes (last announced)."""
        rows, edge = self._state.gates, np.array([e for _, e, _ in self.layout.gates], np.int64)
        idle, announced = column(rows, "idle"), column(rows, "announced_bytes")
        return table({"task": column(rows, "task"), "edge": edge, "idle_floating": idle, "buffer_bytes": announced})

    def check(self) -> None:
        """Raise AssertionError if credits, buffers, segments or bytes are not conserved."""
        state = self._state_now()
        used = self._general("fresh")
        if used > len(state.elements):
            raise AssertionError(f"{used} elements used of a pool of {len(state.elements)}, at {self.now} ns")
        check_state(state._replace(elements=state.elements[:used]), self.spec)  # the rest of the pool was never touched
