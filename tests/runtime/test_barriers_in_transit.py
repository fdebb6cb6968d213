"""The options of barriers on their way, and the traits with which their markers travel."""

from types import SimpleNamespace

import pytest

from sim.model.checkpoint import Barriers
from sim.plane.interface import Trait
from sim.protocol.barrier_modes import barrier_options
from sim.runtime.context import BarriersInTransit, traits

ALIGNED, UNALIGNED = (SimpleNamespace(unaligned=unaligned, timeoutable=False) for unaligned in (False, True))
TIMEOUTABLE = SimpleNamespace(unaligned=False, timeoutable=True)


@pytest.fixture
def transit():
    return BarriersInTransit()


def test_each_writer_and_edge_has_its_own(transit):
    transit.send(1, 0, 5, ALIGNED)
    transit.send(1, 0, 6, UNALIGNED)
    transit.send(1, 2, 5, TIMEOUTABLE)

    assert [transit.options(1, *which) for which in ((0, 5), (0, 6), (2, 5))] == [ALIGNED, UNALIGNED, TIMEOUTABLE]
    assert tuple(transit.was_sent(1, *which) for which in ((0, 5), (2, 6), (1, 5))) == (True, False, False)


def test_where_the_end_of_the_data_stands_for_a_barrier_another_one_of_the_edge_counts(transit):
    """An aligned one if there is one."""
    transit.send(1, 0, 5, UNALIGNED)
    transit.send(1, 3, 6, ALIGNED)
    assert UNALIGNED is transit.options(1, 1, 5)
    transit.send(1, 2, 5, ALIGNED)
    assert ALIGNED is transit.options(1, 1, 5)


def test_an_announcement_carries_the_deadline_of_any_barrier_on_its_edge(transit):
    transit.send(1, 0, 6, TIMEOUTABLE)
    transit.send(1, 1, 5, ALIGNED)
    transit.send(1, 2, 5, TIMEOUTABLE)

    assert TIMEOUTABLE is transit.announced_options(1, 5)


def test_a_thousand_checkpoints_are_remembered(transit):
    for checkpoint in range(1, 1001):
        transit.send(checkpoint, 0, 0, ALIGNED)
    assert transit.was_sent(1, 0, 0)
    transit.send(1001, 0, 0, ALIGNED)
    assert [min(transit._sent), max(transit._sent)] == [2, 1001]
    transit.send(1001, 1, 0, ALIGNED)
    assert len(transit._sent) == 1000


@pytest.mark.parametrize(
    ("barriers", "expected"),
    [
        (Barriers("aligned"), Trait.BLOCKING),
        (Barriers("unaligned"), Trait.PRIORITY),
        (Barriers("aligned-timeout", 9), Trait.BLOCKING | Trait.ANNOUNCED),
        (Barriers("at-least-once"), Trait.NONE),
    ],
    ids=str,
)
def test_barriers_travel_by_their_kind(barriers, expected):
    assert expected == traits(barrier_options(barriers, 0))
