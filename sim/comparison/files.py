"""The files of a comparison: beside each run's tables the rows, the sentence, the picture and the scenario as it was written."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from sim.analysis.json_ready import json_ready
from sim.comparison.comparison import Comparison
from sim.comparison.run_folder import PICTURE, RUNS, SHEET, SUMMARY, TABLE
from sim.quantities.prices import COST
from sim.runtime.run.result import Result
from sim.sheet import write_csv
from sim.whole_file import replace_file, replace_text


def keep(comparison: Comparison, folder: Path, text: str, summary: Mapping[str, Any], *, picture: bool = False) -> None:
    """`text`: of the scenario.  Every file appears whole or not at all; the runs themselves are there already.

    `summary`: JSON-ready, with the `source` of the text (from the folder of results) and its `overrides`.
    `picture`: draw one.  It takes as long as a small scenario.
    """
    replace_text(folder / "scenario.yaml", text)
    names = sorted(path.name for path in folder.iterdir() if path.is_dir())
    replace_text(folder / SUMMARY, json.dumps({**summary, RUNS: names}, indent=1, allow_nan=False) + "\n")
    if not comparison.strategies:
        return
    replace_file(folder / TABLE, lambda path: comparison.table.to_parquet(path, index=False))
    write_csv(comparison.table, folder / SHEET)
    if picture:
        _draw(comparison, folder)


def _draw(comparison: Comparison, folder: Path) -> None:
    from sim.analysis.strategies.picture import save, through_time

    runs = {name: results[0] for name, results in comparison.results.items()}
    title = comparison.question or comparison.name
    figure = through_time({name: result.tables for name, result in runs.items()}, title, comparison.warmup_s)
    replace_file(folder / PICTURE, partial(save, figure))


def plain(comparison: Comparison) -> dict[str, Any]:
    """JSON-ready; JSON knows no NaN: null."""
    rows = comparison.table.to_dict("records") if comparison.strategies else []
    return {
        "name": comparison.name,
        "question": comparison.question,
        "strategies": [json_ready(row) for row in rows],
        "not_completed": {line.label: [found.row for found in line.not_completed] for line in comparison.strategies if line.not_completed},
        "verdict": comparison.verdict,
        "overload": comparison.overload,
        "scarce_cores": comparison.scarce,
        "deciding": list(map(str, comparison.deciding)),
        "assumptions": [asdict(own) for own in comparison.deciding],
        "consequences": {name: json_ready(asdict(row)) for name, row in comparison.consequences.items()},
        "job_ends": comparison.job_ends,
        "after_a_failure": comparison.consequences_sentence,
        "recoveries": {name: list(_recoveries(results)) for name, results in comparison.results.items()},
        "warm_up": {name: {"ms": warm.ns / 1e6, "until_settled": warm.cause} for name, warm in comparison.warm_ups.items()},
        "cold_start": {name: {"ms": end.ns / 1e6, "until_settled": end.cause} for name, end in comparison.cold_starts.items()},
        "stored": {section.title: [dict(zip(section.header, row, strict=True)) for row in section.rows] for section in comparison.stored},
        "storage_use": _storage_use(comparison),
        "prices": asdict(comparison.prices),
        "errors": comparison.errors,
        "violations": {name: list(stories) for name, stories in comparison.violations.items()},
    }


def _storage_use(comparison: Comparison) -> dict[str, Any]:
    """By label of the strategy, of those that are kept in an object store: what it is asked for, and the cost of a month."""
    known = {name: asdict(use) for name, use in comparison.storage_use.items() if use.has_requests}
    return {name: {**use, COST: comparison.prices.cost_per_month(use)} for name, use in known.items()}


def _recoveries(results: Sequence[Result]) -> Iterator[dict[str, Any]]:
    """The rows of the table, with the replication that they are of."""
    for replication, result in enumerate(results):
        for row in result.tables["recoveries"].to_dict("records"):
            yield {"replication": replication, **json_ready(row)}
