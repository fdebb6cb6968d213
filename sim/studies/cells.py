"""A cell: one run of one scenario, and its row."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from traceback import extract_tb
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from sim.results.columns import ResultColumn
from sim.results.consequences import consequences
from sim.results.rates import falls_behind
from sim.results.schema import TABLES
from sim.results.stored import storage_use
from sim.results.summary import CHANGE, STRATEGY_COLUMNS, cold_start, durations_of_checkpoints, summarize, warm_up
from sim.results.sweep_effects import DEAD
from sim.studies.plan import Cell

if TYPE_CHECKING:
    from sim.plane import Engine
    from sim.runtime.result import Result


# ---- The columns of a sweep's rows: their types, their meaning, which way is worse, and when a value is a bound or was never there.
#
# Types are fixed, so any part of a sweep can be read with any other.

_ARROW = {str: pa.string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_()}


def _named(*columns: ResultColumn) -> dict[str, ResultColumn]:
    return {column.name: column for column in columns}


_OUTCOME = {
    **_named(
        ResultColumn("hash of effective scenario, seed and code version", name="cell", type=str),
        ResultColumn("ok or error", name="status", type=str),
        ResultColumn("why there is no result", name="error", type=str),
        ResultColumn(
            "at the end of the run: RUNNING, FINISHED, or FAILED or RESTARTING FOR EVER and the reason",
            name="job_status",
            type=str,
        ),
        ResultColumn("of what checkpoints promise; -1: not checked", name="violations", type=int),
        ResultColumn("the first one's story", name="violation", type=str),
        ResultColumn("left out at the beginning (run.warmup)", worse="neither", name="warmup_ms"),
        ResultColumn(
            "columns without a value as there was nothing to measure; a value that is missing for another reason counts as worst",
            name="nothing",
            type=str,
        ),
    ),
    **STRATEGY_COLUMNS,
}
_PROVENANCE = _named(
    ResultColumn("where the cell ran", name="host", type=str),
    ResultColumn("0: the first", name="attempt", type=int),
    ResultColumn("CPU time it took", name="cpu_s"),
    ResultColumn("time it took", name="wall_s"),
)
OUTCOME, PROVENANCE = (
    {name: _ARROW[column.type] for name, column in columns.items()} for columns in (_OUTCOME, _PROVENANCE)
)
"""Columns of an outcome, which are the same bytes wherever the cell ran, and of the place and time of a run."""
COLUMNS = {name: column for name, column in (_OUTCOME | {CHANGE.name: CHANGE}).items() if column.type is not str}
"""The columns of numbers, which have means."""


def table(rows: Iterable[Mapping[str, Any]], columns: Mapping[str, pa.DataType]) -> pa.Table:
    """A table with these columns; null where a row lacks a value."""
    return pa.Table.from_pylist([dict(row) for row in rows], schema=pa.schema(list(columns.items())))


# ---- All result tables and their columns, as texts: of a run, and of a sweep.

SWEPT = ("results", "runs")
"""The tables of a sweep."""


def described() -> dict[str, list[tuple[str, str, str]]]:
    """Table -> (column, unit, meaning) of its columns."""
    swept = {"results": (_OUTCOME | {CHANGE.name: CHANGE}).values(), "runs": _PROVENANCE.values()}
    of_sweeps = {
        name: [(column.name, column.unit, column.description) for column in columns] for name, columns in swept.items()
    }
    return {
        name: [(column.name, column.unit, column.meaning) for column in columns] for name, columns in TABLES.items()
    } | of_sweeps


# ---- A cell -> a row: simulate, summarise, drop the tables.  An error becomes a row too, so that a sweep goes on.

_PACKAGE = Path(__file__).parents[1]

_READ = {
    "subtasks": ("id", "vertex", "status", "start_delay", "alignment_duration", "sync_duration", "async_duration"),
    "series": (
        "time",
        "vertex",
        "numRecordsInPerSecond",
        "busy",
        "backPressured",
        "inputQueueSize",
        "outputQueueSize",
        "backlog",
        "lag",
        "x_latency",
    ),
    "path": ("id", "part", "vertex", "duration", "acknowledged"),
    "files": (),
}
"""What a row is made of, of the tables that grow with a run: a cell of a day keeps nothing else."""

_DELAYS = ("lag_s", "delay_mean_s", "delay_p99_s")
"""Columns that are bounds where the job died: they show what was seen while it lived."""

Row = dict[str, Any]
"""Columns: `sim.studies.cells`."""


def simulated(engine: Engine, check: bool, cell: Cell, progress: Callable[[int], None]) -> Result | str:
    """The result of a cell with all its tables, or why there is none."""
    from sim.runtime.simulate import simulate

    try:
        return simulate(cell.scenario, engine=engine, progress=progress, check=check)
    except Exception as error:  # noqa: BLE001 - any error: the other cells still run
        return _reason(error)


def outcome(
    cell: Cell, engine: Engine = "compiled", progress: Callable[[int], None] | None = None, *, check: bool = True
) -> Row:
    """The row of a cell; without wall times, so that all runners give the same bytes."""
    try:
        from sim.runtime.simulate import simulate

        result = simulate(cell.scenario, engine=engine, progress=progress, check=check, only=_READ)
        return {"cell": cell.id, "status": "ok", "error": "", **_columns(result, check)}
    except Exception as error:  # noqa: BLE001 - any error: the other cells still run
        return {"cell": cell.id, "status": "error", "error": _reason(error)}


def timed(
    cell: Cell,
    engine: Engine = "compiled",
    progress: Callable[[int], None] | None = None,
    *,
    check: bool = True,
    attempt: int = 0,
) -> Row:
    """An outcome with its host, time and attempt."""
    cpu_s, wall_s = time.process_time(), time.monotonic()
    row = outcome(cell, engine, progress, check=check)
    return row | {
        "host": platform.node(),
        "attempt": attempt,
        "cpu_s": time.process_time() - cpu_s,
        "wall_s": time.monotonic() - wall_s,
    }


def died(cell: Cell) -> Row:
    """The row of a cell that kills its worker, even alone."""
    return {"cell": cell.id, "status": "error", "error": "the worker process was killed: too little memory?"}


def warm(engine: Engine = "compiled", kernel: tuple[str, bytes] | None = None) -> bool:
    """Load and compile the code of all cells, once per worker: it takes longer than a short cell.  Forked workers inherit it.

    `kernel`: what `sim.plane.compiled_kernel` gave in another process.  Returns whether this process compiled the kernel.
    """
    from importlib import import_module

    import_module("sim.runtime.simulate")
    if engine == "compiled":
        from sim import plane

        return plane.warm(kernel)
    return False


def _columns(result: Result, check: bool) -> Row:
    job, violations, warm = result.scenario.job, result.violations, warm_up([result])
    end_ms, warmup_ms = result.ended_ns / 1e6, warm.ns / 1e6
    begin_s = cold_start([result]).ns / 1e9
    summary = summarize(
        [result.tables], job.edges, warmup_s=warm.ns / 1e9, without_records=job.committers, rates_from_s=begin_s
    )
    behind = falls_behind(result.tables, job.edges, warmup_s=warm.ns / 1e9, fault_s=result.scenario.first_fault_s)
    cost = consequences([result.tables], [end_ms], warmup_ms=warmup_ms, committers=job.committers, behind=[behind])
    checkpoints = durations_of_checkpoints(result.tables["checkpoints"], end_ms, warmup_ms)
    bounds = {*cost.unfinished.split(), *(name for name, duration in checkpoints.items() if duration.is_bound)}
    if result.job_status == "RUNNING":
        bounds.add("ended_s")
    dead = result.job_status.startswith(DEAD)
    if dead:
        bounds.update(_DELAYS)
    row = {
        "job_status": result.job_status,
        "violations": len(violations) if check else -1,
        "violation": str(violations[0]) if violations else "",
        "warmup_ms": warmup_ms,
        **summary.row(),
        **asdict(cost),
        **asdict(storage_use([result.tables], [end_ms / 1e3], warmup_s=warm.ns / 1e9)),
        **{name: duration.value for name, duration in checkpoints.items()},
        "lag_s": max(cost.lag_s, _never_emitted_s(result)) if dead else cost.lag_s,
    }
    none_of = {
        "restarts": not (cost.restarts or dead),
        "failures": not (cost.failures or dead),
        "planned_restarts": not cost.planned_restarts,
        "commits": not (cost.commits or job.committers),
        "first_uploads": not summary.first_uploads,
    }
    return row | {
        "unfinished": " ".join(name for name, column in COLUMNS.items() if name in bounds or column.follows in bounds),
        "nothing": " ".join(name for name, column in COLUMNS.items() if none_of.get(column.of)),
    }


def _never_emitted_s(result: Result) -> float:
    """How long the first record that a dead job did not emit is due when the run was to end; 0: its sources have no rate."""
    scenario = result.scenario
    has_rate = any(vertex.source is not None and vertex.source.rates for vertex in scenario.job.vertices)
    return (scenario.run.duration_ns - result.ended_ns) / 1e9 if has_rate else 0.0


def _reason(error: Exception) -> str:
    """Why a cell has no result, with the innermost line of our code and the simulated time: a bug report needs both."""
    frames = [frame for frame in extract_tb(error.__traceback__) if Path(frame.filename).is_relative_to(_PACKAGE)]
    place = (
        f"{Path(frames[-1].filename).relative_to(_PACKAGE.parent)}:{frames[-1].lineno}" if frames else "unknown place"
    )
    message = f"{type(error).__name__}: {error}".splitlines()[0]
    return f"{message} ({', '.join([place, *getattr(error, '__notes__', ())])})"
