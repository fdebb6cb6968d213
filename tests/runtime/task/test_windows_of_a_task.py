"""The windows of one task, moment by moment: which records leave, which timers are kept, which watermark goes on."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from sim.model.job import Window
from sim.runtime.context import ACTIVE, IDLE, TaskSnapshot
from sim.runtime.task.windows import EventTime, EventTimeWindows, ProcessingTimeWindows, Timer, _Kept
from tests.runtime.task.fake_slots import FakeSlot

MS, SECOND = 10**6, 10**9
TUMBLING = Window(5 * SECOND, "event")


def snapshot(finished=False, **kept):
    return TaskSnapshot(
        3, SimpleNamespace(served=0, late=0), finished=finished, kept={"windows": _Kept(**kept)} if kept else {}
    )


class TestWindowsOfEventTime:
    """Two channels; 60 and 40 records were read."""

    @pytest.fixture
    def slot(self):
        slot = FakeSlot(channels=(4, 7))
        slot.served, slot.late, slot.read = 100, 30, [60, 40]
        return slot

    @pytest.fixture
    def windows(self, slot):
        return EventTimeWindows(slot, replace(TUMBLING, flush_ns=10))

    @pytest.mark.parametrize(("late", "leaves"), [(9, False), (10, False), (11, True)])
    def test_if_only_later_records_are_left_nothing_leaves(self, slot, windows, late, leaves):
        for channel in (4, 7):
            windows.note(channel, 5 * SECOND)
        slot.read, slot.served, slot.late = [70, 40], 110, late
        assert leaves == windows.fire(5 * SECOND)

    def test_records_of_an_idle_channel_wait_for_no_watermark_of_it(self, slot, windows):
        windows.note(4, 5 * SECOND)
        windows.fall_idle(7, 0)
        slot.read, slot.served = [60, 45], 105
        assert windows.fire(5 * SECOND)
        slot.env.run(SECOND)
        assert ("release_late_outputs", 100) in slot.calls()


class TestTimersOfProcessingTime:
    """Windows of 5 s; 100 records are served at the beginning."""

    def windows(self, **options):
        slot = FakeSlot()
        slot.served, slot.late = 100, 30
        return slot, ProcessingTimeWindows(slot, replace(TUMBLING, time="processing", **options))

    @pytest.mark.parametrize("how", ["quiesce", "end_input", "finished", "stopped"])
    def test_behind_the_end_no_timer_fires(self, how):
        slot, windows = self.windows()
        if how == "finished":
            windows.restored(snapshot(finished=True))
        windows.begin()
        if how == "stopped":
            slot.thread.stopped = True
        elif how != "finished":
            getattr(windows, how)()
        slot.env.run(20 * SECOND)
        assert slot.calls("release_late_outputs") == []
        assert slot.env.next_ns is None

    def test_a_timer_whose_mail_comes_behind_the_end(self):
        slot, windows = self.windows(hold_ns=3 * SECOND)
        windows.begin()
        slot.env.run(6 * SECOND)
        windows.quiesce()
        slot.env.run(9 * SECOND)
        assert slot.calls() == []


class TestRescaledWindows:
    def parts(self, *slices):
        """Subtasks that had let 5 and 8 records leave."""
        return [
            TaskSnapshot(3, SimpleNamespace(served=served, late=2), kept={"windows": _Kept((Timer(1, 1),), ends)})
            for served, ends in zip((7, 10), slices, strict=True)
        ]

    def dealt(self, *slices, tasks=2):
        parts = self.parts(*slices)
        return [parts[0].kept["windows"].dealt(parts, own, tasks) for own in range(tasks)]

    def test_timers_are_not_dealt_out(self):
        assert [kept.timers for kept in self.dealt((), ())] == [(), ()]


class TestEventTimeOfAReader:
    """Two channels, and no windows of its own."""

    class Windows:
        """Windows that write when they end; a log of what they hear."""

        def __init__(self, fires=True):
            self.fires, self.heard, self.clock = fires, [], None
            self.contents = SimpleNamespace(wake=lambda channel: self.heard.append(("wake", channel)))

        def fire(self, time_ns):
            self.heard.append(("fire", time_ns))
            return self.fires

        def note(self, channel, time_ns):
            self.heard.append(("note", channel, time_ns))

        def fall_idle(self, channel, time_ns):
            self.heard.append(("fall_idle", channel, time_ns))

    @pytest.fixture
    def slot(self):
        return FakeSlot(channels=(4, 7))

    @pytest.fixture
    def event_time(self, slot):
        return EventTime(slot, None)

    def hear(self, event_time, *rows):
        """The markers that each of these sends."""
        sent = []
        for channel, number in rows:
            event_time.watermark_arrived(channel, number)
            sent.append([row[2].number for row in event_time.slot.calls("forward")])
        return sent

    def test_all_idle_is_passed_on_once_and_active_before_the_next(self, event_time):
        assert self.hear(event_time, (4, IDLE), (7, IDLE), (7, IDLE)) == [[], [IDLE], []]
        assert event_time.idle
        assert self.hear(event_time, (7, ACTIVE), (7, 8)) == [[ACTIVE], [8]]
        assert not event_time.idle

    def test_windows_hear_of_idle_channels(self, slot):
        windows = self.Windows()
        event_time = EventTime(slot, windows)
        self.hear(event_time, (4, 5), (7, IDLE), (7, ACTIVE))
        assert windows.heard == [("note", 4, 5), ("fall_idle", 7, 0), ("fire", 5), ("wake", 7)]
