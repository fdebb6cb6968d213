"""Sorted tables and what merging them leaves: expected numbers of different keys, in whole entries.

Updated keys are drawn uniformly and independently, so the share of keys two tables have in common follows from their densities alone.
Keys that are new when they are written are different from each other wherever they lie.  Integers throughout: the same on every machine.

Keys lie evenly over a range of places.  While their number grows the range stays, so a table keeps its place and gets thinner.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

_UNIT = 1 << 40  # 1 in fixed point


class Table(NamedTuple):
    """One file of a tree: `entries` keys, uniformly spread over the places [first, last)."""

    number: int
    first: int
    last: int
    entries: int
    loaded: int  # of these, keys that were new when they were written, and are in no other table as such

    @property
    def name(self) -> str:
        return f"{self.number:06d}.sst"


class Density(NamedTuple):
    """A number of keys on a number of places."""

    keys: int = 1
    places: int = 1

    def within(self, places: int) -> int:
        return places * self.keys // self.places


class Piece(NamedTuple):
    """Part of the places of a merge result."""

    first: int
    last: int
    entries: int
    loaded: int


def distinct(writes: int, keys: int) -> int:
    """Expected number of different keys among uniform writes: keys * (1 - (1 - 1/keys)^writes)."""
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
    """The tables that result from a merge, each with at most `largest` entries.  By default every place has a key."""
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
    """Ranges over which the same tables lie, in order; ranges without entries are left out."""
    tables = sorted(tables, key=lambda table: table.first)
    bounds = sorted({bound for table in tables for bound in (table.first, table.last)})
    rest = loaded_rest = over = 0  # what rounding left over goes to the next range, so that no key gets lost
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
    """Put keys for which their range has no place where there is one: rounding had made it too full."""
    for i, piece in enumerate(pieces):
        if not over:
            break
        moved = max(0, min(over, density.within(piece.last - piece.first) - piece.entries))
        pieces[i] = piece._replace(entries=piece.entries + moved, loaded=piece.loaded + moved)
        over -= moved
    return pieces


def _union(tables: Sequence[Table], width: int, density: Density) -> tuple[int, int, int]:
    """(different keys, of these loaded ones, loaded ones beyond its places) on so many places within all these tables, in fixed point."""
    loaded, missed = 0, _UNIT
    for table in tables:
        span = max(density.within(table.last - table.first), table.entries)  # rounding must not make a table too full
        loaded += _UNIT * table.loaded // span
        others = span - table.loaded  # keys that are in the table only if they were updated
        missed = missed * (span - table.entries) // others if others else 0
    beyond = max(0, loaded - _UNIT)
    loaded -= beyond
    missed = (_UNIT - loaded) * missed // _UNIT
    return density.within(width * (_UNIT - missed)), density.within(width * loaded), density.within(width * beyond)


def _rounded(fixed: int) -> int:
    return (fixed + _UNIT // 2) // _UNIT
