"""The windows of one task, moment by moment: which records leave, which timers are kept, which watermark goes on."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from sim.model.job import Window
from sim.runtime.context import TaskSnapshot
from sim.runtime.task.windows import EventTimeWindows, ProcessingTimeWindows, _WindowSnapshot
from tests.runtime.task.fake_slots import FakeSlot

SECOND = 10**9
TUMBLING = Window(5 * SECOND, "event")


def snapshot(finished=False, **kept):
    return TaskSnapshot(
        3,
        SimpleNamespace(served=0, late=0),
        finished=finished,
        kept={"windows": _WindowSnapshot(**kept)} if kept else {},
    )


class TestWindowsOfEventTime:
    """Two channels; 60 and 40 records were read."""

    @pytest.fixture
    def slot(self):
        slot = FakeSlot(channels=(4, 7), window=TUMBLING)
        slot.served, slot.late, slot.read = 100, 30, [60, 40]
        return slot

    @pytest.fixture
    def windows(self, slot):
        return EventTimeWindows(slot, replace(TUMBLING, flush_ns=10))

    def test_records_of_an_idle_channel_wait_for_no_watermark_of_it(self, slot, windows):
        windows.on_watermark(4, 5 * SECOND)
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
