"""Invariants 14 to 17 and 29 on sinks that write files and commit with their checkpoint: when, what, and that it is there."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.model.faults import Kill, Restart, TaskManagerLost
from sim.model.job import Distribution, Input, Job, Vertex
from sim.model.sinks import Commit, Flush
from sim.model.storage import Storage
from tests.invariants.jobs.small_jobs import (
    ALIGNED,
    MS,
    SECOND,
    barriers,
    bounded,
    chain,
    completed,
    fault_at,
    quick,
    run,
    scenario,
    with_options,
)

quicker = settings(max_examples=settings.default.max_examples // 8)
UNRELIABLE = Storage(1_000_000, close_ns=2 * MS, metadata_ns=3 * MS, slow_probability=0.1, slow_factor=5)
INFINITE = Storage(bytes_per_second=None, close_ns=0, metadata_ns=0, inline_threshold_bytes=0)


FILES = Flush(60_000, files=3)


def sinking(job, commit):
    """The last vertex writes files and commits them."""
    sink = replace(job.vertices[-1], flush=FILES, commit=commit)
    behind = Input(sink.name, "global", service=Distribution(0), record_bytes=Distribution(1))
    committers = (
        (Vertex("committer", inputs=(behind,), committer_of=sink.name),) if commit.committer == "global" else ()
    )
    return Job((*job.vertices[:-1], sink, *committers))


def unreliable(kind, **options):
    """Uploads are slow now and then, so checkpoints expire, and notifications get lost."""
    committer = options.pop("committer", "chained")
    base = scenario(
        sinking(chain(2, rate=200), Commit(committer, 3 * MS)), kind, timeout_ns=options.pop("timeout_ns", 120 * MS)
    )
    lost = options.pop("lost_notifications", Fraction(1, 4))
    storage = replace(UNRELIABLE, slow_factor=options.pop("slow_factor", 5))
    return with_options(replace(base, storage=storage), lost_notifications=lost, **options)


ways = st.fixed_dictionaries(
    {
        "committer": st.sampled_from(["chained", "global"]),
        "operator_io": st.sampled_from(["pre-barrier", "async"]),
        "abort_policy": st.sampled_from(["survive", "reupload"]),
        "upload_threads": st.integers(1, 3),
        "staging_bytes": st.sampled_from([None, 60_000]),
        "slow_factor": st.sampled_from([5, 40]),
        "timeout_ns": st.sampled_from([80 * MS, 120 * MS, 10_000 * MS]),
    }
)


def ending(base):
    """Every source emits 100 records; the job ends by itself."""
    return replace(bounded(base, 100), run=replace(base.run, duration_ns=12 * SECOND))


def output(world):
    """Per writer and input channel: the records that became visible, one by one, as often as they did."""
    visible = {}
    for epoch in (epoch for commit in world.commits for epoch in commit.committed):
        for channel, (begin, end) in enumerate(epoch.inputs):
            visible.setdefault((epoch.writer, channel), []).extend(range(begin, end))
    return {place: sorted(records) for place, records in visible.items() if records}


victims = st.one_of(
    st.builds(Kill, st.sampled_from(["source", "stage0", "sink"]), st.sampled_from([0, 1, None])),
    st.builds(TaskManagerLost, st.integers(0, 5)),
)


@quicker
@given(barriers(), ways, st.lists(st.tuples(victims, st.integers(1, 1500)), min_size=1, max_size=3))
def test_invariant_14_after_failures_output_is_committed_once(kind, options, plan):
    """Exactly once, end to end: the committed records are those of the run without a failure, none twice, none missing."""
    if kind.kind == "at-least-once":
        kind = ALIGNED
    calm = ending(unreliable(kind, **options | {"timeout_ns": 10_000 * MS}))
    faults = tuple(fault_at(what, at) for what, at in plan)
    restart = Restart("fixed-delay", 100 * MS, heartbeat_interval_ns=200 * MS, heartbeat_timeout_ns=1000 * MS)
    undisturbed, disturbed = run(calm), run(replace(calm, faults=faults, restart=restart))

    assert [undisturbed.job_status, disturbed.job_status] == ["FINISHED", "FINISHED"]
    assert output(undisturbed) == output(disturbed)
    assert disturbed.violations() == ()


@pytest.mark.parametrize("finish", ["flink", "naive"])
@pytest.mark.parametrize("committer", ["chained", "global"])
@pytest.mark.parametrize("operator_io", ["pre-barrier", "async"])
def test_without_checkpoints_output_is_committed_at_the_end(committer, finish, operator_io):
    """CommitterOperator#endInput: no final checkpoint follows, so all of it is committed there and then."""
    calm = ending(
        unreliable(ALIGNED, committer=committer, finish=finish, operator_io=operator_io, timeout_ns=10_000 * MS)
    )
    jobs = [with_options(calm, interval_ns=interval) for interval in (400 * MS, None)]
    with_some, without = (run(job) for job in jobs)

    assert without.job_status == "FINISHED"
    assert list(without.stats) == []
    assert output(with_some) == output(without) != {}
    assert without.violations() == ()


@pytest.mark.parametrize("policy", ["survive", "reupload"])
@pytest.mark.parametrize("committer", ["chained", "global"])
def test_invariant_16_there_is_something_to_carry_over(policy, committer):
    """The worlds above do abort checkpoints whose output is committed later."""
    world = run(unreliable(ALIGNED, committer=committer, operator_io="async", abort_policy=policy))
    aborted = {number for number, row in world.stats.items() if row.status == "FAILED"}

    assert aborted & {part.epoch for commit in world.commits for part in commit.committed}


@quick
@given(barriers(), ways)
def test_invariants_15_to_17_output_is_committed_once_and_in_full(kind, options):
    """After the completion of its checkpoint, whatever was aborted meanwhile: uploads survive, or are done again."""
    assert run(unreliable(kind, **options)).violations() == ()


def test_invariant_17_the_acknowledgement_waits_for_the_files_of_aborted_snapshots():
    """A slow file outlives its checkpoint's timeout and the next checkpoint's own files, which other threads write meanwhile."""
    world = run(unreliable(ALIGNED, operator_io="async", upload_threads=3, slow_factor=40, timeout_ns=600 * MS))

    assert max(len({part.epoch for part in commit.committed}) for commit in world.commits) > 1
    assert sum(part.missing for commit in world.commits for part in commit.committed) == 0


@pytest.mark.parametrize("committer", ["chained", "global"])
def test_invariant_17_is_broken_when_an_abort_drops_the_files(committer):
    """Their names travelled before the barrier and are published with the next completion; and the checkers say so."""
    world = run(unreliable(ALIGNED, committer=committer, operator_io="async", abort_policy="drop"))
    aborted = {number for number, row in world.stats.items() if row.status == "FAILED"}
    epochs = [part for commit in world.commits for part in commit.committed]

    assert aborted & {part.epoch for part in epochs}
    assert all(part.missing == (len(part.files) if part.epoch in aborted else 0) for part in epochs)
    assert {"every file of committed output exists in full when it is committed"} == {
        violation.invariant for violation in world.violations()
    }


@quick
@given(barriers(), st.sampled_from(["chained", "global"]), st.sampled_from(["survive", "reupload", "drop"]))
def test_invariant_29_files_that_take_no_time_are_written_at_any_time(kind, committer, policy):
    """Infinite disks and storage: before the barrier or behind it, the same journal, the same output, the same data."""
    base = replace(
        scenario(sinking(chain(2, rate=200), Commit(committer)), kind, timeout_ns=150 * MS), storage=INFINITE
    )
    variant = with_options(base, operator_io="async", abort_policy=policy)
    first, second = run(base), run(variant)

    assert list(first.journal) == list(second.journal)
    assert first.stats == second.stats
    assert first.commits == second.commits
    assert first.plane.tasks().tolist() == second.plane.tasks().tolist()
    assert completed(first)


def test_invariant_29_files_that_take_time_differ():
    """60 kB at 1 MB/s: before the barrier the task thread waits for them, behind it it serves records."""
    base = scenario(sinking(chain(2, rate=200), Commit()))
    first, second = (run(with_options(base, operator_io=way)) for way in ("pre-barrier", "async"))
    sinks = [t for t, (name, _) in enumerate(first.names) if name == "sink"]

    assert all(first.stats[2].of(t).pre_barrier_ns > 60 * MS for t in sinks)
    assert all(second.stats[2].of(t).pre_barrier_ns == 0 for t in sinks)
    assert all(second.stats[2].of(t).async_ns > 60 * MS for t in sinks)
