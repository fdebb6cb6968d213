"""Rule W3: where sources wait, and what mails and outputs make of it."""

from dataclasses import replace

import pytest

from sim.plane.interface import Notice, NoticeKind, ThreadState
from sim.plane.spec import Wait
from tests.plane.lab import edge, run, source, task, vertex, world

ALWAYS, NEVER = 1 << 32, 0


def pair(waits, *, wins=ALWAYS, every=None, reader_ns=1000):
    """A source of records of 10 ns, and its slow reader; one buffer each, and two of overdraft."""
    writer = source(every=every)
    writer = replace(writer, source=replace(writer.source, waits=waits, wins=wins))
    return world([writer, vertex(service=(reader_ns,))], [edge()], exclusive=1, floating=0, overdraft=2)


def test_W3_in_poll_a_source_is_busy_until_its_record_is_due(build):
    """Records are due at 0, 100, 200 and take 10: a mail of 50 is let in at 110."""
    plane = build(pair(Wait.POLL, every=100, reader_ns=1))
    run(plane, 50)
    plane.interrupt(0)

    assert task(plane, 0, "state", "served") == (ThreadState.BUSY, 1)
    assert Notice(110, NoticeKind.SAFE, 0) == plane.advance(10_000)
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

    assert (notice.kind, notice.task) == (NoticeKind.SAFE, 0)
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

    assert (notice.kind, notice.task) == (NoticeKind.SAFE, 0)
    assert notice.time <= 32_000
