"""Convert trace files to tables, and cut windows from tables, on Spark.

The driver receives only names, counts, failures and windows.  The tables are `<out>/<table>/trace=<name>/*.parquet`.  Rows are
read once and written to a staging folder; the tables are written from there.  If a command is interrupted while it reads files,
the earlier tables are unchanged.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from itertools import accumulate, groupby
from typing import Any

import pandas as pd
import pyarrow as pa

from sim.runtime.result import code_version
from sim.studies.sweeps import spark_task
from sim.studies.sweeps.spark_session import ARCHIVE, reason
from sim.studies.traces.choices import Choices
from sim.studies.traces.listing import TraceFile
from sim.studies.traces.parsing import TraceFileError
from sim.studies.traces.tables import COUNT_KEYS, STAGING, TABLES, UNION, order_of
from sim.studies.traces.windows import COLUMNS, Cutting, CutWindows, combine_cuts

MAX_TASKS = 2000
"""Maximum tasks; each takes memory of the driver."""
OPENING = 64 << 10
"""Cost of opening a file, as the number of bytes that are read in the same time."""
BYTES_PER_TASK = 4 << 20
"""Compressed bytes that take ten seconds to read, so that the overhead of a task is small."""


def read_traces(spark: Any, files: Sequence[TraceFile], out: str, choices: Choices = Choices()) -> pd.DataFrame:  # noqa: B008 - frozen
    """Write the tables, and return row counts per trace, file, kind and reason, with the first line of each.

    Rows of the kind `passed` belong to no table.  Raises TraceFileError if the tables cannot be written.
    """
    out = out.rstrip("/")
    staging, union = f"{out}/{STAGING}", _spark_schema(UNION)
    try:
        of_tasks = shares(files, spark.sparkContext.defaultParallelism)
        rows = spark.range(0, len(of_tasks), 1, len(of_tasks)).mapInArrow(
            spark_task.reader(pickle.dumps(of_tasks), pickle.dumps(choices), import_function()), union
        )
        rows.write.mode("overwrite").partitionBy("kind").parquet(staging)
        staged = spark.read.schema(union).parquet(staging)
        for name, schema in TABLES.items():
            table = staged.where("kind in ('rates', 'arrivals')" if name == "rates" else f"kind = '{name}'")
            chosen = table.select(*schema.names).repartition("trace")
            chosen.sortWithinPartitions("trace", *order_of(name)).write.mode("overwrite").partitionBy("trace").parquet(
                f"{out}/{name}"
            )
        counts = _counts(staged)
        _remove(spark, staging)
    except Exception as error:  # noqa: BLE001 - Spark's own exceptions, by way of Java
        with suppress(Exception):
            _remove(spark, staging)
        raise TraceFileError(f"the tables cannot be written: {reason(str(error))}") from None
    return counts


def windows(spark: Any, tables: str, cutting: Cutting) -> CutWindows:
    """Cut the same windows as `windows_here`, which has the same arguments, from local or remote tables, one trace per task.

    Raises TraceFileError if there is no such trace, or no window of this length.
    """
    rates, failures = (
        spark.read.schema(_spark_schema(TABLES[name])).parquet(f"{tables.rstrip('/')}/{name}")
        for name in ("rates", "failures")
    )
    if cutting.trace is not None:
        rates = rates.where(rates["trace"] == cutting.trace)
    arguments = pickle.dumps((failures.select("trace", "t_s", "run").toPandas(), cutting))
    types = {"trace": "string", "rows": "bigint", "failures": "bigint"}
    schema = ", ".join(f"{name} {types.get(name, 'double')}" for name in COLUMNS)
    cuts = (
        rates.select("trace", "t_s", "rate")
        .groupBy("trace")
        .applyInPandas(spark_task.cutter(arguments, import_function()), schema)
    )
    return combine_cuts([cuts.toPandas()], tables, cutting)


def shares(files: Sequence[TraceFile], slots: int) -> list[list[TraceFile]]:
    """Split the files into shares of about equal size: one per slot, or more if shares would exceed BYTES_PER_TASK.

    There are about MAX_TASKS shares at most.
    """
    costs = [file.size + OPENING for file in files]
    total = sum(costs)
    share = max(min(BYTES_PER_TASK, total / slots), total / MAX_TASKS)
    middles = (end - cost / 2 for end, cost in zip(accumulate(costs), costs, strict=True))
    numbered = groupby(zip(middles, files, strict=True), key=lambda placed: placed[0] // share)
    return [[file for _, file in placed] for _, placed in numbered]


def _spark_schema(schema: pa.Schema) -> str:
    """Return a schema in Spark's syntax.  Spark cannot infer the schema of an empty table."""
    return ", ".join(f"{field.name} {_TYPES[str(field.type)]}" for field in schema)


_TYPES = {"string": "string", "int64": "bigint", "double": "double"}


def import_function() -> Callable[[], None]:
    """Return the function that a task calls first.  It makes the driver's version of the package importable."""
    from pyspark import cloudpickle

    cloudpickle.register_pickle_by_value(spark_task)
    return partial(spark_task.import_driver_package, ARCHIVE, code_version())


def _counts(staged: Any) -> pd.DataFrame:
    """Return the number of staged rows by COUNT_KEYS, and the first line of each."""
    from pyspark.sql import functions as F  # noqa: N812 - the usual alias

    counted = staged.groupBy(*COUNT_KEYS).agg(
        F.sum(F.coalesce("count", F.lit(1))).alias("count"), F.min("line").alias("line")
    )
    counts: pd.DataFrame = counted.orderBy(*COUNT_KEYS).toPandas()
    return counts


def _remove(spark: Any, folder: str) -> None:
    """Remove a folder, using the Hadoop file system with which Spark wrote it."""
    context = spark.sparkContext
    path = context._jvm.org.apache.hadoop.fs.Path(folder)  # noqa: SLF001 - PySpark has no interface to files
    path.getFileSystem(context._jsc.hadoopConfiguration()).delete(path, True)  # noqa: SLF001
