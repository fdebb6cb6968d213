"""The slowest checkpoint of each simulated strategy, to move through: the job, its barriers, its queues, who waits for whom."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from sim.analysis.number_texts import bytes_text, ms_text, share_text
from sim.analysis.strategies.kinds_of_checkpoints import is_periodic
from sim.report.job_graph import GraphEdge, GraphVertex, JobGraph
from sim.report.one_checkpoint import SampledQueues, one_checkpoint, vertex_notes
from sim.report.page import Block

if TYPE_CHECKING:
    import pandas as pd

    from sim.analysis.strategies.summary import Tables
    from sim.comparison.comparison import Comparison
    from sim.model.job import Job

_MOST = 3
"""Strategies; of more, the first are shown."""


def checkpoint_blocks(comparison: Comparison) -> Iterator[Block]:
    """A block per strategy that has a checkpoint with two acknowledgements."""
    for name, results in list(comparison.results.items())[:_MOST]:
        tables = results[0].tables
        rows = tables["checkpoints"]
        done = rows[is_periodic(rows) & (rows["status"] == "COMPLETED") & rows["id"].isin(tables["subtasks"]["id"])]
        if "x_job" in rows and len(rows["x_job"].unique()) > 1:
            done = done.iloc[:0]  # numbers of several jobs are the same
        if done.empty:
            continue
        slowest = done.nlargest(1, "end_to_end_duration").iloc[0]
        number, took_ms = int(slowest["id"]), float(slowest["end_to_end_duration"])
        subtasks = tables["subtasks"][tables["subtasks"]["id"] == number]
        graph = _graph(results[0].scenario.job, tables, subtasks)
        queues = _queues(tables["series"], graph, float(slowest["trigger_timestamp"]), took_ms)
        title = f"Checkpoint {number} ({name}), {ms_text(took_ms)}"
        caption = (
            f"{title}: the job, darker for more back-pressure in the mean of the run; below, what each subtask did. "
            "Of each vertex its slowest subtask, and what all stored."
        )
        drawn = one_checkpoint(subtasks, title, graph, queues)
        yield Block(f"The slowest checkpoint, {name}", chart=drawn, caption=caption)


def _graph(job: Job, tables: Tables, subtasks: pd.DataFrame) -> JobGraph:
    series = tables["series"]
    means = (
        series.assign(queued=series["inputQueueSize"] + series["outputQueueSize"])
        .groupby("vertex")[["busy", "backPressured", "queued"]]
        .mean()
    )
    vertices = []
    for vertex in job.vertices:
        notes = list(vertex_notes(subtasks, vertex.name))
        pressed = None
        if vertex.name in means.index:
            busy, pressed, queued = (float(means[name][vertex.name]) for name in ("busy", "backPressured", "queued"))
            notes.insert(0, f"busy {share_text(busy)}, back-pressured {share_text(pressed)}")
            notes.append(f"in its queues {bytes_text(queued)}")
        vertices.append(GraphVertex(vertex.name, vertex.parallelism, tuple(notes), pressed))
    edges = [GraphEdge(inlet.upstream, reader.name, inlet.ship) for reader in job.vertices for inlet in reader.inputs]
    return JobGraph(tuple(vertices), tuple(dict.fromkeys(edges)))


def _queues(series: pd.DataFrame, graph: JobGraph, trigger_ms: float, took_ms: float) -> SampledQueues | None:
    """Samples of the checkpoint's time, and the last one before.  None: there are none."""
    at_ms = [1e3 * float(time) - trigger_ms for time in sorted(set(series["time"]))]
    first = max((place for place, at in enumerate(at_ms) if at <= 0), default=0)
    inside = [at for at in at_ms[first:] if at <= took_ms]
    if not inside:
        return None
    times = sorted(set(series["time"]))[first : first + len(inside)]
    near = series[series["time"].isin(times)]
    texts = {
        (time, vertex): f"{bytes_text(received)} in, {bytes_text(sent)} out (at {time:g} s)"
        for time, vertex, received, sent in zip(
            near["time"], near["vertex"], near["inputQueueSize"], near["outputQueueSize"], strict=True
        )
    }  # fmt: skip
    return SampledQueues(inside, [[texts.get((time, vertex.name), "") for vertex in graph.vertices] for time in times])
