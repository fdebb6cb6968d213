"""What would keep the limits where nothing that was tried does."""

import pytest

from sim.advice.requirements import requirements
from sim.advice.trials import Bench
from tests.advice.made_up import JOB, MadeUp, searched  # noqa: F401 - the fixture writes the job


class Bursts(MadeUp):
    """From four times as fast on, checkpoints keep their limit if the first one comes early; from sixteen times on, always."""

    def run(self, scenarios):
        (scenario,) = scenarios[-1:]
        service_ns = scenario.job.vertex("sink").inputs[0].service.mean
        is_late = scenario.overheads.first_trigger_ns > 1e9 or scenario.run.seed > 1
        self.duration = {"aligned": 500.0 if service_ns * (16 if is_late else 4) <= self.typical_ns else 4000.0}
        return super().run(scenarios)


@pytest.mark.parametrize("profile", ["2.x", "1.20"])
def test_a_change_is_enough_at_all_times_of_the_first_checkpoint(job, profile):
    """One of eight times as fast keeps the limit in one trial."""
    bench = Bench(job, {"cluster.profile": profile})
    Bursts.typical_ns = bench.load({}).job.vertex("sink").inputs[0].service.mean
    found = searched(bench, Bursts({}), most=1, checkpoint_ms=1000)

    (sentence,) = (text for text in requirements(found) if "operators" in text)
    assert 14 < float(sentence.split("operators ")[1].split(" ")[0]) < 23
