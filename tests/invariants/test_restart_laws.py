"""Laws 100 to 106 and 118: what restarts, when, where, from what, and how long the adaptive scheduler waits."""

import pytest

from sim.invariants import recovery
from sim.invariants.recovery import STABLE_SLOTS, Allowance, Deployed, LocalCopy, Waits
from sim.invariants.violation import JournalFormatter
from sim.results.journal import Entry, Happening
from tests.runtime.jobmanager.adaptive_runs import run

# Laws 100 to 106: what restarts, when, where, and from what.


TELLER = JournalFormatter([], [("a", 0), ("a", 1), ("b", 0), ("b", 1)])
REGIONS = [0, 1, 0, 1]
FAILED = Entry(5, Happening.TASK_FAILED, task=0)
RESTARTING = Entry(6, Happening.JOB_RESTARTING, number=1)
RESTORED = Entry(9, Happening.JOB_RESTORED, 1, number=1)
RECOVERED = Entry(12, Happening.JOB_RECOVERED)
TASK_MANAGER_LOST = Entry(5, Happening.TASK_MANAGER_LOST, number=0)
OWN = Deployed(9, 1, frozenset({0, 2}))
EVERYTHING = OWN._replace(tasks=frozenset(range(4)))
TAKEN_ALONG = ["it takes a[1] along, and no task failed that exchanges data with it"]


def facts(found):
    return [violation.fact for violation in found]


def partial_restarts(deployed, *rows, hosts=(0,) * 4, begun=False):
    """What is wrong with a restart of these tasks after these rows."""
    return facts(recovery.partial_region_restarts([*rows, RESTORED], [deployed], REGIONS, hosts, TELLER, begun=begun))


def test_regions_are_tasks_that_exchange_data():
    assert recovery.pipelined_regions(4, [0, 1], [2, 3]) == REGIONS
    assert recovery.pipelined_regions(4, [0, 1, 1], [2, 2, 3]) == [0, 0, 0, 0]


@pytest.mark.parametrize(
    ("tasks", "expected"),
    [
        ({0, 2}, []),
        ({0, 1, 2, 3}, TAKEN_ALONG),
        ({0}, ["it leaves b[0] alone, which exchanges data with a task of it"]),
    ],
)
def test_a_restart_takes_its_region_along(tasks, expected):
    assert expected == partial_restarts(OWN._replace(tasks=frozenset(tasks)), FAILED)


def test_a_failure_is_that_of_its_own():
    """A failed task restarts its region, a lost task manager those of its tasks, a failure of the job or its JobManager all."""
    hosts = (0, 1, 0, 1)
    of_a_task = Entry(5, Happening.JOB_FAILED, task=0)

    assert partial_restarts(OWN, of_a_task) == []
    assert partial_restarts(EVERYTHING, of_a_task) == TAKEN_ALONG
    assert partial_restarts(OWN, TASK_MANAGER_LOST, hosts=hosts) == []
    assert partial_restarts(EVERYTHING, TASK_MANAGER_LOST) == []
    assert len(partial_restarts(OWN, TASK_MANAGER_LOST._replace(number=1), hosts=hosts)) == 1
    assert partial_restarts(OWN, Entry(5, Happening.DEPLOYMENT_FAILED, number=0), hosts=hosts) == []
    for happening in (Happening.JOB_MANAGER_LOST, Happening.JOB_FAILED):
        assert partial_restarts(EVERYTHING, Entry(5, happening)) == []


def test_a_job_that_begins_from_a_snapshot_restarts_all():
    assert partial_restarts(EVERYTHING, begun=True) == []
    assert len(partial_restarts(EVERYTHING)) == 1


def restart_strategy_errors(rows, *allowance, begun=False):
    return facts(recovery.restart_strategy_errors(rows, Allowance(*allowance), TELLER, begun=begun))


def test_restarts_are_counted_and_wait():
    """The one at the edge of the interval counts; a new JobManager counts anew, and its own restart is none."""
    rows = [RESTARTING, RESTORED, Entry(20, Happening.JOB_RESTARTING, number=2)]
    elected = [
        RESTARTING,
        Entry(8, Happening.JOB_MANAGER_ELECTED),
        Entry(9, Happening.JOB_RESTARTING, number=2),
        *rows[2:],
    ]

    assert restart_strategy_errors(rows, 2, None, 3) == []
    assert len(restart_strategy_errors(rows, 1, None, 3)) == 1
    assert restart_strategy_errors(rows, 1, None, 3, begun=True) == []
    assert restart_strategy_errors(rows, 2, None, 4) == ["its tasks are deployed 3e-06 ms later, the delay is 4e-06 ms"]
    assert len(restart_strategy_errors(rows, 1, 14, 3)) == 1
    assert restart_strategy_errors(rows, 1, 13, 3) == []
    assert restart_strategy_errors(elected, 1, None, 0) == []
    assert len(restart_strategy_errors(elected, 0, None, 0)) == 1


def test_task_managers_are_there():
    rows = [TASK_MANAGER_LOST, RESTORED]

    for host, shortest_ns, violations in ((0, 4, 0), (1, 9, 0), (0, 5, 1)):
        assert violations == len(facts(recovery.early_deployments(rows, [OWN], [host] * 4, shortest_ns, TELLER)))


def test_checkpoints_wait_for_tasks():
    begins = Entry(12, Happening.TRIGGERED, 2)
    run = [Entry(11, Happening.TASK_RUNS, task=task) for task in (0, 2)]

    assert facts(recovery.checkpoints_before_running([FAILED, RESTORED, *run, begins], [OWN], TELLER)) == []
    assert facts(recovery.checkpoints_before_running([FAILED, RESTORED, run[0], begins], [OWN], TELLER)) == [
        "checkpoint 2 begins, and b[0] does not run"
    ]


def not_resumed(*rows, end_ns=99, deletions=()):
    """What is wrong if no checkpoint begins within 20 ns after all tasks run again, until the end of the run."""
    return facts(recovery.periodic_checkpoints_not_resumed([RECOVERED, *rows], 20, end_ns, TELLER, deletions))


def test_checkpoints_go_on():
    """From the moment all tasks run, or their files are deleted; where something else happens meanwhile, nothing is awaited."""
    finished = Entry(40, Happening.JOB_FINISHED)

    assert not_resumed(Entry(30, Happening.TRIGGERED, 2), finished) == []
    assert not_resumed(Entry(20, Happening.REFUSED)) == []
    assert len(not_resumed(finished)) == 1
    assert not_resumed(end_ns=32) == []
    assert not_resumed(end_ns=33) == ["all tasks run, and no checkpoint begins for 2.1e-05 ms"]
    assert not_resumed(deletions=[(5, 50), (45, 79)]) == [], "files are deleted meanwhile"
    assert len(not_resumed(deletions=[(5, 50), (51, 79)])) == 1
    for happening in (Happening.TASK_RUNS, Happening.END_OF_DATA, Happening.TASK_FINISHED, Happening.ABORTED):
        assert len(not_resumed(Entry(20, happening, task=0))) == 1


@pytest.mark.parametrize(
    ("written_ns", "read_ns", "host", "violations"),
    [(5, 9, 0, 1), (4, 5, 0, 1), (6, 9, 0, 0), (2, 4, 0, 0), (4, 9, 1, 0)],
)
def test_a_copy_is_gone_with_a_loss_between_its_writing_and_its_reading(written_ns, read_ns, host, violations):
    copy = LocalCopy(read_ns, 0, written_ns)

    assert violations == len(facts(recovery.restores_from_lost_disks([copy], [TASK_MANAGER_LOST], [host] * 4, TELLER)))


def test_the_story_of_a_restart_ends_with_it():
    rows = [FAILED, RESTARTING, RESTORED, Entry(9, Happening.TASK_RUNS, task=0), Entry(10, Happening.JOB_RECOVERED)]
    (found,) = recovery.partial_region_restarts(
        rows, [OWN._replace(tasks=frozenset({0}))], REGIONS, [0] * 4, JournalFormatter(rows, TELLER.names), begun=False
    )

    assert (found.where, found.time_ns) == ("restart 1", 9)
    assert len(found.story) == 3
    assert "restart 1 deploys" in found.story[-1]
    assert recovery.unused_local_copy(9, 1, 0, TELLER).where == "the job"


# Law 118: how long the adaptive scheduler waits, by rows of a journal and in runs whose scheduler is broken.


SCHEDULER_TELLER = JournalFormatter([], [("a", 0)])
S = 10**9
WAITS = Waits(10 * S, 30 * S, 15 * S)
FAILED_TASKS = Entry(12 * S, Happening.JOB_RESTARTING, number=1)
DEPLOYED = Entry(20 * S, Happening.JOB_RESTORED, 1, number=1)


def facts_of_scheduler(*rows, waits=WAITS):
    return [violation.fact for violation in recovery.early_rescales(rows, waits, SCHEDULER_TELLER)]


def rescaled(seconds):
    return Entry(seconds * S, Happening.RESCALED)


def test_it_waits_until_slots_are_stable():
    assert facts_of_scheduler(FAILED_TASKS, rescaled(22)) == []
    assert facts_of_scheduler(FAILED_TASKS, rescaled(21)) == [
        "it goes on without all slots after 9000 ms, they are stable after 10000 ms"
    ]


def test_it_keeps_its_cooldown():
    done = Entry(49 * S, Happening.COMPLETED, 3)

    assert facts_of_scheduler(FAILED_TASKS, DEPLOYED, rescaled(50), waits=WAITS._replace(checkpoint_ns=None)) == []
    assert facts_of_scheduler(FAILED_TASKS, DEPLOYED, done, rescaled(49)) == [
        "it is rescaled after 29000 ms, its cooldown takes 30000 ms"
    ]


def test_a_job_runs_while_its_tasks_are_deployed():
    """Flink enters Executing, then deploys."""
    waits = WAITS._replace(checkpoint_ns=None, deploy_ns=2 * S)

    assert facts_of_scheduler(DEPLOYED, rescaled(48), waits=waits) == []
    assert facts_of_scheduler(DEPLOYED, rescaled(47), waits=waits) == [
        "it is rescaled after 29000 ms, its cooldown takes 30000 ms"
    ]
    assert facts_of_scheduler(FAILED_TASKS, rescaled(22), waits=waits) == []
    assert len(facts_of_scheduler(FAILED_TASKS, rescaled(21), waits=waits)) == 1, (
        "a job that waits for slots is not deployed"
    )


def test_it_takes_a_completed_checkpoint_along_or_has_waited_for_one():
    done = Entry(55 * S, Happening.COMPLETED, 3)

    assert facts_of_scheduler(DEPLOYED, done, rescaled(55)) == []
    assert facts_of_scheduler(DEPLOYED, done, rescaled(56)) == [
        "it is rescaled without a checkpoint after 36000 ms, it waits 45000 ms for one"
    ]
    assert facts_of_scheduler(DEPLOYED, done, rescaled(65)) == []


@pytest.mark.parametrize(
    ("broken", "law"),
    [
        (None, None),
        ("compute_start", "it goes on without all slots after"),
        ("compute_rescale_ns", "it is rescaled after"),
    ],
)
def test_a_scheduler_that_does_not_wait_is_noticed(monkeypatch, broken, law):
    from sim.protocol import recovery as adaptive
    from sim.runtime.jobmanager import recovery_host as scheduler

    at_once = {
        "compute_start": lambda now, returns, _: adaptive.Start(now, complete=False),
        "compute_rescale_ns": lambda begun, returns, _: max(begun, *returns),
    }
    if broken:
        monkeypatch.setattr(scheduler, broken, at_once[broken])
    replaced = "20 s" if broken == "compute_rescale_ns" else "50 s"
    found = run(f"restart.replacement={replaced}", "run.duration=90 s").violations

    assert ([STABLE_SLOTS] if law else []) == [violation.law for violation in found]
    assert all(violation.fact.startswith(law) for violation in found)


def test_the_story_ends_with_the_rescale():
    rows = [FAILED_TASKS, rescaled(21), Entry(21 * S + 1, Happening.JOB_RESTARTING, number=2)]
    (found,) = recovery.early_rescales(rows, WAITS, JournalFormatter(rows, [("a", 0)]))

    assert [found.story[0][13:22], found.story[-1][13:33]] == ["restart 1", "the job is cancelled"]
    assert len(found.story) == 2
