"""Failure models in Parquet (OpenDC's form): the time from each failure to the next, and its duration."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from sim.traces.reading import Origin, quarantined, rows_batch

__all__ = ["outage_rows"]

COLUMNS = ("failure_interval", "failure_duration", "failure_intensity")  # ms, ms, share
BLOCK_ROWS = 50_000


def outage_rows(source: Origin, file: Any) -> Iterator[pa.RecordBatch]:
    """Rows of a file, a block at a time.  Intervals of rows in quarantine count as 0."""
    try:
        table = pq.ParquetFile(file)
        names = table.schema_arrow.names
        if not {"failure_interval", "failure_duration"} <= set(names):
            yield quarantined(source, f"no known format has the columns {', '.join(names)[:200]}")
            return
        yield from _blocks(source, table.iter_batches(BLOCK_ROWS, columns=[name for name in COLUMNS if name in names]))
    except (pa.ArrowException, OSError) as error:
        yield quarantined(source, f"is no Parquet file, or a damaged one: {str(error).splitlines()[0]}")


def _blocks(source: Origin, blocks: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
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
