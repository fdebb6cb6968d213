"""Markers processed by a task are counted per gate and number (M4)."""

from sim.plane.rows import PlaneState
from sim.plane.text.basics import (
    BITS,
    BLOCKING,
    COUNT_HEAD,
    COUNTS,
    FINAL,
    NOTE_ARRIVED,
    ONE_BY_ONE,
    free_marker,
    report,
)
from sim.plane.text.channels import resume_sender


def process_marker(w: PlaneState, c: int, e: int) -> None:
    """A marker of channel c has reached the task."""
    element = w.elements[e]
    series = element.kind
    number = element.number
    traits = element.traits
    free_marker(w, e)
    ch = w.channels[c]
    if (traits & BLOCKING) != 0:
        ch.held_back = 1
    if number <= w.words[w.gates[ch.gate].settled + series]:
        if (traits & BLOCKING) != 0:  # but not what an earlier marker holds back
            resume_sender(w, c)
        return
    if (traits & FINAL) != 0:
        close_channel(w, c)
    count_marker(w, c, series, number)
    if (traits & FINAL) != 0:
        count_closed(w, c)


def count_marker(w: PlaneState, c: int, series: int, number: int) -> None:
    """The marker into the count of its number, a new one if need be; reported by itself in the upper series."""
    words = w.words
    gate = w.gates[w.channels[c].gate]
    if series >= ONE_BY_ONE:
        closed = 0
        if gate.closed == gate.channels:
            closed = 1
        report(w, NOTE_ARRIVED, gate.task, gate.place, series, number, c, 1, closed)
        return
    first = 0
    at = find_count(w, w.channels[c].gate, series, number)
    if at < 0:
        first = 1
        at = open_count(w, w.channels[c].gate, series, number)
    add_to_count(w, at, w.channels[c].place)
    last = 0
    if words[at + 2] == gate.channels:
        last = 1
        drop_count(w, w.channels[c].gate, at)
    if first == 1 or last == 1:
        report(w, NOTE_ARRIVED, gate.task, gate.place, series, number, c, first, last)


def find_count(w: PlaneState, i: int, series: int, number: int) -> int:
    """Where in `words` the open count stands; -1: there is none."""
    gate = w.gates[i]
    for k in range(gate.open_counts):
        at = gate.counts + k * gate.count_words
        if w.words[at] == series and w.words[at + 1] == number:
            return at
    return -1


def open_count(w: PlaneState, i: int, series: int, number: int) -> int:
    """A new count begins with the closed channels; the oldest makes room and is obsolete from now on."""
    words = w.words
    gate = w.gates[i]
    if gate.open_counts == COUNTS:
        words[gate.settled + words[gate.counts]] = words[gate.counts + 1]
        drop_count(w, i, gate.counts)
    at = gate.counts + gate.open_counts * gate.count_words
    gate.open_counts += 1
    words[at] = series
    words[at + 1] = number
    words[at + 2] = gate.closed
    for k in range(gate.count_words - COUNT_HEAD):
        words[at + COUNT_HEAD + k] = words[gate.closed_bits + k]
    return at


def drop_count(w: PlaneState, i: int, at: int) -> None:
    """The younger ones move up."""
    words = w.words
    gate = w.gates[i]
    gate.open_counts -= 1
    end = gate.counts + gate.open_counts * gate.count_words
    while at < end:
        words[at] = words[at + gate.count_words]
        at += 1


def add_to_count(w: PlaneState, at: int, place: int) -> bool:
    """A channel counts once; True if it had not been counted."""
    i = at + COUNT_HEAD + place // BITS
    bit = 1 << (place % BITS)
    if (w.words[i] & bit) != 0:
        return False
    w.words[i] |= bit
    w.words[at + 2] += 1
    return True


def close_channel(w: PlaneState, c: int) -> None:
    """Nothing follows a FINAL marker: the channel counts for every later number."""
    gate = w.gates[w.channels[c].gate]
    place = w.channels[c].place
    i = gate.closed_bits + place // BITS
    bit = 1 << (place % BITS)
    if (w.words[i] & bit) == 0:
        w.words[i] |= bit
        gate.closed += 1


def count_closed(w: PlaneState, c: int) -> None:
    """The closed channel into every open count; those it completes are reported, oldest first."""
    words = w.words
    i = w.channels[c].gate
    gate = w.gates[i]
    k = 0
    while k < gate.open_counts:
        at = gate.counts + k * gate.count_words
        if add_to_count(w, at, w.channels[c].place) and words[at + 2] == gate.channels:
            series = words[at]
            number = words[at + 1]
            drop_count(w, i, at)
            report(w, NOTE_ARRIVED, gate.task, gate.place, series, number, c, 0, 1)
        else:
            k += 1


def settle_gate(w: PlaneState, i: int, series: int, number: int) -> None:
    """Numbers up to this one are obsolete on the gate (M5)."""
    words = w.words
    gate = w.gates[i]
    words[gate.settled + series] = number
    k = 0
    while k < gate.open_counts:
        at = gate.counts + k * gate.count_words
        if words[at] == series and words[at + 1] <= number:
            drop_count(w, i, at)
        else:
            k += 1
