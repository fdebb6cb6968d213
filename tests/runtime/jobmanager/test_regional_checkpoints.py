"""Whole runs with regional checkpoints (FLIP-600): parts of failed regions are those of the checkpoint before, and restored as such."""

from fractions import Fraction

import pytest

from sim.results.journal import EventType
from sim.runtime.invariants.regional import AGE, DISCARDED
from sim.runtime.simulate import simulate
from tests.oracle import oracle
from tests.scenarios import read_scenario

JOB = """\
# Do checkpoints complete without the region that is slow?
version: 1
job:
  source: {source: {rate: 500/s, record: 1 kB}, parallelism: 4}
  parse: {input: {source: forward}, service: 10 us, parallelism: 4, state: {size: 1 MB, backend: hashmap, update: 30 %}}
  work: {input: {parse: forward}, service: 100 us, parallelism: 4, state: {size: 4 MB, backend: hashmap, update: 30 %}}
  sink: {input: {work: forward}, service: 10 us, parallelism: 4, flush: {share: 100 %, bytes: 10 kB}, commit: {}}
checkpoint: {interval: 1 s, barriers: aligned, incremental: false, timeout: 600 ms, tolerable-failed: 99, region: {enabled: true}}
cluster: {placement: isolated, network: {segment-size: 4 KiB}}
storage: {bandwidth: 100 MB/s}
run: {duration: 12 s}
"""
SLOW = "job.work.service-factor={1: 100}"
KILLS = "faults=[{kill: 'work[1]', at: 7500 ms}, {kill: 'work[2]', at: 9 s}]"
FILES = ("job.work.state.backend=rocksdb", "job.parse.state.backend=rocksdb", "checkpoint.incremental=true")
UNALIGNED = ("checkpoint.barriers=unaligned", "checkpoint.subtasks-per-channel-state-file=1")


def run(*changes, engine="compiled", job=JOB, **how):
    return simulate(read_scenario(job, overrides=list(changes)), engine=engine, **how)


def replaced(result):
    """Checkpoint -> the checkpoints that parts in it are of."""
    found = {}
    for row in result.journal.only({EventType.PART_REPLACED}):
        found.setdefault(row.checkpoint, set()).add(row.number)
    return found


def test_a_region_that_is_slow_for_a_while_falls_back_and_catches_up():
    result = run("faults=[{slow: 'work[1]', factor: 300, at: 1500 ms, lasts: 2600 ms}]")

    assert set(result.checkpoints["status"]) == {"COMPLETED"}
    assert replaced(result) == {3: {2}, 4: {2}}, "the reference of 4 is 3, its state that of 2"
    assert [row.number for row in result.journal.only({EventType.NOTIFIED_FALLBACK})] == [2, 3]
    assert [row.invariant for row in result.violations] == [DISCARDED], "F3"


def test_a_checkpoint_takes_until_its_failed_regions_are_given_up():
    """Its critical path ends at the task that has not acknowledged at the timeout, not at the last acknowledgement."""
    result = run("faults=[{slow: 'work[1]', factor: 300, at: 1500 ms, lasts: 2600 ms}]")
    took = result.checkpoints.set_index("id")["end_to_end_duration"]
    path = result.path.query("id == 3 and not acknowledged")
    longest = path.loc[path["duration"].idxmax()]

    assert took[3] >= 600
    assert took[5] < 200
    assert (longest["vertex"], longest["index"], longest["part"]) == ("work", 1, "behind data")
    assert path["duration"].sum() == took[3] * 1e6


def test_files_of_an_acknowledgement_that_arrives_after_the_timeout_are_deleted():
    """Its task is in a failed region: the acknowledgement was sent before its part was replaced."""
    slow = "faults=[{slow: 'work[1]', factor: 130, at: 1500 ms, lasts: 1600 ms}]"
    result = run(slow, "overheads.acknowledge=300 ms")
    (late,) = {row.checkpoint for row in result.journal.only({EventType.PART_REPLACED})}
    files = result.files[result.files["path"].str.contains(f"/chk-{late}/")]

    assert [row.invariant for row in result.violations] == [DISCARDED], (
        "F3: files of 'parse', which acknowledged in time"
    )
    assert (files["deleted"] < 0).sum() == 1


@pytest.mark.parametrize("changes", [(), FILES], ids=["full", "incremental"])
def test_a_restart_reads_each_part_under_its_own_number(changes):
    result = run(SLOW, KILLS, *changes)
    restored = {row.checkpoint for row in result.journal.only({EventType.JOB_RESTORED})}

    assert restored & replaced(result).keys()
    assert len(result.recoveries) == 2
    assert {row.invariant for row in result.violations} <= {AGE}


def test_nothing_changes_for_a_job_whose_regions_do_not_fail():
    on, off = run(KILLS), run(KILLS, "checkpoint.region.enabled=false")

    assert on.violations == off.violations == ()
    assert all(table.equals(off.tables[name]) for name, table in on.tables.items())
    assert list(on.journal) == list(off.journal)


def test_engines_agree():
    first, other = run(SLOW, KILLS), run(SLOW, KILLS, engine=oracle)

    assert all(table.equals(other.tables[name]) for name, table in first.tables.items())
    assert list(first.journal) == list(other.journal)


def test_files_of_channel_state_that_subtasks_share_exclude_regions():
    assert replaced(run(SLOW, *UNALIGNED, "checkpoint.timeout=100ms"))
    assert not replaced(run(SLOW, UNALIGNED[0], "checkpoint.timeout=100ms"))


def test_keys_are_those_of_the_proposal():
    as_flink = "flink={execution.checkpointing.region.enabled: true, execution.checkpointing.region.max-consecutive-failures: 5}"
    region = read_scenario(JOB.replace(", region: {enabled: true}", ""), overrides=[as_flink]).checkpoint.region

    assert (region.enabled, region.max_failure_ratio, region.max_consecutive_failures) == (True, Fraction(3, 10), 5)
