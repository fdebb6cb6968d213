"""Tables in Parquet: any whose columns a format knows, and OpenDC's models of failures, with the time to the next one and its duration."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from sim.series.headers import cell_text
from sim.traces.choices import Choices
from sim.traces.lines import TraceLine
from sim.traces.reading import RowOrigin, quarantined, rows_batch, table_rows

COLUMNS = ("failure_interval", "failure_duration", "failure_intensity")  # ms, ms, share
BLOCK_ROWS = 50_000


def parquet_rows(source: RowOrigin, file: Any, choices: Choices) -> Iterator[pa.RecordBatch]:
    """Rows of a file, a block at a time.  Intervals of failures in quarantine count as 0."""
    try:
        table = pq.ParquetFile(file)
        names = table.schema_arrow.names
        if {"failure_interval", "failure_duration"} <= set(names):
            yield from _blocks(source, table.iter_batches(BLOCK_ROWS, columns=[name for name in COLUMNS if name in names]))
        else:
            yield from table_rows(source, names, _lines(table), choices)
    except (pa.ArrowException, OSError) as error:
        yield quarantined(source, f"is no Parquet file, or a damaged one: {str(error).splitlines()[0]}")


def _lines(table: pq.ParquetFile) -> Iterator[TraceLine]:
    """Rows as lines of text, which the formats of text tables read."""
    number = 0
    for block in table.iter_batches(BLOCK_ROWS):
        for row in zip(*(column.to_pylist() for column in block.columns), strict=True):
            number += 1
            written = io.StringIO()
            csv.writer(written, lineterminator="").writerow(map(cell_text, row))
            yield TraceLine(number, written.getvalue())


def _blocks(source: RowOrigin, blocks: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    at_ms, line = 0.0, 0
    for block in blocks:
        rows = pd.DataFrame({name: pd.to_numeric(block.column(name).to_pandas(), errors="coerce") for name in block.schema.names})
        rows.index = pd.RangeIndex(line + 1, line + 1 + len(rows))
        line += len(rows)
        good = (rows[list(COLUMNS[:2])] >= 0).all(axis=1)
        if not good.all():
            bad = pd.DataFrame({"line": rows.index[~good], "reason": "an interval or a duration is negative or missing", "text": ""})
            yield rows_batch("quarantine", source, bad)
        rows = rows[good]
        begin_ms = at_ms + rows["failure_interval"].astype(float).cumsum()
        at_ms = float(begin_ms.iloc[-1]) if len(rows) else at_ms
        what = rows["failure_intensity"].map("outage of {:.0%}".format) if "failure_intensity" in rows else "outage"
        lasts_s = rows["failure_duration"].astype(float) / 1e3
        yield rows_batch("failures", source, pd.DataFrame({"line": rows.index, "t_s": begin_ms / 1e3, "lasts_s": lasts_s, "what": what}))
