"""Convert trace files to tables in this process, as `sim.studies.traces.pipeline` does on Spark.

The rows of one file at a time are in memory.  Earlier tables are replaced when the new ones are complete.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from sim.studies.traces.choices import Choices
from sim.studies.traces.files import rows_of
from sim.studies.traces.listing import TraceFile
from sim.studies.traces.parsing import TraceFileError
from sim.studies.traces.tables import NO_TABLE, STAGING, TABLES, folder_of, lower_quantile


def read_traces_here(files: Sequence[TraceFile], out: str, choices: Choices = Choices()) -> pd.DataFrame:  # noqa: B008 - frozen
    """Write the same tables as `sim.studies.traces.pipeline.read_traces`, and return its row counts.

    Raises TraceFileError if the tables cannot be written.
    """
    staging, counts = Path(out, STAGING), _Counts()
    try:
        shutil.rmtree(staging, ignore_errors=True)
        for name in TABLES:
            Path(staging, name).mkdir(parents=True)
        for number, file in enumerate(files):
            _write(_tables(counts.of(rows_of(file, choices))), staging, number)
        for name in TABLES:
            (staging / name / "_SUCCESS").touch()  # as Spark writes it, for programs that wait for it
            shutil.rmtree(Path(out, name), ignore_errors=True)
            Path(staging, name).rename(Path(out, name))
    except OSError as error:
        raise TraceFileError(f"the tables cannot be written: {error.strerror or error}") from None
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    return counts.table()


_KEYS = ["trace", "file", "kind", "reason"]


class _Counts:
    """The number of rows by trace, file, kind and reason, and the first line of each."""

    def __init__(self) -> None:
        self._parts = list[pa.Table]()

    def of(self, batches: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
        """Yield the non-empty batches unchanged, and count their rows."""
        for batch in batches:
            if batch.num_rows:
                columns = [*map(batch.column, _KEYS), pc.fill_null(batch.column("count"), 1), batch.column("line")]
                self._parts.append(_summed(pa.table(columns, [*_KEYS, "count", "line"])))
                yield batch

    def table(self) -> pd.DataFrame:
        """Return the counts, a row per trace, file, kind and reason."""
        found: pd.DataFrame = _summed(pa.concat_tables(self._parts)).to_pandas()
        return found.sort_values(_KEYS, na_position="first", ignore_index=True)


def _summed(rows: pa.Table) -> pa.Table:
    """Return the sum of `count` and the smallest `line` for each combination of _KEYS."""
    sums = rows.group_by(_KEYS).aggregate([("count", "sum"), ("line", "min")])
    return sums.select([*_KEYS, "count_sum", "line_min"]).rename_columns([*_KEYS, "count", "line"])


def _tables(batches: Iterable[pa.RecordBatch]) -> dict[str, pd.DataFrame]:
    """Return {table: rows} of a file."""
    by_table = dict[str, list[pa.RecordBatch]]()
    for batch in batches:
        kind = batch.column("kind")[0].as_py()
        if kind in NO_TABLE:
            continue
        table = "rates" if kind == "arrivals" else kind
        extra = ["usual_of"] if kind == "factors" else []
        # the remaining columns are null in rows of this table
        by_table.setdefault(table, []).append(batch.select([*(column.name for column in TABLES[table]), *extra]))
    found = {table: pa.Table.from_batches(parts).to_pandas() for table, parts in by_table.items()}
    if "factors" in found:
        usual = (
            found["factors"]
            .groupby(["trace", "usual_of"], dropna=False)["speed"]
            .transform(lambda speeds: lower_quantile(speeds, 0.5))
        )
        found["factors"]["factor"] = usual / found["factors"]["speed"]
    return found


def _write(tables: dict[str, pd.DataFrame], staging: Path, number: int) -> None:
    """Write a file per table and trace, in the order in which Spark sorts.  `number`: index of the trace file, in its name."""
    for name, rows in tables.items():
        columns = [column for column in TABLES[name] if column.name != "trace"]
        schema = pa.schema([pa.field(column.name, column.type) for column in columns])
        keys = ["line", *(column.name for column in columns if column.name == "t_s")]
        for trace, of_trace in rows.groupby("trace"):
            ordered = of_trace.sort_values(keys, kind="stable", na_position="first").reindex(columns=schema.names)
            folder = staging / name / folder_of(str(trace))
            folder.mkdir(exist_ok=True)
            pq.write_table(
                pa.Table.from_pandas(ordered, schema, preserve_index=False), folder / f"part-{number:05d}.parquet"
            )
