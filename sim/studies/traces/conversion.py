"""Convert trace files to tables, and cut windows from tables: in this process if they are small, otherwise on Spark."""

from __future__ import annotations

import shutil
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from sim.studies.sweeps.spark_masters import MasterError
from sim.studies.traces.choices import Choices
from sim.studies.traces.listing import TraceFile
from sim.studies.traces.parsing import TraceFileError
from sim.studies.traces.reading import rows_of
from sim.studies.traces.tables import COUNT_KEYS, NO_TABLE, STAGING, TABLES, folder_of, order_of
from sim.studies.traces.windows import Cutting, CutWindows, windows_here

HERE, ON_THIS_MACHINE = "here", "local[*]"
"""Values of --master: no Spark, and Spark on this machine."""


def must_be_spark(master: str | None, conf: Iterable[str] | None) -> None:
    """Raise MasterError if Spark settings (--conf) are given without a Spark master."""
    if conf and master in (None, HERE):
        raise MasterError(f"--conf is for Spark: say {'another --master' if master else '--master as well'}")


def convert_traces(
    files: Sequence[TraceFile],
    out: str,
    choices: Choices,
    *,
    master: str | None = None,
    conf: Mapping[str, str] | None = None,
) -> pd.DataFrame:
    """Convert trace files to tables under `out`, and return row counts.

    `master`: HERE, or a Spark master.  None: this process if files are small and local, otherwise Spark on this machine.
    """
    if master == HERE or (master is None and "://" not in out and files_are_small(files)):
        return read_traces_here(files, out, choices)
    from sim.studies.sweeps.spark_session import session
    from sim.studies.traces.pipeline import read_traces

    with session(master or ON_THIS_MACHINE, conf=conf) as spark:
        return read_traces(spark, files, out, choices)


def cut_windows(
    tables: str, cutting: Cutting, *, master: str | None = None, conf: Mapping[str, str] | None = None
) -> CutWindows:
    """Cut windows from tables.  `master`: see `convert_traces`."""
    if master == HERE or (master is None and tables_are_small(tables)):
        return windows_here(tables, cutting)
    from sim.studies.sweeps.spark_session import session
    from sim.studies.traces.pipeline import windows

    with session(master or ON_THIS_MACHINE, conf=conf) as spark:
        return windows(spark, tables, cutting)


MAX_BYTES = 64 << 20
"""Maximum bytes that are read without Spark.  A compressed CSV of this size has 10 million rows, and takes 4 minutes and 1 GB."""


def files_are_small(files: Sequence[TraceFile]) -> bool:
    """Return True if all files are local, and have at most MAX_BYTES together."""
    if any("://" in file.root for file in files):
        return False
    return sum(file.size for file in files) <= MAX_BYTES


def tables_are_small(tables: str) -> bool:
    """Return True if the tables are local, and their rates have at most MAX_BYTES."""
    return (
        "://" not in tables
        and sum(file.stat().st_size for file in Path(tables, "rates").rglob("*.parquet")) <= MAX_BYTES
    )


# ---- Conversion in this process, as `sim.studies.traces.pipeline` does on Spark. The rows of one file at a time are in memory.
# Earlier tables are replaced when the new ones are complete.


def read_traces_here(files: Sequence[TraceFile], out: str, choices: Choices = Choices()) -> pd.DataFrame:  # noqa: B008 - frozen
    """Write the same tables as `sim.studies.traces.pipeline.read_traces`, and return its row counts.

    Raises TraceFileError if the tables cannot be written.
    """
    staging, counts = Path(out, STAGING), list[pd.DataFrame]()
    try:
        shutil.rmtree(staging, ignore_errors=True)
        for name in TABLES:
            Path(staging, name).mkdir(parents=True)
        for number, file in enumerate(files):
            _write(_counted(rows_of(file, choices), counts), staging, number)
        for name in TABLES:
            (staging / name / "_SUCCESS").touch()  # as Spark writes it, for programs that wait for it
            shutil.rmtree(Path(out, name), ignore_errors=True)
            Path(staging, name).rename(Path(out, name))
    except OSError as error:
        raise TraceFileError(f"the tables cannot be written: {error.strerror or error}") from None
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    table = _summed(pd.concat(counts)).sort_values(COUNT_KEYS, na_position="first", ignore_index=True)
    return table.astype({"count": int}).where(table.notna(), None)  # as Spark has them


def _counted(batches: Iterable[pa.RecordBatch], counts: list[pd.DataFrame]) -> Iterator[pa.RecordBatch]:
    """Yield the non-empty batches, and add the number of their rows by COUNT_KEYS to `counts`."""
    for batch in batches:
        if batch.num_rows:
            rows = batch.select([*COUNT_KEYS, "count", "line"]).to_pandas()
            counts.append(_summed(rows.assign(count=rows["count"].fillna(1))))
            yield batch


def _summed(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the sum of `count` and the smallest `line` for each combination of COUNT_KEYS."""
    return rows.groupby(COUNT_KEYS, dropna=False, as_index=False).agg({"count": "sum", "line": "min"})


def _write(batches: Iterable[pa.RecordBatch], staging: Path, number: int) -> None:
    """Write the rows of a trace file, a file per table, in the order in which Spark sorts.  `number`: index of the trace file."""
    by_table = defaultdict[str, list[pa.RecordBatch]](list)
    for batch in batches:
        kind = batch.column("kind")[0].as_py()
        if kind not in NO_TABLE:
            # the remaining columns are null in rows of this table
            table = "rates" if kind == "arrivals" else kind
            by_table[table].append(batch.select(TABLES[table].names))
    for table, parts in by_table.items():
        rows = pa.Table.from_batches(parts).to_pandas()
        folder = staging / table / folder_of(rows["trace"].iloc[0])
        folder.mkdir()
        ordered = rows.sort_values(order_of(table), kind="stable", na_position="first")
        schema = pa.schema([field for field in TABLES[table] if field.name != "trace"])
        pq.write_table(
            pa.Table.from_pandas(ordered, schema, preserve_index=False), folder / f"part-{number:05d}.parquet"
        )
