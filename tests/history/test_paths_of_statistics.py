"""The critical path that Flink's statistics tell: its parts, that they sum, and that a journal says the same."""

from collections import Counter

import pytest

from sim.evidence.truth import scenario_of
from sim.history.compared.leading import agree, of_journal, of_statistics
from sim.history.compared.simulated import reported
from sim.history.path import steps
from sim.metrics.critical_path import PathKind
from sim.recordings import read_any
from sim.recordings.source.rest.answers import CheckpointConfig
from sim.runtime.run.simulate import simulate
from tests.history.conftest import DATA, acknowledged, history, pending, point

MS = 10**6
RECORDINGS = [
    "recordings/p4-severe-aligned.json.gz", "recordings/p4-severe-timeout-1s.json.gz",
    "recordings/chain3-severe-syncflush500-unaligned.json.gz", "recordings/expire4s-p4-severe-aligned.json.gz",
    "recordings/fail-recover-severe-unaligned.json.gz", "users-jobs/J4-pressed-aligned-r1.zip", "users-jobs/R8-outputs-timeout500.zip",
    "users-jobs/R5-changelog-unaligned.zip", "rest/archive.json.gz",
]  # fmt: skip


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
        assert 0 == path[0].begin_ns


def test_an_aligned_path():
    """The sink that acknowledges last: call, way, alignment, phases, and what nobody measured."""
    src = [acknowledged(0, 50, 20, async_ms=10)]
    sink = [acknowledged(0, 400, 100, 0, 5, 20), acknowledged(1, 1000, 300, 450, 30, 200)]
    found = history(point(2, 1000, src, sink))

    assert [
        (PathKind.TRIGGER, None, 20),
        (PathKind.QUEUE, ("sink", 1), 280),
        (PathKind.ALIGNMENT, ("sink", 1), 450),
        (PathKind.SYNC, ("sink", 1), 30),
        (PathKind.UPLOAD, ("sink", 1), 200),
        (PathKind.ACKNOWLEDGEMENT, ("sink", 1), 20),
    ] == spent(found)


def test_an_unaligned_path():
    """The snapshot begins with the first barrier; its asynchronous part waits for the last one if that came late in it."""
    src = [acknowledged(0, 60, 20, async_ms=30, unaligned_checkpoint=True)]
    waits = [acknowledged(0, 500, 30, 400, 0, 450, persisted=900, unaligned_checkpoint=True)]
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


def test_who_kept_a_checkpoint_that_expired():
    """The subtask whose writers had all sent their barriers: its way was cut off."""
    src = [acknowledged(0, 50, 20, async_ms=10)]
    found = history(point(2, 5000, src, [acknowledged(0, 400, 100), pending(1)], "FAILED", failure_message="expired"))
    last = steps(found, found.checkpoints[0])[-1]

    assert (PathKind.QUEUE, ("sink", 1), 4980 * MS, True) == (last.kind, last.subtask, last.duration_ns, last.is_open)


def test_before_start_delays_were_reported():
    """What the phases leave of the time to the acknowledgement is the way of the barrier."""
    found = history(point(2, 600, [acknowledged(0, 50, -1, async_ms=10)], [acknowledged(0, 600, -1, 100, 0, 200)]))

    assert 600 == sum(ms for *_, ms in spent(found))
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

    `ckptsim validate --explain` does so for all recordings.
    """
    same = total = 0
    for name in ("p4-severe-aligned", "p4-severe-unaligned", "chain3-none-asyncflush500-aligned", "p4-none-largestate-slowdfs-aligned"):
        result = simulate(scenario_of(read_any(DATA / "recordings" / f"{name}.json.gz")), check=False)
        found = reported(result)
        for checkpoint in found.detailed:
            if checkpoint.status == "COMPLETED" and checkpoint.end_to_end_duration >= 300:
                same += agree(of_statistics(found, checkpoint), of_journal(result.path[result.path["id"] == checkpoint.id]))
                total += 1

    assert total >= 15
    assert same >= 0.9 * total


def test_the_writer_that_set_out_last_is_awaited(recorded):
    """A join has the barrier of its quick input long before that of its slow path: all paths lead through the slow one."""
    found = recorded("recordings/join-slowpath-aligned.json.gz")
    ways = {(step.subtask[0], step.writer[0]) for checkpoint in found.detailed for step in steps(found, checkpoint) if step.writer}

    assert {("slow", "b"), ("join", "slow")} == ways
