"""The log-structured merge tree of RocksDB, in expected sizes: memtable, sorted tables (SST files), levels, compaction."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from operator import attrgetter
from typing import NamedTuple

from sim.model.state import Lsm
from sim.model.units import SECOND

# ---- The compaction thread, which runs one compaction at a time, first in, first out.
#
# RocksDB uses the threads of `Env::Default()`, which all databases of a process share.  With
# `state.backend.rocksdb.thread.num` = 2, one thread does the compactions of all slots of a TaskManager
# (DBImpl::GetBGJobLimits, Env::IncBackgroundThreadsIfNeeded).


class CompactionThread:
    """A compaction thread with its queue of trees, usually that of one TaskManager.

    The thread has no events of its own.  Trees tell it the time by `advance`, which applies the compactions that have ended
    by then, and starts the next ones.
    """

    def __init__(self) -> None:
        self._waiting: list[LsmTree] = []
        self._served: LsmTree | None = None
        self._ends_ns = 0
        self._now_ns = 0  # latest time that a tree has reported; the times of other trees may be earlier

    def advance(self, now_ns: int) -> None:
        """Apply all compactions that have ended by `now_ns`, and start the next ones."""
        self._now_ns = max(self._now_ns, now_ns)
        while self._served is not None and self._ends_ns <= self._now_ns:
            tree, self._served = self._served, None
            tree.compacted()
            self._next(self._ends_ns)

    def ask(self, tree: LsmTree, now_ns: int) -> None:
        """Queue a tree whose compaction is due."""
        if tree is not self._served and tree not in self._waiting:
            self._waiting.append(tree)
        if self._served is None:
            self._next(now_ns)

    def forget(self, tree: LsmTree) -> None:
        """Remove a tree that was stopped or restored from the queue, and drop its compaction in progress."""
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


# ---- Sorted tables, and the expected number of distinct keys after a merge, in whole entries.
#
# A table does not list its keys, only their number and the range in which they are.  Updated keys are drawn uniformly and
# independently, so the expected overlap of two tables follows from their densities alone.  Keys that are new when they are
# written ("loaded") are distinct.  All arithmetic is in integers, so that results are the same on every machine.
#
# Keys are spread evenly over a fixed range of places.  When their number grows, tables keep their range of places, and the
# density of a table, its share of all keys in that range, decreases.

_UNIT = 1 << 40  # 1 in fixed point


class Table(NamedTuple):
    """One file of a tree: `entries` keys, uniformly spread over the places [first, last)."""

    number: int
    first: int
    last: int
    entries: int
    loaded: int  # of these, keys that were new when they were written; each is loaded in one table only

    @property
    def name(self) -> str:
        return f"{self.number:06d}.sst"


class Density(NamedTuple):
    """The density of all keys of a tree: `keys` of them on `places` places."""

    keys: int = 1
    places: int = 1

    def within(self, places: int) -> int:
        return places * self.keys // self.places


class Piece(NamedTuple):
    """A range of places [first, last) in the result of a merge, with its number of keys."""

    first: int
    last: int
    entries: int
    loaded: int


def distinct(writes: int, keys: int) -> int:
    """Return the expected number of distinct keys that uniform writes hit: keys * (1 - (1 - 1/keys)^writes)."""
    if writes <= 0 or keys <= 0:
        return 0
    base, power, missed = _UNIT - _UNIT // keys, writes, _UNIT
    while power:
        if power & 1:
            missed = missed * base // _UNIT
        base = base * base // _UNIT
        power >>= 1
    return max(1, min(writes, _rounded(keys * (_UNIT - missed))))


def merged(tables: Sequence[Table], largest: int, density: Density = Density()) -> Iterator[Piece]:  # noqa: B008  # frozen
    """Yield the tables that result from a merge, each with at most `largest` entries.

    By default there is a key on every place.
    """
    first = last = entries = loaded = 0
    for piece in _pieces(tables, density):
        if not entries:
            first = piece.first
        rest = piece
        while entries + rest.entries > largest:
            share = largest - entries
            cut = rest.first + (rest.last - rest.first) * share // rest.entries
            kept = rest.loaded * share // rest.entries
            yield Piece(first, cut, largest, loaded + kept)
            rest = Piece(cut, rest.last, rest.entries - share, rest.loaded - kept)
            first, entries, loaded = cut, 0, 0
        entries, loaded, last = entries + rest.entries, loaded + rest.loaded, rest.last
    if entries:
        yield Piece(first, last, entries, loaded)


def _pieces(tables: Iterable[Table], density: Density) -> Iterator[Piece]:
    """Return the result of a merge, cut at the bounds of all tables: within a piece, the same tables overlap everywhere.

    Pieces are in order of their ranges.  Pieces without entries are left out.
    """
    tables = sorted(tables, key=lambda table: table.first)
    bounds = sorted({bound for table in tables for bound in (table.first, table.last)})
    rest = loaded_rest = over = 0  # rounding remainders go to the next range, so that no key is lost
    begun, covering = 0, list[Table]()
    pieces = list[Piece]()
    for first, last in pairwise(bounds):
        covering = [table for table in covering if table.last > first]
        while begun < len(tables) and tables[begun].first == first:
            covering.append(tables[begun])
            begun += 1
        present, present_loaded, beyond = _union(covering, last - first, density)
        entries = _rounded(present + rest)
        loaded = min(entries, _rounded(present_loaded + loaded_rest))
        rest, loaded_rest = present + rest - entries * _UNIT, present_loaded + loaded_rest - loaded * _UNIT
        over += beyond
        if entries:
            pieces.append(Piece(first, last, entries, loaded))
    return iter(_spread(pieces, _rounded(over + rest), density) if over else pieces)


def _spread(pieces: list[Piece], over: int, density: Density) -> list[Piece]:
    """Add `over` keys, which rounding had put into full ranges, to the first ranges that have free places."""
    for i, piece in enumerate(pieces):
        if not over:
            break
        moved = max(0, min(over, density.within(piece.last - piece.first) - piece.entries))
        pieces[i] = piece._replace(entries=piece.entries + moved, loaded=piece.loaded + moved)
        over -= moved
    return pieces


def _union(tables: Sequence[Table], width: int, density: Density) -> tuple[int, int, int]:
    """Return the expected number of keys in a range of `width` places that all `tables` cover.

    The result is (distinct keys, loaded keys among them, loaded keys for which there is no place), in fixed point.
    """
    loaded, missed = 0, _UNIT
    for table in tables:
        span = max(density.within(table.last - table.first), table.entries)  # rounding must not exceed the places
        loaded += _UNIT * table.loaded // span
        others = span - table.loaded  # keys that are in the table only if updated
        missed = missed * (span - table.entries) // others if others else 0
    beyond = max(0, loaded - _UNIT)
    loaded -= beyond
    missed = (_UNIT - loaded) * missed // _UNIT
    return density.within(width * (_UNIT - missed)), density.within(width * loaded), density.within(width * beyond)


def _rounded(fixed: int) -> int:
    return (fixed + _UNIT // 2) // _UNIT


# ---- A tree with leveled compaction, in expected sizes: memtable, flushes, and compactions in the background.
#
# A table of level 0 is a flushed memtable, and covers all keys.  The tables of any other level have disjoint key ranges.
# Level 0 is compacted when it has enough files, another level when it exceeds its target size; the level with the highest
# score comes first (LeveledCompactionPicker).  Not modelled: write stalls, concurrent compactions, tombstones.

_PLACES = 1 << 40  # range of places if the number of keys grows
_begin, _end = attrgetter("first"), attrgetter("last")


@dataclass(frozen=True, slots=True)
class _Compaction:
    """A compaction in progress.  The levels only change when it ends."""

    ends_ns: int
    level: int  # source level; the target is the next one.  -1: of the tables of `LsmTree.foreign` alone
    first: int  # position of the first source table
    sources: int  # number of source tables
    below: slice  # tables of the target level that they are merged with
    outputs: tuple[Table, ...]


class TreeImage(NamedTuple):
    """The state of a tree in a snapshot, with an empty memtable."""

    levels: tuple[tuple[Table, ...], ...]
    edits: int  # records in the manifest
    next_number: int
    density: Density
    foreign: tuple[Table, ...] = ()  # the tables of `LsmTree.foreign`


class LsmTree:
    """The tree of one subtask, initially with `keys` entries of `entry_bytes` each.

    `thread`: compaction thread that the tree shares; if None, it has its own.  `grows`: True if keys will be added.
    """

    def __init__(
        self, options: Lsm, keys: int, entry_bytes: int, thread: CompactionThread | None = None, *, grows: bool = False
    ) -> None:
        self.options = options
        self.keys = keys
        self.grows = grows
        self._places = _PLACES if grows else keys
        self.entry_bytes = entry_bytes
        self.levels: list[list[Table]] = [[], []]  # level 0 by age, others by key
        self.foreign: tuple[
            Table, ...
        ] = ()  # keys of other subtasks, from a rescale: deleted, and in files all the same
        self._drops_foreign = False  # a compaction of them alone is due
        self._entries = [0, 0]  # entries of each level
        self.edits = 1  # records in the manifest: flushes and compactions
        self._full = max(1, options.memtable_limit_bytes // entry_bytes)  # writes until the memtable is full
        self._writes = 0  # in the memtable
        self._loaded = 0  # of these, new keys
        self._next = 1  # number of the next table
        self._cursor: dict[int, int] = {}  # level -> key at which its next compaction begins
        self._running: _Compaction | None = None
        self.thread = CompactionThread()
        self._load()
        # not the thread of the initial load, which takes no time
        self.thread = CompactionThread() if thread is None else thread

    @property
    def memtable_bytes(self) -> int:
        return self._writes * self.entry_bytes

    @property
    def live(self) -> tuple[Table, ...]:
        """Return all tables of the tree, which are the content of a snapshot."""
        return (*(table for level in self.levels for table in level), *self.foreign)

    def bytes_of(self, table: Table) -> int:
        return table.entries * self.entry_bytes

    @property
    def image(self) -> TreeImage:
        """Return the state that a snapshot contains.  The memtable must be flushed first."""
        return TreeImage(
            tuple(tuple(level) for level in self.levels),
            self.edits,
            self._next,
            Density(self.keys, self._places),
            self.foreign,
        )

    def busy_ns(self, now_ns: int) -> int:
        """Return the remaining time of the compaction in progress [ns], or 0 if there is none."""
        return 0 if self._running is None else max(self._running.ends_ns - now_ns, 0)

    def stand(self, image: TreeImage, now_ns: int) -> None:
        """Restore the tree of a snapshot.  The memtable and a compaction in progress are lost."""
        self.levels = [list(level) for level in image.levels]
        self._entries = [0] * len(self.levels)
        self._count(*range(len(self.levels)))
        self.edits, self._next = image.edits, image.next_number
        self.keys, self._places = image.density
        self.foreign = image.foreign
        self._writes = self._loaded = 0
        self.leave()
        self._cursor.clear()
        self._compact(now_ns)

    def leave(self) -> None:
        """Detach the tree from its compaction thread, and drop a compaction in progress."""
        self.thread.forget(self)
        self._running, self._drops_foreign = None, False

    def rebuilt(self, keys: int, foreign: Iterable[int]) -> LsmTree:
        """Return a new tree with the same options and compaction thread, and `keys` newly written keys.

        `foreign`: entries of each table with keys of other subtasks.  They leave when a compaction reaches the lowest level.
        """
        tree = LsmTree(self.options, keys, self.entry_bytes, self.thread, grows=self.grows)
        tree.foreign = tuple(tree._table(0, 0, entries, 0) for entries in foreign)
        return tree

    def drop_foreign(self, now_ns: int) -> None:
        """Ask the compaction thread to compact the keys of other subtasks, if there are any."""
        if self.foreign:
            self.thread.advance(now_ns)
            self._drops_foreign = True
            self.thread.ask(self, now_ns)

    def write(self, updates: int, begin_ns: int, end_ns: int, added: int = 0, expired: int = 0) -> None:
        """Write updates and `added` new keys, spread evenly between two times.  Flush the memtable whenever it is full.

        `expired`: number of keys that have expired by `end_ns`; later compactions drop them.
        """
        done, writes, keys = 0, updates + added, self.keys
        while self._writes + writes - done >= self._full:
            done += self._full - self._writes
            self._writes = self._full
            self._add(keys + added * done // writes - self.keys)
            self.flush(begin_ns + (end_ns - begin_ns) * done // writes)
        self._writes += writes - done
        self._add(keys + added - self.keys)
        self.keys -= expired
        self.thread.advance(end_ns)

    def _add(self, keys: int) -> None:
        """Count new keys in the memtable."""
        self._loaded += keys
        self.keys += keys

    def flush(self, now_ns: int) -> None:
        """Write the memtable, unless it is empty, as a table of level 0."""
        self.thread.advance(now_ns)
        updated = distinct(self._writes - self._loaded, self.keys)
        if entries := min(self.keys, self._loaded + updated):  # 0: updates before the first key exists
            self.levels[0].append(self._table(0, self._places, entries, self._loaded))
            self.edits += 1
        self._writes = self._loaded = 0
        self._compact(now_ns)

    def _load(self) -> None:
        """Create the initial state, with all compactions done.

        State that fits into level 1 is written memtable by memtable.  Larger state is put into the first level that is
        large enough, and the other levels are empty.
        """
        base = self.options.base_bytes // self.entry_bytes
        if self.keys > max(base, self._full):
            self._fill_lowest_level()
            return
        left = self.keys
        while left:
            batch = min(left, self._full)
            self._writes, self._loaded = batch, batch
            left -= batch
            if batch == self._full:
                self.flush(0)
                while self._running is not None:
                    self.thread.advance(self._running.ends_ns)

    def _fill_lowest_level(self) -> None:
        """Put all keys into the first level that is large enough, in tables of full size."""
        # the target is at least one entry, so that the loop ends
        level, target = 1, max(1, self.options.base_bytes // self.entry_bytes)
        while target < self.keys:
            level, target = level + 1, target * self.options.multiplier
        largest = max(1, self.options.table_bytes // self.entry_bytes)
        self.levels += [[] for _ in range(level + 1 - len(self.levels))]
        self.levels[level] = [
            self._table(first * self._places // self.keys, last * self._places // self.keys, last - first, last - first)
            for first, last in ((first, min(first + largest, self.keys)) for first in range(0, self.keys, largest))
        ]
        self._entries = [sum(table.entries for table in tables) for tables in self.levels]

    # ------------------------------------------------------------------------------------------ compaction

    def compact(self, now_ns: int) -> int | None:
        """Begin the compaction with the highest score.  Return when it ends [ns], or None if none is due."""
        if self._drops_foreign:
            self._drops_foreign = False
            self._running = _Compaction(self._end_ns(now_ns, self.foreign), -1, 0, 0, slice(0), ())
            return self._running.ends_ns
        while (level := self._fullest()) is not None:
            if level + 1 == len(self.levels):
                self.levels.append([])
                self._entries.append(0)
            first, sources = (0, list(self.levels[0])) if level == 0 else self._picked(level)
            below = self._overlapping(
                level + 1, min(table.first for table in sources), max(table.last for table in sources)
            )
            met = self.levels[level + 1][below]
            if level and not met:  # trivial move: no overlap in the next level
                self.levels[level + 1][below] = sources
                del self.levels[level][first]
                self._count(level, level + 1)
                self.edits += 1
                continue
            largest = max(1, self.options.table_bytes // self.entry_bytes)
            outputs = tuple(
                self._table(*piece) for piece in merged((*sources, *met), largest, Density(self.keys, self._places))
            )
            ends_ns = self._end_ns(now_ns, (*sources, *met))
            self._running = _Compaction(ends_ns, level, first, len(sources), below, outputs)
            return ends_ns
        return None

    def _end_ns(self, begin_ns: int, tables: Iterable[Table]) -> int:
        """Return when a compaction of these tables ends [ns]."""
        return begin_ns + sum(map(self.bytes_of, tables)) * SECOND // self.options.compaction_bytes_per_second

    def compacted(self) -> None:
        """Apply the result of the compaction, and queue the next one if it is due."""
        if (ended := self._running) is None:
            return
        self._running = None
        del self.levels[ended.level][ended.first : ended.first + ended.sources]
        self.levels[ended.level + 1][ended.below] = ended.outputs
        self._count(ended.level, ended.level + 1)
        if ended.level < 0 or ended.level + 2 == len(self.levels):
            self.foreign = ()
        self.edits += 1
        self._compact(ended.ends_ns)

    def _compact(self, now_ns: int) -> None:
        """Ask the compaction thread for a compaction, if one is due."""
        if self._fullest() is not None:
            self.thread.ask(self, now_ns)

    def _fullest(self) -> int | None:
        """Return the level with the highest compaction score, if it is due for compaction, or None.

        Among equal scores it is the lowest level number.
        """
        fullest, most = None, 1.0
        if len(self.levels[0]) >= self.options.level0_files:
            fullest, most = 0, len(self.levels[0]) / self.options.level0_files
        target = self.options.base_bytes
        for level in range(1, len(self.levels)):
            score = self._entries[level] * self.entry_bytes / target
            if score > most:
                fullest, most = level, score
            target *= self.options.multiplier
        return fullest

    def _picked(self, level: int) -> tuple[int, list[Table]]:
        """Return (position, tables) of the next compaction of a level other than 0.

        Compactions of a level cycle through its keys, one table at a time.
        """
        tables = self.levels[level]
        first = bisect_left(tables, self._cursor.get(level, 0), key=_begin) % len(tables)
        self._cursor[level] = tables[first].last
        return first, [tables[first]]

    def _overlapping(self, level: int, first: int, last: int) -> slice:
        """Return the slice of tables that overlap [first, last), or an empty slice where they would be inserted."""
        tables = self.levels[level]
        return slice(bisect_right(tables, first, key=_end), bisect_left(tables, last, key=_begin))

    def _count(self, *levels: int) -> None:
        """Count the entries of these levels again."""
        for level in levels:
            self._entries[level] = sum(table.entries for table in self.levels[level])

    def _table(self, first: int, last: int, entries: int, loaded: int) -> Table:
        table = Table(self._next, first, last, entries, loaded)
        self._next += 1
        return table
