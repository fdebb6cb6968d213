"""What snapshots of RocksDB cost beside their bytes, in histories made by hand and in a recorded one."""

from sim.jobs.infer.draft import Draft
from sim.jobs.infer.file_history import Point, files_of
from sim.jobs.infer.flows import infer_flushes
from sim.jobs.source.recorded_job import Phases, RecordedCheckpoint, RecordedSubtask, RecordedTask
from sim.model.units import parse_byte_rate
from tests.places import USERS

J3 = USERS / "J3-rocksdb-aligned.zip"
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
    infer_flushes(draft.vertex("map"), points, "map", {0: files_of(sizes)})
    return draft.document["job"]["map"]["state"]


def test_a_flush_that_is_faster_has_a_rate_of_its_own():
    assert parse_byte_rate(state(lambda _: 20)["lsm"]["flush"]) == 500 * MB
