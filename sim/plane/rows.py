"""The state of the compiled plane: one row per task, partition, gate, channel, element and line, all fields integers.

The interpreter works on lists of these objects, the compiled kernel on arrays of records with the same fields in the
same order (`record_dtype`).  The order is the layout in memory: fields that are used together share cache lines of 64
bytes.  The fields are documented only here; rule numbers are those of ``sim/plane/RULES.md``.  -1 is a missing index.
`assembly` creates the rows of a specification.

Fields have 64 bits, except in channels and elements, of which there are millions: there, indices and counts have 32 bits
and flags have 8.
"""

# How the rows refer to each other.  A reference is a field that holds the number of a row; -1 is "no row".
#
#   Task ---- first_partition .. last_partition ----> Partition ---- first_channel, channels ------+
#     |                                                                                            v
#     +------ first_gate .. last_gate --------------> Gate ---- words[first_channel ...] -----> Channel
#     |                                                 +------ ready_head .. ready_tail ------>   |
#     |                                                                                            |
#     +------ urgent_head .. urgent_tail (priority markers) ------------------+   head .. tail     |  sender's
#                                                                             |                    |  queue
#   DelayLine ---- head .. tail (on the wire) --------------------------------+   first .. last    |  receive
#                                                                             v                    |  queue
#   General ------ free (given back, linked), fresh (never used) --------> Element <---------------+
#                                                                             | next
#                                                                             +----> Element ...
#
# Channels are numbered by edge, writer, reader (N2).  The channels of a partition are therefore one range,
# and those of a gate are not: their numbers are listed in `words`.  `last_partition` and `last_gate` are
# exclusive.
#
# A Channel has 320 bytes, five cache lines, and each side of it uses two of them:
#
#   line   bytes     fields                        used by
#   0        0-63    written .. count              the writer's side
#   1       64-127   buffer_bytes .. local         both
#   2      128-191   arrived .. held_back          the reader's side
#   3      192-255   stride .. writer              seldom: drawn record sizes, digests, marks, restarts
#   4      256-319   next_listener .. out_from     seldom: listeners of a gate, captures (unaligned)
#
# In a job of 4x256 tasks half of the time was waiting for memory, because 197,000 channels do not fit into
# the caches.  Going from eight lines to five, together with fetching the next target channel while a record
# is served (`fetch`), halved the time in the data plane.  Fetching channels also before positions and
# barriers read them made most of those operations slower and none faster, so only record targets are fetched
# (docs/performance.md).

from __future__ import annotations

from dataclasses import Field, dataclass, fields
from functools import cache
from typing import Annotated, Any, NamedTuple, get_args, get_type_hints

import numpy as np

Half = Annotated[int, np.int32]
"""A field of 32 bits: the number of a row, or a count of elements."""
Byte = Annotated[int, np.int8]
"""A field of 8 bits: a flag or a small code."""
Kept = Annotated[int, np.int64, "kept"]
"""A field that a restart of its task does not reset, because it is constant or a total over all attempts (P3)."""
KeptHalf = Annotated[int, np.int32, "kept"]
KeptByte = Annotated[int, np.int8, "kept"]


@dataclass(slots=True)
class Channel:
    """A channel, in five cache lines: one of the sender, one of both sides, one of the receiver, and two that are rarely used."""

    # written at every record
    written: int = 0
    full_at: int = 0  # offset at which the open buffer is full; 0: none is open
    records_out: int = 0  # records written completely
    sent: int = 0
    out_to: int = 0  # captures: bytes in (out_from, out_to] are pinned
    # the sender's queue
    head: Half = -1
    tail: Half = -1
    queued: Half = 0  # elements
    buffers: Half = 0  # data elements among them
    credit: Half = 0
    count: Half = 0  # segments in use by this channel (O1)
    # both sides
    buffer_bytes: int = 0  # capacity of the next buffer (D4)
    opened_at: int = 0  # offset at which the open buffer begins
    recovered: int = 0  # end offset of the recovered input (P6)
    partition: KeptHalf = 0
    gate: KeptHalf = 0
    reader: KeptHalf = 0  # task
    required: Half = 0
    ex_free: Half = 0
    fl_free: Half = 0
    received_buffers: Half = 0  # elements of the receive queue that are data
    ready_before: Half = -1  # neighbours in the ready list of its gate
    ready_after: Half = -1
    flush: Byte = 0
    blocked: Byte = 0
    listed: Byte = 0  # SEND is on the work list
    local: KeptByte = 0
    # the receiver's side
    arrived: int = 0
    taken: int = 0
    consumed: int = 0
    record_end: int = 0  # of the record after `consumed`
    records_in: int = 0  # records whose service has begun
    in_to: int = 0  # captures: bytes in (in_from, in_to] are pinned
    first: Half = -1  # receive queue
    last: Half = -1
    received: Half = 0  # elements
    ready: Byte = 0  # is in the ready list of its gate
    # its buffer being read: READING, with FLOATING (remote), LOOSE (remote, recovered: in no pool), or OWNED (local:
    current: Byte = 0
    # recycling it gives the segment back)
    waiting: Byte = 0  # is in the list of listeners of its gate, before `next_listener`
    held_back: Byte = 0
    # seldom touched
    stride: Kept = 0  # the stream of record sizes
    offset: Kept = 0
    digest: Kept = 1
    earlier_read: Kept = 0  # records of earlier attempts beyond the restored position (P8)
    earlier_written: Kept = 0
    mark: int = 0
    mark_at: int = 0
    place: KeptHalf = 0  # among the channels of its gate
    writer: KeptHalf = 0  # task
    next_listener: Half = -1
    owed_exclusive: Half = 0  # captures: recycled while pinned
    owed_floating: Half = 0
    owed_segments: Half = 0
    # more of captures
    capturing: int = 0  # the number awaited (C1)
    captured_from: int = 0
    cap_in: int = 0
    in_from: int = 0
    cap_out: int = 0
    out_from: int = 0


@dataclass(slots=True)
class Element:
    """A buffer or marker on its way from the sender's queue to the receive queue, or a message on the reverse line."""

    end: int = 0  # data: offset after the last byte
    number: int = 0  # of the marker; credits or bytes of a message
    time: int = 0  # of arrival, on a line
    next: Half = -1
    channel: Half = 0
    backlog: Half = 0  # in transit: the sender's backlog (S3); a watch: markers still to leave
    kind: Byte = 0  # >= 0: a marker of this series; else DATA, CREDIT, RESUME, RESIZE, WATCH
    traits: Byte = 0  # of the marker; of received data: 1 = in a floating buffer


@dataclass(slots=True)
class Task:
    """A task and its thread."""

    state: Kept = 0
    serving: int = 0  # 1: serves a record; FIRING: fires pending outputs (L7)
    runs_ahead: Kept = 0  # 1: may serve records ahead of their time (`channels.py`)
    ahead: int = 0  # number of records served ahead
    listed: int = 0  # TURN is on the work list
    held: Kept = 0
    interrupted: int = 0
    behind: int = 0  # 1: it takes one more element before it reports that it is interrupted (T3)
    recovering: int = 0  # 1: restarted, and RECOVERED is not reported yet (P7)
    current: int = -1  # channel of the current buffer (with joined inputs, see `Gate.current`)
    joined: Kept = 0
    last_used: int = 0  # gate a joined task read last (T9)
    served: int = 0
    stride: Kept = 0  # the stream of service times
    offset: Kept = 0
    slow_num: Kept = 1
    slow_den: Kept = 1
    first_partition: Kept = 0
    last_partition: Kept = 0  # exclusive
    since: Kept = 0  # until here its time is in one of the four fields below
    busy_ns: Kept = 0
    idle_ns: Kept = 0
    soft_ns: Kept = 0
    hard_ns: Kept = 0
    digest: Kept = 1
    first_gate: Kept = 0
    last_gate: Kept = 0  # exclusive
    first_input: Kept = 0  # in `words`: its input channels, gate by gate
    last_input: Kept = 0  # exclusive
    first_output: Kept = 0  # in `words`: its output channels, partition by partition
    last_output: Kept = 0  # exclusive
    buffers_in: Kept = 0
    # the emission in progress (O5)
    emitting: int = 0
    cursor: int = 0  # partition
    copies: int = 0  # copies still to be written to this partition
    target: int = 0  # channel
    rest: int = 0  # bytes of the record still to be written to the channel
    line: Kept = 0
    pinning: int = 0  # number of the marker for which buffers are pinned; 0: none are
    # lists
    gate_head: int = -1
    gate_tail: int = -1
    urgent_head: int = -1  # priority markers, to be processed before data
    urgent_tail: int = -1
    watches: int = -1  # S7
    prioritised: int = 0
    # pending outputs (L1-L9)
    late: int = 0  # records served whose outputs are pending, including those in hand
    in_hand: int = 0
    lag: Kept = 0  # TIMED or UNTIMED; 0: outputs are written at once
    lag_capacity: Kept = 0
    lag_table: Kept = 0
    lag_n: Kept = 0
    lag_stride: Kept = 0
    lag_offset: Kept = 0
    lag_ring: Kept = 0  # in `words`: ring of lag_capacity times at which pending outputs are ready
    lag_first: int = 0  # index of the first of them in the ring
    lag_last: int = 0  # time at which the last one is ready
    released_until: int = 0
    # sum of 1: processes nothing until they are written (L6), and 2: reports when released ones are written (L9)
    waits_for_late: int = 0
    firing_ns: Kept = 0  # thread time of one output (L7); 0: outputs are not fired
    fired_num: Kept = 1  # outputs fired per record, as a ratio
    fired_den: Kept = 1
    yields: Kept = 0  # L8
    # a source
    source: Kept = 0  # `Wait`: where it waits (W3); 0: not a source
    passed_over: int = 0
    lock_stride: Kept = 0
    lock_offset: Kept = 0
    lock_wins: Kept = 0
    total: Kept = -1
    exhausted: int = 0  # reported
    service_table: Kept = 0
    service_n: Kept = 0
    due: int = 0  # of record `served`
    due_part: int = 0  # fraction of a ns beyond `due`, in units of 1 / num
    segment: int = 0  # in `words`: the current rate segment
    first_segment: Kept = 0
    last_segment: Kept = 0
    # its state when it began to serve records ahead
    ahead_end: int = 0  # end of the service in progress
    ahead_since: int = 0  # of a source: its fields of these names
    ahead_busy: int = 0
    ahead_idle: int = 0
    ahead_digest: int = 0
    ahead_due: int = 0
    ahead_due_part: int = 0
    ahead_segment: int = 0
    # added to the totals for earlier attempts (P3)
    earlier_in: Kept = 0  # bytes taken
    earlier_out: Kept = 0  # bytes written
    earlier_records: Kept = 0  # written
    earlier_served: Kept = 0  # records (P8)


@dataclass(slots=True)
class Partition:
    """The partition of one output edge of a task, with its pool of segments."""

    used: int = 0
    pool: Kept = 0  # O1: size
    limit: Kept = 0  # ... and overdraft
    full: int = 0  # channels at max_per_channel
    first_channel: Kept = 0
    last_channel: Kept = 0  # exclusive
    channels: Kept = 0
    task: Kept = 0
    ship: Kept = 0
    copies: Kept = 0  # ever made: m of O5
    uncounted: int = 0  # copies that no channel counts: cut off by a halt, or made before rescaling
    turn: Kept = 0  # rebalance, rescale: index of the channel of the next copy, or of the first one compared
    traverse: Kept = 0  # channels that are compared for a copy (O8); 0: none
    fan_num: Kept = 1
    fan_den: Kept = 1
    size_table: Kept = 0
    size_n: Kept = 0
    weights: Kept = 0
    weights_n: Kept = 0
    stride: Kept = 0  # the stream of routes
    offset: Kept = 0
    buffers_out: Kept = 0
    touched_from: int = 0  # channels written since the last flush of an emission (timeout 0)
    touched_to: int = 0
    recovered: int = 0  # segments of recovered output, which may exceed the limit (P6)


@dataclass(slots=True)
class Gate:
    """The gate of one input edge of a task."""

    task: Kept = 0
    place: Kept = 0  # among the gates of its task
    input_end: Kept = 0  # end (exclusive) of the gates of its input; joined inputs are read alternately (T9)
    first_channel: Kept = 0  # in `words`: its channels by writer
    last_channel: Kept = 0  # exclusive
    channels: Kept = 0
    ready_head: int = -1
    ready_tail: int = -1
    listed: int = 0  # is in the gate list of its task, between `before` and `after`
    before: int = -1
    after: int = -1
    current: int = -1  # channel of the buffer polled last, while it is read
    shut: int = 0  # 1: has not requested its partitions since the restart of its task (P7)
    idle: int = 0  # floating buffers
    listener_head: int = -1
    listener_tail: int = -1
    service_table: Kept = 0
    service_n: Kept = 0
    size_table: Kept = 0
    size_n: Kept = 0
    records_in: int = 0  # of all its channels
    announced: int = 0
    settled: Kept = 0  # in `words`: by series
    closed: int = 0  # channels
    closed_bits: Kept = 0  # in `words`: bit set of closed channels
    open_counts: int = 0
    counts: Kept = 0  # in `words`: COUNT_HEAD words and a bit per channel each, oldest first
    count_words: Kept = 0
    # debloating
    active: int = 0
    active_since: int = 0
    active_ns: int = 0
    polled_bytes: int = 0
    rate_bytes: int = 0  # the last rate measured, as a pair
    rate_ns: int = 1
    last_size: int = 0  # smoothed, in 2**-32 bytes
    announced_bytes: int = 0


@dataclass(slots=True)
class DelayLine:
    """A line on which elements travel, in order."""

    head: int = -1
    tail: int = -1
    free_at: int = 0


@dataclass(slots=True)
class General:
    """The fields of the plane as a whole."""

    now: int = 0
    work_head: int = 0
    work_n: int = 0
    work_mask: int = 0
    noted: int = 0  # notices pending
    free: int = -1  # first of the linked list of freed elements
    fresh: int = 0  # elements from here on were never used
    markers: int = 0  # number of markers and watches among the elements, which has no fixed bound
    reached: int = 0  # events with keys below this one have happened
    stale: int = -1  # rank of the event that was processed last, if its leaf in the tree is out of date
    leaf0: int = 0
    shift: int = 0
    horizon: int = 0  # later than any event that can happen
    tasks: int = 0
    channels: int = 0
    vertices: int = 0
    edges: int = 0
    first_tasks: int = 0  # in `words`: first task of each vertex, then the number of tasks
    # in `words`: (first channel, vertex that writes) of each edge, then (number of channels, 0)
    first_channels: int = 0
    sums: int = 0  # in `words`: by vertex, then by edge
    copied: int = 0  # in `words`: results of an operation, by task or by channel of a task
    served_samples: int = 0  # in `words`: records served by each task, sample by sample
    latency: int = 0
    nic_num: int = 0  # 0: no NIC
    nic_den: int = 0
    segment_bytes: int = 0
    exclusive: int = 0
    max_per_channel: int = 0
    stretching: int = 0
    opens_at_once: int = 0
    timeout: int = 0
    digests: int = 0
    fetches: int = 0  # 1: the channels do not fit into the processor's cache
    flush_rank: int = 0
    flush_from: int = 0  # in `words`: (phase, task), by phase
    flush_n: int = 0
    flush_at: int = 0  # next, counted from flush_from
    flush_base: int = 0  # start of the running period
    debloat_rank: int = 0
    debloat_from: int = 0  # in `words`: (phase, gate)
    debloat_n: int = 0
    debloat_at: int = 0
    debloat_base: int = 0
    period: int = 0
    target: int = 0
    samples: int = 0
    threshold: int = 0
    min_bytes: int = 0


class PlaneState(NamedTuple):
    """The state of a plane: all that a kernel function may read or write.  Sequences are lists when interpreted, arrays when compiled."""

    g: General
    tasks: list[Task]
    partitions: list[Partition]
    gates: list[Gate]
    channels: list[Channel]
    elements: list[Element]
    lines: list[DelayLine]  # 0: the reverse line; then the forward lines
    tree: list[int]  # tournament of packed keys
    ring: list[int]  # the work list
    words: list[int]  # tables, bit sets and lists of no fixed length
    notes: list[int]  # pending notices, NOTE_WORDS each


@cache
def record_dtype(row: type) -> np.dtype[np.void]:
    """Return the NumPy dtype of a row: the same fields in the same order, with the alignment of C.

    Cached, because evaluating the type hints of a row takes longer than creating a small array of rows.
    """
    hints = get_type_hints(row, include_extras=True)
    return np.dtype(
        [(field.name, (get_args(hints[field.name]) or (int, np.int64))[1]) for field in fields(row)], align=True
    )


@cache
def renewed_fields(row: type) -> tuple[Field[Any], ...]:
    """Return the fields of a row that a restart of its task sets to their defaults."""
    hints = get_type_hints(row, include_extras=True)
    return tuple(field for field in fields(row) if "kept" not in get_args(hints[field.name]))
