"""How far a restarted job has come, number by number: what it repeats, how far it is from where it was, and when it is looked at again."""

from types import SimpleNamespace

import numpy as np
import pytest

from sim.results.tables import RecoveryStats
from sim.runtime.sampling import CatchUp
from tests.laws.small_jobs import chain


class Usual:
    """What usually waits: nothing is known of it unless a test says so."""

    def __init__(self, waiting=None, in_flight_mean=None, due=0):
        self.catching_up = 0
        self.due = due
        self._waiting, self._in_flight_mean = waiting, in_flight_mean

    def waiting(self, _):
        return self._waiting

    def in_flight_mean(self, _):
        return self._in_flight_mean

    def in_log(self, task, now, emitted):
        return max(0, self.due - emitted)


def context(served, in_flight=(0,) * 6, origin=None):
    plane = SimpleNamespace(served=lambda: np.array(served), in_flight=lambda: np.array(in_flight))
    layout = SimpleNamespace(vertex=[0, 0, 1, 1, 2, 2], task_gates=[(), (), (0,), (1,), (2,), (3,)])
    return SimpleNamespace(
        plane=plane,
        layout=layout,
        scenario=SimpleNamespace(job=chain(2)),
        env=SimpleNamespace(now=50),
        origin=origin,
        log=lambda _: SimpleNamespace(segments=["at a rate"]),
    )


def begun(served=(90, 80, 60, 70, 30, 40), at=(50, 60, 40, 40, 10, 15), usual=None, **options):
    """A restart: where the tasks stood, and where their checkpoint puts them."""
    parts = {task: SimpleNamespace(position=SimpleNamespace(served=position)) for task, position in enumerate(at)}
    stats = RecoveryStats(1, "task", "killed", 40, 45, 6)
    return CatchUp(context(served, **options), stats, parts, usual or Usual())


def test_a_rescaled_job_has_to_empty_its_logs():
    """It is rescaled because it was overloaded: being back at that backlog is not what the user waits for."""
    overloaded = Usual(waiting=500.0, due=590)
    snapshot = SimpleNamespace(served=np.array((90, 80, 60, 70, 30, 40)))

    assert begun(usual=overloaded)._distance() == 500 + 510 - 500
    assert begun(usual=overloaded, origin=snapshot)._distance() == 500 + 510


def test_sinks_serve_again_what_they_had_served_since():
    assert begun().stats.served_again == 20 + 25


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
