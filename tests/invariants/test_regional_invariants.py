"""Invariants of regional checkpoints: the proposal as written breaks some of them, and each implementation known to be wrong another one."""

from dataclasses import replace
from itertools import chain

import pytest

from sim.protocol import regional
from sim.protocol.regional import SplitEnumerator, Splits
from sim.results.journal import EventType
from sim.runtime.invariants.regional import AGE, DISCARDED, EXISTS, HELD, ONE_CUT, ONE_OWNER, OWN, SAME_SUBTASK
from sim.runtime.jobmanager.coordinator_host import RegionalCoordinatorHost
from tests.runtime.jobmanager.test_regional_checkpoints import JOB, SLOW, run

FOR_A_WHILE = "faults=[{slow: 'work[1]', factor: 300, at: 1500 ms, lasts: 2600 ms}]"
RESCALED = """\
# Whose parts are those of a region after a rescale?
version: 1
job:
  source: {source: {rate: 500/s, record: 1 kB}, parallelism: 4}
  parse: {input: {source: rescale}, service: 10 us, parallelism: 2, max-parallelism: 8, state: {size: 1 MB, backend: hashmap, update: 30 %}}
  work: {input: {parse: forward}, service: 100 us, parallelism: 2, max-parallelism: 8, state: {size: 4 MB, backend: hashmap, update: 30 %}}
checkpoint: {interval: 1 s, timeout: 600 ms, tolerable-failed: 99, region: {enabled: true, max-failure-ratio: 0.5}}
cluster: {placement: isolated, network: {segment-size: 4 KiB}}
storage: {bandwidth: 100 MB/s}
run: {duration: 9 s}
rescale: {at: 5700 ms, parallelism: {parse: 4, work: 4}}
"""


def broken(result):
    """The invariants that a run has violated -> the first fact of each."""
    return {row.invariant: row.fact for row in reversed(result.violations)}


def test_a_region_that_always_fails_gets_older_without_bound():
    """F1: the count is reset by the checkpoint that had to be global, and failed."""
    found = broken(run(SLOW, "run.duration=14s"))

    assert found == {AGE: "its part is of checkpoint 3, 11 attempts before; 3 are the promise"}


def test_a_limit_that_is_kept_is_no_violation():
    assert AGE not in broken(run(FOR_A_WHILE))


def test_files_that_are_written_over_stay():
    """F3: those of a task that acknowledged, in a region that failed."""
    found = run(FOR_A_WHILE).violations

    assert [row.invariant for row in found] == [DISCARDED]
    assert found[0].where == "the file keyed/parse/1/3"


def test_files_of_a_snapshot_that_was_not_claimed_are_referred_to():
    """F5: the first checkpoint of a job falls back to the snapshot that it began from."""
    slow = "faults=[{slow: 'work[1]', factor: 300, at: 6120 ms, lasts: 1600 ms}]"
    begun_from = "instances={count: 2, from: checkpoint, claim: %s}"

    assert OWN in broken(run(slow, begun_from % "no-claim"))
    assert OWN not in broken(run(slow, begun_from % "claim"))


@pytest.mark.parametrize("subtask", [1, 3])
def test_parts_are_taken_by_index_after_a_rescale(subtask):
    """F6, and F4: a subtask that was not there before has no part, and keeps what it has sent, or nothing."""
    slow = f"faults=[{{slow: 'work[{subtask}]', factor: 300, at: 5750 ms, lasts: 2600 ms}}, {{kill: 'work[3]', at: 7500 ms}}]"
    found = broken(run(slow, job=RESCALED))

    if subtask == 1:
        assert SAME_SUBTASK in found
        assert ONE_CUT not in found
    else:
        assert found[ONE_CUT] == "parts of one region: parse[3] has none, that of source[3] is of 6"


def test_a_job_that_falls_back_on_a_checkpoint_of_its_own_after_a_rescale():
    slow = "faults=[{slow: 'work[1]', factor: 300, at: 6900 ms, lasts: 1500 ms}]"

    assert not {SAME_SUBTASK, ONE_CUT, OWN} & broken(run(slow, job=RESCALED)).keys()


SPLITS = "checkpoint.region.split-interval=250ms"


def owners(result):
    return {row.where: row.fact for row in result.violations if row.invariant == ONE_OWNER}


def test_splits_have_two_owners_or_none():
    """F8: one that a healthy reader gets behind the trigger.  F7: one that goes back although its reader goes on."""
    assert owners(run(FOR_A_WHILE, SPLITS)) == {
        "checkpoint 3": "split 8 of source has no owner",
        "checkpoint 5": "split 5 of source has several owners: source[1] and source[2]",
    }


def test_splits_whose_states_are_of_one_time_have_one_owner(monkeypatch):
    """What the proposal would have to do: the state of the trigger, with what the readers of failed regions have got since."""

    def fall_back(self, checkpoint, fallback, failed):
        at, before = self.checkpoints[checkpoint], self.checkpoints[fallback]
        held = dict(at.owned) | {reader: before.owned.get(reader, ()) for reader in failed}
        since = {split for reader in failed for split in at.owned.get(reader, ())} - {*chain(*before.owned.values())}
        state = Splits(at.discovered, (*at.unassigned, *sorted(since)), held)
        return replace(self, checkpoints={**self.checkpoints, checkpoint: state})

    monkeypatch.setattr(SplitEnumerator, "fall_back", fall_back)
    kills = FOR_A_WHILE.removesuffix("]") + ", {kill: 'work[2]', at: 7500 ms}, {job-manager: down-for 300 ms, at: 9 s}]"

    assert owners(run(kills, SPLITS)) == {}


@pytest.mark.parametrize("fault", ["{kill: 'work[1]', at: 3700 ms}", "{job-manager: down-for 300 ms, at: 5 s}"])
def test_splits_of_ordinary_checkpoints_have_one_owner(fault):
    assert run(f"faults=[{fault}]", SPLITS).violations == ()


# Known to be wrong.


def test_the_acknowledged_part_of_a_failed_region_that_stays(monkeypatch):
    original = RegionalCoordinatorHost._replace_parts

    def replace_missing(self, command):
        stats = self.context.stats[command.checkpoint]
        missing = frozenset(task for task in command.tasks if stats.of(task).ack_ns < 0)
        original(self, replace(command, tasks=missing))

    monkeypatch.setattr(RegionalCoordinatorHost, "_replace_parts", replace_missing)

    assert broken(run(FOR_A_WHILE))[ONE_CUT].startswith(
        "parts of one region: that of work[1] is of 2, that of source[1] is of 3"
    )


def test_a_fallback_that_is_discarded(monkeypatch):
    """Without counting references."""
    monkeypatch.setattr(regional, "referenced_by", lambda *_: frozenset())

    assert broken(run(SLOW))[EXISTS] == "1 checkpoint that it refers to is discarded: 10"


def test_a_file_that_is_deleted_although_a_part_is_in_it(monkeypatch):
    original = RegionalCoordinatorHost._replace_parts

    def lose(self, command):
        original(self, command)
        for task in command.tasks:
            self.files.abandon(self.contents.of(command.fallback, task).handles)

    monkeypatch.setattr(RegionalCoordinatorHost, "_replace_parts", lose)

    assert broken(run(FOR_A_WHILE))[EXISTS] == "1 file of its part of checkpoint 2 are gone"


def test_a_task_that_hears_of_a_completion_without_its_part(monkeypatch):
    original = RegionalCoordinatorHost._notify_complete

    def notify_more(self, command):
        rows = self.context.stats[command.checkpoint]
        more = {task for task in getattr(command, "failed", ()) if rows.of(task).ack_ns >= 0}
        original(self, replace(command, tasks=command.tasks | more))

    monkeypatch.setattr(RegionalCoordinatorHost, "_notify_complete", notify_more)
    job = JOB.replace("{work: forward}", "{parse: forward}")  # the sink acknowledges, and its region fails

    assert HELD in broken(run(FOR_A_WHILE, job=job))


def test_a_job_that_begins_with_older_parts_commits_what_they_hold():
    """Its transactions are those of checkpoint 2, and the snapshot is checkpoint 3."""
    slow = "faults=[{slow: 'work[1]', factor: 300, at: 1500 ms, lasts: 2600 ms}]"
    result = run(slow, "instances={count: 2, from: checkpoint, claim: claim}", "run.duration=5600ms")

    assert {row.checkpoint for row in result.journal.only({EventType.JOB_RESTORED})} == {3}
    assert {row.invariant for row in result.violations} <= {DISCARDED}
