"""Long traces -> windows that a sweep replays, with features, chosen by time, by burst, by load or around failures.

All of it runs on Spark, by trace and window.  No trace has to fit into memory, and a row is joined only with the windows near it.
`sim.traces.local` cuts the same windows without Spark, a trace at a time.
The result is the table that `windows: {file: ...}` of a sweep file reads.  Its columns are `window` (a name), `from_s` (from the first
row of the trace), `length_s`, `file` (the trace's table of rates, relative to the stored windows), and features.
"""

from __future__ import annotations

from collections.abc import Callable
from os.path import relpath
from typing import Any, NamedTuple

import pandas as pd

from sim.traces.lines import TraceFileError
from sim.traces.pipeline import schema_of
from sim.traces.tables import folder_of

FEATURES = {
    "rows": "observations",
    "covered": "share of the window with observations, each as long as they are apart in the median of the trace",
    "mean": "of the rate, records/s",
    "p95": "of the rate",
    "peak": "its largest value",
    "burst": "peak / mean: 1 is steady",
    "variation": "standard deviation / mean",
    "trend": "what the rate gains from begin to end of a straight line through it, as a share of the mean",
    "load": "mean / mean of the whole trace",
    "failures": "how many begin in the window, of traces in the same folder",
    "failure_s": "when the first of them begins, from the begin of the window; blank: none does",
}
LEAST_COVERED = 0.5
"""A window with fewer observations tells little about the load: it is left out, and counted."""


class CutWindows(NamedTuple):
    """The windows that were cut from traces, and notes about those left out."""

    windows: pd.DataFrame  # window, trace, from_s, length_s, file, and the FEATURES
    notes: list[str]  # lines about windows left out


def windows(
    spark: Any, tables: str, *, length_s: float, cut: str = "time", count: int | None = None, trace: str | None = None, base: str = "."
) -> CutWindows:
    """Cut windows, `count` per trace (default: all).  `base`: the folder that the paths in `file` start from.

    TraceFileError: no such trace, or no window of that length in any.
    """
    from pyspark.sql import functions as F  # noqa: N812 - the usual alias

    tables = tables.rstrip("/")
    rates = _table(spark, tables, "rates")
    if trace is not None:
        rates = rates.where(F.col("trace") == trace)
    span = _span(rates).where((F.col("end") - F.col("begin") >= length_s) & F.col("usual").isNotNull()).cache()
    possible = span.agg(F.sum(F.floor((F.col("end") - F.col("begin")) / length_s))).first()[0]
    if not possible:
        raise none_so_long(tables, length_s, trace)
    failures = _failures(spark, tables, span)
    around = _around(failures, span, length_s) if cut == "failures" else None
    full = _described(rates, failures, span, around, length_s).cache()
    sparse = (possible if around is None else around.count()) - full.count()
    found = CUTS[cut](full, count).select("trace", "from_s", *FEATURES).orderBy("trace", "from_s").toPandas()
    return finished(found, tables, length_s, base, sparse=sparse)


def none_so_long(tables: str, length_s: float, trace: str | None) -> TraceFileError:
    searched = f"the trace '{trace}'" if trace is not None else "any trace"
    return TraceFileError(f"{tables}: there is no window of {length_s:g} s in {searched}")


def finished(found: pd.DataFrame, tables: str, length_s: float, base: str, *, sparse: int) -> CutWindows:
    """The table with names and places.  TraceFileError: it is empty."""
    notes = list[str]()
    if sparse:
        notes.append(f"{sparse} windows are left out: observations in less than {LEAST_COVERED:.0%} of each, or no load at all")
    if found.empty:
        raise TraceFileError(f"{tables}: no windows: " + (notes[0] if notes else f"none of {length_s:g} s around a failure"))
    several = len(set(found["trace"])) > 1
    names = [f"{row.trace} {row.from_s:.10g} s" if several else f"{row.from_s:.10g} s" for row in found.itertuples()]
    found.insert(0, "window", names)
    found.insert(3, "length_s", float(length_s))
    found.insert(4, "file", [_place(tables, name, base) for name in found["trace"]])
    return CutWindows(found, notes)


def _table(spark: Any, tables: str, name: str) -> Any:
    return spark.read.schema(schema_of(name)).parquet(f"{tables}/{name}")


def _place(tables: str, trace: str, base: str) -> str:
    """The path of a trace's rates."""
    place = f"{tables}/rates/{folder_of(trace)}"
    return place if "://" in place else relpath(place, base)


def _span(rates: Any) -> Any:
    """A row per trace: begin, end, mean rate, and the usual distance of its rows."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F  # noqa: N812

    apart = F.lead("t_s").over(Window.partitionBy("trace").orderBy("t_s")) - F.col("t_s")
    return rates.withColumn("apart", apart).groupBy("trace").agg(
        F.min("t_s").alias("begin"), F.max("t_s").alias("end"), F.avg("rate").alias("usual"),
        F.percentile_approx("apart", 0.5).alias("step"),
    )  # fmt: skip


def _around(failures: Any, span: Any, length_s: float) -> Any:
    """A window per failure that begins a third of its length before it; only complete windows."""
    from pyspark.sql import functions as F  # noqa: N812

    placed = failures.join(span, "trace").withColumn("from_s", F.col("t_s") - F.col("begin") - length_s / 3).drop("t_s")
    within = (F.col("from_s") >= 0) & (F.col("begin") + F.col("from_s") + length_s <= F.col("end"))
    return placed.where(within).select("trace", "from_s").distinct()


def _failures(spark: Any, tables: str, span: Any) -> Any:
    """A row per trace and failure during it: failures stand in traces of the same folder."""
    from pyspark.sql import functions as F  # noqa: N812

    folder = F.regexp_replace("trace", "[^/]*$", "")
    failures_of_folder = _table(spark, tables, "failures").select(folder.alias("folder"), "t_s", "run")
    met = (F.col("t_s") >= F.col("begin")) & (F.col("t_s") <= F.col("end"))
    met &= F.col("run").isNull() | F.expr("endswith(trace, run)")
    return span.withColumn("folder", folder).join(failures_of_folder, "folder").where(met).select("trace", "t_s")


def _described(rates: Any, failures: Any, span: Any, around: Any, length_s: float) -> Any:
    """The features of each window around failures or (`around` None) of consecutive windows; the last one ends before the trace does."""
    from pyspark.sql import functions as F  # noqa: N812

    def inside(rows: Any) -> Any:
        """Rows with each window that holds them, as `at`: seconds from its begin."""
        timed = rows.join(F.broadcast(span), "trace").withColumn("on_s", F.col("t_s") - F.col("begin"))
        timed = timed.withColumn("stretch", F.floor(F.col("on_s") / length_s))
        if around is None:
            timed = timed.withColumn("from_s", F.col("stretch") * F.lit(float(length_s)))
            timed = timed.where(F.col("from_s") + length_s <= F.col("end") - F.col("begin"))
        else:
            stretch = F.floor(F.col("from_s") / length_s)  # a window overlaps two stretches at most
            timed = timed.join(around.withColumn("stretch", F.explode(F.array(stretch, stretch + 1))), ["trace", "stretch"])
        return timed.withColumn("at", F.col("on_s") - F.col("from_s")).where((F.col("at") >= 0) & (F.col("at") < length_s))

    seen = inside(failures).groupBy("trace", "from_s").agg(F.count("*").alias("failures"), F.min("at").alias("failure_s"))
    described = inside(rates.where("rate is not null")).groupBy("trace", "from_s", "usual", "step").agg(
        F.count("*").alias("rows"), F.avg("rate").alias("mean"), F.max("rate").alias("peak"), F.stddev_pop("rate").alias("spread"),
        F.percentile_approx("rate", 0.95).alias("p95"), F.regr_slope("rate", "at").alias("slope"),
    )  # fmt: skip
    complete = described.where("mean > 0").withColumns({
        "covered": F.least(F.lit(1.0), F.col("rows") * F.col("step") / length_s),
        "burst": F.col("peak") / F.col("mean"),
        "variation": F.col("spread") / F.col("mean"),
        "trend": F.coalesce(F.col("slope"), F.lit(0.0)) * length_s / F.col("mean"),
        "load": F.col("mean") / F.col("usual"),
    })  # fmt: skip
    return complete.where(F.col("covered") >= LEAST_COVERED).join(seen, ["trace", "from_s"], "left").fillna(0, ["failures"])


def _first(order: str) -> Callable[[Any, int | None], Any]:
    def choose(full: Any, count: int | None) -> Any:
        from pyspark.sql import Window
        from pyspark.sql import functions as F  # noqa: N812

        if count is None:
            return full
        ranked = full.withColumn("rank", F.row_number().over(Window.partitionBy("trace").orderBy(F.expr(order), "from_s")))
        return ranked.where(F.col("rank") <= count)

    return choose


def _spread(full: Any, count: int | None) -> Any:
    """The middle window of each of `count` equal classes of load."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F  # noqa: N812

    if count is None:
        return full
    by_load = Window.partitionBy("trace").orderBy("mean", "from_s")
    classes = full.withColumn("class", F.ntile(count).over(by_load))
    within = Window.partitionBy("trace", "class")
    ranked = classes.withColumn("rank", F.row_number().over(within.orderBy("mean", "from_s"))).withColumn("n", F.count("*").over(within))
    return ranked.where(F.col("rank") == F.floor((F.col("n") + 1) / 2))


CUTS: dict[str, Callable[[Any, int | None], Any]] = {
    "time": _first("from_s"),
    "bursts": _first("-burst"),
    "load": _spread,
    "failures": _first("from_s"),
}
"""The ways of choosing windows: the earliest, the most bursty, one per class of load, around failures."""
