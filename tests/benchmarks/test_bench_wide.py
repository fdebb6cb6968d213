"""What a wide job costs: the benchmark builds the job it speaks of, and measures a run that is whole."""

from benchmarks import bench_wide
from sim.model.schema.study import loads


def test_the_job_is_as_wide_as_asked_for():
    """Lanes: a channel for each subtask behind the source."""
    job = loads(bench_wide.chain_text(5, 3)).scenarios[0].job

    assert [vertex.parallelism for vertex in job.vertices] == [3] * 5
    assert [len(vertex.inputs) for vertex in job.vertices] == [0, 1, 1, 1, 1]


def test_a_run_is_measured_with_its_checkpoints():
    measures = bench_wide.measured(5, 3)

    assert measures["checkpoints completed"] >= 1
    assert 0 < measures["build CPU s"] < measures["run CPU s"]
    assert measures["kernel MB"] > 0  # what is freed meanwhile may make the built job smaller
    assert 0 < measures["built MB"] <= measures["peak MB"]
