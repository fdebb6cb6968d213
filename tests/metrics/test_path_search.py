"""Small journals made by hand: what their critical paths wait for."""

from sim.metrics.critical_path import Graph, PathKind
from sim.metrics.journal import Entry, Happening
from sim.metrics.path_search import critical_path
from sim.metrics.stats import CheckpointStats

GRAPH = Graph(writers=(0, 1), readers=(2, 2), groups=(0, 1, 2))
"""Two sources, 0 and 1, and their reader 2 behind channels 0 and 1."""


def path(*happenings):
    """(kind, ms) of its parts, if the reader acknowledges at 600 ms."""
    story = [Entry(time_ns, happening, 1, task, number) for time_ns, happening, task, number in happenings]
    stats = CheckpointStats(1, 0, 3, "COMPLETED", 600, 3)
    return [(part.kind, part.duration_ns) for part in critical_path(stats, story, GRAPH).parts]


def test_the_timeout_counts_from_the_trigger():
    """The first barrier came at 100; the one of channel 1 set out at 30 and was missing at 300, when the timeout let it overtake."""
    assert [(PathKind.TRIGGER, 5), (PathKind.TASK_THREAD, 25), (PathKind.TIMEOUT, 270), (PathKind.ASYNC_WORK, 300)] == path(
        (5, Happening.TASKS_TRIGGERED, -1, 0),
        (10, Happening.TRIGGER_RECEIVED, 0, 0),
        (10, Happening.SNAPSHOT_BEGUN, 0, 0),
        (10, Happening.BARRIER_FORWARDED, 0, 0),
        (30, Happening.TRIGGER_RECEIVED, 1, 0),
        (30, Happening.SNAPSHOT_BEGUN, 1, 0),
        (30, Happening.BARRIER_FORWARDED, 1, 0),
        (100, Happening.BARRIER_ARRIVED, 2, 0),
        (300, Happening.INPUT_PRIORITISED, 2, 0),
        (300, Happening.SNAPSHOT_BEGUN, 2, 0),
        (300, Happening.BARRIER_FORWARDED, 2, 0),
        (300, Happening.SYNC_FINISHED, 2, 0),
        (600, Happening.STATE_WRITTEN, 2, 0),
        (600, Happening.ASYNC_FINISHED, 2, 0),
        (600, Happening.ACKNOWLEDGED, 2, 0),
    )


def test_a_timeout_before_the_missing_barrier_set_out():
    """Its writer was late itself: nothing that overtakes was missing, and the way of the first barrier is told."""
    found = path(
        (5, Happening.TASKS_TRIGGERED, -1, 0),
        (10, Happening.TRIGGER_RECEIVED, 0, 0),
        (10, Happening.SNAPSHOT_BEGUN, 0, 0),
        (10, Happening.BARRIER_FORWARDED, 0, 0),
        (100, Happening.BARRIER_ARRIVED, 2, 0),
        (300, Happening.INPUT_PRIORITISED, 2, 0),
        (300, Happening.SNAPSHOT_BEGUN, 2, 0),
        (300, Happening.BARRIER_FORWARDED, 2, 0),
        (300, Happening.SYNC_FINISHED, 2, 0),
        (600, Happening.STATE_WRITTEN, 2, 0),
        (600, Happening.ASYNC_FINISHED, 2, 0),
        (600, Happening.ACKNOWLEDGED, 2, 0),
    )

    assert [(PathKind.QUEUE, 90), (PathKind.TIMEOUT, 200), (PathKind.ASYNC_WORK, 300)] == found[2:]
