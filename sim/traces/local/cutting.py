"""Tables of traces -> windows, in this process: what `sim.traces.windows` does on Spark.  It holds the rates of one trace at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from sim.traces.lines import TraceFileError
from sim.traces.local.tables_of_files import lower_quantile
from sim.traces.windows import FEATURES, LEAST_COVERED, CutWindows, finished, none_so_long

Floats = NDArray[np.float64]


def windows_here(
    tables: str, *, length_s: float, cut: str = "time", count: int | None = None, trace: str | None = None, base: str = "."
) -> CutWindows:
    """The windows that `sim.traces.windows.windows` cuts.  TraceFileError: no such trace, no window so long, or a damaged table."""
    possible = complete = 0
    chosen = list[pd.DataFrame]()
    fits = False
    try:
        failures = list(_parts(tables, "failures", ["t_s", "run"]))
        for rates in _parts(tables, "rates", ["t_s", "rate"]):
            series = _series(rates, length_s)
            if series is None or trace not in (None, series.trace):
                continue
            fits = True
            met = _met(failures, series)
            begins = _around(met, series, length_s) if cut == "failures" else _consecutive(series, length_s)
            full = _described(series, met, begins, length_s)
            possible, complete = possible + len(begins), complete + len(full)
            chosen += [CHOICES[cut](full, count)] if len(full) else []
    except (OSError, pa.ArrowException) as error:
        raise TraceFileError(f"{tables}: the tables cannot be read: {str(error).splitlines()[0]}") from None
    if not fits:
        raise none_so_long(tables, length_s, trace)
    found = pd.concat(chosen).sort_values(["trace", "from_s"], ignore_index=True) if chosen else pd.DataFrame(columns=["trace", "from_s"])
    return finished(found, tables, length_s, base, sparse=possible - complete)


class _Series(NamedTuple):
    """The rates of a trace that is long enough, in the order of time."""

    trace: str
    begin_s: float
    length_s: float
    on_s: Floats  # of the observed rates, from the begin of the trace
    rate: Floats
    mean: float  # of the rate
    step_s: float  # usual distance of rows


def _parts(tables: str, name: str, columns: list[str]) -> Iterator[pd.DataFrame]:
    """A table's rows, trace by trace."""
    for folder in sorted(Path(tables.rstrip("/"), name).glob("trace=*")):
        rows = pd.concat(pq.ParquetFile(part).read(columns).to_pandas() for part in sorted(folder.glob("*.parquet")))
        yield rows.assign(trace=unquote(folder.name.removeprefix("trace=")))


def _series(rates: pd.DataFrame, length_s: float) -> _Series | None:
    """The rates of a trace.  None: it is shorter than a window, or has no rate."""
    rows = rates.dropna(subset="t_s").sort_values("t_s", kind="stable")
    t_s = rows["t_s"].to_numpy(float)
    observed = rows["rate"].notna().to_numpy()
    if not observed.any() or t_s[-1] - t_s[0] < length_s:
        return None
    step_s = lower_quantile(pd.Series(np.diff(t_s)), 0.5)
    rate = rows["rate"].to_numpy(float)[observed]
    return _Series(str(rows["trace"].iloc[0]), t_s[0], t_s[-1] - t_s[0], (t_s - t_s[0])[observed], rate, float(rate.mean()), step_s)


def _met(failures: list[pd.DataFrame], series: _Series) -> Floats:
    """When failures of traces of the same folder begin, from the begin of this trace."""
    folder = series.trace.rpartition("/")[0]
    at_s = [
        at_s - series.begin_s
        for rows in failures
        if str(rows["trace"].iloc[0]).rpartition("/")[0] == folder
        for at_s, run in zip(rows["t_s"].astype(float), rows["run"], strict=True)
        if run is None or series.trace.endswith(run)
    ]
    met = np.array(at_s, float)
    return met[(met >= 0) & (met <= series.length_s)]


def _consecutive(series: _Series, length_s: float) -> Floats:
    """Begins of windows one after the other; the last one ends before the trace does."""
    return np.arange(int(series.length_s // length_s), dtype=np.float64) * length_s


def _around(met: Floats, series: _Series, length_s: float) -> Floats:
    """The begin of a window per failure, a third of its length before it; only complete windows."""
    begins = np.unique(met - length_s / 3)
    return begins[(begins >= 0) & (begins + length_s <= series.length_s)]


def _described(series: _Series, met: Floats, begins: Floats, length_s: float) -> pd.DataFrame:
    """The features of each window, of those with enough observations."""
    firsts, ends = (np.searchsorted(series.on_s, begins + shift) for shift in (0.0, length_s))
    rows = list[dict[str, Any]]()
    for from_s, first, end in zip(begins, firsts, ends, strict=True):
        rate, at = series.rate[first:end], series.on_s[first:end] - from_s
        covered = min(1.0, len(rate) * series.step_s / length_s)
        if covered < LEAST_COVERED or not len(rate) or not rate.mean() > 0:
            continue
        failures = (met - from_s)[(met >= from_s) & (met < from_s + length_s)]
        mean = float(rate.mean())
        rows.append({
            "trace": series.trace, "from_s": float(from_s),
            "rows": len(rate), "covered": covered, "mean": mean, "peak": float(rate.max()), "burst": float(rate.max()) / mean,
            "p95": lower_quantile(pd.Series(rate), 0.95), "variation": float(rate.std()) / mean,
            "trend": _slope(at, rate) * length_s / mean, "load": mean / series.mean,
            "failures": len(failures), "failure_s": failures.min() if len(failures) else np.nan,
        })  # fmt: skip
    return pd.DataFrame(rows, columns=["trace", "from_s", *FEATURES])


def _slope(at: Floats, rate: Floats) -> float:
    """The slope of the straight line through the rates; 0 if all are of one moment."""
    from_mean = at - at.mean()
    spread = float((from_mean**2).sum())
    return float((from_mean * (rate - rate.mean())).sum()) / spread if spread > 0 else 0.0


def _first(*order: str) -> Callable[[pd.DataFrame, int | None], pd.DataFrame]:
    """The first windows; a minus in front of a feature puts the largest first."""
    names, ascending = [name.removeprefix("-") for name in order], [not name.startswith("-") for name in order]

    def choose(full: pd.DataFrame, count: int | None) -> pd.DataFrame:
        return full.sort_values(names, ascending=ascending).head(len(full) if count is None else count)

    return choose


def _spread(full: pd.DataFrame, count: int | None) -> pd.DataFrame:
    """The middle window of each of `count` equal classes of load; the first classes have a window more."""
    if count is None:
        return full
    by_load = full.sort_values(["mean", "from_s"])
    classes = np.array_split(np.arange(len(by_load)), count)
    return by_load.iloc[[places[(len(places) - 1) // 2] for places in classes if len(places)]]


CHOICES: dict[str, Callable[[pd.DataFrame, int | None], pd.DataFrame]] = {
    "time": _first("from_s"),
    "bursts": _first("-burst", "from_s"),
    "load": _spread,
    "failures": _first("from_s"),
}
"""The ways of choosing windows: those of `sim.traces.windows.CUTS`."""
