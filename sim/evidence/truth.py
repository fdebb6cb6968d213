"""Observations next to predictions: the truth table of a recording of a real job.

A prediction sees the configuration of the recording only.  For each quantity and vertex both sides have three percentiles over the
checkpoints of a run or the samples of a series.  Predictions pool several seeds.  A vertex's value in a checkpoint is the median over its
subtasks.  The first checkpoint meets queues that are not full yet, so it has rows of its own: their quantity ends with `FIRST`.
A number about the whole run is its own three percentiles.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from sim.evidence.predicted import predicted
from sim.quantities.observed import QUANTITIES, Level
from sim.recordings import Import, RecordedJob, RecordingError, observed, read_any, to_document
from sim.runtime.run.simulate import simulate
from sim.scenario import ScenarioError, loads
from sim.scenario.text.writer import write

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from sim.model.scenario import Overheads, Scenario
    from sim.plane import Engine

FIRST = " (first)"
"""Suffix of a quantity of the first checkpoint: 'start_delay (first)'."""
_SHARES = {"p10": 0.1, "p50": 0.5, "p90": 0.9}
_OBSERVED, _PREDICTED = ([f"{side}_{name}" for name in _SHARES] for side in ("observed", "predicted"))
COLUMNS = ("recording", "family", "quantity", "vertex", *_OBSERVED, *_PREDICTED, "relative_error", "covered")


def truth(
    recording: RecordedJob | Path | str, *, document: Import | None = None, seeds: Iterable[int] = (1, 2, 3), engine: Engine = "compiled",
    overheads: Overheads | None = None, progress: Callable[[int], None] | None = None,
) -> pd.DataFrame:  # fmt: skip
    """The rows (`COLUMNS`) of a recording, for all its quantities; NaN: absent from a run.

    `vertex` is None for the whole checkpoint or job.  `relative_error`: of the medians, signed; 0 for durations that differ by less
    than the noise of a machine, NaN if only the observed one is 0.  `covered`: the observed median lies between the predicted 10 % and 90 %
    (durations: or within that noise of them).  `overheads`: in place of the scenario's own.
    `document`: if it was made of the recording before.  `progress` gets the simulated time [ns] of each run.
    RecordingError: not a recording; ScenarioError: it cannot be simulated.  Predictions leave out what `unmodelled` names.
    """
    recorded = recording if isinstance(recording, RecordedJob) else read_any(recording)
    try:
        seen, scenario = observed(recorded), scenario_of(recorded, overheads, document)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        if isinstance(error, ScenarioError):
            raise
        raise RecordingError(f"{recorded.name}: has events or metrics that cannot be understood: {error!r}") from None
    seeded = [replace(scenario, run=replace(scenario.run, seed=seed)) for seed in seeds]
    runs = [predicted(simulate(seed_scenario, engine=engine, check=False, progress=progress)) for seed_scenario in seeded]
    table = join_observed_predicted(seen, pd.concat(runs))
    table.insert(0, "recording", recorded.name)
    table.insert(1, "family", recorded.family)
    return table


def scenario_of(recording: RecordedJob, overheads: Overheads | None = None, document: Import | None = None) -> Scenario:
    """The simulated scenario of a recording: its configuration, no observation."""
    imported = to_document(recording) if document is None else document
    scenario = loads(write(imported.document, imported.question, imported.comments), name=recording.name).scenarios[0]
    return scenario if overheads is None else replace(scenario, overheads=overheads)


def unmodelled(recording: RecordedJob | Path | str) -> list[str]:
    """A phrase for each feature of the recorded job that a scenario lacks.  RecordingError: not a recording."""
    return to_document(recording if isinstance(recording, RecordedJob) else read_any(recording)).not_modelled


def join_observed_predicted(observations: pd.DataFrame, predictions: pd.DataFrame) -> pd.DataFrame:
    """Two tables of observations (`sim.recordings.observe`) joined: `COLUMNS` from `quantity` on, in the order of the first."""
    table = _percentiles(observations, "observed").merge(_percentiles(predictions, "predicted"), on=["quantity", "vertex"], how="left")
    table["relative_error"] = relative_errors(table)
    table["covered"] = covered(table)
    table["vertex"] = table["vertex"].astype(object).where(table["vertex"] != "", None)
    return table


def relative_errors(table: pd.DataFrame, level: Level = "p50") -> pd.Series:
    """(predicted - observed) / observed of the medians; 0 where they differ by less than noise."""
    predicted, observed = table[f"predicted_{level}"], table[f"observed_{level}"]
    difference = predicted - observed
    relative = difference / observed.where(observed != 0)
    return relative.mask((difference.abs() < noise(table)) | (difference == 0), 0.0)


def covered(table: pd.DataFrame) -> pd.Series:
    """Whether the observed median lies in the predicted range; without a prediction it does not."""
    slack = noise(table)
    return (table["observed_p50"] >= table["predicted_p10"] - slack) & (table["observed_p50"] <= table["predicted_p90"] + slack)


def noise(table: pd.DataFrame) -> pd.Series:
    """By how much each row may differ and count as equal."""
    return table["quantity"].str.removesuffix(FIRST).map({name: quantity.noise for name, quantity in QUANTITIES.items()})


def _percentiles(rows: pd.DataFrame, side: str) -> pd.DataFrame:
    named = rows.assign(quantity=rows["quantity"].where(~rows["first"], rows["quantity"] + FIRST))
    grouped = named.groupby(["quantity", "vertex"], sort=False)["value"]
    return pd.DataFrame({f"{side}_{name}": grouped.quantile(share) for name, share in _SHARES.items()}).reset_index()
