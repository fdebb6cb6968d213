"""The watermarks of a source, look by look; sources that are idle."""

from math import inf
from types import SimpleNamespace

import pytest

from sim.model.job import Source, Watermark, Window
from sim.runtime.context import ACTIVE, IDLE
from sim.runtime.task.windows import WatermarkGenerator
from tests.runtime.task.fake_slots import FakeSlot
from tests.runtime.task.windowed_runs import read, sizes
from tests.scenarios import run_scenario

# The watermarks of a source, look by look: when it looks, what it sends, when it is idle, when it waits for other sources.


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
        assert reading.generator.is_idle
        ((_, numbers),) = reading.run(9200 * MS).items()
        assert numbers == [ACTIVE, 5 * SECOND]
        assert not reading.generator.is_idle

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
        assert windows.watermarks is reading.generator
        assert windows.fired == (5 * SECOND,)
        reading.generator.outputs_written(at_end=False)
        assert reading.slot.sent() == [5 * SECOND]


# Sources that are idle: a silent partition holds windows back, unless its subtask says that it is idle.


JOB = """# What does a silent partition do to windows?
version: 1
job:
  src: {{source: {{rate-per-subtask: {rate}, record: {record}, silent: {silent}{bound}{watermark}}}, parallelism: 3}}
  win:
    input: {{src: hash}}
    service: {reading}
    parallelism: 2
    window: {{tumbling: 5 s, time: event, state-per-record: 10 B}}
  sink: {{input: {{win: hash}}, service: 10 us, parallelism: 2}}
checkpoint: {{interval: 3 s, barriers: {barriers}}}
run: {{duration: {duration}}}
"""
IDLE_SOURCES = ", watermark: {idle-timeout: 2 s}"


USUAL = {
    "rate": "100/s",
    "record": "500 B",
    "silent": 1,
    "bound": "",
    "reading": "10 us",
    "barriers": "aligned",
    "duration": "24 s",
}


def run(watermark=IDLE_SOURCES, *, sections="", **given):
    return run_scenario(JOB.format(watermark=watermark, **USUAL | given) + sections)


def fired(result):
    """The seconds in which most records of a window leave, and how many do."""
    return {time: rate for time, rate in read(result, until=inf).items() if rate > 100}


def test_a_source_that_comes_back_counts_again():
    """Nothing from 3 s to 12 s: all subtasks are idle, nothing is flushed; the first watermark behind it ends the window of 5 s."""
    result = run(rate="[{at: 0 s, rate: 100/s}, {at: 3 s, rate: 0/s}, {at: 12 s, rate: 100/s}]", silent=0)

    assert list(fired(result)) == [13.0, 16.0, 21.0]
    assert pytest.approx(list(fired(result).values()), abs=100) == [900, 900, 1500]


def test_back_pressure_is_no_idleness():
    """Windows read 20 records/s of 300: sources wait for a second at a time, their clock stands still, no window ends too early."""
    calm, waiting = (
        run(watermark, silent=0, reading="100 ms", record="5 kB")
        for watermark in ("", ", watermark: {idle-timeout: 300 ms}")
    )

    assert calm.series["backPressured"].max() > 0.9
    assert fired(calm) == fired(waiting)
    assert sizes(calm).tolist() == sizes(waiting).tolist()


@pytest.mark.parametrize(("idle", "left"), [("", 600), (IDLE_SOURCES, 0)], ids=["never", "idle"])
def test_a_drain_while_all_sources_are_idle_fires_nothing(idle, left):
    """The last watermark does not pass an output that was announced idle: what windows hold is lost (RecordWriterOutput#emitWatermark)."""
    steps = "[{at: 0 s, rate: 100/s}, {at: 3 s, rate: 0/s}, {at: 100 s, rate: 100/s}]"
    result = run(idle, rate=steps, silent=1, sections="actions: [{at: 12 s, stop: drain}]\n", duration="30 s")

    assert result.job_status == "FINISHED"
    assert left == result.tasks[result.tasks["vertex"] == "sink"]["numRecordsIn"].sum()
    assert result.violations == ()


def test_idleness_passes_operators():
    """Two windows one behind the other: the second one is held back by the silent source of its own alone."""
    text = JOB.format(
        watermark=IDLE_SOURCES, **USUAL | {"silent": 0, "rate": "[{at: 0 s, rate: 100/s}, {at: 2 s, rate: 0/s}]"}
    ).replace(
        "  win:\n    input: {src: hash}",
        "  b: {source: {rate: 100/s, record: 500 B}}\n  m: {input: {src: hash}, parallelism: 2}\n  win:\n    input: {m: hash, b: hash}",
    )
    result = run_scenario(text)

    assert list(fired(result)) == [6.0, 11.0, 16.0, 21.0]
    assert pytest.approx(fired(result)[6.0], abs=30) == 600 + 500


def test_a_silent_subtask_has_no_backlog():
    """It is never behind: neither in the series, nor to the enumerator, which lets checkpoints go on after 300 records."""
    result = run(bound=", backlog: {records: 100}", barriers="aligned, interval-during-backlog: off")
    rows = result.series[result.series["vertex"] == "src"]

    assert rows["backlog"].max() <= 3
    assert rows["lag"].max() < 0.1
    assert len(result.checkpoints) == 8
