"""Small journals made by hand: what their critical paths wait for."""

import pytest

from sim.results.critical_path import Graph, PathKind, critical_path
from sim.results.journal import Entry, Happening
from sim.results.tables import CheckpointStats

GRAPH = Graph(writers=(0, 1), readers=(2, 2), groups=(0, 1, 2))
"""Two sources, 0 and 1, and their reader 2 behind channels 0 and 1."""


BEGUN = (Happening.SNAPSHOT_BEGUN, Happening.BARRIER_FORWARDED)
TRIGGERED = (Happening.TRIGGER_RECEIVED, *BEGUN)


def path(*story, graph=GRAPH):
    """(kind, ms) of its parts: calls are sent at 5 ms, and the reader acknowledges at 600 ms.  `story`: time, task, happenings."""
    sent = (5, -1, [Happening.TASKS_TRIGGERED])
    ends = (600, 2, [Happening.STATE_WRITTEN, Happening.ASYNC_FINISHED, Happening.ACKNOWLEDGED])
    entries = [
        Entry(time_ns, happening, 1, task, *channel)
        for time_ns, task, happenings, *channel in (sent, *story, ends)
        for happening in happenings
    ]
    stats = CheckpointStats(1, 0, 3, "COMPLETED", 600, 3)
    return [(part.kind, part.duration_ns) for part in critical_path(stats, entries, graph, ended_ns=0).parts]


OVERTAKES = (300, 2, [Happening.INPUT_PRIORITISED, *BEGUN, Happening.SYNC_FINISHED])


def test_the_timeout_counts_from_the_trigger():
    """The first barrier came at 100; the one of channel 1 set out at 30 and was missing at 300, when the timeout let it overtake."""
    found = path((10, 0, TRIGGERED), (30, 1, TRIGGERED), (100, 2, [Happening.BARRIER_ARRIVED]), OVERTAKES)

    assert found == [
        (PathKind.TRIGGER, 5),
        (PathKind.TASK_THREAD, 25),
        (PathKind.TIMEOUT, 270),
        (PathKind.ASYNC_WORK, 300),
    ]


@pytest.mark.parametrize(
    ("timeout", "parts"),
    [(200, [(PathKind.TIMEOUT, 170), (PathKind.QUEUE, 100)]), (20, [(PathKind.QUEUE, 270)])],
)
def test_a_thread_that_is_busy_behind_the_timeout_is_no_timeout(timeout, parts):
    """The barrier set out at 30; it may have overtaken long before, but the reader's thread saw to it at 300 only."""
    found = path(
        (10, 0, BEGUN[1:]),
        (30, 1, BEGUN[1:]),
        (300, 2, [Happening.INPUT_PRIORITISED]),
        (300, 2, [Happening.BARRIER_ARRIVED], 1),
        (300, 2, BEGUN),
        graph=GRAPH._replace(timeout_ns=timeout),
    )

    assert parts == [part for part in found if part[0] in (PathKind.TIMEOUT, PathKind.QUEUE)]


def test_a_timeout_before_the_missing_barrier_set_out():
    """Its writer was late itself: nothing that overtakes was missing, and the way of the first barrier is told."""
    found = path((10, 0, TRIGGERED), (100, 2, [Happening.BARRIER_ARRIVED]), OVERTAKES)

    assert found[2:] == [(PathKind.QUEUE, 90), (PathKind.TIMEOUT, 200), (PathKind.ASYNC_WORK, 300)]


def test_an_unaligned_snapshot_that_is_given_up_waits_for_the_barrier_that_has_not_arrived():
    """Its state is written, and so is what the first barrier overtook: the other one is in a channel still."""
    times = {
        (-1, 5): [Happening.TASKS_TRIGGERED],
        (0, 10): [*TRIGGERED, Happening.ACKNOWLEDGED],
        (1, 30): [*TRIGGERED, Happening.ACKNOWLEDGED],
        (2, 100): [Happening.BARRIER_ARRIVED, *BEGUN, Happening.SYNC_FINISHED, Happening.STATE_WRITTEN],
    }
    story = [Entry(ns, happening, 1, task, 0) for (task, ns), rows in times.items() for happening in rows]
    stats = CheckpointStats(1, 0, 3, "FAILED", failed_ns=600)

    parts = critical_path(stats, story, GRAPH, ended_ns=0).parts

    assert (parts[-1].kind, parts[-1].channel, parts[-1].duration_ns) == (PathKind.ALIGNMENT, 1, 500)


def test_a_chain_of_thousands_of_tasks_has_a_path():
    """The way back is a loop: calls within calls end after a thousand, and with them the run."""
    last = 2_000
    chain = Graph(tuple(range(last)), tuple(range(1, last + 1)), tuple(range(last + 1)))
    story = [Entry(1, Happening.TASKS_TRIGGERED, 1, -1, 0), Entry(1, Happening.TRIGGER_RECEIVED, 1, 0, 0)]
    for task in range(last + 1):
        if task:
            story.append(Entry(task, Happening.BARRIER_ARRIVED, 1, task, task - 1))
        story += [
            Entry(max(1, task), what, 1, task, 0) for what in (Happening.SNAPSHOT_BEGUN, Happening.BARRIER_FORWARDED)
        ]
    for what in (Happening.SYNC_FINISHED, Happening.STATE_WRITTEN, Happening.ASYNC_FINISHED, Happening.ACKNOWLEDGED):
        story.append(Entry(last, what, 1, last, 0))
    parts = critical_path(CheckpointStats(1, 0, last + 1, "COMPLETED", last, last + 1), story, chain, ended_ns=0).parts

    assert (PathKind.TRIGGER, 1, [PathKind.QUEUE] * (last - 1)) == (
        parts[0].kind,
        parts[0].duration_ns,
        [part.kind for part in parts[1:]],
    )
    assert list(range(2, last + 1)) == [part.task for part in parts[1:]]
