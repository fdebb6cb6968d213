"""The tables of traces, column by column: a row per observation, partitioned by `trace`, the file it comes from.

Times are seconds on the trace's own clock (epoch seconds if the file has them), so that files of one experiment fit
together.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa

STAGING = "_staging"
"""The folder that new tables are written to, beside the earlier ones, until they are complete."""
MAX_GAP_S = 86_400
"""Seconds without arrivals are written up to a day; of a longer gap, only its first and its last."""


class TraceColumn(NamedTuple):
    """A column of a table of traces."""

    name: str
    type: pa.DataType
    meaning: str


_TRACE = TraceColumn("trace", pa.string(), "path of the file below the folder that was read, without its ending")
_LINE = TraceColumn("line", pa.int64(), "where it stands in the file, from 1; null: the file as a whole")
_TIME = TraceColumn("t_s", pa.float64(), "seconds on the trace's own clock; null: the file does not tell")

TABLES: dict[str, tuple[TraceColumn, ...]] = {
    "rates": (
        _TRACE,
        _LINE,
        _TIME,
        TraceColumn(
            "rate",
            pa.float64(),
            "records per second, as in the file; of arrivals: counted per second; null: not observed",
        ),
        TraceColumn("latency_ms", pa.float64(), "end to end, where the file tells"),
        TraceColumn("lag", pa.float64(), "records not yet consumed, where the file tells"),
    ),
    "factors": (
        _TRACE,
        _LINE,
        _TIME,
        TraceColumn("series", pa.string(), "which machine, or which operation"),
        TraceColumn("speed", pa.float64(), "as measured"),
        TraceColumn("factor", pa.float64(), "slowdown: median speed of the trace (of operations: the series) / speed"),
    ),
    "failures": (
        _TRACE,
        _LINE,
        _TIME,
        TraceColumn("lasts_s", pa.float64(), "null: the file does not tell"),
        TraceColumn("what", pa.string(), "node or kind of failure"),
        TraceColumn("run", pa.string(), "traces of the folder whose names end in it met the failure; null: all did"),
    ),
    "quarantine": (
        _TRACE,
        _LINE,
        TraceColumn("file", pa.string(), "path below the folder that was read"),
        TraceColumn("reason", pa.string(), "why the row is in no other table"),
        TraceColumn("text", pa.string(), "its beginning"),
    ),
}

UNION = pa.schema(
    [
        pa.field("kind", pa.string()),
        *{
            column.name: pa.field(column.name, column.type) for columns in TABLES.values() for column in columns
        }.values(),
        pa.field("usual_of", pa.string()),  # the rows whose median speed is usual: a series, or (null) the trace
        pa.field("count", pa.int64()),
    ]
)
"""All columns of all tables: the rows of a file have them.

The kind of a row is a table, `arrivals` (counted into rates), or one of `NO_TABLE`.
"""
NO_TABLE = ("passed", "note")
"""Kinds of rows that are only counted: lines that belong to no table (a `count`), and how a file was read (the `reason`)."""


def folder_of(trace: str) -> str:
    """The folder of a trace within a table; Spark escapes these characters and no others."""
    return "trace=" + _ESCAPED.sub(lambda found: f"%{ord(found[0]):02X}", trace)


def lower_quantile(values: pd.Series[float], share: float) -> float:
    """The smallest value that at least this share of the values do not exceed: Spark's kind of quantile."""
    ordered = np.sort(values.to_numpy(float))
    return float(ordered[max(int(np.ceil(share * len(ordered))) - 1, 0)])


_ESCAPED = re.compile(r"""["#%'*/:=?\\{\[\]^\x01-\x1f\x7f]""")
