"""Markers: how they enter and leave sender queues, how a gate counts them (rules M1-M5)."""

from __future__ import annotations

from sim.plane.interface import BARRIERS, FIRST_UNGROUPED_SERIES, MAX_TRACKED_CHECKPOINTS, Marker, NoticeKind, Trait
from tests.oracle.parts import Count


class Markers:
    """The markers of the plane."""

    def __init__(self, plane):
        self.plane = plane

    def forward(self, task, marker, edge):
        """M1: the marker into every sender queue; returns captured output bytes."""
        priority = bool(marker.traits & Trait.PRIORITY)
        if priority:
            self.plane.captures.pin_for(task, marker.number)
        channels = [c for c in task.channels_out if edge is None or c.partition.edge_number == edge]
        if marker.traits & Trait.ANNOUNCED:
            self.watch(task, marker, len(channels))
        captured = 0
        for channel in channels:
            self.plane.output.close(channel)
            if priority:
                captured += self.plane.captures.overtake(channel, len(channel.queue))
                self.insert(channel, marker)
            else:
                channel.queue.append(marker)
            self.plane.sending.offer(channel)
        return captured

    def watch(self, task, marker, markers):
        """S7: count the watched markers of one number together; without outputs the last one has left at once (M1)."""
        if markers > 0:
            task.watched[marker.number] = task.watched.get(marker.number, 0) + markers
        elif not task.channels_out:
            self.plane.report(NoticeKind.ANNOUNCED_SENT, task, number=marker.number)

    def insert(self, channel, marker):
        """M1: before all ordinary elements, behind the priority markers already there."""
        place = 0
        for element in channel.queue:
            if not (isinstance(element, Marker) and element.traits & Trait.PRIORITY):
                break
            place += 1
        channel.queue.insert(place, marker)

    def convert_output(self, task, number):
        """M2: an aligned barrier still in a sender queue becomes a priority marker."""
        self.plane.captures.pin_for(task, number)
        captured = 0
        for channel in task.channels_out:
            channel.cap_out = 0
            converted = False
            for place, element in enumerate(list(channel.queue)):
                if (
                    not isinstance(element, Marker)
                    or element.traits & (Trait.PRIORITY | Trait.ANNOUNCED) != Trait.ANNOUNCED
                ):
                    continue
                if element.series != BARRIERS or element.number != number:
                    continue
                captured += self.plane.captures.overtake(channel, place)
                del channel.queue[place]
                self.insert(channel, element._replace(traits=(element.traits | Trait.PRIORITY) & ~Trait.BLOCKING))
                converted = True
            if converted:
                self.plane.sending.offer(channel)
        return captured

    def prioritise(self, task, number):
        """M3: barriers of this number leave the receive queues for the priority list."""
        task.prioritised = number
        moved = False
        for channel in task.channels_in:
            if channel.local:
                continue
            for element in list(channel.received):
                if isinstance(element, Marker) and element.series == BARRIERS and element.number == number:
                    channel.received.remove(element)
                    task.priority.append((channel, element))
                    moved = True
            if not self.plane.thread.pollable(channel):
                self.plane.receiving.leave_ready(channel)
        if moved:
            self.plane.wake_if_idle_or_soft(task)

    def process(self, channel, marker):
        """M4: the thread meets a marker."""
        gate = channel.gate
        if marker.traits & Trait.BLOCKING:
            channel.held_back = True
        if marker.number <= gate.settled[marker.series]:
            if marker.traits & Trait.BLOCKING:
                self.resume_channel(channel)
            return
        completed = []
        if marker.traits & Trait.FINAL:
            gate.closed.add(channel.number)
            completed = self.close_in_counts(channel, marker)
        self.count(channel, marker)
        for count in completed:
            self.report(channel, count.series, count.number, first=False, last=True)

    def close_in_counts(self, channel, marker):
        """M4, FINAL: every other open count gains the channel; returns those it completes, oldest first."""
        gate = channel.gate
        others = [count for count in gate.counts if (count.series, count.number) != (marker.series, marker.number)]
        for count in others:
            count.channels.add(channel.number)
        completed = [count for count in others if self.complete(gate, count)]
        gate.counts = [count for count in gate.counts if count not in completed]
        return completed

    def count(self, channel, marker):
        """M4: first and last of a number are reported."""
        gate = channel.gate
        if marker.series >= FIRST_UNGROUPED_SERIES:
            self.report(channel, marker.series, marker.number, first=True, last=len(gate.closed) == len(gate.channels))
            return
        open_counts = [count for count in gate.counts if (count.series, count.number) == (marker.series, marker.number)]
        first = not open_counts
        if first:
            gate.counts.append(Count(marker.series, marker.number, set(gate.closed)))
            for oldest in gate.counts[:-MAX_TRACKED_CHECKPOINTS]:
                gate.settled[oldest.series] = oldest.number
            del gate.counts[:-MAX_TRACKED_CHECKPOINTS]
        count = gate.counts[-1] if first else open_counts[0]
        count.channels.add(channel.number)
        last = self.complete(gate, count)
        if last:
            gate.counts.remove(count)
        if first or last:
            self.report(channel, marker.series, marker.number, first=first, last=last)

    def complete(self, gate, count):
        return len(count.channels) == len(gate.channels)

    def report(self, channel, series, number, *, first, last):
        gate = channel.gate
        self.plane.report(
            NoticeKind.ARRIVED,
            gate.task,
            gate=gate.position,
            series=series,
            number=number,
            channel=channel.number,
            first=first,
            last=last,
        )

    def resume(self, task, number):
        """M5: senders that were blocked for this task may send again."""
        for channel in task.channels_in:
            if channel.held_back and channel.mark <= number:
                self.resume_channel(channel)

    def resume_channel(self, channel):
        channel.held_back = False
        self.plane.sending.notify_sender(channel, "resume")

    def settle(self, task, number, series):
        """M5: numbers up to this one are obsolete."""
        for gate in task.gates:
            gate.settled[series] = number
            gate.counts = [count for count in gate.counts if count.series != series or count.number > number]
