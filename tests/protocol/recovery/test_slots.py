"""Slots of lost task managers: deployments that fail, and those that wait."""

from sim.protocol.restart_strategy import Deployment, LostSlots, Slots

NOTHING: frozenset[int] = frozenset()
LOST = Slots(check_ns=5).lose(7, LostSlots(missed_ns=100, released_ns=200, replaced_ns=0))


def test_a_deployment_into_slots_that_are_not_missed_yet_fails():
    assert Deployment(frozenset({7}), 99) == LOST.deployment({6, 7}, 99)
    assert Deployment(NOTHING, 99) == LOST.deployment({6, 8}, 99), "it concerns none of these"


def test_others_are_given_when_the_resource_manager_misses_it_too():
    assert Deployment(NOTHING, 200) == LOST.deployment({6, 7}, 100)
    assert Deployment(NOTHING, 255) == LOST.deployment({7}, 250), "asked for, and looked for"


def test_others_are_given_when_there_are_some():
    later = LOST.lose(8, LostSlots(10, 10, 400))

    assert Deployment(NOTHING, 400) == later.deployment({7, 8}, 150)
    assert Deployment(frozenset({7}), 50) == later.deployment({7, 8}, 50), "one that is not missed yet suffices"


def test_what_is_deployed_again_is_lost_no_more():
    assert Deployment(NOTHING, 20) == LOST.deployed({6, 7}).deployment({7}, 20)
    assert LOST is LOST.deployed({6})


def test_another_jobmanager_knows_those_that_live():
    """It deploys nothing into slots that none reports, and waits only until there are others."""
    assert Deployment(NOTHING, 65) == LOST.for_new_leader(60).deployment({7}, 60)
    assert Deployment(NOTHING, 300) == Slots().lose(7, LostSlots(100, 200, 300)).for_new_leader(60).deployment({7}, 60)


def test_a_silent_machine_refuses_nothing():
    """A deployment to it is given up after the ask timeout, or when the machine is missed."""
    silent = Slots().lose(7, LostSlots(missed_ns=100, released_ns=100, replaced_ns=0, refusal_ns=30))

    assert Deployment(frozenset({7}), 70) == silent.deployment({7}, 40)
    assert Deployment(frozenset({7}), 100) == silent.deployment({7}, 90)


def test_a_resource_manager_that_misses_them_first_tells_the_jobmaster():
    """No deployment fails any more from then on."""
    slots = Slots(check_ns=5).lose(7, LostSlots(missed_ns=100, released_ns=60, replaced_ns=0))

    assert frozenset({7}) == slots.deployment({7}, 59).unreachable
    assert Deployment(NOTHING, 65) == slots.deployment({7}, 60)
