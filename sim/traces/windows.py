"""Long traces -> windows that a sweep replays, with features, chosen by time, by burst, by load or around failures.

All of it on Spark, by trace and window: no trace has to fit anywhere.  What comes out is the table that `windows: {file: ...}` of a
sweep file reads: `window` (a name), `from_s` (from the first row of the trace), and features.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sim.traces.lines import TraceFileError

__all__ = ["CUTS", "FEATURES", "windows"]

FEATURES = {
    "rows": "observations",
    "mean": "of the rate, records/s",
    "peak": "its largest value",
    "burst": "peak / mean: 1 is steady",
    "variation": "standard deviation / mean",
    "load": "mean / mean of the whole trace",
    "failures": "how many begin in the window, of traces in the same folder",
}


def windows(spark: Any, tables: str, *, length_s: float, cut: str = "time", count: int | None = None, trace: str | None = None) -> Any:
    """A DataFrame: trace, window, from_s, length_s and the FEATURES, `count` per trace (default: all).

    TraceFileError: no such trace, or no window of that length in any.
    """
    from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

    rates = spark.read.parquet(f"{tables}/rates").where("rate is not null")
    if trace is not None:
        rates = rates.where(F.col("trace") == trace)
    span = rates.groupBy("trace").agg(F.min("t_s").alias("begin"), F.max("t_s").alias("end"), F.avg("rate").alias("usual"))
    span = span.where(F.col("end") - F.col("begin") >= length_s)
    if span.isEmpty():
        wanted = f"the trace '{trace}'" if trace is not None else "any trace"
        raise TraceFileError(f"{tables}: there is no window of {length_s:g} s in {wanted}")
    failures = _failures(spark, tables, span)
    cuts = _around(failures, span, length_s) if cut == "failures" else _grid(span, length_s)
    inside = (F.col("t_s") >= F.col("from")) & (F.col("t_s") < F.col("from") + length_s)
    described = (
        rates.join(cuts, "trace").where(inside).groupBy("trace", "from", "begin", "usual")
        .agg(F.count("*").alias("rows"), F.avg("rate").alias("mean"), F.max("rate").alias("peak"), F.stddev_pop("rate").alias("spread"))
        .withColumn("burst", F.col("peak") / F.col("mean")).withColumn("variation", F.col("spread") / F.col("mean"))
        .withColumn("load", F.col("mean") / F.col("usual"))
    ).where("mean > 0")  # fmt: skip
    within = described.select("trace", "from").join(failures, "trace").where(inside)
    seen = within.groupBy("trace", "from").agg(F.count("*").alias("failures"))
    full = described.join(seen, ["trace", "from"], "left").fillna(0, ["failures"]).withColumn("from_s", F.col("from") - F.col("begin"))
    chosen = CUTS[cut](full, count)
    name = F.format_string("%.0f s", F.col("from_s"))
    return chosen.withColumn("window", name).withColumn("length_s", F.lit(float(length_s))).select(
        "trace", "window", "from_s", "length_s", *FEATURES
    ).orderBy("trace", "from_s")  # fmt: skip


def _grid(span: Any, length_s: float) -> Any:
    """One after the other; the last one ends before the trace does."""
    from pyspark.sql import functions as F  # noqa: N812

    last = F.floor((F.col("end") - F.col("begin")) / length_s) - 1
    numbered = span.withColumn("k", F.explode(F.sequence(F.lit(0).cast("bigint"), last)))
    return numbered.withColumn("from", F.col("begin") + F.col("k") * length_s)


def _around(failures: Any, span: Any, length_s: float) -> Any:
    """A window per failure that begins a third of its length before it, whole windows only."""
    from pyspark.sql import functions as F  # noqa: N812

    placed = failures.withColumnRenamed("t_s", "failed").join(span, "trace").withColumn("from", F.col("failed") - length_s / 3)
    return placed.where((F.col("from") >= F.col("begin")) & (F.col("from") + length_s <= F.col("end"))).dropDuplicates(["trace", "from"])


def _failures(spark: Any, tables: str, span: Any) -> Any:
    """Of each trace: those of traces in the same folder, while it lasts."""
    from pyspark.sql import functions as F  # noqa: N812

    folder = F.regexp_replace("trace", "[^/]*$", "")
    told = spark.read.parquet(f"{tables}/failures").select(folder.alias("folder"), "t_s")
    within = (F.col("t_s") >= F.col("begin")) & (F.col("t_s") <= F.col("end"))
    return span.withColumn("folder", folder).join(told, "folder").where(within).select("trace", "t_s")


def _first(order: str) -> Callable[[Any, int | None], Any]:
    def choose(full: Any, count: int | None) -> Any:
        from pyspark.sql import Window
        from pyspark.sql import functions as F  # noqa: N812

        if count is None:
            return full
        ranked = full.withColumn("rank", F.row_number().over(Window.partitionBy("trace").orderBy(F.expr(order), "from")))
        return ranked.where(F.col("rank") <= count)

    return choose


def _spread(full: Any, count: int | None) -> Any:
    """From each of `count` equal classes of load the window in its middle."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F  # noqa: N812

    if count is None:
        return full
    by_load = Window.partitionBy("trace").orderBy("mean", "from")
    classes = full.withColumn("class", F.ntile(count).over(by_load))
    within = Window.partitionBy("trace", "class")
    ranked = classes.withColumn("rank", F.row_number().over(within.orderBy("mean", "from"))).withColumn("n", F.count("*").over(within))
    return ranked.where(F.col("rank") == F.floor((F.col("n") + 1) / 2))


CUTS: dict[str, Callable[[Any, int | None], Any]] = {
    "time": _first("`from`"),
    "bursts": _first("-burst"),
    "load": _spread,
    "failures": _first("`from`"),
}
"""How windows are chosen: the earliest, the most bursty, one of each class of load, around failures."""
