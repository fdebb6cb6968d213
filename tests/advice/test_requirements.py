"""What would keep the limits where nothing that was tried does: more subtasks of the vertex that is full."""

import pytest

from sim.advice.requirements import requirements
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
