"""A real Flink, and causes that were not planted (`tests/data/planted/README.md`)."""

import pytest

from sim.jobs.history.causes import process_pauses
from sim.jobs.history.history import garbage_text


@pytest.mark.parametrize(
    "name", ["hot", "sink", "window", "disk", "users-jobs/J4-pressed-aligned-r1", "users-jobs/R3-firing-aligned"]
)
def test_no_pause_where_none_was(recorded, name):
    """Back-pressure, windows and slow files are no pauses of a process, and its garbage is as usual."""
    found = recorded(f"{name}.zip" if "/" in name else f"planted/{name}.zip")

    assert not [point.id for point in found.detailed if list(process_pauses(found, point))]
    assert not garbage_text(found.garbage, found.age_ms)
