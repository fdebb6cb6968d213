"""The local disk of one task manager: a bandwidth that everything on it shares, and space that can run out."""

from __future__ import annotations

from sim.model.storage import Disk
from sim.storage.attempts import Attempts
from sim.storage.bandwidth.network import Link, SharedNetwork
from sim.storage.failures import DiskFull
from sim.storage.ledger import Name
from sim.storage.work import Work


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

    def read(self, size_bytes: int, name: Name, host: int) -> Work[None]:  # noqa: ARG002
        yield from self.transfer(size_bytes)

    def remove(self, name: Name, size_bytes: int, host: int) -> Work[None]:  # noqa: ARG002
        """Process: takes no time."""
        self.used_bytes -= size_bytes
        yield from self.transfer(0)

    def take(self, size_bytes: int, name: Name, host: int) -> None:
        space = self.options.space_bytes
        if space is not None and self.used_bytes + size_bytes > space:
            free = space - self.used_bytes
            raise DiskFull(f"the disk of task manager {host} has {free} B left, {'/'.join(map(str, name))} needs {size_bytes} B more")
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
