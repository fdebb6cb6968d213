"""The parts of the SimPy baseline: segments of an output, floating buffers of a gate, channels.

Written independently of ``sim.plane``, after the same Flink classes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import simpy

from sim.plane.interface import PlaneSpec

if TYPE_CHECKING:
    from benchmarks.simpy_idiomatic import Task

__all__ = ["Barrier", "Buffer", "Channel", "Gate", "Output", "Process"]

Process = Generator[simpy.Event, Any, None]


@dataclass
class Barrier:
    number: int
    overtakes: bool


@dataclass
class Buffer:
    """A segment with data of one channel, up to the offset `end`."""

    end: int
    full_at: int
    closed: bool = False


class Output:
    """The segments of a task and the channels it writes to (LocalBufferPool)."""

    def __init__(self, spec: PlaneSpec, channels: int) -> None:
        # below zero: overdraft; a sink always has room
        self.free = channels * spec.exclusive + spec.floating if channels else 1
        self.overdraft = spec.overdraft
        self.max_per_channel = spec.max_per_channel
        self.crowded = 0  # channels at their limit
        self.channels: list[Channel] = []

    @property
    def available(self) -> bool:
        return self.free > 0 and not self.crowded

    @property
    def exhausted(self) -> bool:
        return self.free + self.overdraft <= 0

    def take(self, channel: Channel) -> None:
        self.free -= 1
        channel.segments += 1
        if channel.segments == self.max_per_channel:
            self.crowded += 1

    def give_back(self, channel: Channel) -> None:
        if channel.segments == self.max_per_channel:
            self.crowded -= 1
        channel.segments -= 1
        self.free += 1
        writer = channel.writer
        if writer.waiting is not None and (writer.inside_record or self.available):
            writer.wake()


class Gate:
    """The floating buffers of a task's input and the channels that wait for one."""

    def __init__(self, floating: int) -> None:
        self.idle = floating
        self.listeners: deque[Channel] = deque()


class Channel:
    """One writer to one reader: the sender's queue, the wire, the receive queue and their credits."""

    def __init__(
        self,
        env: simpy.Environment,
        spec: PlaneSpec,
        writer: Task,
        reader: Task,
        sizes: tuple[Iterator[int], Iterator[int]],
    ) -> None:
        self.env, self.spec, self.writer, self.reader, self.gate = env, spec, writer, reader, reader.gate
        self.sizes_out, self.sizes_in = sizes
        self.latency_ns = spec.latency_ns
        # the sender's end
        self.queue: deque[Buffer | Barrier] = deque()
        self.open: Buffer | None = None
        self.buffers = 0  # in the queue
        self.segments = 0  # in use
        self.written = self.sent = 0
        self.flush_requested = self.blocked = False
        self.credit = spec.exclusive
        # the receiver's end
        # (offset behind the last byte, in a floating buffer)
        self.received: deque[tuple[int, bool] | Barrier] = deque()
        self.exclusive = self.required = self.free_exclusive = spec.exclusive
        self.free_floating = 0
        self.waiting = self.held_back = False
        self.arrived = self.taken = self.consumed = 0
        self.next_end = next(self.sizes_in)  # of the record after `consumed`
        # capture
        self.mark = self.mark_at = 0  # the last barrier that arrived, and where in the stream
        self.capturing = False
        self.captured_from = self.captured = 0
        self.pinned = 0  # buffers at the front of `received`
        self.owed: list[bool] = []  # recycled while pinned: floating or not

    # ------------------------------------------------------------------------------------------------ writing

    def write(self, output: Output) -> Process:
        """Append the next record; waits inside it when there is no segment left."""
        rest = next(self.sizes_out)
        while rest:
            if self.open is None:
                while output.exhausted:
                    self.writer.inside_record = True
                    yield self.writer.wait()
                    self.writer.inside_record = False
                output.take(self)
                self.open = Buffer(self.written, self.written + self.spec.segment_bytes)
                self.queue.append(self.open)
                self.buffers += 1
            n = min(rest, self.open.full_at - self.written)
            rest -= n
            self.written += n
            self.open.end = self.written
            if self.written == self.open.full_at:
                self.open.closed = True
                self.open = None
                self.send()

    def flush(self) -> None:
        if self.written > self.sent:
            self.flush_requested = True
            self.send()

    def forward(self, barrier: Barrier) -> int:
        """Put a barrier into the sender's queue; returns the bytes it overtakes."""
        if self.open is not None:
            self.open.closed = True
            if self.sent == self.written:
                self.queue.remove(self.open)
                self.buffers -= 1
                self.writer.output.give_back(self)
            self.open = None
        if barrier.overtakes:
            self.queue.appendleft(barrier)
        else:
            self.queue.append(barrier)
        overtaken = self.written - self.sent if barrier.overtakes else 0
        self.send()
        return overtaken

    # ------------------------------------------------------------------------------------------------ sending

    def send(self) -> None:
        """Whatever may leave the sender's queue leaves it."""
        while self.queue and not self.blocked:
            head = self.queue[0]
            if isinstance(head, Barrier):
                self.queue.popleft()
                self.blocked = not head.overtakes
                self.flush_requested = self.flush_requested and bool(self.queue)
                self.transmit(head)
            elif self.credit and head.end > self.sent and (head.closed or self.flush_requested):
                self.credit -= 1
                self.sent = head.end
                if head.closed:
                    self.queue.popleft()
                    self.buffers -= 1
                    self.writer.output.give_back(self)
                if not head.closed or not self.queue:
                    self.flush_requested = False
                self.transmit(head.end)
            else:
                return

    def transmit(self, element: int | Barrier) -> None:
        """Data (its end offset) or a barrier takes `latency_ns`; with it travels the backlog left behind."""
        backlog = 0
        if not self.blocked:
            backlog = self.buffers - (self.open is not None and not self.flush_requested)
        if self.latency_ns:
            wire = self.env.timeout(self.latency_ns, (element, backlog))
            wire.callbacks.append(lambda event: self.arrive(*event.value))
        else:
            self.arrive(element, backlog)

    def notify_sender(self, credit: int = 0, resume: bool = False) -> None:
        if self.latency_ns:
            wire = self.env.timeout(self.latency_ns, (credit, resume))
            wire.callbacks.append(lambda event: self.be_told(*event.value))
        else:
            self.be_told(credit, resume)

    def be_told(self, credit: int, resume: bool) -> None:
        self.credit += credit
        if resume:
            self.blocked = False
        self.send()

    # ------------------------------------------------------------------------------------------------ receiving

    def arrive(self, element: int | Barrier, backlog: int) -> None:
        if isinstance(element, Barrier):
            self.mark, self.mark_at = element.number, self.arrived
            if self.capturing:
                self.capturing = False
                self.captured = self.arrived - self.captured_from
            if element.overtakes:
                self.reader.overtaking.append((self, element))
                self.reader.wake()
            else:
                self.receive(element)
        else:
            floating = self.free_floating > 0
            if floating:
                self.free_floating -= 1
            else:
                self.free_exclusive -= 1
            self.arrived = element
            self.pinned += self.capturing
            self.receive((element, floating))
        self.demand(backlog)

    def receive(self, element: tuple[int, bool] | Barrier) -> None:
        self.received.append(element)
        if len(self.received) == 1:
            self.reader.ready.put(self)

    def demand(self, backlog: int) -> None:
        """As many buffers as the sender has data, out of the gate's floating ones (RemoteInputChannel.onSenderBacklog)."""
        self.required = backlog + self.exclusive
        gained = 0
        while self.free_exclusive + self.free_floating < self.required and not self.waiting:
            if self.gate.idle:
                self.gate.idle -= 1
                self.free_floating += 1
                gained += 1
            else:
                self.gate.listeners.append(self)
                self.waiting = True
        if gained:
            self.notify_sender(credit=gained)

    def recycle(self, floating: bool) -> None:
        """The reader is done with a buffer (BufferManager.recycle)."""
        if not floating:
            self.free_exclusive += 1
            if self.free_exclusive + self.free_floating <= self.required or not self.free_floating:
                self.notify_sender(credit=1)
                return
            self.free_floating -= 1
        listeners = self.gate.listeners
        while listeners:
            channel = listeners.popleft()
            missing = channel.required - channel.free_exclusive - channel.free_floating
            channel.waiting = missing > 1
            if missing > 0:
                channel.free_floating += 1
                channel.notify_sender(credit=1)
                if channel.waiting:
                    listeners.append(channel)
                return
        self.gate.idle += 1

    # ------------------------------------------------------------------------------------------------ captures

    def capture(self, number: int) -> None:
        """From the first record not in service to the barrier, wherever that is."""
        self.capturing = self.mark != number
        self.captured_from = self.consumed
        self.captured = 0 if self.capturing else self.mark_at - self.consumed
        behind = self.arrived if self.capturing else self.mark_at
        self.pinned = sum(1 for element in self.received if not isinstance(element, Barrier) and element[0] <= behind)

    def release_capture(self) -> None:
        self.pinned = 0
        owed, self.owed = sorted(self.owed), []  # exclusive ones first
        for floating in owed:
            self.recycle(floating)
