"""What checkpoints and savepoints of whole runs hold: union list state, the last word of a stop."""

from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import pytest

from sim.model.faults import Kill, Restart
from sim.model.job import Job
from sim.model.scenario import Action
from sim.model.sinks import Commit
from sim.protocol import messages
from sim.results.journal import EventType, Journal
from sim.runtime.context import Context
from sim.runtime.jobmanager.coordinator_host import CoordinatorHost
from sim.runtime.simulate import simulate
from tests.invariants.jobs.small_jobs import ALIGNED, MS, UNALIGNED, chain, fault_at, scenario
from tests.runtime.task.fake_slots import FakeClock
from tests.scenarios import read_scenario, run_scenario


def test_an_abort_names_the_checkpoint_that_a_task_has_its_part_of():
    """A task whose part was replaced has an older one (regional checkpoints)."""
    env, calls, base = FakeClock(), [], scenario(chain(1))
    task = lambda number: SimpleNamespace(notify_aborted=lambda *told: calls.append((env.now // MS, number, *told)))  # noqa: E731
    parts = {(4, 1): SimpleNamespace(checkpoint=2)}
    scenario_of_it = replace(base, overheads=replace(base.overheads, notify_ns=7 * MS))
    contents = SimpleNamespace(of=lambda *which: parts.get(which))
    context = SimpleNamespace(env=env, scenario=scenario_of_it, journal=Journal(), contents=contents, begun_from=0)
    context.note = partial(Context.note, context)
    host = CoordinatorHost(context, [task(0), task(1)], None, SimpleNamespace(), None, None)
    host.carry_out(messages.NotifyAborted(5, frozenset({1, 0}), 4))
    env.run(100 * MS)

    assert calls == [(7, 0, 5, 4), (7, 1, 5, 2)]


# Union list state: each subtask restores that of all, after a failure and after a rescale; what is not cleared is multiplied.


UNION_JOB = """\
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
    result = run_scenario(UNION_JOB, overrides=list(changes), check=True)

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
    scenario = read_scenario(UNION_JOB, overrides=[TWO_FAILURES])
    found = simulate(replace(scenario), check=True).violations

    assert found
    assert found[0].fact == "it gets 2 parts of union list state, 120 bytes; the checkpoint holds 3 parts, 180 bytes"


# Whole runs that are asked for savepoints and told to stop.


def requested(*actions, kind=ALIGNED, job=None, seconds=4, **options):
    """A job whose sink commits, checkpoints every 400 ms from 10 ms on, and what is asked of it."""
    job = job or chain(2, rate=100)
    sink = replace(job.vertices[-1], commit=Commit(holds_back=5))
    base = scenario(Job((*job.vertices[:-1], sink)), kind, seconds=seconds, interval_ms=400, **options)
    return replace(base, actions=tuple(Action(at * MS, *details) for at, *details in actions))


def run_with_actions(base):
    return simulate(base)


@pytest.mark.parametrize("kind", [ALIGNED, UNALIGNED])
@pytest.mark.parametrize("stop", ["drain", "no-drain"])
def test_a_job_stops_with_its_savepoint(kind, stop):
    """Sources end their data first, so the savepoint's barriers are behind it everywhere; it commits, and the job is over."""
    result = run_with_actions(requested((1300, "native", stop), kind=kind))
    savepoint = result.checkpoints[result.checkpoints["checkpoint_type"] == "SYNC_SAVEPOINT"].iloc[0]
    ends = {row.task: row.time_ns for row in result.journal if row.event_type is EventType.END_OF_DATA}
    begun = [
        row
        for row in result.journal
        if row.event_type is EventType.SNAPSHOT_BEGUN and row.checkpoint == savepoint["id"]
    ]

    assert result.job_status == "FINISHED"
    assert (len(ends), len(begun)) == (6, 6)
    assert all(ends[row.task] <= row.time_ns for row in begun)
    assert result.commits["checkpoint"].max() == savepoint["id"]
    assert result.commits["records"].sum() == result.tasks[result.tasks["vertex"] == "sink"]["numRecordsIn"].sum() - (
        0 if stop == "drain" else 5 * 4
    ), "what it holds back it finishes only when it drains"
    assert result.violations == ()


def test_a_drained_job_asks_for_a_final_checkpoint_too_late():
    """As recorded: all data has ended, the request waits for the savepoint, and meets tasks that close."""
    (last,) = run_with_actions(requested((1300, "canonical", "drain"))).checkpoints.iloc[-1:].to_dict("records")

    assert (last["status"], last["failure_message"]) == ("FAILED", "CHECKPOINT_DECLINED_TASK_CLOSING")


@pytest.mark.parametrize(("at", "aborted"), [(815, True), (1150, False)])
def test_no_periodic_checkpoint_beside_the_savepoint_a_job_stops_with(at, aborted):
    """Nothing may be committed but by this savepoint: the one under way is aborted; the one due at 1210 ms does not begin."""
    result = run_with_actions(requested((at, "canonical", "no-drain"), job=chain(2, sink_ns=2 * MS)))
    (savepoint,) = result.checkpoints[result.checkpoints["checkpoint_type"] == "SYNC_SAVEPOINT"].to_dict("records")

    assert result.job_status == "FINISHED"
    assert len(result.checkpoints) == savepoint["id"], "it is the last"
    assert savepoint["end_to_end_duration"] > 150
    assert aborted == (result.checkpoints["failure_message"].iloc[-2] == "CHECKPOINT_COORDINATOR_SUSPEND")


def test_a_job_that_is_down_cannot_be_stopped():
    """The request is refused, and the job comes back as if nobody had asked."""
    base = requested((1100, "native", "drain"), seconds=3)
    result = run_with_actions(
        replace(base, faults=(fault_at(Kill("sink"), 1000),), restart=Restart("fixed-delay", delay_ns=300 * MS))
    )

    assert result.job_status == "RUNNING"
    assert "SYNC_SAVEPOINT" not in set(result.checkpoints["checkpoint_type"])
    assert len(result.recoveries) == 1
