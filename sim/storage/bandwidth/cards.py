"""Network cards of the task managers, as far as storage uses them: what comes in and what goes out, each shared by all streams."""

from __future__ import annotations

from sim.storage.bandwidth.network import Link, Steady


class Cards:
    """Two links per task manager (host -1: the JobManager); none if nothing limits them."""

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
