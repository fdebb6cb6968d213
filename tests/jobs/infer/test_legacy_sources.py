"""A legacy source has a thread of its own, so its busy time is NaN: checkpoints wait for its lock."""

from pathlib import Path

import pytest

from sim.jobs.infer.scenario import infer_scenario
from sim.jobs.source.saved import read_saved

USERS = Path(__file__).parents[2] / "data" / "users-jobs"


@pytest.mark.parametrize(("name", "expected"), [("J1-q20-aligned", {"lock"}), ("J2-count-aligned", {"mailbox"})])
def test_sources_whose_busy_time_is_nan_hold_the_lock(name, expected):
    """Nexmark in SQL has a SourceFunction, the other job a source of FLIP-27."""
    job = infer_scenario(read_saved(USERS / f"{name}.zip")).document["job"]

    assert expected == {vertex["source"].get("waits", "mailbox") for vertex in job.values() if "source" in vertex}
