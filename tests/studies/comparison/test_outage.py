"""What a killed task manager costs is told as a range."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from sim.model.faults import Fault, Kill, Restart, TaskManagerLost, When
from sim.model.job import Distribution
from sim.protocol.recovery import outages
from sim.studies.comparison import Comparison, outage_sentence
from tests.laws.small_jobs import SECOND, chain, scenario

MS = 1_000_000


HEARD = (
    "The JobMaster hears by its heartbeats (heartbeat-interval) after 10.1 s to 19.9 s that a task manager was killed; "
    "4 to 5 deployments onto it fail before"
)


@pytest.mark.parametrize(
    ("restart", "sentence"),
    [
        (Restart(), f"{HEARD}; its tasks have slots again after 13.8 s to 21.4 s."),
        (Restart(replacement=Distribution(60 * SECOND)), f"{HEARD}; its tasks have slots again after 1 min."),
        (
            Restart(scheduler="adaptive"),
            f"{HEARD}; the adaptive scheduler goes on with the others if their slots are enough.",
        ),
        (
            Restart("none"),
            "A killed task manager fails the job: the restart strategy gives up before the JobMaster misses it in 100 % of all cases.",
        ),
    ],
)
def test_a_sentence_for_every_strategy(restart, sentence):
    assert sentence == outage_sentence(replace(scenario(chain()), restart=restart))


def test_a_fixed_delay_gives_up_before_the_task_manager_is_missed():
    """Ten attempts of a second are over after eleven; two heartbeats in a row are refused after 10 to 20 s."""
    law = outages(Restart("fixed-delay", attempts=10), fail_ns=20 * MS, restart_ns=30 * MS)
    given_up = sum(outage.ready_ns is None for outage in law) / len(law)

    assert 0.85 < given_up < 0.95
    assert {10} == {outage.deployments for outage in law}


def test_the_law_is_that_of_the_parts():
    """No attempt is counted twice: without a limit there is one for each delay until a heartbeat is missed."""
    law = outages(Restart("fixed-delay"), fail_ns=20 * MS, restart_ns=30 * MS)

    for ready_ns, deployments, _ in law:
        assert ready_ns >= 170 * MS + deployments * 1030 * MS + (deployments - 1) * 20 * MS + 50 * MS
        assert 10 * SECOND <= ready_ns <= 21.2 * SECOND


def test_a_provider_that_tells_leaves_no_deployment_to_fail():
    """The JobMaster hears it from the ResourceManager: one delay, and the slots are looked for."""
    law = outages(Restart("fixed-delay", provider="yarn"), fail_ns=20 * MS, restart_ns=30 * MS)

    assert {((20 + 1000 + 30 + 50) * MS, 1)} == {(outage.ready_ns, outage.deployments) for outage in law}


@pytest.mark.parametrize(
    ("what", "says"),
    [
        (TaskManagerLost(0), True),
        (TaskManagerLost(0, silent=True), False),
        (TaskManagerLost(0, orderly=True), False),
        (Kill("sink", 0), False),
    ],
)
def test_the_range_is_said_where_a_task_manager_is_killed(what, says):
    result = SimpleNamespace(
        scenario=replace(scenario(chain()), faults=(Fault(what, When((SECOND,))),), restart=Restart())
    )

    assert says == bool(Comparison("", "", {"aligned": (result,)}, {}, {}).outage)


def test_each_strategy_has_its_own_range_where_they_differ():
    fault = Fault(TaskManagerLost(0), When((SECOND,)))
    results = {
        name: (
            SimpleNamespace(
                scenario=replace(scenario(chain()), faults=(fault,), restart=Restart(heartbeat_interval_ns=interval_ns))
            ),
        )
        for name, interval_ns in (("10 s", 10 * SECOND), ("also 10 s", 10 * SECOND), ("2 s", 2 * SECOND))
    }

    said = [
        line.partition(" that a task manager")[0] for line in Comparison("", "", results, {}, {}).outage.splitlines()
    ]

    assert said == [
        "10 s, also 10 s: The JobMaster hears by its heartbeats (heartbeat-interval) after 10.1 s to 19.9 s",
        "2 s: The JobMaster hears by its heartbeats (heartbeat-interval) after 2 s to 4 s",
    ]
