"""Rows of a sweep in a folder: one parquet file per cell, named by the cell.  A file is there whole or not at all, so a sweep resumes."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from sim.runtime.manifest import identity
from sim.sweep.plan import Cell, baseline

__all__ = ["Store", "collect"]


class Store:
    """`folder`/cells/<cell>.parquet."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._cells = folder / "cells"
        self._cells.mkdir(parents=True, exist_ok=True)

    def put(self, row: dict[str, Any]) -> None:
        path = self._cells / f"{row['cell']}.parquet"
        partial = path.with_name(f".{path.name}.{os.getpid()}.tmp")
        try:
            pd.DataFrame([row]).to_parquet(partial, index=False)
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)

    def missing(self, planned: Iterable[Cell]) -> list[Cell]:
        """Cells still to be run: those without a row, and those whose row is an error."""
        return [cell for cell in planned if (row := self.get(cell.id)) is None or row["status"] != "ok"]

    def get(self, cell: str) -> dict[str, Any] | None:
        path = self._cells / f"{cell}.parquet"
        if not path.exists():
            return None
        return {str(name): value for name, value in pd.read_parquet(path).iloc[0].items()}


def collect(store: Store, planned: Sequence[Cell]) -> pd.DataFrame:
    """One row per cell in the order of the plan, beside it the throughput of its baseline; kept as results.parquet and .csv."""
    rows = {cell.id: row for cell in planned if (row := store.get(cell.id)) is not None}
    members: dict[str, list[Cell]] = {}
    for cell in planned:
        members.setdefault(identity(baseline(cell.scenario)), []).append(cell)
    for bare, cells in members.items():
        if bare in rows:
            rows[bare] |= _shared([cell for cell in cells if cell.id != bare])
        for cell in cells:
            if cell.id in rows and (against := rows.get(bare, {}).get("throughput_per_second")):
                rows[cell.id]["throughput_change"] = rows[cell.id].get("throughput_per_second", float("nan")) / against - 1
    table = pd.DataFrame(list(rows.values()))
    axes = list(dict.fromkeys(axis for cell in planned for axis, _ in cell.scenario.axes if axis in table))
    table = table[[*table.columns[:4], *axes, *(name for name in table.columns[4:] if name not in axes)]]
    for name, write in (("results.parquet", table.to_parquet), ("results.csv", table.to_csv)):
        partial = store.folder / f".{name}.{os.getpid()}.tmp"
        write(partial, index=False)
        partial.replace(store.folder / name)
    return table


def _shared(cells: Sequence[Cell]) -> dict[str, str]:
    """The values that all strategies of one baseline have in common: its workload."""
    common = set(cells[0].scenario.axes) if cells else set()
    return dict(common.intersection(*(cell.scenario.axes for cell in cells)))
