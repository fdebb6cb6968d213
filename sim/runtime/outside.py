"""The world outside the job: which transactions it has committed, and which files it can read under the names they were given."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from sim.storage.filesystem import CheckpointStorage
from sim.storage.ledger import FileId, Name

__all__ = ["Outside"]


class Outside:
    def __init__(self, storage: CheckpointStorage) -> None:
        self.storage = storage
        self.committed: set[tuple[int, int, int]] = set()  # (writer, epoch, when it was opened): written again it is another one
        self.files: dict[Hashable, FileId] = {}  # final name -> file

    def stored(self, name: Name, file: FileId) -> None:
        """A file is durable under its final name."""
        self.files[name] = file

    def missing(self, names: Iterable[Hashable]) -> int:
        """How many of these files cannot be read in full."""
        return sum(name not in self.files or not self.storage.files.exists(self.files[name]) for name in names)
