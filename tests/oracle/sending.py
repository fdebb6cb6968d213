"""Sending: what may leave a sender's queue, in which order, and how long it travels (rules S1-S7)."""

from __future__ import annotations

from sim.plane.interface import Marker, NoticeKind, Trait
from tests.oracle.parts import Slice, fold


class Sending:
    """The senders' sides of all channels."""

    def __init__(self, plane):
        self.plane = plane
        self.line_free_at = {}  # by host: when its line has sent everything given to it so far (S5)

    def sendable(self, channel):
        """S1: may the head of the queue leave?"""
        if channel.blocked or not channel.queue:
            return False
        head = channel.queue[0]
        if isinstance(head, Marker):
            return True
        return head.sent < head.end and (head.closed or channel.flush) and (channel.local or channel.credit > 0)

    def offer(self, channel):
        """S1: SEND, if there is something to send; a ready local channel waits for its reader unless a priority marker leads."""
        if not self.sendable(channel):
            return
        if channel.local and channel in channel.gate.ready and not channel.head_is_priority():
            return
        self.plane.append_work(channel)

    def send(self, channel):
        """The work item SEND: one element at most (S2 remote, S4 local)."""
        if not self.sendable(channel):
            return
        if channel.local and not channel.head_is_priority():
            self.plane.receiving.make_ready(channel)
            return
        element = self.take_head(channel)
        if isinstance(element, Slice):
            channel.credit -= 1
        if channel.local and isinstance(element, Marker):
            self.plane.receiving.note(channel, element)
            if not self.plane.thread.pollable(channel):
                # it may have stood there for this marker, then an ordinary one (R4)
                self.plane.receiving.leave_ready(channel)
        else:
            self.transmit(channel, element, self.backlog(channel))
        self.offer(channel)

    def take_head(self, channel):
        """Remove the head, or the filled part of an open buffer, from the queue (S2; T9 for a local channel)."""
        head = channel.queue[0]
        if isinstance(head, Marker):
            channel.queue.popleft()
            if not channel.queue:
                channel.flush = False
            if head.traits & Trait.BLOCKING:
                channel.blocked = True
            self.left(channel, head)
            return head
        data = Slice(channel, head.sent, head.end, head if channel.local else None)
        channel.sent = head.sent = head.end
        channel.writer.buffers_out += 1
        if channel.local:
            head.slices += 1
        if self.plane.spec.digests:
            channel.digest = fold(channel.digest, self.plane.now, data.end, data.length)
        if head.closed:
            channel.queue.popleft()
            self.plane.output.settle(head)
        if not head.closed or not channel.queue:
            channel.flush = False
        return data

    def backlog(self, channel):
        """S3: data buffers left behind."""
        if channel.blocked:
            return 0
        unfinished = channel.open is not None and not channel.flush
        return max(0, len(channel.unsent) - unfinished)

    def left(self, channel, marker):
        """S7: the last watched marker of a number is gone."""
        if not marker.traits & Trait.ANNOUNCED:
            return
        watched = channel.writer.watched
        watched[marker.number] -= 1
        if watched[marker.number] == 0:
            del watched[marker.number]
            self.plane.report(NoticeKind.ANNOUNCED_SENT, channel.writer, number=marker.number)

    def transmit(self, channel, element, backlog):
        """S5: deliver now, or put it on the writer's line."""
        plane, spec = self.plane, self.plane.spec
        arrival = plane.now + spec.latency_ns
        host = 0
        if spec.nic is not None:
            num, den = spec.nic
            host = spec.hosts[channel.writer.number]
            length = element.length if isinstance(element, Slice) else 0
            done = max(plane.now, self.line_free_at.get(host, 0)) - (-length * den // num)  # rounded up
            self.line_free_at[host] = done
            arrival = done + spec.latency_ns
        elif spec.latency_ns == 0:
            plane.receiving.arrive(channel, element, backlog)
            return
        plane.at(arrival, plane.rank_line(host), "arrive", (channel, element, backlog))

    def notify_sender(self, channel, kind, n=0):
        """S6: a message (credit, resume, size) to the sender's end of a channel."""
        if channel.local or self.plane.spec.latency_ns == 0:
            self.be_told(channel, kind, n)
        else:
            self.plane.at(
                self.plane.now + self.plane.spec.latency_ns, self.plane.rank_reverse, "told", (channel, kind, n)
            )

    def be_told(self, channel, kind, n):
        """S6: the message acts."""
        match kind:
            case "credit":
                channel.credit += n
                self.offer(channel)
            case "resume":
                channel.blocked = False
                self.offer(channel)
            case _:
                channel.buffer_bytes = n
