"""Convert trace files to tables, and cut windows from tables: in this process if they are small, otherwise on Spark."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sim.studies.sweeps.spark_masters import MasterError
from sim.studies.traces.choices import Choices
from sim.studies.traces.listing import TraceFile
from sim.studies.traces.windows import Cutting, CutWindows, windows_here

if TYPE_CHECKING:
    import pandas as pd

HERE, ON_THIS_MACHINE = "here", "local[*]"
"""Values of --master: no Spark, and Spark on this machine."""


def must_be_spark(master: str | None, conf: Iterable[str] | None) -> None:
    """Raise MasterError if Spark settings (--conf) are given without a Spark master."""
    if conf and master in (None, HERE):
        raise MasterError(f"--conf is for Spark: say {'another --master' if master else '--master as well'}")


def read_anywhere(
    files: Sequence[TraceFile],
    out: str,
    choices: Choices,
    *,
    master: str | None = None,
    conf: Mapping[str, str] | None = None,
) -> pd.DataFrame:
    """Convert trace files to tables under `out`, and return row counts.

    `master`: HERE, or a Spark master.  None: this process if files are small and local, otherwise Spark on this machine.
    """
    if master == HERE or (master is None and "://" not in out and files_are_small(files)):
        from sim.studies.traces.tables_of_files import read_traces_here

        return read_traces_here(files, out, choices)
    from sim.studies.sweeps.spark_session import session
    from sim.studies.traces.pipeline import read_traces

    with session(master or ON_THIS_MACHINE, conf=conf) as spark:
        return read_traces(spark, files, out, choices)


def cut_anywhere(
    tables: str, cutting: Cutting, *, master: str | None = None, conf: Mapping[str, str] | None = None
) -> CutWindows:
    """Cut windows from tables.  `master`: see `read_anywhere`."""
    if master == HERE or (master is None and tables_are_small(tables)):
        return windows_here(tables, cutting)
    from sim.studies.sweeps.spark_session import session
    from sim.studies.traces.pipeline import windows

    with session(master or ON_THIS_MACHINE, conf=conf) as spark:
        return windows(spark, tables, cutting)


MAX_BYTES = 64 << 20
"""Maximum bytes that are read without Spark.  A compressed CSV of this size has 10 million rows, and takes 4 minutes and 1 GB."""


def files_are_small(files: Sequence[TraceFile]) -> bool:
    """Return True if all files are local, and have at most MAX_BYTES together."""
    if any("://" in file.root for file in files):
        return False
    return sum(file.size for file in files) <= MAX_BYTES


def tables_are_small(tables: str) -> bool:
    """Return True if the tables are local, and their rates have at most MAX_BYTES."""
    return (
        "://" not in tables
        and sum(file.stat().st_size for file in Path(tables, "rates").rglob("*.parquet")) <= MAX_BYTES
    )
