"""A full queue of requests that wait for answers beside the task thread, under other barriers."""

import pytest

from sim.jobs.infer.cores import usual_checkpoints
from sim.jobs.infer.scenario import infer_scenario
from sim.jobs.source.rest_job import RestJob
from sim.jobs.source.saved import read_saved
from sim.model.schema.study import loads
from sim.results.summary import summarize
from sim.runtime.simulate import simulate
from tests.places import DATA


def run_of(name, *overrides):
    text = infer_scenario(read_saved(DATA / "async-io" / f"{name}.zip")).text
    result = simulate(loads(text, overrides=["run.duration=40 s", *overrides]).scenarios[0], check=False)
    return summarize([result.tables], result.scenario.job.edges)


def test_other_barriers_are_predicted_from_a_full_queue():
    """Unaligned: requests under way are a part of the snapshot, and records in front of them are in flight."""
    took = sorted(
        point.end_to_end_duration
        for point in usual_checkpoints(RestJob(read_saved(DATA / "async-io" / "A2-full-unaligned.zip")))
    )

    assert run_of("A2-full-aligned", "checkpoint.barriers=unaligned").end_to_end_p50_ms == pytest.approx(
        took[len(took) // 2], rel=0.15
    )
