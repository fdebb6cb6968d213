"""Observed beside predicted: the truth table over recordings of real jobs.

A prediction sees the configuration of a recording only.  Per quantity the observed and the predicted value are medians: over
the subtasks of a vertex, then over the checkpoints of the run (without the first: it meets queues that are not full yet).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pandas as pd

from sim.calibration.predicted import predicted
from sim.recordings import observed, read, to_document
from sim.runtime.simulate import simulate
from sim.scenario import loads
from sim.scenario.text import write

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from sim.plane import Engine

__all__ = ["DURATIONS", "NEGLIGIBLE_MS", "errors", "truth_table", "unmodelled"]

DURATIONS = (
    "end_to_end_duration", "start_delay", "alignment_duration", "sync_duration", "async_duration",
    "savepoint_duration", "tail_commit_delay", "job_end_delay", "downtime",
)  # fmt: skip
NEGLIGIBLE_MS = 60.0
"""Differences of durations below this are scheduling noise of the recorded machine and count as zero."""


def truth_table(path: Path, *, seeds: Iterable[int] = (1, 2, 3), engine: Engine = "compiled") -> pd.DataFrame:
    """One row per quantity and vertex of a recording: observed, predicted, relative_error (signed; NaN: observed 0).

    RecordingError: not a recording.  What `unmodelled` names is left out of the prediction.
    """
    recording = read(path)
    document, question, comments, _ = to_document(recording)
    scenario = loads(write(document, question, comments), name=recording.name).scenarios[0]
    runs = [
        predicted(simulate(replace(scenario, run=replace(scenario.run, seed=seed)), engine=engine)).assign(seed=seed) for seed in seeds
    ]
    table = _medians(observed(recording), "observed").merge(_medians(pd.concat(runs), "predicted"), on=["quantity", "vertex"])
    table["relative_error"] = errors(table)
    table.insert(0, "recording", recording.name)
    return table


def unmodelled(path: Path) -> list[str]:
    """What the recorded job did and a scenario cannot say yet, one phrase each.  RecordingError: not a recording."""
    return to_document(read(path)).not_modelled


def errors(table: pd.DataFrame) -> pd.Series:
    """(predicted - observed) / observed; 0 where a duration differs by less than NEGLIGIBLE_MS."""
    difference = table["predicted"] - table["observed"]
    noise = table["quantity"].isin(DURATIONS) & (difference.abs() < NEGLIGIBLE_MS)
    relative = difference / table["observed"].where(table["observed"] != 0)
    return relative.mask(noise | (difference == 0), 0.0)


def _medians(rows: pd.DataFrame, name: str) -> pd.DataFrame:
    settled = rows[~rows["first"]]
    medians = settled.groupby(["quantity", "vertex"], sort=False)["value"].median()
    return medians.rename(name).reset_index()
