"""The interface of storage media: write, close, read and remove files.  Methods that take time are processes.

A medium models time and space.  `sim.storage.filesystem` and the ledger track the ids and states of files.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from sim.model.catalog import Catalog
from sim.storage.ledger import Name
from sim.storage.network import NetworkInterfaces, SharedNetwork
from sim.storage.requests import Attempts, Work


class OutputFile(Protocol):
    """A file that is being written."""

    def write(self, size_bytes: int) -> Work[None]:
        """Append bytes.  Some media transfer them only when the file is closed."""

    def close(self) -> Work[None]:
        """Make the file durable."""

    def give_up(self) -> None:
        """Abandon the file and free its resources."""


class Medium(Protocol):
    """A storage medium."""

    def open(self, name: Name, host: int) -> OutputFile:
        """Open a file for writing, in no time.  It is created with its first bytes, or when it is closed."""

    def read(self, size_bytes: int, name: Name, host: int) -> Work[None]: ...

    def remove(self, name: Name, size_bytes: int, host: int) -> Work[None]: ...


@dataclass(frozen=True, slots=True)
class MediumPlugin:
    """A kind of storage, with the name of its record in `STORAGES`.  Each module of `media` defines one."""

    name: str
    # (attempts, network, network interfaces, options of the kind, seed of the run) -> medium
    make: Callable[[Attempts, SharedNetwork, NetworkInterfaces, Any, int], Medium]


MEDIA: Catalog[MediumPlugin] = Catalog()
"""All media.  `sim.storage` adds those of `sim.storage.media`; plug-ins may add others."""
