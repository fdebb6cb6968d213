"""Files: traces of others into typed tables and windows for sweeps, what may stand in scenarios, and what stands in result tables."""

from __future__ import annotations

import json
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sim.api.progress import Notebook

if TYPE_CHECKING:
    import pandas as pd

    from sim.verbs.report import WrittenReport


def read_traces(
    folder: str | PathLike[str], tables: str | PathLike[str] = "tables", *, format: str | None = None,  # noqa: A002 - the command's word
    time: str | None = None, time_unit: str | None = None, value: str | None = None, meaning: str | None = None, per: str | None = None,
    master: str | None = None, conf: Mapping[str, str] | None = None,
) -> pd.DataFrame:  # fmt: skip
    """Read CSV series, arrivals, failures, recordings and logs into Parquet tables in the folder `tables`.

    Returns a row per trace and table with the `count` of its rows; rows that could not be used are of the kind `quarantine`, with file,
    line and reason.  A row of the kind `note` says how a file was read: in which unit its times are, and what its values are taken as.
    `time`, `time_unit` ("ms") and `value` name columns of your own tables, `meaning` says what they are: rates (the default), arrivals,
    speeds or failures; a rate counts for `per` (a second).  `master`: "here" or a Spark cluster; by default here what is small.
    `conf`: settings of the cluster.  ValueError: an impossible choice.  RecordingError: there is nothing to read.
    """
    from sim.traces.anywhere import read_anywhere
    from sim.traces.choices import Choices
    from sim.traces.listing import list_files
    from sim.units import parse_duration

    unit_s = None if time_unit is None else parse_duration(f"1 {time_unit}") / 1e9
    choices = Choices(format, time, unit_s, value, meaning, None if per is None else parse_duration(per) / 1e9)
    files, _ = list_files(str(folder), without=str(tables))
    if "://" not in str(tables):
        Path(tables).mkdir(parents=True, exist_ok=True)
    return read_anywhere(files, str(tables), choices, master=master, conf=conf)


def trace_windows(
    tables: str | PathLike[str], *, length: str = "10 min", cut: str = "time", count: int | None = None, trace: str | None = None,
    file: str | PathLike[str] | None = None, master: str | None = None, conf: Mapping[str, str] | None = None,
) -> pd.DataFrame:  # fmt: skip
    """Cut tables of `read_traces` into windows with features, a row per window: where it begins, its load, bursts and failures.

    `cut`: "time" (one after the other), "bursts" (the most bursty), "load" (one of each class) or "failures" (around them).  `count`: so
    many of each `trace`.  `file` keeps them as CSV, for ``windows: {file: ...}`` of a sweep.  ValueError: an impossible choice.
    """
    from sim.sheet import write_csv
    from sim.traces.anywhere import cut_anywhere
    from sim.traces.windows import CUTS
    from sim.units import parse_duration

    if cut not in CUTS:
        raise ValueError(f"cut: expected {', '.join(CUTS)}, not '{cut}'")
    base = "." if file is None else str(Path(file).parent)
    length_s = parse_duration(length) / 1e9
    found, _ = cut_anywhere(str(tables), length_s=length_s, cut=cut, count=count, trace=trace, base=base, master=master, conf=conf)
    if file is not None:
        Path(file).parent.mkdir(parents=True, exist_ok=True)
        write_csv(found, Path(file), float_format="%.6g")
    return found


def write_report(results: str | PathLike[str], file: str | PathLike[str], *, jobs: int | None = None) -> WrittenReport:
    """Write results as one HTML file that needs no network.

    `results`: a folder that `run`, `sweep` or `advise` kept; or a scenario or a sweep, which is run first and kept in ``runs``.
    Raises FolderError (no results, a ValueError), ScenarioError.
    """
    from sim.verbs.report import write_report as write

    return write(Path(results), Path(file), jobs=jobs, listener=Notebook())


def schema(of: str = "scenario") -> dict[str, Any]:
    """The JSON Schema of scenarios, or of files of sweeps (``sim.schema("sweep")``).  ValueError: of neither."""
    from sim.scenario.schemas import schema_text
    from sim.sweeps.file.document import Sweep

    texts = {"scenario": schema_text, "sweep": lambda: schema_text(Sweep, "ckptsim sweep")}
    if of not in texts:
        raise ValueError(f"expected {' or '.join(texts)}, not '{of}'")
    found: dict[str, Any] = json.loads(texts[of]())
    return found


def columns() -> pd.DataFrame:
    """A row per column of all result tables: `table`, `column`, `unit`, `meaning`; `results` and `runs` are of sweeps."""
    import pandas as pd

    from sim.cells.described import described

    rows = [(table, *row) for table, found in described().items() for row in found]
    return pd.DataFrame(rows, columns=["table", "column", "unit", "meaning"])
