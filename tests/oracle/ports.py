"""What the rules of one group may ask of the plane and of the other groups; each verb names its rule.

The groups know this page and the parts.  The plane alone knows the groups: it makes them and is this page's `Plane`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

from sim.model.randomness import Stream
from sim.plane.interface import Marker, NoticeKind, ThreadState
from sim.plane.spec import Layout, PlaneSpec, VertexSpec
from tests.oracle.parts import Buffer, Channel, Event, Gate, Identity, Partition, Slice, Task


class OutputPort(Protocol):
    """Writing, closing and giving back buffers."""

    def close(self, channel: Channel) -> None: ...  # M1, O7
    def emit(self, task: Task) -> bool: ...
    def plan(self, task: Task, k: int) -> None: ...  # O5
    def settle(self, buffer: Buffer) -> None: ...  # O7, C4


class SendingPort(Protocol):
    """The sender's queue and messages to it."""

    def offer(self, channel: Channel) -> None: ...  # S1
    def sendable(self, channel: Channel) -> bool: ...  # S1
    def take_head(self, channel: Channel) -> Slice | Marker: ...  # S2, T9
    def tell_sender(self, channel: Channel, kind: str, n: int = 0) -> None: ...  # S6


class ReceivingPort(Protocol):
    """Arrival, recycling and the ready lists."""

    def arrive(self, channel: Channel, element: Slice | Marker, backlog: int) -> None: ...
    def give_back(self, data: Slice) -> None: ...  # R3
    def leave_ready(self, channel: Channel) -> None: ...  # R4, M3
    def make_ready(self, channel: Channel) -> None: ...  # R4
    def mark(self, channel: Channel, marker: Marker) -> None: ...  # R5, C2
    def note(self, channel: Channel, marker: Marker) -> bool: ...  # R5
    def recycle(self, data: Slice) -> None: ...  # O7, R3, C4


class ThreadPort(Protocol):
    """The task thread: its state, its one alarm, its outputs."""

    def drop_alarm(self, task: Task) -> None: ...
    def enter(self, task: Task, state: ThreadState) -> None: ...  # T12
    def pollable(self, channel: Channel) -> bool: ...  # R4
    def set_alarm(self, task: Task, time: int, kind: str) -> None: ...  # E1
    def write_outputs(self, task: Task, k: int, record: Identity | None) -> bool: ...  # O5, T2


class MarkersPort(Protocol):
    """Markers as they are processed."""

    def process(self, channel: Channel, marker: Marker) -> None: ...  # M4


class CapturesPort(Protocol):
    """In-flight data as it is captured and pinned."""

    def overtake(self, channel: Channel, place: int) -> int: ...  # C3, C4
    def pin_for(self, task: Task, number: int) -> None: ...  # C4
    def pin_slice(self, data: Slice) -> None: ...  # C4
    def try_finish(self, channel: Channel) -> None: ...  # C2


class BufferSizingPort(Protocol):
    """The measurements of gates, as receivers report them (D2)."""

    def pause(self, gate: Gate) -> None: ...  # D2
    def polled(self, gate: Gate, element: Slice | Marker) -> None: ...  # D2


class RestartsPort(Protocol):
    """Tasks that start anew."""

    def finish(self, task: Task) -> bool: ...  # P7
    def open_at_once(self, task: Task) -> None: ...  # P9
    def open_gate(self, gate: Gate) -> bool: ...  # P7
    def open_gates(self, task: Task) -> bool: ...  # P7, T9


class LatePort(Protocol):
    """Outputs that wait."""

    def add(self, task: Task) -> None: ...  # L1
    def be_late_again(self, task: Task, late: int) -> None: ...  # L5
    def end_firing(self, task: Task) -> None: ...  # L7
    def expect(self, task: Task) -> None: ...  # L4
    def wait(self, task: Task) -> None: ...  # L6
    def write(self, task: Task) -> bool: ...  # L3


class Plane(Protocol):
    """Time, work and events (E), what there is, and the other groups."""

    now: int
    reports: int  # notices ever reported (T10)
    spec: PlaneSpec
    layout: Layout
    identities: bool  # records carry (source task, ordinal)
    all_tasks: list[Task]
    all_partitions: list[Partition]
    all_gates: list[Gate]
    all_channels: list[Channel]
    rank_reverse: int  # E1

    @property
    def output(self) -> OutputPort: ...
    @property
    def sending(self) -> SendingPort: ...
    @property
    def receiving(self) -> ReceivingPort: ...
    @property
    def thread(self) -> ThreadPort: ...
    @property
    def markers(self) -> MarkersPort: ...
    @property
    def captures(self) -> CapturesPort: ...
    @property
    def debloat(self) -> BufferSizingPort: ...
    @property
    def restarts(self) -> RestartsPort: ...
    @property
    def late(self) -> LatePort: ...

    def append_work(self, item: Channel | Task) -> None: ...  # E2
    def wake(self, task: Task) -> None: ...
    def wake_if_idle_or_soft(self, task: Task) -> None: ...
    def at(self, time: int, rank: int, kind: str, payload: object, order: int | None = None) -> Event: ...  # E1
    def drop(self, event: Event) -> None: ...
    def report(self, kind: NoticeKind, task: Task, **fields: Any) -> None: ...
    def drop_notices(self, tasks: set[int]) -> None: ...  # P1, P3
    def forget(self, tasks: Iterable[Task]) -> None: ...  # P3
    def messages(self, kind: str) -> list[tuple[Channel, object, int]]: ...
    def rank_line(self, host: int) -> int: ...  # E1
    def stream(self, *names: str | int) -> Stream: ...
    def new_task(self, number: int, vertex: VertexSpec, subtask: int) -> Task: ...
    def new_partition(self, task: Task, edge: int, channels: int) -> Partition: ...
    def new_gate(self, number: int, task: Task, position: int, edge: int) -> Gate: ...
    def new_channel(
        self, number: int, edge: int, writer: Task, reader: Task, partition: Partition, gate: Gate, *, local: bool
    ) -> Channel: ...
