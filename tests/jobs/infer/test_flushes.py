"""What snapshots of RocksDB cost beside their bytes, in histories made by hand and in a recorded one."""

from pathlib import Path

import pytest

from sim.jobs.infer.draft import Draft
from sim.jobs.infer.file_history import Point, files_of
from sim.jobs.infer.flows import infer_flushes
from sim.jobs.infer.scenario import infer_scenario
from sim.jobs.source.recorded_job import Phases, RecordedCheckpoint, RecordedSubtask, RecordedTask
from sim.jobs.source.saved import read_saved
from sim.model.units import parse_byte_rate, parse_duration, parse_share, parse_size

J3 = Path(__file__).parents[2] / "data" / "users-jobs" / "J3-rocksdb-aligned.zip"
MB = 10**6


def state(sync_ms, async_ms=lambda _: 50, checkpoints=17):
    """Written for 100 MB of state, 10 MB per checkpoint, merged in every fourth: at 1, 5, 9 ..."""
    points, sizes = [], []
    for number in range(1, checkpoints + 1):
        size = 110 * MB + (number - 1) % 4 * 10 * MB
        phases = Phases(sync=sync_ms(number), **{"async": async_ms(number)})
        subtask = RecordedSubtask(index=0, status="completed", state_size=size, checkpoint=phases)
        points.append(
            RecordedCheckpoint(
                id=number,
                status="COMPLETED",
                trigger_timestamp=5000 * number,
                tasks={"map": RecordedTask(subtasks=(subtask,))},
            )
        )
        sizes.append(Point(number, 5.0 * number, size))
    draft = Draft()
    infer_flushes(draft, "map", points, [(0, files_of(sizes))])
    return draft.document["job"]["map"]["state"]


def test_the_synchronous_part_is_measured_and_its_flush_is_a_part_of_it():
    """10 MB at 200 MB/s are 50 ms of the 80."""
    assert state(lambda _: 80) == {"lsm": {"freeze": "30 ms"}}


def test_a_flush_that_is_faster_has_a_rate_of_its_own():
    assert parse_byte_rate(state(lambda _: 20)["lsm"]["flush"]) == 500 * MB


def test_the_snapshot_that_starts_a_compaction_takes_longer():
    """140 MB at 100 MB/s are 1400 ms, and checkpoints 4, 8, 12, 16 take 700 ms longer in one part or the other: half of it."""
    found = state(lambda number: 80 + 700 * (number % 8 == 4), lambda number: 50 + 700 * (number % 8 == 0))

    assert (parse_duration(found["lsm"]["freeze"]), float(parse_share(found["lsm"]["wait"]))) == (30_000_000, 0.5)


@pytest.mark.parametrize(("longer_ms", "checkpoints"), [(50, 17), (700, 9)], ids=["noise", "two of them"])
def test_a_wait_that_is_noise_or_was_seen_twice_is_none(longer_ms, checkpoints):
    assert state(lambda number: 80 + longer_ms * (number % 4 == 0), checkpoints=checkpoints) == {
        "lsm": {"freeze": "30 ms"}
    }


def test_what_the_wait_explains_is_no_residual():
    """Drawn once more, it would be there twice: in one checkpoint of two a phase of the recording took 150 ms beyond what is usual."""
    inference = infer_scenario(read_saved(J3))
    parts = inference.document["residuals"]["of"]["profile+out-writer"]
    starts_compaction = [number - 2 for number in (8, 12, 16, 20)]  # the first one known is checkpoint 2
    beyond_ms = [
        sum(parts[part][index][place] for part in ("sync", "async")) for place in starts_compaction for index in (0, 1)
    ]

    assert sorted(beyond_ms)[len(beyond_ms) // 2] < 150


def test_large_merged_files_are_no_wait():
    """They are in the checkpoint after the one that starts the compaction."""
    assert state(lambda _: 80, lambda number: 50 + 700 * (number % 4 == 1)) == {"lsm": {"freeze": "30 ms"}}


def test_a_recorded_history_tells_size_growth_and_phases():
    """Once filled it grew by 6 MB in 5 s, rewrote 10 MB, and merged at every fourth checkpoint.  Sync stands in one place only."""
    inference = infer_scenario(read_saved(J3))
    vertex = inference.document["job"]["profile+out-writer"]
    found = vertex["state"]

    assert pytest.approx(parse_size(found["size"]), rel=0.02) == 150 * MB
    assert pytest.approx(parse_size(found["growth"]) * 3000 * 5, rel=0.02) == 6.1 * MB
    assert "sync" not in vertex.get("snapshot", {})
    assert parse_duration(found["lsm"]["freeze"]) == 67_000_000
    assert 0.3 < parse_share(found["lsm"]["wait"]) < 0.4
    assert "(every 4 checkpoints)" in " ".join(inference.comments["job.profile+out-writer.state.size"].split())
    assert 150 * MB < parse_byte_rate(inference.document["storage"]["bandwidth"]) < 250 * MB
