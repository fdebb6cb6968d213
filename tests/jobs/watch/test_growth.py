"""State that grows: how quickly, and when a limit is passed."""

from math import inf

import pytest

from sim.jobs.watch.growth import AHEAD_S, Growth, growths, is_news, passing
from sim.jobs.watch.look import SeenCheckpoint

HOUR_S = 3600


def points(size, count=40):
    """A checkpoint a minute; `size`: minute -> bytes."""
    return [SeenCheckpoint("a" * 32, n, "COMPLETED", n * 60_000, 100.0, state={"count": size(n)}) for n in range(count)]


def test_the_slope_is_that_of_most():
    """Three checkpoints of another size turn nothing."""
    (found,) = growths(points(lambda n: 10**9 if n in (7, 20, 33) else 10**7 + 600_000 * n))

    assert ("count", pytest.approx(10_000, rel=0.01)) == (found.vertex, found.per_second)
    assert found.low <= found.per_second <= found.high
    assert found.now_bytes == pytest.approx(10**7 + 600_000 * 39, rel=0.05)


def test_what_stands_still_or_falls_does_not_grow():
    """Nor what moves up and down, nor what is too short to tell."""
    assert growths(points(lambda _: 10**7)) == []
    assert growths(points(lambda n: 10**7 - 10_000 * n)) == []
    assert growths(points(lambda n: 10**7 + (n % 5) * 10**5)) == []
    assert growths(points(lambda n: 10**7 + 600_000 * n, count=8)) == []


@pytest.mark.parametrize("hours", [0.5, 3, 20, 200, 700])
def test_a_limit_is_passed_when_the_curve_says(hours):
    """Durations that follow the size: the time is that of the size, within a third; a quicker growth passes earlier."""
    growth = Growth("count", 10e6, 1e3, 0.5e3, 2e3)
    limit_ms = 100 * (1 + 1e3 * hours * HOUR_S / 10e6)
    found = passing([growth], 100.0, limit_ms, lambda sizes: sizes["count"] / 1e3)

    assert hours * HOUR_S == pytest.approx(found.at_s, rel=0.35)
    assert found.earliest_s == pytest.approx(found.at_s / 2)
    assert found.latest_s == pytest.approx(found.at_s * 2)


def test_a_limit_that_is_not_passed_or_passed_already():
    growth = Growth("count", 10e6, 1.0, 1.0, 1.0)

    assert inf == passing([growth], 100.0, 10**9, lambda _: 100.0).at_s
    assert passing([growth], 100.0, 50.0, lambda _: 100.0).at_s == 0
    assert (
        AHEAD_S[-1]
        >= passing([growth], 100.0, 200.0, lambda sizes: inf if sizes["count"] > 10e6 + 3600 else 100.0).at_s
        < inf
    )


def test_news_is_another_time():
    assert not is_news(3600, 3000)
    assert is_news(3600, 1800)
    assert is_news(inf, 10.0)
    assert not is_news(inf, inf)
