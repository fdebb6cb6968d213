"""What a subtask writes: its own work in each phase."""

from sim.model.job import Snapshot, Vertex
from sim.runtime.task.keyed_state import StateOwner
from sim.runtime.task.subtask_state import SubtaskState


def test_each_phase_has_its_own_work():
    vertex = Vertex("sink", snapshot=Snapshot(pre_barrier_ns=1, sync_ns=20, async_ns=300))
    state = SubtaskState(StateOwner(vertex, 0, 1))

    assert [state.work_ns(phase, 7) for phase in ("pre_barrier", "sync", "async")] == [1, 20, 300]
