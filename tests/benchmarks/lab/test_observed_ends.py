"""Ends are read off what the operators logged: final commits, and the end of the job."""

from benchmarks.lab import Recording
from benchmarks.lab.ends import of_the_end
from sim.model.quantities import QUANTITIES
from tests.benchmarks.lab.recorded import document


def recorded(**changes):
    recording = document("p2-severe-aligned")
    for node in recording["config"]["nodes"]:
        node["commit"] = "independent" if node["id"] == "sink" else "none"
    for point in recording["checkpoints"]["list"]:
        point["latest_ack_timestamp"] = 1_000 * point["id"] - 200  # 800, 1800, 2800: on the clock of the events below
    return Recording.model_validate(recording | {"events": {}} | changes)


def values(recording):
    return {(quantity, vertex): value for quantity, vertex, value in of_the_end(recording)}


ENDS = {
    "complete": {
        "cols": ["t", "node", "sub", "chk", "committed_now"],
        "rows": [
            [900, "sink", 0, 1, 40],
            [900, "sink", 1, 1, 50],
            [2900, "sink", 0, 3, 7],
            [2950, "sink", 1, 3, 8],
            [3100, "sink", 0, 4, 0],
        ],
    },
    "end_input": {"cols": ["t", "node", "sub"], "rows": [[1900, "map", 0], [2000, "sink", 0], [2100, "sink", 1]]},
    "close": {"cols": ["t", "node", "sub"], "rows": [[3000, "map", 0], [3150, "sink", 0], [3200, "sink", 1]]},
}


def test_the_tail_is_committed_by_the_last_checkpoint_that_commits_anything():
    """How many it took, how long after the end of input the slowest subtask heard of it, and when the job was over."""
    seen = values(recorded(events=ENDS, final_state="FINISHED"))

    assert seen == {
        ("committed", "sink"): 105.0,
        ("job_end_delay", ""): 1_100.0,
        ("tail_checkpoint", "sink"): 3.0,
        ("checkpoints_to_commit", "sink"): 1.0,
        ("tail_commit_delay", "sink"): 900.0,
    }


def test_a_job_that_was_cancelled_has_no_end():
    assert values(recorded(events=ENDS, final_state="RUNNING")) == {("committed", "sink"): 105.0}


def test_a_job_stopped_without_drain_has_no_end_of_input():
    """Its last commit is known, but not how long anything waited for it."""
    events = {kind: table for kind, table in ENDS.items() if kind != "end_input"}

    seen = values(recorded(events=events, final_state="FINISHED"))

    assert seen == {
        ("committed", "sink"): 105.0,
        ("tail_checkpoint", "sink"): 3.0,
        ("checkpoints_to_commit", "sink"): 0.0,
    }


def test_every_quantity_is_one_that_is_told():
    assert {quantity for quantity, _ in values(recorded(events=ENDS, final_state="FINISHED"))} < set(QUANTITIES)
