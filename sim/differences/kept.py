"""What lies in a folder that a verb kept: the scenario of a watch, the answer and rows of a sweep or an advice."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from sim.analysis.number_texts import ms_text
from sim.explain.runs import FolderError
from sim.report.answer_page import ADVICE, ANSWER
from sim.watching.memory import STATE, row_logs

JOB = "job.yaml"


@dataclass(frozen=True, slots=True)
class KeptAnswer:
    """The answer of a sweep or an advice, and its rows."""

    folder: Path
    verdict: str
    data: dict[str, Any]  # of an advice; empty: of a sweep
    rows: pd.DataFrame
    job: dict[str, Any] = field(default_factory=dict)  # its scenario: text, file, changes; empty: none was kept


def kept_answer(folder: Path) -> KeptAnswer | None:
    """The answer in a folder.  None: no sweep and no advice was kept there.  FolderError: it cannot be read."""
    name = next((name for name in (ANSWER, ADVICE) if (folder / name).is_file()), None)
    if name is None:
        return None
    try:
        kept = json.loads((folder / name).read_text(encoding="utf-8"))
        rows = pd.read_parquet(folder / "results.parquet")
        return KeptAnswer(folder, str(kept["verdict"]), dict(kept.get("data", {})), rows, dict(kept.get("job", {})))
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise FolderError(f"{folder}: is not what 'ckptsim sweep' or 'advise' wrote: {error}".splitlines()[0]) from None


def scenario_in(place: Path) -> Path | None:
    """The import that a watch made its forecast of.  None: no watch was kept there."""
    return place / JOB if (place / STATE).is_file() and (place / JOB).is_file() else None


def observed_text(a: Path, b: Path) -> str:
    """What two watches saw of the durations of checkpoints; empty: they are no watches, or saw none."""
    seen = [_durations_ms(place) for place in (a, b)]
    if any(own is None or own.empty for own in seen):
        return ""
    sides = [f"{ms_text(float(own.median()))} (n = {len(own)})" for own in seen if own is not None]
    return f"Observed by the watches: median checkpoint, without the first, {sides[0]} -> {sides[1]}."


def _durations_ms(folder: Path) -> pd.Series | None:
    if scenario_in(folder) is None:
        return None
    rows = row_logs(folder)[0].read()
    usual = [row for row in rows if row["status"] == "COMPLETED" and not row["is_savepoint"] and row["checkpoint"] != 1]
    return pd.Series([row["duration_ms"] for row in usual if row["duration_ms"] >= 0], dtype=float) if rows else None
