"""Cells (single runs): run a cell, and return its result as a row; the columns of such rows."""

from __future__ import annotations

import platform
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from traceback import extract_tb
from typing import TYPE_CHECKING, Any

from sim.model.quantities import PLANNED_RESTARTS
from sim.results.columns import TABLES, ResultColumn
from sim.results.restarts import largest_lag_s
from sim.results.summary import CHANGE, STRATEGY_COLUMNS, durations_of_checkpoints
from sim.results.sweep_answers import DEAD
from sim.results.tables import job_of
from sim.runtime.result import Result
from sim.studies.plan import Cell
from sim.studies.replications import Replications

if TYPE_CHECKING:
    from sim.plane import Engine


# ---- Columns of rows. Their types are fixed, so that all files of a sweep can be read together.


def _named(*columns: ResultColumn) -> dict[str, ResultColumn]:
    return {column.name: column for column in columns}


OUTCOME = {
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
        ResultColumn("description of the first one", name="violation", type=str),
        ResultColumn("left out at the beginning (run.warmup)", worse="neither", name="warmup_ms"),
        ResultColumn(
            "columns without a value as there was nothing to measure; a value that is missing for another reason counts as worst",
            name="nothing",
            type=str,
        ),
        ResultColumn("number and kind of failures, and whether all tasks restart", name="failure_kinds", type=str),
    ),
    **STRATEGY_COLUMNS,
}
"""Columns of an outcome, which do not depend on where the cell ran."""
PROVENANCE = _named(
    ResultColumn("where the cell ran", name="host", type=str),
    ResultColumn("0: the first", name="attempt", type=int),
    ResultColumn("CPU time it took", name="cpu_s"),
    ResultColumn("time it took", name="wall_s"),
)
"""Columns on host, attempt and time of the run."""
COLUMNS = {name: column for name, column in (OUTCOME | {CHANGE.name: CHANGE}).items() if column.type is not str}
"""Numeric columns, whose means can be computed."""


# ---- Description of all result tables, for `ckptsim schema --results`.

SWEPT = ("results", "runs")
"""Tables of a sweep."""


def described() -> dict[str, list[tuple[str, str, str]]]:
    """Return {table: [(column, unit, meaning), ...]}."""
    swept = {"results": (OUTCOME | {CHANGE.name: CHANGE}).values(), "runs": PROVENANCE.values()}
    of_sweeps = {
        name: [(column.name, column.unit, column.description) for column in columns] for name, columns in swept.items()
    }
    return {
        name: [(column.name, column.unit, column.meaning) for column in columns] for name, columns in TABLES.items()
    } | of_sweeps


# ---- Running a cell: simulate, summarize, and discard the tables. An error becomes a row too, so that a sweep continues.

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
"""Columns that a row needs of the tables that grow during a run.  Other columns are not stored, to save memory."""

_DELAYS = ("lag_s", "delay_mean_s", "delay_p99_s")
"""Columns that are lower bounds if the job failed."""

Row = dict[str, Any]
"""The result of a cell: values by the columns OUTCOME and PROVENANCE."""


def simulated(engine: Engine, check: bool, cell: Cell, progress: Callable[[int], None]) -> Result | str:
    """Run a cell.  Return its result with all tables, or a message if the run raised an exception."""
    from sim.runtime.simulate import simulate

    try:
        return simulate(cell.scenario, engine=engine, progress=progress, check=check)
    except Exception as error:  # noqa: BLE001 - other cells must run after any error
        return _reason(error)


def outcome(cell: Cell, progress: Callable[[int], None] | None = None, *, check: bool = True) -> Row:
    """Run a cell and return its row, without times and host.  The row is the same on every machine.

    An exception is caught and becomes a row with the status "error".  `check`: check the invariants of checkpointing.
    """
    try:
        from sim.runtime.simulate import simulate

        result = simulate(cell.scenario, progress=progress, check=check, only=_READ)
        return {"cell": cell.id, "status": "ok", "error": "", **_columns(result, check)}
    except Exception as error:  # noqa: BLE001 - other cells must run after any error
        return {"cell": cell.id, "status": "error", "error": _reason(error)}


def timed(
    cell: Cell,
    progress: Callable[[int], None] | None = None,
    *,
    check: bool = True,
    attempt: int = 0,
) -> Row:
    """Run a cell and return its row with host, times [s] and attempt (0: the first)."""
    cpu_s, wall_s = time.process_time(), time.monotonic()
    row = outcome(cell, progress, check=check)
    return row | {
        "host": platform.node(),
        "attempt": attempt,
        "cpu_s": time.process_time() - cpu_s,
        "wall_s": time.monotonic() - wall_s,
    }


def died(cell: Cell) -> Row:
    """Return the row of a cell whose worker was killed although no other cell ran in it."""
    return {"cell": cell.id, "status": "error", "error": "the worker process was killed: too little memory?"}


def warm(kernel: tuple[str, bytes] | None = None) -> None:
    """Load and compile the code that all cells need.

    This takes longer than a short cell, so it is done once per worker; forked workers inherit it from their parent.
    `kernel`: the kernel that `sim.plane.compiled_kernel` returned in another process, which need not be compiled again.
    """
    from importlib import import_module

    from sim import plane

    import_module("sim.runtime.simulate")
    plane.warm(kernel)


def _columns(result: Result, check: bool) -> Row:
    """Return the columns of a successful run.  ``unfinished`` names those that are lower bounds, ``nothing`` those without a value."""
    run, job, violations, end_ms = Replications([result]), result.scenario.job, result.violations, result.ended_ns / 1e6
    warmup_ms, summary = run.warm_up.ns / 1e6, run.summary
    cost = run.consequences
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
        "failure_kinds": _failure_kinds(result),
        **summary.row(),
        **asdict(cost),
        **asdict(run.storage_use),
        **{name: duration.value for name, duration in checkpoints.items()},
        "lag_s": max(largest_lag_s(result.tables), _never_emitted_s(result)) if dead else cost.lag_s,
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


def _failure_kinds(result: Result) -> str:
    """Return the failures by kind, e.g. ``1 task-manager (all tasks restart), 2 task (some tasks restart)``."""
    failures = result.recoveries[~result.recoveries["kind"].isin(PLANNED_RESTARTS)].drop_duplicates(
        "failed", keep="last"
    )
    fewest = job_of(result.tasks).value_counts().min()  # tasks of the smallest job, if it is rescaled
    counts = Counter(
        (kind, "all" if tasks >= fewest else "some") for kind, tasks in failures[["kind", "tasks"]].to_numpy()
    )
    return ", ".join(f"{count} {kind} ({which} tasks restart)" for (kind, which), count in sorted(counts.items()))


def _never_emitted_s(result: Result) -> float:
    """Return the lag [s] that a failed job would have at the planned end of its run; 0 if its sources have no rate."""
    scenario = result.scenario
    has_rate = any(vertex.source is not None and vertex.source.rates for vertex in scenario.job.vertices)
    return (scenario.run.duration_ns - result.ended_ns) / 1e9 if has_rate else 0.0


def _reason(error: Exception) -> str:
    """Return the first line of an error with the innermost source line of ckptsim and the error's notes, for bug reports."""
    frames = [frame for frame in extract_tb(error.__traceback__) if Path(frame.filename).is_relative_to(_PACKAGE)]
    location = (
        f"{Path(frames[-1].filename).relative_to(_PACKAGE.parent)}:{frames[-1].lineno}" if frames else "unknown place"
    )
    message = f"{type(error).__name__}: {error}".splitlines()[0]
    return f"{message} ({', '.join([location, *getattr(error, '__notes__', ())])})"
