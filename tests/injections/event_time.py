"""Bugs of watermarks, windows and their timers, and of sources that are idle."""

from sim.protocol.event_time import (
    Idleness,
    Slices,
    StatusWatermarkValve,
    WindowContents,
)
from sim.runtime.task.windows import (
    EventTimeWindows,
    OperatorWindows,
    ProcessingTimeWindows,
    WatermarkForwarder,
    WatermarkGenerator,
)
from tests.injections.injection import Injections
from tests.injections.least_worlds import KILL, chain, reader, source, world

INJECTIONS = Injections("event time")
add = INJECTIONS.add

WATERMARK = {"interval": "20 ms", "lateness": "10 ms"}
TUMBLING = world(chain(s=source(watermark=WATERMARK), m=reader(window={"tumbling": "300 ms", "time": "event"})))
LATER = source(30, 60, watermark={"interval": "20 ms", "lateness": "250 ms"})
TWO_STREAMS = world(
    {
        "s": source(watermark=WATERMARK),
        "t": LATER,
        "m": reader(window={"tumbling": "300 ms", "time": "event"})
        | {"input": {"s": "hash", "t": "hash"}, "combine": "union"},
        "k": reader("m", commit="two-phase"),
    }
)
PROCESSING = world(chain(m=reader(window={"tumbling": "400 ms", "time": "processing"})))
SESSIONS = world(chain(m=reader(window={"session": "300 ms", "time": "processing"})), faults=(KILL,))
SLIDING = world(
    chain(m=reader(window={"sliding": "600 ms", "every": "200 ms", "time": "processing", "state-per-record": "100 B"})),
    faults=(KILL,),
)
FIRST_STAGE = world(
    chain(s=source() | {"window": {"tumbling": "100 ms", "time": "processing", "stage": "local"}}), faults=(KILL,)
)
IDLE = source(2, 6, watermark=WATERMARK | {"idle-timeout": "300 ms"})
ONE_IDLE = world(TWO_STREAMS["job"] | {"t": IDLE})


@add(StatusWatermarkValve, "_update_minimum", TWO_STREAMS)
def a_watermark_is_the_largest_of_the_inputs(_):
    """The watermark of a task is the largest of its inputs, not the least."""
    return lambda self: self._advance_to(max(self._reached.values()))


@add(StatusWatermarkValve, "_advance_to", TWO_STREAMS)
def a_watermark_goes_back(_):
    """The watermark of a task follows its inputs back."""

    def reach(self, time_ns):
        self.time_ns = time_ns - 100_000_000 if time_ns > 600_000_000 else time_ns
        return True

    return reach


@add(StatusWatermarkValve, "fall_idle", ONE_IDLE)
def an_idle_channel_counts(_):
    """A channel that is idle holds the watermark back."""
    return lambda self, channel: False


@add(StatusWatermarkValve, "wake", ONE_IDLE)
def an_active_channel_stays_idle(_):
    """A channel that is active again never counts."""
    return lambda self, channel: None


@add(
    Idleness,
    "check",
    TWO_STREAMS | {"job": TWO_STREAMS["job"] | {"s": source(watermark=WATERMARK | {"idle-timeout": "1 s"})}},
)
def a_busy_source_is_idle(_):
    """A source is marked idle though it has records."""
    return lambda self, records, clock_ns: clock_ns > 400_000_000


@add(WindowContents, "fire", TWO_STREAMS)
def records_of_later_windows_leave(original):
    """A watermark lets the records of all windows go, those of later windows as well."""
    return lambda self, time_ns, records: None if original(self, time_ns, records) is None else 0


@add(WindowContents, "note", TUMBLING)
def records_stay_in_the_window_that_ends(original):
    """A window leaves out the records of its last part."""
    return lambda self, channel, time_ns, records: original(self, channel, time_ns, max(0, records - 5))


@add(WatermarkForwarder, "_fire_and_forward", TUMBLING)
def a_watermark_overtakes_its_records(_):
    """A watermark leaves before the records that it ends."""

    def fire_late(self, *, has_advanced):
        self.forward()
        if has_advanced and self._open_channels and self.windows is not None:
            self.windows.fire(self.valve.time_ns)

    return fire_late


@add(WatermarkGenerator, "_event_time", TUMBLING)
def a_watermark_is_ahead_of_the_records(original):
    """The watermark of a source is ahead of its records."""
    return lambda self: original(self) + 500_000_000


@add(EventTimeWindows, "end_input", TUMBLING)
def the_last_windows_never_end(_):
    """The last watermark does not end the windows that are open at the end of the data."""
    return lambda self: None


@add(ProcessingTimeWindows, "resume_timers", SESSIONS)
def timers_are_forgotten_at_a_restore(_):
    """Timers of processing time are not restored."""
    return OperatorWindows.resume_timers


@add(ProcessingTimeWindows, "_next_end", PROCESSING)
def windows_end_at_other_times(_):
    """Windows of processing time end in the middle between two ends."""

    def next_end(self):
        step_ns = self.window.step_ns
        return self.slot.now + step_ns - (self.slot.now - self.window.phase_ns - step_ns // 2) % step_ns

    return next_end


@add(ProcessingTimeWindows, "_schedule_window_end", PROCESSING)
def timers_are_not_armed_again(original):
    """Windows of processing time have no timer after the second one."""
    return lambda self: original(self) if self.slot.now < 500_000_000 else None


@add(ProcessingTimeWindows, "_schedule_mail", SESSIONS)
def sessions_do_not_wait(_):
    """A session ends without the gap that its records wait for."""
    return lambda self, timer: self.slot.thread.post(lambda: self._fire(timer))


@add(Slices, "records", SLIDING)
def slices_are_not_kept(_):
    """Sliding windows keep in state only what has left at no end yet."""
    return lambda self, open_records: open_records


@add(OperatorWindows, "release_before_barrier", FIRST_STAGE)
def first_stages_stay_behind_the_barrier(_):
    """A first stage holds records back behind the barrier."""
    return lambda self: False
