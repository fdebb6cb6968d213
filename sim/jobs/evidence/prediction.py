"""Predictions next to observations: values, errors, judgement."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from sim.jobs.observations import SETTLED_AFTER, Measured, RunValue, growth, observed, of_checkpoints, steady, values_of
from sim.jobs.reading import read_any, to_document
from sim.jobs.source.recorded_job import ConfiguredJob, ImportedDocument, RecordedJob, RecordingError
from sim.model.checkpoint import Barriers
from sim.model.quantities import QUANTITIES, Level
from sim.model.schema.study import loads
from sim.model.schema.text import ScenarioError
from sim.model.schema.writer import write
from sim.runtime.simulate import simulate

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sim.jobs.source.recorded_job import RecordedVertex
    from sim.model.scenario import Overheads, Scenario
    from sim.plane import Engine
    from sim.runtime.result import Result


# ---- The name of a recorded run, and what it says: its job, and its kind of barriers.
#
# ``J4-pressed-timeout500-r1`` is the first run of the job J4-pressed, unaligned with an aligned timeout of 500 ms.

_FORM = re.compile(r"(?P<job>.+?)-(?P<kind>aligned|unaligned|interruptible|timeout\d+)(-r\d+)?")


class RunName(NamedTuple):
    """The parts of a recording's name."""

    job: str
    kind: str  # the last part of the name; empty: it says nothing of barriers

    @property
    def barriers(self) -> Barriers:
        """Unaligned for an interruptible run."""
        if self.kind.startswith("timeout"):
            return Barriers("aligned-timeout", int(self.kind.removeprefix("timeout")) * 10**6)
        return Barriers("aligned" if self.kind == "aligned" else "unaligned")


def run_name(text: str) -> RunName:
    found = _FORM.fullmatch(text)
    return RunName(found["job"], found["kind"]) if found else RunName(text, "")


# ---- Rates, shares and queues of a simulated run, in the rows of `sim.jobs.observations`.

_SHARES = {
    "busyTimeMsPerSecond": "busy",
    "idleTimeMsPerSecond": "idle",
    "backPressuredTimeMsPerSecond": "backPressured",
}
_OUT, _IN = ("outputQueueLength", "outputQueueSize"), ("inputQueueLength", "inputQueueSize")


def of_series(result: Result) -> Iterator[RunValue]:
    """Values of the whole run and of its samples, over the last three quarters."""
    series = result.series
    periodic = result.checkpoints[result.checkpoints["savepointFormat"] == ""]
    window = steady(
        0.0, 1000 * float(series["time"].max()), periodic[periodic["status"] == "COMPLETED"]["trigger_timestamp"]
    )
    vertices = result.scenario.job.vertices
    sources = {vertex.name for vertex in vertices if not vertex.inputs}
    ends = {vertex.name for vertex in vertices} - {inlet.upstream for vertex in vertices for inlet in vertex.inputs}
    parallelism = {vertex.name: vertex.parallelism for vertex in vertices}
    for name, rows in series.groupby("vertex", sort=False):
        vertex, samples = str(name), rows[rows["time"] > SETTLED_AFTER * series["time"].max()]
        rate = "numRecordsOutPerSecond" if vertex in sources else "numRecordsInPerSecond"
        for quantity, column, unit in (
            (rate, "numRecordsInPerSecond", 1.0),
            *((meter, share, 1000.0) for meter, share in _SHARES.items()),
        ):
            if (mean := _mean(rows, column, window)) is not None:
                yield quantity, vertex, unit * mean
        for quantity in (*(() if vertex in ends else _OUT), *(() if vertex in sources else _IN)):
            yield from ((quantity, vertex, float(size) / parallelism[vertex]) for size in samples[quantity])
        yield from (("latency", vertex, float(mean)) for mean in samples["x_latency"] if mean >= 0)


def _mean(rows: pd.DataFrame, column: str, window: tuple[float, float]) -> float | None:
    """The mean of a rate or share of a vertex over the window; None: there are no samples."""
    times_ms = 1000 * np.append(0.0, rows["time"].to_numpy(dtype=float))
    counted = np.append(0.0, (rows[column].to_numpy(dtype=float) * np.diff(times_ms)).cumsum())
    return growth(times_ms, counted, window)


# ---- The observations of a simulated run, in the same tidy rows as those of a recording (`sim.jobs.observations`).


def predicted(result: Result) -> pd.DataFrame:
    """The observations of a simulated run (columns of `sim.jobs.observations.COLUMNS`)."""
    periodic = result.checkpoints[result.checkpoints["savepointFormat"] == ""]
    parts = [of_checkpoints(periodic, result.subtasks), values_of([*of_series(result), *_savepoints(result)])]
    return pd.concat([part for part in parts if len(part)], ignore_index=True)


def _savepoints(result: Result) -> Iterator[RunValue]:
    done = result.checkpoints[
        (result.checkpoints["savepointFormat"] != "") & (result.checkpoints["status"] == "COMPLETED")
    ]
    yield from (("savepoint_duration", "", float(duration)) for duration in done["end_to_end_duration"])


# ---- The settings of a recorded job, a value for each independent choice: recordings are compared by them.
#
# Two keys of Flink for one choice (unaligned, and its timeout) are one setting.  So is the place of the work for
# checkpoints, on however many vertices.  State counts per subtask: twice the subtasks with twice the keys are one
# difference.

Settings = Mapping[str, Any]


def settings_of_measured(job: Measured) -> Settings:
    """A measured job tells its options, not what it computes.  Two are of one job if their names differ in barriers and number alone.

    Each setting is one of its job, so that recordings of two jobs never differ in one setting.
    """
    named, options = run_name(job.name), job.inference.document["checkpoint"]
    name = job.name if named.kind == "interruptible" else named.job  # what no option says makes another job
    settings = {key: str(value) for key, value in options.items()} | {"barriers": _barriers_of(options)}
    return {f"{key} of {name}": value for key, value in settings.items()}


def differences(first: Settings, second: Settings) -> list[tuple[str, Any, Any]]:
    """(setting, first value, second value) of those that differ.  Work of another size at another place is two differences."""
    keys = [key for key in {**first, **second} if first.get(key) != second.get(key)]
    if "work" in keys and not (first["work"] and second["work"]):
        keys = [key for key in keys if key != "place of work"]  # without work there is no place of work
    return [(key, first.get(key), second.get(key)) for key in keys]


def _barriers_of(checkpoint: Mapping[str, Any]) -> str:
    """The way of barriers, in the words of the settings of configured jobs."""
    barriers = checkpoint.get("barriers", "aligned")
    return str(barriers) if isinstance(barriers, str) else f"unaligned after {barriers['aligned-timeout']}"


# ---- Two tidy tables of observations, of a real job and of its simulation, as one table with errors: what all comparisons read.
#
# For each quantity and vertex both sides have three percentiles over the checkpoints of a run or the samples of a
# series.  A vertex's value in a checkpoint is the median over its subtasks.  The first checkpoint meets queues that are
# not full yet, so it has rows of its own: their quantity ends with `FIRST`.  A number about the whole run is its own
# three percentiles.

FIRST_SUFFIX = " (first)"
"""Suffix of a quantity of the first checkpoint: 'start_delay (first)'."""
_QUANTILES = {"p10": 0.1, "p50": 0.5, "p90": 0.9}
COLUMNS = (
    "quantity",
    "vertex",
    *(f"{side}_{name}" for side in ("observed", "predicted") for name in _QUANTILES),
    "relative_error",
    "covered",
)
"""`vertex`: None for the whole checkpoint or job.  Percentiles have the unit of the quantity; NaN: absent from a run."""


def join_observed_predicted(observations: pd.DataFrame, predictions: pd.DataFrame) -> pd.DataFrame:
    """Two tables of observations (`sim.jobs`) joined: `COLUMNS`, in the order of the first."""
    table = _percentiles(observations, "observed").merge(
        _percentiles(predictions, "predicted"), on=["quantity", "vertex"], how="left"
    )
    table["relative_error"] = relative_errors(table)
    table["covered"] = covered(table)
    table["vertex"] = table["vertex"].astype(object).where(table["vertex"] != "", None)
    return table[list(COLUMNS)]


def relative_errors(table: pd.DataFrame, level: Level = "p50") -> pd.Series:
    """(predicted - observed) / observed, of the medians; 0 where they differ by less than noise, NaN if only the observed one is 0."""
    predicted, observed = table[f"predicted_{level}"], table[f"observed_{level}"]
    difference = predicted - observed
    relative = difference / observed.where(observed != 0)
    return relative.mask((difference.abs() < noise(table)) | (difference == 0), 0.0)


def covered(table: pd.DataFrame) -> pd.Series:
    """Whether the observed median lies between the predicted 10 % and 90 %, or within noise of them; without a prediction it does not."""
    slack = noise(table)
    return (table["observed_p50"] >= table["predicted_p10"] - slack) & (
        table["observed_p50"] <= table["predicted_p90"] + slack
    )


def noise(table: pd.DataFrame) -> pd.Series:
    """By how much each row may differ and count as equal."""
    return (
        table["quantity"]
        .str.removesuffix(FIRST_SUFFIX)
        .map({name: quantity.noise for name, quantity in QUANTITIES.items()})
    )


def _percentiles(rows: pd.DataFrame, side: str) -> pd.DataFrame:
    named = rows.assign(quantity=rows["quantity"].where(~rows["first"], rows["quantity"] + FIRST_SUFFIX))
    grouped = named.groupby(["quantity", "vertex"], sort=False)["value"]
    return pd.DataFrame({f"{side}_{name}": grouped.quantile(share) for name, share in _QUANTILES.items()}).reset_index()


# ---- Observations next to predictions: the truth table of a recording of a real job.
#
# A prediction sees the configuration of the recording only, and pools several seeds.  Columns are those of
# `sim.jobs.evidence.prediction`, behind
# `recording` and `family`.


def truth(
    recording: RecordedJob | Path | str,
    *,
    document: ImportedDocument | None = None,
    seeds: Iterable[int] = (1, 2, 3),
    engine: Engine = "compiled",
    overheads: Overheads | None = None,
    progress: Callable[[int], None] | None = None,
) -> pd.DataFrame:
    """The rows of a recording, for all its quantities.

    `overheads`: in place of the scenario's own.  `document`: if it was made of the recording before.  `progress` gets the simulated time
    [ns] of each run.  RecordingError: not a recording; ScenarioError: it cannot be simulated.  Predictions leave out
    what `unmodelled` names.
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


def scenario_of(
    recording: RecordedJob, overheads: Overheads | None = None, document: ImportedDocument | None = None
) -> Scenario:
    """The simulated scenario of a recording: its configuration, no observation."""
    imported = to_document(recording) if document is None else document
    scenario = loads(write(imported.document, imported.question, imported.comments), name=recording.name).scenarios[0]
    return scenario if overheads is None else replace(scenario, overheads=overheads)


def unmodelled(recording: RecordedJob | Path | str) -> list[str]:
    """A phrase for each feature of the recorded job that a scenario lacks.  RecordingError: not a recording."""
    return to_document(recording if isinstance(recording, RecordedJob) else read_any(recording)).not_modelled


# ---- One recording, judged: its truth table and what else is needed to sum up many of them, or why there is none.


class Judgement(NamedTuple):
    """The outcome of one file."""

    table: pd.DataFrame | None
    name: str = ""
    graph: Sequence[RecordedVertex] = ()
    settings: Settings | None = None
    lost: Sequence[str] = ()  # features that are not modelled
    trouble: str = ""  # why there is no table
    is_measured: bool = False  # its configuration is unknown


def judge(
    path: Path, progress: Callable[[int], None], *, seeds: int, time_limit_s: float, overheads: Overheads | None = None
) -> Judgement:
    """The truth table of one file.  Nothing in one file keeps the others from being judged."""
    progress(0)
    try:
        recording = read_any(path)
        document = to_document(recording)
        seeded, watch = range(1, seeds + 1), _impatient(time_limit_s)
        table = truth(recording, document=document, seeds=seeded, overheads=overheads, progress=watch)
        is_measured = isinstance(recording, Measured)
        return Judgement(
            table,
            recording.name,
            recording.vertices,
            _settings(recording),
            document.not_modelled,
            is_measured=is_measured,
        )
    except RecordingError as error:
        return Judgement(None, trouble=str(error) if str(path) in str(error) else f"{path}: {error}")
    except ScenarioError as error:
        return Judgement(None, trouble=f"{path}: is a recording of a job that cannot be simulated: {error}")
    except _OutOfTimeError as error:
        return Judgement(None, trouble=f"{path}: {error}")
    except MemoryError:
        return Judgement(None, trouble=f"{path}: is a recording of a job too large for the memory of this machine")
    except Exception as error:  # noqa: BLE001 - any error of ours: the other recordings are still judged
        return Judgement(None, trouble=f"{path}: the simulation broke: {type(error).__name__}: {error}")


def _settings(recording: RecordedJob) -> Settings | None:
    if isinstance(recording, ConfiguredJob):
        return recording.settings()
    return settings_of_measured(recording) if isinstance(recording, Measured) else None


class _OutOfTimeError(Exception):
    """A recording takes longer than the user will wait."""


def _impatient(limit_s: float) -> Callable[[int], None]:
    """Called while a simulation goes on."""
    end_s = time.monotonic() + limit_s

    def progress(simulated_ns: int) -> None:
        if time.monotonic() > end_s:
            raise _OutOfTimeError(
                f"took longer than {limit_s:g} s ({simulated_ns / 1e9:.0f} s simulated); --time-limit allows more"
            )

    return progress


# ---- Summaries of truth tables: errors and coverage, per quantity and per family of recordings.

PER_QUANTITY = ("quantity",)
PER_FAMILY = ("family",)
PER_FAMILY_AND_QUANTITY = ("family", "quantity")


def judged(table: pd.DataFrame) -> pd.DataFrame:
    """The rows that count.  Rows with 0 on both sides have no error, and the first checkpoint meets a job still starting."""
    has_value = (table["observed_p50"] != 0) | (table["predicted_p50"] != 0)
    return table[has_value & ~table["quantity"].str.endswith(FIRST_SUFFIX)].reset_index(drop=True)


def summary(table: pd.DataFrame, by: tuple[str, ...] = PER_QUANTITY) -> pd.DataFrame:
    """Per group: recordings, rows, share covered, median and 90 % quantile of the absolute relative error.

    First the median over the vertices of a recording is computed, then that over recordings.  Rows without an error
    (observed 0, predicted more) only count as not covered.
    """
    rows = judged(table).assign(error=lambda rows: rows["relative_error"].abs())
    groups = rows.groupby(list(by), sort=False)
    per_recording = rows.groupby([*by, "recording", *({"quantity"} - set(by))], sort=False)["error"].median().dropna()
    errors = per_recording.groupby(level=list(by), sort=False)
    return pd.DataFrame(
        {
            "recordings": groups["recording"].nunique(),
            "rows": groups.size(),
            "covered": groups["covered"].mean(),
            "median": errors.median(),
            "p90": errors.quantile(0.9),
        }
    ).reset_index()
