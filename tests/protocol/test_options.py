"""When a barrier is a priority barrier."""

import pytest

from sim.protocol.options import AlignmentType, BarrierOptions

TIMEOUT = BarrierOptions(100, aligned_timeout_ns=50)


@pytest.mark.parametrize(
    ("options", "now", "converted", "priority"),
    [
        (BarrierOptions(100, AlignmentType.UNALIGNED), 100, False, True),
        (BarrierOptions(100), 10_000, True, False),
        (TIMEOUT, 149, True, False),
        (TIMEOUT, 150, True, True),
        (TIMEOUT, 150, False, False),
        (TIMEOUT.on_forced_edge(), 150, True, False),
    ],
)
def test_a_barrier_overtakes_from_its_deadline_on(options, now, converted, priority):
    """If its sender converts what still waits in its output queue; a forced aligned one never does."""
    assert priority is options.has_priority(now, converted=converted)
