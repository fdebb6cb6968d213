"""Critical paths: files of one phase, and small journals made by hand."""

import pytest

from sim.results.critical_path import FileSpan, Graph, PathKind, critical_path, file_parts
from sim.results.journal import Entry, EventType
from sim.results.tables import CheckpointStats

# Files of one phase as parts of a path: the one that ends last is followed to its beginning, then the one before it.


def parts(files, begin_ns=0, end_ns=100):
    found = file_parts(
        [FileSpan(i, *span) for i, span in enumerate(files)], begin_ns, end_ns, 7, PathKind.ASYNC_WORK, PathKind.UPLOAD
    )
    return [(part.kind.value, part.begin_ns, part.end_ns, part.file) for part in reversed(found)]


def test_without_files_all_of_it_is_work():
    assert parts([]) == [("async work", 0, 100, -1)]


def test_files_one_after_the_other():
    """Nothing lies between them."""
    assert parts([(0, 40), (40, 100)]) == [("upload", 0, 40, 0), ("upload", 40, 100, 1)]


def test_of_files_side_by_side_the_last_to_end_counts():
    assert parts([(0, 40), (0, 100), (10, 90)]) == [("upload", 0, 100, 1)]


def test_work_before_between_and_behind_files():
    expected = [
        ("async work", 0, 10, -1),
        ("upload", 10, 40, 0),
        ("async work", 40, 60, -1),
        ("upload", 60, 90, 1),
        ("async work", 90, 100, -1),
    ]

    assert expected == parts([(10, 40), (60, 90)])


def test_a_file_begun_before_the_phase_counts_from_there():
    """The upload of a changelog, or of a file that an aborted checkpoint left."""
    assert parts([(10, 100)], begin_ns=50) == [("upload", 50, 100, 0)]


def test_a_file_that_is_never_durable_is_awaited_to_the_end():
    assert parts([(30, None)]) == [("async work", 0, 30, -1), ("upload", 30, 100, 0)]


# Small journals made by hand: what their critical paths wait for.


def graph_of(writers, readers, groups):
    """Channels by number, from these writers to these readers."""
    return Graph(writers.__getitem__, lambda task: [c for c, reader in enumerate(readers) if reader == task], groups)


GRAPH = graph_of(writers=(0, 1), readers=(2, 2), groups=(0, 1, 2))
"""Two sources, 0 and 1, and their reader 2 behind channels 0 and 1."""


BEGUN = (EventType.SNAPSHOT_BEGUN, EventType.BARRIER_FORWARDED)
TRIGGERED = (EventType.TRIGGER_RECEIVED, *BEGUN)


def path(*story, graph=GRAPH):
    """(kind, ms) of its parts: calls are sent at 5 ms, and the reader acknowledges at 600 ms.  `story`: time, task, happenings."""
    sent = (5, -1, [EventType.TASKS_TRIGGERED])
    ends = (600, 2, [EventType.STATE_WRITTEN, EventType.ASYNC_FINISHED, EventType.ACKNOWLEDGED])
    entries = [
        Entry(time_ns, event_type, 1, task, *channel)
        for time_ns, task, event_types, *channel in (sent, *story, ends)
        for event_type in event_types
    ]
    stats = CheckpointStats(1, 0, 3, "COMPLETED", 600, 3)
    return [(part.kind, part.duration_ns) for part in critical_path(stats, entries, graph, ended_ns=0).parts]


OVERTAKES = (300, 2, [EventType.INPUT_PRIORITISED, *BEGUN, EventType.SYNC_FINISHED])


def test_the_timeout_counts_from_the_trigger():
    """The first barrier came at 100; the one of channel 1 set out at 30 and was missing at 300, when the timeout let it overtake."""
    found = path((10, 0, TRIGGERED), (30, 1, TRIGGERED), (100, 2, [EventType.BARRIER_ARRIVED]), OVERTAKES)

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
        (300, 2, [EventType.INPUT_PRIORITISED]),
        (300, 2, [EventType.BARRIER_ARRIVED], 1),
        (300, 2, BEGUN),
        graph=GRAPH._replace(timeout_ns=timeout),
    )

    assert parts == [part for part in found if part[0] in (PathKind.TIMEOUT, PathKind.QUEUE)]


def test_a_timeout_before_the_missing_barrier_set_out():
    """Its writer was late itself: nothing that overtakes was missing, and the way of the first barrier is told."""
    found = path((10, 0, TRIGGERED), (100, 2, [EventType.BARRIER_ARRIVED]), OVERTAKES)

    assert found[2:] == [(PathKind.QUEUE, 90), (PathKind.TIMEOUT, 200), (PathKind.ASYNC_WORK, 300)]


def test_an_unaligned_snapshot_that_is_given_up_waits_for_the_barrier_that_has_not_arrived():
    """Its state is written, and so is what the first barrier overtook: the other one is in a channel still."""
    times = {
        (-1, 5): [EventType.TASKS_TRIGGERED],
        (0, 10): [*TRIGGERED, EventType.ACKNOWLEDGED],
        (1, 30): [*TRIGGERED, EventType.ACKNOWLEDGED],
        (2, 100): [EventType.BARRIER_ARRIVED, *BEGUN, EventType.SYNC_FINISHED, EventType.STATE_WRITTEN],
    }
    story = [Entry(ns, event_type, 1, task, 0) for (task, ns), rows in times.items() for event_type in rows]
    stats = CheckpointStats(1, 0, 3, "FAILED", failed_ns=600)

    parts = critical_path(stats, story, GRAPH, ended_ns=0).parts

    assert (parts[-1].kind, parts[-1].channel, parts[-1].duration_ns) == (PathKind.ALIGNMENT, 1, 500)


def test_a_chain_of_thousands_of_tasks_has_a_path():
    """The way back is a loop: calls within calls end after a thousand, and with them the run."""
    last = 2_000
    chain = graph_of(tuple(range(last)), tuple(range(1, last + 1)), tuple(range(last + 1)))
    story = [Entry(1, EventType.TASKS_TRIGGERED, 1, -1, 0), Entry(1, EventType.TRIGGER_RECEIVED, 1, 0, 0)]
    for task in range(last + 1):
        if task:
            story.append(Entry(task, EventType.BARRIER_ARRIVED, 1, task, task - 1))
        story += [
            Entry(max(1, task), what, 1, task, 0) for what in (EventType.SNAPSHOT_BEGUN, EventType.BARRIER_FORWARDED)
        ]
    for what in (EventType.SYNC_FINISHED, EventType.STATE_WRITTEN, EventType.ASYNC_FINISHED, EventType.ACKNOWLEDGED):
        story.append(Entry(last, what, 1, last, 0))
    parts = critical_path(CheckpointStats(1, 0, last + 1, "COMPLETED", last, last + 1), story, chain, ended_ns=0).parts

    assert (PathKind.TRIGGER, 1, [PathKind.QUEUE] * (last - 1)) == (
        parts[0].kind,
        parts[0].duration_ns,
        [part.kind for part in parts[1:]],
    )
    assert list(range(2, last + 1)) == [part.task for part in parts[1:]]
