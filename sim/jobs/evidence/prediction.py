"""Compare simulations with recordings: observed and predicted values, their errors, and summaries over recordings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from sim.jobs.reading import read_any, to_document
from sim.jobs.source.recorded_job import (
    ConfiguredJob,
    RecordedJob,
    RecordedVertex,
    RecordingError,
    checkpoints_table,
    has_readers,
    subtasks_table,
)
from sim.model.quantities import QUANTITIES, Level, quantities
from sim.model.schema.study import loads
from sim.model.schema.text import ScenarioError
from sim.model.series.columns import is_known
from sim.runtime.simulate import simulate

if TYPE_CHECKING:
    from sim.model.scenario import Overheads, Scenario
    from sim.runtime.result import Result


# ---- Tables of observations.  The quantities are defined in `sim.model.quantities`.

WHOLE_RUN = -1
"""The checkpoint id of rows that are not about a checkpoint: values of the whole run, and samples of a series."""
OBSERVATION_COLUMNS = ("quantity", "vertex", "checkpoint", "first", "value", "unit")

Observation = tuple[str, str, int, bool, float]  # quantity, vertex ("" for the job), checkpoint, first, value
RunValue = tuple[str, str, float]  # quantity, vertex, value of the whole run


def observation_table(rows: Iterable[Observation]) -> pd.DataFrame:
    """Return a table with `OBSERVATION_COLUMNS`.  A table without rows has the same column types."""
    types = {"checkpoint": "int64", "first": "bool", "value": "float64"}
    table = pd.DataFrame(rows, columns=list(OBSERVATION_COLUMNS[:-1])).astype(types)
    return table.assign(unit=table["quantity"].map({name: quantity.unit for name, quantity in QUANTITIES.items()}))


def run_values_table(values: Iterable[RunValue]) -> pd.DataFrame:
    """Return a table with `OBSERVATION_COLUMNS` of values about the whole run."""
    return observation_table([(quantity, vertex, WHOLE_RUN, False, float(value)) for quantity, vertex, value in values])


# ---- Observations of series: rates, shares of time, queues.
#
# The first quarter of a run is left out (`SETTLED_AFTER`), because queues fill and the JVM warms up.  Rates and shares
# are differences of counters from the first trigger after that to the last one (`steady_window`): if a job stops for
# seconds in each checkpoint, its rate is meaningful only over whole checkpoint intervals.  There is one number per run,
# because Flink's own meters cover only 60 s.  Queues have a row per sample.  Sampled counters may be seconds old, so
# exact counts are preferred if a recording contains them.  The same rules apply to simulated runs.

_SHARES = {
    "busyTimeMsPerSecond": ("accumulateBusyTimeMs", "busy"),
    "idleTimeMsPerSecond": ("accumulateIdleTimeMs", "idle"),
    "backPressuredTimeMsPerSecond": ("accumulateBackPressuredTimeMs", "backPressured"),
}
"""Quantity -> (counter of Flink, column of the series of a simulated run)."""
_QUEUES = {
    "outputQueueLength": "Output.Buffers.outputQueueLength",
    "outputQueueSize": "Output.Buffers.outputQueueSize",
    "inputQueueLength": "Input.Buffers.inputQueueLength",
    "inputQueueSize": "Input.Buffers.inputQueueSize",
}


def recorded_series_values(
    recording: RecordedJob, counted: Callable[[RecordedVertex], float | None] = lambda _: None
) -> Iterator[RunValue]:
    """Yield rates and shares of time of the whole run, and the queue lengths of each sample.

    `counted` returns the exact records per ms of a vertex, or None if the recording does not contain them.
    """
    for node in recording.vertices:
        source, is_sink = not node.inputs, not has_readers(recording.vertices, node.id)
        rate = counted(node)
        if rate is None:
            rate = _growth(recording, recording.metric(node.id, "numRecordsOut" if source else "numRecordsIn"))
        if rate is not None:
            yield "numRecordsOutPerSecond" if source else "numRecordsInPerSecond", node.id, rate * 1000
        for quantity, (counter, _) in _SHARES.items():
            if (spent := _growth(recording, recording.metric(node.id, counter))) is not None:
                yield quantity, node.id, 1000 * spent / node.parallelism
        for quantity, metric in _QUEUES.items():
            if not (source if quantity.startswith("input") else is_sink):
                samples = _settled(recording.metric(node.id, metric))
                yield from ((quantity, node.id, float(value)) for value in samples.mean(axis=1))


def _settled(samples: pd.DataFrame) -> pd.DataFrame:
    """Return the complete samples after the first quarter."""
    complete = samples.dropna(how="any")
    return complete.iloc[int(len(complete) * SETTLED_AFTER) :]


def _growth(recording: RecordedJob, samples: pd.DataFrame) -> float | None:
    """Return the growth of a sampled counter per ms, summed over subtasks, or None with too few samples.

    A counter that falls was reset to 0 by a restart, and has grown to its new value since.
    """
    complete = samples.dropna(how="any")
    if len(complete) < 2:
        return None
    steps = complete.diff()
    steps.iloc[0] = 0
    grown = steps.where(steps >= 0, complete)
    times_ms = complete.index.to_numpy(dtype=float)
    return growth_per_ms(
        times_ms,
        grown.sum(axis=1).to_numpy(dtype=float).cumsum(),
        steady_window_of_recording(recording, times_ms[0], times_ms[-1]),
    )


def steady_window_of_recording(recording: RecordedJob, begin_ms: float, end_ms: float) -> tuple[float, float]:
    """Return the `steady_window` of a recording, from the triggers of its completed checkpoints."""
    done = (point for point in recording.checkpoints.list if not point.is_savepoint and point.status == "COMPLETED")
    return steady_window(begin_ms, end_ms, (float(point.trigger_timestamp) for point in done))


SETTLED_AFTER = 0.25
"""Share at the start of a run that is left out."""

Numbers = npt.NDArray[np.float64]


def steady_window(begin_ms: float, end_ms: float, triggers_ms: Iterable[float]) -> tuple[float, float]:
    """Return (begin, end) of the period over which rates are computed, without the first quarter of the run.

    It begins and ends with a trigger, unless that would leave less than half of the remaining run.
    """
    settled_ms = begin_ms + SETTLED_AFTER * (end_ms - begin_ms)
    inside = [time for time in triggers_ms if settled_ms <= time <= end_ms]
    if inside and max(inside) - min(inside) >= (end_ms - settled_ms) / 2:
        return min(inside), max(inside)
    return settled_ms, end_ms


def growth_per_ms(times_ms: Numbers, counted: Numbers, window: tuple[float, float]) -> float | None:
    """Return the growth of a counter per ms in a window (begin, end), or None with fewer than two samples in it.

    The counter is interpolated linearly between samples.
    """
    begin, end = (
        max(window[0], float(times_ms[0])) if len(times_ms) else 0.0,
        min(window[1], float(times_ms[-1])) if len(times_ms) else 0.0,
    )
    if np.count_nonzero((times_ms >= begin) & (times_ms <= end)) < 2 or end <= begin:
        return None
    at_end, at_begin = np.interp([end, begin], times_ms, counted)
    return float(at_end - at_begin) / (end - begin)


# ---- Observations of checkpoints.  `first` marks the job's first checkpoint: it is atypical, because queues are not full.

# A regular expression for Flink's CheckpointFailureReason: its name, or its text in the REST API.
_EXPIRED = "CHECKPOINT_EXPIRED|expired before completing"


def observed(recording: RecordedJob) -> pd.DataFrame:
    """Return the observations of a recording.  Checkpoints in progress are left out; savepoints have only their duration."""
    checkpoints, subtasks = checkpoints_table(recording.checkpoints.list), subtasks_table(recording.checkpoints.list)
    rest = recording.observed_values() if isinstance(recording, ConfiguredJob) else recorded_series_values(recording)
    return pd.concat([checkpoint_observations(checkpoints, subtasks), run_values_table(rest)], ignore_index=True)


def checkpoint_observations(checkpoints: pd.DataFrame, subtasks: pd.DataFrame) -> pd.DataFrame:
    """Return the observations of recorded or simulated checkpoints, from two tables with Flink's columns.

    Of savepoints, only the duration counts.
    """
    is_recorded = "is_savepoint" in checkpoints
    is_savepoint = checkpoints["is_savepoint"].astype(bool) if is_recorded else checkpoints["savepointFormat"] != ""
    first = 1  # id of the job's first checkpoint; a history may begin later
    savepoints, checkpoints = checkpoints[is_savepoint], checkpoints[~is_savepoint]
    completed = checkpoints[checkpoints["status"] == "COMPLETED"]
    failed = checkpoints[checkpoints["status"] == "FAILED"]
    expired = failed[failed["failure_message"].astype(str).str.contains(_EXPIRED)]
    counts = (("completed", completed), ("failed", failed), ("expired", expired))
    rows = [
        (quantity.name, "", number, number == first, float(value))
        for quantity in quantities(lambda quantity: quantity.rows == "checkpoint")
        for number, value in completed[["id", quantity.flink_column]].itertuples(index=False, name=None)
        if is_known(float(value))
    ]
    rows += [(name, "", WHOLE_RUN, False, float(len(table))) for name, table in counts]
    durations = savepoints[savepoints["status"] == "COMPLETED"]["end_to_end_duration"]
    rows += [("savepoint_duration", "", WHOLE_RUN, False, float(duration)) for duration in durations]
    judged = subtasks[subtasks["id"].isin(completed["id"]) & (subtasks["status"] == "completed")]
    for quantity in quantities(lambda quantity: quantity.rows == "subtask"):
        column = quantity.flink_column
        medians = judged[judged[column] >= 0].groupby(["vertex", "id"], as_index=False, sort=False)[column].median()
        for number, vertex, value in medians[["id", "vertex", column]].itertuples(index=False, name=None):
            rows.append((quantity.name, vertex, number, number == first, float(value)))
    return observation_table(rows)


# ---- The same values of a simulated run.


def simulated_series_values(result: Result) -> Iterator[RunValue]:
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
            *((meter, share, 1000.0) for meter, (_, share) in _SHARES.items()),
        ):
            if (mean := _mean_rate(rows, column, window)) is not None:
                yield quantity, vertex, unit * mean
        for quantity in _QUEUES:
            if vertex not in (sources if quantity.startswith("input") else ends):
                yield from ((quantity, vertex, float(size) / parallelism[vertex]) for size in samples[quantity])
        yield from (("latency", vertex, float(mean)) for mean in samples["x_latency"] if mean >= 0)


def _mean_rate(rows: pd.DataFrame, column: str, window: tuple[float, float]) -> float | None:
    """Return the mean of a rate or share of a vertex in a window (begin, end) [ms], or None with too few samples."""
    times_ms = 1000 * np.append(0.0, rows["time"].to_numpy(dtype=float))
    counted = np.append(0.0, (rows[column].to_numpy(dtype=float) * np.diff(times_ms)).cumsum())
    return growth_per_ms(times_ms, counted, window)


def predicted(result: Result) -> pd.DataFrame:
    """Return the observations of a simulated run, with the columns `OBSERVATION_COLUMNS`."""
    parts = (
        checkpoint_observations(result.checkpoints, result.subtasks),
        run_values_table(simulated_series_values(result)),
    )
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
    """Join two tables of observations to a table of `COLUMNS`, in the order of the first."""
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
