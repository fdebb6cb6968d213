"""The columns of the tables that trace files are converted to.  A row is an observation; tables are partitioned by trace.

Times are seconds on the trace's own clock (epoch seconds if the file has them), so that the files of one experiment can be
combined.
"""

from __future__ import annotations

import re

import pyarrow as pa

STAGING = "_staging"
"""Subfolder to which new tables are written until they are complete; earlier tables stay in place until then."""
MAX_GAP_S = 86_400
"""Maximum seconds without arrivals for which each second gets a row; in a longer gap, only the first and the last second do."""


_TRACE = pa.field("trace", pa.string())  # path of the file below the folder that was read, without its ending
_LINE = pa.field("line", pa.int64())  # line in the file, from 1; null: the file as a whole
_TIME = pa.field("t_s", pa.float64())  # seconds on the trace's own clock; null: the file has no times

TABLES: dict[str, pa.Schema] = {
    "rates": pa.schema(
        [
            _TRACE,
            _LINE,
            _TIME,
            # records per second, as in the file; of arrivals: counted per second; null: not observed
            pa.field("rate", pa.float64()),
        ]
    ),
    "failures": pa.schema(
        [
            _TRACE,
            _LINE,
            _TIME,
            pa.field("run", pa.string()),  # traces of the folder whose names end in it had the failure; null: all had
        ]
    ),
    "quarantine": pa.schema(
        [
            _TRACE,
            _LINE,
            pa.field("file", pa.string()),  # path below the folder that was read
            pa.field("reason", pa.string()),  # why the row is in no other table
            pa.field("text", pa.string()),  # the beginning of the row
        ]
    ),
}

UNION = pa.schema(
    [
        pa.field("kind", pa.string()),
        *dict.fromkeys(field for schema in TABLES.values() for field in schema),
        pa.field("count", pa.int64()),
    ]
)
"""All columns of all tables.  Readers yield rows with these columns, whatever their kind.

The `kind` of a row is the name of a table, `arrivals` (counted per second for the table `rates`), or one of NO_TABLE.
"""
NO_TABLE = ("passed", "note")
"""Kinds of rows that are in no table: the number of lines that belong to none (`count`), and how a file was read (`reason`)."""


COUNT_KEYS = ["trace", "file", "kind", "reason"]
"""Columns by which rows are counted."""


def order_of(table: str) -> list[str]:
    """Return the columns by which the rows of a trace are sorted in a table."""
    return [name for name in ("line", "t_s") if name in TABLES[table].names]


def folder_of(trace: str) -> str:
    """Return the name of a trace's folder in a table.  Exactly those characters are escaped that Spark escapes."""
    return "trace=" + _ESCAPED.sub(lambda match: f"%{ord(match[0]):02X}", trace)


_ESCAPED = re.compile(r"""["#%'*/:=?\\{\[\]^\x01-\x1f\x7f]""")
