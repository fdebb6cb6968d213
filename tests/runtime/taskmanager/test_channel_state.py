"""Writing in-flight data: first come, first served; one file per group, closed when all have completed; no data, no file."""

import pytest

from sim.model.storage import Retry, Storage
from sim.runtime.clock import TwoPlaneEnvironment
from sim.runtime.task_manager import ChannelStateWriter
from sim.storage.filesystem import CheckpointStorage
from tests.runtime.fakes import FakePlane

MS = 1_000_000
PER_MS = 1_000  # bytes


class Office:
    """A writer of tasks 0 and 1 (1000 B in a ms, 5 ms to close), and what became of their requests: (what, ms)."""

    def __init__(self, **options):
        self.env = TwoPlaneEnvironment(FakePlane(), lambda _: None)
        options = {"bytes_per_second": PER_MS * 1000, "close_ns": 5 * MS, "inline_threshold_bytes": 0, **options}
        self.storage = CheckpointStorage(self.env, Storage(**options), seed=1)
        self.writer = ChannelStateWriter(self.env, self.storage, [0, 1])
        self.story = []

    def at(self, ms, action, *arguments):
        self.env.call_in(ms * MS, lambda: action(*arguments))

    def dispatch(self, what):
        return lambda: self.story.append((what, self.env.now / MS))

    def write(self, ms, checkpoint, size_bytes, what):
        self.at(ms, self.writer.write, checkpoint, size_bytes, self.dispatch(what))

    def complete(self, ms, checkpoint, task, what):
        self.at(ms, self.writer.when_closed, checkpoint, self.dispatch(what))
        self.at(ms, self.writer.complete, checkpoint, task)

    def run(self):
        self.env.run(until=1000 * MS)
        return self.story


@pytest.fixture
def office():
    return Office()


def test_the_file_closes_when_all_members_completed(office):
    """Who is ready early waits for the other, and both for the one latency."""
    office.writer.register(1)
    office.write(0, 1, 2 * PER_MS, "data of 0")
    office.complete(0, 1, 0, "closed for 0")
    office.write(20, 1, 3 * PER_MS, "data of 1")
    office.complete(20, 1, 1, "closed for 1")

    assert office.run() == [("data of 0", 2), ("data of 1", 23), ("closed for 0", 28), ("closed for 1", 28)]
    assert (office.storage.files.written, office.storage.files.bytes_written) == (1, 5 * PER_MS)


def down(office, at_ms):
    """Storage is down for good, and nobody insists."""
    office.at(at_ms, office.storage.fail_until, 10**18)


def test_a_file_that_storage_gives_up_fails_all_members():
    """Those who wait for it hear of it at once, those who come later when they come; nobody is told that it is closed."""
    office = Office(retry=Retry(attempts=1))
    office.writer.register(1)
    office.write(0, 1, 10 * PER_MS, "data of 0")
    for task, ms in ((0, 0), (1, 9)):
        office.at(ms, office.writer.when_closed, 1, office.dispatch("never"), office.dispatch(f"failed for {task}"))
        office.at(ms, office.writer.complete, 1, task)
    down(office, 4)

    assert office.run() == [("failed for 0", 4), ("data of 0", 4), ("failed for 1", 9)]
    assert [file.complete for file in office.storage.files] == [False]


def test_nobody_waits_for_a_member_that_has_finished(office):
    """Neither in the file that is open when it leaves, nor in later ones; when it is back, it is waited for again."""
    office.writer.register(1)
    office.complete(1, 1, 0, "first")
    office.at(2, office.writer.leave, 1)
    office.at(3, office.writer.register, 2)
    office.complete(4, 2, 0, "second")
    office.at(5, office.writer.join, 1)
    office.at(6, office.writer.register, 3)
    office.complete(7, 3, 0, "third")

    assert office.run() == [("first", 2.0), ("second", 4.0)]


def test_what_the_buffer_does_not_hold_goes_to_a_file():
    """The write that is too much takes the buffered bytes along; later ones go straight to the file, whatever their size."""
    office, inlined = Office(inline_threshold_bytes=4 * PER_MS), []
    office.writer.on_inlined = lambda *inlined_parts: inlined.append(inlined_parts)
    office.writer.register(1)
    office.write(0, 1, 4 * PER_MS, "in the buffer")
    office.write(1, 1, 2 * PER_MS, "too much")
    office.write(20, 1, 1 * PER_MS, "little")
    office.complete(20, 1, 0, "closed for 0")
    office.complete(20, 1, 1, "closed for 1")

    assert office.run() == [
        ("in the buffer", 0),
        ("too much", 7),
        ("little", 21),
        ("closed for 0", 26),
        ("closed for 1", 26),
    ]
    assert (office.storage.files.written, office.storage.files.bytes_written, inlined) == (1, 7 * PER_MS, [])
