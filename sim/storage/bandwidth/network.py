"""Bytes on their way: flows cross links and share them max-min fairly; whenever a flow begins or ends the shares are new.

A link is anything with a bandwidth: the network card of a task manager, a node, a disk.  The bandwidth may change with time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import simpy

from sim.storage.attempts import Attempts, Done
from sim.storage.bandwidth.max_min import max_min
from sim.storage.work import Work
from sim.units import SECOND

SCALE = 720_720
"""Bandwidths inside are in units of 1 / 720720 B/s.  Any number up to 16 shares a link without rounding; otherwise rounding down loses
less than a byte in a week."""


class Link(Protocol):
    """A link of the network."""

    def bandwidth(self, now: int) -> tuple[int, int | None]:
        """(bandwidth [B/s, times SCALE], time [ns] until which it stays so; None: for ever)."""


class Steady:
    """A link whose bandwidth never changes."""

    def __init__(self, bytes_per_second: int) -> None:
        self._bandwidth = bytes_per_second * SCALE, None

    def bandwidth(self, now: int) -> tuple[int, None]:  # noqa: ARG002
        return self._bandwidth


class _Flow:
    """A transfer under way."""

    __slots__ = ("done", "left", "links", "rate")

    def __init__(self, size_bytes: int, links: Sequence[Link], done: Done) -> None:
        self.left = size_bytes * SECOND * SCALE  # in rate units times ns
        self.links = links
        self.done = done
        self.rate = 0


class SharedNetwork:
    """The flows under way, and the links that they share.  Flows that begin or end at one instant cost one new distribution."""

    def __init__(self, attempts: Attempts) -> None:
        self.attempts = attempts
        self._flows: dict[_Flow, None] = {}  # in the order they began
        self._since_ns = 0  # the flows' `left` is as of then
        self._changed = False
        self._due_ns: int | None = None  # when a flow arrives, or the bandwidth of a link in use changes
        self._wakes_ns: int | None = None  # the next wake-up there will be

    def transfer(self, size_bytes: int, links: Sequence[Link]) -> Work[None]:
        """Process: transfer bytes across all these links.  Without links, or without bytes, it takes no time."""
        if not links or not size_bytes:
            return
        flow = _Flow(size_bytes, links, self.attempts.pending())
        self._flows[flow] = None
        self._change()
        try:
            yield flow.done
        except BaseException:  # the transfer broke off, or its waiter is gone
            self.attempts.forget(flow.done)
            if flow in self._flows:
                del self._flows[flow]
                self._change()
            raise

    def _change(self) -> None:
        """A flow began or ended.  Bandwidth is shared anew once per instant, behind all other changes of it."""
        if not self._changed:
            self._changed = True
            self.attempts.env.timeout(0).callbacks.append(lambda _: self._settle())

    def _wake(self, _: simpy.Event) -> None:
        """A wake-up.  It is too early if what it was armed for is due later by now."""
        if self._wakes_ns == self.attempts.now:
            self._wakes_ns = None
            if self._due_ns is not None and self._due_ns <= self.attempts.now:
                if not self._changed:
                    self._settle()
            else:
                self._arm()

    def _settle(self) -> None:
        """Bring every flow up to the present, end those that have arrived, distribute bandwidth anew."""
        now = self.attempts.now
        self._changed = False
        passed, self._since_ns = now - self._since_ns, now
        arrived = []
        for flow in self._flows:
            flow.left -= flow.rate * passed
            if flow.left <= 0:
                arrived.append(flow)
        for flow in arrived:
            del self._flows[flow]
        for flow in arrived:
            self.attempts.fire(flow.done)
        if not self._changed:  # else what follows comes again in this instant
            self._share(now)

    def _share(self, now: int) -> None:
        """Give each flow its fair share, and find the next moment at which a flow arrives or a bandwidth changes."""
        numbers: dict[Link, int] = {}
        paths = [[numbers.setdefault(link, len(numbers)) for link in flow.links] for flow in self._flows]
        capacity, due = [], None
        for link in numbers:
            bandwidth, until = link.bandwidth(now)
            capacity.append(bandwidth)
            if until is not None and (due is None or until < due):
                due = until
        for flow, rate in zip(self._flows, max_min(paths, capacity), strict=True):
            flow.rate = rate
            arrives = now - flow.left // -rate if rate else None  # rounded up
            if arrives is not None and (due is None or arrives < due):
                due = arrives
        self._due_ns = due
        self._arm()

    def _arm(self) -> None:
        """Arm a wake-up no later than the next due time."""
        if self._due_ns is not None and (self._wakes_ns is None or self._due_ns < self._wakes_ns):
            self._wakes_ns = self._due_ns
            self.attempts.env.timeout(self._due_ns - self.attempts.now).callbacks.append(self._wake)
