"""Who announces which limit, and when a subtask waits for it."""

import pytest

from sim.protocol.event_time import NO_LIMIT, AlignedReading, Group


def test_the_limit_is_the_least_watermark_and_the_drift():
    group = Group()
    for task, watermark in ((0, 70), (3, 50), (0, 90)):
        group.report(task, watermark)

    assert group.limit(20) == 50 + 20


def test_an_idle_subtask_limits_nobody():
    """If all are idle there is no limit, whatever the drift."""
    group = Group()
    group.report(0, NO_LIMIT)
    group.report(1, 50)
    assert group.limit(20) == 70
    group.report(1, NO_LIMIT)

    assert group.limit(20) == NO_LIMIT


def test_without_a_limit_nobody_waits():
    reading = AlignedReading(0)

    assert not reading.waits(10**18)


def test_without_a_buffer_the_latest_watermark_is_judged():
    reading = AlignedReading(0)
    reading.limit_ns = 70

    assert [reading.waits(watermark) for watermark in (70, 71)] == [False, True]


@pytest.mark.parametrize(
    ("samples", "waits"), [((80, 90), False), ((60, 80, 90), False), ((80, 90, 100), True), ((60, 80, 90, 100), True)]
)
def test_the_sample_of_three_intervals_ago_is_judged(samples, waits):
    reading = AlignedReading(3)
    reading.limit_ns = 70
    for watermark in samples:
        reading.sample(watermark)

    assert waits == reading.waits(1000)
