"""Output: the pool of segments, writing records into buffers, flushing (rules O1-O8)."""

from __future__ import annotations

from sim.model.randomness import draw
from sim.plane.interface import Ship, ThreadState
from tests.oracle.parts import Buffer


class RecordWriter:
    """The record writer of all tasks: routes, buffers and their segments."""

    def __init__(self, plane):
        self.plane = plane

    def plan(self, task, k):
        """O5: the writes that record k leaves behind, partition by partition."""
        for partition in task.partitions:
            num, den = partition.edge.fan_out
            for _ in range((k + 1) * num // den - k * num // den):
                task.emission.append(self.route(partition, partition.copies))
                partition.copies += 1

    def route(self, partition, m):
        """O5: the channels of the m-th copy ever on a partition."""
        edge, channels = partition.edge, partition.channels
        p = len(channels)
        if self.plane.spec.compares(edge.ship):
            return channels  # until the copy is begun
        match edge.ship:
            case Ship.HASH:
                u = draw(partition.routes, m)
                return [channels[edge.weights[(u * len(edge.weights)) >> 32] if edge.weights else (u * p) >> 32]]
            case Ship.REBALANCE:
                return [channels[(((draw(partition.start, 0) * p) >> 32) + m) % p]]
            case Ship.RESCALE:
                return [channels[m % p]]
            case Ship.BROADCAST:
                return channels
            case _:  # forward: its only channel; global: channel 0
                return [channels[0]]

    def least_loaded(self, partition):
        """O8."""
        p, first = len(partition.channels), partition.turn
        places = [(first + i) % p for i in range(min(self.plane.spec.max_traverse, p))]
        loads = [
            (channel.count, channel.written - channel.sent) for channel in map(partition.channels.__getitem__, places)
        ]
        place = next(
            (at for at, load in zip(places, loads, strict=True) if load[0] == 0), places[loads.index(min(loads))]
        )
        partition.turn = (place + 1) % p
        return partition.channels[place]

    def emit(self, task):
        """Write what is planned; False: a segment was refused and the task stays HARD inside the record."""
        while task.emission:
            channels = task.emission[0]
            if task.rest == 0:
                if self.plane.spec.compares(channels[0].partition.edge.ship):
                    task.emission[0] = channels = [self.least_loaded(channels[0].partition)]
                task.rest = channels[0].size(channels[0].records_out)
            if not self.write(task, channels):
                return False
            task.emission.popleft()
            for channel in channels:
                channel.records_out += 1
                channel.ever_written += 1
                task.records_out += 1
                if self.plane.identities and task.writing is not None:
                    channel.history.append(task.writing)
        if self.plane.spec.buffer_timeout_ns == 0:  # O6
            self.flush(task)
        return True

    def write(self, task, channels):
        """O4: append the rest of the record to the buffers of one channel, or of all channels of a broadcast."""
        spec, partition = self.plane.spec, channels[0].partition
        while task.rest > 0:
            if channels[0].open is None:
                if not partition.grants:  # O3
                    return False
                self.open(channels)
            buffers = [buffer for channel in channels if (buffer := channel.open) is not None]
            fill, capacity = buffers[0].fill, buffers[0].capacity
            shrunk = spec.stretching and capacity < spec.segment_bytes
            if task.rest > capacity - fill and shrunk and not partition.available:
                capacity = min(spec.segment_bytes, fill + task.rest)
            n = min(task.rest, capacity - fill)
            for channel, buffer in zip(channels, buffers, strict=True):
                buffer.capacity = capacity
                buffer.end += n
                channel.written += n
                if buffer.fill == capacity:
                    buffer.closed = True
                    self.plane.sending.offer(channel)
            task.rest -= n
        return True

    def open(self, channels):
        """O1: a segment is taken when a buffer is opened, one for all channels of a broadcast."""
        channels[0].partition.used += 1
        capacity = min(channel.buffer_bytes for channel in channels)
        for channel in channels:
            channel.count += 1
            channel.queue.append(Buffer(channel, channel.written, channel.written, channel.written, capacity))

    def close(self, channel):
        """M1: nothing is appended to the open buffer any more; O7 if all of it is sent already."""
        buffer = channel.open
        if buffer is None:
            return
        buffer.closed = True
        if buffer.sent == buffer.end:
            channel.queue.remove(buffer)
            channel.flush = channel.flush and bool(channel.queue)
            self.settle(buffer)

    def flush(self, task):
        """O6: all buffers in the sender queues of the task may leave, closed or not."""
        for channel in task.channels_out:
            if any(buffer.sent < buffer.end for buffer in channel.unsent):
                channel.flush = True
                self.plane.sending.offer(channel)

    def settle(self, buffer):
        """O7: give the segment back once the buffer is needed no more (a capture needs it, C4)."""
        if buffer.done and not buffer.pinned:
            self.give_back(buffer.channel)

    def give_back(self, channel):
        """O7."""
        channel.count -= 1
        if channel.partition.shared:
            channel.partition.count_shared()
        else:
            channel.partition.used -= 1
        writer = channel.writer
        if writer.emission or (writer.state == ThreadState.SOFT and writer.output_available):
            self.plane.wake(writer)
