"""The files of a comparison: beside each run's tables the rows, the sentence, the picture and the scenario as it was written."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from sim.comparison.comparison import Comparison
from sim.comparison.run_folder import PICTURE, RUNS, SHEET, SUMMARY, TABLE
from sim.sheet import write_csv
from sim.whole_file import replace_file, replace_text

__all__ = ["keep", "plain"]


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
        "strategies": [{str(key): _finite(value) for key, value in row.items()} for row in rows],
        "verdict": comparison.verdict,
        "scarce_cores": comparison.scarce,
        "deciding": list(comparison.deciding),
        "warm_up": {name: {"ms": warm.ns / 1e6, "until_settled": warm.cause} for name, warm in comparison.warm_ups.items()},
        "stored": {section.title: [dict(zip(section.header, row, strict=True)) for row in section.rows] for section in comparison.stored},
        "errors": comparison.errors,
        "violations": {name: list(stories) for name, stories in comparison.violations.items()},
    }


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value
