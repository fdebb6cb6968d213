"""Captures: which in-flight bytes belong to a number, and which buffers stay pinned meanwhile (rules C1-C5)."""

from __future__ import annotations

from itertools import islice

from tests.oracle.parts import Buffer, Slice


class Captures:
    """The captures of the plane."""

    def __init__(self, plane):
        self.plane = plane

    def begin(self, task, number):
        """C1, C4: all input channels, from now until the marker of that number arrives."""
        self.pin_for(task, number)
        for channel in task.channels_in:
            channel.capture = number
            channel.capture_from = channel.consumed
            channel.cap_in = 0
            channel.pinning = True
            # what stands behind the marker is not captured
            behind = channel.mark_at if channel.mark == number else channel.arrived
            for element in channel.received:
                if isinstance(element, Slice) and element.begin < behind:
                    self.pin_slice(element)
            self.try_finish(channel)

    def try_finish(self, channel):
        """C2: the marker bounds what is captured: bytes before it whose record is not in service."""
        if channel.capture and channel.mark == channel.capture:
            channel.capture = 0
            channel.cap_in = channel.mark_at - channel.capture_from
            channel.pinning = False

    def overtake(self, channel, place):
        """C3, C4: capture and pin the data in the sender's queue before a place; returns its unsent bytes."""
        overtaken = [element for element in islice(channel.queue, place) if isinstance(element, Buffer)]
        for buffer in overtaken:
            if not buffer.pinned:
                buffer.pinned = True
                channel.pinned_buffers.append(buffer)
        channel.cap_out = sum(buffer.end - buffer.sent for buffer in overtaken)
        return channel.cap_out

    def pin_slice(self, data):
        """C4: recycled meanwhile, it gives nothing back.  Local data stays in the writer's buffers."""
        data.pinned = True
        data.channel.pinned_slices.append(data)

    def captured(self, task):
        """C5."""
        return sum(c.arrived - c.capture_from if c.capture else c.cap_in for c in task.channels_in)

    def pin_for(self, task, number):
        """C4: what is pinned for another number goes back before anything is pinned for this one."""
        if task.pinned_for != number:
            self.release(task)
            task.pinned_for = number

    def release(self, task):
        """C4: unpin everything of the task; what was recycled or sent meanwhile is given back now."""
        task.pinned_for = 0
        for channel in task.channels_in:
            channel.pinning = False
            pinned, channel.pinned_slices = channel.pinned_slices, []
            for data in pinned:
                data.pinned = False
            for data in sorted((d for d in pinned if d.recycled), key=lambda d: d.floating):  # exclusive ones first
                self.plane.receiving.give_back(data)
        for channel in task.channels_out:
            buffers, channel.pinned_buffers = channel.pinned_buffers, []
            for buffer in buffers:
                buffer.pinned = False
                self.plane.output.settle(buffer)
