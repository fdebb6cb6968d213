"""Laws 100 to 106: what restarts, when, where, and from what."""

import pytest

from sim.checkers import restarts
from sim.checkers.restarts import Allowance, Deployed, LocalCopy
from sim.checkers.story import Teller
from sim.metrics.journal import Entry, Happening

TELLER = Teller([], [("a", 0), ("a", 1), ("b", 0), ("b", 1)])
REGIONS = [0, 1, 0, 1]
FAILED = Entry(5, Happening.TASK_FAILED, task=0)
RESTARTING = Entry(6, Happening.JOB_RESTARTING, number=1)
RESTORED = Entry(9, Happening.JOB_RESTORED, 1, number=1)
OWN = Deployed(9, 1, frozenset({0, 2}))


def facts(found):
    return [violation.fact for violation in found]


def test_regions_are_tasks_that_exchange_data():
    assert REGIONS == restarts.joined(4, [0, 1], [2, 3])
    assert [0, 0, 0, 0] == restarts.joined(4, [0, 1, 1], [2, 2, 3])


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

    assert expected == facts(restarts.misjoined([FAILED, RESTORED], deployed, REGIONS, [0] * 4, TELLER, begun=False))


def test_a_lost_task_manager_and_a_new_job_manager_concern_others():
    everything = [OWN._replace(tasks=frozenset(range(4)))]
    for row in (Entry(5, Happening.JOB_MANAGER_LOST), Entry(5, Happening.TASK_MANAGER_LOST, number=0), Entry(5, Happening.JOB_FAILED)):
        assert [] == facts(restarts.misjoined([row, RESTORED], everything, REGIONS, [0] * 4, TELLER, begun=False))


def test_restarts_are_counted_and_wait():
    rows = [RESTARTING, RESTORED, Entry(20, Happening.JOB_RESTARTING, number=2)]

    assert [] == facts(restarts.beyond_the_strategy(rows, Allowance(2, None, 3), TELLER, begun=False))
    assert 1 == len(facts(restarts.beyond_the_strategy(rows, Allowance(1, None, 3), TELLER, begun=False)))
    assert [] == facts(restarts.beyond_the_strategy(rows, Allowance(1, 10, 3), TELLER, begun=False))
    assert [] == facts(restarts.beyond_the_strategy(rows, Allowance(1, None, 3), TELLER, begun=True))
    assert ["its tasks are deployed 3e-06 ms later, the delay is 4e-06 ms"] == facts(
        restarts.beyond_the_strategy(rows, Allowance(2, None, 4), TELLER, begun=False)
    )


def test_the_attempt_before_has_stopped():
    assert [] == facts(restarts.still_there(OWN, [], {0: 0}, TELLER))
    assert ["a[0] is deployed while the thread of its attempt before is at work"] == facts(restarts.still_there(OWN, [0], {}, TELLER))
    assert ["a[0] served 2 records after it was cancelled"] == facts(restarts.still_there(OWN, [], {0: 2}, TELLER))


def test_task_managers_are_there():
    rows = [Entry(5, Happening.TASK_MANAGER_LOST, number=0), RESTORED]

    assert [] == facts(restarts.homeless(rows, [OWN], [0] * 4, 4, TELLER))
    assert [] == facts(restarts.homeless(rows, [OWN], [1] * 4, 9, TELLER))
    assert 1 == len(facts(restarts.homeless(rows, [OWN], [0] * 4, 5, TELLER)))


def test_checkpoints_wait_for_tasks():
    begins = Entry(12, Happening.TRIGGERED, 2)
    run = [Entry(11, Happening.TASK_RUNS, task=task) for task in (0, 2)]

    assert [] == facts(restarts.too_soon([FAILED, RESTORED, *run, begins], [OWN], TELLER))
    assert ["checkpoint 2 begins, and b[0] does not run"] == facts(restarts.too_soon([FAILED, RESTORED, run[0], begins], [OWN], TELLER))


def test_checkpoints_go_on():
    recovered, finished = Entry(12, Happening.JOB_RECOVERED), Entry(40, Happening.JOB_FINISHED)

    assert [] == facts(restarts.never_again([recovered, Entry(30, Happening.TRIGGERED, 2), finished], 20, 99, TELLER))
    assert 1 == len(facts(restarts.never_again([recovered, finished], 20, 99, TELLER)))
    assert 1 == len(facts(restarts.never_again([recovered], 20, 99, TELLER)))
    assert [] == facts(restarts.never_again([recovered], 20, 99, TELLER, [(5, 50), (45, 79)])), "files are deleted meanwhile"
    assert 1 == len(facts(restarts.never_again([recovered], 20, 99, TELLER, [(5, 50), (51, 79)])))


def test_a_local_copy_goes_with_its_machine():
    lost = [Entry(5, Happening.TASK_MANAGER_LOST, number=0)]

    assert [] == facts(restarts.from_lost_disks([LocalCopy(9, 0, 6)], lost, [0] * 4, TELLER))
    assert 1 == len(facts(restarts.from_lost_disks([LocalCopy(9, 0, 4)], lost, [0] * 4, TELLER)))


def test_a_failure_is_that_of_its_own():
    """A failed task restarts its region, a lost task manager those of its tasks, a failure of the job all."""
    everything, hosts = [OWN._replace(tasks=frozenset(range(4)))], [0, 1, 0, 1]

    def taken_along(row, deployed):
        return facts(restarts.misjoined([row, RESTORED], deployed, REGIONS, hosts, TELLER, begun=False))

    assert [] == taken_along(Entry(5, Happening.JOB_FAILED, task=0), [OWN])
    assert ["it takes a[1] along, and no task failed that exchanges data with it"] == taken_along(
        Entry(5, Happening.JOB_FAILED, task=0), everything
    )
    assert [] == taken_along(Entry(5, Happening.TASK_MANAGER_LOST, number=0), [OWN])
    assert 1 == len(taken_along(Entry(5, Happening.TASK_MANAGER_LOST, number=1), [OWN]))
    assert [] == taken_along(Entry(5, Happening.DEPLOYMENT_FAILED, number=0), [OWN])


def test_a_job_that_begins_from_a_snapshot_restarts_all():
    everything = [OWN._replace(tasks=frozenset(range(4)))]

    assert [] == facts(restarts.misjoined([RESTORED], everything, REGIONS, [0] * 4, TELLER, begun=True))
    assert 1 == len(facts(restarts.misjoined([RESTORED], everything, REGIONS, [0] * 4, TELLER, begun=False)))


def test_restarts_count_within_their_interval():
    """The one at its edge counts; a new JobManager counts anew, and its own restart is none."""
    rows = [RESTARTING, RESTORED, Entry(20, Happening.JOB_RESTARTING, number=2)]
    elected = [RESTARTING, Entry(8, Happening.JOB_MANAGER_ELECTED), Entry(9, Happening.JOB_RESTARTING, number=2), *rows[2:]]

    assert 1 == len(facts(restarts.beyond_the_strategy(rows, Allowance(1, 14, 3), TELLER, begun=False)))
    assert [] == facts(restarts.beyond_the_strategy(rows, Allowance(1, 13, 3), TELLER, begun=False))
    assert [] == facts(restarts.beyond_the_strategy(elected, Allowance(1, None, 0), TELLER, begun=False))
    assert 1 == len(facts(restarts.beyond_the_strategy(elected, Allowance(0, None, 0), TELLER, begun=False)))


def test_the_first_checkpoint_may_take_its_time():
    """From the moment all tasks run; where something else happens meanwhile, nothing is awaited."""
    recovered = Entry(12, Happening.JOB_RECOVERED)

    assert [] == facts(restarts.never_again([recovered], 20, 32, TELLER))
    assert ["all tasks run, and no checkpoint begins for 2.1e-05 ms"] == facts(restarts.never_again([recovered], 20, 33, TELLER))
    assert [] == facts(restarts.never_again([recovered, Entry(20, Happening.REFUSED)], 20, 99, TELLER))
    for happening in (Happening.TASK_RUNS, Happening.END_OF_DATA, Happening.TASK_FINISHED, Happening.ABORTED):
        assert 1 == len(facts(restarts.never_again([recovered, Entry(20, happening, task=0)], 20, 99, TELLER)))


def test_a_copy_is_gone_with_a_loss_between_its_writing_and_its_reading():
    lost = [Entry(5, Happening.TASK_MANAGER_LOST, number=0)]

    def read(written, at, host=0):
        return len(facts(restarts.from_lost_disks([LocalCopy(at, 0, written)], lost, [host] * 4, TELLER)))

    assert [1, 1, 0, 0] == [read(5, 9), read(4, 5), read(6, 9), read(2, 4)]
    assert 0 == read(4, 9, host=1)


def test_the_story_of_a_restart_ends_with_it():
    rows = [FAILED, RESTARTING, RESTORED, Entry(9, Happening.TASK_RUNS, task=0), Entry(10, Happening.JOB_RECOVERED)]
    (found,) = restarts.misjoined(rows, [OWN._replace(tasks=frozenset({0}))], REGIONS, [0] * 4, Teller(rows, TELLER.names), begun=False)

    assert ("restart 1", 9) == (found.where, found.time_ns)
    assert 3 == len(found.story)
    assert "restart 1 deploys" in found.story[-1]
    assert "the job" == restarts.from_afar(9, 1, 0, TELLER).where
