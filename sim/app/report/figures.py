"""Charts of reports: phases of checkpoints, quantities over time, one checkpoint; and the table of a job's history."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from sim.model.quantities import PLANNED_RESTARTS, of_history
from sim.model.scenario import Backtest, ComparedQuantity, Quantiles
from sim.model.schema.history_file import agreement_text, verdict
from sim.model.text import one_line
from sim.results.charts import TEXT_COLOUR, Chart, ChartAxis, Panel, make_chart
from sim.results.columns import text, unit_of_ticks
from sim.results.formats import TextTable, amount_text, ms_text
from sim.results.not_completed import PARTS
from sim.results.page import Block
from sim.results.rates import Tables
from sim.results.summary import in_words
from sim.results.sweep_answers import Limit, means
from sim.results.tables import first_uploads

if TYPE_CHECKING:
    from sim.studies.comparison import Comparison


# ---- Charts of a comparison: a panel per strategy on common axes, or a line per strategy.

PHASES: dict[str, tuple[str, ...]] = {
    "behind data": ("queue",),
    "until the alignment timeout": ("timeout",),
    "alignment": ("alignment",),
    "before the barrier": ("pre_barrier",),
    "synchronous": ("sync",),
    "asynchronous": ("async_queue", "async_work", "upload", "channel_state"),
    "messages": ("messages",),
}
"""Phase -> the kinds of wait that it includes."""
PHASE_COLOURS = {phase: number for number, phase in enumerate(PHASES)}
TIME = "time"
"""Name under which charts over the time of a run are linked: they are zoomed together."""
LOG_SCALE_RATIO = 20.0
"""Values that differ by more than this factor are drawn on separate scales, or a logarithmic one."""
_MAX_BARS = 150
"""If there are more checkpoints, each bar is the mean over a period of time."""


def phases(runs: Mapping[str, Tables], end_s: float | None = None) -> Chart | None:
    """Chart checkpoint durations, stacked by phase of the critical path, with a panel per strategy.

    Panels share one scale, except those with much smaller values: their scale is in milliseconds, as their title says.
    First uploads are not drawn, because they would dwarf the other bars; the title gives their duration.

    `end_s`: end of the time axis.  Returns None if no checkpoint has finished.
    """
    stacks = {name: stack for name, tables in runs.items() if not (stack := _seconds_by_phase(tables)).empty}
    if not stacks:
        return None
    highest = max(float(stack.sum(axis="columns").max()) for stack in stacks.values())
    marks: list[dict[str, Any]] = []
    panels = []
    for number, (name, stack) in enumerate(stacks.items()):
        longest = float(stack.sum(axis="columns").max())
        is_low = longest < highest / LOG_SCALE_RATIO
        marks += _bars(number, stack, 1e3 if is_low else 1.0)
        scale = f": at most {ms_text(1e3 * longest)}, on a scale of its own" if is_low else ""
        top = 1.05 * (1e3 * longest if is_low else highest) or 1.0
        x = ChartAxis(
            "trigger [s since the start]" if number == len(stacks) - 1 else "", low=0.0 if end_s else None, high=end_s
        )
        panels.append(
            Panel(
                f"{name}{scale}{_first_upload(runs[name])}",
                x,
                ChartAxis("milliseconds" if is_low else "seconds", low=0.0, high=top),
            )
        )
    return make_chart(marks, panels, colours=PHASE_COLOURS, zoom_group=TIME if end_s else "")


def _bars(panel: int, stack: pd.DataFrame, scale: float) -> Iterator[dict[str, Any]]:
    """Yield the marks of one panel: a stacked bar per checkpoint."""
    places = stack.index.to_numpy(dtype=float)
    half = 0.4 * float(np.diff(places).min()) if len(places) > 1 else 0.5
    for place, (_, row) in zip(places, stack.iterrows(), strict=True):
        end, total_s = 0.0, float(row.sum())
        for phase in PHASES:
            if row[phase] <= 0:
                continue
            text = f"{phase}: {ms_text(1e3 * row[phase])} of {ms_text(1e3 * total_s)}, triggered at {place:.6g} s"
            yield {
                "panel": panel,
                "series": phase,
                "shape": "box",
                "x": place - half,
                "x2": place + half,
                "y": end * scale,
                "y2": (end + row[phase]) * scale,
                "text": text,
            }
            end += row[phase]


def lines(
    curves: Mapping[str, pd.Series[float]],
    quantity: str,
    *,
    triggers: Collection[float] = (),
    failures: Collection[float] = (),
    warmup_s: float = 0.0,
    end_s: float | None = None,
) -> Chart:
    """Chart a quantity over time with a line per strategy; identical curves share a line.

    Failures are vertical lines, triggers are ticks at the bottom.  Curves with much smaller values are in a separate
    panel with its own scale.
    """
    distinct = group_identical_curves(curves)
    titles = {name: " = ".join(names) + (" (identical)" if len(names) > 1 else "") for name, names in distinct.items()}
    scales = list(_group_by_scale({name: float(curves[name].max()) for name in distinct}))
    marks: list[dict[str, Any]] = []
    panels = []
    for number, (names, most) in enumerate(scales):
        if warmup_s:
            marks.append({"panel": number, "series": "warm-up", "shape": "band", "x": 0.0, "x2": warmup_s})
        for name in names:
            points = zip(curves[name].index, curves[name], strict=True)
            marks += [
                {"panel": number, "series": titles[name], "shape": "line", "x": at_s, "y": value}
                for at_s, value in points
            ]
        marks += [{"panel": number, "series": "failure", "shape": "rule", "x": at_s} for at_s in sorted(failures)]
        if number == len(scales) - 1:
            marks += [
                {"panel": number, "series": "checkpoint triggered", "shape": "tick", "x": at_s} for at_s in triggers
            ]
        title = (
            ""
            if len(scales) == 1
            else f"{', '.join(titles[name] for name in names)}: on a scale of {'its' if len(names) == 1 else 'their'} own"
        )
        x = ChartAxis("simulated time [s]" if number == len(scales) - 1 else "", low=0.0 if end_s else None, high=end_s)
        panels.append(Panel(title, x, ChartAxis(quantity, low=0.0, high=1.08 * most or 1.0)))
    colours = dict.fromkeys(("failure", "checkpoint triggered", "warm-up"), TEXT_COLOUR)
    return make_chart(
        marks,
        panels,
        colours={title: number for number, title in enumerate(titles.values())} | colours,
        zoom_group=TIME if end_s else "",
    )


def group_identical_curves(curves: Mapping[str, pd.Series[float]]) -> dict[str, list[str]]:
    """Group names with identical curves, whose lines would hide each other.  Return {first name: all names}."""
    groups: dict[str, list[str]] = {}
    for name, curve in curves.items():
        same = next((other for other in groups if curves[other].equals(curve)), name)
        groups.setdefault(same, []).append(name)
    return groups


def _group_by_scale(most: Mapping[str, float]) -> Iterator[tuple[list[str], float]]:
    """Group curves by scale.  Yield (names, maximum) per group, largest first; curves that are always 0 are in the last."""
    remaining = dict(most)
    while remaining:
        highest = max(remaining.values())
        names = [name for name, value in remaining.items() if value * LOG_SCALE_RATIO >= highest or value <= 0]
        if any(0 < value * LOG_SCALE_RATIO < highest for value in remaining.values()):
            names = [name for name in names if remaining[name] > 0]
        yield names, highest
        remaining = {name: value for name, value in remaining.items() if name not in names}


def _seconds_by_phase(tables: Tables) -> pd.DataFrame:
    """Return seconds per phase of finished checkpoints (none in progress), indexed by the time of the trigger [s]; without first uploads."""
    kinds = {kind: phase for phase, kinds in PHASES.items() for kind in kinds}
    rows = tables["path"][~tables["path"]["acknowledged"].astype(bool)]
    keys = [name for name in ("x_job", "id") if name in rows]
    checkpoints = tables["checkpoints"]
    omitted = checkpoints.loc[first_uploads(checkpoints) | (checkpoints["status"] == "IN_PROGRESS"), keys]
    rows = rows[~pd.MultiIndex.from_frame(rows[keys]).isin(pd.MultiIndex.from_frame(omitted))]
    spent = rows.assign(phase=rows["part"].map(PARTS).map(kinds), seconds=rows["duration"] / 1e9)
    stack = spent.pivot_table(index=keys, columns="phase", values="seconds", aggfunc="sum", fill_value=0.0)
    stack = stack.reindex(columns=list(PHASES), fill_value=0.0)
    triggers = checkpoints.set_index(keys)["trigger_timestamp"] / 1e3
    stack.index = triggers.loc[stack.index].to_numpy() if len(stack) else stack.index
    if len(stack) <= _MAX_BARS:
        return stack
    span = (stack.index.max() - stack.index.min()) / _MAX_BARS
    return stack.groupby((stack.index // span) * span).mean()


def _first_upload(tables: Tables) -> str:
    rows = tables["checkpoints"]
    durations = rows.loc[first_uploads(rows), "end_to_end_duration"]
    return "" if durations.empty else f" (not drawn: first upload, {ms_text(float(durations.iloc[0]))})"


# ---- Quantities over time, a curve per strategy.

_MAX_TRIGGERS = 200


class PlottedQuantity(NamedTuple):
    """A quantity that is drawn over time."""

    title: str
    unit: str  # label of the axis
    column: str  # column of the table `series`
    scale: float  # divisor that converts the column to `unit`
    how: str  # aggregation over vertices: "sum" or "max"
    at_sinks: bool = False  # aggregate sinks only


QUANTITIES = {
    "throughput": PlottedQuantity(
        "Throughput", "records per second", "numRecordsInPerSecond", 1.0, "sum", at_sinks=True
    ),
    "lag": PlottedQuantity("Lag of the sources", "seconds behind", "lag", 1.0, "max"),
    "in_flight": PlottedQuantity("In-flight data", "megabytes in queues", "queued", 1e6, "sum"),
    "back_pressure": PlottedQuantity(
        "Back-pressure of the most back-pressured vertex", "per cent of time", "backPressured", 0.01, "max"
    ),
}


def curves_of(quantity: PlottedQuantity, comparison: Comparison) -> dict[str, pd.Series[float]]:
    """Return the quantity by time [s] in the first run of each strategy; strategies without samples are omitted."""
    tables = {name: found[0].tables["series"] for name, found in comparison.results.items()}
    job = next(iter(comparison.results.values()))[0].scenario.job
    sinks = job.sinks if quantity.at_sinks else None
    return {name: _curve(rows, quantity, sinks) for name, rows in tables.items() if len(rows)}


def failures_s(runs: Mapping[str, Tables]) -> list[float]:
    """Return the times of failures [s], without planned restarts."""
    rows = (tables["recoveries"] for tables in runs.values())
    return sorted(
        {
            at_ms / 1e3
            for recoveries in rows
            for at_ms in recoveries.loc[~recoveries["kind"].isin(PLANNED_RESTARTS), "failed"]
        }
    )


def triggers_s(runs: Mapping[str, Tables]) -> list[float]:
    """Return the trigger times [s] of the first strategy, or [] if there are too many to draw."""
    first = next(iter(runs.values()))["checkpoints"]
    return list(first["trigger_timestamp"] / 1e3) if len(first) <= _MAX_TRIGGERS else []


def end_s(runs: Mapping[str, Tables]) -> float | None:
    """Return the time of the last sample [s], or None without samples."""
    return max(
        (float(tables["series"]["time"].max()) for tables in runs.values() if len(tables["series"])), default=None
    )


def _curve(rows: pd.DataFrame, quantity: PlottedQuantity, vertices: Sequence[str] | None) -> pd.Series[float]:
    rows = rows.assign(queued=rows["inputQueueSize"] + rows["outputQueueSize"])
    if vertices is not None:
        rows = rows[rows["vertex"].isin(vertices)]
    curve: pd.Series[float] = rows.groupby("time")[quantity.column].agg(quantity.how) / quantity.scale
    return curve


# ---- One checkpoint: a bar per subtask from the trigger to its acknowledgement.

_PHASES = {
    "behind data": ("first", "until its first barrier"),
    "alignment": ("begun", "alignment"),
    "before the barrier": ("forwarded", "before the barrier"),
    "synchronous": ("synced", "synchronous"),
    "asynchronous": ("written", "asynchronous"),
}
"""Phase, which gives the colour -> (column with the end of the bar, label)."""
MOMENTS = ("first", "begun", "forwarded", "synced", "written", "acknowledged")
"""Columns with the times of a subtask since the trigger [ms], as in `sim.jobs.history.history.Moments`."""
MAX_ROWS = 40
_SECOND_MS = 1e3
"""Checkpoints shorter than this are drawn in milliseconds, others in seconds."""


def one_checkpoint(done: pd.DataFrame, title: str) -> Chart:
    """Chart the subtasks of one checkpoint; if there are more than MAX_ROWS, only the slowest.

    `done`: a row per subtask that acknowledged: `vertex`, `index` and MOMENTS.
    """
    rows = done.nlargest(MAX_ROWS, "acknowledged").sort_index()
    names = [f"{vertex}[{index}]" for vertex, index in zip(rows["vertex"], rows["index"], strict=True)]
    longest_ms = max(float(rows["acknowledged"].max()), 1e-6)
    unit_ms, word = (1.0, "milliseconds") if longest_ms < _SECOND_MS else (1e3, "seconds")
    left_out = f", the slowest {MAX_ROWS} of {len(done)} subtasks" if len(done) > MAX_ROWS else ""
    x = ChartAxis(f"{word} since the trigger", low=0.0, high=longest_ms / unit_ms)
    return make_chart(
        _checkpoint_bars(rows, names, unit_ms),
        [Panel(f"{title}{left_out}", x, ChartAxis(names=tuple(names)))],
        colours={name: PHASE_COLOURS[phase] for phase, (_, name) in _PHASES.items()},
    )


def with_moments(subtasks: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of the table `subtasks` that acknowledged, with MOMENTS.

    An unaligned alignment overlaps with the later phases; only the time before them counts as alignment.
    """
    rows = subtasks[subtasks["status"] == "completed"]
    spent = rows["start_delay"] + rows["x_pre_barrier"] + rows["sync_duration"] + rows["async_duration"]
    aligning = (rows["end_to_end_duration"] - spent).clip(lower=0).clip(upper=rows["alignment_duration"])
    rows = rows.assign(first=rows["start_delay"], begun=rows["start_delay"] + aligning)
    rows = rows.assign(forwarded=rows["begun"] + rows["x_pre_barrier"])
    rows = rows.assign(synced=rows["forwarded"] + rows["sync_duration"]).assign(
        written=lambda found: found["synced"] + found["async_duration"]
    )
    return rows.assign(acknowledged=rows["end_to_end_duration"].clip(lower=rows["written"]))


def _checkpoint_bars(rows: pd.DataFrame, names: Sequence[str], unit_ms: float) -> Iterator[dict[str, Any]]:
    for place, row in enumerate(rows.to_dict("records")):
        begin = 0.0
        for column, name in _PHASES.values():
            end = float(row[column])
            if end > begin:
                yield {
                    "series": name,
                    "shape": "box",
                    "x": begin / unit_ms,
                    "x2": end / unit_ms,
                    "y": place - 0.35,
                    "y2": place + 0.35,
                    "text": f"{names[place]}, {name}: {ms_text(end - begin)}",
                }
            begin = max(begin, end)


# ---- The backtest of an imported job.


def history(backtest: Backtest) -> Block:
    """Return a block that compares quantiles of the observed history and the simulation, by quantity."""
    header = [
        "",
        "observed p50",
        "observed p90",
        "observed longest",
        "predicted p50",
        "predicted p90",
        "predicted longest",
        "off by",
    ]
    rows = [
        [title(row), *_quantile_cells(row, row.observed), *_quantile_cells(row, row.predicted), _disagreement_text(row)]
        for row in backtest.compared
    ]
    if not any(row[-1] for row in rows):
        header, rows = header[:-1], [row[:-1] for row in rows]
    sentence = verdict(backtest)
    return Block(
        "The unchanged job, compared with its history",
        f"{sentence[0].upper()}{sentence[1:]}.",
        TextTable("", header, rows),
    )


def title(row: ComparedQuantity) -> str:
    quantities = of_history()[row.quantity]
    named = quantities[0].title if len(quantities) == 1 else row.quantity
    named = f"{named[0].upper()}{named[1:]}"
    return f"{named}, {row.vertex}" if row.vertex else named


def _quantile_cells(row: ComparedQuantity, quantiles: Quantiles) -> Iterator[str]:
    for value in (quantiles.p50, quantiles.p90, quantiles.largest):
        yield "-" if math.isnan(value) else amount_text(value, of_history()[row.quantity][0].kind)


def _disagreement_text(row: ComparedQuantity) -> str:
    return "; ".join(agreement_text(row, level).removeprefix(f"{row.quantity} ") for level in row.off)


# ---- The chart of a sweep: means of settings with confidence intervals.

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
    names = [_setting_label(index) for index in table.index]
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
                ChartAxis("", ending, *_axis_limits(lower / size, (middle + half) / size)),
                ChartAxis(names=tuple(names)),
            )
        )
    return make_chart(marks, panels, colours={"beyond a limit": TEXT_COLOUR})


def _axis_limits(least: np.ndarray, most: np.ndarray) -> tuple[float | None, float | None]:
    """Return the limits of an axis: padded around close values, otherwise from zero; None: chosen by the chart."""
    low, high = float(np.nanmin(least)), float(np.nanmax(most))
    if high <= 0 or low < 0:
        return None, None
    if low < high / 2 or low == high:
        return 0.0, 1.1 * high
    margin = (high - low) / 5
    step = 10.0 ** math.floor(math.log10(high - low))
    return step * math.floor((low - margin) / step), high + margin


def _setting_label(index: object) -> str:
    values = index if isinstance(index, (tuple, list)) else (index,)
    return one_line(", ".join(map(str, values)), 60)
