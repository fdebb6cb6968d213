"""Bugs of the data plane: channels, captures, restarts.  They break the plane that can be read."""

from tests.injections.injection import Injections
from tests.injections.least_worlds import KILL, chain, reader, sink, source, world
from tests.oracle.captures import Captures
from tests.oracle.late import LateOutputs
from tests.oracle.output import RecordWriter
from tests.oracle.plane import ReferencePlane
from tests.oracle.restarts import Restarts
from tests.oracle.sending import Sending

INJECTIONS = Injections("plane", reference=True)
add = INJECTIONS.add

RESTARTED = world(faults=(KILL,))
JOINED = world(
    {
        "s": source(200, 300),
        "m": reader(service="6 ms"),
        "k": sink(parallelism=1) | {"input": {"m": "hash", "s": "hash"}, "combine": "union"},
    },
    faults=(KILL,),
)
BEHIND = chain(s=source(200), m=reader(service="8 ms"))
UNALIGNED = world(
    BEHIND, checkpoint={"barriers": "unaligned"}, faults=(KILL,), cluster={"network": {"segment-size": "4 KiB"}}
)
REQUESTS = world(chain(m=reader(async_io={"latency": "40 ms", "capacity": 20})), faults=(KILL,))


@add(Restarts, "seek_record", UNALIGNED)
def a_restart_skips_a_record(original):
    """A reader goes on one record behind the one that its checkpoint names."""

    def seek(self, channel):
        original(self, channel)
        if channel.records_in < channel.records_out:
            channel.consumed += channel.size(channel.records_in)
            channel.records_in += 1

    return seek


@add(Restarts, "restore_task", RESTARTED)
def a_restart_repeats_a_record(original):
    """A restarted task serves its last record again."""

    def restore_task(self, task, positions):
        position = positions[task.number]
        again = position._replace(served=max(0, position.served - 1)) if not task.gates else position
        original(self, task, {**positions, task.number: again})

    return restore_task


@add(ReferencePlane, "start", RESTARTED)
def routes_begin_anew(original):
    """Copies are routed after a restart as if no record had been written."""

    def start(self, positions):
        original(self, positions)
        for task in positions:
            for partition in self.all_tasks[task].partitions:
                partition.copies = partition.uncounted = 0

    return start


@add(Restarts, "recover", UNALIGNED)
def in_flight_data_is_lost_at_a_restart(_):
    """In-flight data does not come back: each channel begins behind what was written on it."""

    def recover(self, channel):
        for offset in ("sent", "arrived", "taken", "consumed"):
            setattr(channel, offset, channel.written)
        channel.records_in, channel.fragment = channel.records_out, 0

    return recover


@add(Captures, "try_finish", UNALIGNED)
def a_capture_goes_beyond_the_barrier(_):
    """A capture holds what came behind the barrier as well."""

    def finish(self, channel):
        if channel.capture and channel.mark == channel.capture:
            channel.capture, channel.cap_in, channel.pinning = 0, channel.arrived - channel.capture_from + 300, False

    return finish


@add(Captures, "overtake", UNALIGNED)
def only_one_overtaken_buffer_is_kept(original):
    """A priority barrier counts only the first buffer that it overtakes."""

    def overtake(self, channel, place):
        original(self, channel, place)
        channel.cap_out = min(channel.cap_out, 300)
        return channel.cap_out

    return overtake


@add(Sending, "take_head", JOINED)
def a_barrier_does_not_block(original):
    """An aligned barrier does not block its channel."""

    def take(self, channel):
        element = original(self, channel)
        channel.blocked = False
        return element

    return take


@add(LateOutputs, "be_late_again", REQUESTS)
def requests_are_lost_at_a_restart(_):
    """Requests under way are not asked again after a restart."""
    return lambda self, task, late: None


@add(RecordWriter, "route", world())
def a_copy_takes_another_channel(original):
    """Every hundredth copy goes to the next channel but one."""

    def route(self, partition, m):
        return [partition.channels[0]] if m % 100 == 7 and not partition.shared else original(self, partition, m)

    return route
