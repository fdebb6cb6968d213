"""The recovery machine: sequences of failures, cancellations and delays."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.model.faults import Restart
from sim.protocol.machine import InvalidTransition
from sim.protocol.recovery import (
    ArmRestart,
    CancelTasks,
    FailForGood,
    FailStopped,
    JobManagerReturned,
    JobStatus,
    Recovery,
    ReportRecovered,
    RestartDelayElapsed,
    RestoreTasks,
    ResumeCheckpoints,
    SuspendCheckpoints,
    TaskInitialized,
    TasksCancelled,
    TasksFailed,
)
from tests.protocol.machines import feed_all as feed

ALL = frozenset({0, 1, 2, 3})
LEFT, RIGHT = frozenset({0, 2}), frozenset({1, 3})
FIXED = Restart("fixed-delay", delay_ns=100)


def failed(now, *tasks):
    return TasksFailed(now, frozenset(tasks), "because")


def one_region(options=FIXED):
    return Recovery.configured(options, (ALL,))


def two_regions(options=FIXED):
    return Recovery.configured(options, (LEFT, RIGHT))


def test_a_failure_suspends_checkpoints_cancels_the_region_and_arms_the_delay():
    machine, commands = feed(one_region(), failed(50, 3))

    assert (SuspendCheckpoints(), CancelTasks(1, ALL), ArmRestart(1, 150)) == commands
    assert JobStatus.RESTARTING is machine.status


@pytest.mark.parametrize("order", [(TasksCancelled, RestartDelayElapsed), (RestartDelayElapsed, TasksCancelled)])
def test_cancelling_and_the_delay_run_side_by_side(order):
    """Whichever is over last lets the tasks be restored."""
    waiting, nothing = feed(one_region(), failed(50, 3), order[0](160, 1))
    machine, commands = feed(waiting, order[1](170, 1))

    assert nothing == ()
    assert (RestoreTasks(1, ALL), ResumeCheckpoints()) == commands
    assert (machine.status, machine.initializing) == (JobStatus.RUNNING, ALL)


def test_the_job_has_recovered_when_the_last_task_runs():
    restoring, _ = feed(one_region(), failed(50, 3), TasksCancelled(60, 1), RestartDelayElapsed(150, 1))
    almost, nothing = feed(restoring, *(TaskInitialized(200 + t, t) for t in (0, 2, 1)))

    assert nothing == ()
    assert (ReportRecovered(),) == feed(almost, TaskInitialized(300, 3))[1]


def test_other_regions_go_on():
    """Only the failed slice is cancelled and restored; checkpoints are suspended for all."""
    machine, commands = feed(two_regions(), failed(50, 3))

    assert (SuspendCheckpoints(), CancelTasks(1, RIGHT), ArmRestart(1, 150)) == commands
    assert (RestoreTasks(1, RIGHT), ResumeCheckpoints()) == feed(
        machine, TasksCancelled(51, 1), RestartDelayElapsed(150, 1)
    )[1]


def test_full_failover_restarts_everything():
    assert CancelTasks(1, ALL) in feed(two_regions(Restart("fixed-delay", failover="full")), failed(50, 3))[1]


def test_a_task_that_is_being_cancelled_does_not_fail():
    """The restart strategy does not count it (Execution#processFail), whether its cancellation is confirmed or not."""
    once, _ = feed(two_regions(Restart("fixed-delay", delay_ns=100, attempts=2)), failed(50, 3))
    again, nothing = feed(once, failed(51, 1), TasksCancelled(60, 1), failed(70, 1, 3))

    assert nothing == ()
    assert again == feed(once, TasksCancelled(60, 1))[0]
    both, commands = feed(again, failed(80, 0, 1))
    assert (CancelTasks(2, LEFT), ArmRestart(2, 180)) == commands, "of a lost TaskManager only the task that ran fails"
    assert FailForGood("because") not in feed(both, failed(90, 2))[1]


def test_a_failure_while_initializing_restarts_again():
    """Nobody waits for the tasks of the first restart any more."""
    machine, commands = feed(
        one_region(),
        failed(50, 3),
        TasksCancelled(60, 1),
        RestartDelayElapsed(150, 1),
        TaskInitialized(160, 0),
        failed(170, 1),
    )

    assert (SuspendCheckpoints(), CancelTasks(2, ALL), ArmRestart(2, 270)) == commands
    assert frozenset() == machine.initializing


def test_two_regions_restart_apart_and_checkpoints_resume_with_the_last():
    both, commands = feed(two_regions(), failed(50, 0), failed(60, 1))

    assert (CancelTasks(2, RIGHT), ArmRestart(2, 160)) == commands, "checkpoints are suspended already"
    first, restored = feed(both, TasksCancelled(61, 1), TasksCancelled(62, 2), RestartDelayElapsed(150, 1))

    assert (RestoreTasks(1, LEFT),) == restored
    assert JobStatus.RESTARTING is first.status
    assert (RestoreTasks(2, RIGHT), ResumeCheckpoints()) == feed(first, RestartDelayElapsed(160, 2))[1]


def test_a_job_has_not_recovered_while_another_region_waits():
    """The first region runs again before the second one's delay is over."""
    both, _ = feed(
        two_regions(),
        failed(50, 0),
        failed(60, 1),
        TasksCancelled(61, 1),
        TasksCancelled(62, 2),
        RestartDelayElapsed(150, 1),
    )
    left, commands = feed(both, TaskInitialized(155, 0), TaskInitialized(156, 2))

    assert commands == ()
    _, commands = feed(left, RestartDelayElapsed(160, 2), TaskInitialized(165, 1), TaskInitialized(166, 3))
    assert (ReportRecovered(),) == commands


def test_the_job_fails_when_its_strategy_gives_up():
    machine, commands = feed(one_region(Restart("none")), failed(50, 0))

    assert (SuspendCheckpoints(), FailForGood("because")) == commands
    assert (machine, ()) == feed(machine, failed(60, 1))


def test_a_new_jobmanager_restarts_everything_at_once():
    """It is not the restart strategy's affair."""
    _, commands = feed(two_regions(Restart("none")), JobManagerReturned(50))

    assert (SuspendCheckpoints(), CancelTasks(1, ALL), ArmRestart(1, 50)) == commands


@pytest.mark.parametrize(
    "options",
    [
        Restart("fixed-delay", delay_ns=100, attempts=1),
        Restart("failure-rate", delay_ns=100, rate=1),
        Restart("exponential-delay", initial_ns=100, attempts=1, jitter=Fraction(0)),
    ],
)
def test_the_restart_strategy_of_a_new_jobmanager_has_seen_no_failure(options):
    """The same failure again: the job fails, unless there is another JobManager in between."""
    once, _ = feed(one_region(options), failed(50, 0), TasksCancelled(60, 1), RestartDelayElapsed(150, 1))

    assert FailForGood("because") == feed(once, failed(5000, 0))[1][-1]
    returned = (JobManagerReturned(4000), TasksCancelled(4000, 2), RestartDelayElapsed(4000, 2))
    assert ArmRestart(3, 5100) == feed(once, *returned, failed(5000, 0))[1][-1]


def test_a_task_that_is_not_restored_cannot_initialize():
    with pytest.raises(InvalidTransition, match="not being restored"):
        feed(one_region(), TaskInitialized(1, 0))


@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from(["fail", "cancelled", "delay", "run"])), max_size=40))
def test_every_restart_ends_once_and_every_cancelled_task_is_restored(steps):
    """Whatever the order of failures and answers: carried on to the end, each task was restored after it was last cancelled."""
    machine, now, open_restarts, down = two_regions(), 0, [], set()

    def advance(event):
        nonlocal machine
        machine, commands = machine.on(event)
        for command in commands:
            if isinstance(command, CancelTasks):
                open_restarts.append(command.restart)
                down.update(command.tasks)
            elif isinstance(command, RestoreTasks):
                assert command.tasks <= down
                down.difference_update(command.tasks)

    for task, step in steps:
        now += 1
        if step == "fail":
            advance(failed(now, task))
        elif step == "run" and task in machine.initializing:
            advance(TaskInitialized(now, task))
        elif step in ("cancelled", "delay") and open_restarts:
            kind = TasksCancelled if step == "cancelled" else RestartDelayElapsed
            advance(kind(now, open_restarts[task % len(open_restarts)]))
    for restart in tuple(open_restarts):
        advance(TasksCancelled(now + 1000, restart))
        advance(RestartDelayElapsed(now + 1000, restart))
    for task in sorted(machine.initializing):
        advance(TaskInitialized(now + 2000, task))

    assert (set(), JobStatus.RUNNING, frozenset()) == (down, machine.status, machine.initializing)


def test_nothing_restarts_a_job_that_has_stopped_with_a_savepoint():
    """Its output is visible, and no checkpoint holds it."""
    machine, commands = feed(one_region(), TasksFailed(50, frozenset({3}), "because", stopped=True))

    assert (FailStopped("because"),) == commands
    assert JobStatus.RUNNING is machine.status, "and nothing is cancelled"
