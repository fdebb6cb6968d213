"""One file -> its rows, block by block: those of its table, and those that are in quarantine with the reason.

Runs wherever a file is read; holds a block of it at a time.  A file that nobody recognises is one row in quarantine.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import BinaryIO

import numpy as np
import pandas as pd
import pyarrow as pa

from sim.traces.formats import Format, recognised
from sim.traces.lines import Line, TraceFileError, lines
from sim.traces.tables import UNION

__all__ = ["batch", "quarantined", "read_rows", "trace_name"]

BLOCK_ROWS = 50_000
SHOWN = 200  # characters of a row in quarantine


def trace_name(path: str) -> str:
    """Of a file below the folder that is read: its path without the ending, of characters that are safe in any file system."""
    for ending in (".gz", ".csv", ".json", ".log", ".parquet"):
        path = path.removesuffix(ending)
    parts = ["".join(c if c.isalnum() or c in "-_." else "_" for c in part).lstrip(".") for part in path.split("/")]
    return "/".join(part or "_" for part in parts)


def read_rows(trace: str, stream: BinaryIO, *, packed: bool) -> Iterator[pa.RecordBatch]:
    """Batches of `sim.traces.tables.UNION`."""
    told = lines(stream, packed=packed)
    try:
        first = next(told, None)
        if first is None:
            yield _quarantine(trace, [(0, "the file is empty", "")])
            return
        columns = [name.strip().strip("\ufeff") for name in next(csv.reader([first.text]), [])]
        format_ = recognised(columns) if first.whole else None
        if format_ is None:
            known = "its first line is too long" if not first.whole else f"no known format has the columns {', '.join(columns)[:SHOWN]}"
            yield _quarantine(trace, [(first.number, known, first.text)])
            return
        headless = all(_is_number(name) or not name for name in columns[:2])
        rows = chain([first], told) if headless else told
        yield from _Blocks(trace, format_, [str(i) for i in range(len(columns))] if headless else columns).read(rows)
    except TraceFileError as error:
        yield _quarantine(trace, [(-1, str(error), "")])


class _Blocks:
    """Blocks of one file, in order: whether time goes on is known from the block before."""

    def __init__(self, trace: str, format_: Format, columns: list[str]) -> None:
        self.trace, self.format, self.columns = trace, format_, columns
        self.latest = -np.inf

    def read(self, rows: Iterable[Line]) -> Iterator[pa.RecordBatch]:
        source = iter(rows)
        while True:
            block, broken = list[Line](), None
            try:
                for line in islice(source, BLOCK_ROWS):
                    block.append(line)
            except TraceFileError as error:  # what came before it counts
                broken = error
            if block:
                yield from self._block(block)
            if broken is not None:
                raise broken
            if not block:
                return

    def _block(self, block: list[Line]) -> Iterator[pa.RecordBatch]:
        bad, good = list[tuple[int, str, str]](), dict[int, list[str]]()
        for line in block:
            if not line.whole:
                bad.append((line.number, "the line is too long", line.text))
            elif (row := _fields(line)) is None:
                bad.append((line.number, "quotes are not closed", line.text))
            elif len(row) == len(self.columns):
                good[line.number] = row
            elif row:  # a blank line is none
                bad.append((line.number, f"has {len(row)} fields, not {len(self.columns)}", ",".join(row)))
        if good:
            texts = pd.DataFrame.from_dict(good, orient="index", columns=self.columns)
            parsed = self.format.parse(texts)
            back = self._back(parsed.rows["t_s"], parsed.wrong == "")
            wrong = parsed.wrong.mask((parsed.wrong == "") & ~parsed.silent & back, "time goes back")
            bad += [(number, reason, ",".join(good[number])) for number, reason in zip(good, wrong, strict=True) if reason]
            yield self._table(parsed.rows[(wrong == "") & ~parsed.silent])
        if bad:
            yield _quarantine(self.trace, sorted(bad))

    def _back(self, time: pd.Series[float], usable: pd.Series[bool]) -> pd.Series[bool]:
        if not self.format.ordered:
            return pd.Series(False, index=time.index)
        before = time.where(usable).cummax().shift(fill_value=-np.inf).ffill().clip(lower=self.latest)
        back = usable & (time <= before if self.format.kind == "rates" else time < before)
        if (usable & ~back).any():
            self.latest = float(time[usable & ~back].iloc[-1])
        return back

    def _table(self, rows: pd.DataFrame) -> pa.RecordBatch:
        return batch(self.format.kind, self.trace, rows.assign(line=rows.index))


def _fields(line: Line) -> list[str] | None:
    try:
        return next(csv.reader([line.text], strict=True), [])
    except csv.Error:
        return None


def _quarantine(trace: str, rows: list[tuple[int, str, str]]) -> pa.RecordBatch:
    table = pd.DataFrame(rows, columns=["line", "reason", "text"])
    return batch("quarantine", trace, table.assign(text=table["text"].str[:SHOWN]))


def quarantined(trace: str, reason: str, line: int = -1) -> pa.RecordBatch:
    """One row; line -1: the file as a whole."""
    return _quarantine(trace, [(line, reason, "")])


def batch(kind: str, trace: str, rows: pd.DataFrame) -> pa.RecordBatch:
    """Rows of one table, in all columns of all tables."""
    told = {"kind": [kind] * len(rows), "trace": [trace] * len(rows), **{str(name): rows[name] for name in rows}}
    arrays = [
        pa.array(told[field.name], type=field.type, from_pandas=True) if field.name in told else pa.nulls(len(rows), field.type)
        for field in UNION
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=UNION)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
