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


def test_input_that_arrives_during_a_write_is_written_next(desk):
    """The buffers of both stay pinned until both are written; nothing is written twice."""
    desk.holds(input_ms=2)
    desk.data.input_overtaken(1)
    desk.until(1)
    desk.holds(input_ms=6)
    desk.until(5)

    assert desk.releases == 0, "the 4 ms that arrived meanwhile are not written"
    desk.until(7)
    assert desk.releases > 0


def test_input_that_arrives_later_is_written_later(desk):
    """What lies there at the first barrier is written at once, the rest when the last barrier is here."""
    desk.holds(input_ms=2)
    desk.data.input_overtaken(1)
    desk.until(10)
    desk.holds(input_ms=6)
    desk.until(20)
    desk.data.barriers_complete(1)

    assert desk.finish() == (6 * PER_MS, 0)
    desk.until(50)
    assert (desk.closed_ms, desk.storage.files.written, desk.storage.bytes_written) == ([29], 1, 6 * PER_MS)


def test_buffers_do_not_wait_for_the_last_barrier(desk):
    """A writer that aligns has to get rid of its data before it can send its barrier: keeping them would be a deadlock."""
    desk.data.input_overtaken(1)

    assert desk.releases > 0, "there was nothing to write"


def test_output_is_stored_like_input(desk):
    """What barriers overtook in the sender queues goes to the same file and keeps its buffers as long."""
    desk.holds(input_ms=1)
    desk.data.input_overtaken(1)
    desk.data.overtaken(1, 3 * PER_MS)
    desk.data.barriers_complete(1)

    assert desk.finish() == (1 * PER_MS, 3 * PER_MS)
    desk.until(3)
    assert desk.releases == 0
    desk.until(5)
    assert desk.releases > 0
    desk.until(30)
    assert (desk.closed_ms, desk.storage.bytes_written) == ([9], 4 * PER_MS)


def test_without_data_nothing_waits(desk):
    """Empty queues: released as soon as the capture is over, no file."""
    desk.data.input_overtaken(1)
    desk.data.barriers_complete(1)

    assert desk.releases > 0
    assert desk.finish() == (0, 0)
    desk.until(1)
    assert (desk.closed_ms, desk.storage.files.written) == ([0], 0)


def test_a_cancelled_checkpoint_releases_at_once(desk):
    """Its write under way goes on in the writer's thread, for nobody: no buffer waits for it, no file is closed."""
    desk.holds(input_ms=8)
    desk.data.input_overtaken(1)
    desk.until(2)
    desk.data.aborted(1)

    assert desk.releases == 1
    desk.until(50)
    assert (desk.releases, desk.closed_ms, desk.storage.files.written) == (1, [], 0)


def test_what_is_queued_for_a_cancelled_checkpoint_is_not_written(desk):
    """The next checkpoint's data follows the write under way, not those behind it."""
    desk.holds(input_ms=8)
    desk.data.input_overtaken(1)
    desk.data.overtaken(1, 20 * PER_MS)
    desk.until(2)
    desk.data.aborted(1)
    desk.holds(input_ms=1)
    desk.data.input_overtaken(2)
    desk.data.barriers_complete(2)
    desk.finish(checkpoint=2)
    desk.until(50)

    assert desk.closed_ms == [8 + 1 + 5]


def test_cancelling_what_never_began_is_nothing(desk):
    """A cancellation may come before the first barrier: another checkpoint's buffers stay where they are."""
    desk.holds(input_ms=8)
    desk.data.input_overtaken(1)
    desk.data.aborted(2)

    assert desk.releases == 0


def test_output_of_a_checkpoint_without_channel_state_is_not_stored(desk):
    """Aligned barriers overtake nothing; a task that never began keeps nothing."""
    desk.data.overtaken(1, 0)
    desk.data.overtaken(2, 5 * PER_MS)
    desk.until(10)

    assert desk.plane.verbs == []
    assert desk.storage.bytes_written == 0


def test_beginning_twice_is_beginning_once(desk):
    """A converted checkpoint has begun its channel state before it captures."""
    desk.data.capture_begun(1)
    desk.data.overtaken(1, 2 * PER_MS)
    desk.holds(input_ms=1)
    desk.data.input_overtaken(1)
    desk.data.barriers_complete(1)

    assert desk.finish() == (1 * PER_MS, 2 * PER_MS)
