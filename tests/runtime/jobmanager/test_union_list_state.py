"""Union list state: each subtask restores that of all, after a failure and after a rescale; what is not cleared is multiplied."""

from dataclasses import replace

import pytest

from sim.runtime.simulate import simulate
from tests.scenarios import read_scenario, run_scenario

JOB = """\
# What does union list state cost?
version: 1
job:
  src: {source: {rate: 200/s, record: 100 B}, parallelism: 2}
  writer: {input: {src: hash}, parallelism: 3, union-state: true, snapshot: {operator-state: 60 B}}
checkpoint: {interval: 1 s}
restart: {strategy: fixed-delay, delay: 100 ms}
run: {duration: 9 s}
"""
TWO_FAILURES = "faults=[{kill: writer, at: 2500 ms}, {kill: writer, at: 5500 ms}]"
RESCALE = "rescale={at: 2500 ms, parallelism: {writer: 5}}"


def simulated(*changes):
    result = run_scenario(JOB, overrides=list(changes), check=True)

    assert result.violations == ()
    return result.tables


def state_of(tables):
    """State of the writer, by checkpoint."""
    rows = tables["subtasks"]
    return list(dict.fromkeys(rows[rows["vertex"] == "writer"].groupby("id")["state_size"].sum()))


def test_state_that_is_not_cleared_is_multiplied_by_each_failure():
    """apache/paimon#1732: 3, 9 and 27 elements."""
    tables = simulated(TWO_FAILURES, "job.writer.union-state={clears: false}")

    assert state_of(tables) == [3 * 60, 9 * 60, 27 * 60]
    assert list(tables["recoveries"]["restored_bytes"]) == [9 * 60, 27 * 60]


@pytest.mark.parametrize(("clears", "after"), [("true", 5 * 60), ("false", 5 * 3 * 60)])
def test_a_rescaled_subtask_restores_the_state_of_all(clears, after):
    """Five subtasks read what three have written."""
    tables = simulated(f"job.writer.union-state={{clears: {clears}}}", RESCALE)

    assert list(tables["recoveries"]["restored_bytes"]) == [5 * 3 * 60]
    assert [3 * 60, after] == state_of(tables)


def test_a_job_that_is_rescaled_twice_from_one_checkpoint_restores_each_part_once():
    """The first rescale gives parts of one snapshot to several subtasks."""
    twice = "rescale=[{at: 2500 ms, parallelism: {writer: 5}}, {at: 2600 ms, parallelism: {writer: 2}}]"

    assert simulated(twice)["recoveries"]["restored_bytes"].iloc[-1] == 2 * 3 * 60


def test_a_part_that_is_left_out_is_noticed(monkeypatch):
    """The invariant of restores: each subtask has the parts of all, once."""
    from sim.runtime.context import Contents

    original = Contents.union_of
    monkeypatch.setattr(
        Contents, "union_of", lambda self, checkpoint, tasks: original(self, checkpoint, list(tasks)[1:])
    )
    scenario = read_scenario(JOB, overrides=[TWO_FAILURES])
    found = simulate(replace(scenario), check=True).violations

    assert found
    assert found[0].fact == "it gets 2 parts of union list state, 120 bytes; the checkpoint holds 3 parts, 180 bytes"
