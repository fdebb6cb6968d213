"""The interval while sources read a backlog, after Flink's CheckpointCoordinatorTriggeringTest (FLIP-309)."""

from itertools import pairwise

import pytest

from sim.model.checkpoint import CheckpointOptions
from sim.protocol.coordinator import Coordinator
from sim.protocol.messages import (
    ArmPeriodicTimer,
    BacklogReported,
    PeriodicTimerFired,
    PrepareTrigger,
    RequestKind,
    SchedulerStarted,
    SchedulerStopped,
    TriggerReady,
)

PERIODIC = RequestKind.PERIODIC


def begun(in_backlog, *, first=40, **options):
    """A coordinator whose interval is 100, with its first point at `first`."""
    machine = Coordinator.configured(
        CheckpointOptions(100, interval_during_backlog_ns=in_backlog, timeout_ns=1000, **options)
    )
    machine, _ = machine.on(SchedulerStarted(0, first))
    return machine


def fired(machine, now):
    """Its timer, and the trigger that finds nobody running: the next one may follow."""
    machine, commands = machine.on(PeriodicTimerFired(now))
    machine, _ = machine.on(TriggerReady(now, None))
    return machine, commands


def test_the_interval_of_the_backlog_is_in_force_while_a_source_reads_one():
    machine, _ = begun(300).on(BacklogReported(10, 0, behind=True))

    assert (ArmPeriodicTimer(340), PrepareTrigger(PERIODIC)) == fired(machine, 40)[1]


def test_a_longer_interval_does_not_put_off_what_is_due():
    machine, commands = begun(300).on(BacklogReported(10, 0, behind=True))

    assert commands == ()
    assert machine.armed_ns == 40


def test_a_shorter_interval_begins_when_the_backlog_ends():
    """The point of the longer one is given up if it would come later."""
    machine, _ = fired(begun(300).on(BacklogReported(10, 0, behind=True))[0], 40)

    assert (ArmPeriodicTimer(150),) == machine.on(BacklogReported(50, 0, behind=False))[1]
    assert machine.on(BacklogReported(300, 0, behind=False))[1] == (), "the old point comes sooner"


def test_without_checkpoints_in_a_backlog_the_point_that_was_armed_is_the_last():
    """The timer parks, and triggers all the same (FLINK-39108); the end of the backlog starts the grid again."""
    machine, _ = begun(0).on(BacklogReported(10, 0, behind=True))
    machine, commands = fired(machine, 40)

    assert (PrepareTrigger(PERIODIC),) == commands
    assert machine.on(PeriodicTimerFired(10_000))[1] == ()
    assert (ArmPeriodicTimer(5100),) == machine.on(BacklogReported(5000, 0, behind=False))[1]


def test_one_source_that_is_behind_is_enough():
    machine, _ = begun(300).on(BacklogReported(10, 0, behind=True))
    machine, _ = machine.on(BacklogReported(11, 1, behind=True))
    machine, _ = machine.on(BacklogReported(12, 0, behind=False))

    assert ArmPeriodicTimer(340) == fired(machine, 40)[1][0]


def test_without_an_interval_of_its_own_a_backlog_changes_nothing():
    machine, _ = begun(None).on(BacklogReported(10, 0, behind=True))

    assert ArmPeriodicTimer(140) == fired(machine, 40)[1][0]


def test_what_was_reported_outlasts_a_stop_of_the_scheduler():
    machine, _ = begun(300).on(SchedulerStopped(5))
    machine, commands = machine.on(BacklogReported(10, 0, behind=True))

    assert commands == (), "nothing is armed while the job is down"
    assert ArmPeriodicTimer(320) == fired(machine.on(SchedulerStarted(15, 5))[0], 20)[1][0]


@pytest.mark.parametrize("in_backlog", [300, 0])
@pytest.mark.parametrize(("begin", "end"), [(10, 700), (130, 1000), (333, 340), (250, 1711)])
def test_invariant_60_gaps_are_of_either_interval_and_one_mixed_per_switch(in_backlog, begin, end):
    """With 0 at most one trigger follows the switch until it is over."""
    machine, triggers, reports = begun(in_backlog), [], [(begin, True), (end, False)]
    while machine.armed_ns < 2500 or reports:
        if reports and reports[0][0] <= machine.armed_ns:
            now, behind = reports.pop(0)
            machine, _ = machine.on(BacklogReported(now, 0, behind=behind))
        else:
            triggers.append(machine.armed_ns)
            machine, _ = fired(machine, machine.armed_ns)
    gaps = [later - earlier for earlier, later in pairwise(triggers)]

    assert sum(gap not in (100, 300) for gap in gaps) <= 2
    assert in_backlog or sum(begin <= trigger < end for trigger in triggers) <= 1
    assert triggers[-1] > 2000, "the grid goes on"
