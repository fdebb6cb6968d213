"""Failing and restoring: halted threads, positions, tasks that start anew at a position (rules P1-P7)."""

from __future__ import annotations

from dataclasses import fields

import numpy as np

from sim.plane.interface import NoticeKind, Position, RecordCounts, ThreadState, zero_column
from tests.oracle.parts import Buffer, Slice

KEPT = {  # what a start leaves as it is (P3), beside what never changes
    "Task": {
        "partitions",
        "gates",
        "state",
        "since",
        "spent",
        "slow",
        "records_out",
        "buffers_in",
        "buffers_out",
        "digest",
        "earlier_in",
        "earlier_out",
        "ever_served",
        "served_records",
    },
    "Partition": {"channels"},
    "Gate": {"channels"},
    "Channel": {"digest", "ever_read", "ever_written", "history"},
}
UNKNOWN = (-1, -1)
"""A record written or served before this plane began."""


def pieces(begin, end, length):
    """The interval in parts of a length, the last one what is left (P6)."""
    return [(at, min(at + length, end)) for at in range(begin, end, length)]


def renew(old, fresh):
    """Every field as it was at the beginning, except those kept."""
    for field in fields(old):
        if field.name not in KEPT[type(old).__name__]:
            setattr(old, field.name, getattr(fresh, field.name))


class Restarts:
    """Halts and restarts of tasks."""

    def __init__(self, plane):
        self.plane = plane

    def halt(self, task):
        """P1."""
        task.in_service = task.held = False
        for channels in task.emission:
            channels[0].partition.uncounted += 1
        task.emission.clear()
        task.rest = 0
        self.plane.thread.drop_alarm(task)
        self.plane.thread.enter(task, ThreadState.HALTED)
        self.plane.drop_notices({task.number})

    def position(self, task):
        """P2."""
        inputs, outputs = task.channels_in, task.channels_out

        def column(values):
            return np.array(values, np.int64)

        return Position(
            task.served,
            consumed=column([c.consumed for c in inputs]),
            records_read=column([c.records_in for c in inputs]),
            captured=column([c.arrived - c.capture_from if c.capture else c.cap_in for c in inputs]),
            written=column([c.written for c in outputs]),
            records_written=column([c.records_out for c in outputs]),
            overtaken=column([c.cap_out for c in outputs]),
            late=len(task.late) + len(task.in_hand),
        )

    def bare_position(self, task):
        """P2 without captures."""
        return self.position(task)._replace(
            captured=zero_column(len(task.channels_in)), overtaken=zero_column(len(task.channels_out))
        )

    def counted(self, task):
        """P8."""
        read, written = [c.ever_read for c in task.channels_in], [c.ever_written for c in task.channels_out]
        return RecordCounts(task.ever_served, np.array(read, np.int64), np.array(written, np.int64))

    # ------------------------------------------------------------------------------------------------ start

    def start(self, positions):
        """P3."""
        tasks = [self.plane.all_tasks[t] for t in sorted(positions)]
        self.plane.forget(tasks)
        for task in tasks:
            task.earlier_in += sum(c.taken for c in task.channels_in)
            task.earlier_out += sum(c.written for c in task.channels_out)
        for task in tasks:
            self.forget(task)
            self.plane.thread.enter(task, ThreadState.HELD)
        for task in tasks:
            self.restore_task(task, positions)
        for task in tasks:
            self.share_recovered(task)
        for task in tasks:
            task.earlier_in -= sum(c.taken for c in task.channels_in)
            task.earlier_out -= sum(c.written for c in task.channels_out)

    def forget(self, task):
        """P3: as at the beginning, held."""
        plane = self.plane
        renew(task, plane.new_task(task.number, task.vertex, task.subtask))
        for partition in task.partitions:
            renew(partition, plane.new_partition(task, partition.edge_number, len(partition.channels)))
            for c in partition.channels:
                renew(
                    c,
                    plane.new_channel(
                        c.number, partition.edge_number, task, c.reader, partition, c.gate, local=c.local
                    ),
                )
        for gate in task.gates:
            renew(gate, plane.new_gate(gate.number, task, gate.position, gate.edge_number))
            gate.shut = True
        task.held = task.recovering = True

    def restore_task(self, task, positions):
        """P4, P5: the records served, the offsets of the input channels."""
        position = positions[task.number]
        task.served = position.served
        cut(task.served_records, task.served)
        for partition in task.partitions:
            num, den = partition.edge.fan_out
            partition.copies = (task.served - position.late) * num // den
        self.plane.late.be_late_again(task, position.late)
        for c, captured in zip(task.channels_in, position.captured.tolist(), strict=True):
            writer = positions[c.writer.number]
            place = c.writer.channels_out.index(c)
            c.written, c.records_out = int(writer.written[place]), int(writer.records_written[place])
            c.sent = c.arrived = c.written - int(writer.overtaken[place])
            c.taken = c.consumed = c.sent - captured
            c.blocked = True
            self.seek_record(c)
            self.recover(c)
            cut(c.history, c.records_out)

    def share_recovered(self, task):
        """O1, P6: the channels of a broadcast share the segments of their recovered output, too."""
        for partition in task.partitions:
            partition.uncounted = partition.copies - partition.counted
            if partition.shared:
                partition.count_shared()
                partition.recovered = partition.used

    def seek_record(self, channel):
        """P5: the reader's next record, counted back from the end of the stream."""
        i, at = channel.records_out, channel.written
        while i > 0 and at - channel.size(i - 1) >= channel.consumed:
            i -= 1
            at -= channel.size(i)
        channel.records_in, channel.fragment = i, at - channel.consumed

    def recover(self, channel):
        """P6."""
        segment_bytes = self.plane.spec.segment_bytes
        for begin, end in pieces(channel.sent, channel.written, segment_bytes):
            channel.queue.append(Buffer(channel, begin, end, begin, segment_bytes, closed=True))
            channel.count += 1
            if not channel.partition.shared:
                channel.partition.used += 1
                channel.partition.recovered += 1
        for begin, end in pieces(channel.taken, channel.arrived, segment_bytes):
            channel.recovered.append(Slice(channel, begin, end, loose=True))
        if channel.recovered:
            self.plane.receiving.make_ready(channel)

    # ------------------------------------------------------------------------------------------------ recovery

    def open_gates(self, task):
        """P7, at T9: whichever gates have no recovered input left; True: RECOVERED is reported."""
        return any(self.open_gate(gate) for gate in task.gates if gate.shut and not gate.ready)

    def open_at_once(self, task):
        """P9: the recovered input that is left to read."""
        for gate in task.gates:
            self.open_gate(gate)
        if not task.gates:
            self.finish(task)

    def open_gate(self, gate):
        """P7: the partitions are requested; True: it was the last gate, RECOVERED is reported."""
        gate.shut = False
        for channel in gate.channels:
            self.plane.sending.notify_sender(channel, "resume")
        return self.finish(gate.task)

    def finish(self, task):
        """P7: all gates are open, or there are none."""
        if any(gate.shut for gate in task.gates):
            return False
        task.recovering = False
        self.plane.report(NoticeKind.RECOVERED, task)
        return True


def cut(history, length):
    """Identities up to an ordinal; what came before this plane is unknown."""
    del history[length:]
    history += [UNKNOWN] * (length - len(history))
