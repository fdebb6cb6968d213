"""Whether predictions order recordings correctly: of two that differ in one setting, which is slower, stores more, has less throughput.

A difference counts if it exceeds that of repetitions, and the spread of checkpoints and samples within a run.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import Any

import pandas as pd

from sim.evidence.settings import Settings, differences
from sim.quantities.observed import QUANTITIES, quantities

COLUMNS = ("setting", "one", "other", "quantity", "observed_one", "observed_other", "predicted_one", "predicted_other", "right")

_MEASURED = {"observed_p50": "observed", "predicted_p50": "predicted", "observed_p10": "low", "observed_p90": "high"}


def orderings(table: pd.DataFrame, settings: Mapping[str, Settings]) -> pd.DataFrame:
    """A row (`COLUMNS`) per pair of configurations that differ in one setting, and per quantity that differs more than repetitions do.

    `settings`: recording -> its settings.  The columns `one` and `other` name the first recording of each configuration.  Repetitions count
    as one, with the mean of their medians.
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
                right = (observations[0] < observations[1]) == (predictions[0] < predictions[1]) and predictions[0] != predictions[1]
                rows.append((_change(*found[0]), first, second, quantity, *observations, *predictions, right))
    return pd.DataFrame(rows, columns=list(COLUMNS))


def repeated() -> dict[str, float]:
    """Quantity -> least spread of repetitions [share], of those that were measured: 36 pairs of runs of 29 configurations.

    90 % of the durations of checkpoints lie within 3 %; the worst pairs, 5 to 10 %, have small or few checkpoints.
    """
    return {quantity.name: quantity.repeats for quantity in quantities(lambda quantity: quantity.repeats) if quantity.repeats}


def spreads(table: pd.DataFrame, settings: Mapping[str, Settings]) -> dict[str, float]:
    """Quantity -> greatest spread of repetitions [share of their mean], at least what was measured."""
    values = _values(table)
    found = repeated()
    for names in _groups(list(settings), settings):
        for quantity, rows in values[values["recording"].isin(names)].groupby("quantity"):
            seen = rows["observed"]
            if len(seen) > 1 and seen.mean() and seen.max() - seen.min() >= QUANTITIES[str(quantity)].noise:
                found[str(quantity)] = max(found[str(quantity)], float((seen.max() - seen.min()) / seen.mean()))
    return found


def _values(table: pd.DataFrame) -> pd.DataFrame:
    """A row per recording and quantity; over several vertices the sum of rates, the mean of durations."""
    chosen = table[table["quantity"].isin(list(repeated())) & table["predicted_p50"].notna()]
    read = table[table["quantity"] == "outputQueueSize"][["recording", "vertex"]]  # the ends of a job have no output
    joined = chosen.merge(read.assign(is_read=True), on=["recording", "vertex"], how="left")
    ends = joined[~((joined["quantity"] == "numRecordsInPerSecond") & joined["is_read"].notna())]
    rows = [
        (name, quantity, *(values[column].agg("sum" if quantity == "numRecordsInPerSecond" else "mean") for column in _MEASURED))
        for (name, quantity), values in ends.groupby(["recording", "quantity"], sort=False)
    ]
    return pd.DataFrame(rows, columns=["recording", "quantity", *_MEASURED.values()])


def _mean(values: pd.DataFrame) -> pd.DataFrame:
    """A row per quantity over repetitions: the mean of their medians, their lowest 10 % and their highest 90 %."""
    return values.groupby("quantity").agg({"observed": "mean", "predicted": "mean", "low": "min", "high": "max"})


def _groups(names: list[str], settings: Mapping[str, Settings]) -> list[list[str]]:
    """Recordings grouped by configuration."""
    groups: list[list[str]] = []
    for name in names:
        home = next((group for group in groups if not differences(settings[group[0]], settings[name])), None)
        if home is None:
            groups.append([name])
        else:
            home.append(name)
    return groups


def _is_clear(quantity: str, first: dict[Any, float], second: dict[Any, float], apart: float) -> bool:
    """Whether two configurations differ by more than repetitions, and neither lies in the other's range."""
    difference, mean = abs(first["observed"] - second["observed"]), (first["observed"] + second["observed"]) / 2
    within = any(this["low"] <= that["observed"] <= this["high"] for this, that in ((first, second), (second, first)))
    return mean > 0 and difference > apart * mean and difference >= QUANTITIES[quantity].noise and not within


def _change(setting: str, first: Any, second: Any) -> str:
    """'barriers: aligned -> unaligned'; of vertices only the difference."""
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
