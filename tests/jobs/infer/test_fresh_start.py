"""What a process takes that ran nothing of the job, read off the first start."""

from pathlib import Path

from sim.jobs.infer.scenario import infer_scenario
from sim.jobs.source.saved import read_saved

K3 = Path(__file__).parents[2] / "data" / "scaling" / "K3-scale-p2-aligned.zip"


def restart(**counts):
    """What is inferred of the recording with other counts of checkpoints."""
    snapshot = read_saved(K3)
    path = next(path for path in snapshot.answers if path.endswith("/checkpoints"))
    snapshot.answers[path]["counts"] |= counts
    return infer_scenario(snapshot).document.get("restart", {})


def test_it_is_the_slowest_task_of_each_task_manager():
    """985 + 915 ms on one, 764 + 819 on the other, their median 1,742; 99 ms are the deployment itself."""
    assert restart()["fresh-start"] == "1.643 s"


def test_a_job_that_began_with_state_does_not_tell():
    assert "fresh-start" not in restart(restored=1)


def test_tasks_with_state_begin_to_read_it_later():
    """No history without a restart tells by how much: the value of recordings, with its range."""
    found = infer_scenario(read_saved(K3))

    assert found.document["restart"]["state-start"] == "400 ms"
    assert (
        " ".join(found.comments["restart.state-start"].split()) == "assumed: 300 to 900 ms in recordings of other jobs"
    )
