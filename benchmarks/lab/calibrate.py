"""`calibrate`: the constants of an environment from recordings of jobs that ran there, and whether they hold for others."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from benchmarks.lab import Recording, read
from benchmarks.lab.calibration.cross_validation import Fit, RecordingVotes, errors, fits, runs, sources
from benchmarks.lab.calibration.environments import environment_text, head
from benchmarks.lab.calibration.estimate import Estimate, estimates, votes
from benchmarks.lab.calibration.estimators import CONSTANTS
from sim.app.verbs.common import Listener, Stopped, Work, paragraph
from sim.app.verbs.options import command_line
from sim.app.verbs.validate import in_folder
from sim.jobs.evidence.prediction import truth
from sim.jobs.reading import to_document
from sim.jobs.source.recorded_job import RecordingError
from sim.model.files import replace_text
from sim.studies.local import cores, run_each

if TYPE_CHECKING:
    from benchmarks.lab.calibration.cross_validation import Prediction
    from sim.studies.progress import Progress


@dataclass(frozen=True, repr=False, eq=False)
class Calibration:
    """The constants of an environment with their intervals, as `overheads:` of a scenario takes them."""

    estimates: Mapping[str, Estimate]
    recordings: tuple[Recording, ...]
    skipped: tuple[str, ...]  # files that are no recordings, and why
    command: str

    @property
    def table(self) -> pd.DataFrame:
        """A row per constant: `value_ms`, `low_ms` and `high_ms` (95 %), `recordings` that tell it, `kept` (the default: few tell it)."""
        rows = [
            {"constant": name.replace("_", "-"), **_plain(found), "meaning": CONSTANTS[name].what}
            for name, found in self.estimates.items()
        ]
        return pd.DataFrame(rows)

    @property
    def text(self) -> str:
        """The section `overheads:`, as YAML."""
        return environment_text(self.estimates, [*head(self.recordings), f"Written by: {self.command}"])

    @property
    def facts(self) -> dict[str, dict[str, float | int | bool | None]]:
        """JSON-ready: constant -> its estimate."""
        return {name: _plain(found) for name, found in self.estimates.items()}

    def save(self, file: str | PathLike[str]) -> Path:
        """Write the section `overheads:`; returns its path."""
        replace_text(Path(file), self.text)
        return Path(file)

    def __repr__(self) -> str:
        return f"{self._head()}\n{self.table.to_string(index=False)}"

    def _repr_html_(self) -> str:
        return paragraph(self._head()) + str(self.table.round(2).to_html(index=False))

    def _head(self) -> str:
        skipped = f", {len(self.skipped)} skipped" if self.skipped else ""
        return f"Constants from {len(self.recordings)} recording{'' if len(self.recordings) == 1 else 's'}{skipped}"


@dataclass(frozen=True, repr=False, eq=False)
class CrossValidation:
    """The errors of predictions whose constants come from other recordings."""

    errors: pd.DataFrame  # a row per quantity, columns for each of `cross_validation.WAYS`
    sources: tuple[tuple[str, str, int], ...]  # (constant, where it comes from without the family, recordings)
    fitted: tuple[Fit, ...]
    predictions: int  # different ones
    skipped: tuple[str, ...]

    @property
    def facts(self) -> dict[str, Any]:
        """JSON-ready."""
        constants = [{"constant": name, "from": source, "recordings": count} for name, source, count in self.sources]
        return {"errors": json.loads(self.errors.to_json(orient="records")), "without_the_family": constants}

    def __repr__(self) -> str:
        return f"{self.predictions} different predictions\n{self.errors.to_string(index=False)}"


def calibrate(places: Sequence[Path], out: Path | None = None, *, listener: Listener | None = None) -> Calibration:
    """Estimate what no configuration says; `out` keeps the section `overheads:`.  RecordingError: there are no recordings."""
    listener = listener or Listener()
    recordings, skipped = _read(places, listener)
    found = estimates([votes(recording) for recording in recordings])
    for name, estimate in found.items():
        if estimate.kept:
            count = "no" if not estimate.recordings else "only one"
            listener.message(f"{name}: kept at {estimate.value_ms:g} ms: {count} recording tells it")
    command = command_line("calibrate", list(places)).replace("ckptsim", "python -m benchmarks.lab", 1)
    calibration = Calibration(found, recordings, skipped, command)
    listener.result(calibration)
    if out is not None:
        calibration.save(out)
        listener.message(str(out))
    return calibration


def cross_validate(
    places: Sequence[Path], *, seeds: int = 3, jobs: int | None = None, listener: Listener | None = None
) -> CrossValidation:
    """Predict each recording with constants from the others.  RecordingError: fewer than two recordings, or none that can be predicted."""
    listener = listener or Listener()
    recordings, skipped = _read(places, listener)
    if len(recordings) < 2:
        raise RecordingError("--cross-validate needs at least two recordings: each is predicted from the others")
    fitted = fits([RecordingVotes(recording.name, recording.family, votes(recording)) for recording in recordings])
    predictable = []
    for recording in recordings:
        lost = to_document(recording).not_modelled
        if lost:
            listener.message(f"{recording.name}: estimated from, not predicted: not modelled: {'; '.join(lost)}")
        predictable.append(not lost)
    planned = [run for run in runs(fitted) if predictable[run.place]]
    if not planned:
        raise RecordingError("none of these recordings can be predicted")
    predicted = _predicted(recordings, planned, seeds, jobs, listener)
    found = CrossValidation(errors(fitted, predicted), tuple(sources(fitted)), tuple(fitted), len(planned), skipped)
    listener.result(found)
    return found


def _read(places: Sequence[Path], listener: Listener) -> tuple[tuple[Recording, ...], tuple[str, ...]]:
    """The recordings, and why other files are none."""
    paths = [file for place in places for file in (in_folder(place, listener.message) if place.is_dir() else [place])]
    found, skipped = list[Recording](), list[str]()
    for path in paths:
        try:
            found.append(read(path))
        except RecordingError as error:
            skipped.append(str(error))
            listener.message(f"skipped: {error}")
    if not found:
        raise RecordingError(f"no recordings (.json, .json.gz) in {', '.join(map(str, places)) or 'nothing'}")
    return tuple(found), tuple(skipped)


def _predicted(
    recordings: Sequence[Recording], planned: Sequence[Prediction], seeds: int, jobs: int | None, listener: Listener
) -> dict[Prediction, pd.DataFrame]:
    with listener.progress(Work("cross-validate", len(planned), len(planned), "predictions")) as watch:
        work = partial(_predict, recordings=recordings, seeds=seeds)
        done = run_each(work, planned, jobs=jobs or cores(), watch=lambda finished, _: watch(finished, finished))
        try:
            return {planned[i]: table for i, table in done}
        except KeyboardInterrupt:
            raise Stopped("nothing is kept: all predictions are made by one call") from None


def _predict(run: Prediction, progress: Progress, *, recordings: Sequence[Recording], seeds: int) -> pd.DataFrame:
    progress(0)
    return truth(recordings[run.place], seeds=range(1, seeds + 1), overheads=run.overheads)


def _plain(estimate: Estimate) -> dict[str, float | int | bool | None]:
    return {name: getattr(estimate, name) for name in ("value_ms", "low_ms", "high_ms", "recordings", "kept")}
