"""The page about checkpoints of a real job, and the blocks about single checkpoints on the page of simulated results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import pandas as pd

from sim.app.report.figures import MOMENTS, one_checkpoint, phases, with_moments
from sim.explain.explanation import Account, duration, sentence, title
from sim.jobs.history.explanation import (
    HistoryAnswer,
    account,
    choice_text,
    feature_rows,
    features_text,
    head_text,
    missing_information,
    profile_table,
    remarks_on,
    slow_rows,
    without_statistics_text,
)
from sim.jobs.history.history import (
    History,
    ThreadShares,
    find_checkpoint,
    garbage_text,
    moments,
    slow_subtasks_text,
    subtasks_of,
)
from sim.jobs.source.job_log import clock
from sim.jobs.source.recorded_job import RecordedCheckpoint
from sim.jobs.source.rest_job import RestVertex
from sim.model.job import Vertex
from sim.model.text import capitalised, one_line
from sim.model.units import MS
from sim.results.formats import MISSING, TextTable, bytes_text, ms_text, share_text
from sim.results.page import Block, Page
from sim.results.tables import is_periodic

if TYPE_CHECKING:
    from sim.studies.comparison import Comparison


# ---- The slowest checkpoint of each simulated strategy.

_MAX_STRATEGIES = 3
"""Maximum strategies shown; the first ones."""


def checkpoint_blocks(comparison: Comparison) -> Iterator[Block]:
    """Yield a block on the slowest checkpoint of each strategy that has a completed periodic checkpoint."""
    for name, results in list(comparison.results.items())[:_MAX_STRATEGIES]:
        tables = results[0].tables
        rows = tables["checkpoints"]
        done = rows[is_periodic(rows) & (rows["status"] == "COMPLETED") & rows["id"].isin(tables["subtasks"]["id"])]
        if "x_job" in rows and len(rows["x_job"].unique()) > 1:
            done = done.iloc[:0]  # several jobs use the same checkpoint ids
        if done.empty:
            continue
        slowest = done.nlargest(1, "end_to_end_duration").iloc[0]
        number, took_ms = int(slowest["id"]), float(slowest["end_to_end_duration"])
        subtasks = with_moments(tables["subtasks"][tables["subtasks"]["id"] == number])
        title = f"Checkpoint {number} ({name}), {ms_text(took_ms)}"
        series = tables["series"].assign(queued=lambda rows: rows["inputQueueSize"] + rows["outputQueueSize"])
        means = series.groupby("vertex")[["busy", "backPressured", "queued"]].mean()
        loads = {
            str(vertex): {
                "busy": share_text(row["busy"]),
                "back-pressured": share_text(row["backPressured"]),
                "in its queues": bytes_text(row["queued"]),
            }
            for vertex, row in means.iterrows()
        }
        yield Block(
            f"The slowest checkpoint, {name}",
            f"Load of vertices is the mean of the run. {_OF_SUBTASKS}",
            _vertices_table(results[0].scenario.job.vertices, subtasks, loads),
            one_checkpoint(subtasks, title),
            f"{title}. A bar per subtask.",
        )


_OF_SUBTASKS = "Waits and snapshot are of the slowest subtask of a vertex, what is written is of all."


def _vertices_table(
    vertices: Sequence[Vertex] | Sequence[RestVertex],
    subtasks: pd.DataFrame,
    loads: Mapping[str, Mapping[str, str]],
) -> TextTable:
    """Return the job graph as a table: a row per vertex with its inputs, its load, and its part of a checkpoint.

    `subtasks`: see `one_checkpoint`, with `checkpointed_size` [bytes].  `loads`: vertex -> heading -> cell.
    """
    headings = list(dict.fromkeys(heading for load in loads.values() for heading in load))
    rows = []
    for vertex in vertices:
        own, load = subtasks[subtasks["vertex"] == vertex.name], loads.get(vertex.name, {})
        part = [MISSING] * 3
        if len(own):
            slowest = own.nlargest(1, "acknowledged").iloc[0]
            times_ms = slowest["begun"], slowest["written"] - slowest["begun"]
            part = [*map(ms_text, times_ms), bytes_text(float(own["checkpointed_size"].sum()))]
        inputs = dict.fromkeys(f"{one_line(edge.upstream, 40)} ({edge.ship.lower()})" for edge in vertex.inputs)
        cells = [str(vertex.parallelism), ", ".join(inputs) or MISSING, *(load.get(name, MISSING) for name in headings)]
        rows.append([one_line(vertex.name, 40), *cells, *part])
    return TextTable("", ["Vertex", "subtasks", "reads", *headings, "waits", "snapshot", "written"], rows)


# ---- The page about checkpoints of a real job, with the same sentences and charts as for simulated checkpoints.

_MAX_ROWS = 12
"""Maximum slow, and maximum failed, checkpoints in the table."""


def job_page(answer: HistoryAnswer, command: str = "", made: str = "") -> Page:
    """Return the page of an answer.  `command`: the command that repeats the answer.  `made`: version and date."""
    history, number = answer.history, answer.asked_for
    name = one_line(history.name, 60)
    page_title = f"Checkpoints of {name}" if number is None else f"Checkpoint {number} of {name}"
    question = "What takes the slow ones so long?" if number is None else "What took it so long?"
    longest = _account_of_verdict(answer)
    verdict = " ".join([*([choice_text(answer)] if number is None else []), *([sentence(longest)] if longest else [])])
    blocks = [
        *_blocks(answer, longest),
        Block("What Flink does not tell", " ".join(missing_information(history))),
    ]
    said = (
        head_text(history),
        slow_subtasks_text(history),
        history.contention,
        garbage_text(history.garbage, history.age_ms),
    )
    findings = [line for line in said if line]
    return Page(page_title, question, verdict, blocks, (), command, findings, made)


def _account_of_verdict(answer: HistoryAnswer) -> Account | None:
    """Return the explanation that the verdict is about: the last one with a known critical path, or None."""
    return next((explained for explained in reversed(answer.accounts) if explained.lines), None)


def _blocks(answer: HistoryAnswer, longest: Account | None) -> Iterator[Block]:
    history = answer.history
    if answer.asked_for is None:
        yield from _all_checkpoints(history)
        if rows := slow_rows(answer, _MAX_ROWS):
            header = ["Checkpoint", "Triggered [UTC]", "Took", "Longest part"]
            yield Block("Slow ones, and those that did not complete", table=TextTable("", header, rows))
    for explained in answer.accounts:
        yield from _explained_checkpoint(history, explained, is_verdict=explained is longest)
    if (profile := profile_table(answer)).rows:
        yield Block(profile.title, table=profile._replace(title=""))
    if answer.in_common is not None and answer.in_common.tried:
        rows = feature_rows(answer.in_common)
        header = ["Feature", "How sure", "p alone", "p of all"]
        table = TextTable("", header, rows) if rows else None
        yield Block("What the slow ones have in common", features_text(answer.in_common), table)


def _all_checkpoints(history: History) -> Iterator[Block]:
    """Yield a chart of all checkpoints with subtask statistics, stacked by phase."""
    points = [point for point in history.detailed if point.end_to_end_duration >= 0]
    if not points:
        return
    first_ms = points[0].trigger_timestamp
    parts = [
        {"id": point.id, "part": line.name, "duration": line.duration_ns, "acknowledged": False}
        for point in points
        for line in account(history, point).lines
    ]
    columns = ["id", "status", "persisted_data", "checkpointed_size", "state_size", "end_to_end_duration"]
    rows = [
        {name: getattr(point, name) for name in columns}
        | {
            "trigger_timestamp": point.trigger_timestamp - first_ms,
            "savepointFormat": "requested" if point.is_savepoint else "",
        }
        for point in points
    ]
    tables = {
        "path": pd.DataFrame(parts, columns=["id", "part", "duration", "acknowledged"]),
        "checkpoints": pd.DataFrame(rows),
    }
    drawn = phases(
        {history.strategy or "checkpoints": tables},
        (points[-1].trigger_timestamp - first_ms + points[-1].end_to_end_duration) / 1e3,
    )
    if drawn is not None:
        caption = f"A bar per checkpoint, stacked by the phases of its critical path. The first was triggered at {clock(first_ms)} UTC."
        yield Block("How long each checkpoint took, by phase", chart=drawn, caption=caption)


def _explained_checkpoint(history: History, explained: Account, *, is_verdict: bool) -> Iterator[Block]:
    point, name = find_checkpoint(history, explained.number), capitalised(title(explained))
    remarks = remarks_on(history, explained.number)
    if not explained.lines:
        yield Block(name, " ".join([without_statistics_text(explained, point), *remarks]))
        return
    text = " ".join([*([] if is_verdict else [sentence(explained)]), *remarks])
    rows = [
        [f"{number}  {line.name}, {line.place}", duration(line.duration_ns), f"{capitalised(line.cause)}."]
        for number, line in enumerate(explained.lines, 1)
    ]
    yield Block(name, text, TextTable("", ["Part", "Took", "Why"], rows))
    if (subtasks := _subtasks(history, point)) is not None:
        yield Block(
            f"Through checkpoint {point.id}",
            f"Load is that of the busiest subtask of a vertex. {_OF_SUBTASKS}",
            _vertices_table(history.vertices, subtasks, _vertex_loads(history)),
            one_checkpoint(subtasks, f"What each subtask did in checkpoint {point.id}"),
            f"Checkpoint {point.id}. A bar per subtask.",
        )


def _subtasks(history: History, point: RecordedCheckpoint) -> pd.DataFrame | None:
    """Return the subtasks of a checkpoint, for `one_checkpoint`; None if fewer than two acknowledged."""
    written = {name: subtask.checkpointed_size for name, subtask in subtasks_of(point).items()}
    rows = [
        {"vertex": vertex, "index": index, "checkpointed_size": written.get((vertex, index), 0)}
        | {name: getattr(row, f"{name}_ns") / MS for name in MOMENTS}
        for (vertex, index), row in moments(history, point).items()
    ]
    return pd.DataFrame(rows) if len(rows) > 1 else None


def _vertex_loads(history: History) -> dict[str, dict[str, str]]:
    threads: dict[str, list[ThreadShares]] = {}
    for (vertex, _), shares in history.threads.items():
        threads.setdefault(vertex, []).append(shares)
    return {
        vertex: {
            "busy": share_text(max(shares.busy for shares in own)),
            "back-pressured": share_text(max(shares.back_pressured for shares in own)),
        }
        for vertex, own in threads.items()
    }
