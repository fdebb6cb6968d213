"""How jobs end: invariants 31 to 35, and the end of a chain in closed form (FLIP-147: one checkpoint against N)."""

from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.model.faults import Kill, Restart
from sim.model.job import Distribution, Input, Job, Rate, Source, Vertex
from sim.model.scenario import Action
from sim.results.journal import EventType
from sim.runtime.context import END_OF_DATA, END_OF_PARTITION
from sim.runtime.job_instance import JobInstance
from tests.invariants.jobs.small_jobs import (
    ALIGNED,
    MS,
    SECOND,
    UNALIGNED,
    barriers,
    bounded,
    fault_at,
    quick,
    rows,
    scenario,
    scenarios,
    source,
    to_the_end,
    with_network,
    with_options,
)

INTERVAL = 100 * MS
TRIGGER, ACKNOWLEDGE, COMPLETE, METADATA, NOTIFY, CLOSE, FIRST = (ms * MS for ms in (3, 2, 4, 5, 1, 7, 10))
SERVICE = 1000
"""ns, of every task: what lies in the chain when the source ends is served in no time."""


def line(n, end_ns, **options):
    """A chain of n tasks whose source emits its last record at `end_ns`; every duration is an overhead, everything else takes none."""
    vertices = [
        Vertex("task0", source=Source((Rate(0, Fraction(SECOND, end_ns)),), total=2), service=Distribution(SERVICE))
    ]
    for i in range(1, n):
        inlet = Input(f"task{i - 1}", "forward", service=Distribution(SERVICE), record_bytes=Distribution(10))
        vertices.append(Vertex(f"task{i}", inputs=(inlet,)))
    base = scenario(Job(tuple(vertices)), **options)
    overheads = replace(
        base.overheads,
        trigger_ns=TRIGGER,
        acknowledge_ns=ACKNOWLEDGE,
        complete_ns=COMPLETE,
        notify_ns=NOTIFY,
        close_ns=CLOSE,
        first_trigger_ns=FIRST,
    )
    base = with_network(with_options(base, interval_ns=INTERVAL), buffer_timeout_ns=0)
    return replace(
        base,
        cluster=replace(base.cluster, placement="single"),
        storage=replace(base.storage, metadata_ns=METADATA),
        overheads=overheads,
    )


def completed_after(instance, time_ns):
    """Checkpoints that began to hold the end of something: triggered calls executed after `time_ns`."""
    return [
        n
        for n, row in sorted(instance.stats.items())
        if row.status == "COMPLETED" and row.trigger_ns + TRIGGER > time_ns
    ]


# ---------------------------------------------------------------------------------------------- the oracle: N against 1

ENDS = [210 * MS + k * INTERVAL // 16 + 37_000 for k in range(16)]
"""Every phase of the interval: before, while and after a periodic checkpoint is prepared, travels, is finalised."""
DURATION = TRIGGER + ACKNOWLEDGE + METADATA + COMPLETE
"""Trigger -> complete, of a checkpoint that waits for nothing."""


def covering(end_ns):
    """t0 of the first periodic checkpoint whose call reaches the source after its end; None: the final one comes before it."""
    k = -(-(end_ns - TRIGGER - FIRST) // INTERVAL)
    return FIRST + max(0, k) * INTERVAL


def expected_end(n, end_ns, finish):
    """(end of the job, number of checkpoints its end takes)."""
    grid = covering(end_ns + SERVICE)
    if finish == "naive":  # a task ends when the one before it is complete and closed: one interval each
        return grid + (n - 1) * INTERVAL + DURATION + NOTIFY + CLOSE + ACKNOWLEDGE, n
    known = end_ns + n * SERVICE + ACKNOWLEDGE  # everybody's end of data is reported
    if grid < known:
        final = grid  # a periodic one was prepared and came just in time
    else:
        before = grid - INTERVAL
        final = max(known, before + DURATION)  # it waits for the one under way
    return final + DURATION + NOTIFY + n * CLOSE + ACKNOWLEDGE, 1


@pytest.mark.parametrize("n", range(1, 9))
@pytest.mark.parametrize("finish", ["flink", "naive"])
def test_invariant_31_n_tasks_end_with_one_checkpoint_or_with_n(n, finish):
    """To the nanosecond, at every phase of the interval."""
    for end_ns in ENDS:
        instance = to_the_end(with_options(line(n, end_ns), finish=finish))
        end, checkpoints = expected_end(n, end_ns, finish)

        assert instance.job_status == "FINISHED"
        assert (end, checkpoints) == (instance.env.now, len(completed_after(instance, end_ns + SERVICE))), end_ns


def test_invariant_31_the_phases_are_all_there():
    """Ends that a periodic checkpoint catches just in time, ends that wait for one under way, ends alone."""
    grids = [(covering(end + SERVICE), end) for end in ENDS]

    assert any(grid < end + 4 * SERVICE + ACKNOWLEDGE for grid, end in grids)
    assert any(grid - INTERVAL + DURATION > end for grid, end in grids)
    assert any(grid - INTERVAL + DURATION < end < grid for grid, end in grids)


@pytest.mark.parametrize("end_ns", ENDS[::5])
@pytest.mark.parametrize("finish", ["commit-at-finish", "discard", "off"])
def test_invariant_31_before_flip_147_the_end_takes_no_checkpoint(finish, end_ns):
    """And there is none after the first task has finished: it waits until its end is read, the others for their inputs."""
    instance = to_the_end(with_options(line(4, end_ns), finish=finish))
    begun = [row.trigger_ns for row in instance.stats.values() if row.status == "COMPLETED"]

    assert end_ns + 2 * SERVICE + 4 * CLOSE + ACKNOWLEDGE == instance.env.now
    assert max(begun) + TRIGGER <= end_ns + SERVICE


@quick
@given(barriers())
def test_invariant_31_all_tasks_have_the_same_final_checkpoint(kind):
    """All data has ended before the trigger: one checkpoint holds the end of everybody, however its barriers travel."""
    base = line(5, 237 * MS)
    instance = to_the_end(with_options(base, barriers=kind))

    assert len({host.ending.machine.final for host in instance.tasks}) == 1


@quick
@given(scenarios())
def test_invariant_31_a_completed_checkpoint_holds_the_end_of_every_task(world_of):
    """Jobs of any shape under any protocol, with data in flight and checkpoints that expire.

    Snapshots leave threads half of their time: with two under way, records might never be served.
    """
    work_ns = max(vertex.snapshot.pre_barrier_ns + vertex.snapshot.sync_ns for vertex in world_of.job.vertices)
    interval_ns = max(world_of.checkpoint.interval_ns, 2 * work_ns)
    instance = to_the_end(bounded(with_options(world_of, timeout_ns=10 * SECOND, interval_ns=interval_ns), 120))

    assert instance.job_status == "FINISHED"
    for host in instance.tasks:
        assert host.ending.machine.final <= host.ending.machine.completed


# ---------------------------------------------------------------------------------------------- 32: at once


@pytest.mark.parametrize("end_ns", [230 * MS, 260 * MS])
def test_invariant_32_the_final_checkpoint_is_triggered_at_once(end_ns):
    """When the last end of data is reported; nothing is pending then."""
    instance = to_the_end(line(3, end_ns))
    last = max(row.time_ns for row in rows(instance, EventType.END_OF_DATA))

    assert max(row.trigger_ns for row in instance.stats.values()) == last + ACKNOWLEDGE


def test_invariant_32_not_while_a_task_goes_on():
    """One source never ends: finished tasks wait for the next periodic checkpoint."""
    instance = to_the_end(mixed(), seconds=2)
    triggers = [row.trigger_ns for row in instance.stats.values()]

    assert [10 * MS + k * 400 * MS for k in range(5)] == triggers
    assert instance.job_status == "RUNNING"


def mixed(finish="flink", *, kind=ALIGNED, **options):
    """`a` ends after 300 ms, `b` goes on; both feed the sink."""
    a = Vertex("a", source=Source((Rate(0, Fraction(100)),), total=30))
    b = source("b", rate=100)
    sink = Vertex("sink", inputs=(Input("a", "forward"), Input("b", "forward")))
    return with_options(scenario(Job((a, b, sink)), kind, **options), finish=finish)


@pytest.mark.parametrize("kind", [ALIGNED, UNALIGNED])
def test_invariant_32_finished_tasks_count_as_acknowledged(kind):
    """`a` finishes with the second checkpoint; the later ones do without it and complete."""
    instance = to_the_end(mixed(kind=kind), seconds=2)
    third = instance.stats[3]

    assert {"COMPLETED"} == {row.status for row in instance.stats.values()}
    assert (3, 3, {1, 2}) == (third.tasks, third.acknowledged, set(third.subtasks))
    assert instance.job.job_end.finished == {0}


@pytest.mark.parametrize("finish", ["off", "discard", "commit-at-finish"])
def test_invariant_32_no_checkpoint_without_flip_147(finish):
    """The unbounded half never checkpoints again."""
    instance = to_the_end(mixed(finish), seconds=2)

    assert sorted(instance.stats) == [1]
    assert {"NOT_ALL_REQUIRED_TASKS_RUNNING"} == {row.detail for row in rows(instance, EventType.REFUSED)}


# ---------------------------------------------------------------------------------------------- 33: order


@quick
@given(scenarios())
def test_invariant_33_nothing_follows_the_end(world_of):
    """No record after the end of data, no marker after the end of the partition, and tasks close after what holds their end."""
    instance = JobInstance(bounded(with_options(world_of, timeout_ns=10 * SECOND), 8), "compiled")
    outputs = {
        t: [c for p in instance.layout.task_partitions[t] for c in instance.layout.partitions[p][2]]
        for t in range(len(instance.tasks))
    }
    written, over, wrong, forward = {}, set(), [], instance.plane.forward

    def watched(task, marker, edge=None):
        if task in over:
            wrong.append(f"task {task} forwards {marker} after its end")
        if marker.series == END_OF_DATA:
            written[task] = instance.plane.channels()["written"][outputs[task]].tolist()
        if marker.series == END_OF_PARTITION:
            over.add(task)
        return forward(task, marker, edge)

    instance.plane.forward = watched
    instance.start()
    instance.env.run(until=instance.outcome.finished | instance.env.timeout(120 * SECOND))
    rows = instance.plane.channels()["written"]
    closed = {row.task: row.time_ns for row in instance.journal if row.event_type is EventType.TASK_FINISHED}

    assert wrong == []
    assert set(outputs) == over == set(written) == set(closed)
    for task, channels in outputs.items():
        assert written[task] == rows[channels].tolist(), "records after the end of data"
        assert instance.stats[instance.tasks[task].ending.machine.final].trigger_ns < closed[task]
        assert any(row.status == "COMPLETED" and row.completed_ns < closed[task] for row in instance.stats.values())


@quick
@given(
    scenarios(),
    st.integers(11, 1900),
    st.sampled_from(["drain", "no-drain"]),
    st.lists(st.integers(1, 1900), max_size=2),
)
def test_invariant_33_a_job_stops_at_any_time(world_of, at_ms, stop, kills):
    """With data in flight, checkpoints under way, tasks that fail: nothing is lost or taken twice, a savepoint that completes ends it."""
    requested = replace(
        with_options(world_of, timeout_ns=10 * SECOND),
        actions=(Action(at_ms * MS, "native", stop),),
        faults=tuple(fault_at(Kill(), ms) for ms in kills),
        restart=Restart("fixed-delay", delay_ns=50 * MS),
    )
    instance = to_the_end(requested, 20)
    stopped = any(row.stops and row.status == "COMPLETED" for row in instance.stats.values())

    if world_of.checkpoint.barriers.kind != "at-least-once":
        assert instance.violations() == ()
    assert stopped == (instance.job_status != "RUNNING")
    assert stopped or kills, "only a failure keeps it from stopping"


# ---------------------------------------------------------------------------------------------- 34: union state


def lopsided(*, union):
    """One subtask of the source ends after 0.5 s, the other, ten times as slow, after 5 s."""
    src = Vertex("src", parallelism=2, source=Source(total=500), service=Distribution(MS), union_state=union)
    sink = Vertex("sink", parallelism=2, inputs=(Input("src", "hash", service=Distribution(1000)),))
    return scenario(Job((src, sink)), interval_ms=400)


@pytest.mark.parametrize("union", [True, False])
def test_invariant_34_union_state_waits_for_the_whole_vertex(union):
    """With it no checkpoint completes while one subtask's operators have finished and the other's have not."""
    instance = JobInstance(lopsided(union=union), "compiled")
    instance.plane.scale(1, 10, 1)
    instance.start()
    instance.env.run(until=instance.outcome.finished | instance.env.timeout(20 * SECOND))
    first, last = (
        next(r.time_ns for r in instance.journal if r.event_type is EventType.END_OF_DATA and r.task == t)
        for t in (0, 1)
    )
    between = [row for row in instance.stats.values() if first < row.trigger_ns < last - MS]

    assert instance.job_status == "FINISHED"
    assert len(between) > 8
    if union:
        assert {"FAILED"} == {row.status for row in between}
        assert {"CHECKPOINT_DECLINED_TASK_CLOSING"} == {row.failure for row in between}
        assert len({host.ending.machine.completed for host in instance.tasks}) == 1, "they share the final checkpoint"
    else:
        assert {"COMPLETED"} == {row.status for row in between}


# ---------------------------------------------------------------------------------------------- 35: restored at its end


@pytest.mark.parametrize("kind", [ALIGNED, UNALIGNED])
def test_invariant_35_a_restored_finished_vertex_emits_nothing(kind):
    """`a` finished with checkpoint 2; the sink fails at 1 s: `a` comes back at its end, `b` replays what followed checkpoint 3."""
    failing = replace(
        mixed(kind=kind),
        faults=(fault_at(Kill("sink"), 1000),),
        restart=Restart("fixed-delay", delay_ns=100 * MS),
    )
    instance = to_the_end(failing, seconds=3)
    served = [instance.plane.counted(task).served for task in instance.context.tasks]
    recovered = next(row.time_ns for row in instance.journal if row.event_type is EventType.JOB_RESTORED)

    assert served[0] == 30, "no record twice"
    assert served[1] > 200
    assert {0} == instance.job.job_end.finished, "and it finishes again, with a checkpoint of its second life"
    assert "COMPLETED" in {row.status for row in instance.stats.values() if row.trigger_ns > recovered}


def test_invariant_35_without_flip_147_everything_is_replayed():
    """No checkpoint since `a` finished: it is read again, and so is all of `b` since the last one."""
    failing = replace(
        mixed("off"),
        faults=(fault_at(Kill("sink"), 1000),),
        restart=Restart("fixed-delay", delay_ns=100 * MS),
    )
    instance = to_the_end(failing, seconds=3)

    assert instance.plane.counted(0).served >= 30 + 30 - 2
