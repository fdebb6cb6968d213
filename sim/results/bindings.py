"""Which cell of the table of strategies a number in the verdict is: for `--json`, and as links in reports.

The words around a number decide which column it is of, and the names of strategies in its sentence which row.  Other numbers,
such as the time that one checkpoint waits, have no cell.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from sim.results.side_by_side import FIRST_UPLOAD, StrategyRow, texts

_V = r"(\d+(?:\.\d+)?(?: (?:ms|s|min|h|d|[kMGT]?B)|[kMG]?/s))"
SLOTS = (
    (rf"[Cc]heckpoints take {_V}(?: to {_V})?", ("p50", "p50")),
    (rf"checkpoints take {_V} instead of {_V}", ("p50", "p50")),
    (rf"\(longest {_V}(?: instead of {_V})?", ("max", "max")),
    (rf"store {_V} of in-flight data each", ("in flight",)),
    (rf"One in ten takes {_V} or more", ("p90",)),
    (rf"uploads everything, {_V} in {_V}", ("written", "max")),
    (rf"serves {_V}, .+? {_V}[.;]", ("throughput", "throughput")),
)
"""Words of a sentence, and the column of each number in them."""
_SENTENCE = re.compile(r".+?(?:\. (?=[A-Z])|$)", re.DOTALL)


class Binding(NamedTuple):
    """A number of a text, and the cell that has it."""

    begin: int  # of the number in the text
    end: int
    row: int  # of `texts`; -1: no row that the sentence names has this number, so the sentence or the table is wrong
    column: int


def bindings(text: str, strategies: Sequence[StrategyRow]) -> list[Binding]:
    """Return the cell of each number whose words name a column of the printed table, in the order of the text."""
    header, rows = texts(strategies)
    headings = [name.partition(" (")[0] for name in header]
    rows_of = {row[0]: i for i, row in enumerate(rows)}
    told = next((own.group for own in strategies if own.group and text.startswith(f"With {own.group}: ")), "")
    found = set[Binding]()
    for sentence in _SENTENCE.finditer(text):
        named = [own for own in strategies if own.group and own.group != told and own.group in sentence[0]]
        named = named or [own for own in strategies if own.group == told or not told]
        named = [own for own in named if _is_word(rf"{re.escape(own.short_name)}(?![\w-])", sentence[0])] or named
        for pattern, columns in SLOTS:
            for match in re.finditer(pattern, text[: sentence.end()]):
                if match.start() < sentence.start() or any(name not in headings for name in columns):
                    continue
                label = FIRST_UPLOAD if "uploads" in pattern else "{}"
                before = text[: match.start()].rstrip()
                own_rows = [
                    own for own in named if _is_word(rf"{re.escape(own.short_name)}$", before)
                ]  # "unaligned checkpoints take"
                others = [own for own in named if own not in own_rows]
                for group, name in enumerate(columns, 1):
                    if match[group] is not None:
                        column, candidates = headings.index(name), (own_rows if group == 1 else others) or named
                        found_rows = [rows_of.get(label.format(own.label), -1) for own in candidates]
                        has = (i for i in found_rows if i >= 0 and rows[i][column] == match[group])
                        found.add(Binding(*match.span(group), next(has, -1), column))
    return sorted(found)


def _is_word(pattern: str, text: str) -> bool:
    return re.search(rf"(?<![\w-]){pattern}", text, re.IGNORECASE) is not None


def bound_cells(text: str, strategies: Sequence[StrategyRow]) -> list[dict[str, str | int]]:
    """Return the bindings as `--json` has them: the number, where it begins, and the names of row and column."""
    header, rows = texts(strategies)
    return [
        {"text": text[own.begin : own.end], "at": own.begin, "row": rows[own.row][0], "column": header[own.column]}
        for own in bindings(text, strategies)
        if own.row >= 0
    ]
