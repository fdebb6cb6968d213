"""A comparison -> its page: table, durations by phase, throughput and lag through time, in-flight data, what failures cost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from sim.analysis.number_texts import count_text, ms_text
from sim.analysis.section import TextTable
from sim.analysis.strategies.picture import alike
from sim.analysis.strategies.side_by_side import texts
from sim.analysis.strategies.summary import Tables
from sim.comparison.assumption import assumptions_table
from sim.prose import capitalised
from sim.quantities.results import headings
from sim.report.checkpoint_blocks import checkpoint_blocks
from sim.report.figures import lines, phases
from sim.report.history import history
from sim.report.page import Block, Page
from sim.report.through_time import QUANTITIES, curves_of, end_s, failures_s, triggers_s

if TYPE_CHECKING:
    import pandas as pd

    from sim.comparison.comparison import Comparison
    from sim.report.results import ReportedResults
    from sim.report.through_time import PlottedQuantity


def comparison_page(results: ReportedResults) -> Page:
    comparison = results.comparison
    runs = {name: found[0].tables for name, found in comparison.results.items()}
    title = f"Checkpoints of {comparison.name}"
    blocks = list(_blocks(results, runs))
    if results.backtest is not None:
        blocks.append(history(results.backtest))
    assumptions = [line for line in results.assumptions if not any(line in finding for finding in results.findings)]
    return Page(title, comparison.question, comparison.verdict, blocks, assumptions, results.command, results.findings, results.made)


def _blocks(results: ReportedResults, runs: Mapping[str, Tables]) -> Iterator[Block]:
    comparison = results.comparison
    header, rows = texts(comparison.strategies)
    titles = headings()
    named = [titles.get(name, capitalised(name)) for name in header]
    table = TextTable("", ["", *(row[0] for row in rows)], [[name, *(row[i] for row in rows)] for i, name in enumerate(named) if i])
    yield from (Block("", note) for note in results.notes)
    yield Block("The strategies side by side", table=table)
    if (decides := assumptions_table(comparison.deciding)) is not None:
        yield Block(decides.title, table=decides._replace(title=""))
    yield from (Block(f"{name}: no result", code=f"{name}: {error}") for name, error in results.errors.items())
    for name, story in results.violations.items():
        yield Block(f"{name}: a run broke what checkpoints promise", code=f"violation: {name}: {story}")
    yield from (Block("", outcome) for outcome in results.outcomes)
    drawn = phases(runs, end_s(runs))
    yield Block(
        "How long each checkpoint takes, by phase", chart=drawn, caption=_phases_caption(comparison),
        text="" if drawn is not None else "No checkpoint is over.",
    )  # fmt: skip
    yield from checkpoint_blocks(comparison)
    yield from _through_time(comparison, runs)
    if (consequences := comparison.consequences_texts()) is not None:
        yield Block("Failures, recovery and commits", comparison.consequences_sentence, TextTable("", *_turned(*consequences)))
    for section in comparison.stored:
        yield Block(section.title, table=section)


def _through_time(comparison: Comparison, runs: Mapping[str, Tables]) -> Iterator[Block]:
    failures, triggers = failures_s(runs), triggers_s(runs)
    for quantity in QUANTITIES.values():
        curves = curves_of(quantity, comparison)
        if all((curve == 0).all() for curve in curves.values()):
            continue
        drawn = lines(curves, quantity.unit, triggers=triggers, failures=failures, warmup_s=comparison.warmup_s, end_s=end_s(runs))
        yield Block(quantity.title, chart=drawn, caption=_caption(quantity, curves, len(failures), next(iter(runs))))


def _caption(quantity: PlottedQuantity, curves: Mapping[str, pd.Series[float]], failures: int, first: str) -> str:
    means = [f"{name}: {count_text(curve.mean())} on average, {count_text(curve.max())} at most" for name, curve in curves.items()]
    same = [f"{', '.join(names[:-1])} and {names[-1]} are identical" for names in alike(curves).values() if len(names) > 1]
    marked = [f"{failures} failure{'s' if failures > 1 else ''} marked"] if failures else []
    return (
        f"{quantity.title} through time, {quantity.unit}. "
        + "; ".join([*means, *same, *marked])
        + f". Ticks: checkpoints triggered with {first}."
    )


def _phases_caption(comparison: Comparison) -> str:
    rows = [f"{line.label}: median {ms_text(line.summary.end_to_end_p50_ms)}" for line in comparison.strategies if line.summary.completed]
    return "A bar per checkpoint, stacked by the phases of its critical path. " + "; ".join(rows) + "."


def _turned(header: list[str], rows: list[list[str]]) -> tuple[list[str], list[list[str]]]:
    """A column per strategy: a phone is narrow."""
    columns = [list(column) for column in zip(header, *rows, strict=True)]
    return ["", *columns[0][1:]], columns[1:]
