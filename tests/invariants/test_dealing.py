"""A checkpoint dealt out to another parallelism: sums where subtasks differ in number, each on its own where they do not."""

from fractions import Fraction

import numpy as np

from sim.invariants.counts import RecordTally
from sim.invariants.state import RestoredState, Shape, Stamp, redistribution_errors, state_redistribution_errors


def shape(sources, sinks):
    """Two vertices, all to all."""
    tasks = np.arange(sources), np.arange(sources, sources + sinks)
    return Shape(("source", "sink"), tasks, ((0, 1),), (np.arange(sources * sinks),))


def tally(served, read, written, late=None):
    return RecordTally(
        *(np.array(column) for column in (served, late or [0] * len(served), read, written)), np.ones(len(served), bool)
    )


def facts(old, new):
    return [violation.fact for violation in redistribution_errors(5, "restart", old, new)]


TWO = shape(1, 2), tally([9, 4, 3], [4, 3], [5, 4])  # two records in flight
THREE = shape(1, 3)


def test_a_vertex_that_keeps_its_tasks_keeps_them_one_by_one():
    """The first subtask that differs is told."""
    assert facts(TWO, (TWO[0], tally([9, 3, 4], [4, 3], [5, 4]))) == [
        "4 records are served by sink in the checkpoint, 3 in the new tasks (task 0)",
    ]
    assert facts(TWO, (TWO[0], tally([9, 4, 2], [4, 3], [5, 4]))) == [
        "3 records are served by sink in the checkpoint, 2 in the new tasks (task 1)",
    ]


def test_of_a_vertex_with_other_tasks_the_sum_counts():
    forgetful = THREE, tally([9, 3, 3, 0], [0, 0, 0], [1, 1, 0])

    assert facts(TWO, forgetful) == ["7 records are served by sink in the checkpoint, 6 in the new tasks"]


def test_what_is_in_flight_is_dealt_too():
    assert facts(TWO, (THREE, tally([9, 3, 3, 1], [0, 0, 0], [1, 0, 0]))) == [
        "2 records are in flight between source and sink in the checkpoint, 1 in the new channels"
    ]


def test_streams_that_stay_are_compared_channel_by_channel():
    assert facts(TWO, (TWO[0], tally([9, 4, 3], [4, 2], [6, 4]))) == [
        "5 records are written between source and sink in the checkpoint, 6 in the new channels (channel 0)",
        "3 records are read between source and sink in the checkpoint, 2 in the new channels (channel 1)",
    ]


def test_shapes_are_compared_by_their_numbers():
    assert TWO[0].channels_alike(shape(2, 1))
    assert not TWO[0].channels_alike(THREE)
    assert [set(), {1}] == [TWO[0].resized(other) for other in (shape(1, 2), THREE)]


FIRST, SECOND = Stamp(0, 1, "map", 0), Stamp(0, 1, "map", 1)


def dealt(*subtasks):
    """Each subtask: (stamp, share) ..."""
    restored_parts = [
        [RestoredState("keyed", stamp, Fraction(share), 10) for stamp, share in several] for several in subtasks
    ]
    return [
        violation.fact
        for violation in state_redistribution_errors(5, "restart", "map", {"keyed": (FIRST, SECOND)}, restored_parts)
    ]


def test_shares_of_state_add_up_to_one():
    assert dealt([(FIRST, "1/2")], [(FIRST, "1/2"), (SECOND, 1)]) == []
    assert dealt([(FIRST, "1/2"), (SECOND, 1)]) == ["0.5 times the keyed state of map[0] at checkpoint 1 comes back"]
    assert dealt([(FIRST, 1)], [(FIRST, 1)]) == [
        "2 times the keyed state of map[0] at checkpoint 1 comes back (and 1 more of map)"
    ]


def test_state_of_nobody_is_told():
    assert dealt([(FIRST, 1), (SECOND, 1), (Stamp(0, 1, "map", 5), 1)]) == [
        "1 times the keyed state of map[5] at checkpoint 1 comes back"
    ]
