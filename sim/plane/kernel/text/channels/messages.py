"""Messages to the sender (S6) and the lines on which everything delayed travels (S5)."""

from sim.plane.kernel.rows import PlaneState
from sim.plane.kernel.text.channels.offering import offer
from sim.plane.kernel.text.elements import free_element, new_element
from sim.plane.kernel.text.names import CREDIT, RESIZE, RESUME
from sim.plane.kernel.text.tree import cancel, schedule


def put_on_line(w: PlaneState, i: int, e: int, time: int) -> None:
    """Element e arrives at `time`; line i ranks behind the tasks."""
    line = w.lines[i]
    w.elements[e].time = time
    w.elements[e].next = -1
    if line.head < 0:
        line.head = e
        schedule(w, w.g.tasks + i, time)
    else:
        w.elements[line.tail].next = e
    line.tail = e


def take_off_line(w: PlaneState, i: int) -> int:
    """The element that arrives now; the next one sets the line's event."""
    line = w.lines[i]
    e = line.head
    line.head = w.elements[e].next
    w.elements[e].next = -1
    if line.head < 0:
        line.tail = -1
        cancel(w, w.g.tasks + i)
    else:
        schedule(w, w.g.tasks + i, w.elements[line.head].time)
    return e


def tell_sender(w: PlaneState, c: int, kind: int, number: int) -> None:
    """A message from the reader of channel c to its writer's side."""
    if w.g.latency == 0 or w.channels[c].local == 1:
        act(w, c, kind, number)
    else:
        e = new_element(w, c, kind)
        w.elements[e].number = number
        put_on_line(w, 0, e, w.g.now + w.g.latency)


def act(w: PlaneState, c: int, kind: int, number: int) -> None:
    """What a message does when it is there."""
    ch = w.channels[c]
    if kind == CREDIT:
        ch.credit += number
        offer(w, c)
    elif kind == RESUME:
        ch.blocked = 0
        offer(w, c)
    elif kind == RESIZE:
        ch.buffer_bytes = number


def reverse_line_event(w: PlaneState) -> None:
    e = take_off_line(w, 0)
    element = w.elements[e]
    c = element.channel
    kind = element.kind
    number = element.number
    free_element(w, e)
    act(w, c, kind, number)


def resume_sender(w: PlaneState, c: int) -> None:
    """M5, for one channel."""
    ch = w.channels[c]
    if ch.held_back == 1:
        ch.held_back = 0
        tell_sender(w, c, RESUME, 0)
