"""Python functions for files: reports, the schema of scenarios, and the columns of result tables."""

from __future__ import annotations

import json
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from sim.app.verbs.notebook import Notebook

if TYPE_CHECKING:
    from sim.app.verbs.pictures import WrittenReport


def write_report(results: str | PathLike[str], file: str | PathLike[str], *, jobs: int | None = None) -> WrittenReport:
    """Write results as a self-contained HTML file.

    `results`: a results folder; or a scenario or sweep file, which is run first and stored under ``runs``.

    FolderError (a ValueError): no results.  ScenarioError: mistakes in the file.
    """
    from sim.app.verbs.pictures import write_report as write

    return write(Path(results), Path(file), jobs=jobs, listener=Notebook())


def schema(of: str = "scenario") -> dict[str, Any]:
    """Return the JSON Schema of scenario files, or of sweep files (``sim.schema("sweep")``).  ValueError: another name."""
    from sim.model.schema.reference import schema_text
    from sim.studies.sweeps.design import SweepDocument

    texts = {"scenario": schema_text, "sweep": lambda: schema_text(SweepDocument, "ckptsim sweep")}
    if of not in texts:
        raise ValueError(f"expected {' or '.join(texts)}, not '{of}'")
    found: dict[str, Any] = json.loads(texts[of]())
    return found


def columns() -> pd.DataFrame:
    """Return a row per column of all result tables: `table`, `column`, `unit`, `meaning`.

    The tables `results` and `runs` are written by sweeps.
    """
    from sim.studies.cells import described

    rows = [(table, *row) for table, found in described().items() for row in found]
    return pd.DataFrame(rows, columns=["table", "column", "unit", "meaning"])
