"""`validate`: simulate recorded jobs from their configuration, and compare predictions with observations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Unpack

import pandas as pd

from sim.app.verbs.common import SILENT, Displayed, Listener, Work, stoppable
from sim.app.verbs.options import FilePath, ValidateOptions, with_all_options
from sim.jobs.evidence.prediction import FIRST_SUFFIX, Judgement, judge, summary
from sim.jobs.source.recorded_job import RecordingError
from sim.model.quantities import QUANTITIES
from sim.results.formats import json_ready
from sim.studies.local import cores, run_each

# ---- Recordings: finding them, judging them in parallel, and giving them distinct names.


def in_folder(folder: Path, warn: Callable[[str], object] = str) -> list[Path]:
    """Return the recordings of a folder, by suffix.  A pipe or device, which might block, is skipped with a message."""
    named = sorted([*folder.glob("*.json"), *folder.glob("*.json.gz"), *folder.glob("*.zip")])
    for path in named:
        if not path.is_file():
            warn(f"skipped: {path}: is not a regular file")
    return [path for path in named if path.is_file()]


def by_name(found: Sequence[tuple[Path, Judgement]]) -> dict[str, Judgement]:
    """Return judgements by unique name: the recording's, with its folder if that is ambiguous, or else its path."""
    names = [outcome.name for _, outcome in found]
    foldered = [f"{path.absolute().parent.name}/{outcome.name}" for path, outcome in found]
    for longer in (foldered, [str(path) for path, _ in found]):
        counts = Counter(names)
        names = [more if counts[name] > 1 else name for name, more in zip(names, longer, strict=True)]
    return {
        name: outcome._replace(table=None if outcome.table is None else outcome.table.assign(recording=name))
        for name, (_, outcome) in zip(names, found, strict=True)
    }


# ---- `validate`

PERCENTILES = ("p10", "p50", "p90")


@dataclass(frozen=True, repr=False, eq=False)
class Validation(Displayed):
    """The result of `validate`: observed and predicted values of recordings."""

    judged: Mapping[str, Judgement]  # by unique name of the recording
    skipped: tuple[str, ...]  # files that could not be judged, each with the reason

    @property
    def table(self) -> pd.DataFrame:
        """Return a row per recording, quantity and vertex.

        Columns: `observed_p50`, `predicted_p50` (also p10 and p90), `relative_error`, `covered`.
        """
        return _joined(self.judged)

    @property
    def counted(self) -> dict[str, Judgement]:
        """Return the recordings that totals include: those without unmodelled features."""
        return {name: outcome for name, outcome in self.judged.items() if not outcome.not_modelled}

    @property
    def summary(self) -> pd.DataFrame:
        """Return a row per quantity: recordings, rows, share of covered rows, median and p90 of the relative error."""
        return summary(_joined(self.counted))

    @property
    def facts(self) -> list[dict[str, Any]]:
        """Return what `--json` prints: a record per row of the table; `observed` and `predicted` are {p10, p50, p90}."""
        return [_record(row) for row in self.table.to_dict("records")]

    def _parts(self) -> list[str | pd.DataFrame]:
        skipped = f", {len(self.skipped)} skipped" if self.skipped else ""
        count = f"{len(self.judged)} recording{'' if len(self.judged) == 1 else 's'}"
        head = f"{count}{skipped}: predictions from the configuration alone, compared with observations"
        return [head, *([self.summary.round(3)] if self.judged else [])]


@with_all_options(ValidateOptions)
def validate(*recordings: FilePath, listener: Listener = SILENT, **given: Unpack[ValidateOptions]) -> Validation:
    """Simulate recorded jobs from their configuration alone, and compare with what was observed.

    `recordings`: files, or folders of recordings.

    RecordingError (a ValueError): there are no recordings.
    """
    paths = recordings_of([Path(place) for place in recordings], listener)
    work, jobs = partial(judge, seeds=given["seeds"]), given["jobs"] or cores()
    progress = listener.progress(Work("validate", len(paths), len(paths), "recordings"))
    with progress as watch, stoppable("nothing is kept"):
        done = dict(run_each(work, paths, jobs=jobs, watch=lambda finished, _: watch(finished, finished)))
    outcomes = [done[i] for i in range(len(paths))]
    for path, outcome in zip(paths, outcomes, strict=True):
        if outcome.table is None:
            listener.message(f"skipped: {outcome.error}")
        elif outcome.not_modelled:
            listener.message(f"{path.name}: not modelled: {'; '.join(outcome.not_modelled)} (shown, not counted)")
    judged = [(path, outcome) for path, outcome in zip(paths, outcomes, strict=True) if outcome.table is not None]
    found = Validation(by_name(judged), tuple(outcome.error for outcome in outcomes if outcome.table is None))
    listener.result(found)
    return found


def recordings_of(places: Sequence[Path], listener: Listener) -> list[Path]:
    """Return the given recordings and those of the given folders.  RecordingError: there are none."""
    paths = [
        file
        for place in places
        for file in (
            in_folder(place, listener.message) if place.is_dir() and not (place / "jobs").is_dir() else [place]
        )
    ]
    if not paths:
        raise RecordingError(f"no recordings (.json, .json.gz, .zip) in {', '.join(map(str, places)) or 'nothing'}")
    return paths


def unit_of(quantity: str) -> str:
    """Return the unit of a quantity in the table, e.g. "ms"."""
    return QUANTITIES[quantity.removesuffix(FIRST_SUFFIX)].unit


def _joined(judged: Mapping[str, Judgement]) -> pd.DataFrame:
    tables = [outcome.table for outcome in judged.values() if outcome.table is not None]
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame()


def _record(row: dict[Any, Any]) -> dict[str, Any]:
    sides = {
        side: {name: json_ready(row[f"{side}_{name}"]) for name in PERCENTILES} for side in ("observed", "predicted")
    }
    return {
        "recording": row["recording"],
        "family": row["family"],
        "quantity": row["quantity"],
        "unit": unit_of(row["quantity"]),
        "vertex": row["vertex"],
        **sides,
        "relative_error": json_ready(row["relative_error"]),
        "covered": bool(row["covered"]),
    }
