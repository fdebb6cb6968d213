"""Little's law on two curves: whatever the order, the mean time on the way is the area between them."""

from __future__ import annotations

import pytest

from sim.metrics.latency import Latency


def test_a_constant_delay_is_found_whatever_the_pace():
    """One record a ns, then three: each is served 7 ns after it was emitted."""
    latency, emitted = Latency(0, 0, 0), [*range(11), *range(13, 131, 3)]
    served = [*[0] * 7, *emitted]

    means = []
    for now, (there, here) in enumerate(zip(emitted, served, strict=False)):
        latency.count(now, there, here)
        if now % 10 == 9:
            means.append(latency.mean())

    assert [pytest.approx(7)] * 4 == means[:4]


def test_a_standstill_counts_for_those_who_wait():
    """Ten records by time 10, all served between 110 and 120."""
    latency = Latency(0, 0, 0)
    for now, emitted, served in ((10, 10, 0), (110, 10, 0), (120, 10, 10)):
        latency.count(now, emitted, served)

    assert 110 == latency.mean()
    assert -1 == latency.mean()


def test_the_idle_time_of_nobody_counts():
    """Nothing on the way: what comes later has not waited since then."""
    latency = Latency(0, 5, 5)
    for now, emitted, served in ((1000, 5, 5), (1001, 6, 5), (1003, 6, 6)):
        latency.count(now, emitted, served)

    assert 1.5 == latency.mean()  # emitted between 1000 and 1001, served between 1001 and 1003


def test_a_restored_source_emits_again():
    """Records 5 to 10 leave a second time at 100; those restored in flight (3 to 5) left when they did, from 8.25 to 8.75."""
    latency = Latency(0, 0, 0)
    latency.count(8, 2, 0)
    latency.count(10, 10, 8)
    latency.mean()
    latency.count(100, 5, 3)
    latency.count(110, 10, 5)
    restored = latency.mean()
    latency.count(120, 10, 10)
    again = latency.mean()

    assert 105 - 8.5 == restored
    assert 115 - 105 == again
