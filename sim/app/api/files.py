"""Python functions for files: traces, reports, the schema of scenarios, and the columns of result tables."""

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
    """Convert CSV series, Prometheus JSON, arrivals, failures, recordings and logs to Parquet files in `tables`.

    In the result, `counts` has a row per trace and table with the number of its rows (`count`).  Rows of kind
    `quarantine` count invalid rows, with file, line and reason.  Rows of kind `note` say how a file was read: the unit of
    its times and the meaning of its values.  `master`: "here", or a Spark master.

    ValueError: an invalid option, or nothing to read.
    """
    return traces.read_traces(str(folder), str(tables), listener=Notebook(), **options)


@documented(TraceWindowsOptions)
def trace_windows(
    tables: str | PathLike[str], *, file: str | PathLike[str] | None = None, **options: Unpack[TraceWindowsOptions]
) -> TraceWindows:
    """Cut tables of `read_traces` into windows, each described by its start, load, bursts and failures.

    `cut`: "time" (consecutive windows), "bursts" (the most bursty), "load" (one per load class) or "failures" (around
    failures).  `file`: CSV file to write, for ``windows: {file: ...}`` of a sweep.

    ValueError: an invalid option.
    """
    return traces.cut_windows(str(tables), path_of(file), listener=Notebook(), **options)


def write_report(results: str | PathLike[str], file: str | PathLike[str], *, jobs: int | None = None) -> WrittenReport:
    """Write results as a self-contained HTML file.

    `results`: a results folder; or a scenario or sweep file, which is run first and stored under ``runs``.

    FolderError (a ValueError): no results.  ScenarioError: mistakes in the file.
    """
    from sim.app.verbs.pictures import write_report as write

    return write(Path(results), Path(file), jobs=jobs, listener=Notebook())


def schema(of: str = "scenario") -> dict[str, Any]:
    """Return the JSON Schema of scenario files, or of sweep files (``sim.schema("sweep")``).  ValueError: another name."""
    from sim.model.schema.reference import schema_text
    from sim.studies.sweeps.design import SweepDocument

    texts = {"scenario": schema_text, "sweep": lambda: schema_text(SweepDocument, "ckptsim sweep")}
    if of not in texts:
        raise ValueError(f"expected {' or '.join(texts)}, not '{of}'")
    found: dict[str, Any] = json.loads(texts[of]())
    return found


def columns() -> pd.DataFrame:
    """Return a row per column of all result tables: `table`, `column`, `unit`, `meaning`.

    The tables `results` and `runs` are written by sweeps.
    """
    from sim.studies.cells import described

    rows = [(table, *row) for table, found in described().items() for row in found]
    return pd.DataFrame(rows, columns=["table", "column", "unit", "meaning"])
