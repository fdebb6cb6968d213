"""Catalogs: records by name, in the order used by documents and advice.

Everything that can be extended has one: barrier modes, state backends, ship strategies, kinds of storage.  Catalogs are
read at each use, so a record that a plug-in adds is known everywhere.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator, Mapping
from importlib import import_module
from types import ModuleType
from typing import Protocol, TypeVar


class Named(Protocol):
    """A record with a name."""

    @property
    def name(self) -> str: ...


R = TypeVar("R", bound=Named)
T = TypeVar("T")
ADDITIONS = [0]
"""Number of records ever added, which invalidates caches of values derived from catalogs."""


def find_definitions(package: ModuleType, kind: type[T]) -> Iterator[T]:
    """Yield each instance of `kind` that is defined in a module or in the modules of a package, once even if it is imported again."""
    found: dict[int, T] = {}
    names = [f"{package.__name__}.{info.name}" for info in pkgutil.iter_modules(getattr(package, "__path__", ()))]
    for module in map(import_module, names or [package.__name__]):
        values = list(vars(module).values())
        found |= {id(value): value for value in values if isinstance(value, kind)}
    yield from found.values()


class Catalog(Mapping[str, R]):
    """Records by name."""

    def __init__(self, *records: R) -> None:
        self._records: dict[str, R] = {}
        for record in records:
            self.add(record)

    def add(self, record: R) -> R:
        """Append a record.  Raises an error if the name is already in use."""
        if record.name in self._records:
            raise ValueError(f"'{record.name}' is in the catalog already")
        self._records[record.name] = record
        ADDITIONS[0] += 1
        return record

    def __getitem__(self, name: str) -> R:
        return self._records[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._records)

    def __len__(self) -> int:
        return len(self._records)
