"""Failure models in Parquet: how long after the one before each failure begins, and how long it lasts (OpenDC's form)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from sim.traces.reading import batch, quarantined

__all__ = ["outage_rows"]

COLUMNS = ("failure_interval", "failure_duration", "failure_intensity")  # ms, ms, share


def outage_rows(trace: str, stream: Any) -> Iterator[pa.RecordBatch]:
    """A row group at a time."""
    data = pa.BufferReader(stream.read())
    try:
        file = pq.ParquetFile(data)
    except pa.ArrowException as error:
        yield quarantined(trace, f"is no Parquet file: {str(error).splitlines()[0]}")
        return
    names = file.schema_arrow.names
    if not {"failure_interval", "failure_duration"} <= set(names):
        yield quarantined(trace, f"no known format has the columns {', '.join(names)}")
        return
    at_ms, line = 0.0, 0
    for part in file.iter_batches(columns=[name for name in COLUMNS if name in names]):
        rows = part.to_pandas()
        rows.index = pd.RangeIndex(line + 1, line + 1 + len(rows))
        line += len(rows)
        good = (rows[list(COLUMNS[:2])] >= 0).all(axis=1)
        for number in rows.index[~good]:
            yield quarantined(trace, "an interval or a duration is negative or missing", number)
        rows = rows[good]
        begin_ms = at_ms + rows["failure_interval"].astype(float).cumsum()
        at_ms = float(begin_ms.iloc[-1]) if len(rows) else at_ms
        what = rows["failure_intensity"].map("outage of {:.0%}".format) if "failure_intensity" in rows else "outage"
        lasts_s = rows["failure_duration"].astype(float) / 1e3
        yield batch("failures", trace, pd.DataFrame({"line": rows.index, "t_s": begin_ms / 1e3, "lasts_s": lasts_s, "what": what}))
