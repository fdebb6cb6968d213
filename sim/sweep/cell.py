"""One cell -> one row: simulate, summarise, let go of the tables.  An error is a row too, so that a sweep goes on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from traceback import extract_tb
from typing import TYPE_CHECKING, Any

from sim.analysis.summary import Summary, Tables, summarize
from sim.model.scenario import Scenario
from sim.sweep.plan import Cell

if TYPE_CHECKING:
    from sim.plane import Engine

__all__ = ["edges", "pooled", "row", "summary_of", "warm"]

_PACKAGE = Path(__file__).parents[1]


def row(cell: Cell, engine: Engine = "compiled", progress: Callable[[int], None] | None = None, *, check: bool = True) -> dict[str, Any]:
    """The summary of one run beside what was varied; no wall times, so that all runners give the same bytes."""
    scenario = cell.scenario
    head: dict[str, Any] = {"cell": cell.id, "scenario": scenario.name, "replication": cell.replication, "seed": scenario.run.seed}
    head |= dict(scenario.axes) | {"strategy": "none" if cell.is_baseline else str(scenario.checkpoint.barriers)}
    try:
        from sim.runtime.simulate import simulate

        result = simulate(scenario, engine=engine, progress=progress, check=check)
        told = {"status": "ok", "error": "", "job_status": result.job_status, "violations": len(result.violations) if check else -1}
        told["violation"] = str(result.violations[0]) if result.violations else ""
        return head | told | summary_of(scenario, result.tables)
    except Exception as error:  # noqa: BLE001 - whatever it is, the other cells do not suffer
        return head | {"status": "error", "error": f"{type(error).__name__}: {error}".splitlines()[0] + _where(error)}


def _where(error: Exception) -> str:
    """The innermost line of ours, and the moment: what a report of this mistake of ours needs."""
    ours = [frame for frame in extract_tb(error.__traceback__) if Path(frame.filename).is_relative_to(_PACKAGE)]
    place = f"{Path(ours[-1].filename).relative_to(_PACKAGE.parent)}:{ours[-1].lineno}" if ours else "unknown place"
    return f" ({', '.join([place, *getattr(error, '__notes__', ())])})"


def summary_of(scenario: Scenario, tables: Tables) -> dict[str, Any]:
    return pooled(scenario, [tables]).row()


def pooled(scenario: Scenario, runs: Sequence[Tables]) -> Summary:
    """Replications of one strategy as one row."""
    committers = [vertex.name for vertex in scenario.job.vertices if vertex.committer_of]
    return summarize(runs, edges(scenario), warmup_s=scenario.run.warmup_ns / 1e9, without_records=committers)


def edges(scenario: Scenario) -> list[tuple[str, str]]:
    """(upstream, downstream) of the job graph."""
    return [(inlet.upstream, vertex.name) for vertex in scenario.job.vertices for inlet in vertex.inputs]


def warm(engine: Engine = "compiled") -> None:
    """Load, and compile, what every cell needs, once per worker: it takes longer than short cells.  Forked workers inherit it."""
    from importlib import import_module

    import_module("sim.runtime.simulate")
    if engine == "compiled":
        from sim import plane

        plane.warm()
