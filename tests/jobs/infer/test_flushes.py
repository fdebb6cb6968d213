"""What snapshots of RocksDB cost beside their bytes, in a history made by hand."""

from sim.jobs.infer.draft import Draft
from sim.jobs.infer.file_history import acknowledged, files_of, history
from sim.jobs.infer.flows import infer_flushes
from tests.jobs.infer.made_jobs import MB, checkpoint, subtask


def test_a_flush_that_is_faster_has_a_rate_of_its_own():
    """100 MB of state, 10 MB per checkpoint in 20 ms, merged in every fourth: at 1, 5, 9 ..."""
    sizes = {number: 110 * MB + (number - 1) % 4 * 10 * MB for number in range(1, 18)}
    points = [checkpoint(number, map=[subtask(0, size, sync=20)]) for number, size in sizes.items()]
    section = Draft().vertex("map")
    infer_flushes(section, points, "map", {0: files_of(history(acknowledged(points, "map")[0]))})

    assert section.values["state"]["lsm"] == {"flush": "500 MB/s", "freeze": "0 s"}
