"""Rules P: threads that stop, positions, tasks that start anew, what is counted of them, and gates that open early."""

from dataclasses import replace

import numpy as np
import pytest

from sim.model.cluster import Debloating
from sim.plane.interface import Marker, Notice, NoticeKind, Position, Ship, ThreadState, Trait
from tests.plane.lab import (
    begin_again,
    channel,
    column,
    edge,
    idle_floating,
    pipe,
    pool,
    run,
    source,
    state,
    task,
    vertex,
    world,
)

# Rules P: threads that stop, positions, tasks that start anew and what they find.


def writer(*, served=0, written=(0,), records=(0,), overtaken=(0,)):
    """The position of a source."""
    none = np.zeros(0, np.int64)
    return Position(served, none, none, none, *(np.array(c, np.int64) for c in (written, records, overtaken)))


def reader(*, captured=(0,), consumed=None):
    """The position of a sink, whose own offsets nobody asks for."""
    none, zeros = np.zeros(0, np.int64), np.zeros(len(captured), np.int64)
    return Position(0, zeros if consumed is None else np.array(consumed), zeros, np.array(captured), none, none, none)


def columns(position):
    return [position.served, *(c.tolist() for c in position[1:7])]


# ---------------------------------------------------------------------------------------------- P1


def test_P1_an_emission_ends_where_it_is(build):
    """A record of three buffers finds room for two."""
    plane = build(pipe(size=300, exclusive=1, floating=0, overdraft=0))
    plane.hold(1)
    run(plane, 100)

    assert (state(plane, 0), channel(plane, 0, "written")) == (ThreadState.HARD, 200)

    plane.halt([0])
    plane.release(1)
    run(plane, 200)

    assert channel(plane, 0, "written", "queued") == (200, 0)


def test_P1_a_halted_task_reports_nothing(build):
    """Neither what it reported before and nobody heard, nor anything that happens to it now."""
    plane = build(pipe(total=0))
    plane.advance(10)
    plane.forward(1, Marker(1, Trait.ANNOUNCED))
    plane.halt([1])
    plane.forward(1, Marker(2, Trait.ANNOUNCED))
    plane.forward(0, Marker(3, Trait.ANNOUNCED))

    assert [n.kind for n in run(plane, 100)] == [NoticeKind.ANNOUNCED_SENT]
    assert channel(plane, 0, "received") == 1


def test_P1_verbs_on_a_halted_thread(build):
    """It cannot be held or released, an interrupt does nothing, it can be halted again."""
    plane = build(pipe())
    plane.hold(1)
    plane.halt([0, 1])
    plane.halt([1])
    plane.interrupt(1)
    with pytest.raises(ValueError, match=r"halted|not held"):
        plane.hold(0)
    with pytest.raises(ValueError, match=r"halted|not held"):
        plane.release(1)

    assert run(plane, 100) == []
    assert state(plane, 1) == ThreadState.HALTED


# ---------------------------------------------------------------------------------------------- P2


def test_P2_a_bare_position_is_one_without_captures(build):
    plane = build(pipe(service=25))
    run(plane, 45)

    assert [columns(plane.position(t)) for t in (0, 1)] == [columns(plane.bare_position(t)) for t in (0, 1)]


def test_P2_columns_follow_gates_and_partitions(build):
    """Task 2 reads channel 1 of gate 0 and channel 4 of gate 1."""
    vertices = [source(parallelism=2), vertex(parallelism=2, service=(10, 10))]
    plane = build(world(vertices, [edge(ship=Ship.GLOBAL), edge(ship=Ship.BROADCAST, size=30)], segment_bytes=300))
    run(plane, 400)
    channels = plane.channels()
    expected = [[int(channels["consumed"][c]) for c in gate] for gate in ((0, 2, 4, 6), (1, 3, 5, 7))]

    assert expected == [plane.position(t).consumed.tolist() for t in (2, 3)]
    assert channels["written"].tolist() == [
        c for part in (0, 2) for t in (0, 1) for c in plane.position(t).written.tolist()[part : part + 2]
    ]


# ---------------------------------------------------------------------------------------------- P3


def test_P3_a_started_job_does_what_a_new_one_does(build):
    """Elements are on the wire, markers wait and are counted, channels are blocked, something is captured and pinned: all forgotten.
    The start is a multiple of the timers' periods, so that they do the same, too."""
    debloating = Debloating(period_ns=100, target_ns=10, samples=5, threshold_percent=0, min_bytes=1)
    spec = pipe(size=70, service=25, floating=1, buffer_timeout_ns=50, debloating=debloating)
    plane, fresh = build(spec), build(spec)
    run(plane, 200)
    plane.capture(1, 1)
    for number, traits in ((1, Trait.PRIORITY), (2, Trait.BLOCKING), (3, Trait.ANNOUNCED)):
        plane.forward(0, Marker(number, traits))
    plane.settle(1, 50)
    plane.prioritise(1, 3)
    run(plane, 1000)
    plane.interrupt(1)
    begin_again(plane, {0: writer(), 1: reader()})
    run(plane, 1300)
    run(fresh, 300)

    assert plane.channels().tolist() == fresh.channels().tolist()
    assert plane.partitions().tolist() == fresh.partitions().tolist()
    assert plane.gates().tolist() == fresh.gates().tolist()
    assert column(plane.tasks(), "served") == column(fresh.tasks(), "served")

    for either in (plane, fresh):
        either.forward(0, Marker(1))

    assert [n._replace(time=0) for n in run(plane, 2300)] == [n._replace(time=0) for n in run(fresh, 1300)] != []


def test_P3_what_is_on_a_shared_line_is_dropped_alone(build):
    """Two pipes share a line of 1 byte / ns; 200 bytes of each are given to it when one starts anew: the others arrive all the same."""
    spec = world(
        [source(parallelism=2, total=2), vertex(parallelism=2)], [edge()], (0, 0, 1, 1), nic=(1, 1), latency_ns=500
    )
    plane = build(spec)
    run(plane, 100)

    assert column(plane.channels(), "sent") == [200, 200]

    begin_again(plane, {0: writer(), 2: reader()})
    arrived = []
    for until in (710, 711, 810, 811, 910, 911, 2000):
        run(plane, until)
        arrived.append(column(plane.channels(), "arrived"))

    assert arrived == [[0, 0], [0, 100], [0, 100], [0, 100], [0, 100], [0, 200], [200, 200]]


def test_P3_messages_are_dropped(build):
    """A credit on its way when the job starts again is not a credit of the new attempt: the exclusive ones are all there are."""
    plane = build(pipe(exclusive=2, latency_ns=100))
    run(plane, 150)
    plane.start({0: writer(), 1: reader()})
    run(plane, 1000)

    assert channel(plane, 0, "credit") == 2


def test_P3_totals_go_on(build):
    """Ten records, then five again: bytes, buffers and records count all of them, the index and the offsets only the last five."""
    plane = build(pipe(total=10))
    run(plane, 500)
    begin_again(plane, {0: writer(served=5, written=[500], records=[5]), 1: reader()})
    run(plane, 1000)

    assert task(plane, 0, "served", "records_out", "bytes_out", "buffers_out") == (10, 15, 1500, 15)
    assert task(plane, 1, "served", "bytes_in", "buffers_in") == (5, 1500, 15)
    assert plane.polled(1) == 1500
    assert channel(plane, 0, "written", "consumed", "records_in", "records_out") == (1000, 1000, 10, 10)


def test_P3_a_joined_task_begins_with_its_first_gate(build):
    """Whichever it read last before: here the second one would have been next."""
    joined = replace(vertex("c", service=(10, 10)), joined=True)
    plane = build(world([source("a"), source("b"), joined], [edge(0, 2, size=50), edge(1, 2, size=50)]))
    plane.hold(2)
    run(plane, 100)
    plane.release(2)
    run(plane, 101)

    assert column(plane.channels(), "consumed") == [50, 0]

    plane.halt([0, 1, 2])
    begin_again(plane, {0: writer(), 1: writer(), 2: reader(captured=(0, 0))}, tasks=[0, 1])
    run(plane, 300)
    plane.release(2)
    run(plane, 301)

    assert column(plane.channels(), "consumed") == [50, 0]


def test_P3_tasks_are_closed_under_channels(build):
    """A writer does not start without its reader, nor with more in flight than it wrote, nor with columns of another task."""
    plane = build(pipe())
    with pytest.raises(ValueError, match="other end"):
        plane.start({0: writer()})
    with pytest.raises(ValueError, match="exceed the written bytes"):
        plane.start({0: writer(written=[10], overtaken=[6]), 1: reader(captured=[5])})
    with pytest.raises(ValueError, match="columns"):
        plane.start({0: reader(), 1: writer()})
    with pytest.raises(ValueError, match="negative value"):
        plane.start({0: writer(), 1: reader(captured=[-1])})


# ---------------------------------------------------------------------------------------------- P4


def test_P4_draws_go_on_where_the_position_is(build):
    """Services and sizes of records 7 and later are what they were the first time."""
    spec = world(
        [source(service=(5, 10, 20, 40, 80)), vertex(service=(1,))],
        [edge(size=(10, 40, 70, 90, 130))],
        segment_bytes=1000,
    )
    plane = build(spec)
    seen = [(0, 0)]
    while len(seen) < 15:
        run(plane, plane.now + 1)
        if task(plane, 0, "served") == len(seen):
            seen.append((plane.now - 1, channel(plane, 0, "written")))
    run(plane, 5000)
    begin_again(plane, {0: writer(served=7, written=[seen[7][1]], records=[7]), 1: reader()})
    again = [seen[7]]
    while len(again) < 8:
        run(plane, plane.now + 1)
        if task(plane, 0, "served") == 7 + len(again):
            again.append((plane.now - 1 - 5000 + seen[7][0], channel(plane, 0, "written")))

    assert seen[7:] == again


def test_P4_copies_are_counted_by_the_records_served(build):
    """Three copies of two records go round two readers: after 5 records (7 copies) the next copy is the eighth."""
    spec = world([source(), vertex(parallelism=2)], [edge(ship=Ship.REBALANCE, fan_out=(3, 2))])
    plane, expected = build(spec), build(spec)
    run(expected, 51)
    before = column(expected.channels(), "records_out")
    run(expected, 71)
    written = [100 * n for n in before]
    begin_again(
        plane, {0: writer(served=5, written=written, records=before, overtaken=[0, 0]), 1: reader(), 2: reader()}
    )
    run(plane, 21)

    assert column(expected.channels(), "records_out") == column(plane.channels(), "records_out")


def test_P4_a_source_is_as_late_as_its_position(build):
    """Record k is due at 100 k; at 1000 records 2 to 10 are late and served without a pause."""
    plane = build(world([source(every=100), vertex()], [edge()]))
    run(plane, 1000)
    begin_again(plane, {0: writer(served=2, written=[200], records=[2]), 1: reader()})
    served = []
    for until in (1011, 1091, 1109, 1111, 1199, 1211):
        run(plane, until)
        served.append(task(plane, 0, "served"))

    assert served == [3, 11, 11, 12, 12, 13]


# ---------------------------------------------------------------------------------------------- P5, P6


def test_P5_offsets(build):
    """500 written, of which 100 in the sender's queue and 200 at the reader; what the reader says it consumed is not asked."""
    plane = build(pipe())
    plane.start(
        {0: writer(served=5, written=[500], records=[5], overtaken=[100]), 1: reader(consumed=[50], captured=[200])}
    )

    assert channel(plane, 0, "written", "sent", "arrived", "taken", "consumed") == (500, 400, 400, 200, 200)
    assert channel(plane, 0, "records_in", "records_out") == (2, 5)


def test_P5_bytes_of_no_record_belong_to_the_next_one(build):
    """50 bytes of the second record and all of the third are left: one record of 150 bytes."""
    plane = build(pipe(total=3))
    begin_again(plane, {0: writer(served=3, written=[300], records=[3]), 1: reader(captured=[150])})
    run(plane, 9)

    assert channel(plane, 0, "taken", "consumed", "records_in") == (300, 300, 3)

    run(plane, 11)

    assert task(plane, 1, "served") == 1


def test_P5_without_a_whole_record_left_the_next_is_the_writers(build):
    """30 bytes of an earlier record wait until 100 more are there."""
    plane = build(pipe())
    begin_again(plane, {0: writer(served=3, written=[300], records=[3]), 1: reader(captured=[30])})
    run(plane, 9)

    assert channel(plane, 0, "taken", "consumed", "records_in") == (300, 270, 3)

    run(plane, 11)

    assert channel(plane, 0, "taken", "consumed", "records_in") == (400, 400, 4)


@pytest.mark.parametrize("local", [False, True])
def test_P6_recovered_output_takes_segments_beyond_the_pool(build, local):
    """650 bytes are seven segments of a pool of two and an overdraft of two: the task waits until one is left, then goes on."""
    plane = build(pipe(exclusive=1, floating=1, total=8, local=local))
    plane.start({0: writer(served=7, written=[700], records=[7], overtaken=[650]), 1: reader()})

    assert (pool(plane), channel(plane, 0, "queued")) == (7, 7)

    plane.release(0)
    run(plane, 100)

    assert (state(plane, 0), pool(plane)) == (ThreadState.SOFT, 7)

    plane.release(1)
    run(plane, 300)

    assert channel(plane, 0, "written", "consumed") == (800, 800)
    assert column(plane.tasks(), "served") == [8, 7]


def test_P6_more_segments_than_there_were_elements(build):
    """What is recovered may exceed whatever the job could ever have had in flight."""
    plane = build(pipe(exclusive=1, floating=1, total=0, size=10))
    begin_again(plane, {0: writer(served=0, written=[500_000], records=[50_000], overtaken=[500_000]), 1: reader()})

    assert pool(plane) == 5000

    plane.check()
    run(plane, 600_000)

    assert task(plane, 1, "served") == 50_000


@pytest.mark.parametrize("local", [False, True])
def test_P6_recovered_input_is_in_no_pool(build, local):
    """Three pieces of at most a segment, read one after the other; all credits and buffers are there meanwhile."""
    plane = build(pipe(total=3, local=local))
    plane.start({0: writer(served=3, written=[300], records=[3]), 1: reader(captured=[250])})
    before = (*channel(plane, 0, "credit", "received", "queued"), idle_floating(plane), pool(plane))
    plane.release(1)
    notices = []
    for until in (1, 11, 21):
        run(plane, until)
        notices.append(channel(plane, 0, "taken"))
        plane.check()

    assert notices == [250, 300, 300]  # the first record is 150 bytes long
    assert (0 if local else 2, 0, 0, 8, 0) == before
    assert before == (*channel(plane, 0, "credit", "received", "queued"), idle_floating(plane), pool(plane))


def test_P6_recovered_input_counts_as_taken_only(build):
    """It folds into the digest once, on a local channel, too: both end with the same one."""
    digests = []
    for local in (False, True):
        plane = build(pipe(total=1, local=local, digests=True))
        begin_again(plane, {0: writer(served=1, written=[100], records=[1]), 1: reader(captured=[100])})
        run(plane, 50)
        digests.append(channel(plane, 0, "digest"))

    assert digests[0] == digests[1] != 1


# ---------------------------------------------------------------------------------------------- P7


@pytest.mark.parametrize("joined", [False, True])
def test_P7_gates_open_each_for_itself(build, joined):
    """Gate 1 has nothing to recover: its partition sends while gate 0 still reads; the task has recovered when gate 0 has, too."""
    reading = replace(vertex("c", service=(50, 50)), joined=joined)
    plane = build(world([source("a", total=0), source("b", total=0), reading], [edge(0, 2), edge(1, 2)]))
    plane.start(
        {
            0: writer(written=[300], records=[3]),
            1: writer(written=[100], records=[1], overtaken=[100]),
            2: reader(captured=[300, 0]),
        }
    )
    plane.release(2)
    run(plane, 60)

    assert column(plane.channels(), "blocked") == [1, 0]
    assert column(plane.channels(), "sent") == [300, 100]
    assert [n.kind for n in run(plane, 500)] == [NoticeKind.RECOVERED]
    assert task(plane, 2, "served") == 4


def test_P7_a_task_without_output_to_spare_recovers_later(build):
    """The middle task's recovered output exceeds its pool: it asks for its input when the sink has drained it."""
    plane = build(
        world([source(total=0), vertex(), vertex()], [edge(0, 1), edge(1, 2)], exclusive=1, floating=0, overdraft=0)
    )
    none = [np.zeros(1, np.int64)] * 3
    middle = Position(3, *none, *(np.array([n], np.int64) for n in (300, 3, 300)))
    plane.start({0: writer(), 1: middle, 2: reader()})
    plane.release(1)

    assert run(plane, 100) == []

    plane.release(2)

    assert [Notice(100, NoticeKind.RECOVERED, 2), Notice(110, NoticeKind.RECOVERED, 1)] == run(plane, 200)


# Rule P8: what a plane counts of a task since it was built, whatever the task is started at.


def counted(plane, t):
    served, read, written = plane.counted(t)
    return served, read.tolist(), written.tolist()


def test_P8_records_are_counted_over_all_attempts(build):
    """Ten records, then the last five again."""
    plane = build(pipe(total=10))
    run(plane, 500)

    assert [counted(plane, t) for t in (0, 1)] == [(10, [], [10]), (10, [10], [])]

    begin_again(plane, {0: writer(served=5, written=[500], records=[5]), 1: reader()})

    assert [counted(plane, t) for t in (0, 1)] == [(10, [], [10]), (10, [10], [])], "a start takes nothing back"

    run(plane, 1000)

    assert [counted(plane, t) for t in (0, 1)] == [(15, [], [15]), (15, [15], [])]
    assert (task(plane, 0, "served"), task(plane, 1, "served")) == (10, 5)
    assert channel(plane, 0, "records_in", "records_out") == (10, 10)


def test_P8_a_start_adds_nothing(build):
    """A position ahead of what was done, and input in flight: of the six records read this plane wrote three."""
    plane = build(pipe(total=10))
    begin_again(plane, {0: writer(served=7, written=[700], records=[7]), 1: reader(captured=[300])})

    assert [counted(plane, t) for t in (0, 1)] == [(0, [], [0]), (0, [0], [])]

    run(plane, 1000)

    assert [counted(plane, t) for t in (0, 1)] == [(3, [], [3]), (6, [6], [])]


# Rule P9: gates that open before the recovered input is read.


NONE = np.zeros(0, np.int64)


def column_of(entry):
    """The entries of a task with one channel."""
    return np.array([entry], np.int64)


def start(plane, *, captured, written, records):
    """Both tasks of a pipe stand there; the reader has so many bytes to read again."""
    writer = Position(records, NONE, NONE, NONE, column_of(written), column_of(records), column_of(0))
    plane.start({0: writer, 1: Position(0, column_of(0), column_of(0), column_of(captured), NONE, NONE, NONE)})
    for t in (0, 1):
        plane.release(t)


@pytest.mark.parametrize("local", [False, True])
def test_P9_a_capture_holds_what_is_left(build, local):
    """A marker overtakes it: 200 bytes wait and one record is in service; no buffer is pinned by recovered input."""
    plane = build(pipe(total=3, local=local, opens_at_once=True))
    start(plane, captured=300, written=300, records=3)
    run(plane, 5)
    plane.forward(0, Marker(1, Trait.PRIORITY))
    plane.capture(1, 1)
    run(plane, 6)

    assert plane.captured(1) == 200

    run(plane, 100)

    assert task(plane, 1, "served") == 3
    assert (8, 0 if local else 2) == (idle_floating(plane), channel(plane, 0, "credit"))


@pytest.mark.parametrize("local", [False, True])
def test_P9_an_ordinary_marker_waits_behind_it(build, local):
    plane = build(pipe(total=3, local=local, opens_at_once=True))
    start(plane, captured=300, written=300, records=3)
    run(plane, 5)
    plane.forward(0, Marker(1, Trait.BLOCKING))

    assert [notice.time for notice in run(plane, 100) if notice.kind == NoticeKind.ARRIVED] == [30]


def test_P9_a_marker_that_becomes_urgent_leaves_recovered_input_ready(build):
    """It was alone in the receive queue: the channel stays ready for what is left in front of it."""
    plane = build(pipe(total=3, opens_at_once=True))
    start(plane, captured=300, written=300, records=3)
    run(plane, 5)
    plane.forward(0, Marker(1))
    run(plane, 6)
    plane.prioritise(1, 1)
    plane.check()
    run(plane, 1000)

    assert task(plane, 1, "served") == 3
