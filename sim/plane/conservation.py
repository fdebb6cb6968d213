"""What can never be lost: credits, buffers, segments, bytes, places in lists.  Reads the rows of a kernel's world, changes nothing.

The pages of the sum are the lists the rows keep: sender's queues, lines, receive queues, priority lists, current buffers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from sim.plane.interface import PlaneSpec, State
from sim.plane.kernel.names import CREDIT, DATA
from sim.plane.rows import Channel, Element, World

__all__ = ["check_world"]


class Books:
    """Who holds what at this moment, by channel."""

    def __init__(self, w: World) -> None:
        self.w = w
        self.travelling: Counter[int] = Counter()  # data on a forward line
        self.announced: Counter[int] = Counter()  # credits on the reverse line
        self.current: dict[int, int] = {}  # channel -> task
        for i, line in enumerate(w.lines):
            for element in self.chain(line.head):
                if i == 0 and element.kind == CREDIT:
                    self.announced[element.channel] += element.number
                elif i > 0 and element.kind == DATA:
                    self.travelling[element.channel] += 1
        for t, task in enumerate(w.tasks):
            if task.current >= 0:
                self.current[task.current] = t

    def chain(self, e: int) -> Iterator[Element]:
        while e >= 0:
            yield self.w.elements[e]
            e = self.w.elements[e].next

    def floating(self, c: int, ch: Channel) -> int:
        """Floating buffers the channel holds, whatever is in them."""
        received = sum(element.traits for element in self.chain(ch.first) if element.kind == DATA) if ch.received else 0
        current = self.w.tasks[self.current[c]].current_floating if c in self.current else 0
        return ch.fl_free + received + current + ch.owed_floating


def check_world(w: World, spec: PlaneSpec) -> None:
    """Raise AssertionError with the story of the violation."""
    books = Books(w)
    for c, ch in enumerate(w.channels):
        story = f"channel {c} at {w.g.now} ns: {ch}"
        assert ch.written >= ch.sent >= ch.arrived >= ch.taken >= ch.consumed >= 0, f"offsets out of order, {story}"
        check_queues(books, ch, story)
        if ch.local:
            assert ch.sent == ch.arrived == ch.taken, f"bytes on a local wire, {story}"
        else:
            check_credits(books, c, ch, spec, story)
        check_segments(books, c, ch, story)
    check_pools(books, spec)
    check_threads(w)


def check_queues(books: Books, ch: Channel, story: str) -> None:
    queue = list(books.chain(ch.head)) if ch.queued else []
    buffers = [element for element in queue if element.kind == DATA]
    assert (len(queue), len(buffers)) == (ch.queued, ch.buffers), f"sender's queue miscounted, {story}"
    ends = [element.end for element in buffers]
    if ch.full_at:
        assert queue[-1].kind == DATA, f"the open buffer is not the last element, {story}"
        ends[-1] = ch.written
    assert ends == sorted(ends), f"buffers out of order, {story}"
    assert (ends or [ch.sent])[-1] == ch.written, f"bytes lost between the queue and the wire, {story}"
    received = list(books.chain(ch.first)) if ch.received else []
    buffers = [element for element in received if element.kind == DATA]
    assert (len(received), len(buffers)) == (ch.received, ch.received_buffers), f"receive queue miscounted, {story}"
    assert (buffers[-1].end if buffers else ch.taken) == ch.arrived, f"bytes lost in the receive queue, {story}"


def check_credits(books: Books, c: int, ch: Channel, spec: PlaneSpec, story: str) -> None:
    promised = ch.credit + books.announced[c] + books.travelling[c]
    assert promised == ch.ex_free + ch.fl_free, f"credits for {promised} buffers, {ch.ex_free + ch.fl_free} are free, {story}"
    held = ch.ex_free + ch.fl_free + ch.received_buffers + (c in books.current) + ch.owed_exclusive + ch.owed_floating
    own = held - books.floating(c, ch)
    assert own == spec.exclusive, f"{own} exclusive buffers of {spec.exclusive}, {story}"


def check_segments(books: Books, c: int, ch: Channel, story: str) -> None:
    with_reader = 1 if ch.local and c in books.current and books.w.tasks[books.current[c]].current_owns else 0
    held = ch.buffers + with_reader + ch.owed_segments
    assert held == ch.count, f"{held} segments held, {ch.count} counted, {story}"


def check_pools(books: Books, spec: PlaneSpec) -> None:
    w = books.w
    used: Counter[int] = Counter()
    full: Counter[int] = Counter()
    floating: Counter[int] = Counter()
    for c, ch in enumerate(w.channels):
        used[ch.partition] += ch.count
        full[ch.partition] += ch.count >= spec.max_per_channel
        if not ch.local:
            floating[ch.gate] += books.floating(c, ch)
    for p, part in enumerate(w.partitions):
        assert (used[p], full[p]) == (part.used, part.full), f"segments of partition {p} miscounted at {w.g.now} ns: {part}"
        assert part.used <= part.limit, f"partition {p} beyond its overdraft at {w.g.now} ns: {part}"
    for i, gate in enumerate(w.gates):
        assert floating[i] + gate.idle == spec.floating, f"floating buffers of gate {i} lost at {w.g.now} ns: {gate}"


def check_threads(w: World) -> None:
    """Nobody sleeps beside work: a ready channel stands in its gate's list, its gate in its task's."""
    for i, gate in enumerate(w.gates):
        story = f"gate {i} at {w.g.now} ns: {gate}"
        ready = 0
        c = gate.ready_head
        while c >= 0:
            ready += 1
            assert w.channels[c].ready == 1, f"channel {c} stands in a list without knowing, {story}"
            c = w.channels[c].ready_after
        known = sum(w.channels[c].ready for c in w.words[gate.first_channel : gate.first_channel + gate.channels])
        assert ready == known, f"ready channels lost, {story}"
        assert gate.listed == (ready > 0), f"gate in or out of its task's list by mistake, {story}"
        task = w.tasks[gate.task]
        asleep = task.state == State.IDLE and not task.listed
        assert not (asleep and ready), f"task {gate.task} sleeps beside a ready channel, {story}"
