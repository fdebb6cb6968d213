"""`cluster:` as it is written: where subtasks run, the network between them, its buffers.

Defaults live in the model: a key that is not given is None here.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Tag

from sim.scenario.grammar.fields import Axis, BufferTimeout, ByteRate, Duration, Natural, Percent, Positive, Size, choice
from sim.scenario.grammar.section import MAP_OR_TEXT, Section

__all__ = ["Cluster", "Debloat", "Network"]


class Debloat(Section):
    """taskmanager.network.memory.buffer-debloat.*"""

    target: Axis[Duration] | None = None
    """Time that the buffered data should take to be processed."""
    period: Axis[Duration] | None = None
    """Between two adjustments."""
    samples: Axis[Positive] | None = None
    """Measurements that are averaged."""
    threshold: Axis[Percent] | None = None
    """Smaller changes of the buffer size are not made."""
    min: Axis[Size] | None = None
    """Smallest buffer."""


DebloatField = Annotated[
    Annotated[str, choice("on", "off", "true", "false"), Tag("text")] | Annotated[Debloat, Tag("map")],
    MAP_OR_TEXT,
]


class Network(Section):
    """Buffers as Flink counts them.  Every pool has as many as it may ask for: a task manager's network memory is not modelled."""

    segment_size: Axis[Size] | None = None
    """Size of a network buffer."""
    starting_segment_size: Axis[Size] | None = None
    """First buffer size with debloating on."""
    buffers_per_channel: Axis[Natural] | None = None
    """Exclusive buffers of a channel of an input gate."""
    floating_buffers_per_gate: Axis[Positive] | None = None
    """Buffers that the channels of a gate share."""
    max_buffers_per_channel: Axis[Positive] | None = None
    """Buffers of one channel of an output, at most."""
    overdraft: Axis[Natural] | None = None
    """Buffers that a task may take beyond its pool to finish a record."""
    buffer_timeout: Axis[BufferTimeout] | None = None
    """0 s: after each record; or `never`."""
    debloat: Axis[DebloatField] | None = None
    """on: buffers shrink to what is processed in the target time."""


class Cluster(Section):
    """Where the job runs."""

    placement: Axis[Annotated[str, choice("isolated", "spread", "single")]] | None = None
    """isolated: a task manager per subtask; spread: one per subtask index, or per so many as it has slots; single: one in all."""
    slots: Axis[Positive] | None = None
    """Slots of each task manager, filled one after the other; each holds one subtask of every vertex.  Default: 1."""
    latency: Axis[Duration] | None = None
    """One way, between task managers."""
    nic: Axis[ByteRate] | None = None
    """Outgoing, per task manager."""
    cores: Axis[Positive] | None = None
    """Each host has so many, which serialising snapshots and the threads of tasks share.  Default: nothing waits for a core."""
    hosts: Axis[Positive] | None = None
    """So many, to which task managers are dealt out in turn: more task managers bring no cores.  Default: one per task manager."""
    services: Axis[Annotated[str, choice("side-by-side", "idle-core")]] | None = None
    """How services were measured.  idle-core: task threads that want more than `cores` slow each other down.
    side-by-side (the default): they have done so already."""
    profile: Axis[Annotated[str, choice("1.15", "1.20", "2.x")]] | None = None
    """Whose constants and defaults; 1.15: without what came since: overdraft buffers, the timeout of barriers in sender queues."""
    network: Network | None = None
    """Buffers between tasks."""
