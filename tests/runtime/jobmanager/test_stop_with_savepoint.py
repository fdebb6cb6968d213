"""Whole runs that are asked for savepoints and told to stop."""

from dataclasses import replace

import pytest

from sim.model.faults import Fault, Kill, Restart, When
from sim.model.job import Job
from sim.model.scenario import Action
from sim.model.sinks import Commit
from sim.model.storage import Storage
from sim.results.journal import Happening
from sim.runtime.simulate import simulate
from tests.laws.small_jobs import ALIGNED, MS, SECOND, UNALIGNED, chain, scenario
from tests.oracle import ENGINES

ENGINE = "compiled"


def requested(*actions, kind=ALIGNED, job=None, seconds=4, **options):
    """A job whose sink commits, checkpoints every 400 ms from 10 ms on, and what is asked of it."""
    job = job or chain(2, rate=100)
    sink = replace(job.vertices[-1], commit=Commit(holds_back=5))
    base = scenario(Job((*job.vertices[:-1], sink)), kind, seconds=seconds, interval_ms=400, **options)
    return replace(base, actions=tuple(Action(at * MS, *details) for at, *details in actions))


def run(base):
    return simulate(base, engine=ENGINE)


def kinds(result):
    return result.checkpoints[["checkpoint_type", "savepointFormat", "status"]].values.tolist()


def times(result, happening):
    return [row.time_ns / MS for row in result.journal if row.happening is happening]


@pytest.mark.parametrize("kind", [ALIGNED, UNALIGNED])
def test_a_savepoint_takes_its_turn_and_commits_nothing(kind):
    """Aligned under any barriers; checkpoints go on as before."""
    slow = chain(2, sink_ns=2 * MS)
    result = run(requested((700, "canonical"), (1500, "native"), kind=kind, job=slow))
    savepoints = result.checkpoints[result.checkpoints["savepointFormat"] != ""]

    assert [row for row in kinds(result) if row[1]] == [
        ["SAVEPOINT", "CANONICAL", "COMPLETED"],
        ["SAVEPOINT", "NATIVE", "COMPLETED"],
    ]
    assert {0} == set(savepoints["persisted_data"])
    assert not set(savepoints["id"]) & set(result.commits["checkpoint"])
    assert result.job_status == "RUNNING"
    assert result.violations == ()


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


def test_before_flip_147_the_end_of_the_operators_is_held_by_nothing():
    """The savepoint commits what was written before it; what the sink held back is written after it, and lost."""
    result = run(requested((1300, "native", "savepoint-then-finish")))

    assert result.job_status == "FINISHED"
    assert ["COMPLETED"] * len(result.checkpoints) == result.checkpoints["status"].tolist()
    assert min(times(result, Happening.END_OF_DATA)) > result.checkpoints["latest_ack_timestamp"].max()
    assert {"the job has finished and 10 records are lost: never committed"} == {
        violation.fact for violation in result.violations
    }


def test_a_failed_stop_restarts_the_job():
    """Its tasks have ended their data; they come back with the latest checkpoint, and nothing is lost."""
    base = requested((1300, "native", "no-drain"))
    slow = replace(base, storage=Storage(close_ns=200 * MS, inline_threshold_bytes=0))
    stuck = replace(
        slow, faults=(Fault(Kill("stage0", 0), When((1302 * MS,))),), restart=Restart("fixed-delay", delay_ns=100 * MS)
    )
    result = run(stuck)

    assert result.job_status == "RUNNING"
    assert len(result.recoveries) == 1
    assert {"FAILED"} == set(result.checkpoints[result.checkpoints["checkpoint_type"] == "SYNC_SAVEPOINT"]["status"])
    assert (result.checkpoints["trigger_timestamp"] > 2000).any(), "periodic checkpoints go on"
    assert result.violations == ()


def test_a_job_that_is_down_cannot_be_stopped():
    """The request is refused, and the job comes back as if nobody had asked."""
    base = requested((1100, "native", "drain"), seconds=3)
    result = run(
        replace(
            base, faults=(Fault(Kill("sink"), When((1000 * MS,))),), restart=Restart("fixed-delay", delay_ns=300 * MS)
        )
    )

    assert result.job_status == "RUNNING"
    assert "SYNC_SAVEPOINT" not in set(result.checkpoints["checkpoint_type"])
    assert len(result.recoveries) == 1


@pytest.mark.parametrize("kind", [ALIGNED, UNALIGNED])
def test_engines_agree_on_the_end(kind):
    """The same tables and journal, to the byte, from all three."""
    first, *others = [
        simulate(requested((700, "canonical"), (1300, "native", "drain"), kind=kind), engine=engine)
        for engine in ENGINES
    ]

    for other in others:
        assert first.journal == other.journal
        assert all(table.equals(other.tables[name]) for name, table in first.tables.items())


def test_time_ends_with_the_job():
    result = run(requested((1300, "native", "drain")))
    (over,) = times(result, Happening.JOB_FINISHED)

    assert 1300 < over < 1500
    assert round(over * MS) == result.ended_ns < 4 * SECOND
