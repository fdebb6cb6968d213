"""Jobs that stop, end and are rescaled with output under way commit each record once; what is truly lost or written twice is told."""

from dataclasses import replace

import pytest

from sim.model.faults import Rescale
from sim.model.job import Job
from sim.model.schema.study import load
from sim.protocol.commit import EpochEnded, Writer, WriterRestored
from sim.results.journal import EventType
from sim.runtime.simulate import simulate
from sim.runtime.task.parts import TaskParts
from tests.invariants.jobs.small_jobs import MS
from tests.oracle import ENGINES
from tests.places import DATA
from tests.scenarios import run_scenario

WORLDS = DATA / "worlds"
COMMITTED = {
    "cascade-behind-a-rescaled-broadcast": {"k0": 333, "kk": 330},
    "cascade-with-a-rescaled-stage": {"a": 2742, "b": 2242},
    "drained-one-request-at-a-time": {"k0": 40},
    "drained-with-requests": {"sink": 1202},
    "naive-windowed-sink-loses-its-task-manager": {"k0": 304, "k1": 152},
    "naive-windowed-sink-rescaled-by-savepoint": {"k0": 23},
    "naive-windowed-sink-with-a-global-committer": {"k1: committer": 150},
    "stopped-cascade": {"a": 1201, "b": 1003},
    "stopped-cascade-of-small-epochs": {"k0": 20, "kk": 16},
    "stopped-with-requests": {"sink": 1190},
    "stopped-with-answers-nobody-reads": {"sink": 393},
    "stopped-with-requests-before-a-join": {"k0": 1708},
    "windowed-sink-behind-rescaled-stages": {"k0": 70},
    "windowed-sink-far-behind-a-rescaled-stage": {"sink": 5429},
}
"""Records committed.  Of a bounded job: all of them, but for what a cascade commits behind the end of data (FLINK-38614)."""
WINDOWED = ["windowed-sink-far-behind-a-rescaled-stage", "windowed-sink-behind-rescaled-stages"]

DRAINED_NAIVELY = """# What is lost when a job with a windowed sink is drained, and every task waits for a checkpoint of its own?
version: 1
job:
  orders: {source: {record: 40 B, rate-per-subtask: 40/s, records-per-subtask: 45}}
  sink: {input: {orders: hash}, commit: {holds-back: 1}}
checkpoint: {interval: 350 ms, finish: naive}
run: {duration: 30 s, seed: 1}
actions: [{stop: drain, at: 1189 ms}]
"""

EXPIRING = """# Can a job be rescaled whose transactions expire?  What they held is told as lost.
version: 1
job:
  s0: {source: {record: 2000 B, rate-per-subtask: 100/s, records: 51}}
  m1: {input: {s0: hash}, parallelism: 2, snapshot: {async: 120 ms}}
  k0: {input: {m1: hash}, commit: {transaction-timeout: 100 ms}}
checkpoint: {interval: 285 ms}
run: {duration: 30 s, seed: 1}
rescale: {at: 621 ms, parallelism: {m1: 1}}
"""


def run(world, engine="compiled"):
    return simulate(load(WORLDS / f"{world}.yaml").scenarios[0], engine=engine)


def facts(result):
    return " ".join(violation.fact for violation in result.violations)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("world", COMMITTED)
def test_each_record_is_committed_once(world, engine):
    result = run(world, engine)

    assert COMMITTED[world] == result.commits.groupby("vertex")["records"].sum().to_dict()
    assert result.violations == ()


# ---------------------------------------------------------------------------------------------- what is broken is told


def going_on(monkeypatch, shift):
    """A restored writer begins so many records behind what it had written."""
    right = Writer.on

    def shifted(self, event):
        if isinstance(event, WriterRestored):
            event = replace(event, written=tuple(max(0, records + shift) for records in event.written))
        return right(self, event)

    monkeypatch.setattr(Writer, "on", shifted)


@pytest.mark.parametrize("world", WINDOWED)
def test_a_writer_that_forgets_what_it_held_back_loses_it(world, monkeypatch):
    going_on(monkeypatch, 3)

    assert "are lost before it" in facts(run(world))


@pytest.mark.parametrize("world", [*WINDOWED, "naive-windowed-sink-with-a-global-committer"])
def test_a_writer_that_writes_again_what_it_wrote_is_told(world, monkeypatch):
    going_on(monkeypatch, -1)

    assert "committed twice" in facts(run(world))


@pytest.mark.parametrize("world", [world for world in COMMITTED if world.startswith("stopped")])
def test_output_that_a_stopped_job_does_not_commit_is_lost(world, monkeypatch):
    """The writers leave what they read before the savepoint in an open transaction, which no savepoint holds."""
    right = Writer.on
    savepoints = {row.id for row in run(world).checkpoints.itertuples() if row.checkpoint_type == "SYNC_SAVEPOINT"}

    def forgetting(self, event):
        is_forgotten = isinstance(event, EpochEnded) and event.checkpoint in savepoints
        return (self, ()) if is_forgotten else right(self, event)

    monkeypatch.setattr(Writer, "on", forgetting)

    assert "are lost: never committed" in facts(run(world))


@pytest.mark.parametrize("world", [world for world in COMMITTED if world.startswith("drained")])
def test_answers_that_nobody_waits_for_are_lost(world, monkeypatch):
    """They come behind the savepoint's barrier, and no checkpoint follows; or they never come."""
    monkeypatch.setattr(TaskParts, "has_pending_outputs", lambda _: False)

    assert " lost: " in facts(run(world))


def test_naive_tasks_lose_what_they_finish_with_behind_the_savepoint():
    """Drained as before FLIP-147: the sink hears of the end when the savepoint is complete, and no checkpoint follows."""
    result = run_scenario(DRAINED_NAIVELY)

    assert result.job_status == "FINISHED"
    assert facts(result) == "the job has finished and 1 record is lost: never committed"


def test_transactions_that_expire_while_their_job_is_rescaled_are_lost():
    """The committer has 28 of them from a job with other channels, which knew it; 3, 28 and 20 are all 51 records, each told once."""
    result = run_scenario(EXPIRING)

    assert [int(violation.fact.split()[0]) for violation in result.violations] == [3, 28, 20]
    assert result.commits["records"].sum() == 0


def test_the_end_of_the_input_waits_for_answers_and_for_nothing_else():
    """The savepoint's barrier waits behind the end of data, which leaves with the last answer, at most 100 ms after the last record."""
    result = run("drained-with-requests")
    asking = {(row.task, row.event_type): row.time_ns for row in result.journal if row.task in (2, 3)}
    stopped_ns = next(row.time_ns for row in result.journal if row.event_type is EventType.END_OF_DATA)

    for task in (2, 3):
        ended_ns = asking[task, EventType.END_OF_DATA]
        assert 80 * MS < ended_ns - stopped_ns <= 101 * MS
        assert ended_ns <= asking[task, EventType.SNAPSHOT_BEGUN]


def test_a_stopped_job_owes_what_was_read_before_its_savepoint_only():
    """The second sink of a cascade reads 198 records more, after its cut: the savepoint holds them with the first sink's committables."""
    result = run("stopped-cascade")
    read = int(result.tasks.loc[result.tasks["vertex"] == "b", "numRecordsIn"].sum())

    assert read - COMMITTED["stopped-cascade"]["b"] == 198
    assert int(result.commits.loc[result.commits["vertex"] == "a", "records"].iloc[-1]) == 198


def test_whoever_goes_on_from_the_savepoint_commits_the_rest():
    """A bounded job, rescaled with a savepoint while requests are under way: all 600 records reach the committed output."""
    base = load(WORLDS / "stopped-with-requests.yaml").scenarios[0]
    source, ask, sink = base.job.vertices
    bounded = replace(source, source=replace(source.source, total=300))
    job = Job((bounded, ask, sink))
    result = simulate(
        replace(base, job=job, actions=(), rescale=(Rescale(2_030_000_000, (("sink", 2),), savepoint=True),))
    )

    assert int(result.commits["records"].sum()) == 600
    assert result.violations == ()


def test_tasks_that_began_a_stop_fail_with_its_savepoint():
    """No source can take its end of data back.  StreamTask#notifyCheckpointAbortAsync fails the tasks of all regions, and they read on."""
    result = run("stop-fails-in-one-region")

    assert result.job_status == "FINISHED"
    assert result.violations == ()
    assert {"killed", "stop-with-savepoint failed"} == set(result.recoveries["cause"])
    assert result.commits["records"].sum() == 500
