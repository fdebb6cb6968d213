"""Rules T and W: what a turn does and in which order, polling, where sources wait, where the time goes."""

from dataclasses import replace

import pytest

from sim.model.randomness import draw, stream
from sim.plane.interface import Marker, Notice, NoticeKind, Ship, ThreadState, Trait, Wait
from tests.plane.lab import channel, column, edge, next_notice, pipe, run, source, state, task, vertex, world

# Rules T: what a turn does and in which order, polling, service, where the time goes.


def test_T1_a_turn_of_a_held_task_does_nothing(build):
    """The first turn is on the work list already when the task is held."""
    plane = build(pipe())
    plane.hold(0)
    run(plane, 100)

    assert task(plane, 0, "state", "served", "busy_ns") == (ThreadState.HELD, 0, 100)


def test_T2_a_record_written_late_is_flushed(build):
    """300 bytes of a 350 byte record in three buffers, the rest in an open one: with timeout 0 it leaves too."""
    plane = build(pipe(size=350, total=1, exclusive=2, floating=0, overdraft=0, buffer_timeout_ns=0))
    plane.hold(1)
    run(plane, 50)

    assert (state(plane, 0), *channel(plane, 0, "written", "sent")) == (ThreadState.SOFT, 350, 200)

    plane = build(pipe(size=350, total=1, exclusive=1, floating=0, overdraft=0, buffer_timeout_ns=0))
    plane.hold(1)
    run(plane, 50)

    assert (state(plane, 0), channel(plane, 0, "written")) == (ThreadState.HARD, 200)

    plane.release(1)
    run(plane, 51)

    assert channel(plane, 0, "written", "sent") == (350, 350)


def test_T3_one_record_also_of_those_that_are_served_ahead(build):
    """A buffer full of small records: the thread comes back after the first."""
    plane = build(pipe(size=5))
    plane.hold(1)
    run(plane, 300)
    plane.interrupt_after_next_element(1)
    plane.release(1)

    assert Notice(310, NoticeKind.INTERRUPTED, 1) == next_notice(plane)
    assert task(plane, 1, "served") == 1


def test_T3_a_marker_is_an_element(build):
    """The barrier is polled, its notice is told, then the mails are next."""
    plane = build(pipe(total=0))
    plane.hold(1)
    plane.forward(0, Marker(1))
    run(plane, 10)
    plane.interrupt_after_next_element(1)
    plane.release(1)

    assert [notice.kind for notice in run(plane, 20)] == [NoticeKind.ARRIVED, NoticeKind.INTERRUPTED]


def test_T4_priority_markers_are_processed_in_the_order_of_arrival(build):
    plane = build(pipe(total=0))
    plane.hold(1)
    plane.forward(0, Marker(2, Trait.PRIORITY, 1))
    run(plane, 10)
    plane.forward(0, Marker(1, Trait.PRIORITY, 2))
    run(plane, 20)
    plane.release(1)

    assert [(n.series, n.number) for n in run(plane, 30)] == [(1, 2), (2, 1)]


def test_T5_output_before_input(build):
    """With its output full a task polls neither data nor an ordinary marker."""
    plane = build(
        world(
            [source(total=2), vertex("b"), vertex("c")], [edge(0, 1), edge(1, 2)], exclusive=1, floating=0, overdraft=0
        )
    )
    plane.hold(2)
    run(plane, 100)
    plane.forward(0, Marker(1))
    run(plane, 200)

    assert task(plane, 1, "state", "served") == (ThreadState.SOFT, 2)
    assert channel(plane, 0, "arrived", "taken", "received") == (200, 200, 1)

    plane.release(2)

    assert Notice(200, NoticeKind.ARRIVED, 1, 0, 0, 1, 0, True, True) == next_notice(plane)


def test_T6_a_silent_subtask_is_exhausted_from_the_beginning(build):
    """The last one of three has no record, whatever the rate of the others."""
    silent = replace(source(parallelism=3, every=100), source=replace(source(every=100).source, idle_subtasks=1))
    plane = build(world([silent, vertex()], [edge(ship=Ship.GLOBAL)]))

    assert Notice(0, NoticeKind.EXHAUSTED, 2) == plane.advance(1000)
    assert plane.advance(1000).kind == NoticeKind.REACHED_TIME
    assert column(plane.tasks(), "served")[:3] == [10, 10, 0]
    assert task(plane, 2, "state", "idle_ns") == (ThreadState.IDLE, 1000)


def test_T7_records_of_one_buffer_are_served_one_by_one(build):
    """Five records of 20 bytes in the buffer that leaves at 50."""
    plane = build(pipe(size=20, total=5))
    consumed = []
    for until in (51, 60, 61, 71, 81, 91, 101):
        run(plane, until)
        consumed.append(channel(plane, 0, "consumed"))

    assert consumed == [20, 20, 40, 60, 80, 100, 100]


def test_T8_a_used_up_buffer_is_recycled_with_the_record_incomplete(build):
    """150 of a record's 200 bytes: the first buffer is a credit again although no record is complete."""
    plane = build(pipe(size=150, total=1, exclusive=1, floating=0))
    run(plane, 20)

    assert channel(plane, 0, "taken", "consumed", "credit") == (100, 0, 1)
    assert state(plane, 1) == ThreadState.IDLE


def joined_world(*edges_in, **options):
    """Two sources, task 2 reads them as two logical inputs; records of 50 bytes, two in a buffer; the reader is held until 100."""
    vertices = [source("a", total=4), source("b", total=4), replace(vertex("c", service=(10, 10)), joined=True)]
    return world(vertices, [edge(0, 2, size=50), edge(1, 2, size=50)], **options)


@pytest.mark.parametrize("hosts", [(0, 1, 2, 3), (0, 0, 0, 0)])
def test_T9_an_input_of_several_gates_is_read_buffer_by_buffer(build, hosts):
    """Gates 0 and 1 are the first input, gate 2 is the second: every other record is from gate 2, while it has any."""
    reader = replace(vertex("d", service=(10, 10, 10)), joined=True, gates_of_inputs=(2, 1))
    sources = [source(name, total=4) for name in "abc"]
    plane = build(world([*sources, reader], [edge(up, 3, size=50) for up in range(3)], hosts=hosts))
    plane.hold(3)
    run(plane, 100)
    plane.release(3)
    order, before = [], [0, 0, 0]
    for until in range(101, 221, 10):
        run(plane, until)
        consumed = column(plane.channels(), "consumed")
        order += [gate for gate in range(3) if consumed[gate] > before[gate]]
        before = consumed

    assert order == [0, 2, 0, 2, 1, 2, 1, 2, 0, 0, 1, 1]


def test_every_gate_belongs_to_one_input():
    with pytest.raises(ValueError, match="gates_of_inputs sums to 4, but it has 3 gates"):
        replace(vertex("d", service=(10, 10, 10)), joined=True, gates_of_inputs=(2, 2))


def test_T9_a_joined_task_goes_on_with_the_gate_that_has_something(build):
    """Gate 1 has nothing; a marker on gate 0 counts as its turn."""
    plane = build(joined_world())
    plane.hold(1)
    plane.hold(2)
    run(plane, 100)
    plane.forward(0, Marker(1))
    run(plane, 110)
    plane.release(2)
    notices = run(plane, 200)

    assert [(n.time, n.number) for n in notices] == [(150, 1)]
    assert column(plane.channels(), "consumed") == [200, 0]

    plane.hold(2)
    plane.release(1)
    plane.forward(0, Marker(2))
    run(plane, 300)
    plane.release(2)

    assert next_notice(plane).number == 2  # gate 0 was used last by the marker, so gate 1 came first
    assert column(plane.channels(), "consumed") == [200, 50]


def test_T10_the_state_stays_and_the_task_can_be_held(build):
    """After service the state still reads BUSY at the safe point; holding is legal there."""
    plane = build(pipe())
    run(plane, 5)
    plane.interrupt(0)

    assert Notice(10, NoticeKind.INTERRUPTED, 0) == plane.advance(100)
    assert state(plane, 0) == ThreadState.BUSY

    plane.hold(0)
    run(plane, 100)

    assert task(plane, 0, "state", "served") == (ThreadState.HELD, 1)


def test_T11_service_times_are_draws_of_the_task(build):
    """The k-th record of a task takes the k-th draw, through whichever gate it comes; slow tasks take longer, rounded down, 1 at least."""
    table = (7, 11, 13, 29)
    plane = build(world([source(service=table, total=3), vertex()], [edge()]))
    plane.scale(0, 3, 2)
    run(plane, 1000)
    times = [table[(draw(stream(0, "service", "a", 0), k) * 4) >> 32] * 3 // 2 for k in range(3)]

    assert sum(times) == task(plane, 0, "busy_ns")

    plane = build(pipe(total=4))
    plane.scale(0, 1, 1000)
    run(plane, 100)

    assert task(plane, 0, "served", "busy_ns") == (4, 4)


def test_T12_every_instant_belongs_to_one_state(build):
    """BUSY 0-20, SOFT 20-300, HELD 300-400 (busy), SOFT 400-500."""
    plane = build(pipe(exclusive=1, floating=0))
    plane.hold(1)
    run(plane, 300)
    plane.hold(0)
    run(plane, 400)
    plane.release(0)
    run(plane, 500)

    assert task(plane, 0, "busy_ns", "idle_ns", "soft_ns", "hard_ns") == (120, 0, 380, 0)


# Rule W3: where sources wait, and what mails and outputs make of it.


ALWAYS, NEVER = 1 << 32, 0


def pair(waits, *, wins=ALWAYS, every=None, reader_ns=1000):
    """A source of records of 10 ns, and its slow reader; one buffer each, and two of overdraft."""
    writer = source(every=every)
    writer = replace(writer, source=replace(writer.source, waits=waits, mail_lock_probability_q32=wins))
    return world([writer, vertex(service=(reader_ns,))], [edge()], exclusive=1, floating=0, overdraft=2)


def test_W3_in_poll_a_source_is_busy_until_its_record_is_due(build):
    """Records are due at 0, 100, 200 and take 10: a mail of 50 is let in at 110."""
    plane = build(pair(Wait.POLL, every=100, reader_ns=1))
    run(plane, 50)
    plane.interrupt(0)

    assert task(plane, 0, "state", "served") == (ThreadState.BUSY, 1)
    assert Notice(110, NoticeKind.INTERRUPTED, 0) == plane.advance(10_000)
    run(plane, 300)
    assert task(plane, 0, "busy_ns", "idle_ns") == (300, 0)


def test_W3_in_poll_a_source_catches_up_like_others(build):
    """Held until 250, it serves three records at once, and the next one when it is due."""
    plane = build(pair(Wait.POLL, every=100, reader_ns=1))
    plane.hold(0)
    run(plane, 250)
    plane.release(0)
    run(plane, 281)

    assert task(plane, 0, "served") == 3
    run(plane, 311)
    assert task(plane, 0, "served") == 4


@pytest.mark.parametrize("behind", [False, True])
def test_W3_a_mail_waits_for_the_emission_under_the_lock(build, behind):
    """The reader serves a record every 1000, and each makes room for one.  No element comes before a mail: another thread reads."""
    plane = build(pair(Wait.LOCK))
    run(plane, 5500)
    (plane.interrupt_after_next_element if behind else plane.interrupt)(0)
    notice = plane.advance(10_000)

    assert (notice.kind, notice.task) == (NoticeKind.INTERRUPTED, 0)
    assert 5500 < notice.time <= 6500


def test_W3_a_source_that_takes_the_lock_again_passes_the_mail_over(build):
    plane = build(pair(Wait.LOCK, wins=NEVER))
    run(plane, 5500)
    plane.interrupt(0)
    served = task(plane, 0, "served")

    assert run(plane, 30_000) == []
    assert task(plane, 0, "served") > served + 20


def test_W3_a_source_without_due_records_gives_the_lock_back(build):
    """Records are due every 3000 and the reader takes 1000 for each: the source has caught up, and is blocked no more."""
    plane = build(pair(Wait.LOCK, wins=NEVER, every=3000))
    plane.hold(1)
    run(plane, 20_000)
    plane.interrupt(0)
    plane.release(1)
    notice = plane.advance(100_000)

    assert (notice.kind, notice.task) == (NoticeKind.INTERRUPTED, 0)
    assert notice.time <= 32_000
