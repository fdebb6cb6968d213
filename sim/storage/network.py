"""Bandwidth: links with max-min fair shares, network interfaces, local disks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from heapq import heappop, heappush
from typing import Protocol

import simpy

from sim.model.storage import Disk
from sim.model.units import SECOND
from sim.storage.ledger import DiskFull, Name
from sim.storage.requests import Attempts, ImmediateEvent, Work

# ---- Max-min fair shares of bandwidth: no flow can gain unless one that is not faster loses.
#
# Progressive filling (Bertsekas and Gallager, Data Networks, 1992, 6.5.2): all flows grow together until a link is
# full, its flows keep what they have, the others grow on.  Whole numbers throughout: a share is rounded down, so a full
# link may have less than one unit per flow left over.


def max_min(paths: Sequence[Sequence[int]], capacity: Sequence[int]) -> list[int]:
    """The rate of each flow; a path is the links it crosses, each once and at least one, and `capacity` is that of the links."""
    rates = [0] * len(paths)
    left = list(capacity)
    crossing: list[list[int]] = [[] for _ in capacity]
    for flow, path in enumerate(paths):
        for link in path:
            crossing[link].append(flow)
    growing = [len(flows) for flows in crossing]
    open_links = [link for link, count in enumerate(growing) if count]
    unsettled = [True] * len(paths)
    while open_links:
        share = min(left[link] // growing[link] for link in open_links)
        for full in [link for link in open_links if left[link] // growing[link] == share]:
            for flow in crossing[full]:
                if unsettled[flow]:
                    unsettled[flow] = False
                    rates[flow] = share
                    for link in paths[flow]:
                        left[link] -= share
                        growing[link] -= 1
        open_links = [link for link in open_links if growing[link]]
    return rates


# ---- Bytes on their way: flows cross links and share them max-min fairly; whenever a flow begins or ends the shares are new.
#
# A link is anything with a bandwidth: the network card of a task manager, a node, a disk.  The bandwidth may change
# with time.

SCALE = 720_720
"""Bandwidths inside are in units of 1 / 720720 B/s.  Any number up to 16 shares a link without rounding; otherwise rounding down loses
less than a byte in a week."""


class Link(Protocol):
    """A link of the network."""

    def bandwidth(self, now: int) -> tuple[int, int | None]:
        """(bandwidth [B/s, times SCALE], time [ns] until which it stays so; None: for ever)."""


class ConstantRateLink:
    """A link whose bandwidth never changes."""

    def __init__(self, bytes_per_second: int) -> None:
        self._bandwidth = bytes_per_second * SCALE, None

    def bandwidth(self, now: int) -> tuple[int, None]:
        return self._bandwidth


class _Flow:
    """A transfer under way."""

    __slots__ = ("done", "group", "left", "links", "number", "rate")

    def __init__(self, number: int, size_bytes: int, links: Sequence[Link], done: ImmediateEvent) -> None:
        self.number = number  # in the order they began
        self.left = size_bytes * SECOND * SCALE  # in rate units times ns
        self.links = links
        self.done = done
        self.rate = 0
        self.group: _Group | None = None  # None: bandwidth is not distributed yet


class _Group:
    """Flows that share links, directly or by way of others.  No flow of another group changes their shares."""

    __slots__ = ("due_ns", "flows", "is_dissolved", "since_ns")

    def __init__(self, flows: Sequence[_Flow], now: int) -> None:
        self.flows = flows
        self.since_ns = now  # the flows' `left` is as of then
        self.is_dissolved = False
        self.due_ns = self._share(now)  # when a flow arrives, or the bandwidth of a link changes; None: never

    def _share(self, now: int) -> int | None:
        """Give each flow its fair share; the next moment at which a flow arrives or a bandwidth changes."""
        numbers: dict[Link, int] = {}
        paths = [[numbers.setdefault(link, len(numbers)) for link in flow.links] for flow in self.flows]
        capacity, due = [], None
        for link in numbers:
            bandwidth, until = link.bandwidth(now)
            capacity.append(bandwidth)
            if until is not None and (due is None or until < due):
                due = until
        for flow, rate in zip(self.flows, max_min(paths, capacity), strict=True):
            flow.rate, flow.group = rate, self
            arrives = now - flow.left // -rate if rate else None  # rounded up
            if arrives is not None and (due is None or arrives < due):
                due = arrives
        return due

    def dissolve(self, now: int) -> Iterator[_Flow]:
        """The flows that have not ended, brought up to the present."""
        self.is_dissolved = True
        passed = now - self.since_ns
        for flow in self.flows:
            if flow.group is self:
                flow.left -= flow.rate * passed
                flow.group = None
                yield flow


class SharedNetwork:
    """The flows under way, and the links that they share.  Flows that begin or end at one instant cost one new distribution.

    Only groups with such a flow are distributed anew: hundreds of uploads from other hosts are not looked at.
    """

    def __init__(self, attempts: Attempts) -> None:
        self.attempts = attempts
        self._crossing: dict[Link, dict[_Flow, None]] = {}  # link in use -> its flows
        self._number = 0  # of flows so far
        self._loose: dict[_Flow, None] = {}  # flows without a group: bandwidth is shared anew in this instant
        self._left: dict[_Group, None] = {}  # groups that a flow has left
        self._dues: list[tuple[int, int, _Group]] = []  # heap: (due, number, group); some are dissolved by now
        self._groups = 0  # so far
        self._changed = False
        self._due_ns: int | None = None  # when a flow arrives, or the bandwidth of a link in use changes
        self._wakes_ns: int | None = None  # the next wake-up there will be

    def transfer(self, size_bytes: int, links: Sequence[Link]) -> Work[None]:
        """Process: transfer bytes across all these links.  Without links, or without bytes, it takes no time."""
        if not links or not size_bytes:
            return
        self._number += 1
        flow = _Flow(self._number, size_bytes, links, self.attempts.pending())
        for link in links:
            self._crossing.setdefault(link, {})[flow] = None
        self._loose[flow] = None
        self._change()
        try:
            yield flow.done
        except BaseException:  # the transfer broke off, or its waiter is gone
            self.attempts.forget(flow.done)
            if flow in self._crossing.get(links[0], ()):
                self._leave(flow)
                self._change()
            raise

    def _leave(self, flow: _Flow) -> None:
        """A flow is over."""
        self._loose.pop(flow, None)
        for link in flow.links:
            flows = self._crossing[link]
            del flows[flow]
            if not flows:
                del self._crossing[link]
        if flow.group is not None:
            self._left[flow.group] = None
            flow.group = None

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
        """Bring the groups that change up to the present, end flows that have arrived, distribute bandwidth anew."""
        now = self.attempts.now
        self._changed = False
        self._loosen(now)
        arrived = sorted((flow for flow in self._loose if flow.left <= 0), key=lambda flow: flow.number)
        for flow in arrived:
            self._leave(flow)
        for flow in arrived:
            self.attempts.fire(flow.done)
        if not self._changed:  # else what follows comes again in this instant
            self._share(now)

    def _loosen(self, now: int) -> None:
        """Dissolve groups that a flow has left, whose links new flows cross, or that are due."""
        links = dict.fromkeys(link for flow in self._loose for link in flow.links)
        crossed = (
            next((flow.group for flow in self._crossing[link] if flow.group is not None), None) for link in links
        )
        changed = self._left | {group: None for group in crossed if group is not None}
        self._left.clear()
        while self._dues and (self._dues[0][2].is_dissolved or self._dues[0][0] <= now):
            changed[heappop(self._dues)[2]] = None
        for group in changed:
            self._loose.update(dict.fromkeys(group.dissolve(now)))

    def _share(self, now: int) -> None:
        """Give each loose flow its fair share, and find the next moment at which a flow arrives or a bandwidth changes."""
        for flows in self._connected():
            group = _Group(flows, now)
            if group.due_ns is not None:
                self._groups += 1
                heappush(self._dues, (group.due_ns, self._groups, group))
        self._loose.clear()
        while self._dues and self._dues[0][2].is_dissolved:
            heappop(self._dues)
        self._due_ns = self._dues[0][0] if self._dues else None
        self._arm()

    def _connected(self) -> Iterator[list[_Flow]]:
        """The loose flows, by the links that they share."""
        left = dict(self._loose)
        while left:
            first, _ = left.popitem()
            found, links = [first], set(first.links)
            ahead = list(first.links)
            while ahead:
                for flow in self._crossing[ahead.pop()]:
                    if flow in left:
                        del left[flow]
                        found.append(flow)
                        fresh = [link for link in flow.links if link not in links]
                        links.update(fresh)
                        ahead += fresh
            yield found

    def _arm(self) -> None:
        """Arm a wake-up no later than the next due time."""
        if self._due_ns is not None and (self._wakes_ns is None or self._due_ns < self._wakes_ns):
            self._wakes_ns = self._due_ns
            self.attempts.env.timeout(self._due_ns - self.attempts.now).callbacks.append(self._wake)


# ---- The local disk of one task manager: a bandwidth that everything on it shares, and space that can run out.


class LocalDisk:
    """The local disk of one task manager, without latency and outages.  A file takes its space as it grows."""

    def __init__(self, attempts: Attempts, options: Disk, link: Link | None) -> None:
        self.options = options
        self.used_bytes = 0
        self.most_used_bytes = 0
        self._network = SharedNetwork(attempts)
        self._links = [] if link is None else [link]

    def open(self, name: Name, host: int) -> _LocalFile:
        return _LocalFile(self, name, host)

    def read(self, size_bytes: int, name: Name, host: int) -> Work[None]:
        yield from self.transfer(size_bytes)

    def remove(self, name: Name, size_bytes: int, host: int) -> Work[None]:
        """Process: takes no time."""
        self.used_bytes -= size_bytes
        yield from self.transfer(0)

    def take(self, size_bytes: int, name: Name, host: int) -> None:
        space = self.options.space_bytes
        if space is not None and self.used_bytes + size_bytes > space:
            free = space - self.used_bytes
            raise DiskFull(
                f"the disk of task manager {host} has {free} B left, {'/'.join(map(str, name))} needs {size_bytes} B more"
            )
        self.used_bytes += size_bytes
        self.most_used_bytes = max(self.most_used_bytes, self.used_bytes)

    def transfer(self, size_bytes: int) -> Work[None]:
        yield from self._network.transfer(size_bytes, self._links)


class _LocalFile:
    """A file on a local disk, while it is written."""

    def __init__(self, disk: LocalDisk, name: Name, host: int) -> None:
        self.disk = disk
        self.name = name
        self.host = host
        self._taken_bytes = 0

    def write(self, size_bytes: int) -> Work[None]:
        self.disk.take(size_bytes, self.name, self.host)
        self._taken_bytes += size_bytes
        yield from self.disk.transfer(size_bytes)

    def close(self) -> Work[None]:
        """Process: takes no time."""
        yield from self.disk.transfer(0)

    def give_up(self) -> None:
        self.disk.used_bytes -= self._taken_bytes
        self._taken_bytes = 0


# ---- Network cards of the task managers, as storage uses them: one link for input and one for output, each shared by all streams.


class NetworkInterfaces:
    """The network cards of all task managers, two links each (host -1: the JobManager).  Without a limit there are no links."""

    def __init__(self, bytes_per_second: int | None) -> None:
        self._rate = bytes_per_second
        self._links: dict[tuple[int, str], Link] = {}

    def out(self, host: int) -> Link | None:
        return self._link(host, "out")

    def into(self, host: int) -> Link | None:
        return self._link(host, "in")

    def _link(self, host: int, way: str) -> Link | None:
        if self._rate is not None and (host, way) not in self._links:
            self._links[host, way] = ConstantRateLink(self._rate)
        return self._links.get((host, way))
