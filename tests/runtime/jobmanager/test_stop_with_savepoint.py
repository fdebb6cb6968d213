"""Whole runs that are asked for savepoints and told to stop."""

from dataclasses import replace

import pytest

from sim.model.faults import Kill, Restart
from sim.model.job import Job
from sim.model.scenario import Action
from sim.model.sinks import Commit
from sim.results.journal import Happening
from sim.runtime.simulate import simulate
from tests.laws.small_jobs import ALIGNED, MS, UNALIGNED, chain, fault_at, scenario


def requested(*actions, kind=ALIGNED, job=None, seconds=4, **options):
    """A job whose sink commits, checkpoints every 400 ms from 10 ms on, and what is asked of it."""
    job = job or chain(2, rate=100)
    sink = replace(job.vertices[-1], commit=Commit(holds_back=5))
    base = scenario(Job((*job.vertices[:-1], sink)), kind, seconds=seconds, interval_ms=400, **options)
    return replace(base, actions=tuple(Action(at * MS, *details) for at, *details in actions))


def run(base):
    return simulate(base)


@pytest.mark.parametrize("kind", [ALIGNED, UNALIGNED])
@pytest.mark.parametrize("stop", ["drain", "no-drain"])
def test_a_job_stops_with_its_savepoint(kind, stop):
    """Sources end their data first, so the savepoint's barriers are behind it everywhere; it commits, and the job is over."""
    result = run(requested((1300, "native", stop), kind=kind))
    savepoint = result.checkpoints[result.checkpoints["checkpoint_type"] == "SYNC_SAVEPOINT"].iloc[0]
    ends = {row.task: row.time_ns for row in result.journal if row.happening is Happening.END_OF_DATA}
    begun = [
        row for row in result.journal if row.happening is Happening.SNAPSHOT_BEGUN and row.checkpoint == savepoint["id"]
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
    (last,) = run(requested((1300, "canonical", "drain"))).checkpoints.iloc[-1:].to_dict("records")

    assert (last["status"], last["failure_message"]) == ("FAILED", "CHECKPOINT_DECLINED_TASK_CLOSING")


@pytest.mark.parametrize(("at", "aborted"), [(815, True), (1150, False)])
def test_no_periodic_checkpoint_beside_the_savepoint_a_job_stops_with(at, aborted):
    """Nothing may be committed but by this savepoint: the one under way is aborted; the one due at 1210 ms does not begin."""
    result = run(requested((at, "canonical", "no-drain"), job=chain(2, sink_ns=2 * MS)))
    (savepoint,) = result.checkpoints[result.checkpoints["checkpoint_type"] == "SYNC_SAVEPOINT"].to_dict("records")

    assert result.job_status == "FINISHED"
    assert len(result.checkpoints) == savepoint["id"], "it is the last"
    assert savepoint["end_to_end_duration"] > 150
    assert aborted == (result.checkpoints["failure_message"].iloc[-2] == "CHECKPOINT_COORDINATOR_SUSPEND")


def test_a_job_that_is_down_cannot_be_stopped():
    """The request is refused, and the job comes back as if nobody had asked."""
    base = requested((1100, "native", "drain"), seconds=3)
    result = run(
        replace(base, faults=(fault_at(Kill("sink"), 1000),), restart=Restart("fixed-delay", delay_ns=300 * MS))
    )

    assert result.job_status == "RUNNING"
    assert "SYNC_SAVEPOINT" not in set(result.checkpoints["checkpoint_type"])
    assert len(result.recoveries) == 1
