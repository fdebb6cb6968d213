"""What a killed task manager costs is told as a range."""

from dataclasses import replace

import pytest

from sim.model.faults import Kill, Restart, TaskManagerLost
from sim.model.job import Distribution
from sim.model.schema.study import loads
from sim.protocol.recovery import outages
from sim.studies.compare import compare
from sim.studies.remarks.failures import outage_sentence
from tests.invariants.jobs.small_jobs import SECOND, chain, fault_at, scenario

MS = 1_000_000


HEARD = (
    "The JobMaster learns by its heartbeats (heartbeat-interval) after 10.1 s to 19.9 s that a task manager was killed"
)
TRIED = f"{HEARD}; 4 to 5 deployments fail before"


@pytest.mark.parametrize(
    ("restart", "sentence"),
    [
        (Restart(), f"{TRIED}; its tasks have slots again after 13.8 s to 21.4 s"),
        (
            Restart(replacement=Distribution(60 * SECOND)),
            f"{HEARD}; 8 deployments fail before; its tasks have slots again after 75.9 s to 82.1 s",
        ),
        (Restart(scheduler="adaptive"), HEARD),
        (
            Restart("none"),
            "A killed task manager fails the job: the restart strategy gives up before there are slots in 100 % of all cases",
        ),
    ],
)
def test_a_sentence_for_every_strategy(restart, sentence):
    lost = (fault_at(TaskManagerLost(0), 1000),)

    assert sentence == outage_sentence(replace(scenario(chain()), faults=lost, restart=restart))


def test_a_task_manager_that_nobody_else_reads_from_is_missed_by_its_heartbeats_alone():
    """The restart delay begins when its loss is detected, and nothing is deployed before."""
    jobs = [
        f"job: {{a: {{source: {{rate: 100/s, record: 1 kB}}, parallelism: 2}}, b: {{input: {{a: {ship}}}, service: 1 ms, parallelism: 2}}}}\n"
        "checkpoint: {interval: 5 s}\nrun: {duration: 30 s}\ncluster: {slots: 1}\n"
        "restart: {strategy: fixed-delay, delay: 5 s}\nfaults: [{task-manager: 1, at: 9 s}]\n"
        for ship in ("forward", "hash")
    ]
    alone, read = (outage_sentence(loads(text).scenarios[0]) for text in jobs)

    assert alone == f"{HEARD}; its tasks have slots again after 15.2 s to 25 s"
    assert "1 to 3 deployments fail before" in read


@pytest.mark.parametrize(("strategy", "grows"), [("exponential-delay", True), ("fixed-delay", False)])
def test_other_failures_let_the_delay_grow(strategy, grows):
    """The range is that of a first failure."""
    text = (
        "job: {a: {source: {rate: 100/s, record: 1 kB}}, b: {input: {a: hash}, service: 1 ms}}\ncheckpoint: {interval: 5 s}\n"
        "faults: [{kill: b, at: 4 s}, {task-manager: 0, at: 20 s}]\nrun: {duration: 60 s}\n"
        f"restart: {{strategy: {strategy}}}\n"
    )
    alone, after = (
        "as the restart delay grows" in " ".join(compare(loads(own), jobs=1).outcomes)
        for own in (text.replace("{kill: b, at: 4 s}, ", ""), text)
    )

    assert (alone, after) == (False, grows)


@pytest.mark.parametrize(
    ("provider", "says"), [("standalone", "4 deployments fail for lack"), ("kubernetes", "1 deployment fails for lack")]
)
def test_a_deployment_without_slots_uses_an_attempt(provider, says):
    """A real standalone cluster of Flink 2.3.0 fails each of them 0.1 s after the request; Kubernetes is waited for."""
    text = (
        "job: {a: {source: {rate: 10/s, record: 1 kB}}, b: {input: {a: hash}, service: 1 ms}}\ncheckpoint: {interval: 1 min}\n"
        "faults: [{task-manager: 0, at: 70 s, orderly: true}]\nrun: {duration: 3 min}\n"
        f"restart: {{strategy: fixed-delay, delay: 10 s, replacement: 45 s, slot-timeout: 30 s, provider: {provider}}}\n"
    )

    assert f"{says} of slots" in " ".join(compare(loads(text), jobs=1).outcomes)


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
    killed = replace(scenario(chain()), faults=(fault_at(what, 1000),), restart=Restart())

    assert says == bool(outage_sentence(killed))
