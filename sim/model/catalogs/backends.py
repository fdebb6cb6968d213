"""The state backends: one record each, with the facts that other rooms need.

What a backend does is a file of `sim.state`; documents, Flink's keys, advice and envelope read the record.
"""

from __future__ import annotations

from dataclasses import dataclass

from sim.model.catalogs.catalog import Catalog
from sim.units import MS, SECOND


@dataclass(frozen=True, slots=True)
class Measured:
    """A constant of a backend as recordings have it: the median, and the range."""

    likely: int
    least: int
    most: int
    source: str


ROCKSDB_FREEZE = Measured(
    50 * MS, 20 * MS, 80 * MS,
    "sync duration less the flushed bytes at 200 MB/s: 20 to 80 ms in 8 runs on local disks (Checkpoint::CreateCheckpoint syncs its files)",
)  # fmt: skip
"""Median of 20, 29, 35, 42, 60, 68, 78 and 80 ms: tests/data/users-jobs J3 and R4, tests/data/backends, and one report."""
ROCKSDB_UPLOAD = Measured(
    40 * MS, 0, 150 * MS,
    "async duration less a file's latency and bytes: 0 to 150 ms in 8 runs on local disks (RocksDBStateUploader: a pool of threads each)",
)  # fmt: skip
"""Median of 0, 40, 42, 45, 50, 114, 116 and 150 ms: of the same runs."""
HEAP_SERIALIZE = Measured(
    380_000_000, 150_000_000, 500_000_000,
    "asynchronous part of 11 to 225 MB in one stream to a local disk, 8 jobs (CopyOnWriteStateTableSnapshot writes entry by entry)",
)  # fmt: skip
"""Bytes per second and core: tests/data/users-jobs J1, J2, R6, tests/data/heap-restores, tests/data/backends."""
_ENTRY_NS, _BYTES_PER_SECOND = 220, 400_000_000
"""Serialising an entry, beside its bytes, and these: 112 B 220 MB/s, 672 B 382 MB/s, 1 kB 361 MB/s, 10 kB 390 MB/s."""


def heap_rate(entry: float) -> float:
    """Bytes per second at which a core serialises entries of so many bytes."""
    return entry * SECOND / (_ENTRY_NS + entry * SECOND / _BYTES_PER_SECOND)


@dataclass(frozen=True, slots=True)
class BackendKind:
    """A state backend."""

    name: str  # as a scenario and Flink's state.backend.type write it
    keeps_files: bool = False  # on the local disk: a snapshot links them, an incremental one writes the new ones only
    sections: tuple[str, ...] = ()  # keys of `state:` that only it reads
    older: tuple[str, ...] = ()  # names of it in state.backend of 1.x (StateBackendLoader)
    answers_to: tuple[str, ...] = ()  # parts of the names of its classes, in small letters


BACKENDS: Catalog[BackendKind] = Catalog(
    BackendKind(
        "hashmap",
        sections=("serialize", "ttl-checks", "ttl-filter"),
        older=("filesystem", "jobmanager"),
        answers_to=("hashmap", "fsstate", "memory"),
    ),
    BackendKind("rocksdb", keeps_files=True, sections=("lsm",), answers_to=("rocksdb",)),
)
"""The first one is the default."""


def backend_named(text: str) -> str | None:
    """The backend that Flink calls so: by a name of its configuration, or by a class or its factory.  None: there is none here."""
    word = text.strip().lower()
    is_class = word.endswith(("backend", "backendfactory"))
    for kind in BACKENDS.values():
        if word in (kind.name, *kind.older) or (is_class and any(part in word.rpartition(".")[2] for part in kind.answers_to)):
            return kind.name
    return None
