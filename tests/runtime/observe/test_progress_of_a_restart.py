"""How far a restarted job has come, number by number: what it repeats, how far it is from where it was, and when it is looked at again."""

from types import SimpleNamespace

import numpy as np
import pytest

from sim.results.tables import RecoveryStats
from sim.runtime.sampling import LONGEST_NS, LOOK_NS, CatchUp
from tests.laws.small_jobs import chain

SOURCES, OTHERS = (0, 1), (2, 3, 4, 5)
"""Two subtasks each of source, stage and sink."""


class Usual:
    """What usually waits: nothing is known of it unless a test says so."""

    def __init__(self, waiting=None, flying=None, due=0):
        self.catching_up = 0
        self.due = due
        self._waiting, self._flying = waiting, flying

    def waiting(self, _):
        return self._waiting

    def flying(self, _):
        return self._flying

    def in_log(self, task, now, emitted):
        return max(0, self.due - emitted)


def context(served, in_flight=(0,) * 6, origin=None):
    plane = SimpleNamespace(served=lambda: np.array(served), in_flight=lambda: np.array(in_flight))
    layout = SimpleNamespace(vertex=[0, 0, 1, 1, 2, 2], task_gates=[(), (), (0,), (1,), (2,), (3,)])
    return SimpleNamespace(
        plane=plane, layout=layout, scenario=SimpleNamespace(job=chain(2)), env=SimpleNamespace(now=50), origin=origin
    )


def begun(served=(90, 80, 60, 70, 30, 40), at=(50, 60, 40, 40, 10, 15), usual=None, number=1, **options):
    """A restart: where the tasks stood, and where their checkpoint puts them."""
    parts = {task: SimpleNamespace(position=SimpleNamespace(served=position)) for task, position in enumerate(at)}
    stats = RecoveryStats(number, "task", "killed", 40, 45, 6)
    return CatchUp(context(served, **options), stats, parts, usual or Usual())


def test_sources_repeat_what_came_behind_the_checkpoint():
    assert begun().stats.replayed_records == 40 + 20
    assert begun(at=(100, 60, 0, 0, 0, 0)).stats.replayed_records == 20, "the first one had not come so far"


def test_sinks_serve_again_what_they_had_served_since():
    assert begun().stats.served_again == 20 + 25


def test_it_counts_as_catching_up_from_the_beginning():
    usual = Usual()
    begun(usual=usual)
    assert usual.catching_up == 1


def test_a_job_that_begins_from_a_snapshot_stood_where_the_job_before_it_ended():
    origin = SimpleNamespace(served=np.array([55, 61, 0, 0, 11, 15]))
    first, second = begun(origin=origin), begun(origin=origin, number=2)

    assert (first.stats.replayed_records, first.stats.served_again) == (5 + 1, 1)
    assert first.flying is None, "its channels are others"
    assert second.stats.replayed_records == 60


def test_what_waited_when_it_failed_is_usual_if_nothing_else_is_known():
    assert tuple(getattr(begun(usual=Usual(due=100), in_flight=(3,) * 6), name) for name in ("waiting", "flying")) == (
        10 + 20,
        3 * 6,
    )
    assert tuple(getattr(begun(usual=Usual(7.0, 2.0, due=100)), name) for name in ("waiting", "flying")) == (7.0, 2.0)


@pytest.mark.parametrize(
    ("served", "usual", "in_flight", "distance"),
    [
        ((90, 80), Usual(0.0, 0.0), 0, 0),
        ((85, 70), Usual(0.0, 0.0), 0, 15),
        ((99, 70), Usual(0.0, 0.0), 0, 10),
        ((90, 80), Usual(5.0, 0.0, due=93), 0, 3 + 13 - 5),
        ((90, 80), Usual(50.0, 0.0, due=93), 0, 0),
        ((90, 80), Usual(0.0, 4.0), 2, 2 * 6 - 4),
        ((90, 80), Usual(0.0, 40.0), 2, 0),
    ],
    ids=["there", "behind", "one is ahead", "logs are longer", "logs are shorter", "more in flight", "less in flight"],
)
def test_the_distance_counts_sources_logs_and_what_is_in_flight(served, usual, in_flight, distance):
    progress = begun(usual=usual)
    progress.context = context((*served, 0, 0, 0, 0), in_flight=(in_flight,) * 6)

    assert distance == progress._distance()


def test_without_comparable_channels_nothing_in_flight_counts():
    progress = begun(origin=SimpleNamespace(served=np.array([90, 80, 0, 0, 0, 0])), in_flight=(9,) * 6)

    assert progress._distance() == 0


def test_the_first_record_is_that_of_a_reader():
    assert set(OTHERS) == set(begun().readers)
    alone = CatchUp(
        context((90, 80, 0, 0, 0, 0)),
        RecoveryStats(1, "task", "killed", 40, 45, 1),
        {task: SimpleNamespace(position=SimpleNamespace(served=50)) for task in SOURCES},
        Usual(),
    )
    assert dict.fromkeys(SOURCES, 50) == alone.readers, "a region of sources"


@pytest.mark.parametrize(
    ("most", "distance", "spent_ns", "wait_ns"),
    [
        (100, 50, 10**9, 10**9 // 2),
        (100, 90, 10**9, LONGEST_NS),
        (100, 1, 10**9, 10 * LOOK_NS),
        (100, 100, 3 * 10**8, 3 * 10**8),
        (100, 100, 10**10, LONGEST_NS),
    ],
    ids=["half way", "a long way", "almost there", "no progress yet", "no progress for long"],
)
def test_it_is_looked_at_again_half_way(most, distance, spent_ns, wait_ns):
    """Half of what is left at the pace so far, from a tenth of a second to one."""
    assert wait_ns == begun()._half_way(most, distance, spent_ns)
