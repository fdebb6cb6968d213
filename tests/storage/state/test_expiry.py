"""Keys that expire: how many are alive, whatever came before and however often somebody asks."""

from fractions import Fraction
from math import exp

import pytest

from sim.storage.changelog import Cohort, Expiry, ExpiryTurnover, together

S = 1_000_000_000
TTL, ENTRY = 100 * S, 1000


def grown(seconds, *, every=1, per_second=10_000, rewritten=0, size_bytes=0):
    """After so many seconds with so many bytes in new keys each, and so many entries rewritten."""
    expiry = Expiry(TTL, size_bytes, ENTRY)
    for at in range(every, seconds + 1, every):
        turnover = expiry.advance(per_second * every, rewritten * every, at * S)
        assert turnover.live_bytes == expiry.live_bytes
    return expiry


@pytest.mark.parametrize(
    ("seconds", "expected"), [(50, 500_000), (100, 1_000_000), (150, 1_000_000), (1000, 1_000_000)]
)
@pytest.mark.parametrize("every", [1, 10, 50])
def test_new_keys_level_off_at_their_rate_times_the_time_to_live(seconds, expected, every):
    """10 kB/s for 100 s are 1 MB: the steady size, however rare the snapshots are."""
    assert expected == pytest.approx(grown(seconds, every=every).live_bytes, rel=0.01)


@pytest.mark.parametrize(("seconds", "expected"), [(25, 750_000), (75, 250_000), (100, 0)])
def test_keys_of_the_beginning_are_of_all_ages(seconds, expected):
    """1 MB that nothing renews is gone after one time to live, evenly."""
    assert expected == pytest.approx(grown(seconds, per_second=0, size_bytes=1_000_000).live_bytes, abs=100)


def test_a_key_that_is_rewritten_stays():
    """1,000 keys, 50 rewritten per second: one is missed for 100 s with probability exp(-5), and goes.  Unwritten, all would go."""
    expiry = Expiry(TTL, 0, ENTRY)
    expiry.stand((Cohort(0, 0, 1_000_000),), 0)
    for at in range(1, 105):
        expiry.advance(0, 50, at * S)

    assert 1_000_000 * (1 - exp(-5)) == pytest.approx(expiry.live_bytes, abs=3000)


def test_what_expires_and_what_lives_is_what_there_was():
    """To the byte, with growth and rewrites in steps of odd lengths."""
    expiry, live_bytes, now_ns = Expiry(TTL, 123_457, ENTRY), 123_457, 0
    for step in (1, 999, 12_345_678_901, 3, 170 * S, 31 * S):
        now_ns += step
        turnover = expiry.advance(1 + step // 77, step % 13, now_ns)
        assert live_bytes + 1 + step // 77 == turnover.live_bytes + turnover.expired_bytes
        live_bytes = turnover.live_bytes


def test_a_restored_key_keeps_the_time_it_was_written():
    """Half of the keys expired while nobody ran."""
    before = grown(100)
    after = Expiry(TTL, 0, ENTRY)
    after.stand(together([(before.ages, Fraction(1))]), 150 * S)

    assert ExpiryTurnover(500_000, 500_000) == after.advance(0, 0, 150 * S)


def test_a_rescaled_task_has_the_shares_of_its_key_groups():
    """Half of one subtask and a quarter of another, in the order of their ages."""
    first, second = (Cohort(0, 10, 100),), (Cohort(5, 6, 40), Cohort(20, 30, 80))

    expected = (Cohort(0, 10, 50), Cohort(5, 6, 10), Cohort(20, 30, 20))
    assert expected == together([(first, Fraction(1, 2)), (second, Fraction(1, 4))])
