"""The seam: what the data plane is told, what it reports, and its rules of order.

The plane moves *buffers and markers* between tasks and knows no protocol.  A marker is a number that travels in the
byte streams; what it means (barrier, cancellation, end of data) is the control plane's business.  This page is the
only statement of the seam.  ``reference`` is these rules in plain Python, ``kernel`` is the same behaviour in
restricted Python that numba compiles; both must produce equal notices, tables and digests (``sim.plane.seam.check``).

All times are int64 nanoseconds, all volumes int64 bytes.  Sources: Flink's network stack as cited per rule
(``LocalBufferPool``, ``PipelinedSubpartition``, ``RemoteInputChannel``, ``BufferManager``, ``SingleInputGate``,
``StreamTask``, ``BufferDebloater``).


Numbering
=========
N1  Tasks are numbered by vertex in the order of ``PlaneSpec.vertices``, then by subtask.
N2  Channels are numbered by edge in the order of ``PlaneSpec.edges``, then by writer subtask, then by reader subtask.
    Which channels exist: ``sim.plane.seam.layout.targets`` (all-to-all, or Flink's pointwise map for forward and rescale).
N3  A *partition* is one task's output for one edge; a *gate* is one task's input of one edge.  Partitions of a task, and
    gates of a task, stand in the order of the edges.  Channels of a partition are ordered by reader, of a gate by writer.
N4  A channel is *local* iff writer and reader have the same host; all others are *remote*.

Byte streams
============
B1  A channel is a stream of bytes with int64 offsets from 0.  Record i of a channel occupies the next ``size(i)`` bytes,
    ``size(i) = law(edge.record_bytes, stream("size", edge, writer subtask, reader subtask), i) >= 1`` (broadcast: of reader subtask 0 for all).
B2  A buffer is an interval of that stream; it may begin and end inside a record.  Offsets kept per channel:
    ``written >= sent >= arrived >= taken >= consumed``: appended by the writer, gone from the sender's queue, received,
    in buffers handed to the reading task, and the end of the last record whose service began.
    On a local channel ``sent``, ``arrived`` and ``taken`` move together, when the reader polls.

Output: pool, buffers, flush        (LocalBufferPool, BufferWritingResultPartition, PipelinedSubpartition)
===========================================================================================================
O1  A partition with p channels owns a pool of ``size = p * exclusive + floating`` segments and may borrow ``overdraft``
    more.  ``used`` counts its segments in use, ``count[c]`` those of channel c.  A segment is taken when a buffer is
    opened and given back (O7) exactly once.
    A broadcast partition's channels *share* segments: they are written together (O4), their buffers of one opening are one segment, which is
    given back when the last of them is (``used`` is the greatest ``count[c]``).
O2  A partition is *available* iff ``used < size`` and no channel has ``count[c] >= max_per_channel`` (broadcast: and ``used < max_per_channel``, all its segments count as one channel's).
    A task's output is available iff all its partitions are (a sink's always is).
O3  A request for a segment is granted iff ``used < size + overdraft``.
O4  Writing ``n`` bytes of a record to channel c, until none is left: without an open buffer request a segment (refused:
    the task is HARD blocked inside this record and continues exactly here later, T2) and open a buffer with
    ``capacity = buffer_bytes[c]`` (broadcast: the least of its channels; D4; initially ``starting_buffer_bytes``).  If the rest does not fit, the partition is not
    available (O2, evaluated with the segments as they now are) and ``capacity < segment_bytes`` and ``stretching``, raise
    ``capacity`` to ``min(segment_bytes, fill + rest)``.  Append ``min(rest, capacity - fill)``.  When ``fill == capacity`` close the buffer,
    then offer(c) (S1).  On a broadcast partition each of these steps is done for all channels, in order, before the next step.
O5  Records leave a task after service, partition by partition; on each partition ``floor((k+1) f) - floor(k f)`` copies, f =
    ``fan_out``, k = records this task served before this one.  The m-th copy ever on a partition (m = 0, 1, ...) goes to:
    hash: ``law(edge.weights, stream("route", edge, writer subtask), m)``, the owner of a key group (equal shares, no weights: ``(u * p) >> 32``);
    rebalance: channel ``(s + m) mod p``, ``s = (u * p) >> 32`` of ``stream("start", edge, writer subtask)`` at index 0;
    rescale: channel ``m mod p`` of its own block; forward: its only channel; global: channel 0;
    broadcast: every channel at once (O4).
O6  Flush of a task (its timer, F1): for its partitions in order, their channels in order: if the queue holds data not yet
    sent (a closed buffer, or an open one with bytes not yet sent), set ``flush[c]`` and offer(c).
    With ``buffer_timeout_ns == 0`` there is no timer: every record's emission, when completely written, ends with a flush of the task.
    With ``buffer_timeout_ns < 0`` nothing flushes.
O7  A segment is given back when its buffer is closed and completely sent (remote), or when its reader recycles it (local,
    T8), or, if pinned by a capture (C4), at the release of that capture.  Closing a buffer whose bytes are all sent already
    gives its segment back at once (remote; on a local channel: at once if the reader has recycled all its slices, else with the
    recycling of the last slice).
    Giving back: ``used -= 1``, ``count[c] -= 1``; then wake the writer if it is HARD, or if it is SOFT and its output is available.

Sending                              (PipelinedSubpartition, CreditBasedSequenceNumberingViewReader, Netty)
===========================================================================================================
S1  The queue of a channel holds markers and buffers; only the last buffer can be open.  Its head is *sendable* iff the channel
    is not blocked and the head is a marker, or a buffer with bytes to send that is closed or ``flush[c]`` is set, and
    (remote only) ``credit[c] > 0`` for data.
    offer(c): if the head is sendable append SEND c to the work list unless it is there already (a local channel that stands in its
    gate's ready list is offered only if its head is a priority marker).
S2  SEND c, remote: if the head is (still) sendable, send one element, then offer(c).  Data costs one credit.  An open buffer is sent
    up to its fill as a slice; it keeps its segment and stays as the head with the rest.  Sending an open buffer's slice, or
    the queue becoming empty, clears ``flush[c]``.  A blocking marker, when sent, blocks the channel before the next offer.
S3  Every element carries the *backlog* left behind it: the data buffers in the queue, minus one if the last element is an open
    buffer and ``flush[c]`` is not set, never below 0; 0 if the channel is blocked (by this very element too).
S4  SEND c, local: if the head is sendable and is a priority marker, it leaves the queue and is delivered (R5), then offer(c).
    Any other sendable head makes the channel *ready* (R4) and stays where it is until the reader polls it (T9).
S5  Remote elements arrive one ``latency_ns`` after they are sent.  With ``nic`` set, an element of b bytes first occupies its
    writer's host's line for ``ceil(b * den / num)`` ns, first come first served, markers 0 ns.  Elements of one line arrive in
    the order of sending.  Without a NIC and with zero latency the element is delivered (R1, R5) inside SEND; else it is put on a line (E1).
S6  Messages to the sender (credit, resume, buffer size) on a remote channel take ``latency_ns``; all share one reverse line, first in
    first out; zero latency, or a local channel: they act at once.
    Credit message: ``credit[c] += n``, offer(c).  Resume: unblock, offer(c).  Size: ``buffer_bytes[c] = n``.
S7  A marker with trait ANNOUNCED is *watched*: when the last of the watched markers of one forward (M1; all edges of one number counted
    together) has left the task's sender queues, the plane reports LEFT(task, number).  A local channel's marker leaves when polled.

Receiving                            (RemoteInputChannel, BufferManager)
========================================================================
R1  Each remote channel owns ``exclusive`` buffers, its gate ``floating`` more.  ``free(c) = ex_free + fl_free``; initially ``ex_free = exclusive``,
    ``credit = exclusive``, ``required = exclusive``.  Arriving data takes a floating free buffer of its channel if there is one, else an exclusive one.
R2  After any element of backlog b arrived: ``required = b + exclusive``; while ``free(c) < required`` and c is not waiting: take one
    of the gate's idle floating buffers (``fl_free += 1``, ``unannounced += 1``), or if there is none append c to the gate's listeners (c is waiting).
    At the end of the step that gained them the ``unannounced`` credits of c leave in one credit message (S6).
R3  Recycling a buffer of c.  Exclusive: ``ex_free += 1``; if then ``free(c) > required`` and ``fl_free > 0``, one floating buffer goes back to the gate instead
    of a credit (``fl_free -= 1``); otherwise one credit is announced.  Floating: goes back to the gate.
    Back to the gate: take the first listener d off the list (no listener: the buffer is idle); if ``free(d) >= required(d)`` d stops waiting and
    the next listener is tried; else d gets it (``fl_free += 1``, one credit announced), and d stops waiting if now
    ``free(d) >= required(d)``, otherwise it is appended to the list again.
R4  Data and ordinary markers join the channel's receive queue.  A channel with something to poll is *ready*: it stands once in its gate's ready
    list (appended at the end), and a gate with a ready channel stands once in its task's gate list (appended at the end).
    When a channel becomes ready, its reader is woken if IDLE.
R5  An arriving marker is noted: if its series is BARRIERS and ``number >= mark``, ``mark = number`` and ``mark_at = arrived`` of the channel (C2).  If it has trait PRIORITY, or its series is
    BARRIERS and its number equals the reader's ``prioritised`` number (M3), it joins the task's priority list instead of the receive
    queue and the reader is woken if IDLE or SOFT.  Otherwise, on a remote channel, if it has trait ANNOUNCED and its number is greater
    than the gate's ``announced``: ``announced = number`` and the plane reports ANNOUNCED(task, gate, number).

The task thread                      (StreamTask, MailboxProcessor, AbstractStreamTaskNetworkInput)
===================================================================================================
    A task is BUSY (in service), IDLE, SOFT or HARD blocked, HELD (the thread works for the control plane) or HALTED (P1).
    A *turn* takes no time.  wake(t) appends TURN t to the work list unless it is there, or t is BUSY, HELD or HALTED.
T1  A turn of a BUSY, HELD or HALTED task does nothing.
T2  HARD: continue the emission (O4).  Refused again: stay HARD, end.  Else the record is written (O6 if the timeout is 0) and the turn goes on.
    Behind T2, a task with a lag: L3.
T3  If ``interrupted``: clear it, report SAFE(task), end the turn.
T4  While the priority list is not empty: take its first marker and process it (M4); if that reported a notice, end the turn.
T5  If the output is not available: become SOFT, end.
T6  A source (no gates): when ``total`` records are served, report EXHAUSTED once (ending the turn), else become IDLE.  If record k = records served is
    due (``due(k) <= now``, W1) begin its service; else become IDLE with a wake-up at ``due(k)``.
T7  If the current buffer's channel has a whole record taken but not consumed, begin its service: ``consumed`` moves to the record's
    end; if that is the end of the current buffer, the buffer is recycled now (R3, or O7 on a local channel) and no longer current.
T8  If there is a current buffer, all of it is used (a partial record's bytes stay with the channel): recycle it.
T9  Poll: take the first gate of the gate list, the first channel of its ready list, the first element of that channel; if the
    channel is still ready (remote: more in the receive queue; local: the head is sendable) append it to the ready list again; if
    the gate's list is not empty append the gate again.  No gate: become IDLE, end.  Data becomes the current buffer (``taken`` moves
    to its end; local: also ``sent`` and ``arrived``; an open buffer is taken as a slice, S2): continue at T7.  A marker is processed (M4; local: first noted as in R5):
    a notice ends the turn, else continue at T3.
    A blocking marker polled on a local channel blocks it at that moment, before the channel is judged still ready.
    A vertex with ``joined`` inputs (StreamMultipleInputProcessor) has a current buffer per gate.  Instead of T7-T9 its gates are tried in
    cyclic order, beginning behind the gate used last (at first: gate 0 is tried first).  On a gate: T7, T8 with its current buffer; then, if it has a ready
    channel, poll this gate (its first ready channel; both lists are kept as in T9): data becomes the gate's current buffer, continue with T7 on this
    gate; a marker is processed as above.  The gate whose record is begun or whose marker is processed is the one used last.  No gate had anything: IDLE.
T10 A turn that reported a notice ends with TURN t appended to the work list again (wake).  The state stays what it was
    (BUSY before the turn counts as BUSY until some turn or verb sets another).
T11 Service of record k (k = records served so far, over all gates) through gate g lasts
    ``max(1, law(service[g], stream("service", vertex, subtask), k) * slow_num // slow_den)`` ns and ends with a service event (E1): ``served += 1``, the
    outputs are written (O5; refused: become HARD), the flush of O6 if due, then TURN t is appended to the work list (the task is no longer BUSY for wake).
T12 Times: every instant belongs to the state entered last; HELD and BUSY add to ``busy_ns``, the others to ``idle_ns``, ``soft_ns``, ``hard_ns``,
    HALTED to none of them: what their sum lacks was spent halted.

Late outputs                         (AsyncWaitOperator, and operators that emit when a checkpoint is complete)
=============================================================================================================
L1  A vertex with a ``lag`` writes nothing at the end of a service (T11): the record becomes *late*, behind those that are late already.
    Outputs leave in the order of the records, whatever becomes available when.
L2  With ``times`` a late record is *ready* ``law(times, stream("lag", vertex, subtask), k)`` ns after it became late (k = its ordinal among those served), but
    not before the one ahead of it.  At most ``capacity`` records are late: with so many, the thread keeps the next one in hand, stays BUSY and does
    nothing but L3; the record becomes late when there is room.  Without ``times`` record k is ready once ``let_go(task, until)`` was called with ``until > k``.
L3  In a turn, behind T2, whether or not the output is available: while the first late record is ready, it is late no more and its outputs are written (O4, O5 with its
    ordinal; refused: HARD, end, T2 goes on with it; O6 if the timeout is 0).  If then a record is still in hand the turn ends.
L4  A turn that leaves the task IDLE, SOFT or with a record in hand sets its wake-up to the time the first late record is ready (none without ``times``).
L5  let_go(task, until) wakes the task if IDLE or SOFT.  Position: ``late`` of the records served are late (one in hand too).  A started task has them late again, all of
    them from ``now`` on (times drawn for their ordinals; one beyond the capacity in hand), or until they are let go; copies made (P4) are those of the records that are not late.
L6  wait_for_late(task) wakes the task if IDLE or SOFT.  From then on T3 is all of its turns behind L3: it takes neither markers nor records and is IDLE, until no record of it
    is late.  Then it reports NONE_LATE(task), once, the turn ends, and the next one is a turn like any other.

Markers                              (PipelinedSubpartition, CheckpointBarrierHandler's counting)
=================================================================================================
M1  forward(task, marker, edge=None): on every channel of the task (or of that edge only), in order: close the open buffer (O7 if nothing of it is left to
    send; otherwise it can be sent), then without PRIORITY append the marker; with PRIORITY insert it before all ordinary elements,
    behind priority markers already there, and capture what it overtakes (C3).  Then offer(c).
    Returns the captured output bytes.  A forward of a watched marker on a task without outputs reports LEFT at once.
M2  convert_output(task, number): every ordinary ANNOUNCED marker of series BARRIERS and this number still in a sender queue of the task becomes a PRIORITY
    marker without BLOCKING, at the place M1 gives it, capturing the data before its old place (C3); ``cap_out`` of the task's other channels
    becomes 0.  It stays watched.  offer(c).  Returns captured bytes.
M3  prioritise(task, number): ``prioritised = number``; in the order of gates and channels every marker of series BARRIERS and this number in a receive queue
    (remote only) leaves it for the end of the priority list, keeping its traits (a channel left with an empty queue leaves the ready list, and a
    gate left with an empty ready list leaves the gate list); the task is woken if IDLE or SOFT and something moved.
M4  Processing a marker from channel c of gate g.  A BLOCKING marker sets ``held_back[c]`` (the sender waits for a resume).
    If ``number <= settled[g][series]`` it is obsolete: resume c at once if BLOCKING, report nothing.
    Otherwise it is counted: the gate keeps up to 50 open counts by (series, number), Flink's ``CheckpointBarrierTracker``: the oldest is dropped, and ``settled`` of its series
    becomes its number.  A new count starts with the number of closed channels of the gate that did not deliver this number.
    With FINAL the channel is closed first: every *other* open count of the gate gains one (if c did not deliver it already: a channel delivers a number at most once).
    Report ARRIVED(task, gate, series, number, channel, first, last): *first* = the count is new, *last* = all channels of the gate are counted (the
    count is then dropped).  Neither first nor last: nothing is reported.  A count completed by another marker's FINAL reports ARRIVED with last
    for each such count, oldest first, after the FINAL's own report.
    A marker of series SINGLES or above is never counted: each one is reported, as first, and as last if all channels of the gate are closed.
M5  resume(task, number): every ``held_back`` channel of the task whose last barrier (C2) has this number or a lower one (no number: every one), in the order of
    gates and channels: clear it and send a resume message (S6).  What a newer barrier has blocked meanwhile stays blocked.
    resume takes no notice of the series; ``settle(task, number, series)`` sets ``settled`` of all gates of the task and drops open counts of that series up to it.

Capture of in-flight data            (ChannelStatePersister, PipelinedSubpartition)
==================================================================================
C1  capture(task, number): on all input channels of the task, from now until the marker of that number arrives on it (R5).
C2  ``cap_in[c] = mark_at - consumed_at_capture`` once ``mark == number`` (at once if the marker is there already): all bytes before the marker
    that are not part of a record whose service began, each once, partial records included.
C3  Output captured at M1/M2: the bytes of c written and not yet sent at that moment, up to the marker's (old) place: ``cap_out[c]``.
C4  Buffers waiting in a receive queue at capture or arriving before the marker, and whole or partial buffers overtaken in a sender queue, are *pinned*: recycled or sent
    meanwhile they give nothing back until release_capture(task), which does it then: input channels in order (per channel first exclusive, then floating
    buffers), then output channels in order.  Current buffers are not pinned.  A capture,
    priority forward or conversion first releases what is still pinned for another number.  After the release nothing more is pinned for its number.
C5  captured(task) -> (input bytes, output bytes) of the latest capture; a channel whose marker is still missing counts what has arrived so far.

Debloating                           (BufferDebloater, BufferSizeEMA, ThroughputCalculator)
==========================================================================================
D1  Per gate, every ``period_ns``, first at ``begin_ns + 1 + ((u * period_ns) >> 32)`` with u of ``stream("debloat", edge, reader subtask)`` at 0.
D2  A gate measures while it is *active*: it becomes active when T9 polls an element from it and paused when T9 is reached (joined: the gate is tried, its current
    buffer used up) and it has no ready channel.
    ``bytes`` = data polled, ``active_ns`` = active time, both since the last run (with ``active_ns == 0``: the rate is the previous one).
    ``desired = min(bytes * target_ns // active_ns, 2**30)``  (the rate is kept as the pair bytes, active_ns).
D3  ``in_use = max(1, sum over channels)`` of (remote: receive queue's data buffers + max(0, required - exclusive); local: the data buffers in the sender's queue).
    ``inst = min((desired << 32) // in_use, 2 * last)``; ``last = clamp(last + ((inst - last) * 2) // (samples + 1), min << 32, segment << 32)`` with ``last``
    initially ``starting_buffer_bytes << 32``.  ``new`` = last / 2**32 rounded half to even.
D4  Announce ``new`` to all channels of the gate in order (size message, S6) if ``new != previous`` (initially ``starting_buffer_bytes``) and (``new <= min`` or ``new >= segment`` or
    ``abs(new - previous) >= previous * threshold_percent // 100``); then ``previous = new``.

Halting and starting                 (Task, RecoveredInputChannel, SequentialChannelStateReaderImpl, PipelinedSubpartition)
==========================================================================================================================
P1  halt(tasks), legal at any time: the threads stop for good, state HALTED.  A service under way is abandoned (``served`` stays, the record stays consumed), an
    emission ends where it is, a wake-up is dropped.  A halted task reports nothing, and what it reported and was not yet returned is dropped.  Its timers (F1, D1) go by
    without effect.  hold and release are illegal, interrupt does nothing.  Only threads stop: what is in its sender queues is sent as far as credit goes, elements still
    arrive for it, take buffers and stay.  A halted task can be halted again.
P2  position(task): ``served``, ``consumed``, ``written`` and the ordinals of records as they stand, ``captured`` and ``overtaken`` (``cap_in``, or what has arrived so far, C5;
    ``cap_out``) as of the latest capture, however old: a snapshot that captured nothing is the caller's to say so (zeros).  Meant for a thread between records: elsewhere a record in
    service counts as read but not as served, a record partly written counts in bytes but not in records.
P3  start(positions), legal at any time for tasks closed under channels (both ends of each of their channels are among them): they forget everything and stand at their positions, HELD, from
    ``now`` on.  What they reported and was not yet returned is dropped, their turns and SENDs leave the work list, their events and everything on a line that belongs to one of their channels (elements
    and messages, also on a line shared with others) are dropped; a NIC stays occupied by what it was given (S5).
    All of E2's beginning holds again: pools, queues, credits, floating buffers, listeners, lists, marks, counts, ``settled``, ``announced``, ``prioritised``, closed channels, watched
    markers, captures and pins, buffer sizes and all that debloating has measured, the gate a joined task used last; an emission under way is forgotten, ``interrupted`` and the report of EXHAUSTED too.
    What stays: digests and times (T12), ``scale``, the timers on the grid they always had (F1, D1), and ``bytes_in``, ``bytes_out``, ``records_out``,
    ``buffers_in``, ``buffers_out`` of a task: totals over all its attempts.  ``served`` and the offsets and ordinals of channels are the position's.
P4  Draws are indexed by the position: services and due times by ``served``, the copies ever made on a partition are ``floor(served * fan_out)`` (O5), sizes by ``records_in``.
P5  Per channel with W = the writer's ``written``, I = the reader's ``captured``, O = the writer's ``overtaken`` (0 <= I + O <= W): ``written = W``, ``sent = arrived = W - O``,
    ``taken = consumed = W - I - O``, whatever the reader's ``consumed`` says: bytes between are lost, bytes beyond come twice, and who minds is not the plane's business.
    W is the end of record ``records_in - 1`` of the writer.  The reader's next record is the first one that lies wholly behind W - I - O (of records before W, else the one that begins there);
    bytes before it belong to it.
P6  *Recovered output*: the last O bytes lie in the sender's queue as closed buffers of ``segment_bytes`` (the last one what is left).  Their segments count in the pool even beyond its limit (O1, O3).
    *Recovered input*: the I bytes lie at the reader, in no buffer of any pool, as elements of ``segment_bytes`` (the last one what is left): the channel is ready if there are any (R4; in the order of
    gates and channels).  T9 polls them like data (local: only ``taken`` moves) and the channel is still ready while one is left.  T8 gives nothing back for them, a capture pins none.
P7  The gates of a started task are *shut*, their channels blocked (S1).  A gate *opens* when T9 is reached (joined: the gate is tried, its current buffer is used up) and it has no recovered input left: a resume message
    (S6) leaves on each of its channels, in order (a request for the partition; nothing else unblocks them).  When all its gates are open (at the end of that search at T9; joined: at once), or at T6 if it is a source,
    a started task reports RECOVERED, once, and the turn ends.
P8  counted(task): the records served, read and written since the plane was built, over all attempts; read and written by channel, as in a position.  They only grow: no start takes back or adds anything.

Sources and draws
=================
W1  ``due(i)``, a time like ``now``: with ``segments`` the last one whose ``first <= i``: ``start_ns + ((i - first) * den_ns) // num``.  No segments: 0 (unlimited).
W2  ``law(table, stream, i)`` = ``table[(u * len(table)) >> 32]``, ``u = draw(stream, i)`` (``sim.model.random``); one-entry tables are constants.
F1  Flush timers: task t with outputs flushes first at ``begin_ns + 1 + ((u * buffer_timeout_ns) >> 32)``, u of ``stream("flush", vertex, subtask)`` at 0, then every
    ``buffer_timeout_ns``.  One task per event, ordered by (time, task).  Debloat timers likewise, ordered by (time, gate).

Order of events
===============
E1  Data events are ordered by (time, rank).  Ranks: tasks by number (end of service, or a source's wake-up); the reverse line; the forward lines by
    host (a single one without NIC); the flush timer; the debloat timer.  A line's event handles its first message only.
E2  The *work list* (SEND c, TURN t) is first in, first out and is emptied before the next data event.  At the start, ``now = begin_ns``, TURN of every task is on it, by number.
E3  ``advance(until)``: first returns pending notices (in the order they were reported), whatever ``until`` is; then, while ``now < until``, runs work items,
    and data events with time < ``until``.  After each work item or event it returns if notices are pending.  At ``until`` it returns QUIET with ``now = until``.
    So control events at t come before data events at t, and everything the control plane does about a notice happens before any further data step.
E4  Verbs are legal only between two ``advance`` calls and act at ``plane.now`` in zero time; they may append work, never run it.
    hold(task): legal when the task is not BUSY (in service, or with a record in hand, L2) and not HARD: becomes HELD (its wake-up, if any, is dropped).  release(task): TURN is appended; until then
    the state counts as HELD.  interrupt(task): sets ``interrupted`` and wakes the task if IDLE or SOFT.  scale(task, num, den): slow factor of services that begin later.

Digests
=======
G1  ``fold(d, x) = (((d ^ (x & M)) * 48271) + ((x >> 31) & M)) & M`` with ``M = 2**31 - 1``, d starts at 1.  With ``digests`` on: every channel folds time, end offset and
    length of each data element at its sending, arrival and taking (a local poll: sending, arrival, taking in this order); every task folds
    time and state number whenever its state changes to a different one.  (Recovered input folds at its taking only.)
"""

from __future__ import annotations

from enum import IntEnum, IntFlag
from typing import TYPE_CHECKING, NamedTuple, Protocol

from sim.plane.seam.counted import Counted
from sim.plane.seam.spec import Debloating, Edge, Lag, Law, PlaneSpec, RateSegment, Ship, Source, Vertex

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import numpy as np

__all__ = [
    "ANY_NUMBER", "BARRIERS", "MAX_SERIES", "OPEN_COUNTS", "SINGLES", "Counted", "DataPlane", "Debloating", "Edge", "Kind", "Lag", "Law", "Marker", "Notice",
    "PlaneSpec", "Position", "RateSegment", "Ship", "Source", "State", "Trait", "Vertex",
]

BARRIERS = 0
"""The series whose markers bound captures; the control plane numbers its checkpoints in it."""
SINGLES = 2
"""Markers of this series and those above it are reported one by one (M4)."""
MAX_SERIES = 4
ANY_NUMBER = 1 << 62
"""Above every number."""
OPEN_COUNTS = 50
"""Open marker counts per gate (Flink: CheckpointBarrierTracker.MAX_CHECKPOINTS_TO_TRACK)."""


class State(IntEnum):
    """What a task's thread is doing."""

    IDLE = 0  # output available, nothing to read
    BUSY = 1  # serving a record
    SOFT = 2  # between records, output not available
    HARD = 3  # inside a record, waiting for a segment
    HELD = 4  # working for the control plane
    HALTED = 5  # failed, cancelled or finished: nothing happens any more (P1)


class Trait(IntFlag):
    """How a marker travels."""

    NONE = 0
    PRIORITY = 1  # overtakes data, captures what it overtakes
    BLOCKING = 2  # nothing follows it out of the sender's queue before a resume
    ANNOUNCED = 4  # the receiver is told when it arrives, the sender when the last one has left
    FINAL = 8  # nothing ever follows: the channel is closed and counts for every later number


class Marker(NamedTuple):
    number: int  # > 0
    traits: Trait = Trait.NONE
    series: int = BARRIERS


class Kind(IntEnum):
    QUIET = 0  # `until` is reached
    ARRIVED = 1  # first and / or last marker of a number processed on a gate
    ANNOUNCED = 2  # an announced marker lies in a receive queue
    SAFE = 3  # an interrupted task is between records
    LEFT = 4  # all watched markers of a number have left the task's queues
    EXHAUSTED = 5  # a bounded source served its last record
    RECOVERED = 6  # a task that was started anew has read all of its recovered input (P7)
    NONE_LATE = 7  # a task that waited for its late outputs has written the last of them (L6)


class Notice(NamedTuple):
    """Something that needs judgement.  Fields that do not apply are -1 (False)."""

    time: int  # ns
    kind: Kind
    task: int = -1
    gate: int = -1  # position among the task's gates
    series: int = -1
    number: int = -1
    channel: int = -1  # the channel of the marker that caused it
    first: bool = False
    last: bool = False


class Position(NamedTuple):
    """Where a task is in its streams (P2).  Arrays are int64 copies, one entry per channel.

    Of its inputs (gates in order, their channels in order) `consumed`, `records_out`, `captured`; of its outputs (partitions in
    order, their channels in order) `written`, `records_in`, `overtaken`.  Records go into a channel and come out of it.
    """

    served: int  # records served: the index of all its draws
    consumed: np.ndarray  # bytes up to the end of the last record whose service began
    records_out: np.ndarray  # records read so far: the index of the next one
    captured: np.ndarray  # bytes captured on the receiver's side, beyond `consumed`
    written: np.ndarray  # bytes written
    records_in: np.ndarray  # records written: the index of the next one
    overtaken: np.ndarray  # bytes captured in the sender's queue; they end at `written`
    late: int = 0  # of the records served, the last so many have not written their outputs yet (L5)


class DataPlane(Protocol):
    """Moves buffers and markers between tasks.  Decides nothing about them.  Rules as numbered above."""

    now: int

    def advance(self, until: int) -> Notice: ...  # E3
    def forward(self, task: int, marker: Marker, edge: int | None = None) -> int: ...  # M1
    def convert_output(self, task: int, number: int) -> int: ...  # M2
    def prioritise(self, task: int, number: int) -> None: ...  # M3
    def resume(self, task: int, number: int = ANY_NUMBER) -> None: ...  # M5
    def settle(self, task: int, number: int, series: int = BARRIERS) -> None: ...  # M5
    def capture(self, task: int, number: int) -> None: ...  # C1
    def captured(self, task: int) -> tuple[int, int]: ...  # C5
    def release_capture(self, task: int) -> None: ...  # C4
    def interrupt(self, task: int) -> None: ...  # E4
    def hold(self, task: int) -> None: ...  # E4
    def release(self, task: int) -> None: ...  # E4
    def scale(self, task: int, num: int, den: int) -> None: ...  # E4
    def let_go(self, task: int, until: int) -> None: ...  # L5
    def wait_for_late(self, task: int) -> None: ...  # L6
    def halt(self, tasks: Iterable[int]) -> None: ...  # P1
    def position(self, task: int) -> Position: ...  # P2
    def start(self, positions: Mapping[int, Position]) -> None: ...  # P3
    def counted(self, task: int) -> Counted: ...  # P8

    def polled(self, task: int) -> int: ...  # bytes taken from all gates of the task so far (bytes_in of its row)
    def served(self) -> np.ndarray: ...  # this column of `tasks()` alone

    def tasks(self) -> np.ndarray:
        """One row per task: state, served, records_out, bytes_in (taken), bytes_out (written), buffers_in (taken), buffers_out (sent; local: polled),
        busy_ns, idle_ns, soft_ns, hard_ns (all up to now), digest."""

    def channels(self) -> np.ndarray:
        """One row per channel: written, sent, arrived, taken, consumed, records_in, records_out, credit, blocked, queued (elements in the sender's
        queue), received (elements in the receive queue), buffer_bytes, cap_in, cap_out, digest."""

    def partitions(self) -> np.ndarray:
        """One row per partition, by task then edge: task, edge, used, size, available."""

    def gates(self) -> np.ndarray:
        """One row per gate, by task then edge: task, edge, idle_floating, buffer_bytes (last announced)."""

    def check(self) -> None:
        """Raise AssertionError with the story of the violation if credits, buffers, segments or bytes are not conserved."""
