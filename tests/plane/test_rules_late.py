"""Rules L1-L10: outputs that leave some time after the service of their record, or when they are let go; who waits for them; firing."""

from dataclasses import replace

import pytest

from sim.plane.interface import Marker, NoticeKind, OutputDelay, ThreadState, Trait
from tests.plane.lab import begin_again, edge, pool, run, source, state, task, vertex, world


def chain(lag, *, total=4, last=10, **options):
    """Task 0 -> task 1, whose outputs are late -> task 2."""
    vertices = [source(total=total), replace(vertex("b"), lag=lag), vertex("c", service=(last,))]
    return world(vertices, [edge(0, 1), edge(1, 2)], **options)


def written(plane, *times):
    """Records the second task has written just before these times."""
    counts = []
    for time in times:
        run(plane, time)
        counts.append(task(plane, 1, "records_out"))
    return counts


def test_with_a_full_list_the_next_record_stays_in_hand(build):
    """L2: the third, served at 40, becomes late when the first leaves at 120; the fourth is served then and leaves 100 after the second."""
    plane = build(chain(OutputDelay((100,), 2)))
    run(plane, 60)

    assert (state(plane, 1), task(plane, 1, "served"), plane.position(1).late) == (ThreadState.BUSY, 3, 3)
    assert written(plane, 121, 131, 220, 221, 230, 231) == [1, 2, 2, 3, 3, 4]


def test_a_record_in_hand_keeps_the_thread(build):
    """L2, E4: neither a safe point nor a hold before there is room for it."""
    plane = build(chain(OutputDelay((100,), 2)))
    run(plane, 60)
    plane.interrupt(1)
    with pytest.raises(ValueError, match=r"hold|held"):
        plane.hold(1)
    notice = next(
        notice
        for notice in iter(lambda: plane.advance(1000), None)
        if notice.kind in (NoticeKind.INTERRUPTED, NoticeKind.REACHED_TIME)
    )

    assert (notice.kind, notice.time) == (NoticeKind.INTERRUPTED, 120)


def test_none_overtakes_the_one_ahead(build):
    """L2: whatever the times drawn, outputs leave in the order of the records."""
    plane = build(chain(OutputDelay((0, 300), 10), total=20))

    assert written(plane, 50, 5000) == [0, 20]
    assert int(plane.channels()[1]["records_in"]) == 20


def test_late_outputs_do_not_wait_for_the_pool(build):
    """L3: ten late records fill the pool of ten and the overdraft of two, and block the thread inside the next one."""
    plane = build(chain(OutputDelay((100,), 20), total=20, last=100_000, exclusive=1, floating=3))
    run(plane, 5000)

    assert (state(plane, 1), pool(plane, 1)) == (ThreadState.HARD, 4 + 2)


def test_what_waits_to_be_let_go_waits(build):
    """L2, L5: without times nothing leaves by itself, then exactly the records named."""
    plane = build(chain(OutputDelay()))
    assert written(plane, 1000) == [0]
    plane.release_late_outputs(1, 3)
    assert written(plane, 1001) == [3]
    plane.release_late_outputs(1, 1)  # less than before: nothing new
    assert written(plane, 1002) == [3]
    plane.release_late_outputs(1, 4)

    assert written(plane, 1003) == [4]


def test_late_records_are_late_again_after_a_start(build):
    """L5, P4: a position knows which outputs are not written; started from it they leave 100 after the start, and none twice."""
    plane = build(chain(OutputDelay((100,), 10)))
    run(plane, 125)
    positions = {t: plane.position(t) for t in range(3)}
    assert (positions[1].served, positions[1].late) == (4, 3)
    run(plane, 400)
    plane.halt([0, 1, 2])
    begin_again(plane, positions)
    run(plane, 499)
    assert int(plane.channels()[1]["records_in"]) == 1
    run(plane, 700)

    assert int(plane.channels()[1]["records_in"]) == 4
    assert plane.position(1).late == 0


def test_late_records_beyond_the_capacity_are_all_in_hand_behind_a_start(build):
    """L2, L5: a rescale deals out more than one task may have.  They become late one by one, as there is room, and keep the thread."""
    before, plane = build(chain(OutputDelay((100,), 10))), build(chain(OutputDelay((100,), 1)))
    run(before, 60)
    positions = {t: before.position(t) for t in range(3)}
    assert (positions[1].served, positions[1].late) == (4, 4)
    plane.halt([0, 1, 2])
    begin_again(plane, positions)
    run(plane, 50)
    assert (state(plane, 1), plane.position(1).late) == (ThreadState.BUSY, 4)

    assert written(plane, 100, 101, 200, 201, 300, 301, 400, 401) == [0, 1, 1, 2, 2, 3, 3, 4]
    assert (state(plane, 1), plane.position(1).late) == (ThreadState.IDLE, 0)


def test_a_position_is_late_with_no_more_than_it_served(build):
    plane = build(chain(OutputDelay((100,), 10)))
    positions = {t: plane.position(t) for t in range(3)}
    positions[1] = positions[1]._replace(late=1)

    with pytest.raises(ValueError, match="late"):
        plane.start(positions)


def notices(plane, until):
    """(time, kind) of what is reported before then, but for the end of the source."""
    seen = []
    while plane.now < until:
        notice = plane.advance(until)
        if notice.kind not in (NoticeKind.REACHED_TIME, NoticeKind.EXHAUSTED):
            seen.append((notice.time, notice.kind))
    return seen


def test_who_waits_for_late_outputs_takes_nothing_before_them(build):
    """L6: told at 45, with the records served at 20, 30 and 40 late and the fourth in service until 50: the fifth is begun at 150."""
    plane = build(chain(OutputDelay((100,), 10), total=5))
    run(plane, 45)
    plane.wait_for_late(1)

    assert notices(plane, 151) == [(150, NoticeKind.DELAYED_OUTPUTS_WRITTEN)]
    assert (task(plane, 1, "served"), plane.position(1).late, state(plane, 1)) == (4, 0, ThreadState.BUSY)
    assert written(plane, 261) == [5]
    assert notices(plane, 1000) == []


def test_who_waits_for_late_outputs_runs_mails(build):
    """L6: between records, at the moment asked for, and the waiting goes on; a marker with priority waits like the rest."""
    plane = build(chain(OutputDelay((100,), 10), total=5))
    run(plane, 45)
    plane.wait_for_late(1)
    run(plane, 60)
    plane.interrupt(1)
    plane.forward(0, Marker(1, Trait.PRIORITY))

    assert notices(plane, 200) == [
        (60, NoticeKind.INTERRUPTED),
        (150, NoticeKind.DELAYED_OUTPUTS_WRITTEN),
        (150, NoticeKind.ARRIVED),
    ]


def test_a_start_ends_the_waiting(build):
    """P3: of the verb nothing is left."""
    plane = build(chain(OutputDelay((100,), 10)))
    run(plane, 45)
    positions = {t: plane.position(t) for t in range(3)}
    plane.wait_for_late(1)
    plane.halt([0, 1, 2])
    begin_again(plane, positions)

    assert NoticeKind.DELAYED_OUTPUTS_WRITTEN not in {kind for _, kind in notices(plane, 2000)}


def fired(plane, until, *, release_late_outputs=4, at=100):
    """All records are served; at some time so many of them are let go."""
    run(plane, at)
    plane.release_late_outputs(1, release_late_outputs)
    return notices(plane, until)


def test_a_record_without_outputs_takes_no_firing(build):
    """L7: two records make one output, so four records fire twice; what is fired and what is written are counted alike."""
    spec = chain(OutputDelay(firing_ns=30, outputs=(1, 2)))
    plane = build(replace(spec, edges=(spec.edges[0], replace(spec.edges[1], fan_out=(1, 2)))))
    fired(plane, 101)

    assert written(plane, 130, 131, 160, 161) == [0, 1, 1, 2]
    assert plane.position(1).late == 0


def test_a_slow_task_fires_slowly(build):
    """L7, T11: as a service, three times as long."""
    plane = build(chain(OutputDelay(firing_ns=30)))
    plane.scale(1, 3, 1)
    fired(plane, 201, at=200)

    assert written(plane, 290, 291, 380, 381) == [0, 1, 1, 2]


def test_nothing_passes_while_a_task_fires(build):
    """L7, L8: a mail and a marker with priority, both there at 110, wait for the last of four outputs at 220."""
    plane = build(chain(OutputDelay(firing_ns=30), total=5))
    fired(plane, 110)
    plane.interrupt(1)
    plane.forward(0, Marker(1, Trait.PRIORITY))

    assert notices(plane, 400) == [(220, NoticeKind.INTERRUPTED), (220, NoticeKind.ARRIVED)]


def test_a_task_that_yields_takes_mails_and_priority_between_two_firings(build):
    """L8: both are there at 110, the first output is written at 130; the firing goes on behind them, and the late ones stay late."""
    plane = build(chain(OutputDelay(firing_ns=30, yields=True), total=5))
    fired(plane, 110)
    plane.interrupt(1)
    plane.forward(0, Marker(1, Trait.PRIORITY))

    assert notices(plane, 131) == [(130, NoticeKind.INTERRUPTED), (130, NoticeKind.ARRIVED)]
    assert plane.position(1).late == 4
    assert written(plane, 131, 160, 161) == [1, 1, 2]


def test_a_task_that_is_held_between_two_firings_goes_on_when_it_is_released(build):
    """L8, E4: the second firing begins at the release."""
    plane = build(chain(OutputDelay(firing_ns=30, yields=True)))
    fired(plane, 110)
    plane.interrupt(1)
    assert next((notice.time, notice.kind) for notice in iter(lambda: plane.advance(200), None)) == (
        130,
        NoticeKind.INTERRUPTED,
    )
    plane.hold(1)
    run(plane, 500)
    plane.release(1)

    assert written(plane, 501, 530, 531) == [1, 1, 2]


def test_a_firing_is_inside_a_record(build):
    """L7, E4: nobody holds the thread meanwhile."""
    plane = build(chain(OutputDelay(firing_ns=30)))
    fired(plane, 110)

    with pytest.raises(ValueError, match=r"hold|held"):
        plane.hold(1)


def test_firing_is_blocked_by_a_full_output(build):
    """L7: as the eleventh output has no segment, the thread is hard blocked and begins no firing before it has one."""
    plane = build(chain(OutputDelay(firing_ns=1), total=20, last=100_000, exclusive=1, floating=3))
    fired(plane, 5000, release_late_outputs=20, at=1000)

    assert (state(plane, 1), pool(plane, 1)) == (ThreadState.HARD, 4 + 2)
    assert plane.position(1).late > 0


def test_what_leaves_after_a_time_is_not_fired():
    """Two ways to leave would be in each other's way."""
    with pytest.raises(ValueError, match="not fired"):
        OutputDelay((100,), 3, firing_ns=10)


def test_what_was_let_go_is_reported_when_it_is_written(build):
    """L9: behind the last of two firings that were let go, not at once, once; records go on behind it."""
    plane = build(chain(OutputDelay(firing_ns=30)))
    fired(plane, 110, release_late_outputs=2)
    plane.report_written(1)

    assert notices(plane, 1000) == [(160, NoticeKind.WRITTEN)]
    assert plane.position(1).late == 2


def test_mails_that_pass_come_before_the_report(build):
    """L8, L9: a mail between two firings, then what was let go."""
    plane = build(chain(OutputDelay(firing_ns=30, yields=True), total=5))
    fired(plane, 110)
    plane.report_written(1)
    plane.interrupt(1)
    plane.forward(0, Marker(1, Trait.PRIORITY))

    assert notices(plane, 400) == [(130, NoticeKind.INTERRUPTED), (130, NoticeKind.ARRIVED), (220, NoticeKind.WRITTEN)]
