"""A study run side by side: every combination and, for its cost, the same job without checkpoints."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sim.cells.cell import simulated, warm
from sim.cells.folder_name import slug
from sim.cells.local import Watch, no_watch, run_each
from sim.cells.plan import Cell, baseline, cells, distinct, with_baselines
from sim.comparison.comparison import Comparison, label
from sim.runtime.run.manifest import identity
from sim.runtime.run.result import Result

if TYPE_CHECKING:
    from sim.model.scenario import Scenario
    from sim.plane import Engine
    from sim.scenario import ScenarioFile


def compare(
    study: str | Path | ScenarioFile | Sequence[Result],
    *,
    overrides: Sequence[str] = (),
    engine: Engine = "compiled",
    jobs: int | None = None,
    folder: Path | None = None,
    watch: Watch = no_watch,
    check: bool = True,
) -> Comparison:
    """Run a study (a scenario file, or what `sim.load` gives) or take results as they are.  `folder` keeps every run as it ends."""
    if isinstance(study, (str, Path)):
        from sim.scenario import load

        study = load(study, overrides)
    if isinstance(study, Sequence):
        return _of_results(study)
    planned = with_baselines(cells(study.scenarios))
    return compare_cells(study, planned, engine=engine, jobs=jobs, folder=folder, watch=watch, check=check)


def compare_cells(
    study: ScenarioFile, planned: Sequence[Cell], *, engine: Engine, jobs: int | None, folder: Path | None, watch: Watch, check: bool,
) -> Comparison:  # fmt: skip
    """Run the cells of a study, baselines among them."""
    runs, names, ended = distinct(planned), folder_names(planned), {}
    warm(engine)
    outcomes = run_each(partial(simulated, engine, check), runs, jobs=jobs, watch=watch)
    with closing(outcomes):  # no worker goes on when this ends
        for i, outcome in outcomes:
            ended[runs[i].id] = outcome
            if folder is not None and isinstance(outcome, Result):  # here and not in the worker, which Ctrl-C may end at any point
                outcome.write(folder / names[runs[i].id])
    return _gather(study.question, study.name, [(cell, ended[cell.id]) for cell in planned])


def _of_results(results: Sequence[Any]) -> Comparison:
    first: Scenario = results[0].scenario
    return _gather(first.question, first.name, [(Cell(result.scenario, identity(result.scenario)), result) for result in results])


def _gather(question: str, name: str, ended: Iterable[tuple[Cell, Result | str]]) -> Comparison:
    results: dict[str, tuple[Result, ...]] = {}
    baselines: dict[str, Result] = {}
    errors: dict[str, str] = {}
    bare: list[Result] = []
    for cell, outcome in ended:
        if isinstance(outcome, str):
            errors[label(cell.scenario)] = outcome
            continue
        if cell.is_baseline:
            baselines[identity(baseline(cell.scenario))] = outcome
        if cell.is_baseline and not cell.scenario.axes:
            bare.append(outcome)
        else:
            results[label(cell.scenario)] = (*results.get(label(cell.scenario), ()), outcome)
    if bare and not results and not errors:
        results[label(bare[0].scenario)] = tuple(_asked_for(bare))
    return Comparison(question, name, results, baselines, errors)


def _asked_for(bare: list[Result]) -> list[Result]:
    """The runs of a study that has none with periodic checkpoints, without the baselines beside them, which write nothing at all."""
    return [run for run in bare if identity(run.scenario) != identity(baseline(run.scenario))] or bare


def folder_names(planned: Sequence[Cell]) -> dict[str, str]:
    """Cell -> a readable folder name; cells that would share one get part of their id."""
    plain = {cell.id: slug(label(cell.scenario) + (f" r{cell.replication}" if cell.replication else "")) for cell in planned}
    names = list(plain.values())
    return {cell: name if names.count(name) == 1 else f"{name}-{cell[:8]}" for cell, name in plain.items()}
