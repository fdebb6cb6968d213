"""What a subtask writes: its key groups' share, its own work with its probability, files only for what is not inline."""

from fractions import Fraction
from statistics import fmean

import pytest
import simpy
from hypothesis import given
from hypothesis import strategies as st

from sim.model.job import Snapshot, Vertex
from sim.model.state import State
from sim.model.storage import Storage
from sim.runtime.context import StateSnapshot
from sim.runtime.task.keyed_state import StateOwner
from sim.runtime.task.subtask_state import SubtaskState
from sim.storage.filesystem import CheckpointStorage

MS = 1_000_000


def subtasks(vertex: Vertex, seed: int = 1) -> list[SubtaskState]:
    return [SubtaskState(StateOwner(vertex, i, seed)) for i in range(vertex.parallelism)]


def written(state: SubtaskState, kind: str, *, threshold: int) -> tuple[int, int, int]:
    """(ns, files, bytes) of one file at 1 B per ns and 2 ms per file."""
    files = CheckpointStorage(
        simpy.Environment(), Storage(1_000_000_000, 2 * MS, inline_threshold_bytes=threshold), seed=1
    )
    state.begin(1, "checkpoint")
    state.take(1, 0, 0)
    files.env.run(until=files.env.process(state.write(files, kind, 1)))
    return files.env.now, files.files.written, files.bytes_written


def stored(state: SubtaskState) -> StateSnapshot:
    """What a snapshot taken now would hold."""
    state.begin(1, "checkpoint")
    state.take(1, 0, 0)
    return state.close(1)


@given(st.integers(1, 32), st.integers(0, 96), st.integers(0, 10**6))
def test_key_group_shares_add_up(parallelism, more_groups, per_group):
    """Every key group belongs to one subtask: the shares are the whole, and differ by at most one group."""
    groups = parallelism + more_groups
    vertex = Vertex("map", parallelism, max_parallelism=groups, state=State(groups * per_group))
    shares = [share.subtask.keyed_bytes for share in subtasks(vertex)]

    assert groups * per_group == sum(shares)
    assert max(shares) - min(shares) in (0, per_group)


def test_key_groups_are_dealt_as_flink_does():
    """5 groups over 3 subtasks are 0-1, 2-3, 4 (KeyGroupRangeAssignment rounds the beginnings up)."""
    assert [share.subtask.keyed_bytes for share in subtasks(Vertex("map", 3, max_parallelism=5, state=State(500)))] == [
        200,
        200,
        100,
    ]


def test_rounding_loses_less_than_a_byte_per_subtask():
    """A state that does not divide: rounded down, never up."""
    shares = [share.subtask.keyed_bytes for share in subtasks(Vertex("map", 7, state=State(1_000_003)))]

    assert 0 <= 1_000_003 - sum(shares) < 7


def test_total_is_keyed_and_operator_state():
    """Operator state is per subtask and not divided; no state is no bytes."""
    vertex = Vertex("map", 2, state=State(1000), snapshot=Snapshot(operator_state_bytes=30))

    assert [stored(share).full_bytes for share in subtasks(vertex)] == [530, 530]
    assert stored(SubtaskState(StateOwner(Vertex("map"), 0, 1))).full_bytes == 0


def test_each_phase_has_its_own_work():
    (state,) = subtasks(Vertex("sink", snapshot=Snapshot(pre_barrier_ns=1, sync_ns=20, async_ns=300)))

    assert [state.work_ns(phase, 7) for phase in ("pre_barrier", "sync", "async")] == [1, 20, 300]


def test_work_is_paid_with_its_probability():
    """One snapshot in four, drawn for each snapshot, subtask and phase on its own."""
    vertex = Vertex("sink", 2, snapshot=Snapshot(pre_barrier_ns=100, sync_ns=100, probability=Fraction(1, 4)))
    paid = [
        [share.work_ns(phase, n) for n in range(4000)]
        for share in subtasks(vertex)
        for phase in ("pre_barrier", "sync")
    ]

    assert {0, 100} == {cost for costs in paid for cost in costs}
    assert all(fmean(costs) == pytest.approx(25, abs=3) for costs in paid)
    assert len({tuple(costs) for costs in paid}) == 4


def test_probability_zero_is_never_and_one_always():
    never, always = (Vertex("sink", snapshot=Snapshot(sync_ns=9, probability=Fraction(p))) for p in (0, 1))

    assert {0} == {SubtaskState(StateOwner(never, 0, 1)).work_ns("sync", n) for n in range(1000)}
    assert {9} == {SubtaskState(StateOwner(always, 0, 1)).work_ns("sync", n) for n in range(1000)}


def test_the_same_snapshot_pays_the_same_whoever_asks():
    """A function of seed and checkpoint: strategies are compared under the same bad luck."""
    vertex = Vertex("sink", snapshot=Snapshot(sync_ns=9, probability=Fraction(1, 2)))
    forwards = [SubtaskState(StateOwner(vertex, 0, 1)).work_ns("sync", n) for n in range(100)]

    assert forwards == [SubtaskState(StateOwner(vertex, 0, 1)).work_ns("sync", n) for n in reversed(range(100))][::-1]
    assert forwards != [SubtaskState(StateOwner(vertex, 0, 2)).work_ns("sync", n) for n in range(100)]


@pytest.mark.parametrize(("kind", "size_bytes"), [("keyed", 3 * MS), ("operator", 5 * MS)])
def test_a_file_is_written_at_its_size(kind, size_bytes):
    """3 MB or 5 MB at 1 B/ns, and 2 ms latency."""
    (state,) = subtasks(Vertex("map", state=State(3 * MS), snapshot=Snapshot(operator_state_bytes=5 * MS)))

    assert (size_bytes + 2 * MS, 1, size_bytes) == written(state, kind, threshold=0)


@pytest.mark.parametrize(("threshold", "files"), [(2999, 1), (3000, 0), (20_480, 0)])
def test_small_state_makes_no_file(threshold, files):
    """Up to the threshold it travels in the acknowledgement, in no time."""
    (state,) = subtasks(Vertex("map", state=State(3000)))

    assert (files * (3000 + 2 * MS), files, files * 3000) == written(state, "keyed", threshold=threshold)


def test_no_state_makes_no_file():
    """Not even an empty one."""
    (state,) = subtasks(Vertex("map"))

    assert written(state, "keyed", threshold=-1) == (0, 0, 0)


@pytest.mark.parametrize(("end", "parts"), [("close", 1), ("cancel", 1), ("cancel before it is taken", 0)])
def test_a_snapshot_that_is_over_needs_its_files_no_more(end, parts):
    """Acknowledged or cancelled: a file of the changelog that it waited for may be forgotten."""
    (state,) = subtasks(Vertex("map", state=State(1000), snapshot=Snapshot(operator_state_bytes=50)))
    forgotten = []
    state.keyed.forget = forgotten.append
    state.begin(1, "checkpoint")
    if parts:
        state.take(1, 0, 0)
    before = dict(state.snapshots)
    if end == "close":
        assert before[1] is state.close(1)
    else:
        assert state.cancel(1) == []

    assert list(before.values()) == forgotten
    assert parts == len(forgotten)
    assert state.snapshots == {}
