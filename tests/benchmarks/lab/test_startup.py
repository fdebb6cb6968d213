"""Requests and failures are dated from the submission; a run begins when all tasks run."""

from benchmarks.lab import Recording
from benchmarks.lab.startup import startup_ms
from sim.model.scenario import Overheads


def recording(**events):
    tables = {kind: {"cols": ["t", "node", "sub"], "rows": rows} for kind, rows in events.items()}
    bare = {
        "format": "flink-lab/1",
        "name": "a",
        "flink_version": "2.3.0",
        "started_ms": 0,
        "ended_ms": 1,
        "events": tables,
    }
    config = {"name": "a", "nodes": [{"id": "a", "kind": "source"}], "duration_s": 1}
    return Recording.model_validate(bare | {"checkpoints": {"counts": {}, "list": []}, "config": config})


def test_the_last_thing_that_starts_counts():
    """Here the state that is filled before the first record."""
    seen = recording(submit=[[1000, "job", -1]], open=[[1700, "a", 0], [1800, "b", 0]], prefilled=[[2500, "b", 0]])

    assert startup_ms(seen) == 1500


def test_what_starts_after_a_failure_does_not():
    seen = recording(
        submit=[[1000, "job", -1]], source_start=[[1900, "a", 0], [9000, "a", 0]], fail_injected=[[7000, "b", 0]]
    )

    assert startup_ms(seen) == 900


def test_a_recording_that_does_not_tell_began_as_usual():
    assert Overheads().start_ns / 10**6 == startup_ms(recording()) == startup_ms(recording(submit=[[1000, "job", -1]]))
