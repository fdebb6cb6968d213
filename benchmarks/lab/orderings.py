"""Check the accuracy of predictions against bars, and whether they order settings correctly."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import pandas as pd

from benchmarks.lab.config import Node
from benchmarks.lab.settings import Settings
from sim.jobs.evidence.prediction import noise, relative_errors
from sim.jobs.source.recorded_job import RecordedVertex, has_readers
from sim.model.quantities import QUANTITIES, Level, quantities

# ---- Bars: maximum errors that predictions must meet.
#
# Durations that are negligible on both sides are left out: they would count as exact, and hide the errors of others.

_HIGH_BACKPRESSURE_MS = 500.0
"""Threshold of back-pressure HIGH in Flink's web UI [ms/s]."""
_P90_FACTOR = 2.5
"""Limit of the 90 % quantile of errors / limit of their median."""
_ABSENT = 1e6
"""Error if only one of prediction and observation is 0."""
_MIN_AGREEING_SHARE = 0.9
"""Minimum share of agreeing recordings, for errors without a meaningful median."""


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar: the maximum error of predictions of a quantity, over many recordings."""

    what: str
    limit: float  # of the median error, of a factor, or of a count
    # error: median and 90 % quantile; median: over recordings; factor, count: share of rows within; exact: all
    kind: str = "error"
    runs: str = "all"  # back-pressured: runs whose sources or operators wait for output half of the time
    vertices: str = "all"  # ends: without readers; symmetric: one input, equal shares for all subtasks
    level: Level = "p50"  # which quantile over the checkpoints of a run


Expected = Mapping[Bar, tuple[str, ...]]
"""Bar -> the quantities that it applies to."""

BARS: Expected = {
    Bar("checkpoint duration", 0.10, runs="back-pressured"): ("end_to_end_duration",),
    Bar("start delay", 0.10, runs="back-pressured"): ("start_delay",),
    Bar("alignment of symmetric stages", 2.0, "factor", vertices="symmetric"): ("alignment_duration",),
    Bar("async phase and state writes", 0.10): ("async_duration",),
    Bar("in-flight data persisted, whole checkpoint", 0.10): ("persisted_data",),
    Bar("processed bytes", 2.0, "factor"): ("processed_data",),
    Bar("in-flight data persisted, per vertex", 0.10): ("alignment_persisted",),
    Bar("sink throughput", 0.03, vertices="ends"): ("numRecordsInPerSecond",),
    Bar("record latency", 0.08): ("latency",),
    Bar("completed checkpoints", 1.0, "count"): ("completed",),
    Bar("checkpoint that commits the tail", 0.0, "exact"): ("checkpoints_to_commit",),
    Bar("downtime", 0.15): ("downtime",),
    Bar("time to first record", 0.15): ("time_to_first_record",),
}
"""Over recordings of configured jobs."""
MEASURED_BARS: Expected = {
    Bar("checkpoint duration, p50", 0.15, "median"): ("end_to_end_duration",),
    Bar("checkpoint duration, p90", 0.30, "median", level="p90"): ("end_to_end_duration",),
    Bar("synchronous phase", 0.25, "median"): ("sync_duration",),
    Bar("asynchronous phase", 0.25, "median"): ("async_duration",),
    Bar("in-flight data persisted", 0.15, "median"): ("persisted_data",),
    Bar("written per checkpoint", 0.15, "median"): ("checkpointed_size",),
    Bar("full size", 0.15, "median"): ("state_size",),
    Bar("throughput", 0.05, "median"): ("numRecordsInPerSecond", "numRecordsOutPerSecond"),
    Bar("completed checkpoints", 0.0, "count"): ("completed",),
}
"""Wider bars for measured jobs, whose load varies, whose machines have other work, and whose settings are inferred."""


def back_pressured(table: pd.DataFrame) -> set[str]:
    """Return the recordings with a vertex that was back-pressured for at least half of the time."""
    shares = table[table["quantity"] == "backPressuredTimeMsPerSecond"]
    return set(shares[shares["observed_p50"] >= _HIGH_BACKPRESSURE_MS]["recording"])


def bars(
    table: pd.DataFrame, graphs: Mapping[str, Sequence[RecordedVertex]], expected: Expected = BARS
) -> pd.DataFrame:
    """Return a row per bar that applies: what, where, bar, rows, reached (median error, or share of rows), p90, met.

    `graphs` has the vertices of each recording in the truth table.
    """
    waiting, found = back_pressured(table), []
    for bar, names in expected.items():
        rows = table[table["quantity"].isin(names)]
        if bar.runs == "back-pressured":
            rows = rows[rows["recording"].isin(waiting)]
        chosen = _VERTICES[bar.vertices]
        kept = [
            chosen(graphs[name], vertex)
            for name, vertex in rows[["recording", "vertex"]].itertuples(index=False, name=None)
        ]
        rows = _telling(rows[pd.Series(kept, index=rows.index, dtype=bool)], bar.level)
        if len(rows):
            found.append((bar.what, _where(bar), _limit(bar), len(rows), *_reached(bar, rows)))
    return pd.DataFrame(found, columns=["what", "where", "bar", "rows", "reached", "p90", "met"])


def _telling(rows: pd.DataFrame, level: Level) -> pd.DataFrame:
    """Return the rows that are not negligible on both sides."""
    largest = rows[[f"observed_{level}", f"predicted_{level}"]].max(axis=1)
    return rows[(largest > 0) & (largest >= noise(rows))]


def _reached(bar: Bar, rows: pd.DataFrame) -> tuple[float, float, bool]:
    """Return (median error or share of agreeing rows, 90 % quantile of errors or NaN, whether the bar is met)."""
    if bar.kind in ("error", "median"):
        errors = relative_errors(rows, bar.level).abs().fillna(_ABSENT)
        if bar.kind == "median":
            errors = errors.groupby(rows["recording"]).median()  # of its vertices
            return float(errors.median()), float(errors.quantile(0.9)), bool(errors.median() <= bar.limit)
        median, p90 = float(errors.median()), float(errors.quantile(0.9))
        return median, p90, median <= bar.limit and p90 <= _P90_FACTOR * bar.limit
    difference = (rows["predicted_p50"] - rows["observed_p50"]).abs()
    if bar.kind == "factor":
        ratio = rows["predicted_p50"] / rows["observed_p50"]
        agrees = ratio.between(1 / bar.limit, bar.limit) | (difference < noise(rows))
        per_recording = agrees.groupby(rows["recording"]).mean()  # share of the recording's vertices
        return float(per_recording.mean()), float("nan"), bool(per_recording.mean() >= _MIN_AGREEING_SHARE)
    agrees = difference <= bar.limit
    return (
        float(agrees.mean()),
        float("nan"),
        bool(agrees.mean() >= (1.0 if bar.kind == "exact" else _MIN_AGREEING_SHARE)),
    )


def _limit(bar: Bar) -> str:
    if bar.kind == "error":
        return f"median <= {bar.limit:.0%}, p90 <= {_P90_FACTOR * bar.limit:.1%}"
    if bar.kind == "median":
        return f"median over runs <= {bar.limit:.0%}"
    if bar.kind == "exact":
        return "exact"
    return (
        f"{_MIN_AGREEING_SHARE:.0%} within {f'a factor of {bar.limit:g}' if bar.kind == 'factor' else f'{bar.limit:g}'}"
    )


def _where(bar: Bar) -> str:
    """Return the scope of a bar, for example 'back-pressured runs'."""
    return {"all": f"{bar.runs} runs", "ends": "vertices without readers", "symmetric": "vertices of one even input"}[
        bar.vertices
    ]


def _symmetric(graph: Sequence[RecordedVertex], name: str | None) -> bool:
    """Return whether all barriers take equal paths: the vertex has one input, and no vertex has skew."""
    inputs = next(len(vertex.inputs) for vertex in graph if vertex.id == (name or ""))
    return inputs == 1 and all(vertex.is_even for vertex in graph if isinstance(vertex, Node))


_VERTICES: Mapping[str, Callable[[Sequence[RecordedVertex], str | None], bool]] = {
    "all": lambda _graph, _vertex: True,
    "ends": lambda graph, vertex: not has_readers(graph, vertex or ""),
    "symmetric": _symmetric,
}


# ---- Whether predictions order recordings correctly: which of two that differ in one setting is slower, stores more, or has
# less throughput.  A difference counts if it exceeds that of repeated runs, and the spread within a run.

COLUMNS = (
    "setting",
    "one",
    "other",
    "quantity",
    "observed_one",
    "observed_other",
    "predicted_one",
    "predicted_other",
    "right",
)

_MEASURED = {"observed_p50": "observed", "predicted_p50": "predicted", "observed_p10": "low", "observed_p90": "high"}


def orderings(table: pd.DataFrame, settings: Mapping[str, Settings]) -> pd.DataFrame:
    """Return a row (`COLUMNS`) per pair of configurations that differ in one setting, and per clearly different quantity.

    `settings` has the settings of each recording.  Repeated runs of a configuration count as one, with the mean of their
    medians; the columns `one` and `other` contain the first recording of each configuration.
    """
    values = _values(table)
    groups = _groups([name for name in settings if name in set(values["recording"])], settings)
    apart = spreads(table, settings)
    means = {names[0]: _mean(values[values["recording"].isin(names)]) for names in groups}
    rows = []
    for first, second in combinations(means, 2):
        found = differences(settings[first], settings[second])
        if len(found) != 1:
            continue
        for quantity in repeated():
            if quantity not in means[first].index or quantity not in means[second].index:
                continue
            this, that = (means[name].loc[quantity].to_dict() for name in (first, second))
            if _is_clear(quantity, this, that, apart[quantity]):
                observations, predictions = (this["observed"], that["observed"]), (this["predicted"], that["predicted"])
                right = (observations[0] < observations[1]) == (predictions[0] < predictions[1]) and predictions[
                    0
                ] != predictions[1]
                rows.append((_change(*found[0]), first, second, quantity, *observations, *predictions, right))
    return pd.DataFrame(rows, columns=list(COLUMNS))


def differences(first: Settings, second: Settings) -> list[tuple[str, Any, Any]]:
    """Return (setting, first value, second value) of the settings that differ."""
    keys = [key for key in {**first, **second} if first.get(key) != second.get(key)]
    if "work" in keys and not (first["work"] and second["work"]):
        keys = [key for key in keys if key != "place of work"]  # without work there is no place of work
    return [(key, first.get(key), second.get(key)) for key in keys]


def repeated() -> dict[str, float]:
    """Return the minimum spread of repeated runs [share] by quantity, measured in 36 pairs of runs of 29 configurations.

    90 % of checkpoint durations differ by at most 3 %; the worst pairs, 5 to 10 %, have small or few checkpoints.
    """
    return {
        quantity.name: quantity.repeats
        for quantity in quantities(lambda quantity: quantity.repeats)
        if quantity.repeats
    }


def spreads(table: pd.DataFrame, settings: Mapping[str, Settings]) -> dict[str, float]:
    """Return the largest spread of repeated runs [share of their mean] by quantity, at least that of `repeated`."""
    values = _values(table)
    found = repeated()
    for names in _groups(list(settings), settings):
        for quantity, rows in values[values["recording"].isin(names)].groupby("quantity"):
            seen = rows["observed"]
            if len(seen) > 1 and seen.mean() and seen.max() - seen.min() >= QUANTITIES[str(quantity)].noise:
                found[str(quantity)] = max(found[str(quantity)], float((seen.max() - seen.min()) / seen.mean()))
    return found


def _values(table: pd.DataFrame) -> pd.DataFrame:
    """Return a row per recording and quantity: sums of rates and means of durations over vertices."""
    chosen = table[table["quantity"].isin(list(repeated())) & table["predicted_p50"].notna()]
    read = table[table["quantity"] == "outputQueueSize"][["recording", "vertex"]]  # the ends of a job have no output
    joined = chosen.merge(read.assign(has_readers=True), on=["recording", "vertex"], how="left")
    ends = joined[~((joined["quantity"] == "numRecordsInPerSecond") & joined["has_readers"].notna())]
    rows = [
        (
            name,
            quantity,
            *(values[column].agg("sum" if quantity == "numRecordsInPerSecond" else "mean") for column in _MEASURED),
        )
        for (name, quantity), values in ends.groupby(["recording", "quantity"], sort=False)
    ]
    return pd.DataFrame(rows, columns=["recording", "quantity", *_MEASURED.values()])


def _mean(values: pd.DataFrame) -> pd.DataFrame:
    """Return a row per quantity over repeated runs: mean of the medians, lowest p10 and highest p90."""
    return values.groupby("quantity").agg({"observed": "mean", "predicted": "mean", "low": "min", "high": "max"})


def _groups(names: list[str], settings: Mapping[str, Settings]) -> list[list[str]]:
    """Group recordings by configuration."""
    groups: list[list[str]] = []
    for name in names:
        home = next((group for group in groups if not differences(settings[group[0]], settings[name])), None)
        if home is None:
            groups.append([name])
        else:
            home.append(name)
    return groups


def _is_clear(quantity: str, first: dict[Any, float], second: dict[Any, float], apart: float) -> bool:
    """Return whether two configurations differ by more than repeated runs, and neither is in the other's p10 to p90 range."""
    difference, mean = abs(first["observed"] - second["observed"]), (first["observed"] + second["observed"]) / 2
    within = any(this["low"] <= that["observed"] <= this["high"] for this, that in ((first, second), (second, first)))
    return mean > 0 and difference > apart * mean and difference >= QUANTITIES[quantity].noise and not within


def _change(setting: str, first: Any, second: Any) -> str:
    """Return for example 'barriers: aligned -> unaligned'; of vertices only the difference."""
    if isinstance(first, dict) and isinstance(second, dict):
        keys = [key for key in {**first, **second} if first.get(key) != second.get(key)]
        pairs = {(_text(first.get(key)), _text(second.get(key))) for key in keys}
        if len(pairs) == 1:
            ((left, right),) = pairs
            return f"{setting}: {left} -> {right}"
        return f"{setting}: {', '.join(f'{key} {_text(first.get(key))} -> {_text(second.get(key))}' for key in keys)}"
    return f"{setting}: {_text(first)} -> {_text(second)}"


def _text(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return ", ".join(map(str, value)) or "nowhere"
    return "unset" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
