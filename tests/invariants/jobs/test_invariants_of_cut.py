"""Invariants 8-13: the cut of every completed checkpoint is consistent, and captures what it must and no more."""

from hypothesis import given, settings
from hypothesis import strategies as st

from sim.model.checkpoint import Barriers
from sim.results.tables import checkpoints_table, subtasks_table
from tests.invariants.jobs.small_jobs import (
    ALIGNED,
    AT_LEAST_ONCE,
    MS,
    SECOND,
    UNALIGNED,
    barriers,
    chain,
    completed,
    cut_columns,
    run,
    scenario,
    scenarios,
    with_network,
    with_options,
)


@given(scenarios(barriers()))
def test_invariants_08_and_12_runs_violate_no_invariant(world_of):
    """Every byte sent before a barrier is consumed before the snapshot or captured; at least once, or exactly once."""
    assert run(world_of).violations() == ()


def test_invariant_08_counts_something():
    """The invariant is not vacuous: backpressured unaligned checkpoints complete and capture input and output."""
    world = run(scenario(chain(), UNALIGNED))
    cuts = world.cuts.values()

    assert len(completed(world)) >= 5
    assert sum(cut.captured_input.sum() for cut in cuts) > 0
    assert sum(cut.captured_output.sum() for cut in cuts) > 0


@given(scenarios(st.just(ALIGNED)))
def test_invariant_09_aligned_captures_nothing(world_of):
    """Aligned checkpoints store no in-flight data and no subtask is flagged unaligned."""
    world = run(world_of)
    rows = subtasks_table(world.stats.values(), world.names)

    assert checkpoints_table(world.stats.values())["persisted_data"].sum() == 0
    assert not rows["unaligned_checkpoint"].any()


@given(scenarios(st.just(UNALIGNED)))
def test_invariant_10_persisted_is_what_the_channels_captured(world_of):
    """`persisted` of a checkpoint is the sum over its channels' captures, each byte once."""
    world = run(world_of)
    done = completed(world)
    captured = {n: int((world.cuts[n].captured_input + world.cuts[n].captured_output).sum()) for n in done}
    table = checkpoints_table(world.stats.values()).set_index("id")["persisted_data"]

    assert captured == {number: table[number] for number in done}


@given(scenarios(st.just(UNALIGNED)))
@settings(max_examples=15)
def test_invariant_11_timeout_zero_is_unaligned(world_of):
    """An aligned timeout of 0 gives the unaligned run, to the byte."""
    zero = run(with_options(world_of, barriers=Barriers("aligned-timeout", 0)))

    assert list(run(world_of).journal) == list(zero.journal)


def test_invariant_11_infinite_timeout_gives_the_aligned_cut():
    """A timeout that never comes gives the cuts and the data of the aligned run."""
    aligned = run(scenario(chain(), ALIGNED, interval_ms=2000))
    never = run(scenario(chain(), Barriers("aligned-timeout", 500 * SECOND), interval_ms=2000))

    assert cut_columns(aligned) == cut_columns(never)
    assert list(aligned.plane.tasks()["digest"]) == list(never.plane.tasks()["digest"])


def test_invariant_12_at_least_once_may_hold_more():
    """Without blocking, records behind an early barrier get into the snapshot: that is what duplicates them."""
    world = run(scenario(chain(), AT_LEAST_ONCE))

    assert any((world.cuts[number].surplus > 0).any() for number in completed(world))


def test_invariant_13_empty_queues_make_both_modes_equal():
    """With nothing queued (every record is flushed at once) an unaligned checkpoint overtakes nothing and stores nothing."""
    base = with_network(scenario(chain(rate=10, sink_ns=MS), ALIGNED), buffer_timeout_ns=0)
    aligned, unaligned = run(base), run(with_options(base, barriers=UNALIGNED))

    assert checkpoints_table(unaligned.stats.values())["persisted_data"].sum() == 0
    assert {n: cut.consumed.tolist() for n, cut in aligned.cuts.items()} == {
        n: cut.consumed.tolist() for n, cut in unaligned.cuts.items()
    }


@given(barriers())
@settings(max_examples=8)
def test_invariant_13_single_channel_needs_no_alignment(kind):
    """A task with one input channel aligns in no time, whatever the barriers."""
    world = run(scenario(chain(1), kind))
    rows = subtasks_table(world.stats.values(), world.names)

    assert completed(world)
    assert rows["alignment_duration"].max() == 0
