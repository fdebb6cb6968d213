"""The critical path that Flink's statistics tell: its parts, that they sum, and that a journal says the same."""

from collections import Counter

import pytest

from benchmarks.lab.side_by_side import (
    leading_parts,
    leading_parts_of_paths,
    parts_of_journal,
    reported_history,
)
from sim.jobs.evidence.prediction import scenario_of
from sim.jobs.history.path import steps
from sim.jobs.reading import read_any
from sim.jobs.source.rest_answers import CheckpointConfig
from sim.results.critical_path import PathKind
from sim.runtime.simulate import simulate
from tests.jobs.history.conftest import DATA, acknowledged, history, pending, point

MS = 10**6
RECORDINGS = [
    "recordings/p4-severe-aligned.json.gz",
    "recordings/p4-severe-timeout-1s.json.gz",
    "recordings/chain3-severe-syncflush500-unaligned.json.gz",
    "recordings/expire4s-p4-severe-aligned.json.gz",
    "recordings/fail-recover-severe-unaligned.json.gz",
    "users-jobs/J4-pressed-aligned-r1.zip",
    "users-jobs/R8-outputs-timeout500.zip",
    "users-jobs/R5-changelog-unaligned.zip",
    "rest/archive.json.gz",
]


def spent(found):
    """(kind, subtask, ms) of every step."""
    return [(step.kind, step.subtask, step.duration_ns / MS) for step in steps(found, found.checkpoints[-1])]


@pytest.mark.parametrize("name", RECORDINGS)
def test_parts_sum_to_the_duration(recorded, name):
    """Completed, failed and unfinished ones; they lie end to end."""
    found = recorded(name)
    paths = {checkpoint.id: steps(found, checkpoint) for checkpoint in found.detailed}

    assert paths
    for checkpoint in found.detailed:
        path = paths[checkpoint.id]
        assert checkpoint.end_to_end_duration * MS == sum(step.duration_ns for step in path)
        assert [step.end_ns for step in path[:-1]] == [step.begin_ns for step in path[1:]]
        assert path[0].begin_ns == 0


def test_an_aligned_path():
    """The sink that acknowledges last: call, way, alignment, phases, and what nobody measured."""
    src = [acknowledged(0, 50, 20, async_ms=10)]
    sink = [acknowledged(0, 400, 100, 0, 5, 20), acknowledged(1, 1000, 300, 450, 30, 200)]
    found = history(point(2, 1000, src, sink))

    assert spent(found) == [
        (PathKind.TRIGGER, None, 20),
        (PathKind.QUEUE, ("sink", 1), 280),
        (PathKind.ALIGNMENT, ("sink", 1), 450),
        (PathKind.SYNC, ("sink", 1), 30),
        (PathKind.UPLOAD, ("sink", 1), 200),
        (PathKind.ACKNOWLEDGEMENT, ("sink", 1), 20),
    ]


def test_an_unaligned_path():
    """The snapshot begins with the first barrier; its asynchronous part waits for the last one if that came late in it."""
    src = [acknowledged(0, 60, 20, async_ms=30, unaligned_checkpoint=True)]
    waits = [acknowledged(0, 500, 30, 400, 0, 450, persisted=90_000, unaligned_checkpoint=True)]
    uploads = [acknowledged(0, 500, 30, 10, 0, 450, unaligned_checkpoint=True)]
    config = CheckpointConfig(unaligned_checkpoints=True)

    assert (PathKind.ALIGNMENT, ("sink", 0), 400) in spent(history(point(2, 500, src, waits), config=config))
    assert (PathKind.CHANNEL_STATE, ("sink", 0), 50) in spent(history(point(2, 500, src, waits), config=config))
    assert (PathKind.UPLOAD, ("sink", 0), 450) in spent(history(point(2, 500, src, uploads), config=config))


def test_a_barrier_that_waits_for_its_timeout():
    """Aligned for 300 ms: then it overtakes."""
    src = [acknowledged(0, 60, 20, async_ms=30, unaligned_checkpoint=True)]
    sink = [acknowledged(0, 400, 310, 0, 0, 80, unaligned_checkpoint=True)]
    config = CheckpointConfig(unaligned_checkpoints=True, aligned_checkpoint_timeout=300)
    path = spent(history(point(2, 400, src, sink), config=config))

    assert (PathKind.TIMEOUT, ("sink", 0), 280) in path
    assert (PathKind.QUEUE, ("sink", 0), 10) in path


def test_the_timeout_counts_from_the_trigger():
    """A first barrier that came before the timeout did not begin the snapshot: the wait is one part, for a barrier that was missing."""
    src = [acknowledged(0, 60, 20, async_ms=30, unaligned_checkpoint=True)]
    sink = [acknowledged(0, 600, 100, 250, 0, 300, unaligned_checkpoint=True)]
    config = CheckpointConfig(unaligned_checkpoints=True, aligned_checkpoint_timeout=300)
    path = spent(history(point(2, 600, src, sink), config=config))

    assert path == [
        (PathKind.TRIGGER, None, 20),
        (PathKind.TIMEOUT, ("sink", 0), 280),
        (PathKind.UPLOAD, ("sink", 0), 300),
    ]


def test_data_do_not_hold_up_a_subtask_whose_barriers_may_overtake():
    """Behind data until the alignment timeout at most: then nothing says what the subtask does that does not acknowledge."""
    src = [acknowledged(0, 50, 20, async_ms=10)]
    expired = point(2, 5000, src, [acknowledged(0, 400, 100), pending(1)], "FAILED", failure_message="expired")
    config = CheckpointConfig(unaligned_checkpoints=True, aligned_checkpoint_timeout=1000)
    found = history(expired, config=config)

    assert spent(found)[-2:] == [
        (PathKind.QUEUE, ("sink", 1), 980),
        (PathKind.UNREPORTED, ("sink", 1), 4000),
    ]


def test_before_start_delays_were_reported():
    """What the phases leave of the time to the acknowledgement is the way of the barrier."""
    found = history(point(2, 600, [acknowledged(0, 50, -1, async_ms=10)], [acknowledged(0, 600, -1, 100, 0, 200)]))

    assert sum(ms for *_, ms in spent(found)) == 600
    assert (PathKind.QUEUE, ("sink", 0), 260) in spent(found)


def test_which_writer_was_awaited(recorded):
    """Barriers that come together: the one that was under way for longest."""
    found = recorded("users-jobs/J4-pressed-aligned-r1.zip")
    together = [
        step
        for checkpoint in found.detailed
        for step in steps(found, checkpoint)
        if step.kind is PathKind.QUEUE and step.subtask == ("count+out-writer", 1)
    ]

    assert Counter(step.writer for step in together).most_common(1)[0][0] == ("parse", 0)


def test_statistics_tell_what_a_journal_tells():
    """Simulated checkpoints are told twice, from what Flink would report and from the journal: both name the same leading part.

    `python -m benchmarks.lab validate --explain` does so for all recordings.
    """
    same = total = 0
    for name in (
        "p4-severe-aligned",
        "p4-severe-unaligned",
        "chain3-none-asyncflush500-aligned",
        "p4-none-largestate-slowdfs-aligned",
    ):
        result = simulate(scenario_of(read_any(DATA / "recordings" / f"{name}.json.gz")), check=False)
        found = reported_history(result)
        for checkpoint in found.detailed:
            if checkpoint.status == "COMPLETED" and checkpoint.end_to_end_duration >= 300:
                journal = parts_of_journal(result.path[result.path["id"] == checkpoint.id])
                same += bool(leading_parts(found, checkpoint) & leading_parts_of_paths([journal]))
                total += 1

    assert total >= 15
    assert same >= 0.9 * total
