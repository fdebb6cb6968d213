"""Slow episodes of a node: the right share of the time from the first moment on, of the right length; or what was measured."""

from dataclasses import replace
from fractions import Fraction
from statistics import fmean

import pytest

from sim.model.job import Distribution
from sim.model.storage import ObjectStore, SlowPlaces, SlowTrace, Storage
from sim.storage.media.slow_nodes import slowness
from tests.storage.lab import MB, MS, SECOND, Lab, slow

HOUR = 3600 * SECOND


def episodes(options, node, until):
    """(begin, end, factor) one after the other."""
    history, now, found = slowness(options, 1, node), 0, []
    while now < until:
        factor, end = history.at(now)
        found.append((now, end, factor))
        now = end
    return found


@pytest.mark.parametrize(("kind", "cv"), [("exponential", 1.0), ("lognormal", 2.0), ("constant", 1.0)])
@pytest.mark.parametrize("at_s", [0, 40, 5000])
def test_the_share_holds_at_every_moment(kind, cv, at_s):
    """1000 nodes, 20 % of the time slow: at the start, within the first episodes and late, within four standard deviations."""
    options = slow("1/5", 10, lasts_s=60, kind=kind, cv=cv)
    limping = sum(slowness(options, 1, node).at(at_s * SECOND)[0] == 10 for node in range(1000))

    assert abs(limping - 200) < 4 * (1000 * 0.2 * 0.8) ** 0.5


def test_long_episodes_are_met_more_often():
    """What is left of a slow episode at time 0: mean (1 + cv^2) / 2 times that of an episode (inspection paradox)."""
    options = slow("1/2", 10, lasts_s=60, kind="lognormal", cv=1.0)
    first = [slowness(options, 1, node).at(0) for node in range(8000)]

    assert pytest.approx(fmean(until / SECOND for factor, until in first if factor == 10), rel=0.06) == 60


def test_a_measured_series_repeats():
    """Two machines, an hour each: 1 then 4 after half an hour, and always 2; each node starts somewhere."""
    step = ((0, Fraction(1)), (HOUR // 2, Fraction(4)))
    options = SlowPlaces(trace=SlowTrace((step, ((0, Fraction(2)),)), HOUR))
    histories = [episodes(options, node, 10 * HOUR) for node in range(40)]

    assert {"1 4", "2"} == {" ".join(map(str, sorted({factor for _, _, factor in history}))) for history in histories}
    assert {HOUR // 2, HOUR} == {end - begin for history in histories for begin, end, _ in history[1:]}
    assert len({history[0][1] for history in histories}) > 30


def test_a_measured_series_begins_where_it_is_told_to():
    """All nodes at the same moment, the machines in turn, whatever the seed."""
    step = ((0, Fraction(1)), (HOUR // 2, Fraction(4)))
    options = SlowPlaces(trace=SlowTrace((step, ((0, Fraction(2)),)), HOUR, begin_ns=HOUR // 3))
    answers = [slowness(options, seed, node).at(0) for seed in (1, 2) for node in range(4)]

    assert 2 * [(Fraction(1), HOUR // 2 - HOUR // 3), (Fraction(2), HOUR - HOUR // 3)] * 2 == answers


def test_only_the_first_are_ever_slow():
    """Two of five are slow, always."""
    options = replace(slow("1", 20), first=2)

    assert [slowness(options, 1, node).at(HOUR)[0] for node in range(5)] == [20, 20, 1, 1, 1]


def test_requests_to_a_slow_prefix_take_longer():
    """10 ms and 5 MB at 50 MB/s take 110 ms; ten times that under prefix 0, for writing and for reading."""
    options = ObjectStore(
        50 * MB, Distribution(10 * MS), part_bytes=5 * MB, prefixes=4, slow=replace(slow("1", 10), first=1)
    )
    lab = Lab(Storage(object_store=options))
    prefixes = {name: lab.storage.medium.prefix((name, 0)) for name in map(str, range(12))}
    took = {name: lab.took_ms(lab.storage.write(5 * MB, name, 0)) for name in prefixes}

    assert {0, 1, 2, 3} == set(prefixes.values())
    assert {name: 1100 if prefix == 0 else 110 for name, prefix in prefixes.items()} == took
