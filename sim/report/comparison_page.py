"""A comparison -> its page: table, durations by phase, throughput and lag through time, in-flight data, what failures cost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import pandas as pd

from sim.analysis.number_texts import count_text, ms_text
from sim.analysis.section import Section
from sim.analysis.strategies.side_by_side import texts
from sim.analysis.strategies.summary import Tables
from sim.report.figures import alike, lines, phases
from sim.report.page import Block, Page

if TYPE_CHECKING:
    from sim.comparison.comparison import Comparison
    from sim.report.results import Results

__all__ = ["comparison_page"]

ROWS = {
    "completed (n)": "Completed checkpoints",
    "p50": "Duration, median",
    "p99": "Duration, 99th percentile",
    "max": "Duration, longest",
    "start delay": "Start delay, median",
    "alignment": "Alignment, median",
    "pre-barrier": "Work before the barrier, median",
    "sync": "Synchronous part, median",
    "async": "Asynchronous part, median",
    "in flight": "In-flight data stored, median",
    "throughput": "Throughput, records",
    "vs none": "Throughput against no checkpoints",
    "busiest": "Busiest vertex",
    "back-pressured": "Most back-pressured vertex",
}
"""Column of the terminal's table -> words of a page, where there is room."""


def comparison_page(results: Results) -> Page:
    comparison = results.comparison
    runs = {name: found[0].tables for name, found in comparison.results.items()}
    title = f"Checkpoints of {comparison.name}"
    blocks = list(_blocks(comparison, runs, results.violations))
    return Page(title, comparison.question, comparison.verdict, blocks, results.assumptions, results.command)


def _blocks(comparison: Comparison, runs: Mapping[str, Tables], violations: Mapping[str, str]) -> Iterator[Block]:
    header, rows = texts(comparison.strategies)
    table = Section(
        "", ["", *(row[0] for row in rows)], [[ROWS.get(name, name), *(row[i] for row in rows)] for i, name in enumerate(header) if i]
    )
    yield Block("The strategies side by side", table=table)
    for name, story in violations.items():
        yield Block(f"{name}: a run broke what checkpoints promise", code=story)
    yield Block(
        "How long each checkpoint takes, by phase", figure=phases(runs), caption=_phases_caption(comparison),
        text="" if phases(runs) is not None else "No checkpoint is over.",
    )  # fmt: skip
    yield from _through_time(comparison, runs)
    if (consequences := comparison.consequences_texts()) is not None:
        yield Block("Failures, recovery and commits", comparison.consequences_sentence, Section("", *_turned(*consequences)))
    for section in comparison.stored:
        yield Block(section.title, table=section)


def _through_time(comparison: Comparison, runs: Mapping[str, Tables]) -> Iterator[Block]:
    scenario = next(iter(comparison.results.values()))[0].scenario
    readers = {inlet.upstream for vertex in scenario.job.vertices if not vertex.committer_of for inlet in vertex.inputs}
    sinks = [vertex.name for vertex in scenario.job.vertices if vertex.name not in readers and not vertex.committer_of]
    series = {name: tables["series"] for name, tables in runs.items() if len(tables["series"])}
    if not series:
        return
    warmup_s = scenario.run.warmup_ns / 1e9
    failures = sorted({at_ms / 1e3 for tables in runs.values() for at_ms in tables["recoveries"]["failed"]})
    first = next(iter(runs.values()))["checkpoints"]
    triggers = list(first["trigger_timestamp"] / 1e3) if len(first) <= 200 else []
    pictures = (
        ("Throughput", "records per second", "numRecordsInPerSecond", sinks, 1.0, "sum"),
        ("Lag of the sources", "seconds behind", "lag", None, 1.0, "max"),
        ("In-flight data", "megabytes in queues", "queued", None, 1e6, "sum"),
    )
    for title, unit, column, vertices, scale, how in pictures:
        curves = {name: _curve(rows, column, vertices, scale, how) for name, rows in series.items()}
        if all((curve == 0).all() for curve in curves.values()):
            continue
        drawn = lines(curves, unit, triggers=triggers, failures=failures, warmup_s=warmup_s)
        yield Block(title, figure=drawn, caption=_caption(title, unit, curves, len(failures), next(iter(runs))))


def _curve(rows: pd.DataFrame, column: str, vertices: list[str] | None, scale: float, how: str) -> pd.Series[float]:
    rows = rows.assign(queued=rows["inputQueueSize"] + rows["outputQueueSize"])
    if vertices is not None:
        rows = rows[rows["vertex"].isin(vertices)]
    curve: pd.Series[float] = rows.groupby("time")[column].agg(how) / scale
    return curve


def _caption(title: str, unit: str, curves: Mapping[str, pd.Series[float]], failures: int, first: str) -> str:
    means = [f"{name}: {count_text(curve.mean())} on average, {count_text(curve.max())} at most" for name, curve in curves.items()]
    same = [" and ".join(names) + " are identical" for names in alike(curves).values() if len(names) > 1]
    marked = [f"{failures} failure{'s' if failures > 1 else ''} marked"] if failures else []
    return f"{title} through time, {unit}. " + "; ".join([*means, *same, *marked]) + f". Ticks: checkpoints triggered with {first}."


def _phases_caption(comparison: Comparison) -> str:
    rows = [f"{line.label}: median {ms_text(line.summary.end_to_end_p50_ms)}" for line in comparison.strategies if line.summary.completed]
    return "A bar per checkpoint, stacked by the phases of its critical path, on one scale. " + "; ".join(rows) + "."


def _turned(header: list[str], rows: list[list[str]]) -> tuple[list[str], list[list[str]]]:
    """A column per strategy: a phone is narrow."""
    columns = [list(column) for column in zip(header, *rows, strict=True)]
    return ["", *columns[0][1:]], columns[1:]
