"""Little's law on two curves: whatever the order, the mean time on the way is the area between them."""

import numpy as np
import pytest

from sim.results.tables import Latency


def means(latency, *points, stride=1):
    """A point is a time, records emitted, records served."""
    times, emitted, served = (np.array(column, float) for column in zip(*points, strict=True))
    return latency.means(times, emitted, served, stride).tolist()


def test_a_constant_delay_is_found_whatever_the_pace():
    """One record a ns, then three: each is served 7 ns after it was emitted."""
    emitted = [*range(11), *range(13, 92, 3)]
    served = [*[0] * 7, *emitted][: len(emitted)]

    found = means(Latency(0, 0, 0), *list(zip(range(30), emitted, served, strict=False)), stride=10)

    assert [pytest.approx(7)] * 3 == found


def test_a_standstill_counts_for_those_who_wait():
    """Ten records by time 10, all served between 110 and 120."""
    found = means(Latency(0, 0, 0), (10, 10, 0), (110, 10, 0), (120, 10, 10), (130, 10, 10))

    assert found == [-1, -1, 110, -1]


def test_the_idle_time_of_nobody_counts():
    """Nothing on the way: what comes later has not waited since then."""
    found = means(Latency(0, 5, 5), (1000, 5, 5), (1001, 6, 5), (1003, 6, 6), stride=3)

    assert found == [1.5]  # emitted between 1000 and 1001, served between 1001 and 1003


RESTORED = ((8, 2, 0), (10, 10, 8), (100, 5, 3), (110, 10, 5), (120, 10, 10))


def test_a_restored_source_emits_again():
    """Records 5 to 10 leave a second time at 100; those restored in flight (3 to 5) left when they did, from 8.25 to 8.75."""
    _, _, _, restored, again = means(Latency(0, 0, 0), *RESTORED)

    assert restored == 105 - 8.5
    assert again == 115 - 105


def test_points_may_come_in_any_parts():
    """A mean knows the points so far, not how many came with it."""
    joined, parts = Latency(0, 0, 0), Latency(0, 0, 0)

    assert means(joined, *RESTORED) == [mean for point in RESTORED for mean in means(parts, point)]
