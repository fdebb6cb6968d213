"""Files: traces of others into typed tables and windows for sweeps, what may stand in scenarios, and what stands in result tables."""

from __future__ import annotations

import json
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import pandas as pd

from sim.app.api.results import Notebook
from sim.app.verbs import traces
from sim.app.verbs.options import ReadTracesOptions, TraceWindowsOptions, documented, path_of
from sim.app.verbs.traces import ReadTraces, TraceWindows

if TYPE_CHECKING:
    from sim.app.verbs.pictures import WrittenReport


@documented(ReadTracesOptions)
def read_traces(
    folder: str | PathLike[str], tables: str | PathLike[str] = "tables", **options: Unpack[ReadTracesOptions]
) -> ReadTraces:
    """Read CSV series, JSON of Prometheus and Grafana, arrivals, failures, recordings and logs into Parquet tables in the folder `tables`.

    `counts` of the result has a row per trace and table with the `count` of its rows.  Rows that could not be used are of the kind
    `quarantine`, with file, line and reason.  A row of the kind `note` says how a file was read: in which unit its times are, and what its
    values are taken as.  `master`: "here" or a Spark cluster; by default here what is small.  ValueError: an impossible
    choice, or nothing to read.
    """
    return traces.read_traces(str(folder), str(tables), listener=Notebook(), **options)


@documented(TraceWindowsOptions)
def trace_windows(
    tables: str | PathLike[str], *, file: str | PathLike[str] | None = None, **options: Unpack[TraceWindowsOptions]
) -> TraceWindows:
    """Cut tables of `read_traces` into windows with features: where each begins, its load, bursts and failures.

    `cut`: "time" (one after the other), "bursts" (the most bursty), "load" (one of each class) or "failures" (around them).
    `file` keeps them as CSV, for ``windows: {file: ...}`` of a sweep.  ValueError: an impossible choice.
    """
    return traces.cut_windows(str(tables), path_of(file), listener=Notebook(), **options)


def write_report(results: str | PathLike[str], file: str | PathLike[str], *, jobs: int | None = None) -> WrittenReport:
    """Write results as one HTML file that needs no network.

    `results`: a folder that `run`, `sweep` or `advise` kept; or a scenario or a sweep, which is run first and kept in ``runs``.
    Raises FolderError (no results, a ValueError), ScenarioError.
    """
    from sim.app.verbs.pictures import write_report as write

    return write(Path(results), Path(file), jobs=jobs, listener=Notebook())


def schema(of: str = "scenario") -> dict[str, Any]:
    """The JSON Schema of scenarios, or of files of sweeps (``sim.schema("sweep")``).  ValueError: of neither."""
    from sim.model.schema.reference import schema_text
    from sim.studies.sweeps.design import SweepDocument

    texts = {"scenario": schema_text, "sweep": lambda: schema_text(SweepDocument, "ckptsim sweep")}
    if of not in texts:
        raise ValueError(f"expected {' or '.join(texts)}, not '{of}'")
    found: dict[str, Any] = json.loads(texts[of]())
    return found


def columns() -> pd.DataFrame:
    """A row per column of all result tables: `table`, `column`, `unit`, `meaning`; `results` and `runs` are of sweeps."""
    from sim.studies.cells import described

    rows = [(table, *row) for table, found in described().items() for row in found]
    return pd.DataFrame(rows, columns=["table", "column", "unit", "meaning"])
