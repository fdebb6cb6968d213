"""Channel state of a task: captured buffers go back to their pools when they are written, not before."""

from types import SimpleNamespace

from sim.model.storage import Storage
from sim.results.tables import CheckpointStats
from sim.runtime.clock import TwoPlaneEnvironment
from sim.runtime.task.channel_state import ChannelState
from sim.runtime.task_manager import ChannelStateWriter
from sim.storage.filesystem import CheckpointStorage
from tests.runtime.fakes import FakePlane

MS = 1_000_000
PER_MS = 1_000  # bytes
TASK = 3


def test_buffers_are_released_after_the_write():
    """8 ms of data: pinned at 7, back in their pools at 9; the file is closed 5 ms later."""
    plane = FakePlane()
    plane.input_bytes = 8 * PER_MS
    env = TwoPlaneEnvironment(plane, lambda _: None)
    options = Storage(bytes_per_second=PER_MS * 1000, close_ns=5 * MS, inline_threshold_bytes=0)
    writer = ChannelStateWriter(env, CheckpointStorage(env, options, seed=1), [TASK])
    slot = SimpleNamespace(
        context=SimpleNamespace(plane=plane, stats={1: CheckpointStats(1, 0, 1)}),
        task=TASK,
        manager=SimpleNamespace(channel_state={TASK: writer}),
        contents=SimpleNamespace(in_flight_final=lambda *_, **__: None),
        note=lambda *_: None,
    )
    data, closed_ms = ChannelState(slot), []
    data.input_overtaken(1)
    data.barriers_complete(1)
    data.capture_ended(1, lambda: closed_ms.append(env.now / MS), lambda: None)
    env.run(until=7 * MS)

    assert plane.verbs == [("capture", TASK, 1)]
    assert data.storing
    env.run(until=9 * MS)
    assert not data.storing
    assert ("release_capture", TASK) in plane.verbs
    assert closed_ms == []
    env.run(until=20 * MS)
    assert closed_ms == [13]
