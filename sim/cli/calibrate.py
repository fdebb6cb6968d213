"""``ckptsim calibrate``: the constants of an environment from recordings of jobs that ran there, and whether they hold for others."""

from __future__ import annotations

import json
import shlex
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sim.cli.console.errors import Code, UserError, print_message, speaking, stoppable
from sim.cli.console.progress import bar
from sim.cli.console.terminal import show
from sim.cli.options import JobsOption

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pandas as pd

    from sim.cells.local import Progress
    from sim.evidence.calibration.cross_validation import Fit, Prediction
    from sim.evidence.calibration.estimate import Estimate
    from sim.recordings import Recording


def calibrate_environment(
    recordings: Annotated[list[Path], typer.Argument(metavar="FOLDER...", help="Recordings, or folders of them.", show_default=False)],
    out: Annotated[Path | None, typer.Option("--out", "-o", metavar="FILE", help="Instead of stdout.", show_default=False)] = None,
    cross_validate: Annotated[
        bool, typer.Option("--cross-validate", help="Predict each recording with constants from the others; the file is not written.")
    ] = False,
    seeds: Annotated[int, typer.Option("--seeds", min=1, help="Simulations per prediction.")] = 3,
    jobs: JobsOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="What is shown, as JSON.")] = False,
) -> None:
    """Estimate what no configuration says from recordings of one environment: one file for `environment:`, nothing is simulated."""
    with speaking():
        if cross_validate and out is not None:
            raise UserError("--cross-validate estimates many times; write the file with another call, without it", Code.USAGE)
        read, skipped = _read(recordings)
        if cross_validate:
            _cross_validate(read, seeds, jobs, as_json)
        else:
            _calibrate(read, recordings, out, as_json)
        raise typer.Exit(Code.CELLS_FAILED if skipped else Code.FINE)


def _read(places: Sequence[Path]) -> tuple[list[Recording], int]:
    """The recordings, and how many files were none."""
    from sim.evidence.folder import in_folder
    from sim.recordings import RecordingError, read

    paths = [file for place in places for file in (in_folder(place, print_message) if place.is_dir() else [place])]
    found, skipped = [], 0
    for path in paths:
        try:
            found.append(read(path))
        except RecordingError as error:
            print_message(f"skipped: {error}")
            skipped += 1
    if not found:
        raise UserError(f"no recordings (.json, .json.gz) in {', '.join(map(str, places))}", Code.INVALID_INPUT)
    return found, skipped


def _calibrate(recordings: Sequence[Recording], places: Sequence[Path], out: Path | None, as_json: bool) -> None:
    from sim.evidence.calibration.environments import environment_text, head
    from sim.evidence.calibration.estimate import estimates, votes
    from sim.whole_file import replace_text

    found = estimates([votes(recording) for recording in recordings])
    for name, estimate in found.items():
        if estimate.kept:
            count = "no" if not estimate.recordings else "only one"
            print_message(f"{name}: kept at {estimate.value_ms:g} ms: {count} recording tells it")
    text = environment_text(found, [*head(recordings), f"Written by: ckptsim calibrate {shlex.join(map(str, places))}"])
    if as_json:
        print(json.dumps({name: _plain(estimate) for name, estimate in found.items()}))
    elif out is None:
        print(text, end="")
    else:
        _show_constants(found)
    if out is not None:
        replace_text(out, text)
        print_message(str(out))


def _plain(estimate: Estimate) -> dict[str, float | int | bool | None]:
    return {name: getattr(estimate, name) for name in ("value_ms", "low_ms", "high_ms", "recordings", "kept")}


def _show_constants(found: Mapping[str, Estimate]) -> None:
    from sim.evidence.calibration.estimators import CONSTANTS

    rows = [
        [name.replace("_", "-"), f"{estimate.value_ms:g} ms", _interval(estimate), str(estimate.recordings), CONSTANTS[name].what]
        for name, estimate in found.items()
    ]
    show(["constant", "value", "interval", "recordings", "what it is"], rows)


def _interval(estimate: Estimate) -> str:
    return "default kept" if estimate.kept else f"{estimate.low_ms:g} to {estimate.high_ms:g} ms"


def _cross_validate(recordings: Sequence[Recording], seeds: int, jobs: int | None, as_json: bool) -> None:
    from sim.evidence.calibration.cross_validation import RecordingVotes, errors, fits, runs, sources
    from sim.evidence.calibration.estimate import votes
    from sim.evidence.truth import unmodelled

    if len(recordings) < 2:
        raise UserError("--cross-validate needs two recordings at least: what is left of one without it is nothing", Code.INVALID_INPUT)
    fitted = fits([RecordingVotes(recording.name, recording.family, votes(recording)) for recording in recordings])
    predictable = []
    for recording in recordings:
        lost = unmodelled(recording)
        if lost:
            print_message(f"{recording.name}: estimated from, not predicted: not modelled: {'; '.join(lost)}")
        predictable.append(not lost)
    predictable_runs = [run for run in runs(fitted) if predictable[run.place]]
    if not predictable_runs:
        raise UserError("none of these recordings can be predicted", Code.INVALID_INPUT)
    predicted = _predictions(recordings, predictable_runs, seeds, jobs)
    table, origins = errors(fitted, predicted), sources(fitted)
    if as_json:
        constants = [{"constant": name, "from": source, "recordings": count} for name, source, count in origins]
        print(json.dumps({"errors": json.loads(table.to_json(orient="records")), "without_the_family": constants}))
    else:
        _show_errors(table)
        print()
        _show_sources(origins, fitted, len(predictable_runs))


def _predictions(
    recordings: Sequence[Recording], predictable_runs: Sequence[Prediction], seeds: int, jobs: int | None
) -> dict[Prediction, pd.DataFrame]:
    from sim.cells.local import cores, run_each

    with bar("cross-validate", len(predictable_runs), len(predictable_runs), what_each="predictions") as watch:
        work = partial(_predict, recordings=recordings, seeds=seeds)
        done = run_each(work, predictable_runs, jobs=jobs or cores(), watch=lambda finished, _: watch(finished, finished))
        with stoppable("nothing is kept: all predictions are made by one call"):
            return {predictable_runs[i]: table for i, table in done}


def _predict(run: Prediction, progress: Progress, *, recordings: Sequence[Recording], seeds: int) -> pd.DataFrame:
    from sim.evidence.truth import truth

    progress(0)
    return truth(recordings[run.place], seeds=range(1, seeds + 1), overheads=run.overheads)


def _show_errors(table: pd.DataFrame) -> None:
    from sim.cli.truth_tables import share
    from sim.evidence.calibration.cross_validation import WAYS

    keys = [f"{way}: {name}" for way in WAYS for name in ("median", "p90")]
    counted = ("quantity", "recordings", "rows")
    rows = [[*(str(row[key]) for key in counted), *(share(row[key]) for key in keys)] for row in table.to_dict("records")]
    show([*counted, *(key if key.endswith("median") else "p90" for key in keys)], rows)


def _show_sources(origins: Sequence[tuple[str, str, int]], fitted: Sequence[Fit], predictions: int) -> None:
    rows = [[name.replace("_", "-"), *_values(fitted, name), str(count), source] for name, source, count in origins]
    show(["constant", "from all", "without the recording", "without the family", "recordings", "without the family it comes from"], rows)
    print_message(f"{predictions} different predictions")


def _values(fitted: Sequence[Fit], name: str) -> list[str]:
    """The value, or the smallest and the largest, of each way."""
    ranges = []
    for k in range(3):
        values = sorted({getattr(fit.overheads[k], f"{name}_ns") / 10**6 for fit in fitted})
        ranges.append(f"{values[0]:g} ms" if len(values) == 1 else f"{values[0]:g} to {values[-1]:g} ms")
    return ranges
