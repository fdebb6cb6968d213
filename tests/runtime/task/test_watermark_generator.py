"""The watermarks of a source, look by look: when it looks, what it sends, when it is idle."""

from types import SimpleNamespace

import pytest

from sim.model.job import Source, Watermark, Window
from sim.runtime.context import ACTIVE, IDLE, WATERMARKS
from sim.runtime.task.watermarks import WatermarkGenerator
from tests.runtime.task.fake_slots import FakeSlot

MS, SECOND = 10**6, 10**9
FIVE_SECONDS = Window(5 * SECOND, "event")
RECORD_NS = 10 * MS
LOG = SimpleNamespace(segments=(1,), due=lambda ordinal: ordinal * RECORD_NS)
WITHOUT_RATE = SimpleNamespace(segments=(), due=None)


class Reading:
    """A source task with 100 records per second, as far as it reads them."""

    def __init__(self, log=LOG, windows=(FIVE_SECONDS,), chained=None, **watermark):
        source = Source((), watermark=Watermark(**{"interval_ns": 200 * MS} | watermark))
        self.slot = FakeSlot(windows=windows, log=log, channels=(), source=source)
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


def test_a_source_looks_once_per_interval_at_a_phase_of_its_own():
    reading = Reading(idle_timeout_ns=SECOND)
    reading.generator.begin()
    reading.run(2 * SECOND)
    first, *others = reading.looks

    assert 0 < first <= 200 * MS
    assert [first + 200 * MS * number for number in range(1, 10)] == others
    assert first == reading.generator._phase_ns


def test_a_task_that_begins_later_looks_at_the_same_phase():
    early, late = Reading(idle_timeout_ns=SECOND), Reading(idle_timeout_ns=SECOND)
    early.generator.begin()
    early.run(SECOND)
    late.slot.env.run(450 * MS)
    late.generator.begin()
    late.run(SECOND)

    assert [look for look in early.looks if look >= 450 * MS] == late.looks


def test_a_look_that_is_due_now_comes_a_nanosecond_later():
    reading = Reading(idle_timeout_ns=SECOND)
    phase_ns = reading.generator._phase_ns
    reading.slot.env.run(phase_ns)
    reading.generator.begin()

    assert phase_ns + 1 == reading.slot.env.next_ns


def test_looks_that_can_find_nothing_are_left_out():
    """A look for the end at 5 s and one for that at 10 s, each as soon as the watermark can have passed it."""
    reading = Reading(lateness_ns=100 * MS)
    reading.generator.begin()
    left = reading.run(11 * SECOND)

    assert [number for numbers in left.values() for number in numbers] == [5 * SECOND, 10 * SECOND]
    for end_ns, at_ns in zip((5 * SECOND, 10 * SECOND), left, strict=True):
        assert end_ns + 100 * MS <= at_ns < end_ns + 310 * MS
    assert len(reading.looks) <= 5
    assert all((look - reading.generator._phase_ns) % (200 * MS) == 0 for look in reading.looks)


def test_a_watermark_leaves_as_a_marker_of_its_series_and_once():
    reading = Reading(idle_timeout_ns=9 * SECOND)
    reading.generator.begin()
    reading.run(7 * SECOND)
    ((_, task, marker),) = reading.slot.calls("forward")

    assert (task, marker.number, marker.series) == (0, 5 * SECOND, WATERMARKS)


def test_a_watermark_stays_behind_the_records_by_its_lateness():
    """At 5.2 s the records have come to 5.1 s or more, with a lateness of 500 ms not to the end of the window."""
    reading = Reading(idle_timeout_ns=9 * SECOND, lateness_ns=500 * MS)
    reading.generator.begin()

    assert reading.run(5490 * MS) == {}
    assert list(reading.run(5720 * MS).values()) == [[5 * SECOND]]


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

    def test_a_record_alone_does_not_wake_it(self):
        """Its watermark stays behind."""
        reading = Reading(idle_timeout_ns=2 * SECOND, lateness_ns=SECOND)
        reading.generator.begin()
        reading.run(9 * SECOND, reads_until_ns=3 * SECOND)
        reading.generator._watermark_ns = 4 * SECOND
        assert reading.run(9200 * MS, reads_until_ns=5 * SECOND) == {}
        assert reading.generator.idle
        assert reading.run(9600 * MS, reads_until_ns=5 * SECOND + RECORD_NS) != {}

    @pytest.mark.parametrize("wait", ["soft_ns", "hard_ns"])
    def test_its_clock_stands_still_while_it_cannot_read(self, wait):
        reading = Reading(idle_timeout_ns=2 * SECOND)
        reading.generator.begin()
        reading.run(4 * SECOND, reads_until_ns=3 * SECOND)
        reading.slot.waited_ns[wait] = SECOND
        ((at_ns, _),) = reading.run(9 * SECOND, reads_until_ns=3 * SECOND).items()
        assert 6 * SECOND + 200 * MS < at_ns <= 6 * SECOND + 600 * MS

    def test_without_a_timeout_it_is_never_idle(self):
        reading = Reading()
        reading.generator.begin()
        assert reading.run(60 * SECOND, reads_until_ns=3 * SECOND) == {}


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
        assert windows.clock is reading.generator
        assert windows.fired == (5 * SECOND,)
        reading.generator.outputs_written(at_end=False)
        assert reading.slot.sent() == [5 * SECOND]

    def test_where_it_ends_nothing_it_leaves_at_once(self):
        windows = self.Windows()
        windows.fires = False
        reading = Reading(chained=windows, idle_timeout_ns=9 * SECOND)
        reading.generator.begin()
        assert list(reading.run(6 * SECOND).values()) == [[5 * SECOND]]

    def test_behind_the_last_outputs_none_leaves(self):
        reading = Reading(chained=self.Windows())
        reading.generator.outputs_written(at_end=True)
        assert reading.slot.sent() == []
