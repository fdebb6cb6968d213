"""What is never lost: records, bytes, segments, receive buffers, credits, places in the ready lists, time.  Assertions are its product."""

from __future__ import annotations

from sim.plane.interface import Marker
from tests.oracle.parts import Slice
from tests.oracle.tables import spent


def equal(story, expected, actual):
    assert expected == actual, f"{story}: expected {expected}, found {actual}"


def check(plane):
    """Raise AssertionError with the story of the first violation."""
    for channel in plane.all_channels:
        check_bytes(plane, channel)
        check_records(channel)
        if not channel.local:
            check_credits(plane, channel)
    for partition in plane.all_partitions:
        check_pool(partition)
    for gate in plane.all_gates:
        check_gate(plane, gate)
    for task in plane.all_tasks:
        check_task(plane, task)


def name(channel):
    return f"channel {channel.number} ({channel.edge.name}, task {channel.writer.number} to {channel.reader.number})"


def under_way(plane, channel):
    return [
        element for owner, element, _ in plane.messages("arrive") if owner is channel and isinstance(element, Slice)
    ]


def received(channel):
    return [element for element in channel.received if isinstance(element, Slice)]


def check_bytes(plane, channel):
    """B2, and every byte stands in exactly one place."""
    who = name(channel)
    offsets = (channel.written, channel.sent, channel.arrived, channel.taken, channel.consumed)
    assert list(offsets) == sorted(offsets, reverse=True), f"{who}: offsets out of order {offsets}"
    assert channel.consumed >= 0, f"{who}: negative offset"
    position = channel.sent
    for place, buffer in enumerate(channel.unsent):
        equal(f"{who}: buffer {place} of the sender's queue begins at", position, buffer.sent)
        assert buffer.begin <= buffer.sent <= buffer.end <= buffer.begin + buffer.capacity, (
            f"{who}: buffer {place} overflows"
        )
        position = buffer.end
    equal(f"{who}: bytes appended by the writer", channel.written, position)
    for element in list(channel.queue)[:-1]:
        assert isinstance(element, Marker) or element.closed, f"{who}: an open buffer is not the last element"
    equal(
        f"{who}: bytes under way",
        channel.sent - channel.arrived,
        sum(data.length for data in under_way(plane, channel)),
    )
    waiting = [*received(channel), *channel.recovered]
    equal(f"{who}: bytes in the receive queue", channel.arrived - channel.taken, sum(data.length for data in waiting))


def check_records(channel):
    """B1: between what is read and what is written lie the records written and not read, and the written part of the next one."""
    assert channel.records_in <= channel.records_out, f"{name(channel)}: more records read than written"
    lying = sum(channel.size(i) for i in range(channel.records_in, channel.records_out))
    begun = channel.written - channel.consumed - channel.fragment - lying
    if channel.writer.halted:  # perhaps inside a record
        assert 0 <= begun < channel.size(channel.records_out), (
            f"{name(channel)}: records lost, {begun} bytes belong to none"
        )
    else:
        written_to = channel.writer.emission[0] if channel.writer.emission else ()
        part = channel.size(channel.records_out) - channel.writer.rest if channel in written_to else 0
        equal(f"{name(channel)}: bytes of the record being written", part, begun)


def check_credits(plane, channel):
    """Every free buffer of the receiver is a credit somewhere; every buffer of its own is somewhere."""
    who = name(channel)
    coming = sum(n for owner, kind, n in plane.messages("told") if owner is channel and kind == "credit")
    assert channel.credit >= 0, f"{who}: credit {channel.credit} below 0"
    announced = channel.credit + coming + len(under_way(plane, channel))
    equal(f"{who}: free buffers announced as credits", channel.free - channel.unannounced, announced)
    exclusive = channel.ex_free + sum(not data.floating for data in in_use(channel))
    equal(f"{who}: exclusive buffers", channel.exclusive, exclusive)
    assert channel.waiting == (channel in channel.gate.listeners), (
        f"{who}: waiting {channel.waiting}, listeners disagree"
    )


def in_use(channel):
    """Receive buffers that hold data: queued, being read, or read and pinned."""
    current = channel.gate.current
    reading = [current] if current is not None and current.channel is channel and not current.loose else []
    return received(channel) + reading + [data for data in channel.pinned_slices if data.recycled]


def check_gate(plane, gate):
    """Floating buffers are idle or lent to one channel; who has something to poll stands in the lists once."""
    who = f"gate {gate.number} of task {gate.task.number}"
    remote = [channel for channel in gate.channels if not channel.local]
    lent = sum(c.fl_free + sum(data.floating for data in in_use(c)) for c in remote)
    equal(f"{who}: floating buffers", plane.spec.floating, gate.idle_floating + lent)
    assert len(set(gate.ready)) == len(gate.ready), f"{who}: a channel stands twice in the ready list"
    for channel in remote:
        pollable = plane.thread.pollable(channel)
        assert pollable == (channel in gate.ready), (
            f"{who}: {name(channel)} has something to poll but is not ready, or not"
        )
    for channel in gate.channels:
        assert not channel.recovered or channel in gate.ready, (
            f"{who}: {name(channel)} has recovered input and is not ready"
        )
    for channel in gate.ready:
        assert plane.thread.pollable(channel), f"{who}: {name(channel)} is ready with nothing to poll"
    for channel in gate.channels if gate.shut else []:
        assert channel.blocked, f"{who}: {name(channel)} is not blocked though its partition was not requested"
        assert not channel.received, f"{who}: {name(channel)} received something before its partition was requested"
    assert bool(gate.ready) == (gate in gate.task.ready_gates), (
        f"{who}: ready channels and the task's gate list disagree"
    )


def check_pool(partition):
    """O1: every segment in use is a buffer that is queued, read by a local reader, or pinned.  O5: every copy made is in a channel."""
    who = f"pool of task {partition.task.number}, edge {partition.edge.name}"
    planned = sum(channels[0].partition is partition for channels in partition.task.emission)
    equal(f"{who}: copies written", partition.copies - planned - partition.uncounted, partition.counted)
    counts = [channel.count for channel in partition.channels]
    equal(f"{who}: segments used", max(counts) if partition.shared else sum(counts), partition.used)
    most = max(partition.size + partition.overdraft, partition.recovered)
    assert 0 <= partition.used <= most, f"{who}: {partition.used} segments of {partition.size}"
    for channel in partition.channels:
        buffers = set(channel.unsent) | set(channel.pinned_buffers)
        current = channel.gate.current
        if current is not None and current.channel is channel and current.buffer is not None:
            buffers.add(current.buffer)
        equal(f"{who}: segments of {name(channel)}", len(buffers), channel.count)


def check_task(plane, task):
    """T12, S7: time is spent once, watched markers are those in the queues."""
    who = f"task {task.number}"
    equal(f"{who}: ns accounted for", plane.now - plane.spec.begin_ns, sum(spent(task, plane.now)))
    assert not (task.in_service and task.held), f"{who}: held while serving"
    equal(f"{who}: copies not yet written", bool(task.emission), task.rest > 0)
