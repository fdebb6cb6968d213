"""Runs the combinations of a study and shows how far they are."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sim.api.progress import watching
from sim.api.results import Origin, Results
from sim.cells.plan import cells, with_baselines
from sim.comparison.compare import compare_cells

if TYPE_CHECKING:
    from sim.plane import Engine
    from sim.scenario.study import Study

__all__ = ["run_study"]


def run_study(
    study: Study, origin: Origin, assumptions: tuple[str, ...], *, jobs: int | None, engine: Engine, checks: bool, progress: bool,
) -> Results:  # fmt: skip
    """All of them and their baselines, in processes."""
    planned = with_baselines(cells(study.scenarios))
    total_ns = sum(cell.scenario.run.duration_ns for cell in planned)
    with watching(study.name, total_ns, len(planned), show=progress) as watch:
        comparison = compare_cells(study, planned, engine=engine, jobs=jobs, folder=None, watch=watch, check=checks)
    return Results(replace(comparison, question=study.question), assumptions, origin, study.backtest)
