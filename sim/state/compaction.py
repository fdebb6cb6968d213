"""The background thread that compacts: it serves trees one compaction at a time, in the order they asked.

RocksDB takes the threads of `Env::Default()`, which all databases of a process share.  With `state.backend.rocksdb.thread.num` = 2
one of them compacts (DBImpl::GetBGJobLimits, Env::IncBackgroundThreadsIfNeeded): one thread for all slots of a task manager.
Which tables are merged is `sim.state.lsm`'s business.
"""

from __future__ import annotations

from typing import Protocol


class Compacts(Protocol):
    """A tree, as the compaction thread sees it."""

    def compact(self, now_ns: int) -> int | None:
        """Begin what is due; when it will be over, or None: nothing is due."""

    def compacted(self) -> None:
        """The compaction is over."""


class CompactionThread:
    """The compaction thread of one task manager, with the trees that wait for it.

    Trees report their times.  A compaction that is over by then is finished, and the next one begins at its end.
    """

    def __init__(self) -> None:
        self._waiting: list[Compacts] = []
        self._served: Compacts | None = None
        self._ends_ns = 0
        self._now_ns = 0  # a tree that is behind the others asks now, not then

    def advance(self, now_ns: int) -> None:
        self._now_ns = max(self._now_ns, now_ns)
        while self._served is not None and self._ends_ns <= self._now_ns:
            tree, self._served = self._served, None
            tree.compacted()
            self._next(self._ends_ns)

    def ask(self, tree: Compacts, now_ns: int) -> None:
        """A compaction of this tree is due."""
        if tree is not self._served and tree not in self._waiting:
            self._waiting.append(tree)
        if self._served is None:
            self._next(now_ns)

    def forget(self, tree: Compacts) -> None:
        """Forget a tree that is gone, or was restored."""
        if tree in self._waiting:
            self._waiting.remove(tree)
        if tree is self._served:
            self._served = None
            self._next(self._now_ns)

    def _next(self, now_ns: int) -> None:
        while self._served is None and self._waiting:
            tree = self._waiting.pop(0)
            ends_ns = tree.compact(now_ns)
            if ends_ns is not None:
                self._served, self._ends_ns = tree, ends_ns
