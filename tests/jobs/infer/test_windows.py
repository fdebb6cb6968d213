"""A window is recognised by its description in the plan, by sizes of state that rise and fall, and by records that leave together."""

import pytest

from sim.jobs.infer.windows import count_outputs_per_window, planned_window
from tests.jobs.infer.made_jobs import checkpoint, subtask
from tests.jobs.infer.test_made_windows import windowed


@pytest.mark.parametrize(
    "description",
    ["KeyedProcess<br/>", "Window(GlobalWindows(), CountTrigger)", "WindowAggregate(window=[TUMBLE(size=[?])])", ""],
)
def test_a_plan_without_sizes_names_no_window(description):
    assert planned_window(description) is None


def test_records_that_leave_over_seconds_are_not_counted_by_windows():
    """A sample may see half of an end."""
    samples = [(10_000 * k, [total]) for k, total in enumerate([0.0, 20.0, 41.0, 55.0, 86.0, 100.0])]

    assert count_outputs_per_window({"numRecordsOut": samples}, 400, 7000) is None


def test_files_of_rocksdb_rise_and_fall_without_windows():
    """They are merged every few checkpoints.  On the heap the same sizes are those of a window of 7 s."""
    points = []
    for k in range(16):
        since_ms = (4000 * k + 500) % 7000  # falls 500 ms before each multiple of 7 s
        points.append(checkpoint(k + 2, 4000, src=[subtask(start=0)], count=[subtask(0, 100 * since_ms)]))

    assert "window" not in windowed("KeyedProcess", points=points, backend="rocksdb")[0].document["job"]["count"]
    assert windowed("KeyedProcess", points=points)[0].document["job"]["count"]["window"]["tumbling"] == "7 s"
