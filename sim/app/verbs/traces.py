"""`traces`: convert trace files to typed tables, and cut tables into windows for sweeps."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Unpack

import pandas as pd

from sim.app.verbs.common import (
    SILENT,
    Listener,
    OptionError,
    parse_option,
    parse_positive_seconds,
    stoppable,
    writable_folder,
)
from sim.app.verbs.options import FilePath, ReadTracesOptions, TraceWindowsOptions, path_of, with_all_options
from sim.model.units import parse_duration
from sim.results.formats import write_csv
from sim.studies.run_folder import FolderError
from sim.studies.traces.choices import Choices
from sim.studies.traces.conversion import convert_traces, cut_windows, must_be_spark
from sim.studies.traces.listing import list_files
from sim.studies.traces.tables import NO_TABLE
from sim.studies.traces.windows import CUTS, Cutting

MAX_SHOWN = 200
"""Maximum rows, and maximum messages, that are printed: a bucket may have a million files."""


@dataclass(frozen=True, repr=False, eq=False)
class ReadTraces:
    """The result of `traces read`: row counts per table, and rows that are in no table."""

    # columns trace, kind (name of a table, "quarantine", "passed" or "note"), count, reason, file, line
    counts: pd.DataFrame
    remarks: tuple[str, ...]  # messages on files that were skipped or renamed

    @property
    def tables(self) -> pd.DataFrame:
        """Return a row per trace and table."""
        return self.counts[~self.counts["kind"].isin(["quarantine", *NO_TABLE])]

    @property
    def quarantine(self) -> pd.DataFrame:
        """Return a row per file and reason for which rows are invalid."""
        return self.counts[self.counts["kind"] == "quarantine"]

    @property
    def rows(self) -> list[list[str]]:
        """Return (trace, table, row count) as texts, at most MAX_SHOWN."""
        return [[row["trace"], row["kind"], f"{row['count']}"] for _, row in self.tables.iloc[:MAX_SHOWN].iterrows()]

    @property
    def notes(self) -> list[str]:
        """Return messages: omitted rows, how files were read, and rows that are in no table."""
        good, bad, counts = self.tables, self.quarantine, self.counts
        lines = list(self.remarks)
        if len(good) > MAX_SHOWN:
            rest = f"and {len(good) - MAX_SHOWN} more; in all {good['count'].sum()} rows of {good['trace'].nunique()} traces"
            lines.insert(0, rest)
        for how, files in counts[counts["kind"] == "note"].groupby("reason", sort=False)["file"]:
            lines.append(f"{_file_names_text(list(files))}: {how}")
        for why, count in counts[counts["kind"] == "passed"].groupby("reason")["count"].sum().items():
            lines.append(f"{count} row{'s say' if count > 1 else ' says'} nothing to any table: {why}")
        lines += [
            f"{row['file']}: {_invalid_rows_text(row)}{row['reason']}" for _, row in bad.iloc[:MAX_SHOWN].iterrows()
        ]
        if len(bad) > MAX_SHOWN:
            lines.append(f"and {len(bad) - MAX_SHOWN} more messages: all rows are in the table `quarantine`")
        return lines

    @property
    def facts(self) -> dict[str, Any]:
        """JSON-ready."""
        # to_json converts NaN to null
        return {"counts": json.loads(self.counts.to_json(orient="records")), "remarks": list(self.remarks)}

    def __repr__(self) -> str:
        return "\n".join([f"{trace}: {count} rows of {kind}" for trace, kind, count in self.rows] + self.notes)


@dataclass(frozen=True, repr=False, eq=False)
class TraceWindows:
    """The result of `traces windows`."""

    table: pd.DataFrame  # a row per window: its start, load, bursts and failures
    remarks: tuple[str, ...]
    file: Path | None  # CSV for ``windows: {file: ...}`` of a sweep; None: the windows are not stored

    def __repr__(self) -> str:
        where = "" if self.file is None else f" in {self.file}"
        return f"{len(self.table)} windows of {self.table['trace'].nunique()} traces{where}"

    def _repr_html_(self) -> str:
        return str(self.table.to_html(index=False, max_rows=30))


def _choices(given: ReadTracesOptions) -> Choices:
    """Parse the options that tell how files are read.

    OptionError: not a unit or a duration.  ChoiceError: options that conflict.
    """
    unit, per = given["time_unit"], given["per"]
    unit_s = None if unit is None else parse_option("time_unit", f"1 {unit}", parse_duration) / 1e9
    per_s = None if per is None else parse_positive_seconds("per", per)
    return Choices(given["time"], unit_s, given["value"], given["meaning"], per_s, given["zone"])


@with_all_options(ReadTracesOptions)
def read_traces(
    folder: FilePath, tables: FilePath = "tables", *, listener: Listener = SILENT, **given: Unpack[ReadTracesOptions]
) -> ReadTraces:
    """Convert CSV series, Prometheus JSON, arrivals, failures, recordings and logs to Parquet files in `tables`.

    `folder`: folder or file, also in a bucket.

    In the result, `counts` has a row per trace and table with the number of its rows (`count`).  Rows of kind
    `quarantine` count invalid rows, with file, line and reason.  Rows of kind `note` say how a file was read: the unit of
    its times and the meaning of its values.  `master`: "here", or a Spark master.

    TraceFileError (a ValueError): there is nothing to read.  OptionError (a ValueError): an invalid option, or the tables
    cannot be written.  MasterError: Spark settings without a Spark master.
    """
    master, conf, chosen, tables = given["master"], given["conf"], _choices(given), str(tables)
    must_be_spark(master, conf)
    files, remarks = list_files(str(folder), exclude=tables)
    if "://" not in tables:
        writable_folder(Path(tables))
    with stoppable(f"{tables} may mix tables of two runs; run the same command to write all of them again"):
        counts = convert_traces(files, tables, chosen, master=master, conf=conf)
    found = ReadTraces(counts, tuple(remarks))
    listener.result(found)
    return found


@with_all_options(TraceWindowsOptions)
def trace_windows(
    tables: FilePath,
    *,
    file: FilePath | None = None,
    listener: Listener = SILENT,
    **given: Unpack[TraceWindowsOptions],
) -> TraceWindows:
    """Cut tables of `read_traces` into windows, each described by its start, load, bursts and failures.

    `cut`: "time" (consecutive windows), "bursts" (the most bursty), "load" (one per load class) or "failures" (around
    failures).  `file`: CSV file to write, for ``windows: {file: ...}`` of a sweep.

    OptionError (a ValueError): an invalid value.  FolderError: there are no tables.  MasterError: Spark settings without a
    Spark master.
    """
    cut, master, conf = given["cut"], given["master"], given["conf"]
    tables, file = str(tables), path_of(file)
    must_be_spark(master, conf)
    if cut not in CUTS:
        raise OptionError("cut", f"expected {', '.join(CUTS)}, not '{cut}'")
    length_s = parse_positive_seconds("length", given["length"])
    if not Path(tables, "rates").is_dir() and "://" not in tables:
        raise FolderError(f"{tables}: has no tables of traces: run `ckptsim traces read` first")
    if file is not None:
        writable_folder(file.parent)
    base = "." if file is None else str(file.parent)
    with stoppable("nothing is kept" if file is None else f"{file} is unchanged"):
        cutting = Cutting(length_s, cut, given["count"], given["trace"], base)
        found, remarks = cut_windows(tables, cutting, master=master, conf=conf)
    if file is not None:
        write_csv(found, file, float_format="%.6g")
    for line in remarks:
        listener.message(line)
    windows = TraceWindows(found, tuple(remarks), file)
    listener.result(windows)
    return windows


def _file_names_text(files: list[str]) -> str:
    return ", ".join(files[:3]) + (f" and {len(files) - 3} more" if len(files) > 3 else "")


def _invalid_rows_text(row: pd.Series[Any]) -> str:
    """Return the number of invalid rows and the line of the first, or "" if the whole file is invalid."""
    line, count = row["line"], row["count"]
    if line is None or not line >= 1:  # the file as a whole
        return ""
    return (
        f"{count} row{'s' if count > 1 else ''} in quarantine, {'the first in ' if count > 1 else ''}line {line:.0f}: "
    )
