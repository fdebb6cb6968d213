"""The table of a sweep: planned values next to results.  It is made from the stored rows on every request.

`results.parquet` and `.csv` have the same bytes wherever and however often cells ran.  Host, time and attempt of a run stand in
`runs.parquet`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from sim.cells.cell import Row
from sim.cells.columns import OUTCOME, PROVENANCE, table
from sim.cells.plan import Cell, baseline
from sim.runtime.run.manifest import identity
from sim.sheet import write_csv
from sim.sweeps.store import Store
from sim.whole_file import kept_in, replace_file

_HEAD = {"cell": pa.string(), "scenario": pa.string(), "replication": pa.int64(), "seed": pa.int64()}


def collect(store: Store, planned: Sequence[Cell]) -> pd.DataFrame:
    """A row per cell that has run, in the order of the plan, with the throughput of its baseline."""
    outcomes = store.rows()
    bare = {cell.id: identity(baseline(cell.scenario)) for cell in planned}
    axes = list(dict.fromkeys(axis for cell in planned for axis, _ in cell.scenario.axes))
    shared = _shared(planned, bare)
    rows = [_row(cell, outcomes, bare[cell.id], shared) for cell in planned if cell.id in outcomes]
    columns = _HEAD | dict.fromkeys(axes, pa.string()) | {"strategy": pa.string()} | OUTCOME | {"throughput_change": pa.float64()}
    results = table(rows, columns)
    frame: pd.DataFrame = results.to_pandas()
    runs = table((outcomes[cell] for cell in sorted(bare) if cell in outcomes), {"cell": pa.string()} | PROVENANCE)
    with kept_in(store.folder):
        replace_file(store.folder / "results.parquet", lambda path: pq.write_table(results, path))
        write_csv(frame, store.folder / "results.csv")
        replace_file(store.folder / "runs.parquet", lambda path: pq.write_table(runs, path))
    return frame


def _row(cell: Cell, outcomes: Mapping[str, Row], bare: str, shared: Mapping[str, dict[str, str]]) -> Row:
    scenario, outcome = cell.scenario, outcomes[cell.id]
    head = {"scenario": scenario.name, "replication": cell.replication, "seed": scenario.run.seed}
    axes = dict(scenario.axes) or shared.get(cell.id, {})
    strategy = "none" if cell.is_baseline else str(scenario.checkpoint.barriers)
    against, own = outcomes.get(bare, {}).get("throughput_per_second"), outcome.get("throughput_per_second")
    steady = not outcome.get("restarts")  # repeated records are no throughput
    change = own / against - 1 if against and own is not None and steady else None
    return {**axes, **outcome, **head, "strategy": strategy, "throughput_change": change}


def _shared(planned: Sequence[Cell], bare: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """The values that all strategies of a baseline share: its workload."""
    members: dict[str, list[Cell]] = {}
    for cell in planned:
        if cell.id != bare[cell.id]:
            members.setdefault(bare[cell.id], []).append(cell)
    first = {name: cells[0].scenario.axes for name, cells in members.items()}
    return {name: dict(set(first[name]).intersection(*(cell.scenario.axes for cell in cells))) for name, cells in members.items()}
