"""A catalog: records by name, in an order that documents and advice keep.

Everything that can be added to has one: ways barriers travel, state backends, ways to ship records, kinds of storage.  Who needs to know
what there is reads the catalog when asked, so a record that is added from outside counts everywhere.
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
"""How many records catalogs were given: what is read off all of them is kept until the next one."""


def pages(package: ModuleType, kind: type[T]) -> Iterator[T]:
    """What the files of a folder define of this kind, file by file: a file that is added counts, and no list names it."""
    found: dict[int, T] = {}
    for info in pkgutil.iter_modules(package.__path__):
        values = vars(import_module(f"{package.__name__}.{info.name}")).values()
        found |= {id(value): value for value in values if isinstance(value, kind)}
    yield from found.values()


class Catalog(Mapping[str, R]):
    """Records by name."""

    def __init__(self, *records: R) -> None:
        self._records: dict[str, R] = {}
        for record in records:
            self.add(record)

    def add(self, record: R) -> R:
        """Takes the last place; a name that is there already is a mistake."""
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
