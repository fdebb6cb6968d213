"""Long series of small records, stored as columns of integers, which take a tenth of the memory of objects."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Generic, TypeVar, overload

Record = TypeVar("Record")


class PackedRecords(Sequence[Record], Generic[Record]):
    """A sequence of records that are created from integers on access.  It equals a tuple of the same records."""

    __slots__ = ("_columns", "_make")

    def __init__(self, make: Callable[..., Record], rows: Iterable[Sequence[int]] = ()) -> None:
        """Create the sequence; `make` creates a record from the integers of a row.  It must be picklable."""
        self._make = make
        self._columns = tuple(map(_column, zip(*rows, strict=True)))

    def last_until(self, column: int, limit: int) -> int:
        """Return the index of the last record with at most `limit` in an increasing column, or -1."""
        return bisect_right(self._columns[column], limit) - 1 if self._columns else -1

    def integers(self, first: int, end: int) -> Iterator[tuple[int, ...]]:
        """Return the rows from `first` up to, but not including, `end`."""
        return zip(*(column[first:end] for column in self._columns), strict=True)

    def __len__(self) -> int:
        return len(self._columns[0]) if self._columns else 0

    def __iter__(self) -> Iterator[Record]:
        return map(self._make, *self._columns) if self._columns else iter(())

    @overload
    def __getitem__(self, place: int) -> Record: ...

    @overload
    def __getitem__(self, place: slice) -> list[Record]: ...

    def __getitem__(self, place: int | slice) -> Record | list[Record]:
        if isinstance(place, slice):
            return [self[i] for i in range(*place.indices(len(self)))]
        if not self._columns:
            raise IndexError(place)
        return self._make(*[column[place] for column in self._columns])

    def __eq__(self, other: object) -> bool:
        if isinstance(other, PackedRecords) and self._make == other._make:
            return self._columns == other._columns
        return tuple(self) == tuple(other) if isinstance(other, PackedRecords | tuple) else NotImplemented

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return repr(tuple(self))


def _column(cells: Sequence[int]) -> Sequence[int]:
    """Return a column; numbers beyond 64 bits are stored as objects."""
    try:
        return array("q", cells)
    except OverflowError:
        return list(cells)
