"""Compare simulations with recordings: observed and predicted values, their errors, and summaries over recordings."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pandas as pd

from sim.jobs.observations import (
    SETTLED_AFTER,
    RunValue,
    checkpoint_observations,
    growth_per_ms,
    observed,
    run_values_table,
    steady_window,
)
from sim.jobs.reading import read_any, to_document
from sim.jobs.source.recorded_job import ConfiguredJob, RecordedJob, RecordingError
from sim.model.quantities import QUANTITIES, Level
from sim.model.schema.study import loads
from sim.model.schema.text import ScenarioError
from sim.runtime.simulate import simulate

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sim.model.scenario import Overheads, Scenario
    from sim.runtime.result import Result


# ---- Rates, shares of time, and queue lengths of a simulated run, with the definitions of `sim.jobs.observations`.

_SHARES = {
    "busyTimeMsPerSecond": "busy",
    "idleTimeMsPerSecond": "idle",
    "backPressuredTimeMsPerSecond": "backPressured",
}
_OUT, _IN = ("outputQueueLength", "outputQueueSize"), ("inputQueueLength", "inputQueueSize")


def series_values(result: Result) -> Iterator[RunValue]:
    """Yield rates and shares of time of the whole run, and values of each sample, without the first quarter of the run."""
    series = result.series
    periodic = result.checkpoints[result.checkpoints["savepointFormat"] == ""]
    window = steady_window(
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
            if (mean := _mean_rate(rows, column, window)) is not None:
                yield quantity, vertex, unit * mean
        for quantity in (*(() if vertex in ends else _OUT), *(() if vertex in sources else _IN)):
            yield from ((quantity, vertex, float(size) / parallelism[vertex]) for size in samples[quantity])
        yield from (("latency", vertex, float(mean)) for mean in samples["x_latency"] if mean >= 0)


def _mean_rate(rows: pd.DataFrame, column: str, window: tuple[float, float]) -> float | None:
    """Return the mean of a rate or share of a vertex in a window (begin, end) [ms], or None with too few samples."""
    times_ms = 1000 * np.append(0.0, rows["time"].to_numpy(dtype=float))
    counted = np.append(0.0, (rows[column].to_numpy(dtype=float) * np.diff(times_ms)).cumsum())
    return growth_per_ms(times_ms, counted, window)


# ---- Observations of a simulated run, in the same rows as those of a recording.


def predicted(result: Result) -> pd.DataFrame:
    """Return the observations of a simulated run, with the columns of `sim.jobs.observations.COLUMNS`."""
    parts = checkpoint_observations(result.checkpoints, result.subtasks), run_values_table(series_values(result))
    return pd.concat([part for part in parts if len(part)], ignore_index=True)


# ---- Join the observations of a recording and of its simulation to one table with errors.
#
# For each quantity and vertex, both sides have three percentiles over the checkpoints of a run or the samples of a
# series.  The value of a vertex in a checkpoint is the median over its subtasks.  The first checkpoint is atypical, because
# queues are not full yet.  So it has separate rows, whose quantity ends with `FIRST_SUFFIX`.  If there is one number for
# the whole run, all three percentiles are that number.

FIRST_SUFFIX = " (first)"
"""The suffix of quantities of the first checkpoint, for example 'start_delay (first)'."""
_QUANTILES = {"p10": 0.1, "p50": 0.5, "p90": 0.9}
COLUMNS = (
    "quantity",
    "vertex",
    *(f"{side}_{name}" for side in ("observed", "predicted") for name in _QUANTILES),
    "relative_error",
    "covered",
)
"""Columns of the joined table.  `vertex` is None for the whole checkpoint or job.  Percentiles have the unit of the
quantity, and are NaN if it is missing.
"""


def join_observed_predicted(observations: pd.DataFrame, predictions: pd.DataFrame) -> pd.DataFrame:
    """Join two tables of `sim.jobs.observations` to a table of `COLUMNS`, in the order of the first."""
    table = _percentiles(observations, "observed").merge(
        _percentiles(predictions, "predicted"), on=["quantity", "vertex"], how="left"
    )
    table["relative_error"] = relative_errors(table)
    table["covered"] = covered(table)
    table["vertex"] = table["vertex"].astype(object).where(table["vertex"] != "", None)
    return table[list(COLUMNS)]


def relative_errors(table: pd.DataFrame, level: Level = "p50") -> pd.Series:
    """Return (predicted - observed) / observed.

    It is 0 if the difference is noise, and NaN if the observed value is 0 and the predicted one is not.
    """
    predicted, observed = table[f"predicted_{level}"], table[f"observed_{level}"]
    difference = predicted - observed
    relative = difference / observed.where(observed != 0)
    return relative.mask((difference.abs() < noise(table)) | (difference == 0), 0.0)


def covered(table: pd.DataFrame) -> pd.Series:
    """Return whether the observed median is between the predicted p10 and p90, extended by noise.

    It is False for rows without a prediction.
    """
    slack = noise(table)
    return (table["observed_p50"] >= table["predicted_p10"] - slack) & (
        table["observed_p50"] <= table["predicted_p90"] + slack
    )


def noise(table: pd.DataFrame) -> pd.Series:
    """Return for each row the difference up to which values count as equal."""
    return (
        table["quantity"]
        .str.removesuffix(FIRST_SUFFIX)
        .map({name: quantity.noise for name, quantity in QUANTITIES.items()})
    )


def _percentiles(rows: pd.DataFrame, side: str) -> pd.DataFrame:
    named = rows.assign(quantity=rows["quantity"].where(~rows["first"], rows["quantity"] + FIRST_SUFFIX))
    grouped = named.groupby(["quantity", "vertex"], sort=False)["value"]
    return pd.DataFrame({f"{side}_{name}": grouped.quantile(share) for name, share in _QUANTILES.items()}).reset_index()


# ---- The truth table of a recording: observations and predictions.
#
# A prediction uses only the configuration of the recording.  The runs of several seeds are pooled.  The columns are
# `recording`, `family` and `COLUMNS`.


def truth(
    recording: RecordedJob | Path | str,
    *,
    seeds: Iterable[int] = (1, 2, 3),
    overheads: Overheads | None = None,
) -> pd.DataFrame:
    """Return the truth table of a recording.

    Args:
        recording: A recorded job, or its file.
        seeds: Seeds of the simulations; there is one run per seed.
        overheads: Overheads that replace those of the scenario.

    Raises:
        RecordingError: The file is not a recording.
        ScenarioError: The job cannot be simulated.
    """
    recorded = recording if isinstance(recording, RecordedJob) else read_any(recording)
    try:
        observations, scenario = observed(recorded), scenario_of(recorded, overheads)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        if isinstance(error, ScenarioError):
            raise
        raise RecordingError(f"{recorded.name}: has events or metrics that cannot be understood: {error!r}") from None
    seeded = [replace(scenario, run=replace(scenario.run, seed=seed)) for seed in seeds]
    results = (simulate(seed_scenario, check=False) for seed_scenario in seeded)
    runs = [
        pd.concat([predicted(result), run_values_table(recorded.predicted_values(result))])
        if isinstance(recorded, ConfiguredJob)
        else predicted(result)
        for result in results
    ]
    table = join_observed_predicted(observations, pd.concat(runs))
    table.insert(0, "recording", recorded.name)
    table.insert(1, "family", recorded.family)
    return table


def scenario_of(recording: RecordedJob, overheads: Overheads | None = None) -> Scenario:
    """Return the scenario of a recording.  `overheads` replaces its overheads."""
    scenario = loads(to_document(recording).text, name=recording.name).scenarios[0]
    return scenario if overheads is None else replace(scenario, overheads=overheads)


# ---- Judge one recording: its truth table and properties for summaries, or an error.


class Judgement(NamedTuple):
    """The truth table of one file, or the error."""

    table: pd.DataFrame | None
    name: str = ""
    path: Path = Path()
    not_modelled: Sequence[str] = ()  # features of the job that are not modelled
    error: str = ""  # why there is no table


def judge(path: Path, progress: Callable[[int], None], *, seeds: int) -> Judgement:
    """Return the truth table of one file.  Errors are returned instead of raised, so that the other files are still read."""
    progress(0)
    try:
        recording = read_any(path)
        table = truth(recording, seeds=range(1, seeds + 1))
        return Judgement(table, recording.name, path, to_document(recording).not_modelled)
    except RecordingError as error:
        return Judgement(None, error=str(error) if str(path) in str(error) else f"{path}: {error}")
    except ScenarioError as error:
        return Judgement(None, error=f"{path}: is a recording of a job that cannot be simulated: {error}")
    except MemoryError:
        return Judgement(None, error=f"{path}: is a recording of a job too large for the memory of this machine")
    except Exception as error:  # noqa: BLE001 - a defect of the simulator
        return Judgement(None, error=f"{path}: the simulation broke: {type(error).__name__}: {error}")


# ---- Summaries of truth tables: errors and coverage, per quantity.


def judged(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows for summaries: without the first checkpoint, and without rows that are 0 on both sides."""
    has_value = (table["observed_p50"] != 0) | (table["predicted_p50"] != 0)
    return table[has_value & ~table["quantity"].str.endswith(FIRST_SUFFIX)].reset_index(drop=True)


def summary(table: pd.DataFrame) -> pd.DataFrame:
    """Return, per quantity, the number of recordings and rows, the share covered, and median and p90 of the absolute error.

    Errors are relative.  The error of a recording is the median over its vertices; median and p90 are over recordings.
    Rows without an error (observed 0, predicted more) count only as not covered.
    """
    rows = judged(table).assign(error=lambda rows: rows["relative_error"].abs())
    groups = rows.groupby("quantity", sort=False)
    per_recording = rows.groupby(["quantity", "recording"], sort=False)["error"].median().dropna()
    errors = per_recording.groupby(level="quantity", sort=False)
    return pd.DataFrame(
        {
            "recordings": groups["recording"].nunique(),
            "rows": groups.size(),
            "covered": groups["covered"].mean(),
            "median": errors.median(),
            "p90": errors.quantile(0.9),
        }
    ).reset_index()
