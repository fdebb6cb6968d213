"""The options of barriers on their way, and the traits with which their markers travel."""

from types import SimpleNamespace

from sim.runtime.context import BarriersInTransit

ALIGNED = SimpleNamespace(unaligned=False, timeoutable=False)


def test_a_thousand_checkpoints_are_remembered():
    transit = BarriersInTransit()
    for checkpoint in range(1, 1001):
        transit.send(checkpoint, 0, 0, ALIGNED)
    assert transit.was_sent(1, 0, 0)
    transit.send(1001, 0, 0, ALIGNED)
    assert [min(transit._sent), max(transit._sent)] == [2, 1001]
    transit.send(1001, 1, 0, ALIGNED)
    assert len(transit._sent) == 1000
