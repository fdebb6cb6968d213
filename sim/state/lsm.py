"""A leveled tree as RocksDB keeps it, in expected sizes: memtable, flushes, and compactions by one background thread.

Level 0 holds flushed memtables, each over all keys; a level below holds tables with key ranges of their own.  Level 0 is compacted when
it has enough files, another level when it is larger than its target; the level that is the fullest goes first (LeveledCompactionPicker).
Not modelled: stalls of writing when compaction falls behind, several compactions at once, tombstones.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from sim.model.state import Lsm
from sim.state.tables import Table, distinct, merged

__all__ = ["LsmTree", "TreeImage"]

_SECOND = 1_000_000_000


@dataclass(frozen=True, slots=True)
class _Compaction:
    """Tables being merged; the live set changes when it ends."""

    ends_ns: int
    into: int  # level
    inputs: tuple[Table, ...]
    outputs: tuple[Table, ...]


class TreeImage(NamedTuple):
    """A tree without a memtable."""

    levels: tuple[tuple[Table, ...], ...]
    edits: int
    next_number: int


class LsmTree:
    """The tree of one subtask: `keys` entries of `entry_bytes`, all loaded at the start."""

    def __init__(self, options: Lsm, keys: int, entry_bytes: int) -> None:
        self.options = options
        self.keys = keys
        self.entry_bytes = entry_bytes
        self.levels: list[list[Table]] = [[], []]
        self.edits = 1  # flushes and compactions so far, as the manifest lists them
        self._full = max(1, options.memtable_limit_bytes // entry_bytes)  # writes a memtable holds
        self._writes = 0  # in the memtable
        self._loaded = 0  # of these, keys that were not there before
        self._next = 1  # number of the next table
        self._cursor: dict[int, int] = {}  # level -> where in the keys its next compaction begins
        self._running: _Compaction | None = None
        self._load()

    @property
    def memtable_bytes(self) -> int:
        return self._writes * self.entry_bytes

    @property
    def live(self) -> tuple[Table, ...]:
        """All tables a snapshot holds."""
        return tuple(table for level in self.levels for table in level)

    def bytes_of(self, table: Table) -> int:
        return table.entries * self.entry_bytes

    @property
    def image(self) -> TreeImage:
        """What a snapshot taken now holds; the memtable is flushed before."""
        return TreeImage(tuple(tuple(level) for level in self.levels), self.edits, self._next)

    def stand(self, image: TreeImage, now_ns: int) -> None:
        """Be as in a snapshot again; what ran and what was in memory is lost."""
        self.levels = [list(level) for level in image.levels]
        self.edits, self._next = image.edits, image.next_number
        self._writes = self._loaded = 0
        self._running = None
        self._cursor.clear()
        self._compact(now_ns)

    def loaded_anew(self) -> LsmTree:
        """Another tree of the same keys, written from the beginning."""
        return LsmTree(self.options, self.keys, self.entry_bytes)

    def write(self, writes: int, begin_ns: int, end_ns: int) -> None:
        """So many updates, evenly spread over a time; the memtable is flushed whenever it is full."""
        done = 0
        while self._writes + writes - done >= self._full:
            done += self._full - self._writes
            self._writes = self._full
            self.flush(begin_ns + (end_ns - begin_ns) * done // writes)
        self._writes += writes - done
        self._settle(end_ns)

    def flush(self, now_ns: int) -> None:
        """The memtable becomes a table of level 0 (an empty one does not)."""
        self._settle(now_ns)
        if self._writes:
            updated = distinct(self._writes - self._loaded, self.keys)
            self.levels[0].append(self._table(0, self.keys, min(self.keys, self._loaded + updated), self._loaded))
            self._writes = self._loaded = 0
            self.edits += 1
        self._compact(now_ns)

    def _load(self) -> None:
        """The state is written once, before the first record; compactions are over by then."""
        left = self.keys
        while left:
            some = min(left, self._full)
            self._writes, self._loaded = some, some
            left -= some
            if some == self._full:
                self.flush(0)
                while self._running is not None:
                    self._settle(self._running.ends_ns)

    # ------------------------------------------------------------------------------------------ compaction

    def _settle(self, now_ns: int) -> None:
        """Let compactions end that are over by now; the next one begins when one ends."""
        while self._running is not None and self._running.ends_ns <= now_ns:
            ended, self._running = self._running, None
            gone = {table.number for table in ended.inputs}
            self.levels = [[table for table in level if table.number not in gone] for level in self.levels]
            self.levels[ended.into] = sorted([*self.levels[ended.into], *ended.outputs], key=lambda table: table.first)
            self.edits += 1
            self._compact(ended.ends_ns)

    def _compact(self, now_ns: int) -> None:
        """Begin the most urgent compaction, if one is due and none runs."""
        while self._running is None and (level := self._fullest()) is not None:
            source = list(self.levels[0]) if level == 0 else [self._picked(level)]
            if level + 1 == len(self.levels):
                self.levels.append([])
            below = [table for table in self.levels[level + 1] if any(table.overlaps(one) for one in source)]
            if level and not below:
                self._move(source[0], level)  # nothing to merge with: the file goes down as it is
                continue
            inputs = (*source, *below)
            largest = max(1, self.options.table_bytes // self.entry_bytes)
            outputs = tuple(self._table(*piece) for piece in merged(inputs, largest))
            volume = sum(self.bytes_of(table) for table in inputs)
            self._running = _Compaction(now_ns + volume * _SECOND // self.options.compaction_bytes_per_second, level + 1, inputs, outputs)

    def _fullest(self) -> int | None:
        """The level whose compaction is the most overdue."""
        scores = [(len(self.levels[0]) / self.options.level0_files, 0)]
        for i, tables in enumerate(self.levels[1:]):
            target = self.options.base_bytes * self.options.multiplier**i
            scores.append((sum(self.bytes_of(table) for table in tables) / target, -(i + 1)))  # of equals the upper one
        score, below = max(scores)
        due = score >= 1 if below == 0 else score > 1
        return -below if due else None

    def _picked(self, level: int) -> Table:
        """The levels below 0 take turns through the keys."""
        beyond = [table for table in self.levels[level] if table.first >= self._cursor.get(level, 0)]
        table = beyond[0] if beyond else self.levels[level][0]
        self._cursor[level] = table.last
        return table

    def _move(self, table: Table, level: int) -> None:
        self.levels[level].remove(table)
        self.levels[level + 1] = sorted([*self.levels[level + 1], table], key=lambda one: one.first)
        self.edits += 1

    def _table(self, first: int, last: int, entries: int, loaded: int) -> Table:
        table = Table(self._next, first, last, entries, loaded)
        self._next += 1
        return table
