"""What a subtask writes: its key groups' share, its own work with its probability, files only for what is not inline."""

import simpy

from sim.model.job import Snapshot, Vertex
from sim.model.storage import Storage
from sim.runtime.task.keyed_state import StateOwner
from sim.runtime.task.subtask_state import SubtaskState
from sim.storage.filesystem import CheckpointStorage

MS = 1_000_000


def subtasks(vertex, seed=1):
    return [SubtaskState(StateOwner(vertex, i, seed)) for i in range(vertex.parallelism)]


def written(state, kind, *, threshold):
    """(ns, files, bytes) of one file at 1 B per ns and 2 ms per file."""
    files = CheckpointStorage(
        simpy.Environment(), Storage(1_000_000_000, 2 * MS, inline_threshold_bytes=threshold), seed=1
    )
    state.begin(1, "checkpoint")
    state.take(1, 0, 0)
    files.env.run(until=files.env.process(state.write(files, kind, 1)))
    return files.env.now, files.files.written, files.bytes_written


def test_each_phase_has_its_own_work():
    (state,) = subtasks(Vertex("sink", snapshot=Snapshot(pre_barrier_ns=1, sync_ns=20, async_ns=300)))

    assert [state.work_ns(phase, 7) for phase in ("pre_barrier", "sync", "async")] == [1, 20, 300]
