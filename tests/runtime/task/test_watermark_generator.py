"""The watermarks of a source, look by look: when it looks, what it sends, when it is idle, when it waits for other sources."""

from types import SimpleNamespace

import pytest

from sim.model.job import Source, Watermark, Window
from sim.runtime.task.watermarks import WatermarkGenerator
from tests.runtime.task.fake_slots import FakeSlot

MS, SECOND = 10**6, 10**9
FIVE_SECONDS = Window(5 * SECOND, "event")
RECORD_NS = 10 * MS
LOG = SimpleNamespace(segments=(1,), due=lambda ordinal: ordinal * RECORD_NS)


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


class TestIdleness:
    """No record for more than 2 s."""

    @pytest.mark.parametrize("wait", ["soft_ns", "hard_ns"])
    def test_its_clock_stands_still_while_it_cannot_read(self, wait):
        reading = Reading(idle_timeout_ns=2 * SECOND)
        reading.generator.begin()
        reading.run(4 * SECOND, reads_until_ns=3 * SECOND)
        reading.slot.waited_ns[wait] = SECOND
        ((at_ns, _),) = reading.run(9 * SECOND, reads_until_ns=3 * SECOND).items()
        assert 6 * SECOND + 200 * MS < at_ns <= 6 * SECOND + 600 * MS
