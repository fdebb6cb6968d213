"""Transfers that share bandwidth max-min fairly; network interfaces of TaskManagers, and their local disks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from heapq import heappop, heappush
from typing import Protocol

import simpy

from sim.model.storage import Disk
from sim.model.units import SECOND
from sim.storage.ledger import DiskFull, Name
from sim.storage.requests import Attempts, ImmediateEvent, Work

# ---- Max-min fair shares: no flow can get more bandwidth without taking it from a flow that is not faster.
#
# Progressive filling (Bertsekas and Gallager, Data Networks, 1992, 6.5.2): all rates grow together until a link is full.
# Then the rates of its flows are final, and all others continue to grow.  Shares are integers and rounded down, so a full
# link may have less than one unit per flow left.


def max_min(paths: Sequence[Sequence[int]], capacity: Sequence[int]) -> list[int]:
    """Return the max-min fair rate of each flow, in the unit of `capacity`.

    `paths`: for each flow, the indices of the links that it crosses, at least one and without duplicates.  `capacity`: the
    bandwidth of each link.
    """
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


# ---- Flows share the links that they cross. Whenever a flow begins or ends, the shares are computed again.
#
# A link is anything with a bandwidth, which may change over time: a network interface, a node, a disk.

SCALE = 720_720
"""Internal bandwidths are in units of 1 / 720720 B/s, a number that all integers up to 16 divide.

So up to 16 flows share a link without rounding.  With more flows, rounding loses less than a byte per week.
"""


class Link(Protocol):
    """Anything with a bandwidth that flows share: a network interface, a node, a disk."""

    def bandwidth(self, now: int) -> tuple[int, int | None]:
        """Return (bandwidth [B/s x SCALE], time of its next change [ns] or None)."""


class ConstantRateLink:
    """A link with a constant bandwidth."""

    def __init__(self, bytes_per_second: int) -> None:
        self._bandwidth = bytes_per_second * SCALE, None

    def bandwidth(self, now: int) -> tuple[int, None]:
        return self._bandwidth


class _Flow:
    """A transfer in progress."""

    __slots__ = ("done", "group", "left", "links", "number", "rate")

    def __init__(self, number: int, size_bytes: int, links: Sequence[Link], done: ImmediateEvent) -> None:
        self.number = number  # increasing in the order of arrival
        self.left = size_bytes * SECOND * SCALE  # [rate unit x ns]
        self.links = links
        self.done = done
        self.rate = 0
        self.group: _Group | None = None  # None: no rate is assigned yet


class _Group:
    """Flows that are connected by shared links.  Flows of other groups do not affect their rates."""

    __slots__ = ("due_ns", "flows", "is_closed", "since_ns")

    def __init__(self, flows: Sequence[_Flow], now: int) -> None:
        self.flows = flows
        self.since_ns = now  # time for which `left` of the flows is valid
        self.is_closed = False
        self.due_ns = self._share(now)  # time at which a flow ends or a bandwidth changes; None: never

    def _share(self, now: int) -> int | None:
        """Assign each flow its fair share.  Return when the next flow ends or bandwidth changes [ns], or None."""
        numbers: dict[Link, int] = {}
        paths = [[numbers.setdefault(link, len(numbers)) for link in flow.links] for flow in self.flows]
        capacity, due = [], None  # type: list[int], int | None
        for link in numbers:
            bandwidth, until = link.bandwidth(now)
            capacity.append(bandwidth)
            if until is not None:
                due = until if due is None else min(due, until)
        for flow, rate in zip(self.flows, max_min(paths, capacity), strict=True):
            flow.rate, flow.group = rate, self
            if rate:
                ends = now - flow.left // -rate  # rounded up
                due = ends if due is None else min(due, ends)
        return due

    def close(self, now: int) -> Iterator[_Flow]:
        """Close the group: subtract what its flows have transferred until now, and yield those that are still in it."""
        self.is_closed = True
        passed = now - self.since_ns
        for flow in self.flows:
            if flow.group is self:
                flow.left -= flow.rate * passed
                flow.group = None
                yield flow


class SharedNetwork:
    """All transfers in progress.

    Rates are computed once per simulated time, after all transfers that begin or end at that time.  Only the groups of
    these transfers are computed again, not, for example, hundreds of uploads from other TaskManagers.
    """

    def __init__(self, attempts: Attempts) -> None:
        self.attempts = attempts
        self._crossing: dict[Link, dict[_Flow, None]] = {}  # link in use -> its flows
        self._number = 0  # flows so far
        self._loose: dict[_Flow, None] = {}  # flows without a group, which get a rate at the present time
        self._left: dict[_Group, None] = {}  # groups that a flow has left
        self._dues: list[tuple[int, int, _Group]] = []  # heap of (due time, number, group); may contain closed groups
        self._groups = 0  # groups so far
        self._changed = False
        self._due_ns: int | None = None  # when the next flow ends, or a bandwidth in use changes
        self._wakes_ns: int | None = None  # time of the next wake-up; None: no wake-up is scheduled

    def transfer(self, size_bytes: int, links: Sequence[Link]) -> Work[None]:
        """Process: transfer bytes, which cross all links at the same time.  Without links or bytes it takes no time."""
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
        except BaseException:  # an outage, a timeout, or an interrupt of the waiting process
            self.attempts.forget(flow.done)
            if flow in self._crossing.get(links[0], ()):
                self._leave(flow)
                self._change()
            raise

    def _leave(self, flow: _Flow) -> None:
        """Remove a flow from its links and its group."""
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
        """Schedule the computation of rates, after all other changes at the present time."""
        if not self._changed:
            self._changed = True
            self.attempts.env.timeout(0).callbacks.append(lambda _: self._settle())

    def _wake(self, _: simpy.Event) -> None:
        """Handle a wake-up.  If the due time has moved to later, only the next wake-up is scheduled."""
        if self._wakes_ns == self.attempts.now:
            self._wakes_ns = None
            if self._due_ns is not None and self._due_ns <= self.attempts.now:
                if not self._changed:
                    self._settle()
            else:
                self._arm()

    def _settle(self) -> None:
        """Close the groups that change, end completed flows, and compute the rates of all flows without a group."""
        now = self.attempts.now
        self._changed = False
        self._release_idle_links(now)
        arrived = sorted((flow for flow in self._loose if flow.left <= 0), key=lambda flow: flow.number)
        for flow in arrived:
            self._leave(flow)
        for flow in arrived:
            self.attempts.fire(flow.done)
        if not self._changed:  # otherwise this method runs again at the present time
            self._share(now)

    def _release_idle_links(self, now: int) -> None:
        """Close the groups that a flow has left, whose links a new flow crosses, or that are due."""
        links = dict.fromkeys(link for flow in self._loose for link in flow.links)
        crossed = (
            next((flow.group for flow in self._crossing[link] if flow.group is not None), None) for link in links
        )
        changed = self._left | {group: None for group in crossed if group is not None}
        self._left.clear()
        while self._dues and (self._dues[0][2].is_closed or self._dues[0][0] <= now):
            changed[heappop(self._dues)[2]] = None
        for group in changed:
            self._loose.update(dict.fromkeys(group.close(now)))

    def _share(self, now: int) -> None:
        """Form groups of the flows without a group, assign rates, and find the next due time."""
        for flows in self._connected():
            group = _Group(flows, now)
            if group.due_ns is not None:
                self._groups += 1
                heappush(self._dues, (group.due_ns, self._groups, group))
        self._loose.clear()
        while self._dues and self._dues[0][2].is_closed:
            heappop(self._dues)
        self._due_ns = self._dues[0][0] if self._dues else None
        self._arm()

    def _connected(self) -> Iterator[list[_Flow]]:
        """Yield the flows without a group in sets that are connected by shared links."""
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
        """Schedule a wake-up at the next due time, unless an earlier one is scheduled."""
        if self._due_ns is not None and (self._wakes_ns is None or self._due_ns < self._wakes_ns):
            self._wakes_ns = self._due_ns
            self.attempts.env.timeout(self._due_ns - self.attempts.now).callbacks.append(self._wake)


# ---- The local disk of a TaskManager: shared bandwidth and limited space.


class LocalDisk:
    """The local disk of one TaskManager, a `Medium`.

    It has no latency and no outages.  Files take space as they grow.
    """

    def __init__(self, attempts: Attempts, options: Disk, link: Link | None) -> None:
        self.options = options
        self.used_bytes = 0
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
        """Reserve space for bytes of a file.  Raises DiskFull if there is too little space."""
        space = self.options.space_bytes
        if space is not None and self.used_bytes + size_bytes > space:
            free = space - self.used_bytes
            raise DiskFull(
                f"the disk of task manager {host} has {free} B left, {'/'.join(map(str, name))} needs {size_bytes} B more"
            )
        self.used_bytes += size_bytes

    def transfer(self, size_bytes: int) -> Work[None]:
        yield from self._network.transfer(size_bytes, self._links)


class _LocalFile:
    """A file on a local disk that is being written."""

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


# ---- Network interfaces of the TaskManagers: one link for input and one for output, each shared by all storage streams.


class NetworkInterfaces:
    """The network interfaces of all TaskManagers, and of the JobManager (host -1).  If their rate is unlimited, there are no links."""

    def __init__(self, bytes_per_second: int | None) -> None:
        self._rate = bytes_per_second
        self._links: dict[tuple[int, str], Link] = {}

    def out(self, host: int) -> Link | None:
        """Return the link for data that a host sends, or None if it is unlimited."""
        return self._link(host, "out")

    def into(self, host: int) -> Link | None:
        """Return the link for data that a host receives, or None if it is unlimited."""
        return self._link(host, "in")

    def _link(self, host: int, direction: str) -> Link | None:
        if self._rate is None:
            return None
        return self._links.setdefault((host, direction), ConstantRateLink(self._rate))
