"""Law 118: how long the adaptive scheduler waits, by rows of a journal and in runs whose scheduler is broken."""

import pytest

from sim.invariants import recovery
from sim.invariants.recovery import STABLE_SLOTS, Waits
from sim.invariants.violation import JournalFormatter
from sim.results.journal import Entry, Happening
from tests.runtime.jobmanager.adaptive_runs import run

TELLER = JournalFormatter([], [("a", 0)])
S = 10**9
WAITS = Waits(10 * S, 30 * S, 15 * S)
FAILED = Entry(12 * S, Happening.JOB_RESTARTING, number=1)
DEPLOYED = Entry(20 * S, Happening.JOB_RESTORED, 1, number=1)


def facts(*rows, waits=WAITS):
    return [violation.fact for violation in recovery.early_rescales(rows, waits, TELLER)]


def rescaled(seconds):
    return Entry(seconds * S, Happening.RESCALED)


def test_it_waits_until_slots_are_stable():
    assert facts(FAILED, rescaled(22)) == []
    assert facts(FAILED, rescaled(21)) == ["it goes on without all slots after 9000 ms, they are stable after 10000 ms"]


def test_it_keeps_its_cooldown():
    done = Entry(49 * S, Happening.COMPLETED, 3)

    assert facts(FAILED, DEPLOYED, rescaled(50), waits=WAITS._replace(checkpoint_ns=None)) == []
    assert facts(FAILED, DEPLOYED, done, rescaled(49)) == ["it is rescaled after 29000 ms, its cooldown takes 30000 ms"]


def test_a_job_runs_while_its_tasks_are_deployed():
    """Flink enters Executing, then deploys."""
    waits = WAITS._replace(checkpoint_ns=None, deploy_ns=2 * S)

    assert facts(DEPLOYED, rescaled(48), waits=waits) == []
    assert facts(DEPLOYED, rescaled(47), waits=waits) == ["it is rescaled after 29000 ms, its cooldown takes 30000 ms"]
    assert facts(FAILED, rescaled(22), waits=waits) == []
    assert len(facts(FAILED, rescaled(21), waits=waits)) == 1, "a job that waits for slots is not deployed"


def test_it_takes_a_completed_checkpoint_along_or_has_waited_for_one():
    done = Entry(55 * S, Happening.COMPLETED, 3)

    assert facts(DEPLOYED, done, rescaled(55)) == []
    assert facts(DEPLOYED, done, rescaled(56)) == [
        "it is rescaled without a checkpoint after 36000 ms, it waits 45000 ms for one"
    ]
    assert facts(DEPLOYED, done, rescaled(65)) == []


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
    rows = [FAILED, rescaled(21), Entry(21 * S + 1, Happening.JOB_RESTARTING, number=2)]
    (found,) = recovery.early_rescales(rows, WAITS, JournalFormatter(rows, [("a", 0)]))

    assert [found.story[0][13:22], found.story[-1][13:33]] == ["restart 1", "the job is cancelled"]
    assert len(found.story) == 2
