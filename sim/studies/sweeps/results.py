"""The table of a sweep: planned values next to results.  Built from the stored rows on request, in parts.

`results.parquet` and `.csv` are byte-identical regardless of where and how often cells ran.  Host, time and attempt of a run are
in `runs.parquet`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from sim.model.files import replace_file, writing_to
from sim.model.scenario import Scenario
from sim.results.columns import numbers_of, units_of
from sim.results.formats import write_csv
from sim.studies.plan import Cell, CellPlan, planned_of
from sim.studies.run_folder import SWEEP_RUNS
from sim.studies.sweeps.store import OUTCOME_TYPES, PROVENANCE_TYPES, RowIndex, Store, clear_row_group_cache

RESULTS = "results.parquet"
PART_ROWS = 50_000
"""Rows that are processed at a time."""
MAX_IN_CSV = 200_000
"""Maximum rows for which CSV is written too; spreadsheets open at most a million rows."""

_HEAD = {"cell": pa.string(), "scenario": pa.string(), "replication": pa.int64(), "seed": pa.int64()}
_RUN_COLUMNS = {"cell": pa.string()} | PROVENANCE_TYPES
_SEED = "seed"
_UNIQUE_TEXTS = ("cell",)
"""Texts that differ in each row, which would take more memory as categories."""


def write_and_read_results(store: Store, planned: Sequence[Cell]) -> pd.DataFrame:
    """Write and return a row per finished cell, in the order of the plan, with its throughput relative to the baseline."""
    write_results(store, planned)
    return read_results(store.folder)


def write_results(store: Store, planned: Sequence[Cell]) -> None:
    """Write the table of finished cells, and `runs.parquet` (provenance).

    Raises:
        ResultsNotWrittenError: The folder cannot be written.
    """
    plan = planned_of(planned)
    with writing_to(store.folder):
        _write_tables(store.folder, store.kept(), plan)
    clear_row_group_cache()
    if len(plan) > PART_ROWS:
        store.drop_index()


def read_results(folder: Path, columns: Sequence[str] | None = None) -> pd.DataFrame:
    """Return the table of a sweep, or some of its columns, in the order of the table.

    Texts of selected columns are categories: a number per row instead of a Python object.
    """
    file = folder / RESULTS
    if columns is None:
        complete: pd.DataFrame = pq.read_table(file).to_pandas()
        complete.attrs["units"] = units_of(map(str, complete))
        return complete
    selected = [field for field in pq.read_schema(file) if field.name in set(columns)]
    texts = [field.name for field in selected if field.type == pa.string() and field.name not in _UNIQUE_TEXTS]
    columns_of = {}
    for field in selected:  # column by column, so that only one column is in memory twice
        table = pq.read_table(file, columns=[field.name], read_dictionary=[field.name] if field.name in texts else [])
        columns_of[field.name] = table.unify_dictionaries()[field.name].to_pandas()
    return pd.DataFrame(columns_of, copy=False)


def _write_tables(folder: Path, kept: RowIndex, plan: CellPlan) -> None:
    """Write the tables `results` and `runs`.  `kept`: all stored rows."""
    cell_indices = kept.indices_of(plan.ids)
    finished = np.flatnonzero(cell_indices >= 0)
    results = _Results(plan, finished, cell_indices[finished], kept)
    replace_file(folder / RESULTS, results.write)
    if len(finished) <= MAX_IN_CSV:
        write_csv(read_results(folder), folder / "results.csv")
    else:
        (folder / "results.csv").unlink(missing_ok=True)
    unique_indices = np.unique(cell_indices[finished])
    # sorted by cell id, so that the file does not depend on the order of runs
    order = pc.array_sort_indices(kept.cells.take(pa.array(unique_indices))).to_numpy()
    runs = kept.table(unique_indices[order], list(_RUN_COLUMNS))
    runs = runs if len(finished) else pa.schema(list(_RUN_COLUMNS.items())).empty_table()
    replace_file(folder / SWEEP_RUNS, lambda path: pq.write_table(runs, path))


class _Results:
    """The rows of finished cells.

    `plan_indices`: their positions in the plan.  `cell_indices`: their positions in the index of rows.
    """

    def __init__(
        self, plan: CellPlan, plan_indices: NDArray[np.int64], cell_indices: NDArray[np.int64], kept: RowIndex
    ) -> None:
        self._plan, self._cell_indices, self._kept = plan.take(plan_indices), cell_indices, kept
        names = dict.fromkeys(axis for scenario in plan.scenarios.different for axis, _ in scenario.axes)
        texts = {name: self._plan.axis(name) for name in names}
        self._axes = {name: pa.array(values, pa.string()).dictionary_encode() for name, values in texts.items()}
        self._numbers_of_axes = dict(self._quantities(texts))
        self.schema = pa.schema(
            list(
                (
                    _HEAD
                    | dict.fromkeys(names, pa.string())
                    | {"strategy": pa.string()}
                    | OUTCOME_TYPES
                    | {"throughput_change": pa.float64()}
                    | dict.fromkeys(self._numbers_of_axes, pa.float64())
                ).items()
            )
        )
        self._change = self._throughput_change()

    def write(self, path: Path) -> None:
        with pq.ParquetWriter(path, self.schema) as writer:
            for part in self._parts():
                writer.write_table(part)

    def _parts(self) -> Iterator[pa.Table]:
        """Yield the table in parts of PART_ROWS rows."""
        if not len(self._plan):
            yield self.schema.empty_table()
        for begin in range(0, len(self._plan), PART_ROWS):
            part = slice(begin, begin + PART_ROWS)
            plan, rows = self._plan[part], self._kept.table(self._cell_indices[part], list(OUTCOME_TYPES))
            columns: dict[str, object] = {name: rows[name] for name in OUTCOME_TYPES}
            columns |= {name: values[part].cast(pa.string()) for name, values in self._axes.items()}
            columns |= {name: values[part].cast(pa.float64()) for name, values in self._numbers_of_axes.items()}
            columns |= {
                "scenario": plan.per_scenario(lambda scenario: scenario.name),
                "replication": plan.replication,
                _SEED: plan.seed,
            }
            columns |= {
                "strategy": plan.per_scenario(_strategy),
                "throughput_change": self._change.slice(begin, PART_ROWS),
            }
            yield pa.table({name: columns[name] for name in self.schema.names}, schema=self.schema)

    def _quantities(self, texts: Mapping[str, NDArray[np.object_]]) -> Iterator[tuple[str, pa.DictionaryArray]]:
        """Yield a numeric column for each axis with units, because its texts do not sort numerically."""
        for name, values in texts.items():
            found = numbers_of(name, (text for text in pd.unique(values) if isinstance(text, str)))
            if found is not None and found[0] != name:  # the name of a column with a unit differs from the key
                axis = self._axes[name]
                numbers = pa.array([found[1][text] for text in axis.dictionary.to_pylist()], pa.float64())
                yield found[0], pa.DictionaryArray.from_arrays(axis.indices, numbers)

    def _throughput_change(self) -> pa.Array:
        """Return the throughput relative to the baseline; null if there is no baseline, or if restarts repeated records."""
        if not len(self._plan):
            return pa.array([], pa.float64())
        throughput, restarts = self._kept.column("throughput_per_second"), self._kept.column("restarts")
        baselines = self._kept.indices_of(self._plan.checkpointless_ids)
        baseline_throughput = np.where(baselines >= 0, throughput[baselines], np.nan)
        with np.errstate(divide="ignore", invalid="ignore"):
            change = throughput[self._cell_indices] / baseline_throughput - 1
        is_missing = ~np.isfinite(change) | (np.nan_to_num(restarts[self._cell_indices]) != 0)
        return pa.array(change, pa.float64(), mask=is_missing)


def _strategy(scenario: Scenario) -> str:
    """Return the value of the column `strategy`: the barrier mode, or "none" without checkpoints."""
    return "none" if scenario.checkpoint.interval_ns is None else str(scenario.checkpoint.barriers)
