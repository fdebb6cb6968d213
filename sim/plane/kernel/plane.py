"""The kernel behind the seam: verbs become operations on its state, rows become tables.

One class for both readers of the kernel's text.  What may be asked when is checked here; what happens then is the kernel's.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any, Literal

import numpy as np

from sim.plane.kernel import machine_code
from sim.plane.kernel.assembly import as_objects, assemble, grown
from sim.plane.kernel.conservation import check_state
from sim.plane.kernel.restarting import excess_of, place, position_of, with_captures
from sim.plane.kernel.rows import PlaneState
from sim.plane.kernel.tables import channel_table, column, gate_table, partition_table, task_table
from sim.plane.kernel.text import names
from sim.plane.kernel.text.door import door
from sim.plane.seam.counted import Counted
from sim.plane.seam.interface import (
    ANY_NUMBER,
    BARRIERS,
    MAX_SERIES,
    MOST_LOOKS,
    OF_EDGES,
    OF_VERTICES,
    Marker,
    Notice,
    NoticeKind,
    PlaneSpec,
    Position,
    Trait,
)
from sim.plane.seam.positions import ChannelPlaces, channels_in, channels_out, places, require_closed

KINDS = tuple(sorted(NoticeKind))  # by number: cheaper than to ask the enumeration for each notice
MARKER_ROOM = 1024  # elements, or one per channel; more is made when a verb needs it


class KernelPlane:
    """The data plane as a compiled (or interpreted) kernel over rows of integers."""

    def __init__(self, spec: PlaneSpec, backend: Literal["compiled", "interpreted"] = "compiled") -> None:
        self.spec = spec
        arrays: Any
        arrays, self.layout = assemble(spec, MARKER_ROOM)
        enter = machine_code.compiled_door() if backend == "compiled" else None
        self.backend = "interpreted" if enter is None else "compiled"
        self._enter = enter or door
        sums = int(arrays.g["sums"][0])
        self._sums = slice(sums, sums + len(spec.vertices) * len(OF_VERTICES) + len(spec.edges) * len(OF_EDGES))
        self._horizon = int(arrays.g["horizon"][0])
        self._settle_in(as_objects(arrays) if enter is None else arrays)
        self._notices: deque[Notice] = deque()
        self._marker_room = max(MARKER_ROOM, len(self.layout.writer))  # a checkpoint puts a marker on every channel
        self._excess_room = 0
        self._copied_to, self._looks_at = int(arrays.g["copied"][0]), int(arrays.g["looks"][0])
        self._channels: dict[int, tuple[int, int]] = {}  # read and written by each task, as far as they were asked for
        self._partitions: dict[tuple[int, int | None], tuple[int, int]] = {}
        self._places: dict[int, tuple[ChannelPlaces, ChannelPlaces]] = {}  # of them
        self._unseen = np.zeros((0, len(self.layout.vertex)), np.int64)  # no look
        self._started = 0  # 1: some task has had several attempts
        self.now = spec.begin_ns
        self._do(names.START)

    def _settle_in(self, state: PlaneState) -> None:
        """From now on operations act on this state."""
        self._state = state
        self._handle: Any = state
        if self.backend == "compiled":
            self._addresses = machine_code.addresses(state)
            self._handle = self._addresses.ctypes.data

    def _do(self, op: int, task: int = 0, a: int = 0, b: int = 0, c: int = 0, d: int = 0) -> int:
        return self._enter(self._handle, op, task, a, b, c, d)

    def _collect(self, n: int) -> None:
        """Move n pending notices out of the kernel."""
        words: Any = self._state.notes[: n * names.NOTE_WORDS]
        numbers = words.tolist() if self.backend == "compiled" else words
        for i in range(0, len(numbers), names.NOTE_WORDS):
            time, kind, task, gate, series, number, channel, first, last = numbers[i : i + names.NOTE_WORDS]
            self._notices.append(Notice(time, KINDS[kind], task, gate, series, number, channel, first == 1, last == 1))

    def advance(self, until: int) -> Notice:
        if self._notices:
            return self._notices.popleft()
        if until == self.now:  # several control events of an instant
            return Notice(until, NoticeKind.QUIET)
        self._require_to_come(until, until)
        noted = self._do(names.ADVANCE, 0, until)
        if noted == 0:
            self.now = until
            return Notice(until, NoticeKind.QUIET)
        return self._first_notice(noted)

    def _require_to_come(self, first: int, last: int) -> None:
        if not self.now <= first <= last <= self._horizon:
            raise ValueError(f"advance to {last} ns: now is {self.now}, the last possible time of this job {self._horizon}")

    def _first_notice(self, noted: int) -> Notice:
        """So many notices are pending: the first of them."""
        self._collect(noted)
        notice = self._notices.popleft()
        self.now = notice.time
        return notice

    def forward(self, task: int, marker: Marker, edge: int | None = None) -> int:
        if marker.number <= 0 or not 0 <= marker.series < MAX_SERIES:
            raise ValueError(f"{marker}: a number is positive, a series below {MAX_SERIES}")
        only, channels = self._written_by(task, edge)
        self._make_room(1 + channels)
        captured = self._do(names.FORWARD, task, only, marker.series, marker.number, int(marker.traits))
        if not channels and Trait.ANNOUNCED in marker.traits:
            self._collect(self._general("noted"))
        return captured

    def _written_by(self, task: int, edge: int | None) -> tuple[int, int]:
        """The partition of a task on an edge (None: -1, all of them), and how many channels all of them have."""
        if (task, edge) not in self._partitions:
            of_edge = {self.layout.partitions[p][1]: p for p in self.layout.task_partitions[task]}
            if edge is not None and edge not in of_edge:
                raise ValueError(f"task {task} does not write edge {edge}")
            self._partitions[task, edge] = -1 if edge is None else of_edge[edge], self._ends(task)[1]
        return self._partitions[task, edge]

    def _general(self, name: str) -> int:
        """One field of the plane as a whole."""
        g: Any = self._state.g
        return int(g[name][0]) if self.backend == "compiled" else int(getattr(g, name))

    def _make_room(self, markers: int) -> None:
        """Before a verb adds markers: the pool grows by doubling."""
        needed = self._general("markers") + markers
        if needed > self._marker_room:
            extra = max(needed, 2 * self._marker_room) - self._marker_room
            self._settle_in(grown(self._state, extra))
            self._marker_room += extra

    def _make_excess_room(self, segments: int) -> None:
        """Before recovered output takes more segments than the pools have (P6)."""
        if segments > self._excess_room:
            self._settle_in(grown(self._state, segments - self._excess_room))
            self._excess_room = segments

    def convert_output(self, task: int, number: int) -> int:
        return self._do(names.CONVERT, task, number)

    def prioritise(self, task: int, number: int) -> None:
        self._do(names.PRIORITISE, task, number)

    def resume(self, task: int, number: int = ANY_NUMBER) -> None:
        self._do(names.RESUME_ALL, task, number)

    def settle(self, task: int, number: int, series: int = BARRIERS) -> None:
        self._do(names.SETTLE, task, series, number)

    def capture(self, task: int, number: int) -> None:
        if number <= 0:
            raise ValueError(f"capture of number {number}: numbers are positive")
        self._do(names.CAPTURE, task, number)

    def captured(self, task: int) -> tuple[int, int]:
        return self._do(names.CAPTURED_IN, task), self._do(names.CAPTURED_OUT, task)

    def release_capture(self, task: int) -> None:
        self._do(names.RELEASE_CAPTURE, task)

    def interrupt(self, task: int) -> None:
        self._do(names.INTERRUPT, task)

    def interrupt_behind(self, task: int) -> None:
        self._do(names.INTERRUPT, task, 1)

    def hold(self, task: int) -> None:
        if not self._do(names.HOLD, task):
            raise ValueError(f"hold of task {task} at {self.now} ns: it is in service, inside a record or halted")

    def release(self, task: int) -> None:
        if not self._do(names.RELEASE, task):
            raise ValueError(f"release of task {task} at {self.now} ns: it is not held")

    def scale(self, task: int, num: int, den: int) -> None:
        if not 0 < num < 1 << 20 or not 0 < den < 1 << 20:
            raise ValueError(f"scale of task {task} by {num} / {den}: both stand between 1 and 2**20")
        self._do(names.SCALE, task, num, den)

    def let_go(self, task: int, until: int) -> None:
        self._do(names.LET_GO, task, until)

    def wait_for_late(self, task: int) -> None:
        self._do(names.WAIT_FOR_LATE, task)

    def report_written(self, task: int) -> None:
        self._do(names.REPORT_WRITTEN, task)

    def pause(self, task: int, on: bool) -> None:
        self._do(names.PAUSE, task, int(on))

    def halt(self, tasks: Iterable[int]) -> None:
        halted = set(tasks)
        for task in halted:
            self._do(names.HALT, task)
        self._drop_notices(halted)

    def _drop_notices(self, tasks: Iterable[int]) -> None:
        self._notices = deque(notice for notice in self._notices if notice.task not in tasks)

    def _present(self) -> PlaneState:
        """The state, no task ahead of this moment."""
        self._do(names.CATCH_UP)
        return self._state

    def position(self, task: int) -> Position:
        if task not in self._places:
            self._places[task] = places(channels_in(self.layout, task)), places(channels_out(self.layout, task))
        return with_captures(self._state, self._stands(task), *self._places[task])

    def bare_position(self, task: int) -> Position:
        return self._stands(task)

    def _stands(self, task: int) -> Position:
        late = self._do(names.POSITION, task)
        inputs, outputs = self._ends(task)
        return position_of(self._copied(1 + 2 * (inputs + outputs)), inputs, outputs, late)

    def counted(self, task: int) -> Counted:
        served = self._do(names.COUNTED, task, self._started)
        inputs, outputs = self._ends(task)
        records = self._copied(inputs + outputs)
        return Counted(served, records[:inputs], records[inputs:])

    def _ends(self, task: int) -> tuple[int, int]:
        """How many channels it reads, and how many it writes."""
        if task not in self._channels:
            self._channels[task] = len(channels_in(self.layout, task)), len(channels_out(self.layout, task))
        return self._channels[task]

    def _copied(self, n: int) -> np.ndarray[Any, Any]:
        """The first n words of what the operation before has copied."""
        return np.array(self._state.words[self._copied_to : self._copied_to + n], np.int64)

    def start(self, positions: Mapping[int, Position]) -> None:
        require_closed(self.layout, positions)
        self._drop_notices(positions)
        self._started = 1
        self._make_excess_room(excess_of(self._state, self.layout, self.spec.segment_bytes, positions))
        place(self._present(), self.spec, self.layout, positions, self._do)

    def polled(self, task: int) -> int:
        return self._do(names.POLLED, task)

    def served(self) -> np.ndarray[Any, Any]:
        return column(self._present().tasks, "served")

    def look(self, first: int, every: int, times: int) -> tuple[np.ndarray[Any, Any], Notice]:
        times = min(times, MOST_LOOKS)
        last = first + every * (times - 1)
        if self._notices:
            return self._unseen, self._notices.popleft()
        self._require_to_come(first, last)
        seen = self._do(names.LOOK, 0, first, every, times)
        rows = self._looks(seen) if seen else self._unseen
        if seen == times:
            self.now = last
            return rows, Notice(last, NoticeKind.QUIET)
        return rows, self._first_notice(self._general("noted"))

    def _looks(self, n: int) -> np.ndarray[Any, Any]:
        """The first n of them."""
        begin, tasks = self._looks_at, len(self.layout.vertex)
        return np.array(self._state.words[begin : begin + n * tasks], np.int64).reshape(n, tasks)

    def in_flight(self) -> np.ndarray[Any, Any]:
        self._do(names.FLYING)
        return self._copied(len(self.layout.vertex))

    def sums(self) -> np.ndarray[Any, Any]:
        self._do(names.SUM_UP, 0, self.now)
        return np.array(self._state.words[self._sums], np.int64)

    def tasks(self, *columns: str) -> np.ndarray[Any, Any]:
        return task_table(self._present(), self.now, columns)

    def channels(self, *columns: str) -> np.ndarray[Any, Any]:
        return channel_table(self._present(), columns)

    def partitions(self) -> np.ndarray[Any, Any]:
        return partition_table(self._state, self.layout)

    def gates(self) -> np.ndarray[Any, Any]:
        return gate_table(self._state, self.layout)

    def check(self) -> None:
        state = self._present()
        used = self._general("fresh")
        if used > len(state.elements):
            raise AssertionError(f"{used} elements used of a pool of {len(state.elements)}, at {self.now} ns")
        check_state(state._replace(elements=state.elements[:used]), self.spec)  # the rest of the pool was never touched
