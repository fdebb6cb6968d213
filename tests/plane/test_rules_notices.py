"""What each kind of notice tells: fields that apply have their values, all others are -1 or False."""

from dataclasses import replace

from sim.plane.interface import MAX_LOOKS, Notice, NoticeKind
from sim.plane.spec import Lag
from tests.plane.lab import edge, next_notice, pipe, run, source, vertex, world


def test_a_safe_point_of_a_task_that_waits_for_late_outputs_names_the_task(build):
    plane = build(world([source(total=1), replace(vertex(), lag=Lag((100,), 2))], [edge()]))
    run(plane, 15)
    plane.wait_for_late(1)
    run(plane, 50)
    plane.interrupt(1)

    assert Notice(50, NoticeKind.SAFE, 1) == next_notice(plane)


def test_looks_see_what_was_served_at_each_time_up_to_a_notice(build):
    """As many as `advance` and `served` would show one by one; what is pending comes first."""
    plane, stepwise = build(pipe(total=9)), build(pipe(total=9))
    expected = [(stepwise.advance(at), stepwise.served().tolist())[1] for at in (15, 40, 65)]
    rows, notice = plane.look(15, 25, 3)

    assert (expected, Notice(65, NoticeKind.QUIET)) == (rows.tolist(), notice)

    rows, notice = plane.look(70, 10, 5)

    assert [stepwise.advance(at) for at in (70, 80, 90, 100)][-1] == notice
    assert ([notice.time, plane.now], notice.kind) == ([90, 90], NoticeKind.EXHAUSTED)
    assert rows[:, 0].tolist() == [6, 7, 8]

    plane.interrupt(1)
    rows, notice = plane.look(400, 10, MAX_LOOKS + 5)
    assert (len(rows), notice.kind) == (0, NoticeKind.SAFE)
    assert len(plane.look(400, 10, MAX_LOOKS + 5)[0]) == MAX_LOOKS
