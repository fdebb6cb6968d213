"""Lanes: what overlaps is drawn side by side."""

from sim.timeline.events import TimelineSlice, lanes


def spans(*pairs):
    return [[(row.begin_ns, row.end_ns) for row in lane] for lane in lanes(TimelineSlice("", *pair, {}) for pair in pairs)]


def test_what_follows_stays_in_the_lane():
    assert [[(0, 2), (2, 5)]] == spans((2, 5), (0, 2))


def test_what_overlaps_gets_a_lane():
    """The first lane that is free."""
    assert [[(0, 5), (6, 7)], [(1, 6)]] == spans((0, 5), (1, 6), (6, 7))
