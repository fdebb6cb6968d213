"""Network cards of the task managers, as storage uses them: one link for input and one for output, each shared by all streams."""

from __future__ import annotations

from sim.storage.bandwidth.network import Link, Steady


class Cards:
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
            self._links[host, way] = Steady(self._rate)
        return self._links.get((host, way))
