"""Lost task managers as the JobManager sees them: when it misses them, and which of them it can do without."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from sim.model.faults import Restart, TaskManagerLost
from sim.model.job import Distribution
from sim.protocol.restart_strategy import LostSlots
from sim.runtime.jobmanager.task_managers import Reachability, TaskManagers
from tests.laws.small_jobs import MS, SECOND, chain, scenario

RESTART = Restart(
    "fixed-delay",
    heartbeat_interval_ns=10 * SECOND,
    heartbeat_timeout_ns=50 * SECOND,
    heartbeat_failures=2,
    slot_check_ns=7 * MS,
    replacement=Distribution(60 * SECOND),
    ask_timeout_ns=9 * SECOND,
)
GONE, ORDERLY, SILENT = TaskManagerLost(0), TaskManagerLost(0, orderly=True), TaskManagerLost(0, silent=True)
HOSTS = (0, 1, 0, 1, 0, 1)
"""Two subtasks each of source, stage and sink, on two task managers."""


def managers(now=100 * SECOND, seed=1, cluster=None, **restart):
    base = scenario(chain(2))
    base = replace(
        base, restart=replace(RESTART, **restart), run=replace(base.run, seed=seed), cluster=cluster or base.cluster
    )
    return TaskManagers(SimpleNamespace(scenario=base, hosts=HOSTS, env=SimpleNamespace(now=now)))


def lost(what, **options):
    """When it was lost, and what the JobManager knows of its slots."""
    fleet = managers(**options)
    gone_ns = fleet.lose(what, 1)
    slots = fleet.slots.lost[1]
    assert gone_ns == slots.gone_ns
    return slots


class TestLosses:
    def test_one_that_ends_in_an_orderly_way_is_missed_at_once(self):
        assert LostSlots(100 * SECOND, 100 * SECOND, 160 * SECOND, 0) == lost(ORDERLY)

    def test_a_process_that_is_gone_refuses_two_heartbeats(self):
        slots = lost(GONE)
        assert 110 * SECOND <= slots.missed_ns < 120 * SECOND
        assert 110 * SECOND <= slots.released_ns < 120 * SECOND
        assert slots.missed_ns != slots.released_ns, "JobMaster and ResourceManager send at times of their own"

    def test_a_silent_machine_is_missed_when_it_has_not_answered_for_the_timeout(self):
        """A deployment to it is given up after a while."""
        slots = lost(SILENT)
        assert 140 * SECOND <= slots.missed_ns <= 150 * SECOND
        assert 140 * SECOND <= slots.released_ns <= 150 * SECOND
        assert slots.refusal_ns == 9 * SECOND
        assert lost(GONE).refusal_ns == 0

    @pytest.mark.parametrize(("what", "is_told"), [(GONE, True), (ORDERLY, True), (SILENT, False)])
    def test_a_provider_tells_of_containers_that_ended(self, what, is_told):
        slots = lost(what, provider="kubernetes")
        assert is_told == (slots.released_ns == 100 * SECOND)
        assert is_told or slots.missed_ns == slots.released_ns

    def test_replacements_are_drawn_one_by_one(self):
        """Another instance of an adaptive job goes on in the row."""
        fleet = managers(replacement=Distribution(60 * SECOND, "exponential"), scheduler="adaptive")
        for number in (0, 1, 0):
            fleet.lose(ORDERLY, number)
        drawn = fleet._losses
        first = managers(replacement=Distribution(60 * SECOND, "exponential"))
        waits = set()
        for number in (0, 1, 2):
            first.lose(ORDERLY, number)
            waits.add(first.slots.lost[number].replaced_ns)
        assert (drawn, len(waits)) == (3, 3)
        assert all(at_ns > 100 * SECOND for at_ns in waits)

    def test_phases_of_heartbeats_are_drawn(self):
        missed = {lost(SILENT, seed=seed).missed_ns for seed in range(8)}
        assert len(missed) == 8
        assert 3 * SECOND < max(missed) - min(missed) < 10 * SECOND

    def test_heartbeats_are_no_rarer_than_their_timeout(self):
        slots = lost(SILENT, heartbeat_timeout_ns=2 * SECOND)
        assert 100 * SECOND <= slots.missed_ns <= 102 * SECOND

    def test_a_lost_job_manager_is_missed_by_the_timeout(self):
        assert 140 * SECOND <= managers().silent_since(100 * SECOND) <= 150 * SECOND

    def test_another_job_manager_has_heartbeats_of_its_own(self):
        """It knows only what lives: all slots that were lost are gone."""
        fleet = managers()
        fleet.lose(SILENT, 1)
        before = fleet.silent_since(100 * SECOND)
        fleet.elect()
        assert before != fleet.silent_since(100 * SECOND)
        assert (fleet.slots.lost[1].missed_ns, fleet.slots.lost[1].released_ns) == (100 * SECOND, 100 * SECOND)


class TestDeployments:
    def test_a_deployment_into_lost_slots_fails_until_they_are_missed(self):
        fleet = managers()
        fleet.lose(GONE, 1)
        assert (frozenset(), 100 * SECOND) == tuple(
            getattr(fleet.deployment([0, 2]), name) for name in ("unreachable", "at_ns")
        )
        assert frozenset({1}) == fleet.deployment([0, 3]).unreachable

    def test_others_are_given_when_there_are_some(self):
        fleet = managers()
        fleet.lose(ORDERLY, 1)
        assert (frozenset(), 160 * SECOND) == tuple(
            getattr(fleet.deployment([3]), name) for name in ("unreachable", "at_ns")
        )

    def test_tasks_on_a_replacement_are_fresh_until_they_are_deployed(self):
        fleet = managers()
        fleet.lose(ORDERLY, 1)
        assert frozenset({1, 3}) == fleet.fresh([0, 1, 2, 3])
        fleet.deployed([0])
        assert frozenset({1}) == fleet.fresh([1])
        fleet.deployed([1])
        assert frozenset() == fleet.fresh([1, 3, 5])

    @pytest.mark.parametrize("scheduler", ["default", "adaptive"])
    def test_tasks_on_a_task_manager_that_a_larger_parallelism_brings_in_are_fresh(self, scheduler):
        fleet, larger = managers(scheduler=scheduler), managers(scheduler=scheduler)
        larger.context.hosts, larger.numbers = (0, 1, 2, 0, 1, 2), range(3)
        larger.continue_from(fleet)

        assert frozenset({2, 5}) == larger.fresh(range(6))
        larger.deployed(range(6))
        assert frozenset() == larger.fresh(range(6))


class TestAnAdaptiveJob:
    """Task manager 0 is lost at 100 s; there is another one at 160 s."""

    @pytest.fixture
    def fleet(self):
        fleet = managers(scheduler="adaptive")
        fleet.lose(ORDERLY, 0)
        return fleet

    def next_job(self, before, now):
        after = managers(now=now, scheduler="adaptive")
        after.continue_from(before)
        return after

    def test_it_knows_what_is_missing_and_until_when(self, fleet):
        assert fleet.returning() == {0: 160 * SECOND}
        fleet.context.env.now = 160 * SECOND
        assert fleet.returning() == {}

    def test_it_can_do_without_some_but_not_without_any(self, fleet):
        assert fleet.can_do_without([])
        assert fleet.can_do_without([0])
        assert not fleet.can_do_without([0, 1])
        assert not fleet.without_any([0])
        assert fleet.without_any([0, 1])

    def test_its_next_job_runs_on_the_others(self, fleet):
        """There the one that is left is its first; in the scenario it is the second."""
        after = self.next_job(fleet, 130 * SECOND)
        assert list(after.numbers) == [1]
        assert after.returning() == {0: 160 * SECOND}
        assert dict(after.slots.lost) == {}
        after.lose(ORDERLY, 0)
        assert after.returning() == {0: 160 * SECOND, 1: 190 * SECOND}
        assert after._losses == 2

    def test_when_all_are_back_its_next_job_runs_on_all(self, fleet):
        """The one that is back is a new process."""
        after = self.next_job(self.next_job(fleet, 130 * SECOND), 160 * SECOND)
        assert list(after.numbers) == [0, 1]
        assert after.absent == {}
        assert after.returning() == {}

    def test_a_job_that_is_not_adaptive_draws_anew(self, fleet):
        after = managers(now=130 * SECOND)
        after.continue_from(fleet)
        assert (after._losses, after.absent, list(after.slots.lost)) == (0, {}, [0])


class TestReachability:
    @pytest.fixture
    def network(self):
        return Reachability(SimpleNamespace(now=100), HOSTS)

    def test_a_message_waits_for_its_network(self, network):
        assert network.delay_ns(1) == 0
        network.cut_off(1, 150)
        assert (network.delay_ns(0), network.delay_ns(1)) == (0, 50)
        network.env.now = 150
        assert network.delay_ns(1) == 0
        network.env.now = 151
        assert network.delay_ns(1) == 0

    def test_the_longest_outage_counts(self, network):
        network.cut_off(1, 150)
        network.cut_off(1, 120)
        assert network.delay_ns(1) == 50

    def test_a_new_job_repairs_no_network(self, network):
        network.cut_off(0, 100)
        network.cut_off(1, 101)
        after = Reachability(network.env, HOSTS)
        after.continue_from(network)
        assert after._cut_off_until_ns == {1: 101}
