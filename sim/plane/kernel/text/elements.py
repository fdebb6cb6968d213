"""Buffers, markers and messages as linked elements out of one pool, and the sender's queue made of them.

The pool is bounded by segments and credits; the markers in it are counted, so that the owner of the pool can make room before a
verb adds more.
"""

from sim.plane.kernel.rows import PlaneState
from sim.plane.kernel.text.names import PRIORITY


def fetch(w: PlaneState, c: int) -> None:  # noqa: ARG001 - the compiler has its own
    """Channel c is needed soon: compiled, its hot lines are on their way from memory; the interpreter has no use for that."""
    return


def new_element(w: PlaneState, c: int, kind: int) -> int:
    """An element of channel c out of the pool."""
    g = w.g
    e = g.free
    if e >= 0:
        g.free = w.elements[e].next
    else:
        e = g.fresh
        g.fresh += 1
    element = w.elements[e]
    element.next = -1
    element.channel = c
    element.kind = kind
    return e


def free_element(w: PlaneState, e: int) -> None:
    w.elements[e].next = w.g.free
    w.g.free = e


def new_marker(w: PlaneState, c: int, series: int, number: int, traits: int) -> int:
    e = new_element(w, c, series)
    element = w.elements[e]
    element.number = number
    element.traits = traits
    w.g.markers += 1
    return e


def free_marker(w: PlaneState, e: int) -> None:
    free_element(w, e)
    w.g.markers -= 1


def append_element(w: PlaneState, c: int, e: int) -> None:
    """At the end of the sender's queue."""
    ch = w.channels[c]
    if ch.head < 0:
        ch.head = e
    else:
        w.elements[ch.tail].next = e
    ch.tail = e
    ch.queued += 1


def remove_after(w: PlaneState, c: int, before: int, e: int) -> None:
    """Out of the sender's queue; `before` is the element ahead of e, -1 if e is the head."""
    ch = w.channels[c]
    after = w.elements[e].next
    if before < 0:
        ch.head = after
    else:
        w.elements[before].next = after
    if after < 0:
        ch.tail = before
    w.elements[e].next = -1
    ch.queued -= 1


def take_head(w: PlaneState, c: int) -> int:
    """The head leaves the sender's queue; an emptied queue has nothing to flush (S2)."""
    ch = w.channels[c]
    e = ch.head
    remove_after(w, c, -1, e)
    if ch.queued == 0:
        ch.flush = 0
    return e


def insert_priority(w: PlaneState, c: int, e: int) -> None:
    """Before all ordinary elements, behind priority markers already there (M1)."""
    ch = w.channels[c]
    before = -1
    i = ch.head
    while i >= 0 and is_priority(w, i):
        before = i
        i = w.elements[i].next
    w.elements[e].next = i
    if before < 0:
        ch.head = e
    else:
        w.elements[before].next = e
    if i < 0:
        ch.tail = e
    ch.queued += 1


def is_priority(w: PlaneState, e: int) -> bool:
    return w.elements[e].kind >= 0 and (w.elements[e].traits & PRIORITY) != 0


def append_urgent(w: PlaneState, t: int, e: int) -> None:
    """At the end of the task's priority list."""
    task = w.tasks[t]
    w.elements[e].next = -1
    if task.urgent_head < 0:
        task.urgent_head = e
    else:
        w.elements[task.urgent_tail].next = e
    task.urgent_tail = e
