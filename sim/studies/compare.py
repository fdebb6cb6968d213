"""Running the cells of a comparison, and writing its files."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from sim.model.files import replace_file, replace_text
from sim.model.quantities import COST
from sim.model.scenario import Scenario
from sim.model.schema.flink_block import masked_scenario
from sim.model.schema.study import ScenarioFile
from sim.plane import Engine
from sim.results.bindings import bound_cells
from sim.results.formats import json_ready, write_csv
from sim.results.summary import WarmUpEnd
from sim.runtime.result import Result, identity
from sim.studies.cells import simulated, warm
from sim.studies.comparison import Comparison
from sim.studies.local import run_each
from sim.studies.plan import Cell, baseline, cells, distinct, label, slug, with_baselines
from sim.studies.progress import Watch, no_watch
from sim.studies.run_folder import RUNS, SHEET, SUMMARY, TABLE

# ---- Files of a comparison, next to the folders of its runs: rows, verdict, and the scenario.


def write_comparison(comparison: Comparison, folder: Path, text: str, summary: Mapping[str, Any]) -> None:
    """Write the files of a comparison, next to the folders of its runs.  Every file is written completely or not at all.

    `text`: text of the scenario.  `summary`: JSON-ready, with the `source` of the text (relative to `folder`) and its `overrides`.
    """
    replace_text(folder / "scenario.yaml", masked_scenario(text))
    names = sorted(path.name for path in folder.iterdir() if path.is_dir())
    replace_text(folder / SUMMARY, json.dumps({**summary, RUNS: names}, indent=1, allow_nan=False) + "\n")
    if not comparison.strategies:
        return
    replace_file(folder / TABLE, lambda path: comparison.table.to_parquet(path, index=False))
    write_csv(comparison.table, folder / SHEET)


def comparison_json(comparison: Comparison) -> dict[str, Any]:
    """Return the comparison for JSON, with None for NaN."""
    rows = comparison.table.to_dict("records") if comparison.strategies else []
    return {
        "name": comparison.name,
        "question": comparison.question,
        "strategies": [json_ready(row) for row in rows],
        "not_completed": {
            line.label: list(map(asdict, line.not_completed)) for line in comparison.strategies if line.not_completed
        },
        "verdict": comparison.verdict,
        "bindings": bound_cells(comparison.verdict, comparison.strategies),
        "overload": comparison.overload,
        "scarce_cores": comparison.scarce,
        "deciding": list(map(str, comparison.deciding)),
        "assumptions": list(map(asdict, comparison.deciding)),
        "consequences": {name: json_ready(asdict(row)) for name, row in comparison.consequences.items()},
        "job_ends": comparison.job_ends,
        "after_a_failure": comparison.consequences_sentence,
        "recoveries": {
            name: [
                {"replication": replication, **json_ready(row)}
                for replication, result in enumerate(results)
                for row in result.tables["recoveries"].to_dict("records")
            ]
            for name, results in comparison.results.items()
        },
        "warm_up": {name: _warm_up_json(runs.warm_up) for name, runs in comparison.replications.items()},
        "cold_start": {
            name: _warm_up_json(runs.cold_start) for name, runs in comparison.replications.items() if runs.cold_start.ns
        },
        "stored": {
            section.title: [dict(zip(section.header, row, strict=True)) for row in section.rows]
            for section in comparison.stored
        },
        "storage_use": _storage_use_json(comparison),
        "prices": asdict(comparison.prices),
        "errors": comparison.errors,
        "violations": {name: list(stories) for name, stories in comparison.violations.items()},
    }


def _warm_up_json(end: WarmUpEnd) -> dict[str, Any]:
    return {"ms": end.ns / 1e6, "until_settled": end.cause}


def _storage_use_json(comparison: Comparison) -> dict[str, Any]:
    """Return requests to the object store and cost per month, by label of the strategy, for those that use one."""
    uses = {name: asdict(use) for name, use in comparison.storage_use.items() if use.has_requests}
    return {name: {**use, COST: comparison.prices.cost_per_month(use)} for name, use in uses.items()}


# ---- Running a study: every combination, and its baseline without checkpoints.


def compare(
    study: ScenarioFile,
    *,
    engine: Engine = "compiled",
    jobs: int | None = None,
    folder: Path | None = None,
    watch: Watch = no_watch,
    check: bool = True,
) -> Comparison:
    """Run the cells of a study, including baselines.  `folder` keeps every run as it ends."""
    planned = with_baselines(cells(study.scenarios))
    runs, names, ended = distinct(planned), folder_names(planned), {}
    if engine == "compiled":
        warm()
    outcomes = run_each(partial(simulated, engine, check), runs, jobs=jobs, watch=watch)
    with closing(outcomes):  # stops all workers at the end of the block
        for i, outcome in outcomes:
            ended[runs[i].id] = outcome
            # written here and not in the worker, which Ctrl-C may end at any point
            if folder is not None and isinstance(outcome, Result):
                outcome.write(folder / names[runs[i].id])
    return _compare_outcomes(study.question, study.name, [(cell, ended[cell.id]) for cell in planned])


def comparison_of(results: Sequence[Any]) -> Comparison:
    """Return the comparison of runs that have ended."""
    first: Scenario = results[0].scenario
    return _compare_outcomes(
        first.question, first.name, [(Cell(result.scenario, identity(result.scenario)), result) for result in results]
    )


def _compare_outcomes(question: str, name: str, ended: Iterable[tuple[Cell, Result | str]]) -> Comparison:
    """Return the comparison of runs by strategy.  `ended`: (cell, its result, or the message of an error)."""
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
        # the runs of a study without periodic checkpoints, except their baselines, which write nothing at all
        own = [run for run in bare if identity(run.scenario) != identity(baseline(run.scenario))]
        results[label(bare[0].scenario)] = tuple(own or bare)
    return Comparison(question, name, results, baselines, errors)


def folder_names(planned: Sequence[Cell]) -> dict[str, str]:
    """Return {cell id: readable folder name}; part of the id is appended to names that are not unique."""
    readable = {
        cell.id: slug(label(cell.scenario) + (f" r{cell.replication}" if cell.replication else "")) for cell in planned
    }
    names = list(readable.values())
    return {cell: name if names.count(name) == 1 else f"{name}-{cell[:8]}" for cell, name in readable.items()}
