"""What a kind of storage has to do: take bytes, make them durable, give them back, remove them.  Every verb is a process.

A medium knows time and space; names, ids and what becomes of a file are noted by `sim.storage.filesystem` and the
ledger.
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
        """Bytes follow one another; some kinds send them only when it is closed."""

    def close(self) -> Work[None]:
        """Everything written is durable when this ends."""

    def give_up(self) -> None:
        """Give the file up: its resources are free again."""


class Medium(Protocol):
    """A medium that holds files."""

    def open(self, name: Name, host: int) -> OutputFile:
        """Takes no time: the file is created with the first bytes, or when it is closed."""

    def read(self, size_bytes: int, name: Name, host: int) -> Work[None]: ...

    def remove(self, name: Name, size_bytes: int, host: int) -> Work[None]: ...


@dataclass(frozen=True, slots=True)
class MediumPlugin:
    """A kind of storage: each file of `media` defines one, for a kind of `STORAGES`."""

    name: str
    # with the options of the kind, and the seed of the run
    make: Callable[[Attempts, SharedNetwork, NetworkInterfaces, Any, int], Medium]


MEDIA: Catalog[MediumPlugin] = Catalog()
"""Filled by `sim.storage`, and from outside."""
