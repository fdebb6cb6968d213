"""Charts of reports: phases of checkpoints, waterfall, quantities over time, one checkpoint, and a job's history."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sim.app.report.job_graph import COLOURS, JobGraph, graph_marks, graph_panel, places, short_name
from sim.explain.explanation import duration
from sim.model.quantities import PLANNED_RESTARTS, of_history
from sim.model.schema.history_file import agreement_text, verdict
from sim.results.charts import INK, Chart, ChartAxis, Panel, chart
from sim.results.checkpoint_kinds import first_uploads
from sim.results.formats import TextTable, amount_text, bytes_text, ms_text
from sim.results.not_completed import PARTS
from sim.results.page import Block
from sim.results.rates import Tables

if TYPE_CHECKING:
    import pandas as pd

    from sim.explain.explanation import Account
    from sim.model.backtest import Backtest, ComparedQuantity, Quantiles
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


def phase_of(part: str) -> str:
    """Return the phase of a part of a critical path; parts that no phase includes, such as writing _metadata, are messages."""
    kind = PARTS.get(part, "messages")
    return next(phase for phase, kinds in PHASES.items() if kind in kinds)


def phases(runs: Mapping[str, Tables], end_s: float | None = None) -> Chart | None:
    """Chart checkpoint durations, stacked by phase of the critical path, with a panel per strategy.

    Panels share one scale, except those with much smaller values: their scale is in milliseconds, as their title says.
    First uploads are not drawn, because they would dwarf the other bars; the title gives their duration.

    `end_s`: end of the time axis.  Returns None if no checkpoint has finished.
    """
    stacks = {name: stack for name, tables in runs.items() if not (stack := _stack(tables)).empty}
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
    return chart(marks, panels, colours=PHASE_COLOURS, linked=TIME if end_s else "")


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
    scales = list(_of_one_scale({name: float(curves[name].max()) for name in distinct}))
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
    colours = dict.fromkeys(("failure", "checkpoint triggered", "warm-up"), INK)
    return chart(
        marks,
        panels,
        colours={title: number for number, title in enumerate(titles.values())} | colours,
        linked=TIME if end_s else "",
    )


def group_identical_curves(curves: Mapping[str, pd.Series[float]]) -> dict[str, list[str]]:
    """Group names with identical curves, whose lines would hide each other.  Return {first name: all names}."""
    groups: dict[str, list[str]] = {}
    for name, curve in curves.items():
        same = next((other for other in groups if curves[other].equals(curve)), name)
        groups.setdefault(same, []).append(name)
    return groups


def _of_one_scale(most: Mapping[str, float]) -> Iterator[tuple[list[str], float]]:
    """Group curves by scale.  Yield (names, maximum) per group, largest first; curves that are always 0 are in the last."""
    remaining = dict(most)
    while remaining:
        highest = max(remaining.values())
        names = [name for name, value in remaining.items() if value * LOG_SCALE_RATIO >= highest or value <= 0]
        if any(0 < value * LOG_SCALE_RATIO < highest for value in remaining.values()):
            names = [name for name in names if remaining[name] > 0]
        yield names, highest
        remaining = {name: value for name, value in remaining.items() if name not in names}


def _stack(tables: Tables) -> pd.DataFrame:
    """Return seconds per phase of finished checkpoints (none in progress), indexed by the time of the trigger [s]; without first uploads."""
    import pandas as pd

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


# ---- The critical path of one checkpoint: a bar per part, from the trigger to the last acknowledgement.

_IN_MS = 1e9
"""Paths shorter than this [ns] are drawn in milliseconds, others in seconds."""


def time_axis(longest_ns: float) -> tuple[ChartAxis, float]:
    """Return an axis of the time since the trigger, and its unit in ns."""
    unit_ns, word = (1e6, "milliseconds") if longest_ns < _IN_MS else (1e9, "seconds")
    return ChartAxis(f"{word} since the trigger", low=0.0, high=max(longest_ns, 1) / unit_ns), unit_ns


def waterfall(account: Account) -> Chart:
    """Chart the critical path of an explained checkpoint up to the last acknowledgement."""
    x, unit_ns = time_axis(account.duration_ns)
    names = [
        f"{number}  {line.name}, {line.place}: {duration(line.duration_ns)}"
        for number, line in enumerate(account.lines, 1)
    ]
    marks = [
        {
            "series": phase_of(line.name),
            "shape": "box",
            "x": line.begin_ns / unit_ns,
            "x2": line.end_ns / unit_ns,
            "y": place - 0.2,
            "y2": place + 0.2,
            "text": f"{names[place]}. {line.cause}",
        }
        for place, line in enumerate(account.lines)
    ]
    return chart(marks, [Panel("", x, ChartAxis(names=tuple(names)))], colours=PHASE_COLOURS)


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
    sinks = _sinks(comparison) if quantity.at_sinks else None
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


def _sinks(comparison: Comparison) -> list[str]:
    job = next(iter(comparison.results.values()))[0].scenario.job
    readers = {inlet.upstream for vertex in job.vertices if not vertex.committer_of for inlet in vertex.inputs}
    return [vertex.name for vertex in job.vertices if vertex.name not in readers and not vertex.committer_of]


def _curve(rows: pd.DataFrame, quantity: PlottedQuantity, vertices: list[str] | None) -> pd.Series[float]:
    rows = rows.assign(queued=rows["inputQueueSize"] + rows["outputQueueSize"])
    if vertices is not None:
        rows = rows[rows["vertex"].isin(vertices)]
    curve: pd.Series[float] = rows.groupby("time")[quantity.column].agg(quantity.how) / quantity.scale
    return curve


# ---- One checkpoint: the job graph, a bar per subtask from the trigger to its acknowledgement, and a time slider.

_PHASES = {
    "behind data": ("first", "until its first barrier"),
    "alignment": ("begun", "alignment"),
    "before the barrier": ("forwarded", "before the barrier"),
    "synchronous": ("synced", "synchronous"),
    "asynchronous": ("written", "asynchronous"),
}
"""Phase, which gives the colour -> (column with the end of the bar, label)."""
MOMENTS = ("first", "last", "begun", "forwarded", "synced", "written", "acknowledged")
"""Columns with the times of a subtask since the trigger [ms], as in `sim.jobs.history.history.Moments`."""
MAX_ROWS = 40
MAX_BROWSED_SUBTASKS = 400
"""Maximum subtasks of a checkpoint with a time slider."""


class SampledQueues(NamedTuple):
    """Samples of queue sizes during a checkpoint."""

    at_ms: Sequence[float]  # time of each sample since the trigger, ascending
    texts: Sequence[Sequence[str]]  # texts[sample][vertex of the graph]


def one_checkpoint(
    done: pd.DataFrame, title: str, graph: JobGraph | None = None, queues: SampledQueues | None = None
) -> Chart:
    """Chart the subtasks of one checkpoint; if there are more than MAX_ROWS, only the slowest.

    `done`: a row per subtask that acknowledged: `vertex`, `index` and MOMENTS.  `graph`: the job graph, drawn above with a
    time slider.
    """
    rows = done.nlargest(MAX_ROWS, "acknowledged").sort_index()
    names = [f"{vertex}[{index}]" for vertex, index in zip(rows["vertex"], rows["index"], strict=True)]
    x, unit_ns = time_axis(1e6 * float(rows["acknowledged"].max()))
    left_out = f", the slowest {MAX_ROWS} of {len(done)} subtasks" if len(done) > MAX_ROWS else ""
    number = int(graph is not None)
    marks: list[Mapping[str, Any]] = list(graph_marks(graph)) if graph is not None else []
    marks += _checkpoint_bars(rows, names, unit_ns / 1e6, number)
    panels = [Panel(f"{title}{left_out}", x, ChartAxis(names=tuple(names)))]
    if graph is not None:
        panels.insert(0, graph_panel(graph, ""))
    colours = {name: PHASE_COLOURS[phase] for phase, (_, name) in _PHASES.items()}
    scrub = (
        _scrub(done, graph, queues, unit_ns / 1e6) if graph is not None and len(done) <= MAX_BROWSED_SUBTASKS else None
    )
    return chart(marks, panels, colours=colours | COLOURS, scrub=scrub)


def vertex_notes(done: pd.DataFrame, vertex: str) -> Iterator[str]:
    """Yield a line on a checkpoint of a vertex: wait and snapshot time of the slowest subtask, and the bytes of all."""
    rows = done[done["vertex"] == vertex]
    if rows.empty:
        return
    slowest = rows.nlargest(1, "acknowledged").iloc[0]
    took = {"waits": slowest["begun"], "snapshot": slowest["written"] - slowest["begun"]}
    written = f", {bytes_text(float(rows['checkpointed_size'].sum()))}" if "checkpointed_size" in rows else ""
    yield f"{', '.join(f'{name} {ms_text(float(ms))}' for name, ms in took.items())}{written}"


def with_moments(subtasks: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of the table `subtasks` that acknowledged, with MOMENTS.

    An unaligned alignment overlaps with the later phases; only the time before them counts as alignment.
    """
    rows = subtasks[subtasks["status"] == "completed"]
    spent = rows["start_delay"] + rows["x_pre_barrier"] + rows["sync_duration"] + rows["async_duration"]
    aligning = (rows["end_to_end_duration"] - spent).clip(lower=0).clip(upper=rows["alignment_duration"])
    rows = rows.assign(first=rows["start_delay"], last=rows["start_delay"] + rows["alignment_duration"])
    rows = rows.assign(begun=rows["first"] + aligning).assign(
        forwarded=lambda found: found["begun"] + found["x_pre_barrier"]
    )
    rows = rows.assign(synced=rows["forwarded"] + rows["sync_duration"]).assign(
        written=lambda found: found["synced"] + found["async_duration"]
    )
    return rows.assign(acknowledged=rows["end_to_end_duration"].clip(lower=rows["written"]))


def _checkpoint_bars(rows: pd.DataFrame, names: Sequence[str], unit_ms: float, panel: int) -> Iterator[dict[str, Any]]:
    for place, row in enumerate(rows.to_dict("records")):
        begin = 0.0
        for column, name in _PHASES.values():
            end = float(row[column])
            if end > begin:
                yield {
                    "panel": panel,
                    "series": name,
                    "shape": "box",
                    "x": begin / unit_ms,
                    "x2": end / unit_ms,
                    "y": place - 0.35,
                    "y2": place + 0.35,
                    "text": f"{names[place]}, {name}: {ms_text(end - begin)}",
                }
            begin = max(begin, end)


def _scrub(done: pd.DataFrame, graph: JobGraph, queues: SampledQueues | None, unit_ms: float) -> dict[str, Any]:
    """Return the data from which the browser draws the state at any moment; times are ms since the trigger."""
    number = {vertex.name: place for place, vertex in enumerate(graph.vertices)}
    rows = [row for row in done.to_dict("records") if row["vertex"] in number]
    rows.sort(key=lambda row: (number[row["vertex"]], row["index"]))
    where = {(row["vertex"], row["index"]): place for place, row in enumerate(rows)}
    tasks = []
    for row in rows:
        moments = {name: round(float(row[name]), 3) for name in MOMENTS}
        reads = []
        for vertex, indices in graph.writers(row["vertex"], row["index"]):
            read = [where[vertex, index] for index in indices if (vertex, index) in where]
            if read:
                reads.append([read[0], read[-1] + 1])
        task = {
            "name": f"{row['vertex']}[{row['index']}]",
            "vertex": number[row["vertex"]],
            "index": int(row["index"]),
            "reads": reads,
        }
        tasks.append(task | moments)
    return {
        "tasks": tasks,
        "names": [short_name(name) for name in number],
        "parallelism": [vertex.parallelism for vertex in graph.vertices],
        "nodes": places(graph),
        "end": float(done["acknowledged"].max()),
        "unit": unit_ms,
        "word": "ms" if unit_ms == 1 else "s",
        "queues": {"at_ms": [round(at, 3) for at in queues.at_ms], "words": [list(row) for row in queues.texts]}
        if queues
        else None,
    }


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
        [title(row), *_numbers(row, row.observed), *_numbers(row, row.predicted), _off(row)]
        for row in backtest.compared
    ]
    if not any(row[-1] for row in rows):
        header, rows = header[:-1], [row[:-1] for row in rows]
    sentence = verdict(backtest)
    return Block(
        "The unchanged job, compared with its history",
        f"{sentence[0].upper()}{sentence[1:]}. {_causes(backtest)}".strip(),
        TextTable("", header, rows),
    )


def title(row: ComparedQuantity) -> str:
    quantities = of_history()[row.quantity]
    named = quantities[0].title if len(quantities) == 1 else row.quantity
    named = f"{named[0].upper()}{named[1:]}"
    return f"{named}, {row.vertex}" if row.vertex else named


def _numbers(row: ComparedQuantity, quantiles: Quantiles) -> Iterator[str]:
    for value in (quantiles.p50, quantiles.p90, quantiles.largest):
        yield "-" if math.isnan(value) else amount_text(value, of_history()[row.quantity][0].kind)


def _off(row: ComparedQuantity) -> str:
    return "; ".join(agreement_text(row, level).removeprefix(f"{row.quantity} ") for level in row.off)


def _causes(backtest: Backtest) -> str:
    return " ".join(f"{title(row)}: {row.cause.rstrip('.')}." for row in backtest.off if row.cause)
