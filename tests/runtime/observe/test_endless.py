"""A job that restarts forever is told as one; one that gets somewhere, or that somebody else holds up, is not."""

from types import SimpleNamespace

import pytest

from sim.model.schema.study import load
from sim.results.tables import TOO_MANY_FAILED, RecoveryStats
from sim.runtime.simulate import simulate
from sim.runtime.standstill import endless
from tests.places import DATA

WORLD = DATA / "worlds/flush-never-ends.yaml"


def test_a_flush_that_can_never_be_written():
    """How often, from where, why, and what to change."""
    (world,) = load(WORLD).scenarios
    outcome = simulate(world).job_status

    assert outcome.startswith(
        "RESTARTING FOR EVER: 29 times in a row from the beginning because of 'flush: no answer within 0.04 s"
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
        "or, if later ones complete, tolerate failures (tolerable-failed), and write less per checkpoint,"
        " or give a request more time or attempts (storage.retry)"
    )


def test_no_timeout_helps_checkpoints_whose_files_cannot_be_written():
    """Requests that fail fail before the timeout of the checkpoint."""
    exceeded = f"{TOO_MANY_FAILED}: CHECKPOINT_ASYNC_EXCEPTION"
    rows = [restart(n, exceeded, "checkpoints") for n in range(1, 6)]

    assert verdict(rows).endswith(
        "; ask storage for less at once, or give a request more time or attempts (storage.retry)"
    )
