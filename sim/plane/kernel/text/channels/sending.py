"""From the sender's queue to the wire, or, on a local channel, to the reader's attention (S2-S5, S7)."""

from sim.plane.kernel.rows import PlaneState
from sim.plane.kernel.text.channels.messages import put_on_line, take_off_line
from sim.plane.kernel.text.channels.offering import make_ready, offer, pollable, sendable, withdraw
from sim.plane.kernel.text.channels.output import retire
from sim.plane.kernel.text.channels.receiving import arrive, deliver_marker
from sim.plane.kernel.text.elements import free_element, is_priority, new_element, take_head
from sim.plane.kernel.text.names import ANNOUNCED, BLOCKING, DATA, NOTE_LEFT
from sim.plane.kernel.text.work import fold_channel, report


def send(w: PlaneState, c: int) -> None:
    """SEND c."""
    ch = w.channels[c]
    ch.listed = 0
    if not sendable(w, c):
        return
    if ch.local == 1:
        send_local(w, c)
        return
    before = ch.sent
    e = ch.head
    if w.elements[e].kind == DATA:
        ch.credit -= 1
        e = send_data(w, c, e)
    else:
        send_marker(w, c, e)
    w.elements[e].backlog = backlog(w, c)
    transmit(w, e, ch.sent - before)
    offer(w, c)


def send_data(w: PlaneState, c: int, head: int) -> int:
    """The head, or a slice of it while it is open, leaves the queue; returns what travels."""
    ch = w.channels[c]
    w.partitions[ch.partition].buffers_out += 1
    e = head
    before = ch.sent
    if head == ch.tail and ch.full_at > 0:
        e = new_element(w, c, DATA)
        w.elements[e].end = ch.written
        ch.sent = ch.written
        ch.flush = 0
    else:
        take_head(w, c)
        ch.buffers -= 1
        ch.sent = w.elements[head].end
        retire(w, c, ch.sent)
    if w.g.digests == 1:
        fold_channel(w, c, ch.sent, ch.sent - before)
    return e


def send_marker(w: PlaneState, c: int, e: int) -> None:
    """A marker leaves the queue: a blocking one closes the door behind it, a watched one is missed."""
    ch = w.channels[c]
    take_head(w, c)
    element = w.elements[e]
    if (element.traits & BLOCKING) != 0:
        ch.blocked = 1
    if (element.traits & ANNOUNCED) != 0:
        miss(w, ch.writer, element.number)


def miss(w: PlaneState, t: int, number: int) -> None:
    """One watched marker less; LEFT with the last of its number (S7)."""
    task = w.tasks[t]
    before = -1
    e = task.watches
    while e >= 0 and w.elements[e].number != number:
        before = e
        e = w.elements[e].next
    if e < 0:
        return
    watch = w.elements[e]
    watch.backlog -= 1
    if watch.backlog == 0:
        if before < 0:
            task.watches = watch.next
        else:
            w.elements[before].next = watch.next
        free_element(w, e)
        w.g.markers -= 1
        report(w, NOTE_LEFT, t, -1, -1, number, -1, 0, 0)


def backlog(w: PlaneState, c: int) -> int:
    """S3: the data left behind, without an open buffer that is not to be flushed."""
    ch = w.channels[c]
    if ch.blocked == 1:
        return 0
    n = ch.buffers
    if ch.full_at > 0 and ch.flush == 0:
        n -= 1
    return n


def transmit(w: PlaneState, e: int, length: int) -> None:
    """S5."""
    g = w.g
    if g.nic_num > 0:
        i = w.tasks[w.channels[w.elements[e].channel].writer].line
        line = w.lines[i]
        if line.free_at < g.now:
            line.free_at = g.now
        line.free_at += (length * g.nic_den + g.nic_num - 1) // g.nic_num
        put_on_line(w, i, e, line.free_at + g.latency)
    elif g.latency > 0:
        put_on_line(w, 1, e, g.now + g.latency)
    else:
        arrive(w, e)


def forward_line_event(w: PlaneState, i: int) -> None:
    arrive(w, take_off_line(w, i))


def send_local(w: PlaneState, c: int) -> None:
    """A priority marker is delivered; anything else waits for its reader (S4)."""
    ch = w.channels[c]
    e = ch.head
    if is_priority(w, e):
        send_marker(w, c, e)
        deliver_marker(w, c, e)
        if ch.ready == 1 and not pollable(w, c):
            withdraw(w, c)
        offer(w, c)
    else:
        make_ready(w, c)
