"""What would keep the limits where nothing that was tried does: more subtasks of the vertex that is full."""

import pytest

from sim.advice.requirements import requirements
from sim.advice.trials import Bench
from tests.advice.made_up import JOB, MadeUp, searched  # noqa: F401 - the fixture writes the job


class Full(MadeUp):
    """The busiest subtask of `sink` works all the time; checkpoints keep their limit from so many subtasks on."""

    enough = 1000

    def run(self, scenarios):
        own = max(scenario.job.vertex("sink").parallelism for scenario in scenarios)
        self.duration = {"aligned": 4000.0 if own < self.enough else 500.0}
        return super().run(scenarios)

    def row(self, axes, k, more_ms):
        return super().row(axes, k, more_ms) | {"busiest_subtask_share": 0.99, "bottleneck": "sink"}


@pytest.mark.parametrize(
    ("enough", "text"),
    [
        (16, "With 8 times the subtasks of 'sink' aligned, every 30 s would keep the limits."),
        (18, "64 times as fast; 8 times the subtasks of 'sink'."),
    ],
)
def test_up_to_eight_times_the_subtasks_are_tried(job, monkeypatch, enough, text):
    """The job has two; what is more than eight times as many is no small change."""
    monkeypatch.setattr(Full, "enough", enough)
    found = searched(job, Full({}), most=1, checkpoint_ms=1000)

    assert text in " ".join(own.sentence for own in requirements(found))


class Bursts(MadeUp):
    """From four times as fast on, checkpoints keep their limit if the first one comes early; from sixteen times on, always."""

    def run(self, scenarios):
        (scenario,) = scenarios[-1:]
        service_ns = scenario.job.vertex("sink").inputs[0].service.mean
        is_late = scenario.overheads.first_trigger_ns > 1e9 or scenario.run.seed > 1
        self.duration = {"aligned": 500.0 if service_ns * (16 if is_late else 4) <= self.usual_ns else 4000.0}
        return super().run(scenarios)


@pytest.mark.parametrize("profile", ["2.x", "1.20"])
def test_a_change_is_enough_at_all_times_of_the_first_checkpoint(job, profile):
    """One of eight times as fast keeps the limit in one trial."""
    bench = Bench(job, {"cluster.profile": profile})
    Bursts.usual_ns = bench.load({}).job.vertex("sink").inputs[0].service.mean
    found = searched(bench, Bursts({}), most=1, checkpoint_ms=1000)

    (factor,) = next(own.factors for own in requirements(found) if "operators" in own.sentence)
    assert 14 < factor < 23
