"""A folder of traces -> typed tables, on Spark: one task per file, nothing but names and counts on the driver.

`<out>/<table>/trace=<name>/*.parquet`.  Rows are read once into a staging folder, then laid into their tables; a run that is
interrupted leaves the tables of the one before.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd

from sim.traces.files import TraceFile, list_files, rows_of
from sim.traces.tables import TABLES

__all__ = ["read_traces"]

STAGING = "_staging"


def read_traces(spark: Any, root: str, out: str) -> pd.DataFrame:
    """Reads all files below `root`; how many rows there are of each trace, table and (in quarantine) reason.

    TraceFileError: there is nothing to read.
    """
    files, out = list_files(root), out.rstrip("/")
    staging = f"{out}/{STAGING}"
    rows = spark.range(0, len(files), 1, len(files)).mapInArrow(_reader(files), _schema())
    rows.write.mode("overwrite").partitionBy("kind").parquet(staging)
    staged = spark.read.schema(_schema()).parquet(staging)
    for name, columns in TABLES.items():
        table = _counted(staged) if name == "rates" else staged.where(f"kind = '{name}'")
        table = _with_factor(table) if name == "factors" else table
        ordered = table.select(*(column.name for column in columns)).repartition("trace").sortWithinPartitions("trace", "line")
        ordered.write.mode("overwrite").partitionBy("trace").parquet(f"{out}/{name}")
    counts: pd.DataFrame = staged.groupBy("trace", "kind", "reason").count().orderBy("trace", "kind", "reason").toPandas()
    _remove(spark, staging)
    return counts


def _reader(files: list[TraceFile]) -> Any:
    def read(batches: Iterator[Any]) -> Iterator[Any]:
        for numbers in batches:
            for i in numbers.column("id").to_pylist():
                yield from rows_of(files[i])

    return read


def _schema() -> str:
    types = {"string": "string", "int64": "bigint", "double": "double"}
    columns = {column.name: types[str(column.type)] for table in TABLES.values() for column in table}
    return ", ".join(f"{name} {kind}" for name, kind in {"kind": "string", **columns}.items())


def _counted(staged: Any) -> Any:
    """Rates as they are, and arrivals counted per second, the seconds without any included."""
    from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

    arrivals = staged.where("kind = 'arrivals'").withColumn("second", F.floor("t_s"))
    per_second = arrivals.groupBy("trace", "second").agg(F.count("*").alias("n"), F.min("line").alias("first"))
    ends = per_second.groupBy("trace").agg(F.min("second").alias("begin"), F.max("second").alias("end"))
    seconds = ends.select("trace", F.explode(F.sequence("begin", "end")).alias("second"))
    filled = seconds.join(per_second, ["trace", "second"], "left").select(
        "trace", F.coalesce("first", F.lit(0)).alias("line"), F.col("second").cast("double").alias("t_s"),
        F.coalesce("n", F.lit(0)).cast("double").alias("rate"), F.lit(None).cast("double").alias("latency_ms"),
        F.lit(None).cast("double").alias("lag"),
    )  # fmt: skip
    return staged.where("kind = 'rates'").select(*(column.name for column in TABLES["rates"])).unionByName(filled)


def _with_factor(speeds: Any) -> Any:
    from pyspark.sql import functions as F  # noqa: N812

    usual = speeds.groupBy("trace").agg(F.percentile_approx("speed", 0.5, 10_000).alias("usual"))
    return speeds.drop("factor").join(usual, "trace").withColumn("factor", F.col("usual") / F.col("speed"))


def _remove(spark: Any, folder: str) -> None:
    """By the file system that Spark wrote it with."""
    jvm = spark.sparkContext._jvm  # noqa: SLF001 - PySpark has no words for files
    path = jvm.org.apache.hadoop.fs.Path(folder)
    path.getFileSystem(spark.sparkContext._jsc.hadoopConfiguration()).delete(path, True)  # noqa: SLF001
