"""Invariants 12, 18 and 24 with restarts, and what makes exactly-once: whole runs of random jobs in which random tasks fail."""

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.model.faults import JobManagerDown, Kill, Restart, TaskManagerLost
from sim.model.job import Distribution, Input, Job, Vertex
from sim.results.journal import EventType
from tests.invariants.jobs.small_jobs import (
    ALIGNED,
    AT_LEAST_ONCE,
    MS,
    SECOND,
    UNALIGNED,
    bounded,
    chain,
    fault_at,
    quick,
    rows,
    run,
    scenario,
    scenarios,
    source,
    with_options,
)


def restart(delay_ms=50):
    return Restart(
        "fixed-delay",
        delay_ns=delay_ms * MS,
        connection_reset_ns=20 * MS,
        heartbeat_timeout_ns=100 * MS,
        replacement=Distribution(30 * MS),
    )


@st.composite
def faults(draw):
    """Up to four of any kind, within two seconds."""
    tasks = st.just(Kill())
    what = draw(
        st.lists(tasks | tasks | st.just(TaskManagerLost()) | st.just(JobManagerDown(60 * MS)), min_size=1, max_size=4)
    )
    return tuple(fault_at(kind, draw(st.integers(5, 2000))) for kind in what)


def failing(base, plan, seconds=4):
    overheads = replace(base.overheads, fail_ns=5 * MS, restart_ns=2 * MS, deploy_ns=8 * MS)
    return replace(
        base, faults=plan, restart=restart(), overheads=overheads, run=replace(base.run, duration_ns=seconds * SECOND)
    )


# ---------------------------------------------------------------------------------------------- 18 and 24


@quick
@given(scenarios(), faults())
def test_invariant_18_ids_increase_over_restarts(world_of, plan):
    """Over the whole life of the job, a new JobManager included; completed ones in their order; one id is used once."""
    world = run(failing(world_of, plan))
    triggered = [row.checkpoint for row in rows(world, EventType.TRIGGERED)]
    done = [row.checkpoint for row in rows(world, EventType.COMPLETED)]

    assert list(range(1, len(triggered) + 1)) == triggered
    assert sorted(set(done)) == done
    assert world.violations() == ()


# ---------------------------------------------------------------------------------------------- nothing lost, nothing twice


@quick
@given(scenarios(st.sampled_from([ALIGNED, UNALIGNED])), faults())
def test_a_run_with_failures_ends_where_one_without_does(world_of, plan):
    """Written, read, and the index of every draw: equal to the byte on every channel; nothing is left in flight."""
    calm, hit = (
        run(failing(bounded(with_options(world_of, timeout_ns=10 * SECOND), 40), faults, seconds=25))
        for faults in ((), plan)
    )
    ends = [world.plane.channels() for world in (calm, hit)]
    if (ends[0]["consumed"] < ends[0]["written"]).any() or calm.job_status != "FINISHED":
        return  # a slow job: it has not ended

    assert hit.job_status == "FINISHED"
    for column in ("written", "consumed"):
        assert ends[0][column].tolist() == ends[1][column].tolist()
    ever = [[world.plane.counted(task).served for task in world.context.tasks] for world in (calm, hit)]
    assert calm.plane.served().tolist() == hit.plane.served().tolist()
    assert all(once <= again for once, again in zip(*ever, strict=True))
    assert hit.violations() == ()


# ---------------------------------------------------------------------------------------------- 12: at least once


def fast_and_slow():
    """A sink that reads a quick path and a slow one: barriers arrive far apart."""
    quick_, slow = source("quick", rate=200), source("slow", rate=200)
    stage = Vertex(
        "stage", inputs=(Input("slow", "hash", service=Distribution(9 * MS), record_bytes=Distribution(100)),)
    )
    inlets = tuple(
        Input(name, "hash", service=Distribution(MS), record_bytes=Distribution(100)) for name in ("quick", "stage")
    )
    return Job((quick_, slow, stage, Vertex("sink", inputs=inlets)))


@pytest.mark.parametrize("at_ms", [700, 1100, 1500])
def test_invariant_12_at_least_once_loses_nothing_and_reads_some_records_twice(at_ms):
    """The sink's snapshot holds records behind the barrier of the quick path; its source emits them again after the restore."""
    base = bounded(scenario(fast_and_slow(), AT_LEAST_ONCE, interval_ms=300), 300)
    plan = (fault_at(Kill("stage", 0), at_ms),)
    calm, hit = (run(failing(base, faults, seconds=12)) for faults in ((), plan))
    ends = [world.plane.channels() for world in (calm, hit)]
    sink = len(hit.tasks) - 1
    read = [int(world.plane.served()[sink]) for world in (calm, hit)]

    assert ends[0]["written"].tolist() == ends[1]["written"].tolist()
    assert ends[1]["consumed"].tolist() == ends[1]["written"].tolist(), "nothing is lost"
    assert read[1] > read[0], "some are read twice"
    assert (calm.violations(), hit.violations()) == ((), ()), "which is what was asked for"
    assert calm.repetitions() == ()
    (repetition,) = hit.repetitions()
    assert int(repetition.fact.split()[0]) == read[1] - read[0], "in records of 100 bytes"


# ---------------------------------------------------------------------------------------------- the schedule


def test_after_a_restart_the_schedule_has_a_new_phase():
    """2.x: one full interval after the first task runs, then the grid anchored there."""
    base = scenario(chain(1, rate=50), seconds=5, interval_ms=400)
    world = run(failing(base, (fault_at(Kill("stage0", 0), 1500),), seconds=5))
    runs = min(row.time_ns for row in rows(world, EventType.TASK_RUNS))
    after = [row.time_ns for row in rows(world, EventType.TRIGGERED) if row.time_ns > runs]

    assert runs + 400 * MS == after[0]
    assert {400 * MS} == {b - a for a, b in pairwise(after)}


def test_1_20_draws_its_phase_anew():
    """Uniform on [min-pause, interval] after the job is RUNNING: with every restart another draw."""
    base = scenario(chain(1, rate=50), seconds=8, interval_ms=400)
    base = replace(base, cluster=replace(base.cluster, profile="1.20"))
    plan = tuple(fault_at(Kill("stage0", 0), at) for at in (1500, 3000, 4500))
    world = run(failing(base, plan, seconds=8))
    triggers = [row.time_ns for row in rows(world, EventType.TRIGGERED)]
    phases = [
        next(at for at in triggers if at > row.time_ns) - row.time_ns for row in rows(world, EventType.JOB_RESTORED)
    ]

    assert len(set(phases)) == 3
    assert all(phase <= 400 * MS for phase in phases)
