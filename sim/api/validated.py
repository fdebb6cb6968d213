"""Predictions next to what real jobs did."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from sim.api.progress import Notebook
from sim.verbs import validate as validating
from sim.verbs.validate import Validation


def validate(
    *recordings: str | PathLike[str], seeds: int = 3, jobs: int | None = None, environment: str | None = None, time_limit_s: float = 600.0,
    everything: bool = False, report: str | PathLike[str] | None = None, progress: bool = True,
) -> Validation:  # fmt: skip
    """Simulate recorded jobs from their configuration alone and compare with what was observed.

    `recordings`: files, or folders of them.  `seeds`: simulations per recording.  `environment`: a file of constants.
    A recording that takes longer than `time_limit_s` is skipped.  `everything`: count recordings with features that are not modelled, too.
    `report`: write the table as one HTML file as well.  RecordingError (a ValueError): there are no recordings.
    """
    return validating.validate(
        [Path(place) for place in recordings], seeds=seeds, jobs=jobs, environment=environment, time_limit_s=time_limit_s,
        everything=everything, report=None if report is None else Path(report), listener=Notebook(show=progress),
    )  # fmt: skip
