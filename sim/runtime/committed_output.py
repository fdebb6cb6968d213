"""Output as external systems see it: committed transactions, and files that are readable under their final names.

It outlives the job: the next instance goes on where this one ended, perhaps with other numbers for its tasks and channels.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence

from sim.protocol.commit.committables import Committable
from sim.storage.filesystem import CheckpointStorage
from sim.storage.ledger import FileId, Name

_Transaction = tuple[str, int, int, int]
"""Vertex and index of its writer, its epoch, when it was opened: begun again after a failure it is another one."""


class CommittedOutput:
    """The transactions that external systems have committed, and the files that they can read."""

    def __init__(self, storage: CheckpointStorage, names: Sequence[tuple[str, int]]) -> None:
        self.storage = storage
        self.names = names  # (vertex, subtask index) of each task
        self.files: dict[Hashable, FileId] = {}  # final name -> file
        self.covered: dict[int, list[int]] = {}  # writer -> records committed, by input channel
        self.covered_before: dict[int, list[int]] = {}  # by earlier instances of the job
        self._committed: set[_Transaction] = set()
        self._expired: set[_Transaction] = set()
        self._newest_commit: dict[str, int] = {}  # by vertex of the writers: the newest checkpoint that a commit bears
        self.counted_from = 0  # epochs up to this checkpoint count the records of channels that are no more

    def stored(self, name: Name, file: FileId) -> None:
        """A file is durable under its final name."""
        self.files[name] = file

    def missing(self, names: Iterable[Hashable]) -> int:
        """How many of these files cannot be read in full."""
        return sum(name not in self.files or not self.storage.files.exists(self.files[name]) for name in names)

    def has(self, committable: Committable) -> bool:
        """Whether the transaction is visible.  A second commit of it has no effect."""
        return self._transaction(committable) in self._committed

    def settled(self, committable: Committable) -> bool:
        """Whether the transaction is visible, or known to be lost."""
        return self._transaction(committable) in self._committed | self._expired

    def throw_away(self, expired: Iterable[Committable]) -> None:
        self._expired.update(self._transaction(committable) for committable in expired)

    def newest_commit(self, vertex: str) -> int:
        """The newest checkpoint that a commit of what this vertex writes bears; 0: there is none."""
        return self._newest_commit.get(vertex, 0)

    def commit(self, fresh: Iterable[Committable], checkpoint: int) -> None:
        for committable in fresh:
            vertex, _ = self.names[committable.writer]
            self._newest_commit[vertex] = max(checkpoint, self.newest_commit(vertex))
            self._committed.add(self._transaction(committable))
            if committable.epoch > self.counted_from:
                self.covered[committable.writer] = [end for _, end in committable.inputs]

    def go_on(self, before: CommittedOutput, checkpoint: int, stands_at: Mapping[int, list[int]]) -> None:
        """A job begins with a checkpoint of another one; `stands_at`: what each writer had written in it, in records of its input channels.

        With other numbers of tasks or channels, what lies before the beginning counts as committed.
        """
        self.files |= before.files
        self._committed |= before._committed
        self._expired |= before._expired
        self._newest_commit |= before._newest_commit
        renumbered = list(self.names) != list(before.names)
        self.counted_from = checkpoint if renumbered else before.counted_from
        self.covered_before = dict(stands_at) if renumbered else dict(before.covered)
        self.covered |= self.covered_before

    def _transaction(self, committable: Committable) -> _Transaction:
        return (*self.names[committable.writer], committable.epoch, committable.opened_ns)
