"""Check that the rows of a kernel conserve records, bytes, buffers, segments and credits, and that its lists are complete.

`check_state` compares the counters in the rows with sums over queues, lines and current buffers.  Each invariant is
checked for all rows at once, and all lists are followed in parallel, because a job has hundreds of channels per task.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple, cast

import numpy as np

from sim.model.randomness import Stream, draw
from sim.plane.assembly import Column, column, sum_by_owner
from sim.plane.interface import PlaneSpec, ThreadState
from sim.plane.rows import General, PlaneState
from sim.plane.text.basics import BROADCAST, CREDIT, DATA, FLOATING, LOOSE, OWNED

Mask = np.ndarray[Any, np.dtype[np.bool_]]
_BLOCK = 1_000_000
"""Maximum number of records whose sizes are drawn at once."""


class Columns:
    """The fields of one kind of rows as arrays.  Each field is converted once, when it is first used."""

    def __init__(self, rows: Any) -> None:
        self.rows = rows
        self._read: dict[str, Column] = {}

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, name: str) -> Column:
        if name not in self._read:
            self._read[name] = (
                column(self.rows, name) if isinstance(self.rows, list | General) else self.rows[name].copy()
            )
        return self._read[name]


class Queues(NamedTuple):
    """The queues of all channels, on one side: columns with one entry per channel."""

    elements: Column
    buffers: Column  # data elements
    in_order: Mask  # whether the ends of its buffers never decrease
    end: Column  # end offset of the last buffer; -1 if there is none
    ends_with_data: Mask
    traits: Column  # sum over the buffers: in receive queues, the number of floating ones


class Books:
    """The state of a plane at one moment as columns, and sums over its queues and lines."""

    def __init__(self, state: PlaneState, spec: PlaneSpec) -> None:
        self.state, self.spec = state, spec
        self.now = int(column(state.g, "now")[0])
        self.tasks, self.partitions, self.gates = Columns(state.tasks), Columns(state.partitions), Columns(state.gates)
        self.channels, self.elements, self.lines = (
            Columns(state.channels),
            Columns(state.elements),
            Columns(state.lines),
        )
        self.shut = self.gates["shut"][self.channels["gate"]] == 1
        self.remote = self.channels["local"] == 0

    def sending(self) -> Queues:
        """Return the senders' queues.  An open buffer ends at the offset `written` of its channel."""
        ch = self.channels
        return self._queues(np.where(ch["queued"] > 0, ch["head"], -1), np.where(ch["full_at"] > 0, ch["written"], -1))

    def receiving(self) -> Queues:
        """Return the receive queues."""
        ch = self.channels
        return self._queues(np.where(ch["received"] > 0, ch["first"], -1), np.full(len(ch), -1))

    def floating(self, received: Queues) -> Column:
        """Return the number of floating buffers that each channel holds, full or empty."""
        ch = self.channels
        held: Column = ch["fl_free"] + received.traits + (ch["current"] & FLOATING != 0) + ch["owed_floating"]
        return held

    @cached_property
    def promised(self) -> Column:
        """By channel: the credits of the writer, plus credits on their way to it, plus buffers on their way to the reader."""
        promised = self.channels["credit"].astype(np.int64)
        for i, head in enumerate(self.lines["head"]):
            line = self._line(int(head))
            kind, channel = self.elements["kind"][line], self.elements["channel"][line]
            if i == 0:
                announced = kind == CREDIT
                np.add.at(promised, channel[announced], self.elements["number"][line[announced]])
            else:
                np.add.at(promised, channel[kind == DATA], 1)
        return promised

    def _line(self, e: int) -> Column:
        """Return the elements of a linked list, starting at e (-1: empty)."""
        following, line = self.elements["next"], []
        while e >= 0:
            line.append(e)
            e = int(following[e])
        return np.array(line, np.int64)

    def _queues(self, heads: Column, open_ends: Column) -> Queues:
        """Follow the queues from their heads.  `open_ends` has the end of the open buffer of each channel, or -1."""
        n = len(heads)
        elements, buffers, traits = cast(list[Column], list(np.zeros((3, n), np.int32)))
        found = Queues(elements, buffers, np.ones(n, bool), np.full(n, -1), np.zeros(n, bool), traits)
        for owners, here in followed(heads, self.elements["next"]):
            is_data = self.elements["kind"][here] == DATA
            found.elements[owners] += 1
            found.ends_with_data[owners] = is_data
            owners, here = owners[is_data], here[is_data]  # only buffers
            is_open = (self.elements["next"][here] < 0) & (open_ends[owners] >= 0)
            ends = np.where(is_open, open_ends[owners], self.elements["end"][here])
            found.buffers[owners] += 1
            found.in_order[owners] &= ends >= found.end[owners]
            found.end[owners] = ends
            found.traits[owners] += self.elements["traits"][here]
        return found

    def sizes(self) -> tuple[Column, Column]:
        """Return two columns by channel: the bytes of the records after the reader's next one, and those of the last of them.

        The last one is being written, or will be written next (B1)."""
        ch, gate = self.channels, self.channels["gate"]
        table, n, words = self.gates["size_table"], self.gates["size_n"], np.asarray(self.state.words)
        count = ch["records_out"] - ch["records_in"]
        last = words[table][gate]
        behind = last * count
        for block in blocks(np.flatnonzero((n > 1)[gate] & (count >= 0)), count):
            channel = np.repeat(block, count[block] + 1)
            first = np.cumsum(count[block] + 1) - (count[block] + 1)  # where the records of a channel begin
            k = ch["records_in"][channel] + np.arange(len(channel)) - np.repeat(first, count[block] + 1)
            drawn: Any = draw(Stream(cast(Any, ch["stride"][channel]), cast(Any, ch["offset"][channel])), cast(Any, k))
            sizes = words[table[gate[channel]] + ((drawn * n[gate[channel]]) >> 32)]
            last[block] = sizes[first + count[block]]
            behind[block] = np.add.reduceat(sizes, first) - sizes[first]
        return behind, last

    def ensure(self, holds: Mask, what: Callable[[int], str], rows: Columns) -> None:
        """Raise AssertionError with the first row for which the condition does not hold.  `what(row number)` is the message."""
        if holds.all():
            return
        first = int(np.flatnonzero(~holds)[0])
        row = rows.rows[first]
        story = dict(zip(row.dtype.names or (), row.item(), strict=True)) if isinstance(row, np.void) else row
        raise AssertionError(f"{what(first)}, at {self.now} ns: {story}")


def followed(heads: Column, following: Column) -> Iterator[tuple[Column, Column]]:
    """Follow all linked lists in parallel.  In each step yield (numbers of the lists that have not ended, their current elements)."""
    owners = np.flatnonzero(heads >= 0)
    here = heads[owners]
    while len(owners):
        yield owners, here
        here = following[here]
        linked = here >= 0
        owners, here = owners[linked], here[linked]


def blocks(rows: Column, count: Column) -> Iterator[Column]:
    """Yield the rows in blocks with about `_BLOCK` records each.  `count` has the number of records of each row."""
    ends = np.cumsum(count[rows] + 1)
    for part in np.split(rows, np.searchsorted(ends, np.arange(_BLOCK, ends[-1], _BLOCK))) if len(rows) else ():
        if len(part):
            yield part


def check_state(state: PlaneState, spec: PlaneSpec) -> None:
    """Raise AssertionError with a description of the first violated invariant."""
    books = Books(state, spec)
    check_offsets(books)
    check_senders(books, books.sending())
    received = books.receiving()
    check_receivers(books, received)
    floating = books.floating(received)
    del received  # its columns have an entry per channel, and take a tenth of the memory of a check
    check_credits(books, floating)
    check_segments(books)
    check_records(books)
    check_pools(books, floating)
    check_lists(books)


def check_offsets(books: Books) -> None:
    """Check that consumed <= taken <= arrived <= sent <= written on each channel."""
    ch, shut = books.channels, books.shut
    offsets = [ch[name] for name in ("written", "sent", "arrived", "taken", "consumed")]
    in_order = ch["consumed"] >= 0
    for before, after in pairwise(offsets):
        in_order = in_order & (before >= after)
    books.ensure(in_order, lambda c: f"offsets of channel {c} out of order", ch)
    requested = ~shut | (ch["blocked"] == 1)
    books.ensure(requested, lambda c: f"channel {c} is not blocked though its partition was not requested", ch)


def check_senders(books: Books, queue: Queues) -> None:
    """Check the counters of the senders' queues, and that the bytes in them end at the offset `written`."""
    ch = books.channels
    counted = (queue.elements == ch["queued"]) & (queue.buffers == ch["buffers"])
    books.ensure(counted, lambda c: f"sender's queue of channel {c} miscounted", ch)
    last = (ch["full_at"] == 0) | queue.ends_with_data
    books.ensure(last, lambda c: f"the open buffer of channel {c} is not the last element", ch)
    books.ensure(queue.in_order, lambda c: f"buffers of channel {c} out of order", ch)
    connected = np.where(queue.buffers > 0, queue.end, ch["sent"]) == ch["written"]
    books.ensure(connected, lambda c: f"bytes of channel {c} lost between the queue and the wire", ch)


def check_receivers(books: Books, queue: Queues) -> None:
    """Check the counters of the receive queues, and that the bytes in them end at the offset `arrived`."""
    ch = books.channels
    counted = (queue.elements == ch["received"]) & (queue.buffers == ch["received_buffers"])
    books.ensure(counted, lambda c: f"receive queue of channel {c} miscounted", ch)
    left = ch["recovered"] > ch["taken"]
    nothing_else = (queue.elements == 0) & (left == ch["ready"])  # a gate that is shut has only recovered input (P6)
    known = np.where(books.shut, nothing_else, ~left | (ch["ready"] == 1))
    books.ensure(known, lambda c: f"recovered input of channel {c} lost", ch)
    recovered_to = np.maximum(ch["taken"], ch["recovered"])
    connected = np.where(queue.buffers > 0, queue.end, recovered_to) == ch["arrived"]
    books.ensure(connected, lambda c: f"bytes of channel {c} lost in the receive queue", ch)
    at_once = (ch["sent"] == ch["arrived"]) & (ch["arrived"] == recovered_to)
    books.ensure(books.remote | at_once, lambda c: f"bytes on the wire of local channel {c}", ch)


def check_credits(books: Books, floating: Column) -> None:
    """Check that credits match the free buffers of the reader, and that no exclusive buffer is lost."""
    ch, spec, promised = books.channels, books.spec, books.promised
    free = ch["ex_free"] + ch["fl_free"]
    matching = ~books.remote | (promised == free)
    books.ensure(matching, lambda c: f"channel {c} has credits for {promised[c]} buffers, {free[c]} are free", ch)
    reading = (ch["current"] != 0) & (ch["current"] & LOOSE == 0)
    own = free + ch["received_buffers"] + reading + ch["owed_exclusive"] + ch["owed_floating"] - floating
    kept = ~books.remote | (own == spec.exclusive)
    books.ensure(kept, lambda c: f"channel {c} has {own[c]} exclusive buffers of {spec.exclusive}", ch)


def check_segments(books: Books) -> None:
    """Check that each channel counts the segments that hold its data."""
    ch = books.channels
    segments = ch["buffers"] + (ch["current"] & OWNED != 0) + ch["owed_segments"]
    books.ensure(
        segments == ch["count"], lambda c: f"channel {c} holds {segments[c]} segments and counts {ch['count'][c]}", ch
    )


def check_records(books: Books) -> None:
    """Check that each copy of a record is counted by a channel, and that each byte of a channel belongs to a record."""
    ch, parts, tasks = books.channels, books.partitions, books.tasks
    shared = parts["ship"] == BROADCAST
    counted = sum_by_owner(len(parts), ch["partition"], ch["records_out"])
    counted[shared] = ch["records_out"][parts["first_channel"][shared]]
    writing = (tasks["emitting"][parts["task"]] == 1) & (tasks["cursor"][parts["task"]] == np.arange(len(parts)))
    missing = parts["copies"] - counted - parts["uncounted"] - writing
    books.ensure(missing == 0, lambda p: f"partition {p} made {missing[p]} copies that no channel counts", parts)
    part, writer = ch["partition"], ch["writer"]
    being_written = writing[part] & (shared[part] | (np.arange(len(ch)) == tasks["target"][writer]))
    check_streams(books, np.where(being_written, tasks["rest"][writer], 0))
    read = sum_by_owner(len(books.gates), ch["gate"], ch["records_in"])
    books.ensure(
        read == books.gates["records_in"],
        lambda i: f"records read through gate {i} miscounted: they are {read[i]}",
        books.gates,
    )


def check_streams(books: Books, rest: Column) -> None:
    """Check the sizes of records: those after the reader's next one end at the offset `written`.

    `rest` has the missing bytes of the record that is being written to each channel, or 0.
    """
    ch = books.channels
    known = ch["records_in"] <= ch["records_out"]
    books.ensure(known, lambda c: f"channel {c} has more records read than written", ch)
    behind, size = books.sizes()
    missing, expected = ch["record_end"] + behind - ch["written"], np.where(rest > 0, rest, size)
    halted = books.tasks["state"][ch["writer"]] == ThreadState.HALTED  # possibly within a record
    complete = np.where(halted, (missing > 0) & (missing <= size), missing == expected)
    books.ensure(
        complete,
        lambda c: (
            f"records of channel {c} lost: {missing[c]} bytes missing at the end of the stream, not {expected[c]}"
        ),
        ch,
    )


def check_pools(books: Books, floating: Column) -> None:
    """Check the segments in use of each partition, its overdraft limit, and the floating buffers of each gate."""
    ch, parts, gates, spec = books.channels, books.partitions, books.gates, books.spec
    n, is_full = len(parts), ch["count"] >= spec.max_per_channel
    used, full = (
        sum_by_owner(n, ch["partition"], ch["count"]),
        sum_by_owner(n, ch["partition"], is_full.astype(np.int64)),
    )
    most = np.zeros(n, np.int64)
    np.maximum.at(most, ch["partition"], ch["count"])
    shared = parts["ship"] == BROADCAST
    used, full = np.where(shared, most, used), np.where(shared, most >= spec.max_per_channel, full)
    counted = (used == parts["used"]) & (full == parts["full"])
    books.ensure(counted, lambda p: f"segments of partition {p} miscounted", parts)
    within = parts["used"] <= np.maximum(parts["limit"], parts["recovered"])
    books.ensure(within, lambda p: f"partition {p} beyond its overdraft", parts)
    held = sum_by_owner(len(gates), ch["gate"][books.remote], floating[books.remote])
    books.ensure(held + gates["idle"] == spec.floating, lambda i: f"floating buffers of gate {i} lost", gates)


def check_lists(books: Books) -> None:
    """Check that no task is idle while it has work.

    Each ready channel must be in the list of its gate, and the gate in the list of its task.
    """
    ch, gates, tasks = books.channels, books.gates, books.tasks
    ready = np.zeros(len(gates), np.int64)
    for owners, here in followed(gates["ready_head"], ch["ready_after"]):
        ready[owners] += 1
        unaware = np.zeros(len(gates), np.int64)
        unaware[owners] = np.where(ch["ready"][here] == 1, -1, here) + 1
        books.ensure(
            unaware == 0,
            lambda i: f"channel {unaware[i] - 1} stands in the list of gate {i} without knowing",  # noqa: B023
            gates,
        )  # `ensure` calls the lambda before the next iteration
    known = sum_by_owner(len(gates), ch["gate"], ch["ready"])
    books.ensure(ready == known, lambda i: f"ready channels of gate {i} lost", gates)
    books.ensure(
        gates["listed"] == (ready > 0), lambda i: f"gate {i} is in or out of its task's list by mistake", gates
    )
    reader = gates["task"]
    asleep = (
        (tasks["state"][reader] == ThreadState.IDLE)
        & (tasks["listed"][reader] == 0)
        & (tasks["waits_for_late"][reader] == 0)
    )
    books.ensure(~asleep | (ready == 0), lambda i: f"task {reader[i]} sleeps beside a ready channel", gates)
