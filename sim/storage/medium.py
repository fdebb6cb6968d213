"""The interface of storage media, and the catalog of media: write, close, read and remove files.

A medium models how long operations take and how much space files need.  Ids and states of files are tracked by
`sim.storage.filesystem` and the ledger.  Methods that return `Work` are processes: they take simulated time, and raise
StorageFailed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from sim.model.catalogs import Catalog
from sim.storage.ledger import Name
from sim.storage.network import NetworkInterfaces, SharedNetwork
from sim.storage.requests import Attempts, Work


class OutputFile(Protocol):
    """A file that is being written."""

    def write(self, size_bytes: int) -> Work[None]:
        """Append bytes.  Some media only transfer them when the file is closed."""

    def close(self) -> Work[None]:
        """Make the file durable."""

    def give_up(self) -> None:
        """Abandon the file and free its resources."""


class Medium(Protocol):
    """A storage medium."""

    def open(self, name: Name, host: int) -> OutputFile:
        """Open a file for writing, in no time.  It is created with its first bytes, or when it is closed.

        `host`: TaskManager that writes it, or -1 for the JobManager.
        """

    def read(self, size_bytes: int, name: Name, host: int) -> Work[None]:
        """Read `size_bytes` of a file."""
        ...

    def remove(self, name: Name, size_bytes: int, host: int) -> Work[None]:
        """Delete a file.  `size_bytes`: its size, or 0 if it was not closed."""
        ...


@dataclass(frozen=True, slots=True)
class MediumPlugin:
    """A kind of storage.  `sim.storage.media` and plug-ins define them."""

    name: str  # name of its options in `STORAGES`
    # (attempts, network, network interfaces, options of the kind, seed of the run) -> medium
    make: Callable[[Attempts, SharedNetwork, NetworkInterfaces, Any, int], Medium]


MEDIA: Catalog[MediumPlugin] = Catalog()
"""All kinds of storage.  `sim.storage` adds those of `sim.storage.media`; plug-ins may add others."""
