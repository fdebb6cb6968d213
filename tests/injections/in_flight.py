"""Bugs of barriers, alignment and in-flight data."""

from dataclasses import replace

from sim.protocol import barrier_handler
from sim.protocol.barrier_handler import Pending
from sim.protocol.barrier_modes import Requirement
from sim.protocol.task_checkpointing import SnapshotInProgress
from sim.runtime.context import Contents, TaskSnapshot
from sim.runtime.jobmanager import restore
from sim.runtime.task.channel_state import ChannelState
from sim.runtime.task_manager import ChannelStateWriter
from tests.injections.channels import BEHIND, JOINED, UNALIGNED
from tests.injections.injection import Injections
from tests.injections.least_worlds import KILL, world

INJECTIONS = Injections("in-flight data")
add = INJECTIONS.add

SMALL = {"network": {"segment-size": "4 KiB"}}
FAR = world(JOINED["job"], checkpoint={"barriers": "unaligned"}, faults=(KILL,), cluster={"latency": "20 ms"})
DOWNSTREAM = world(
    BEHIND, checkpoint={"barriers": "unaligned", "recover-output-on-downstream": True}, faults=(KILL,), cluster=SMALL
)
TIMEOUT = world(BEHIND, checkpoint={"barriers": {"aligned-timeout": "5 ms"}}, faults=(KILL,), cluster=SMALL)


@add(Pending, "complete", JOINED)
def the_first_gate_is_enough(_):
    """An aligned snapshot begins with the first gate whose barriers are here."""
    return lambda self: bool(self.arrived) or not self.target


@add(barrier_handler, "_unaligned_snapshot", UNALIGNED)
def input_is_not_captured(original):
    """An unaligned snapshot captures no input."""
    return lambda pending, options, now: original(pending, options, now)[1:]


@add(ChannelState, "overtaken", UNALIGNED)
def overtaken_output_is_not_written(_):
    """Output that a barrier has overtaken is not written."""
    return lambda self, checkpoint, size_bytes: None


@add(ChannelState, "barriers_complete", FAR)
def late_input_is_not_written(_):
    """What arrives while input is captured is not written."""

    def complete(self, checkpoint):
        if checkpoint in self._captures and self._captures[checkpoint].capturing:
            self._captures[checkpoint].capturing = False
            self._release_if_written(checkpoint)

    return complete


@add(Contents, "in_flight_final", UNALIGNED)
def captured_input_is_forgotten(original):
    """A checkpoint forgets the captured input of its tasks."""
    return lambda self, checkpoint, task, *, captured, overtaken: original(
        self, checkpoint, task, captured=False, overtaken=overtaken
    )


@add(ChannelStateWriter, "write", UNALIGNED)
def half_of_the_channel_state_is_written(original):
    """The file of the channel state holds half of what was handed over."""
    return lambda self, checkpoint, size_bytes, then: original(self, checkpoint, size_bytes // 2, then)


@add(TaskSnapshot, "in_flight_bytes", UNALIGNED)
def channel_state_is_not_read(_):
    """A restart does not read the in-flight data of its checkpoint."""
    return lambda self: 0


@add(restore, "move_captured_output_downstream", DOWNSTREAM)
def output_recovered_downstream_is_lost(original):
    """Output that is recovered downstream is taken from its writer and given to no reader."""

    def moved(parts, layout):
        after = original(parts, layout)
        for task, part in after.items():
            part.position = part.position._replace(captured=parts[task].position.captured)
        return after

    return moved


@add(SnapshotInProgress, "on", FAR)
def an_acknowledgement_does_not_wait_for_the_capture(original):
    """A snapshot is acknowledged before the last barrier is here."""

    def on(self, event):
        return original(replace(self, missing=self.missing - {Requirement.CAPTURED_INPUT}), event)

    return on


@add(SnapshotInProgress, "_output_done", TIMEOUT)
def the_deadline_converts_no_barrier(original):
    """Barriers that wait in the outputs are not converted at the deadline."""
    return lambda self, event, commands: original(self, event, ())
