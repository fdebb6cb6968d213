"""One checkpoint as a chart: the job, what every subtask did between the trigger and its acknowledgement, and a slider through it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from sim.analysis.number_texts import bytes_text, ms_text
from sim.report.charts.chart import Chart, ChartAxis, Panel, chart
from sim.report.figures import PHASE_COLOURS
from sim.report.job_graph import COLOURS, JobGraph, graph_marks, graph_panel, places
from sim.report.waterfall import time_axis

if TYPE_CHECKING:
    import pandas as pd

_PHASES = {
    "behind data": ("first", "until its first barrier"),
    "alignment": ("begun", "alignment"),
    "before the barrier": ("forwarded", "before the barrier"),
    "synchronous": ("synced", "synchronous"),
    "asynchronous": ("written", "asynchronous"),
}
"""Phase whose colour it has -> (column where it ends, its name)."""
_MOMENTS = ("first", "last", "begun", "forwarded", "synced", "written", "acknowledged")
MOST_ROWS = 40
MOST_SCRUBBED = 400
"""Subtasks of a checkpoint that a browser moves through."""


class SampledQueues(NamedTuple):
    """What was in the queues, as it was sampled."""

    at_ms: Sequence[float]  # since the trigger, in order
    texts: Sequence[Sequence[str]]  # by sample, then by vertex of the graph


def one_checkpoint(subtasks: pd.DataFrame, title: str, graph: JobGraph | None = None, queues: SampledQueues | None = None) -> Chart:
    """`subtasks`: the rows of one checkpoint.  Of many subtasks the slowest are drawn.  `graph`: the job, to be drawn above."""
    done = _with_moments(subtasks[subtasks["status"] == "completed"])
    rows = done.nlargest(MOST_ROWS, "acknowledged").sort_index()
    names = [f"{vertex}[{index}]" for vertex, index in zip(rows["vertex"], rows["index"], strict=True)]
    x, unit_ns = time_axis(1e6 * float(rows["acknowledged"].max()))
    left_out = f", the slowest {MOST_ROWS} of {len(done)} subtasks" if len(done) > MOST_ROWS else ""
    number = int(graph is not None)
    marks: list[Mapping[str, Any]] = list(graph_marks(graph)) if graph is not None else []
    marks += _bars(rows, names, unit_ns / 1e6, number)
    panels = [Panel(f"{title}{left_out}", x, ChartAxis(names=tuple(names)))]
    if graph is not None:
        panels.insert(0, graph_panel(graph, ""))
    colours = {name: PHASE_COLOURS[phase] for phase, (_, name) in _PHASES.items()}
    scrub = _scrub(done, graph, queues, unit_ns / 1e6) if graph is not None and len(done) <= MOST_SCRUBBED else None
    return chart(marks, panels, colours=colours | COLOURS, scrub=scrub)


def vertex_notes(subtasks: pd.DataFrame, vertex: str) -> Iterator[str]:
    """What a checkpoint was at a vertex: its slowest subtask, and the bytes of all."""
    rows = _with_moments(subtasks[(subtasks["vertex"] == vertex) & (subtasks["status"] == "completed")])
    if rows.empty:
        return
    slowest = rows.nlargest(1, "acknowledged").iloc[0]
    took = {"waits": slowest["begun"], "snapshot": slowest["written"] - slowest["begun"]}
    written = f", {bytes_text(float(rows['checkpointed_size'].sum()))}" if "checkpointed_size" in rows else ""
    yield f"{', '.join(f'{name} {ms_text(float(ms))}' for name, ms in took.items())}{written}"


def _with_moments(rows: pd.DataFrame) -> pd.DataFrame:
    """When each subtask reached each stage [ms after the trigger].

    An unaligned alignment goes on beside the later phases: only what lies before them is a wait.
    """
    spent = rows["start_delay"] + rows["x_pre_barrier"] + rows["sync_duration"] + rows["async_duration"]
    aligning = (rows["end_to_end_duration"] - spent).clip(lower=0).clip(upper=rows["alignment_duration"])
    rows = rows.assign(first=rows["start_delay"], last=rows["start_delay"] + rows["alignment_duration"])
    rows = rows.assign(begun=rows["first"] + aligning).assign(forwarded=lambda found: found["begun"] + found["x_pre_barrier"])
    rows = rows.assign(synced=rows["forwarded"] + rows["sync_duration"]).assign(
        written=lambda found: found["synced"] + found["async_duration"]
    )
    return rows.assign(acknowledged=rows["end_to_end_duration"].clip(lower=rows["written"]))


def _bars(rows: pd.DataFrame, names: Sequence[str], unit_ms: float, panel: int) -> Iterator[dict[str, Any]]:
    for place, row in enumerate(rows.to_dict("records")):
        begin = 0.0
        for column, name in _PHASES.values():
            end = float(row[column])
            if end > begin:
                yield {
                    "panel": panel, "series": name, "shape": "box", "x": begin / unit_ms, "x2": end / unit_ms, "y": place - 0.35,
                    "y2": place + 0.35, "text": f"{names[place]}, {name}: {ms_text(end - begin)}",
                }  # fmt: skip
            begin = max(begin, end)


def _scrub(done: pd.DataFrame, graph: JobGraph, queues: SampledQueues | None, unit_ms: float) -> dict[str, Any]:
    """What a browser needs to say where everything is at a moment; times are ms since the trigger."""
    number = {vertex.name: place for place, vertex in enumerate(graph.vertices)}
    rows = [row for row in done.to_dict("records") if row["vertex"] in number]
    rows.sort(key=lambda row: (number[row["vertex"]], row["index"]))
    where = {(row["vertex"], row["index"]): place for place, row in enumerate(rows)}
    tasks = []
    for row in rows:
        moments = {name: round(float(row[name]), 3) for name in _MOMENTS}
        reads = []
        for vertex, indices in graph.writers(row["vertex"], row["index"]):
            found = [where[vertex, index] for index in indices if (vertex, index) in where]
            if found:
                reads.append([found[0], found[-1] + 1])
        task = {"name": f"{row['vertex']}[{row['index']}]", "vertex": number[row["vertex"]], "index": int(row["index"]), "reads": reads}
        tasks.append(task | moments)
    return {
        "tasks": tasks, "names": list(number), "parallelism": [vertex.parallelism for vertex in graph.vertices],
        "nodes": places(graph), "end": float(done["acknowledged"].max()), "unit": unit_ms,
        "word": "ms" if unit_ms == 1 else "s",
        "queues": {"at_ms": [round(at, 3) for at in queues.at_ms], "words": [list(row) for row in queues.texts]} if queues else None,
    }  # fmt: skip
