"""The critical path that Flink's statistics tell: its parts, that they sum, and that a journal says the same."""

import pytest

from benchmarks.lab.side_by_side import (
    LeadingPart,
    leading_part,
    leading_parts,
    leading_parts_of_paths,
    parts_of_journal,
    parts_of_statistics,
    reported_history,
)
from sim.jobs.evidence.prediction import scenario_of
from sim.jobs.history.history import History
from sim.jobs.history.path import steps
from sim.jobs.reading import read_any
from sim.jobs.source.recorded_job import RecordedCheckpoint, RecordedTask
from sim.jobs.source.rest_answers import CheckpointConfig
from sim.jobs.source.rest_job import RestInput, RestVertex
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


UNALIGNED = CheckpointConfig(unaligned_checkpoints=True)
UNTIL_300_MS = CheckpointConfig(unaligned_checkpoints=True, aligned_checkpoint_timeout=300)


@pytest.mark.parametrize(
    ("config", "sinks", "expected"),
    [
        # the sink that acknowledges last: call, way, alignment, phases, and what nobody measured
        (
            CheckpointConfig(),
            [acknowledged(0, 400, 100, 0, 5, 20), acknowledged(1, 1000, 300, 450, 30, 200)],
            {"QUEUE 1": 280, "ALIGNMENT 1": 450, "SYNC 1": 30, "UPLOAD 1": 200, "ACKNOWLEDGEMENT 1": 20},
        ),
        # an unaligned snapshot begins with the first barrier; its asynchronous part waits for the last one if that came late in it
        (
            UNALIGNED,
            [acknowledged(0, 500, 30, 400, 0, 450, persisted=90_000, unaligned_checkpoint=True)],
            {"QUEUE 0": 10, "ALIGNMENT 0": 400, "CHANNEL_STATE 0": 50, "ACKNOWLEDGEMENT 0": 20},
        ),
        (
            UNALIGNED,
            [acknowledged(0, 500, 30, 10, 0, 450, unaligned_checkpoint=True)],
            {"QUEUE 0": 10, "UPLOAD 0": 450, "ACKNOWLEDGEMENT 0": 20},
        ),
        # aligned for 300 ms: then it overtakes
        (
            UNTIL_300_MS,
            [acknowledged(0, 400, 310, 0, 0, 80, unaligned_checkpoint=True)],
            {"TIMEOUT 0": 280, "QUEUE 0": 10, "UPLOAD 0": 80, "ACKNOWLEDGEMENT 0": 10},
        ),
        # a first barrier that came before the timeout did not begin the snapshot
        (
            UNTIL_300_MS,
            [acknowledged(0, 600, 100, 250, 0, 300, unaligned_checkpoint=True)],
            {"QUEUE 0": 80, "TIMEOUT 0": 200, "UPLOAD 0": 300},
        ),
        # an alignment that ends before the timeout is one: Flink calls it unaligned because its own barriers overtook later
        (
            UNTIL_300_MS,
            [acknowledged(0, 600, 100, 150, 0, 300, unaligned_checkpoint=True)],
            {"QUEUE 0": 80, "ALIGNMENT 0": 150, "UPLOAD 0": 300, "ACKNOWLEDGEMENT 0": 50},
        ),
        # sink[1] waits for the file it shares with sink[0], whose last barrier came late; when its snapshot began is not known
        (
            UNTIL_300_MS,
            [
                acknowledged(0, 1200, 20, 1140, 0, 600, unaligned_checkpoint=True, persisted=90_000),
                acknowledged(1, 1200, 20, 0, 0, 1170),
            ],
            {"TIMEOUT 0": 280, "ALIGNMENT 0": 860, "CHANNEL_STATE 0": 30, "ACKNOWLEDGEMENT 1": 10},
        ),
    ],
)
def test_the_parts_of_a_path(config, sinks, expected):
    """Of a checkpoint whose source took the call after 20 ms."""
    src = [acknowledged(0, 60, 20, async_ms=30, unaligned_checkpoint=config == UNALIGNED)]
    took_ms = max(sink.end_to_end_duration for sink in sinks)
    (trigger, *path) = spent(history(point(2, took_ms, src, sinks), config=config))

    assert trigger == (PathKind.TRIGGER, None, 20)
    assert [*expected.items()] == [(f"{kind.name} {name[1]}", ms) for kind, name, ms in path]


def test_paths_that_are_as_long():
    """Another vertex acknowledges 4 % earlier: it may lead as well.  One that is 20 % earlier may not."""
    sinks = [acknowledged(0, 1000, 30, 0, 0, 900)]
    near, far = ([acknowledged(0, end_ms, 20, 0, 0, end_ms - 50)] for end_ms in (960, 800))

    found = [history(point(2, 1000, src, sinks)) for src in (near, far)]

    assert [{"src", "sink"}, {"sink"}] == [
        {part.vertex for part in leading_parts(job, job.checkpoints[0])} for job in found
    ]


def test_barriers_that_come_together_lead_to_two_writers():
    """b waits for a[0] since long; a[1] set out just before.  The usual path leads over a[0], one as long over a[1]."""
    vertices = (
        RestVertex("s", "src", ("src",), 1, 128, ()),
        RestVertex("a", "map", ("map",), 2, 128, (RestInput("src", "HASH"),)),
        RestVertex("b", "sink", ("sink",), 1, 128, (RestInput("map", "HASH"),)),
    )
    tasks = {
        "src": RecordedTask(subtasks=[acknowledged(0, 30, 10)]),
        "map": RecordedTask(subtasks=[acknowledged(0, 100, 50), acknowledged(1, 700, 650)]),
        "sink": RecordedTask(subtasks=[acknowledged(0, 1000, 980, 10)]),
    }
    checkpoint = RecordedCheckpoint(
        id=2, status="COMPLETED", trigger_timestamp=1, end_to_end_duration=1000, tasks=tasks
    )
    found = History("job", "2.3.0", vertices, (checkpoint,))

    assert LeadingPart("behind data", "sink") == leading_part(parts_of_statistics(found, checkpoint))
    assert {LeadingPart("behind data", "sink"), LeadingPart("behind data", "map")} == leading_parts(found, checkpoint)


def test_who_kept_a_checkpoint_that_expired():
    """The subtask whose writers had all sent their barriers: its way was cut off."""
    src = [acknowledged(0, 50, 20, async_ms=10)]
    found = history(point(2, 5000, src, [acknowledged(0, 400, 100), pending(1)], "FAILED", failure_message="expired"))
    last = steps(found, found.checkpoints[0])[-1]

    assert (last.kind, last.subtask, last.duration_ns, last.is_open) == (PathKind.QUEUE, ("sink", 1), 4980 * MS, True)


def test_data_do_not_hold_up_a_subtask_whose_barriers_may_overtake():
    """Behind data until the alignment timeout at most: then nothing says what the subtask does that does not acknowledge."""
    src = [acknowledged(0, 50, 20, async_ms=10)]
    expired = point(2, 5000, src, [acknowledged(0, 400, 100), pending(1)], "FAILED", failure_message="expired")
    config = CheckpointConfig(unaligned_checkpoints=True, aligned_checkpoint_timeout=1000)
    found = history(expired, config=config)

    assert spent(found)[-2:] == [
        (PathKind.TIMEOUT, ("sink", 1), 980),
        (PathKind.UNREPORTED, ("sink", 1), 4000),
    ]


def test_an_aborted_snapshot_that_reported_how_far_it_was():
    """Barriers had come, its asynchronous part was under way, and went on for 1.5 s after the failure."""
    late = acknowledged(1, 4500, 100, 50, 10, 4300, aborted=True)
    found = history(
        point(2, 3000, [acknowledged(0, 50, 20, async_ms=10)], [acknowledged(0, 300, 100), late], status="FAILED")
    )

    assert spent(found) == [
        (PathKind.TRIGGER, None, 20),
        (PathKind.QUEUE, ("sink", 1), 80),
        (PathKind.ALIGNMENT, ("sink", 1), 50),
        (PathKind.SYNC, ("sink", 1), 10),
        (PathKind.UPLOAD, ("sink", 1), 2840),
    ]
    assert steps(found, found.checkpoints[-1])[-1].is_open


def test_who_declines_has_reported_nothing():
    """One snapshot was aborted and reported; the other one's asynchronous part failed."""
    sink = [pending(0), acknowledged(1, 700, 100, 0, 0, 600, aborted=True)]
    declined = point(
        2,
        500,
        [acknowledged(0, 50, 20, async_ms=10)],
        sink,
        "FAILED",
        failure_message="Asynchronous task checkpoint failed.",
    )

    assert spent(history(declined)) == [(PathKind.TRIGGER, None, 20), (PathKind.ASYNC_WORK, ("sink", 0), 480)]


def test_before_start_delays_were_reported():
    """What the phases leave of the time to the acknowledgement is the way of the barrier."""
    found = history(point(2, 600, [acknowledged(0, 50, -1, async_ms=10)], [acknowledged(0, 600, -1, 100, 0, 200)]))

    assert sum(ms for *_, ms in spent(found)) == 600
    assert (PathKind.QUEUE, ("sink", 0), 260) in spent(found)


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


def test_the_writer_that_set_out_last_is_awaited(recorded):
    """A join has the barrier of its quick input long before that of its slow path: all paths lead through the slow one."""
    found = recorded("recordings/join-slowpath-aligned.json.gz")
    ways = {
        (step.subtask[0], step.writer[0])
        for checkpoint in found.detailed
        for step in steps(found, checkpoint)
        if step.writer
    }

    assert {("slow", "b"), ("join", "slow")} == ways
