"""Receiving: buffers and credits of a gate, receive queues, who is ready (rules R1-R5)."""

from __future__ import annotations

from sim.plane.interface import BARRIERS, NoticeKind, ThreadState, Trait
from tests.oracle.parts import Slice, fold


class Receiving:
    """The receivers' sides of all channels."""

    def __init__(self, plane):
        self.plane = plane

    def arrive(self, channel, element, backlog):
        """An element reaches a remote channel."""
        if isinstance(element, Slice):
            self.store(channel, element)
        elif not self.note(channel, element):
            self.announce(channel, element)
            channel.received.append(element)
            self.make_ready(channel)
        self.demand(channel, backlog)

    def store(self, channel, data):
        """R1, R4: data takes a free buffer, a floating one first."""
        data.floating = channel.fl_free > 0
        if data.floating:
            channel.fl_free -= 1
        else:
            channel.ex_free -= 1
        channel.arrived = data.end
        if self.plane.spec.digests:
            channel.digest = fold(channel.digest, self.plane.now, data.end, data.length)
        if channel.pinning:
            self.plane.captures.pin_slice(data)
        channel.received.append(data)
        self.make_ready(channel)

    def demand(self, channel, backlog):
        """R2: ask for as many buffers as the sender has data; what was gained leaves in one message."""
        channel.required = backlog + channel.exclusive
        while channel.free < channel.required and not channel.waiting:
            if channel.gate.idle_floating > 0:
                channel.gate.idle_floating -= 1
                channel.fl_free += 1
                channel.unannounced += 1
            else:
                channel.gate.listeners.append(channel)
                channel.waiting = True
        if channel.unannounced > 0:
            gained, channel.unannounced = channel.unannounced, 0
            self.plane.sending.notify_sender(channel, "credit", gained)

    def recycle(self, data):
        """The reader is done with a buffer: O7 on a local channel, else R3; pinned ones wait for the release (C4)."""
        if data.loose:  # P6
            return
        data.recycled = True
        if data.buffer is not None:
            data.buffer.slices -= 1
            self.plane.output.settle(data.buffer)
        elif not data.pinned:
            self.give_back(data)

    def give_back(self, data):
        """R3."""
        channel = data.channel
        if data.floating:
            self.back_to_gate(channel.gate)
            return
        channel.ex_free += 1
        if channel.free > channel.required and channel.fl_free > 0:
            channel.fl_free -= 1
            self.back_to_gate(channel.gate)
        else:
            self.plane.sending.notify_sender(channel, "credit", 1)

    def back_to_gate(self, gate):
        """R3: the first listener that still needs it gets the floating buffer."""
        while gate.listeners:
            listener = gate.listeners.popleft()
            listener.waiting = False
            if listener.free >= listener.required:
                continue
            listener.fl_free += 1
            self.plane.sending.notify_sender(listener, "credit", 1)
            if listener.free < listener.required:
                gate.listeners.append(listener)
                listener.waiting = True
            return
        gate.idle_floating += 1

    def make_ready(self, channel):
        """R4: stand once in the gate's list, the gate once in the task's."""
        gate, reader = channel.gate, channel.reader
        if channel in gate.ready:
            return
        gate.ready.append(channel)
        if gate not in reader.ready_gates:
            reader.ready_gates.append(gate)
        if reader.state == ThreadState.IDLE:
            self.plane.wake(reader)

    def leave_ready(self, channel):
        """R4, M3: nothing is left to poll."""
        gate = channel.gate
        if channel in gate.ready:
            gate.ready.remove(channel)
            if not gate.ready:
                gate.task.ready_gates.remove(gate)

    def note(self, channel, marker):
        """R5: remember where the barrier stands; True: it joined the priority list."""
        self.mark(channel, marker)
        reader = channel.reader
        if not marker.traits & Trait.PRIORITY and not (
            marker.series == BARRIERS and marker.number == reader.prioritised
        ):
            return False
        reader.priority.append((channel, marker))
        if reader.state in (ThreadState.IDLE, ThreadState.SOFT):
            self.plane.wake(reader)
        return True

    def mark(self, channel, marker):
        """R5: the position of the barrier in the byte stream; it may end a capture (C2)."""
        if marker.series == BARRIERS and marker.number >= channel.mark:
            channel.mark = marker.number
            channel.mark_at = channel.arrived
            self.plane.captures.try_finish(channel)

    def announce(self, channel, marker):
        """R5: the first sight of an announced number in the receive queues of a gate."""
        if marker.traits & Trait.ANNOUNCED and marker.number > channel.gate.announced:
            channel.gate.announced = marker.number
            self.plane.report(NoticeKind.ANNOUNCED, channel.reader, gate=channel.gate.position, number=marker.number)
