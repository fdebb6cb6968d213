"""A job that restarts for ever is told as one; one that gets somewhere, or that somebody else holds up, is not."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from sim.model.faults import Fault, Kill, Restart, StorageOutage, When
from sim.model.schema.study import load
from sim.model.sinks import Commit, Flush
from sim.model.storage import Retry, Storage
from sim.results.tables import RecoveryStats
from sim.runtime.simulate import simulate
from sim.runtime.standstill import endless
from tests.laws.small_jobs import MS, SECOND, chain, scenario

WORLD = Path(__file__).parents[2] / "data" / "worlds" / "flush-never-ends.yaml"
RESTART = Restart("fixed-delay", 100 * MS)


def status(*faults, **options):
    """A job whose sink flushes to storage that is quick, and gives up after one attempt."""
    job = chain(1, rate=50)
    job = replace(job, vertices=(*job.vertices[:-1], replace(job.vertices[-1], flush=Flush(1000), commit=Commit())))
    base = scenario(job, seconds=8, **options)
    storage = Storage(1_000_000, retry=Retry(1))
    return simulate(replace(base, restart=RESTART, storage=storage, faults=faults), engine="compiled").job_status


def test_a_flush_that_can_never_be_written():
    """How often, from where, why, and what to change."""
    (world,) = load(WORLD).scenarios
    outcome = simulate(world).job_status

    assert outcome.startswith(
        "RESTARTING FOR EVER: 22 times in a row from the beginning because of 'flush: no answer within 0.04 s"
    )
    assert outcome.endswith("write less per checkpoint, or give a request more time or attempts (storage.retry)")


def test_checkpoints_that_hang_need_no_more_time():
    """Their tasks wait for each other, and do so again after each restart."""
    changes = [
        "checkpoint.tolerable-failed=0",
        "checkpoint.timeout=300 ms",
        "job.s0.source.records-per-subtask=200",
        "run.duration=60 s",
    ]
    (world,) = load(WORLD.with_name("early-barrier-before-a-forced-alignment.yaml"), changes).scenarios
    outcome = simulate(world).job_status

    assert outcome.startswith(
        "RESTARTING FOR EVER: 8 times in a row from the beginning because of 'tolerable failed checkpoints exceeded"
    )
    assert outcome.endswith("; more time does not help, as tasks wait for each other: take aligned barriers")


def test_what_a_restart_commits_again_is_no_progress():
    """It was visible before; the restores after it fail all the same."""
    (world,) = load(WORLD.with_name("restore-never-ends.yaml")).scenarios
    outcome = simulate(world).job_status

    assert outcome.startswith("RESTARTING FOR EVER: ")
    assert "from checkpoint 1 because of 'restore: no answer within 0.15 s (2 attempts)'" in outcome


def test_checkpoints_that_never_get_through():
    """None is tolerated, each expires: what the last restart said is the reason."""
    job = scenario(chain(1, rate=100, sink_ns=40 * MS), seconds=60, timeout_ns=50 * MS)
    outcome = simulate(
        replace(job, checkpoint=replace(job.checkpoint, tolerable_failed=0), restart=RESTART), engine="compiled"
    ).job_status

    assert "CHECKPOINT_EXPIRED" in outcome
    assert outcome.endswith("(checkpoint.timeout) or tolerate failures (tolerable-failed)")


def test_checkpoints_that_merely_expire():
    """The job goes on all the same."""
    job = scenario(chain(1, rate=100, sink_ns=40 * MS), seconds=10, timeout_ns=50 * MS)

    assert simulate(replace(job, restart=RESTART), engine="compiled").job_status == "RUNNING"


@pytest.mark.parametrize(
    "fault",
    [
        Fault(StorageOutage(6 * SECOND), When((SECOND,))),
        Fault(Kill("sink", 0), When(tuple(SECOND + i * 150 * MS for i in range(40)))),
    ],
    ids=["an outage", "kills"],
)
def test_what_others_do_ends(fault):
    """An outage of storage, or faults that happen to the job: when they are over, it goes on."""
    assert status(fault) == "RUNNING"


FLUSH, EXPIRED = "flush: no answer within 0.4 s", "tolerable failed checkpoints exceeded: CHECKPOINT_EXPIRED"


def verdict(rows, now_ns=0):
    """What is said of these restarts."""
    storage = SimpleNamespace(attempts=SimpleNamespace(down_until_ns=0))
    return endless(SimpleNamespace(stats={}, commits=[], env=SimpleNamespace(now=now_ns), storage=storage), rows)


def restart(n, what=FLUSH, kind="task", checkpoint=3):
    return RecoveryStats(n, kind, what, 1000 * n, 1000 * n, 1, checkpoint=checkpoint)


@pytest.mark.parametrize(
    ("running_ns", "now_ns", "continues"), [(5300, 6600, False), (5300, 6800, True), (-1, 90_000, False)]
)
def test_a_job_that_outlives_its_restarts_goes_on(running_ns, now_ns, continues):
    """It ran for 700 ns after each restart, then for twice as long and more; no checkpoint is complete.  Or it is still being restored."""
    rows = [restart(n) for n in range(1, 6)]
    for row in rows:
        row.running_ns = running_ns if row.number == 5 else row.failed_ns + 300

    assert continues == (verdict(rows, now_ns) is None)


def test_a_job_that_never_ran_between_its_restarts_goes_on_once_it_runs():
    """There is nothing to outlive: no restart before the last one got that far."""
    rows = [restart(n) for n in range(1, 6)]
    for row in rows:
        row.running_ns = 5300 if row.number == 5 else -1

    assert verdict(rows, 5300) is not None
    assert verdict(rows, 5301) is None


def test_causes_may_take_turns():
    """Now a request takes too long, now a checkpoint: nothing is completed either.  The commonest is told first, in its last words."""
    later = FLUSH.replace("0.4", "0.5")
    rows = [restart(1), restart(2, later), *(restart(n, EXPIRED, "checkpoints") for n in (3, 4, 5))]

    assert (
        f"because of 3 x '{EXPIRED}' and 2 x '{later}', with nothing completed in between; give checkpoints more time"
        in verdict(rows)
    )
    assert verdict(rows).endswith(
        "or tolerate failures (tolerable-failed), and write less per checkpoint,"
        " or give a request more time or attempts (storage.retry)"
    )


def test_what_fails_while_a_job_restarts_is_no_cause():
    """Each time a task that does not stop costs a TaskManager; only the restart after that goes back to the checkpoint."""
    lost = [restart(n, "task manager 1 lost", "task-manager") for n in range(1, 6)]
    rows = [row for after in lost for row in (restart(after.number, checkpoint=-1), after)]

    assert f"RESTARTING FOR EVER: 5 times in a row from checkpoint 3 because of '{FLUSH}'" in verdict(rows)
    assert None is verdict(lost), "nobody knows whether the next one is lost as well"
