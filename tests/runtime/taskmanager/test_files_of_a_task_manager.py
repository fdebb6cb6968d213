"""Files of a task manager: in-flight data, changelogs on their way, and room for what is not uploaded yet."""

import pytest
import simpy

from sim.model.job import Distribution
from sim.model.state import Changelog
from sim.model.storage import ObjectStore, Retry, Storage
from sim.runtime.clock import TwoPlaneEnvironment
from sim.runtime.task_manager import ChannelStateWriter, LogPart, LogUploads, StagingSpace
from sim.storage.filesystem import CheckpointStorage
from sim.storage.ledger import DiskFull
from tests.runtime.fakes import FakePlane

# Writing in-flight data: first come, first served; one file per group, closed when all have completed; no data, no file.


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
    assert [stored.size_bytes for stored in office.storage.files if stored.complete] == [5 * PER_MS]


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
    assert [stored.size_bytes for stored in office.storage.files if stored.complete] == [7 * PER_MS]
    assert inlined == []


# The changelogs of one task manager on their way: how often an upload is attempted.


LOG_UPLOADS_MS, MB = 1_000_000, 1_000_000


@pytest.mark.parametrize(("attempts", "expected"), [(1, (5, None)), (2, (515, 1))])
def test_a_failed_attempt_is_followed_by_another_after_a_pause(attempts, expected):
    """An outage at 5 ms breaks the first one off; half a second later storage is back: 10 ms of latency."""
    store = ObjectStore(100 * MB, Distribution(10 * LOG_UPLOADS_MS), part_bytes=1000 * MB)
    env, durable = simpy.Environment(), []
    storage = CheckpointStorage(env, Storage(object_store=store, retry=Retry(1, LOG_UPLOADS_MS)), 1)
    part = LogPart(("changelog", "a"), 0, lambda file: durable.append((env.now / LOG_UPLOADS_MS, file)))
    LogUploads(env, storage, 0, 5).submit_upload(part, Changelog(batch_delay_ns=0, upload_attempts=attempts))
    env.timeout(5 * LOG_UPLOADS_MS).callbacks.append(lambda _: storage.fail_until(100 * LOG_UPLOADS_MS))
    env.run()

    assert durable == [expected]


# Room for files that are not uploaded yet: who finds none waits for it in turn, or gives up.


def reserve(space, size, log):
    yield from space.reserve(size)
    log.append((space.env.now, size))


@pytest.mark.parametrize(("waits", "first", "second"), [(False, 60, 50), (True, 0, 101)])
def test_no_room_at_all_is_an_error(waits, first, second):
    """When it must not wait, or would wait for ever."""
    space = StagingSpace(simpy.Environment(), 100, waits=waits)
    list(space.reserve(first))

    with pytest.raises(DiskFull):
        list(space.reserve(second))


@pytest.mark.parametrize("granted", [False, True])
def test_whoever_gives_up_waiting_leaves_the_line(granted):
    """The room goes to the next, also if it was granted in the instant the waiting one is stopped."""
    env, log = simpy.Environment(), []
    space = StagingSpace(env, 100)
    list(space.reserve(60))
    gone = env.process(reserve(space, 90, log))
    env.process(reserve(space, 40, log))
    env.run()
    gone.defused = True
    gone.interrupt()
    if granted:
        space.release(60)
    env.run()

    assert log == [(0, 40)]
    assert (40 if granted else 100) == space.used_bytes
