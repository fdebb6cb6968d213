"""Rule P8: what a plane counts of a task since it was built, whatever the task is started at."""

from tests.plane.lab import channel, pipe, run, task
from tests.plane.test_rules_restarts import begin_again, reader, writer


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
