"""The columns of the tables that trace files are converted to.  A row is an observation; tables are partitioned by trace.

Times are seconds on the trace's own clock (epoch seconds if the file has them), so that the files of one experiment can be
combined.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa

STAGING = "_staging"
"""Subfolder to which new tables are written until they are complete; earlier tables stay in place until then."""
MAX_GAP_S = 86_400
"""Maximum seconds without arrivals for which each second gets a row; in a longer gap, only the first and the last second do."""


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
        # group of rows whose median speed is the reference for `factor`: a series; null: the trace
        pa.field("usual_of", pa.string()),
        pa.field("count", pa.int64()),
    ]
)
"""All columns of all tables.  Readers yield rows with these columns, whatever their kind.

The `kind` of a row is the name of a table, `arrivals` (counted per second for the table `rates`), or one of NO_TABLE.
"""
NO_TABLE = ("passed", "note")
"""Kinds of rows that are in no table: the number of lines that belong to none (`count`), and how a file was read (`reason`)."""


def folder_of(trace: str) -> str:
    """Return the name of a trace's folder in a table.  Exactly those characters are escaped that Spark escapes."""
    return "trace=" + _ESCAPED.sub(lambda found: f"%{ord(found[0]):02X}", trace)


def lower_quantile(values: pd.Series[float], share: float) -> float:
    """Return the smallest value such that at least this share of the values are not larger, as Spark's percentile_approx does."""
    ordered = np.sort(values.to_numpy(float))
    return float(ordered[max(int(np.ceil(share * len(ordered))) - 1, 0)])


_ESCAPED = re.compile(r"""["#%'*/:=?\\{\[\]^\x01-\x1f\x7f]""")
