"""Charts of sweeps and of advice."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sim.app.report.figures import LOG_SCALE_RATIO
from sim.model.text import one_line
from sim.results.charts import INK, Chart, ChartAxis, Panel, chart
from sim.results.columns import numbers_of, text, unit_of_ticks
from sim.results.formats import ms_text
from sim.results.page import Block
from sim.results.summary import in_words
from sim.results.sweep_answers import Limit, means

if TYPE_CHECKING:
    import pandas as pd


# ---- Charts of a sweep: confidence intervals, trade-off.

_MAX_SETTINGS = 30
"""Maximum number of settings drawn; more would overlap."""


def intervals(
    results: pd.DataFrame, settings: Sequence[str], columns: Sequence[str], limits: Sequence[Limit] = ()
) -> Chart | None:
    """Chart the mean and 95 % confidence interval of each setting, a panel per column.  Returns None without values.

    Intervals of durations, sizes and counts are cut at zero.  A ring is a lower bound, and a shaded area beyond a limit.
    """
    table = means(results, list(settings), list(columns))[:_MAX_SETTINGS]
    columns = [column for column in columns if table[column].notna().any()]
    if table.empty or not columns:
        return None
    names = [_label(index) for index in table.index]
    marks: list[dict[str, Any]] = []
    panels = []
    for number, column in enumerate(columns):
        middle, half = (
            table[column].to_numpy(float),
            table[f"{column} ±"].replace(np.inf, np.nan).fillna(0.0).to_numpy(float),
        )
        lower = middle - half if column.endswith("_change") else np.maximum(middle - half, 0.0)
        bounds = table[f"{column} unfinished"].to_numpy(bool)
        ending, size = unit_of_ticks(column, float(np.nanmax(np.abs(middle))))
        title = in_words(column)
        for place, (low, value, high) in enumerate(zip(lower, middle, middle + half, strict=True)):
            if np.isnan(value):
                continue
            at = {
                "panel": number,
                "series": title,
                "y": place,
                "text": f"{names[place]}: {text(column, value)} ± {text(column, high - value)}",
            }
            marks += [
                at | {"shape": "span", "x": low / size, "x2": high / size},
                at | {"shape": "ring" if bounds[place] else "point", "x": value / size},
            ]
        for limit in limits:
            if limit.column == column:
                beyond = {"x": limit.at_most / size} if math.isfinite(limit.at_most) else {"x2": limit.at_least / size}
                marks.append({"panel": number, "series": "beyond a limit", "shape": "band", "x": 0.0} | beyond)
        panels.append(
            Panel(
                title,
                ChartAxis("", ending, *_ends(lower / size, (middle + half) / size)),
                ChartAxis(names=tuple(names)),
            )
        )
    return chart(marks, panels, colours={"beyond a limit": INK})


def trade_off(results: pd.DataFrame, settings: Sequence[str], columns: Sequence[str]) -> Chart | None:
    """Chart the first two columns against each other, a point per setting.  Returns None with fewer than two of either."""
    table = means(results, list(settings), list(columns[:2]))[:_MAX_SETTINGS].dropna(subset=list(columns[:2]))
    if len(columns) < 2 or len(table) < 2:
        return None
    scaled, axes = {}, {}
    for column in columns[:2]:
        ending, size = unit_of_ticks(column, float(table[column].abs().max()))
        scaled[column] = table[column].to_numpy(float) / size
        axes[column] = ChartAxis(in_words(column), ending, *_ends(scaled[column], scaled[column]))
    marks = [
        {
            "series": _label(index),
            "x": x,
            "y": y,
            "text": f"{_label(index)}: {', '.join(f'{in_words(name)} {text(name, row[name])}' for name in scaled)}",
        }
        for (index, row), x, y in zip(table.iterrows(), *scaled.values(), strict=True)
    ]
    return chart(marks, [Panel("", axes[columns[0]], axes[columns[1]], height=220.0)])


def trend(results: pd.DataFrame, column: str, key: str, by: str = "") -> Chart | None:
    """Chart the mean of a column over the quantities of a key, a line for each value of `by`.  Returns None without values.

    Values of the key that are not quantities, such as barrier modes, are drawn as `intervals`.
    """
    settings = [*filter(None, [by]), key]
    table = means(results, settings, [column]).dropna(subset=[column])
    found = numbers_of(key, [_values(index)[-1] for index in table.index])
    if found is None or math.inf in found[1].values():
        return intervals(results, settings, [column])
    (quantity, numbers), heights = found, table[column].to_numpy(float)
    x, y = ([*numbers.values()], quantity), (heights, column)
    (x_ending, x_size), (y_ending, y_size) = (
        unit_of_ticks(name, float(np.max(np.abs(values)))) for values, name in (x, y)
    )
    curves: dict[str, list[tuple[float, float, str]]] = {}
    for index, height in zip(table.index, heights, strict=True):
        *rest, value = _values(index)
        about = f"{_label(index)}: {text(column, height)}"
        curves.setdefault(_label(rest) if rest else in_words(column), []).append(
            (numbers[value] / x_size, height / y_size, about)
        )
    marks = [
        {"series": name, "shape": shape, "x": at, "y": height, "text": about}
        for name, points in curves.items()
        for shape in ("line", "point")
        for at, height, about in sorted(points)
    ]
    is_log = max(numbers.values()) > LOG_SCALE_RATIO * min(numbers.values()) > 0
    axes = (
        ChartAxis(key, x_ending, is_log=is_log),
        ChartAxis(in_words(column), y_ending, *_ends(heights / y_size, heights / y_size)),
    )
    return chart(marks, [Panel("", *axes, height=220.0)])


def _ends(least: np.ndarray, most: np.ndarray) -> tuple[float | None, float | None]:
    """Return the limits of an axis: padded around close values, otherwise from zero; None: chosen by the chart."""
    low, high = float(np.nanmin(least)), float(np.nanmax(most))
    if high <= 0 or low < 0:
        return None, None
    if low < high / 2 or low == high:
        return 0.0, 1.1 * high
    margin = (high - low) / 5
    step = 10.0 ** math.floor(math.log10(high - low))
    return step * math.floor((low - margin) / step), high + margin


def _values(index: object) -> tuple[str, ...]:
    return tuple(map(str, index if isinstance(index, (tuple, list)) else (index,)))


def _label(index: object) -> str:
    return one_line(", ".join(_values(index)), 60)


# ---- Chart of an advice: checkpoint duration and recovery time of every setting that was tried, and the limits.

X, Y = "recovery_ms", "checkpoint_ms"
MINUTE_MS = 60_000.0


def advice_block(data: Mapping[str, Any]) -> Block | None:
    """Return the chart with its caption, or None if fewer than two settings completed a checkpoint and recovered in their run.

    `data`: the output of `ckptsim advise --json`.
    """
    drawn = trade_off_chart(data)
    if drawn is None:
        return None
    settings = list(data["settings"])
    left_out = len(settings) - len(_drawn(settings))
    not_drawn = (
        f" Not drawn: {left_out} without a completed checkpoint or a recovery that ends within its run."
        if left_out
        else ""
    )
    limits = [
        f"{name} at most {ms_text(bound)}"
        for name, key in (("recovery", X), ("checkpoints", Y))
        if (bound := _limit(data, key))
    ]
    shaded = f" Shaded: beyond the limits ({', '.join(limits)})." if limits else ""
    return Block(
        "Checkpoints against recovery",
        chart=drawn,
        caption="A point per setting that was tried: the checkpoint duration by which it is judged (p99, or the longest of long "
        f"runs and of fewer than 100) over the time of a recovery.{shaded}{not_drawn}",
    )


def trade_off_chart(data: Mapping[str, Any]) -> Chart | None:
    """Chart checkpoint duration against recovery time, a point per setting.  Returns None with fewer than two points.

    Points are coloured by barrier mode, limits are shaded, and the current and the advised setting are ringed.
    """
    points = _drawn(list(data.get("settings", ())))
    if len(points) < 2:
        return None
    x, y = (
        _axis(title, [row[key] for row in points], _limit(data, key))
        for title, key in (("recovery", X), ("checkpoints", Y))
    )
    marks: list[dict[str, Any]] = []
    for (_, size, near), side in ((x, "x"), (y, "y")):
        if near is not None:
            marks.append({"series": "beyond a limit", "shape": "band", side: near / size})
    marks += [{"series": _mode(row), "x": row[X] / x[1], "y": row[Y] / y[1], "text": _text(row)} for row in points]
    for key in ("today", "advised"):
        row = data.get(key)
        if row and _has_durations(row):
            name = f"{key}: {row['protocol']}, every {row['interval']}"
            marks.append({"series": name, "shape": "ring", "x": row[X] / x[1], "y": row[Y] / y[1], "text": _text(row)})
    modes = {name: number for number, name in enumerate(dict.fromkeys(map(_mode, points)))}
    inks = {str(mark["series"]): INK for mark in marks if mark.get("shape") in {"ring", "band"}}
    return chart(marks, [Panel("", x[0], y[0], height=260.0)], colours=modes | inks)


def _mode(row: Mapping[str, Any]) -> str:
    """Return the barrier mode of a setting, without debloating and levers: there are more of these than colours."""
    return str(row["protocol"]).partition(", ")[0]


def _text(row: Mapping[str, Any]) -> str:
    return f"{row['protocol']}, every {row['interval']}: checkpoints {ms_text(row[Y])}, recovery {ms_text(row[X])}"


def _drawn(settings: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return [row for row in settings if _has_durations(row)]


def _has_durations(row: Mapping[str, Any]) -> bool:
    """Return True if both durations are known; they may be 0."""
    return row.get(X) is not None and row.get(Y) is not None


def _limit(data: Mapping[str, Any], key: str) -> float | None:
    bound = data.get("limits", {}).get(key)
    return None if bound is None else float(bound)


def _axis(title: str, values: Sequence[float], limit: float | None) -> tuple[ChartAxis, float, float | None]:
    """Return (axis, size of its unit, limit or None).  A distant limit is left out: no point violates it."""
    low, high = min(values), max(values)
    near = limit if limit is not None and limit < 3 * high else None
    low, high = min(low, near or low), max(high, near or high)
    is_log = high > LOG_SCALE_RATIO * low > 0  # 0 ms cannot be shown on a logarithmic axis
    # no fractions of minutes and hours
    ending, size = unit_of_ticks("_ms", high if low >= MINUTE_MS else min(high, MINUTE_MS))
    ends = (low / 1.5, high * 1.5) if is_log else (0.0, high * 1.1 or 1.0)
    return ChartAxis(title, ending, ends[0] / size, ends[1] / size, is_log=is_log), size, near
