"""The windows of one task, moment by moment: which records leave, which timers are kept, which watermark goes on."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from sim.model.job import Window
from sim.runtime.context import ACTIVE, IDLE, LAST_WATERMARK, TaskSnapshot
from sim.runtime.task.windows import EventTime, EventTimeWindows, HeldRecords, ProcessingTimeWindows, Timer, _Kept
from tests.runtime.task.fake_slots import FakeSlot

MS, SECOND = 10**6, 10**9
TUMBLING = Window(5 * SECOND, "event")
SLIDING = replace(TUMBLING, size_ns=10 * SECOND, every_ns=5 * SECOND)


def snapshot(finished=False, **kept):
    return TaskSnapshot(
        3, SimpleNamespace(served=0, late=0), finished=finished, kept={"windows": _Kept(**kept)} if kept else {}
    )


class TestRecordsThatWindowsHold:
    @pytest.fixture
    def slot(self):
        slot = FakeSlot()
        slot.served, slot.late = 100, 30
        return slot

    def test_held_records_are_the_late_ones(self, slot):
        assert HeldRecords(slot, TUMBLING).records() == 30

    @pytest.mark.parametrize(("api", "records"), [("sql", 50), ("datastream", 80)])
    def test_a_sliding_window_keeps_what_has_left_once(self, slot, api, records):
        """At the last two ends 50 and 70 records had left.  SQL keeps a record once, the other operator once for each window."""
        content = HeldRecords(slot, replace(SLIDING, api=api))
        content.end(50)
        content.end(70)
        assert records == content.records()
        content.restored((50, 70))
        assert records == content.records()

    def test_tumbling_windows_have_no_slices(self, slot):
        content = HeldRecords(slot, TUMBLING)
        content.end(50)
        assert list(content.slices.ends) == []

    def test_rows_are_flushed_once(self, slot):
        content = HeldRecords(slot, replace(TUMBLING, flush_ns=7))
        assert content.flush_ns() == 0, "what was served before is in state"
        slot.served = 110
        assert content.flush_ns() == 70
        assert content.flush_ns() == 0
        slot.served = 120
        content.restored(())
        assert content.flush_ns() == 0

    def test_all_of_a_bundle_leaves(self, slot):
        content = HeldRecords(slot, TUMBLING)
        assert content.leave()
        assert slot.calls() == [("release_late_outputs", 100), ("report_written", 0)]
        slot.late = 0
        assert not content.leave()
        assert slot.calls() == []

    def test_work_keeps_the_thread(self, slot):
        done = []
        HeldRecords(slot, TUMBLING).work(5, lambda: done.append(slot.now))
        assert slot.calls() == [("occupy",)]
        slot.env.run(5)
        assert (done, slot.calls()) == ([5], [("vacate",)])

    def test_no_work_is_done_at_once(self, slot):
        done = []
        HeldRecords(slot, TUMBLING).work(0, lambda: done.append(slot.now))
        assert (done, slot.calls()) == ([0], [])

    def test_a_thread_that_stopped_meanwhile_goes_no_further(self, slot):
        done = []
        HeldRecords(slot, TUMBLING).work(5, lambda: done.append(slot.now))
        slot.thread.stopped = True
        slot.env.run(5)
        assert (done, slot.calls()) == ([], [("occupy",), ("vacate",)])


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

    def test_records_in_front_of_the_watermark_leave(self, slot, windows):
        """Ten came on the first channel behind it, none on the other."""
        windows.note(4, 5 * SECOND)
        windows.note(7, 5 * SECOND)
        slot.read, slot.served = [70, 40], 110
        assert windows.fire(5 * SECOND)
        assert slot.calls() == [("occupy",)]
        slot.env.run(100)
        assert slot.calls() == [("release_late_outputs", 100), ("report_written", 0), ("vacate",)]

    def test_a_window_ends_once(self, slot, windows):
        for channel in (4, 7):
            windows.note(channel, 5 * SECOND)
        assert windows.fire(5 * SECOND)
        assert not windows.fire(9 * SECOND)

    def test_before_the_end_nothing_leaves(self, slot, windows):
        assert not windows.fire(5 * SECOND - 1)
        assert slot.calls() == []

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

    def test_sliding_windows_note_what_has_left(self, slot):
        windows = EventTimeWindows(slot, SLIDING)
        windows.note(4, 5 * SECOND)
        windows.note(7, 5 * SECOND)
        windows.fire(5 * SECOND)
        assert list(windows.content.slices.ends) == [100]

    @pytest.mark.parametrize("idle", [False, True])
    def test_the_end_of_the_input_ends_all_unless_it_is_idle(self, slot, windows, idle):
        windows.clock = SimpleNamespace(idle=idle)
        assert (idle, not idle) == (windows.drops, windows.has_pending_outputs)
        windows.end_input()
        assert ([] if idle else [("release_late_outputs", 100)]) == slot.calls()

    def test_without_a_clock_it_is_not_idle(self, windows):
        assert not windows.drops

    def test_watermarks_are_no_state(self, windows):
        part = snapshot()
        windows.cut(3, part)
        assert (part.kept["windows"].timers, part.kept["windows"].slices) == ((), ())

    def test_records_are_state(self, slot):
        assert EventTimeWindows(slot, replace(TUMBLING, record_bytes=10)).waiting().windows == 300

    def test_a_first_stage_holds_nothing_behind_a_barrier(self, slot, windows):
        assert not windows.leaves()
        assert EventTimeWindows(slot, replace(TUMBLING, early=True)).leaves()
        assert windows.before_barrier(3) == 0


class TestTimersOfProcessingTime:
    """Windows of 5 s; 100 records are served at the beginning."""

    def windows(self, **options):
        slot = FakeSlot()
        slot.served, slot.late = 100, 30
        return slot, ProcessingTimeWindows(slot, replace(TUMBLING, time="processing", **options))

    def test_each_end_lets_go_what_was_served_then(self):
        slot, windows = self.windows()
        windows.begin()
        slot.env.run(5 * SECOND - 1)
        assert slot.calls() == []
        slot.env.run(5 * SECOND)
        assert slot.calls() == [("release_late_outputs", 100)]
        slot.served = 150
        slot.env.run(14 * SECOND)
        assert slot.calls() == [("release_late_outputs", 150)]

    def test_ends_are_those_of_the_phase(self):
        slot, windows = self.windows(phase_ns=2 * SECOND)
        windows.begin()
        assert slot.env.next_ns == 2 * SECOND

    def test_a_session_waits_for_its_gap(self):
        """Records that came within one step leave when all of them have waited; without a new record there is no new timer."""
        slot, windows = self.windows(hold_ns=3 * SECOND)
        windows.begin()
        slot.env.run(8 * SECOND - 1)
        assert slot.calls() == []
        assert (Timer(100, 8 * SECOND), Timer(100, 13 * SECOND)) == windows.timers()
        slot.env.run(8 * SECOND)
        assert slot.calls() == [("release_late_outputs", 100)]

    def test_a_session_without_a_new_record_has_one_timer(self):
        slot, windows = self.windows(hold_ns=7 * SECOND)
        windows.begin()
        slot.env.run(11 * SECOND)
        assert [Timer(100, 12 * SECOND)] == windows._due
        slot.served = 101
        slot.env.run(15 * SECOND)
        assert [Timer(101, 22 * SECOND)] == windows._due

    def test_a_snapshot_keeps_the_timer_of_the_open_window(self):
        slot, windows = self.windows()
        slot.env.run(6 * SECOND)
        part = snapshot()
        windows.cut(3, part)
        assert (Timer(100, 10 * SECOND),) == part.kept["windows"].timers
        finished = snapshot(finished=True)
        windows.cut(3, finished)
        assert finished.kept["windows"].timers == ()

    def test_what_was_due_fires_when_the_task_begins(self):
        """Timers of the future are set anew with their windows; those of sessions are not, and wait."""
        timers = (Timer(40, 5 * SECOND), Timer(50, 6 * SECOND), Timer(60, 6 * SECOND + 1))
        for hold_ns, fires_later in ((0, []), (1, [("release_late_outputs", 60)])):
            slot, windows = self.windows(hold_ns=hold_ns)
            slot.env.run(6 * SECOND)
            windows.restored(snapshot(timers=timers))
            mails = []
            slot.thread.post = mails.append  # the thread gets to them later
            windows.begin()
            for mail in tuple(mails):
                mail()
            assert slot.calls() == [("release_late_outputs", 40), ("release_late_outputs", 50)]
            slot.env.run(6 * SECOND + 1)
            for mail in mails[2:]:
                mail()
            assert fires_later == slot.calls()

    def test_a_task_that_begins_with_nothing_has_no_timer(self):
        slot, windows = self.windows()
        windows.restored(snapshot())
        windows.begin()
        assert slot.calls() == []

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

    @pytest.mark.parametrize("early", [False, True])
    def test_bundles_are_finished_at_the_end(self, early):
        slot, windows = self.windows(early=early)
        assert early == windows.has_pending_outputs
        windows.end_input()
        assert ([("release_late_outputs", 100)] if early else []) == slot.calls()

    def test_buffered_rows_are_flushed_first(self):
        slot, windows = self.windows(flush_ns=2)
        windows.begin()
        slot.served = 110
        slot.env.run(5 * SECOND + 19)
        assert slot.calls() == [("occupy",)]
        slot.env.run(5 * SECOND + 20)
        assert slot.calls() == [("release_late_outputs", 110), ("vacate",)]


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

    def test_ends_of_slices_are_dealt_out_in_equal_parts(self):
        assert [kept.slices for kept in self.dealt((5, 12), (10, 16))] == [(8, 14), (7, 14)]
        assert [kept.slices for kept in self.dealt((5, 12), (10, 16), tasks=1)] == [(15, 28)]

    def test_who_has_heard_of_fewer_ends_had_let_as_many_leave(self):
        assert [kept.slices for kept in self.dealt((12,), (8, 16), tasks=1)] == [(20, 28)]
        assert [kept.slices for kept in self.dealt((), (8, 16), tasks=1)] == [(13, 21)], "it had let 5 leave at no end"

    def test_a_task_that_had_finished_stands_for_what_it_had_let_leave(self):
        """It keeps nothing: the eight records that left it count at each end."""
        parts = self.parts((5, 12), ())
        parts[1].kept.clear()

        assert parts[0].kept["windows"].dealt(parts, 0, 1).slices == (13, 20)

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

    def test_the_least_watermark_goes_on(self, event_time):
        assert self.hear(event_time, (4, 5), (7, 3), (7, 9), (7, 10)) == [[], [3], [5], []]

    def test_an_idle_channel_is_not_waited_for(self, event_time):
        assert self.hear(event_time, (4, 5), (7, IDLE), (4, 6)) == [[], [5], [6]]

    def test_all_idle_is_passed_on_once_and_active_before_the_next(self, event_time):
        assert self.hear(event_time, (4, IDLE), (7, IDLE), (7, IDLE)) == [[], [IDLE], []]
        assert event_time.idle
        assert self.hear(event_time, (7, ACTIVE), (7, 8)) == [[ACTIVE], [8]]
        assert not event_time.idle

    def test_the_end_of_a_channel_holds_nothing_back(self, event_time):
        self.hear(event_time, (4, 5))
        event_time.channel_ended(7)
        assert event_time.slot.sent() == [5]

    def test_behind_the_end_of_all_channels_no_watermark_follows(self, event_time):
        event_time.channel_ended(4)
        event_time.channel_ended(7)
        assert event_time.slot.sent() == []

    def test_a_channel_that_ends_while_it_is_idle_says_nothing(self, event_time):
        self.hear(event_time, (7, IDLE))
        event_time.channel_ended(7)
        assert self.hear(event_time, (4, 5))[0] == [5]

    def test_windows_end_before_the_watermark_leaves(self, slot):
        windows = self.Windows()
        event_time = EventTime(slot, windows)
        assert windows.clock is event_time
        assert self.hear(event_time, (4, 5), (7, 3)) == [[], []]
        assert windows.heard == [("note", 4, 5), ("note", 7, 3), ("fire", 3)]
        event_time.outputs_written(at_end=False)
        assert slot.sent() == [3]

    def test_where_no_window_ends_it_leaves_at_once(self, slot):
        assert self.hear(EventTime(slot, self.Windows(fires=False)), (4, 5), (7, 3)) == [[], [3]]

    def test_windows_hear_of_idle_channels(self, slot):
        windows = self.Windows()
        event_time = EventTime(slot, windows)
        self.hear(event_time, (4, 5), (7, IDLE), (7, ACTIVE))
        assert windows.heard == [("note", 4, 5), ("fall_idle", 7, 0), ("fire", 5), ("wake", 7)]

    def test_the_end_of_the_last_channel_fires_nothing(self, slot):
        windows = self.Windows()
        event_time = EventTime(slot, windows)
        event_time.channel_ended(4)
        event_time.channel_ended(7)
        assert windows.heard == [("note", 4, LAST_WATERMARK), ("note", 7, LAST_WATERMARK)]
