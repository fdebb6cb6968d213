"""Debloating: how fast a gate reads and how large the senders' next buffers should be (rules D1-D4)."""

from __future__ import annotations

from tests.oracle.parts import Slice

UNIT = 1 << 32
"""The fixed point of D3."""


def round_half_even(value):
    """A fixed-point number as an integer."""
    integer, rest = divmod(value, UNIT)
    return integer + (rest > UNIT // 2 or (rest == UNIT // 2 and integer % 2 == 1))


class BufferSizing:
    """The sizes of the plane's buffers."""

    def __init__(self, plane):
        self.plane = plane

    def polled(self, gate, element):
        """D2: the gate measures from here on."""
        if gate.active_since is None:
            gate.active_since = self.plane.now
        if isinstance(element, Slice):
            gate.bytes += element.length

    def pause(self, gate):
        """D2: the thread came to poll and this gate had nothing."""
        if gate.active_since is not None:
            gate.active_ns += self.plane.now - gate.active_since
            gate.active_since = None

    def run(self, gate, options):
        """The timer of D1: measure, average, announce."""
        desired = self.desired(gate, options.target_ns)
        inst = min((desired << 32) // self.in_use(gate), 2 * gate.last)
        moved = gate.last + ((inst - gate.last) * 2) // (options.samples + 1)
        gate.last = min(max(moved, options.min_bytes << 32), self.plane.spec.segment_bytes << 32)
        new = round_half_even(gate.last)
        if self.worth_telling(gate, new, options):
            gate.previous = new
            for channel in gate.channels:
                self.plane.sending.notify_sender(channel, "size", new)

    def desired(self, gate, target_ns):
        """D2: bytes that the gate reads within the target."""
        if gate.active_since is not None:
            gate.active_ns += self.plane.now - gate.active_since
            gate.active_since = self.plane.now
        if gate.active_ns > 0:
            gate.rate = (gate.bytes, gate.active_ns)
        gate.bytes = gate.active_ns = 0
        volume, active_ns = gate.rate
        return min(volume * target_ns // active_ns, 2**30)

    def in_use(self, gate):
        """D3: buffers under way to this gate."""
        total = 0
        for channel in gate.channels:
            if channel.local:
                total += len(channel.unsent)
            else:
                total += sum(isinstance(element, Slice) for element in channel.received) + max(
                    0, channel.required - channel.exclusive
                )
        return max(1, total)

    def worth_telling(self, gate, new, options):
        """D4."""
        if new == gate.previous:
            return False
        at_a_bound = new <= options.min_bytes or new >= self.plane.spec.segment_bytes
        return at_a_bound or abs(new - gate.previous) >= gate.previous * options.threshold_percent // 100
