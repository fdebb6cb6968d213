"""A cell: one run of one scenario, and its row."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from traceback import extract_tb
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args, get_origin, get_type_hints

import pyarrow as pa

from sim.model.quantities import unit
from sim.results.consequences import Consequences, consequences
from sim.results.not_completed import BarrierPath
from sim.results.rates import falls_behind
from sim.results.schema import TABLES
from sim.results.stored import StorageUse, storage_use
from sim.results.summary import Summary, cold_start, durations_of_checkpoints, summarize, warm_up
from sim.results.sweep_effects import DEAD
from sim.studies.plan import Cell

if TYPE_CHECKING:
    from sim.plane import Engine
    from sim.runtime.result import Result


# ---- The columns of a sweep's rows: their types, their meaning, which way is worse, and when a value is a bound or was never there.
#
# Types are fixed, so any part of a sweep can be read with any other.

_ARROW = {str: pa.string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_()}
_PARTS = {"path_": "median checkpoint: ", "tail_": "slowest tenth: "}
"""Prefix of a column -> which slowest barrier its way belongs to."""


def _of(kind: type, prefix: str = "") -> dict[str, pa.DataType]:
    hints = get_type_hints(kind)
    return {
        prefix + field.name: _ARROW[hints[field.name]] for field in fields(kind) if hints[field.name] is not BarrierPath
    }


def _meanings(kind: type, prefix: str = "") -> dict[str, str]:
    """Column -> meaning and population, from the annotations of the fields."""
    hints = get_type_hints(kind, include_extras=True)
    annotated = {name: get_args(hint)[1:] for name, hint in hints.items() if get_origin(hint) is Annotated}
    return {prefix + name: _PARTS.get(prefix, "") + "; of ".join(texts) for name, texts in annotated.items()}


OUTCOME: dict[str, pa.DataType] = {
    "cell": pa.string(),
    "status": pa.string(),
    "error": pa.string(),
    "job_status": pa.string(),
    "violations": pa.int64(),
    "violation": pa.string(),
    "warmup_ms": pa.float64(),
    "nothing": pa.string(),
    **_of(Summary),
    **_of(BarrierPath, "path_"),
    **_of(BarrierPath, "tail_"),
    **_of(Consequences),
    **_of(StorageUse),
}
"""Columns of an outcome: the same bytes wherever the cell ran."""

PROVENANCE: dict[str, pa.DataType] = {
    "host": pa.string(),
    "attempt": pa.int64(),
    "cpu_s": pa.float64(),
    "wall_s": pa.float64(),
}
"""Columns about the place and time of a run, kept apart from its outcome."""


MEASURED = (*(name for name, kind in OUTCOME.items() if kind != pa.string()), "throughput_change")
"""Columns of numbers, which have means."""

MEANING: dict[str, str] = {
    "cell": "hash of effective scenario, seed and code version",
    "status": "ok or error",
    "error": "why there is no result",
    "job_status": "at the end of the run: RUNNING, FINISHED, or FAILED or RESTARTING FOR EVER and the reason",
    "violations": "of what checkpoints promise; -1: not checked",
    "violation": "the first one's story",
    "warmup_ms": "left out at the beginning (run.warmup)",
    "nothing": "columns without a value as there was nothing to measure; a value that is missing for another reason counts as worst",
    **_meanings(Summary),
    **_meanings(BarrierPath, "path_"),
    **_meanings(BarrierPath, "tail_"),
    **_meanings(Consequences),
    **_meanings(StorageUse),
    "throughput_change": "against the same job under the same load without checkpoints",
    "host": "where the cell ran",
    "attempt": "0: the first",
    "cpu_s": "CPU time it took",
    "wall_s": "time it took",
}
"""Column -> meaning."""


@dataclass(frozen=True, slots=True)
class ComparedColumn:
    """A column of numbers by which settings are compared."""

    worse: Literal["more", "less", "neither"]
    # what must happen for its value to be known; until then it is a bound; empty: it is of the run as it was
    ends: str = ""
    follows: str = ""  # measured on completed checkpoints: a bound whenever that column is one
    of: Literal["restarts", "failures", "planned_restarts", "commits", "first_uploads", ""] = (
        ""  # where there was none of these there was nothing to measure
    )

    @property
    def may_be_bound(self) -> bool:
        return bool(self.ends or self.follows)


_MEDIAN, _TAIL = "end_to_end_p50_ms", "end_to_end_p99_ms"
_COST, _GAIN, _NEITHER = ComparedColumn("more"), ComparedColumn("less"), ComparedColumn("neither")
_PART = ComparedColumn("more", follows=_MEDIAN)
_CHECKPOINT = ComparedColumn("more", ends="complete its checkpoints within the run")
_RESTARTS: dict[str, Literal["failures", "planned_restarts"]] = {"": "failures", "planned_": "planned_restarts"}
_RULES: dict[str, ComparedColumn] = {
    **dict.fromkeys(("warmup_ms", "completed", "busiest_subtask", "interrupted", "first_uploads"), _NEITHER),
    **dict.fromkeys(
        (
            "violations",
            "failed",
            "in_progress",
            "lost_records",
            "restarts",
            "failures",
            "planned_restarts",
            "backlog_growth",
        ),
        _COST,
    ),
    **dict.fromkeys((field.name for field in fields(StorageUse)), _COST),
    **dict.fromkeys(("busy_share", "busiest_subtask_share", "backpressured_share", "most_backpressured_share"), _COST),
    **dict.fromkeys(
        ("lag_s", "delay_mean_s", "delay_p99_s"), ComparedColumn("more", ends="live until the end of the run")
    ),
    **dict.fromkeys(("throughput_per_second", "throughput_change", "commits", "committed_records"), _GAIN),
    **dict.fromkeys(("emitted_per_second", "offered_per_second"), _GAIN),
    **dict.fromkeys(("end_to_end_p50_ms", "end_to_end_p90_ms", "end_to_end_p99_ms", "end_to_end_max_ms"), _CHECKPOINT),
    **dict.fromkeys(("first_upload_ms", "first_upload_bytes"), ComparedColumn("more", of="first_uploads")),
    **dict.fromkeys(("start_delay_ms", "alignment_ms", "sync_ms", "async_ms"), _PART),
    **dict.fromkeys(
        ("persisted_bytes", "persisted_mean_bytes", "checkpointed_bytes", "checkpointed_mean_bytes"), _PART
    ),
    **dict.fromkeys(
        ("visible_p50_ms", "visible_p99_ms", "visible_max_ms"),
        ComparedColumn("more", ends="make all output visible within the run", of="commits"),
    ),
    **{
        prefix + name: ComparedColumn("more", ends=ends, of=of)
        for prefix, of in _RESTARTS.items()
        for name, ends in (
            ("downtime_ms", "run again within the run"),
            ("caught_up_ms", "catch up within the run"),
            ("replayed_records", ""),
        )
    },
    "disturbed_share": ComparedColumn("more", of="restarts"),
    "ended_s": ComparedColumn("more", ends="come to an end within the run"),
}


def _column(name: str) -> ComparedColumn:
    if name.startswith("path_"):
        return ComparedColumn("neither" if name.endswith("_at_source") else "more", follows=_MEDIAN)
    if name.startswith("tail_"):
        return ComparedColumn("neither" if name.endswith("_at_source") else "more", follows=_TAIL)
    return _RULES[name]


COLUMNS: dict[str, ComparedColumn] = {name: _column(name) for name in MEASURED}
"""Column of numbers -> what comparing settings by it needs to know."""


def table(rows: Iterable[Mapping[str, Any]], columns: Mapping[str, pa.DataType]) -> pa.Table:
    """A table with these columns; null where a row lacks a value."""
    return pa.Table.from_pylist([dict(row) for row in rows], schema=pa.schema(list(columns.items())))


# ---- All result tables and their columns, as texts: of a run, and of a sweep.

SWEPT = ("results", "runs")
"""The tables of a sweep."""


def described() -> dict[str, list[tuple[str, str, str]]]:
    """Table -> (column, unit, meaning) of its columns."""
    swept: dict[str, list[tuple[str, str, str]]] = {name: [] for name in SWEPT}
    for name, meaning in MEANING.items():
        swept[SWEPT[name in PROVENANCE]].append((name, unit(name), meaning))
    return {
        name: [(column.name, column.unit, column.meaning) for column in columns] for name, columns in TABLES.items()
    } | swept


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
