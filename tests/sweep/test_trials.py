"""What is tried to advise on a job."""

from dataclasses import replace

from sim.model.cluster import Debloat
from sim.sweep.advice.trials import INTERVALS_NS, PROTOCOLS, todays, trials

S = 1_000_000_000


def test_every_protocol_at_every_interval_twice(study):
    """Undisturbed and with a failure; today's interval is among them, what somebody did to the job is not."""
    scenario = study.scenarios[0]  # every second
    steady, failing = trials(replace(scenario, expect=(("a", "b"),)), patience_ns=90 * S, replications=2)

    assert len(PROTOCOLS) * (len(INTERVALS_NS) + 1) == len(steady) == len(failing)
    assert {()} == {one.expect for one in steady} == {one.faults for one in steady}
    assert {1} == {len(one.faults) for one in failing}
    assert {2} == {one.run.replications for one in steady}
    assert ["1 s", "aligned", "undisturbed"] == [value for _, value in steady[0].axes]
    assert {S, *INTERVALS_NS} == {one.checkpoint.interval_ns for one in steady}


def test_a_failure_comes_late_in_an_interval_and_leaves_time_to_recover(study):
    """After a minute, and after a checkpoint could complete."""
    _, failing = trials(study.scenarios[0], patience_ns=90 * S, replications=1)

    for one in failing:
        (at_ns,), interval_ns = one.faults[0].when.at_ns, one.checkpoint.interval_ns
        assert at_ns >= 60 * S + interval_ns
        assert 0.9 == at_ns % interval_ns / interval_ns
        assert 90 * S == one.run.duration_ns - at_ns


def test_a_protocol_of_ones_own_is_tried_too(study):
    scenario = study.scenarios[1]
    own = replace(scenario, cluster=replace(scenario.cluster, network=replace(scenario.cluster.network, debloat=Debloat(target_ns=S // 2))))

    assert "unaligned" == todays(scenario)[1].name
    assert "unaligned, debloating" == todays(own)[1].name
    assert {"unaligned, debloating"} < {dict(one.axes)["protocol"] for one in trials(own, patience_ns=S, replications=1)[0]}
    assert [S // 2] == list({one.cluster.network.debloat.target_ns for one in trials(own, patience_ns=S, replications=1)[0]
                             if one.cluster.network.debloat})  # fmt: skip
