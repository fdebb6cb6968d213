"""Observations next to predictions: the truth table of a recording of a real job.

A prediction sees the configuration of the recording only, and pools several seeds.  Columns are those of `sim.evidence.errors`, behind
`recording` and `family`.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from sim.evidence.errors import join_observed_predicted
from sim.evidence.predicted import predicted
from sim.recordings import ConfiguredJob, Import, RecordedJob, RecordingError, observed, read_any, to_document
from sim.recordings.observe.tidy import RunValue, values_of
from sim.runtime.run.simulate import simulate
from sim.scenario import ScenarioError, loads
from sim.scenario.text.writer import write

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from sim.model.scenario import Overheads, Scenario
    from sim.plane import Engine
    from sim.runtime.run.result import Result


def truth(
    recording: RecordedJob | Path | str, *, document: Import | None = None, seeds: Iterable[int] = (1, 2, 3), engine: Engine = "compiled",
    overheads: Overheads | None = None, progress: Callable[[int], None] | None = None,
) -> pd.DataFrame:  # fmt: skip
    """The rows of a recording, for all its quantities.

    `overheads`: in place of the scenario's own.  `document`: if it was made of the recording before.  `progress` gets the simulated time
    [ns] of each run.
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
    results = (simulate(seed_scenario, engine=engine, check=False, progress=progress) for seed_scenario in seeded)
    runs = [run for result in results for run in (predicted(result), values_of(_more(recorded, result)))]
    table = join_observed_predicted(seen, pd.concat(runs))
    table.insert(0, "recording", recorded.name)
    table.insert(1, "family", recorded.family)
    return table


def _more(recording: RecordedJob, result: Result) -> Iterable[RunValue]:
    """What a recording of a configured job observes beyond that of other jobs."""
    return recording.predicted_values(result) if isinstance(recording, ConfiguredJob) else ()


def scenario_of(recording: RecordedJob, overheads: Overheads | None = None, document: Import | None = None) -> Scenario:
    """The simulated scenario of a recording: its configuration, no observation."""
    imported = to_document(recording) if document is None else document
    scenario = loads(write(imported.document, imported.question, imported.comments), name=recording.name).scenarios[0]
    return scenario if overheads is None else replace(scenario, overheads=overheads)


def unmodelled(recording: RecordedJob | Path | str) -> list[str]:
    """A phrase for each feature of the recorded job that a scenario lacks.  RecordingError: not a recording."""
    return to_document(recording if isinstance(recording, RecordedJob) else read_any(recording)).not_modelled
