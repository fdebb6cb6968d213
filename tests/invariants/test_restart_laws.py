"""Laws 100 to 106: what restarts, when, where, and from what."""

import pytest

from sim.invariants import recovery
from sim.invariants.recovery import Allowance, Deployed, LocalCopy
from sim.invariants.violation import JournalFormatter
from sim.results.journal import Entry, Happening

TELLER = JournalFormatter([], [("a", 0), ("a", 1), ("b", 0), ("b", 1)])
REGIONS = [0, 1, 0, 1]
FAILED = Entry(5, Happening.TASK_FAILED, task=0)
RESTARTING = Entry(6, Happening.JOB_RESTARTING, number=1)
RESTORED = Entry(9, Happening.JOB_RESTORED, 1, number=1)
OWN = Deployed(9, 1, frozenset({0, 2}))


def facts(found):
    return [violation.fact for violation in found]


def test_regions_are_tasks_that_exchange_data():
    assert recovery.pipelined_regions(4, [0, 1], [2, 3]) == REGIONS
    assert recovery.pipelined_regions(4, [0, 1, 1], [2, 2, 3]) == [0, 0, 0, 0]


@pytest.mark.parametrize(
    ("tasks", "expected"),
    [
        ({0, 2}, []),
        ({0, 1, 2, 3}, ["it takes a[1] along, and no task failed that exchanges data with it"]),
        ({0}, ["it leaves b[0] alone, which exchanges data with a task of it"]),
    ],
)
def test_a_restart_takes_its_region_along(tasks, expected):
    deployed = [OWN._replace(tasks=frozenset(tasks))]

    assert expected == facts(
        recovery.partial_region_restarts([FAILED, RESTORED], deployed, REGIONS, [0] * 4, TELLER, begun=False)
    )


def test_a_lost_task_manager_and_a_new_job_manager_concern_others():
    everything = [OWN._replace(tasks=frozenset(range(4)))]
    for row in (
        Entry(5, Happening.JOB_MANAGER_LOST),
        Entry(5, Happening.TASK_MANAGER_LOST, number=0),
        Entry(5, Happening.JOB_FAILED),
    ):
        assert (
            facts(recovery.partial_region_restarts([row, RESTORED], everything, REGIONS, [0] * 4, TELLER, begun=False))
            == []
        )


def restart_strategy_errors(rows, *allowance, begun=False):
    return facts(recovery.restart_strategy_errors(rows, Allowance(*allowance), TELLER, begun=begun))


def test_restarts_are_counted_and_wait():
    rows = [RESTARTING, RESTORED, Entry(20, Happening.JOB_RESTARTING, number=2)]

    assert restart_strategy_errors(rows, 2, None, 3) == []
    assert len(restart_strategy_errors(rows, 1, None, 3)) == 1
    assert restart_strategy_errors(rows, 1, 10, 3) == []
    assert restart_strategy_errors(rows, 1, None, 3, begun=True) == []
    assert restart_strategy_errors(rows, 2, None, 4) == ["its tasks are deployed 3e-06 ms later, the delay is 4e-06 ms"]


def test_the_attempt_before_has_stopped():
    assert facts(recovery.unstopped_tasks(OWN, [], {0: 0}, TELLER)) == []
    assert facts(recovery.unstopped_tasks(OWN, [0], {}, TELLER)) == [
        "a[0] is deployed while the thread of its attempt before is at work"
    ]
    assert facts(recovery.unstopped_tasks(OWN, [], {0: 2}, TELLER)) == ["a[0] served 2 records after it was cancelled"]


def test_task_managers_are_there():
    rows = [Entry(5, Happening.TASK_MANAGER_LOST, number=0), RESTORED]

    assert facts(recovery.early_deployments(rows, [OWN], [0] * 4, 4, TELLER)) == []
    assert facts(recovery.early_deployments(rows, [OWN], [1] * 4, 9, TELLER)) == []
    assert len(facts(recovery.early_deployments(rows, [OWN], [0] * 4, 5, TELLER))) == 1


def test_checkpoints_wait_for_tasks():
    begins = Entry(12, Happening.TRIGGERED, 2)
    run = [Entry(11, Happening.TASK_RUNS, task=task) for task in (0, 2)]

    assert facts(recovery.checkpoints_before_running([FAILED, RESTORED, *run, begins], [OWN], TELLER)) == []
    assert facts(recovery.checkpoints_before_running([FAILED, RESTORED, run[0], begins], [OWN], TELLER)) == [
        "checkpoint 2 begins, and b[0] does not run"
    ]


def test_checkpoints_go_on():
    recovered, finished = Entry(12, Happening.JOB_RECOVERED), Entry(40, Happening.JOB_FINISHED)

    assert (
        facts(
            recovery.periodic_checkpoints_not_resumed(
                [recovered, Entry(30, Happening.TRIGGERED, 2), finished], 20, 99, TELLER
            )
        )
        == []
    )
    assert len(facts(recovery.periodic_checkpoints_not_resumed([recovered, finished], 20, 99, TELLER))) == 1
    assert len(facts(recovery.periodic_checkpoints_not_resumed([recovered], 20, 99, TELLER))) == 1
    assert facts(recovery.periodic_checkpoints_not_resumed([recovered], 20, 99, TELLER, [(5, 50), (45, 79)])) == [], (
        "files are deleted meanwhile"
    )
    assert len(facts(recovery.periodic_checkpoints_not_resumed([recovered], 20, 99, TELLER, [(5, 50), (51, 79)]))) == 1


def test_a_local_copy_goes_with_its_machine():
    lost = [Entry(5, Happening.TASK_MANAGER_LOST, number=0)]

    assert facts(recovery.restores_from_lost_disks([LocalCopy(9, 0, 6)], lost, [0] * 4, TELLER)) == []
    assert len(facts(recovery.restores_from_lost_disks([LocalCopy(9, 0, 4)], lost, [0] * 4, TELLER))) == 1


def test_a_failure_is_that_of_its_own():
    """A failed task restarts its region, a lost task manager those of its tasks, a failure of the job all."""
    everything, hosts = [OWN._replace(tasks=frozenset(range(4)))], [0, 1, 0, 1]

    def taken_along(row, deployed):
        return facts(recovery.partial_region_restarts([row, RESTORED], deployed, REGIONS, hosts, TELLER, begun=False))

    assert taken_along(Entry(5, Happening.JOB_FAILED, task=0), [OWN]) == []
    assert taken_along(Entry(5, Happening.JOB_FAILED, task=0), everything) == [
        "it takes a[1] along, and no task failed that exchanges data with it"
    ]
    assert taken_along(Entry(5, Happening.TASK_MANAGER_LOST, number=0), [OWN]) == []
    assert len(taken_along(Entry(5, Happening.TASK_MANAGER_LOST, number=1), [OWN])) == 1
    assert taken_along(Entry(5, Happening.DEPLOYMENT_FAILED, number=0), [OWN]) == []


def test_a_job_that_begins_from_a_snapshot_restarts_all():
    everything = [OWN._replace(tasks=frozenset(range(4)))]

    assert facts(recovery.partial_region_restarts([RESTORED], everything, REGIONS, [0] * 4, TELLER, begun=True)) == []
    assert (
        len(facts(recovery.partial_region_restarts([RESTORED], everything, REGIONS, [0] * 4, TELLER, begun=False))) == 1
    )


def test_restarts_count_within_their_interval():
    """The one at its edge counts; a new JobManager counts anew, and its own restart is none."""
    rows = [RESTARTING, RESTORED, Entry(20, Happening.JOB_RESTARTING, number=2)]
    elected = [
        RESTARTING,
        Entry(8, Happening.JOB_MANAGER_ELECTED),
        Entry(9, Happening.JOB_RESTARTING, number=2),
        *rows[2:],
    ]

    assert len(restart_strategy_errors(rows, 1, 14, 3)) == 1
    assert restart_strategy_errors(rows, 1, 13, 3) == []
    assert restart_strategy_errors(elected, 1, None, 0) == []
    assert len(restart_strategy_errors(elected, 0, None, 0)) == 1


def test_the_first_checkpoint_may_take_its_time():
    """From the moment all tasks run; where something else happens meanwhile, nothing is awaited."""
    recovered = Entry(12, Happening.JOB_RECOVERED)

    assert facts(recovery.periodic_checkpoints_not_resumed([recovered], 20, 32, TELLER)) == []
    assert facts(recovery.periodic_checkpoints_not_resumed([recovered], 20, 33, TELLER)) == [
        "all tasks run, and no checkpoint begins for 2.1e-05 ms"
    ]
    assert (
        facts(recovery.periodic_checkpoints_not_resumed([recovered, Entry(20, Happening.REFUSED)], 20, 99, TELLER))
        == []
    )
    for happening in (Happening.TASK_RUNS, Happening.END_OF_DATA, Happening.TASK_FINISHED, Happening.ABORTED):
        assert (
            len(
                facts(
                    recovery.periodic_checkpoints_not_resumed([recovered, Entry(20, happening, task=0)], 20, 99, TELLER)
                )
            )
            == 1
        )


def test_a_copy_is_gone_with_a_loss_between_its_writing_and_its_reading():
    lost = [Entry(5, Happening.TASK_MANAGER_LOST, number=0)]

    def read(written, at, host=0):
        return len(facts(recovery.restores_from_lost_disks([LocalCopy(at, 0, written)], lost, [host] * 4, TELLER)))

    assert [read(5, 9), read(4, 5), read(6, 9), read(2, 4)] == [1, 1, 0, 0]
    assert read(4, 9, host=1) == 0


def test_the_story_of_a_restart_ends_with_it():
    rows = [FAILED, RESTARTING, RESTORED, Entry(9, Happening.TASK_RUNS, task=0), Entry(10, Happening.JOB_RECOVERED)]
    (found,) = recovery.partial_region_restarts(
        rows, [OWN._replace(tasks=frozenset({0}))], REGIONS, [0] * 4, JournalFormatter(rows, TELLER.names), begun=False
    )

    assert (found.where, found.time_ns) == ("restart 1", 9)
    assert len(found.story) == 3
    assert "restart 1 deploys" in found.story[-1]
    assert recovery.unused_local_copy(9, 1, 0, TELLER).where == "the job"
