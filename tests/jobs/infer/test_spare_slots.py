"""Whether a lost task manager leaves the job slots: free ones in Flink's answers, or a question."""

import pytest

from sim.jobs.infer.scenario import infer_scenario
from sim.jobs.source.rest_answers import RestSnapshot
from sim.jobs.source.saved import read_saved
from sim.model.schema.study import loads
from tests.places import USERS


@pytest.mark.parametrize(
    "option",
    [("scheduler-mode", "REACTIVE"), ("jobmanager.scheduler", "Adaptive"), ("jobmanager.scheduler", "Default")],
)
def test_the_scheduler_is_that_of_the_cluster(option):
    """Reactive mode has the adaptive one; names of 1.20 and waits without end are read."""
    snapshot = read_saved(USERS / "R7-cores-aligned.zip")
    waits = {"resource-wait-timeout": "-1", "scaling-interval.min": "7 s"}
    options = dict([option]) | {f"jobmanager.adaptive-scheduler.{name}": value for name, value in waits.items()}
    entries = [{"key": key, "value": value} for key, value in options.items()]
    answers = dict(snapshot.answers) | {f"/jobs/{snapshot.job}/jobmanager/config": entries}
    found = infer_scenario(RestSnapshot(snapshot.source, snapshot.job, answers, snapshot.samples))
    restart = loads(found.text).scenarios[0].restart

    assert ("default" if "Default" in option else "adaptive", "REACTIVE" in option) == (
        restart.scheduler,
        restart.reactive,
    )
    assert (restart.resource_wait_ns, restart.cooldown_ns) == (None, 7 * 10**9)
