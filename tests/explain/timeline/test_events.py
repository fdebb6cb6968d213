"""Lanes: what overlaps is drawn side by side."""

from sim.explain.timeline import TimelineSlice, lanes


def spans(*pairs):
    return [
        [(row.begin_ns, row.end_ns) for row in lane] for lane in lanes(TimelineSlice("", *pair, {}) for pair in pairs)
    ]


def test_what_follows_stays_in_the_lane():
    assert spans((2, 5), (0, 2)) == [[(0, 2), (2, 5)]]


def test_what_overlaps_gets_a_lane():
    """The first lane that is free."""
    assert spans((0, 5), (1, 6), (6, 7)) == [[(0, 5), (6, 7)], [(1, 6)]]
