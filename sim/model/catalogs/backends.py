"""The state backends: one record each, with the facts that other rooms need.

What a backend does is a file of `sim.state`; documents, Flink's keys, advice and envelope read the record.
"""

from __future__ import annotations

from dataclasses import dataclass

from sim.model.catalogs.catalog import Catalog


@dataclass(frozen=True, slots=True)
class BackendKind:
    """A state backend."""

    name: str  # as a scenario and Flink's state.backend.type write it
    keeps_files: bool = False  # on the local disk: a snapshot links them, an incremental one writes the new ones only
    sections: tuple[str, ...] = ()  # keys of `state:` that only it reads
    answers_to: tuple[str, ...] = ()  # parts of the names that recordings of Flink call it by


BACKENDS: Catalog[BackendKind] = Catalog(
    BackendKind("hashmap", sections=("serialize", "ttl-checks", "ttl-filter"), answers_to=("hashmap", "fsstate", "memory", "filesystem")),
    BackendKind("rocksdb", keeps_files=True, sections=("lsm",), answers_to=("rocksdb",)),
)
"""The first one is the default."""
