"""What the hand-tuned SimPy model keeps per channel and per task; who changes it is in ``simpy_lean``."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

import simpy

from benchmarks.simpy_parts import Barrier

__all__ = ["ASLEEP", "BUSY", "HARD", "IDLE", "SOFT", "Channel", "Task"]

BUSY, IDLE, SOFT, HARD, ASLEEP = range(5)


class Channel:
    __slots__ = (
        "arrived",
        "backlog",
        "barrier",
        "barrier_at",
        "blocked",
        "captured",
        "captured_from",
        "capturing",
        "consumed",
        "count",
        "credit",
        "ex_free",
        "fl_free",
        "flush",
        "full_at",
        "held_back",
        "next_end",
        "owed",
        "pinned",
        "queue",
        "reader",
        "received",
        "required",
        "sent",
        "sizes_in",
        "sizes_out",
        "taken",
        "waiting",
        "writer",
        "written",
    )

    def __init__(self, writer: Task, reader: Task, exclusive: int, sizes: tuple[Iterator[int], Iterator[int]]) -> None:
        self.writer, self.reader = writer, reader
        self.sizes_out, self.sizes_in = sizes
        self.queue: deque[int | Barrier] = deque()
        self.backlog = self.count = self.full_at = self.written = self.sent = 0  # backlog: closed buffers in the queue
        self.flush = self.blocked = False
        self.credit = self.ex_free = self.required = exclusive
        self.received: deque[int | Barrier] = deque()
        self.fl_free = self.arrived = self.taken = self.consumed = self.pinned = 0
        self.waiting = self.held_back = self.capturing = False
        self.barrier = self.barrier_at = self.captured = self.captured_from = 0
        self.owed: list[bool] = []
        self.next_end = next(self.sizes_in)


class Task:
    __slots__ = (
        "barriers",
        "channels",
        "crowded",
        "event",
        "first",
        "free",
        "hops",
        "idle",
        "inputs",
        "listeners",
        "number",
        "overtaking",
        "ready",
        "requested",
        "served",
        "why",
    )

    def __init__(self, number: int, floating: int, segments: int) -> None:
        self.number, self.free, self.idle = number, segments, floating
        self.crowded = self.hops = self.served = 0
        self.inputs: list[Channel] = []
        self.channels: list[Channel] = []
        self.ready: deque[Channel] = deque()
        self.listeners: deque[Channel] = deque()
        self.overtaking: deque[tuple[Channel, Barrier]] = deque()
        self.event: simpy.Event | None = None
        self.why = BUSY
        self.requested: Barrier | None = None
        self.barriers: dict[int, int] = {}
        self.first = (0, 0)
