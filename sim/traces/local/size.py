"""How many local files are read without Spark."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from sim.traces.listing import TraceFile

MOST_BYTES = 64 << 20
"""A packed CSV of this size has 10 million rows: four minutes on one core, 1 GB.  Spark pays beyond."""


def files_are_small(files: Sequence[TraceFile]) -> bool:
    """Whether the files lie on this machine and are small."""
    if any("://" in file.root for file in files):
        return False
    return sum(file.size for file in files) <= MOST_BYTES


def tables_are_small(tables: str) -> bool:
    """Whether the tables lie on this machine and are small."""
    return "://" not in tables and sum(place.stat().st_size for place in Path(tables, "rates").rglob("*.parquet")) <= MOST_BYTES
