"""Channel state of a task: captured buffers go back to their pools when they are written, not before."""

from types import SimpleNamespace

import pytest

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


class Desk:
    """Task 3's in-flight data over a plane that says what is captured; 1000 B in a ms, 5 ms to close."""

    def __init__(self):
        self.plane = FakePlane()
        self.env = TwoPlaneEnvironment(self.plane, lambda _: None)
        options = Storage(bytes_per_second=PER_MS * 1000, close_ns=5 * MS, inline_threshold_bytes=0)
        self.storage = CheckpointStorage(self.env, options, seed=1)
        self.stats = {checkpoint: CheckpointStats(checkpoint, 0, 1) for checkpoint in (1, 2)}
        context = SimpleNamespace(plane=self.plane, stats=self.stats)
        manager = SimpleNamespace(channel_state={TASK: ChannelStateWriter(self.env, self.storage, [TASK])})
        contents = SimpleNamespace(in_flight_final=lambda *_, **__: None)
        self.data = ChannelState(
            SimpleNamespace(context=context, task=TASK, manager=manager, contents=contents, note=lambda *_: None)
        )
        self.closed_ms = []

    def holds(self, input_ms):
        """So much input is captured by now, given in the time it takes to write."""
        self.plane.input_bytes = input_ms * PER_MS

    def finish(self, checkpoint=1):
        """Returns the bytes captured in the input and in the output."""
        self.data.capture_ended(checkpoint, lambda: self.closed_ms.append(self.env.now / MS), lambda: None)
        stats = self.stats[checkpoint].of(TASK)
        return stats.captured_input_bytes, stats.captured_output_bytes

    def until(self, ms):
        if ms * MS > self.env.now:
            self.env.run(until=ms * MS)

    @property
    def releases(self):
        return self.plane.verbs.count(("release_capture", TASK))


@pytest.fixture
def desk():
    return Desk()


def test_buffers_are_released_after_the_write(desk):
    """8 ms of data: pinned at 7, back in their pools at 9; the file is closed 5 ms later."""
    desk.holds(input_ms=8)
    desk.data.input_overtaken(1)
    desk.data.barriers_complete(1)
    desk.finish()
    desk.until(7)

    assert desk.plane.verbs == [("capture", TASK, 1)]
    assert desk.data.storing
    desk.until(9)
    assert not desk.data.storing
    assert desk.releases > 0
    assert desk.closed_ms == []
    desk.until(20)
    assert desk.closed_ms == [13]
