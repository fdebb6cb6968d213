"""Invariant 29, and what the variants of a strategy may and may not change on whole runs."""

from dataclasses import replace

import pytest
from hypothesis import given

from sim.model.job import Input, Job, Snapshot, Source, Vertex
from sim.model.storage import Storage
from sim.protocol.barrier_modes import ASYNC_OPERATE, strategy
from sim.protocol.task_checkpointing import TaskCheckpointing
from sim.results.tables import subtasks_table
from sim.runtime.job_instance import JobInstance
from tests.invariants.jobs.small_jobs import (
    ALIGNED,
    MS,
    UNALIGNED,
    chain,
    completed,
    cut_columns,
    keep_cuts,
    quick,
    run,
    scenario,
    scenarios,
    source,
)

INFINITE = Storage(bytes_per_second=None, close_ns=0, metadata_ns=0, inline_threshold_bytes=0)


def with_pre_barrier(base, pre_barrier_ns):
    """Every operator writes so long before its barrier leaves; storage takes no time."""
    vertices = (replace(v, snapshot=replace(v.snapshot, pre_barrier_ns=pre_barrier_ns)) for v in base.job.vertices)
    return replace(base, job=Job(tuple(vertices)), storage=INFINITE)


def ran(base, phases=None):
    """A whole run; with `phases` instead of the strategy's own."""
    instance = keep_cuts(JobInstance(base, "compiled", digests=True))
    for task, host in enumerate(instance.tasks):
        host._loop.machine = TaskCheckpointing.configured(
            strategy(base.checkpoint.barriers), len(instance.layout.task_gates[task]), phases
        )
    instance.start()
    instance.env.run(until=instance.env.timeout(base.run.duration_ns))
    return instance


def rows(instance, *columns):
    table = subtasks_table([instance.stats[n] for n in sorted(completed(instance))], instance.names)
    return table[table["vertex"] == "sink"][list(columns)]


@quick
@given(scenarios())
def test_invariant_29_without_pre_barrier_work_async_operate_is_the_baseline(world_of):
    """No operator has anything to write and storage is infinite: equal journals, cuts and data, to the byte."""
    base = with_pre_barrier(world_of, 0)
    baseline, variant = ran(base), ran(base, ASYNC_OPERATE)

    assert list(baseline.journal) == list(variant.journal)
    assert cut_columns(baseline) == cut_columns(variant)
    assert baseline.stats == variant.stats
    assert baseline.plane.tasks().tolist() == variant.plane.tasks().tolist()


@pytest.mark.parametrize("kind", [ALIGNED, UNALIGNED], ids=str)
def test_invariant_29_with_pre_barrier_work_they_differ(kind):
    """40 ms per operator: the baseline's barriers wait for them at each stage, the variant writes them while records flow."""
    base = with_pre_barrier(scenario(chain(1, stages=2, rate=20, sink_ns=MS), kind, seconds=2), 40 * MS)
    baseline, variant = ran(base), ran(base, ASYNC_OPERATE)
    before, after = (
        rows(instance, "start_delay", "x_pre_barrier", "async_duration", "end_to_end_duration")
        for instance in (baseline, variant)
    )

    assert len(before) >= 3
    assert (before["start_delay"] >= 3 * 40).all(), "source and two stages stand before the sink"
    assert (after["start_delay"] < 40).all()
    assert {40.0} == set(before["x_pre_barrier"])
    assert {0.0} == set(after["x_pre_barrier"])
    assert (after["async_duration"] >= before["async_duration"] + 40).all()
    assert (after["end_to_end_duration"] < before["end_to_end_duration"]).all()


@pytest.mark.parametrize("kind", [ALIGNED, UNALIGNED], ids=str)
def test_invariant_29_the_smaller_the_work_the_smaller_the_difference(kind):
    """Towards no work at all the variants meet: the difference of the end-to-end durations falls with it."""

    def difference(pre_barrier_ns):
        base = with_pre_barrier(scenario(chain(1, rate=20, sink_ns=MS), kind, seconds=2), pre_barrier_ns)
        baseline, variant = (
            rows(ran(base, phases), "end_to_end_duration").mean().iloc[0] for phases in (None, ASYNC_OPERATE)
        )
        return baseline - variant

    large, small, none = difference(40 * MS), difference(MS), difference(0)

    assert large > small > none == 0.0


def test_invariant_29_the_cut_stays_consistent():
    """Moved work changes when the barrier leaves, not what belongs to the snapshot."""
    base = with_pre_barrier(scenario(chain(), UNALIGNED), 20 * MS)
    instance = ran(base, ASYNC_OPERATE)

    assert len(completed(instance)) >= 5
    assert instance.violations() == ()


@quick
@given(scenarios())
def test_invariant_25_hidden_time_covers_the_pre_barrier_work(world_of):
    """Under every protocol: what Flink does not report is never negative, and holds the pre-barrier work."""
    instance = run(world_of)
    table = subtasks_table([instance.stats[n] for n in completed(instance)], instance.names)

    assert (table["x_hidden"] >= table["x_pre_barrier"] - 1e-6).all()


def test_invariant_25_alignment_beside_the_snapshot_is_counted_once():
    """One source's barrier comes 60 ms after the other's, nothing is in flight: the sink's snapshot waits for it in its async phase."""
    early, late = (replace(source(name), source=Source(total=0)) for name in "ab")
    late = replace(late, snapshot=Snapshot(pre_barrier_ns=60 * MS))
    sink = Vertex("sink", inputs=(Input("a"), Input("b")))
    table = rows(
        run(scenario(Job((early, late, sink)), UNALIGNED, seconds=1)),
        "alignment_duration",
        "async_duration",
        "x_hidden",
    )

    assert {(60.0, 60.0, 1.0)} == set(table.round(6).itertuples(index=False, name=None))


def test_invariant_25_counts_something():
    """The invariant is not vacuous: pre-barrier work shows up as hidden time."""
    job = chain(1, rate=20, sink_ns=MS)
    slow = tuple(replace(v, snapshot=Snapshot(pre_barrier_ns=30 * MS)) if v.name == "sink" else v for v in job.vertices)
    hidden = rows(run(scenario(Job(slow), seconds=2)), "x_hidden")["x_hidden"]

    assert len(hidden) >= 3
    assert {31.0} == set(hidden.round(6)), "and the way of the acknowledgement"
