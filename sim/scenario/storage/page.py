"""The page of a kind of storage: its key, its section, and the function that builds the model's options."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sim.model.catalogs.catalog import Catalog
from sim.scenario.grammar.section import Section
from sim.scenario.text.problems import Reading


@dataclass(frozen=True, slots=True)
class StoragePage:
    """A kind of storage, as scenarios write it.  Each file of this room defines one, for a kind of `STORAGES`."""

    name: str  # its key in `storage:`
    section: type[Section]
    build: Callable[[Any, Reading, Path], Any]  # section, where mistakes go, folder of the scenario -> options of the model
    instead: Mapping[str, str] = field(default_factory=dict, hash=False)  # key of flat storage -> its own key for the same

    @property
    def key(self) -> str:
        """The field of the section."""
        return self.name.replace("-", "_")


STORAGE_PAGES: Catalog[StoragePage] = Catalog()
"""Filled by `sim.scenario.storage`, and from outside."""
