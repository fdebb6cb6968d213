"""The watermarks of a source, look by look: when it looks, what it sends, when it is idle, when it waits for other sources."""

from types import SimpleNamespace

import pytest

from sim.model.job import Source, Watermark, Window
from sim.runtime.context import ACTIVE, IDLE
from sim.runtime.task.watermarks import WatermarkGenerator
from tests.runtime.task.fake_slots import FakeSlot

MS, SECOND = 10**6, 10**9
FIVE_SECONDS = Window(5 * SECOND, "event")
RECORD_NS = 10 * MS
LOG = SimpleNamespace(segments=(1,), due=lambda ordinal: ordinal * RECORD_NS)
WITHOUT_RATE = SimpleNamespace(segments=(), due=None)


class Reading:
    """A source task with 100 records per second, as far as it reads them."""

    def __init__(self, log=LOG, chained=None, **watermark):
        source = Source((), watermark=Watermark(**{"interval_ns": 200 * MS} | watermark))
        self.slot = FakeSlot(windows=(FIVE_SECONDS,), log=log, channels=(), source=source)
        self.generator = WatermarkGenerator(self.slot, source, chained)
        self.looks = []
        self.until_ns = 1 << 60

    def run(self, until_ns, reads_until_ns=1 << 60):
        """Records are read when they are due, up to a time.  What leaves at each look, by its time."""
        found = {}

        def before(now):
            self.looks.append(now)
            self.slot.served = min(now, reads_until_ns) // RECORD_NS + 1

        sent = len(self.slot.sent())
        while (now := self.slot.env.next_ns) is not None and now <= until_ns:
            self.slot.env.run(now, before)
            numbers = self.slot.sent()
            if len(numbers) > sent:
                found[now], sent = numbers[sent:], len(numbers)
        self.slot.env.run(until_ns)
        return found


def test_a_look_that_is_due_now_comes_a_nanosecond_later():
    reading = Reading(idle_timeout_ns=SECOND)
    phase_ns = reading.generator._phase_ns
    reading.slot.env.run(phase_ns)
    reading.generator.begin()

    assert phase_ns + 1 == reading.slot.env.next_ns


def test_before_the_first_record_there_is_no_event_time():
    reading = Reading()
    assert reading.generator._event_time() == 0
    reading.slot.served = 1
    assert reading.generator._event_time() == 0
    reading.slot.served = 3
    assert reading.generator._event_time() == 2 * RECORD_NS
    assert Reading(log=None).generator._event_time() == 0


def test_without_a_rate_records_come_as_far_as_the_look_that_finds_them():
    reading = Reading(log=WITHOUT_RATE)
    reading.slot.env.run(SECOND)
    reading.slot.served = 4
    reading.generator.begin()
    assert reading.generator._event_time() == 0, "they were there before"
    reading.slot.served = 5
    assert reading.generator._event_time() == SECOND
    reading.slot.env.now = 2 * SECOND
    assert reading.generator._event_time() == SECOND
    reading.slot.served = 6
    assert reading.generator._event_time() == 2 * SECOND


@pytest.mark.parametrize("end", ["end_input", "mails_only"])
def test_behind_the_end_no_watermark_follows(end):
    reading = Reading(idle_timeout_ns=9 * SECOND)
    reading.generator.begin()
    reading.run(4 * SECOND)
    if end == "end_input":
        reading.generator.end_input()
    else:
        reading.slot.thread.mails_only = True

    assert reading.run(7 * SECOND) == {}
    assert reading.slot.env.next_ns is None


class TestIdleness:
    """No record for more than 2 s."""

    def test_a_source_is_idle_and_active_again_with_its_next_watermark(self):
        """Records up to 3 s, then none; the first look without a new one starts the clock."""
        reading = Reading(idle_timeout_ns=2 * SECOND)
        reading.generator.begin()
        ((at_ns, numbers),) = reading.run(9 * SECOND, reads_until_ns=3 * SECOND).items()
        assert numbers == [IDLE]
        assert 5 * SECOND + 200 * MS < at_ns <= 5 * SECOND + 600 * MS
        assert reading.generator.idle
        ((_, numbers),) = reading.run(9200 * MS).items()
        assert numbers == [ACTIVE, 5 * SECOND]
        assert not reading.generator.idle

    @pytest.mark.parametrize("wait", ["soft_ns", "hard_ns"])
    def test_its_clock_stands_still_while_it_cannot_read(self, wait):
        reading = Reading(idle_timeout_ns=2 * SECOND)
        reading.generator.begin()
        reading.run(4 * SECOND, reads_until_ns=3 * SECOND)
        reading.slot.waited_ns[wait] = SECOND
        ((at_ns, _),) = reading.run(9 * SECOND, reads_until_ns=3 * SECOND).items()
        assert 6 * SECOND + 200 * MS < at_ns <= 6 * SECOND + 600 * MS


class TestWindowsOfItsOwn:
    """A window operator in the chain of the source."""

    class Windows:
        clock = None
        fires = True
        fired = ()

        def fire(self, end_ns):
            self.fired += (end_ns,)
            return self.fires

    def test_the_watermark_leaves_behind_what_it_ends(self):
        windows = self.Windows()
        reading = Reading(chained=windows, idle_timeout_ns=9 * SECOND)
        reading.generator.begin()
        assert reading.run(6 * SECOND) == {}
        assert windows.watermark_status is reading.generator
        assert windows.fired == (5 * SECOND,)
        reading.generator.outputs_written(at_end=False)
        assert reading.slot.sent() == [5 * SECOND]
