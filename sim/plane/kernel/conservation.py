"""What can never be lost: records, credits, buffers, segments, bytes, places in lists.  Reads the rows of a kernel, changes nothing.

The pages of the sum are the lists the rows keep: sender's queues, lines, receive queues, priority lists, current buffers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, cast

import numpy as np

from sim.model.randomness.streams import Stream, draw
from sim.plane.kernel.rows import Channel, Element, World
from sim.plane.kernel.text.names import BROADCAST, CREDIT, DATA, FLOATING, LOOSE, OWNED
from sim.plane.seam.interface import PlaneSpec, State

__all__ = ["check_world"]


class Books:
    """Who holds what at this moment, by channel."""

    def __init__(self, w: World) -> None:
        self.w = w
        self.travelling: Counter[int] = Counter()  # data on a forward line
        self.announced: Counter[int] = Counter()  # credits on the reverse line
        self.tables: dict[int, np.ndarray[Any, Any]] = {}  # sizes of records, by where they stand
        for i, line in enumerate(w.lines):
            for element in self.chain(line.head):
                if i == 0 and element.kind == CREDIT:
                    self.announced[element.channel] += element.number
                elif i > 0 and element.kind == DATA:
                    self.travelling[element.channel] += 1

    def chain(self, e: int) -> Iterator[Element]:
        while e >= 0:
            yield self.w.elements[e]
            e = self.w.elements[e].next

    def floating(self, ch: Channel) -> int:
        """Floating buffers the channel holds, whatever is in them."""
        received = sum(element.traits for element in self.chain(ch.first) if element.kind == DATA) if ch.received else 0
        return ch.fl_free + received + (ch.current & FLOATING != 0) + ch.owed_floating

    def sizes(self, ch: Channel) -> tuple[int, int]:
        """Bytes of the records behind the reader's next one, and of the last of them: it is being written, or will be the next (B1)."""
        gate, count = self.w.gates[ch.gate], ch.records_out - ch.records_in
        if gate.size_n == 1:
            size = self.w.words[gate.size_table]
            return size * count, size
        if gate.size_table not in self.tables:
            self.tables[gate.size_table] = np.array(self.w.words[gate.size_table : gate.size_table + gate.size_n], np.int64)
        drawn: Any = draw(Stream(ch.stride, ch.offset), cast(Any, np.arange(ch.records_in, ch.records_out + 1)))
        sizes = self.tables[gate.size_table][(drawn * gate.size_n) >> 32]
        return int(sizes[1:].sum()), int(sizes[-1])

    def ensure(self, holds: bool, what: str, row: object) -> None:
        if not holds:
            raise AssertionError(f"{what}, at {self.w.g.now} ns: {row}")


def check_world(w: World, spec: PlaneSpec) -> None:
    """Raise AssertionError with the story of the violation."""
    books = Books(w)
    for c, ch in enumerate(w.channels):
        in_order = ch.written >= ch.sent >= ch.arrived >= ch.taken >= ch.consumed >= 0
        books.ensure(in_order, f"offsets of channel {c} out of order", ch)
        check_queues(books, c, ch)
        shut = w.gates[ch.gate].shut == 1
        books.ensure(not shut or ch.blocked == 1, f"channel {c} is not blocked though its partition was not requested", ch)
        if ch.local:
            books.ensure(ch.sent == ch.arrived and (shut or ch.arrived == ch.taken), f"bytes on the wire of local channel {c}", ch)
        else:
            check_credits(books, c, ch, spec)
        segments = ch.buffers + (ch.current & OWNED != 0) + ch.owed_segments
        books.ensure(segments == ch.count, f"channel {c} holds {segments} segments and counts {ch.count}", ch)
    check_records(books)
    check_pools(books, spec)
    check_lists(books)


def check_queues(books: Books, c: int, ch: Channel) -> None:
    queue = list(books.chain(ch.head)) if ch.queued else []
    buffers = [element for element in queue if element.kind == DATA]
    books.ensure((len(queue), len(buffers)) == (ch.queued, ch.buffers), f"sender's queue of channel {c} miscounted", ch)
    ends = [element.end for element in buffers]
    if ch.full_at:
        books.ensure(bool(queue) and queue[-1].kind == DATA, f"the open buffer of channel {c} is not the last element", ch)
        ends[-1] = ch.written
    books.ensure(ends == sorted(ends), f"buffers of channel {c} out of order", ch)
    books.ensure((ends or [ch.sent])[-1] == ch.written, f"bytes of channel {c} lost between the queue and the wire", ch)
    received = list(books.chain(ch.first)) if ch.received else []
    buffers = [element for element in received if element.kind == DATA]
    books.ensure((len(received), len(buffers)) == (ch.received, ch.received_buffers), f"receive queue of channel {c} miscounted", ch)
    if books.w.gates[ch.gate].shut:  # what is there to be taken is recovered input (P6)
        books.ensure(not received and (ch.arrived > ch.taken) == ch.ready, f"recovered input of channel {c} lost", ch)
    else:
        books.ensure((buffers[-1].end if buffers else ch.taken) == ch.arrived, f"bytes of channel {c} lost in the receive queue", ch)


def check_records(books: Books) -> None:
    """Every copy made is in a channel, and every byte of a channel is a record's."""
    w = books.w
    for p, part in enumerate(w.partitions):
        writer = w.tasks[part.task]
        mine = range(part.first_channel, part.first_channel + part.channels)
        shared = part.ship == BROADCAST
        counted = sum(w.channels[c].records_out for c in (mine[:1] if shared else mine))
        writing = writer.emitting == 1 and writer.cursor == p
        missing = part.copies - counted - part.uncounted - writing
        books.ensure(missing == 0, f"partition {p} made {missing} copies that no channel counts", part)
        for c in mine:
            rest = writer.rest if writing and (shared or c == writer.target) else 0
            check_stream(books, c, rest)


def check_stream(books: Books, c: int, rest: int) -> None:
    """Behind the reader's next record lie those written, and the one being written, of which `rest` bytes are missing."""
    w, ch = books.w, books.w.channels[c]
    books.ensure(ch.records_in <= ch.records_out, f"channel {c} has more records read than written", ch)
    behind, size = books.sizes(ch)
    missing = ch.record_end + behind - ch.written
    halted = w.tasks[ch.writer].state == State.HALTED  # perhaps inside a record
    complete = 0 < missing <= size if halted else missing == (rest or size)
    books.ensure(complete, f"records of channel {c} lost: {missing} bytes missing at the end of the stream, not {rest or size}", ch)


def check_credits(books: Books, c: int, ch: Channel, spec: PlaneSpec) -> None:
    promised, free = ch.credit + books.announced[c] + books.travelling[c], ch.ex_free + ch.fl_free
    books.ensure(promised == free, f"channel {c} has credits for {promised} buffers, {free} are free", ch)
    segments = free + ch.received_buffers + (ch.current != 0 and ch.current & LOOSE == 0) + ch.owed_exclusive + ch.owed_floating
    own = segments - books.floating(ch)
    books.ensure(own == spec.exclusive, f"channel {c} has {own} exclusive buffers of {spec.exclusive}", ch)


def check_pools(books: Books, spec: PlaneSpec) -> None:
    w = books.w
    used: Counter[int] = Counter()
    full: Counter[int] = Counter()
    floating: Counter[int] = Counter()
    for ch in w.channels:
        used[ch.partition] += ch.count
        full[ch.partition] += ch.count >= spec.max_per_channel
        if not ch.local:
            floating[ch.gate] += books.floating(ch)
    for p, part in enumerate(w.partitions):
        if part.ship == BROADCAST:
            channels = w.channels[part.first_channel : part.first_channel + part.channels]
            used[p] = max(ch.count for ch in channels)
            full[p] = used[p] >= spec.max_per_channel
        books.ensure((used[p], full[p]) == (part.used, part.full), f"segments of partition {p} miscounted", part)
        books.ensure(part.used <= max(part.limit, part.recovered), f"partition {p} beyond its overdraft", part)
    for i, gate in enumerate(w.gates):
        books.ensure(floating[i] + gate.idle == spec.floating, f"floating buffers of gate {i} lost", gate)


def check_lists(books: Books) -> None:
    """Nobody sleeps beside work: a ready channel stands in its gate's list, its gate in its task's."""
    w = books.w
    for i, gate in enumerate(w.gates):
        ready = 0
        c = gate.ready_head
        while c >= 0:
            ready += 1
            books.ensure(w.channels[c].ready == 1, f"channel {c} stands in the list of gate {i} without knowing", gate)
            c = w.channels[c].ready_after
        known = sum(w.channels[c].ready for c in w.words[gate.first_channel : gate.first_channel + gate.channels])
        books.ensure(ready == known, f"ready channels of gate {i} lost", gate)
        books.ensure(gate.listed == (ready > 0), f"gate {i} is in or out of its task's list by mistake", gate)
        task = w.tasks[gate.task]
        asleep = task.state == State.IDLE and not task.listed and not task.waits_for_late
        books.ensure(not (asleep and ready), f"task {gate.task} sleeps beside a ready channel", gate)
