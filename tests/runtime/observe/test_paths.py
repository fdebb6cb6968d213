"""The table of critical paths: every checkpoint that is over has one, without a gap."""

import pytest

from sim.model.schema.study import loads
from sim.runtime.sampling import groups
from sim.runtime.simulate import simulate


def test_parts_sum_to_the_duration_of_every_checkpoint(study):
    """To the nanosecond, under every strategy, and each part begins where the one before it ends."""
    for scenario in study.scenarios:
        result = simulate(scenario)
        over = result.checkpoints[result.checkpoints["status"] != "IN_PROGRESS"].set_index("id")
        before = result.path[~result.path["acknowledged"]]

        assert len(over) > 0
        assert list(over.index) == list(before["id"].unique())
        for number, parts in before.groupby("id"):
            assert round(over.loc[number, "end_to_end_duration"] * 1e6) == parts["duration"].sum()
            assert [0, *(parts["begin"] + parts["duration"])[:-1]] == list(parts["begin"])
            assert (parts["duration"] > 0).all()


def test_what_follows_the_acknowledgement_begins_with_it(study):
    result = simulate(study.scenarios[0])
    after = result.path[result.path["acknowledged"]].groupby("id").first()
    completed = result.checkpoints[result.checkpoints["status"] == "COMPLETED"].set_index("id")

    assert (after["part"] == "finalisation").all()
    assert pytest.approx(completed["x_finalization"] * 1e6) == after["duration"]


def test_a_path_may_begin_behind_the_acknowledgement():
    """All tasks acknowledge in the instant of the trigger; the metadata is written afterwards."""
    (scenario,) = loads("""
version: 1
job: {src: {source: {rate: 100/s, record: 40 B}}}
checkpoint: {interval: 1 s}
storage: {metadata-latency: 5 ms}
overheads: {trigger: 0 s, acknowledge: 0 s}
run: {duration: 3 s}
""").scenarios
    path = simulate(scenario).path

    assert (path["begin"] == 0).all()
    assert path["acknowledged"].all()
    assert (path.groupby("id")["duration"].sum() >= 5e6).all()


def test_groups_are_runs_of_subtasks_of_a_task_manager():
    assert groups([0, 1, 0, 1, 0], size=2) == [0, 1, 0, 1, 2]


def test_an_upload_names_the_file_that_it_waits_for():
    """500 kB at 1 MB/s are half a second of each checkpoint, all of it one file of the sink."""
    (scenario,) = loads("""
version: 1
job:
  src: {source: {rate: 100/s, record: 40 B}, parallelism: 1}
  sink: {input: {src: hash}, service: 10 us, state: {size: 500 kB}, parallelism: 1}
checkpoint: {interval: 1 s}
storage: {bandwidth: 1 MB/s}
run: {duration: 3 s}
""").scenarios
    path = simulate(scenario).path
    uploads = path[path["part"] == "upload"]

    assert len(uploads) == path["id"].nunique() > 0
    assert [f"keyed/sink/0/{number}" for number in uploads["id"]] == list(uploads["file"])
    assert {"sink"} == set(uploads["vertex"])
    assert (uploads["duration"] >= 5e8).all()
