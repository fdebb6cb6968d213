"""Cells on Spark: one task per cell, rows come back as text and are kept by the driver, as in a local sweep.

`spark.range(0, n, 1, n).mapInArrow` gives exactly one cell per task without a shuffle.  Jobs of a few cells each overlap, so that
rows are kept while others still run.  A cell may run twice (lost executor, speculation): it is pure, the row is the same.  The
package must be installed on every node.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from sim.sweep import java
from sim.sweep.cell import row, warm
from sim.sweep.local import Watch
from sim.sweep.plan import Cell

if TYPE_CHECKING:
    from sim.plane import Engine

__all__ = ["each_row"]

_NOT_YET = "PySpark does not yet fully support pandas"
_SETTINGS = {
    "spark.driver.host": "127.0.0.1",  # Spark prefers an interface that may not be reachable ...
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",  # writes over our bar
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.execution.arrow.pyspark.fallback.enabled": "false",  # hides errors
    "spark.executorEnv.PYTHONWARNINGS": f"ignore:{_NOT_YET}:FutureWarning",
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC",
}


def each_row(planned: Sequence[Cell], *, master: str, engine: Engine, watch: Watch, check: bool = True) -> Iterator[dict[str, Any]]:
    """Rows as they come."""
    finished = simulated_ns = 0
    with _session(master) as spark:
        size = max(1, spark.sparkContext.defaultParallelism)
        batches = [planned[i : i + size] for i in range(0, len(planned), size)]
        with ThreadPoolExecutor(max_workers=3) as drivers:  # the next jobs fill slots that the last cells of one leave free
            jobs = {drivers.submit(_batch, spark, batch, engine, check): batch for batch in batches}
            try:
                for job in as_completed(jobs):
                    yield from job.result()
                    finished += len(jobs[job])
                    simulated_ns += sum(cell.scenario.run.duration_ns for cell in jobs[job])
                    watch(finished, simulated_ns)
            except BaseException:
                drivers.shutdown(wait=False, cancel_futures=True)
                spark.sparkContext.cancelAllJobs()
                raise


def _batch(spark: Any, batch: Sequence[Cell], engine: Engine, check: bool) -> list[dict[str, Any]]:
    def run(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        warm(engine)  # a worker is used for many tasks: after the first this costs nothing
        for numbers in batches:
            texts = [json.dumps(row(batch[i], engine, check=check)) for i in numbers.column("id").to_pylist()]
            yield pa.RecordBatch.from_pydict({"row": texts})

    done = spark.range(0, len(batch), 1, len(batch)).mapInArrow(run, "row string").collect()
    return [json.loads(line["row"]) for line in done]


@contextmanager
def _session(master: str) -> Iterator[Any]:
    warnings.filterwarnings("ignore", message=_NOT_YET)
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise java.MissingDependencyError("Spark is not installed: pip install '.[spark]', or use --jobs N, which needs none") from None
    java.prepare()
    os.environ["PYSPARK_PYTHON"] = sys.executable  # else workers take whatever `python3` is on PATH
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder.master(master).appName("ckptsim sweep")
    for name, value in _SETTINGS.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    try:
        yield spark
    finally:
        spark.stop()
