"""Cut long traces into windows that a sweep replays.  Windows are chosen by time, burst or load, or around failures.

The same function, `cut_trace`, cuts the windows of one trace in this process and on Spark, so the rates of one trace must fit
into memory.  The result is the table that `windows: {file: ...}` of a sweep file reads.  Its columns are `window` (a name),
`trace`, `from_s` (start, from the first row of the trace), `length_s`, `file` (the trace's table of rates, relative to the table
of windows), and the features of the window (FEATURES).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from os.path import relpath
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from sim.model.frozen import frozen
from sim.studies.traces.parsing import TraceFileError
from sim.studies.traces.tables import folder_of

Floats = NDArray[np.float64]
FEATURES = (
    "rows",  # number of observations
    "covered",  # share of the window with observations, each as long as the median distance of rows in the trace
    "mean",  # mean rate [records/s]
    "peak",  # largest rate
    "burst",  # peak / mean: 1 is steady
    "load",  # mean / mean of the whole trace
    "failures",  # number of failures that begin in the window, of traces in the same folder
    "failure_s",  # begin of the first of them, from the begin of the window; blank: there is none
)
MIN_COVERED = 0.5
"""Minimum `covered` of a window.  Windows with less are left out, and their number is reported."""
COLUMNS = ("trace", "from_s", *FEATURES)


class CutWindows(NamedTuple):
    """Windows cut from traces."""

    windows: pd.DataFrame  # window, trace, from_s, length_s, file, and the FEATURES
    notes: list[str]  # messages on windows that were left out


@frozen
class Cutting:
    """How windows are cut."""

    length_s: float
    cut: str = "time"  # key of `CUTS`: how windows are chosen
    count: int | None = None  # maximum windows per trace; None: all
    trace: str | None = None  # name of the only trace to cut; None: all traces
    base: str = "."  # folder to which the paths in `file` are relative


def windows_here(tables: str, cutting: Cutting) -> CutWindows:
    """Cut windows from local tables.

    Raises TraceFileError if there is no such trace, no window of this length, or a damaged table.
    """
    try:
        failure_parts = list(_parts(tables, "failures", ["t_s", "run"]))
        failures = pd.concat(failure_parts) if failure_parts else pd.DataFrame(columns=["t_s", "run", "trace"])
        cuts = [
            cut_trace(rates, failures, cutting)
            for rates in _parts(tables, "rates", ["t_s", "rate"])
            if cutting.trace in (None, rates["trace"].iloc[0])
        ]
    except (OSError, pa.ArrowException) as error:
        raise TraceFileError(f"{tables}: the tables cannot be read: {str(error).splitlines()[0]}") from None
    return combine_cuts(cuts, tables, cutting)


def cut_trace(rates: pd.DataFrame, failures: pd.DataFrame, cutting: Cutting) -> pd.DataFrame:
    """Return the chosen windows of one trace, a row each, after a row on the windows that were left out.

    That first row has NaN as `from_s`, and the number of windows without enough observations or load as `rows`.
    The table is empty if the trace is shorter than a window, or has no rates.
    """
    length_s = cutting.length_s
    series = _series(rates, length_s)
    if series is None:
        return pd.DataFrame(columns=list(COLUMNS))
    failed_s = _failures_during(series, failures)
    begins = (
        _around_failures(failed_s, series, length_s)
        if cutting.cut == "failures"
        else np.arange(int(series.length_s // length_s), dtype=np.float64) * length_s  # consecutive and complete
    )
    windows = _with_features(series, failed_s, begins, length_s)
    chosen = CUTS[cutting.cut](windows, cutting.count).to_dict("records") if len(windows) else []
    left_out = {"trace": series.trace, "from_s": np.nan, "rows": len(begins) - len(windows), "failures": 0}
    return pd.DataFrame([left_out, *chosen], columns=list(COLUMNS))


def combine_cuts(cuts: list[pd.DataFrame], tables: str, cutting: Cutting) -> CutWindows:
    """Return the windows of all traces (results of `cut_trace`), with names and paths.  TraceFileError: there are none."""
    tables, length_s = tables.rstrip("/"), cutting.length_s
    cuts = [cut for cut in cuts if len(cut)]
    if not cuts:
        searched = f"the trace '{cutting.trace}'" if cutting.trace is not None else "any trace"
        raise TraceFileError(f"{tables}: there is no window of {length_s:g} s in {searched}")
    rows = pd.concat(cuts, ignore_index=True)
    windows = rows[rows["from_s"].notna()].sort_values(["trace", "from_s"], ignore_index=True)
    notes = list[str]()
    if sparse := int(rows["rows"][rows["from_s"].isna()].sum()):
        notes.append(
            f"{sparse} windows are left out: observations in less than {MIN_COVERED:.0%} of each, or no load at all"
        )
    if windows.empty:
        raise TraceFileError(
            f"{tables}: no windows: " + (notes[0] if notes else f"none of {length_s:g} s around a failure")
        )
    has_several = len(set(windows["trace"])) > 1
    names = [
        f"{row.trace} {row.from_s:.10g} s" if has_several else f"{row.from_s:.10g} s" for row in windows.itertuples()
    ]
    windows.insert(0, "window", names)
    windows.insert(3, "length_s", float(length_s))
    windows.insert(4, "file", [_rates_path(tables, trace, cutting.base) for trace in windows["trace"]])
    return CutWindows(windows, notes)


def _rates_path(tables: str, trace: str, base: str) -> str:
    """Return the path of a trace's rates: relative to `base`, or a URL."""
    path = f"{tables}/rates/{folder_of(trace)}"
    return path if "://" in path else relpath(path, base)


class _Series(NamedTuple):
    """The rates of a trace that is at least as long as a window, in order of time."""

    trace: str
    begin_s: float
    length_s: float
    on_s: Floats  # times of the observed rates, from the start of the trace
    rate: Floats
    mean: float  # mean rate
    step_s: float  # median distance of rows [s]


def _parts(tables: str, name: str, columns: list[str]) -> Iterator[pd.DataFrame]:
    """Yield the rows of a table, trace by trace."""
    for folder in sorted(Path(tables.rstrip("/"), name).glob("trace=*")):
        rows = pd.concat(pq.ParquetFile(part).read(columns).to_pandas() for part in sorted(folder.glob("*.parquet")))
        yield rows.assign(trace=unquote(folder.name.removeprefix("trace=")))


def _series(rates: pd.DataFrame, length_s: float) -> _Series | None:
    """Return the rates of a trace, or None if it is shorter than a window or has no rate."""
    rows = rates.dropna(subset="t_s").sort_values("t_s", kind="stable")
    t_s = rows["t_s"].to_numpy(float)
    observed = rows["rate"].notna().to_numpy()
    if not observed.any() or t_s[-1] - t_s[0] < length_s:
        return None
    step_s = float(np.quantile(np.diff(t_s), 0.5, method="inverted_cdf"))
    rate = rows["rate"].to_numpy(float)[observed]
    return _Series(
        str(rows["trace"].iloc[0]), t_s[0], t_s[-1] - t_s[0], (t_s - t_s[0])[observed], rate, float(rate.mean()), step_s
    )


def _failures_during(series: _Series, failures: pd.DataFrame) -> Floats:
    """Return the starts of failures in all traces of its folder, in seconds from the start of the trace."""
    folder = series.trace.rpartition("/")[0]
    at_s = [
        at_s - series.begin_s
        for trace, at_s, run in failures[["trace", "t_s", "run"]].itertuples(index=False, name=None)
        if trace.rpartition("/")[0] == folder and (run is None or series.trace.endswith(run))
    ]
    failed_s = np.array(at_s, float)
    return failed_s[(failed_s >= 0) & (failed_s <= series.length_s)]


def _around_failures(failed_s: Floats, series: _Series, length_s: float) -> Floats:
    """Return the starts of windows around failures [s]: a third of the length before each.  Incomplete windows are left out."""
    begins = np.unique(failed_s - length_s / 3)
    return begins[(begins >= 0) & (begins + length_s <= series.length_s)]


def _with_features(series: _Series, failed_s: Floats, begins: Floats, length_s: float) -> pd.DataFrame:
    """Return a row of features for each window that has enough observations, and a mean rate above 0."""
    firsts, ends = (np.searchsorted(series.on_s, begins + shift) for shift in (0.0, length_s))
    covered = np.minimum(1.0, (ends - firsts) * series.step_s / length_s)
    rows = list[dict[str, Any]]()
    for i in np.flatnonzero(covered >= MIN_COVERED):
        from_s, window = begins[i], slice(firsts[i], ends[i])
        rate = series.rate[window]
        if not len(rate) or not rate.mean() > 0:
            continue
        failures = (failed_s - from_s)[(failed_s >= from_s) & (failed_s < from_s + length_s)]
        mean = float(rate.mean())
        rows.append(
            {
                "trace": series.trace,
                "from_s": float(from_s),
                "rows": len(rate),
                "covered": float(covered[i]),
                "mean": mean,
                "peak": float(rate.max()),
                "burst": float(rate.max()) / mean,
                "load": mean / series.mean,
                "failures": len(failures),
                "failure_s": failures.min() if len(failures) else np.nan,
            }
        )
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _first_in_order(*order: str) -> Callable[[pd.DataFrame, int | None], pd.DataFrame]:
    """Return a function that chooses the first `count` windows in the order of features; ``-name`` orders by decreasing values."""
    names, ascending = [name.removeprefix("-") for name in order], [not name.startswith("-") for name in order]

    def choose(full: pd.DataFrame, count: int | None) -> pd.DataFrame:
        return full.sort_values(names, ascending=ascending).head(len(full) if count is None else count)

    return choose


def _median_per_load_class(full: pd.DataFrame, count: int | None) -> pd.DataFrame:
    """Return the median window, by mean rate, of each of `count` load classes, into which the windows are split evenly."""
    if count is None:
        return full
    by_load = full.sort_values(["mean", "from_s"])
    classes = np.array_split(np.arange(len(by_load)), count)
    return by_load.iloc[[places[(len(places) - 1) // 2] for places in classes if len(places)]]


CUTS: dict[str, Callable[[pd.DataFrame, int | None], pd.DataFrame]] = {
    "time": _first_in_order("from_s"),
    "bursts": _first_in_order("-burst", "from_s"),
    "load": _median_per_load_class,
    "failures": _first_in_order("from_s"),
}
"""Ways to choose windows: the earliest, those with the highest peak / mean, one per load class, or those around failures."""
