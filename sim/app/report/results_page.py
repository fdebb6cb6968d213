"""Pages of stored results: comparisons by `run`, and answers of `sweep`, `advise` and `diff`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from sim.advice.questions import unknowns
from sim.app.report.figures import (
    QUANTITIES,
    PlottedQuantity,
    curves_of,
    end_s,
    failures_s,
    group_identical_curves,
    history,
    intervals,
    lines,
    phases,
    triggers_s,
)
from sim.app.report.job_page import checkpoint_blocks
from sim.jobs.evidence.envelope import warning
from sim.jobs.evidence.what_ifs import sentences
from sim.model.quantities import S3_STANDARD, Prices
from sim.model.scenario import Backtest, Scenario
from sim.model.schema.history_file import verdict
from sim.model.schema.study import ScenarioFile
from sim.model.text import capitalised
from sim.results.bindings import bindings
from sim.results.columns import TABLES
from sim.results.formats import TextTable, count_text, ms_text
from sim.results.journal import Journal
from sim.results.page import Block, Page
from sim.results.rates import Tables
from sim.results.side_by_side import texts
from sim.results.summary import PRINTED, in_words
from sim.runtime.result import Result
from sim.studies.compare import comparison_of
from sim.studies.comparison import Comparison
from sim.studies.plan import cells, with_baselines
from sim.studies.run_folder import ADVICE, ANSWER, DIFF, FolderError, read_folder

# ---- The page of a comparison.


def comparison_page(
    comparison: Comparison, assumptions: Sequence[str], backtest: Backtest | None, summary: Mapping[str, Any]
) -> Page:
    """Return the page of a comparison by `run`.

    `backtest`: of an imported job.  `summary`: what `run` stores: command, findings, notes, outcomes, violations, version.
    """
    findings = list(map(str, summary.get("findings", ())))
    runs = {name: found[0].tables for name, found in comparison.results.items()}
    blocks = list(_blocks(comparison, runs, summary))
    if backtest is not None:
        blocks.append(history(backtest))
    return Page(
        f"Checkpoints of {comparison.name}",
        comparison.question,
        comparison.verdict,
        blocks,
        [line for line in assumptions if not any(line in finding for finding in findings)],
        str(summary.get("command", "")),
        findings,
        provenance_text(summary),
        _verdict_cells(comparison, blocks),
    )


def _verdict_cells(comparison: Comparison, blocks: Sequence[Block]) -> dict[tuple[int, int], tuple[int, int, int]]:
    """Return the cell of each number of the verdict; the table of the page has a column per strategy."""
    number = next(i for i, block in enumerate(blocks) if block.title == _SIDE_BY_SIDE)
    bound = bindings(comparison.verdict, comparison.strategies)
    return {(own.begin, own.end): (number, own.column - 1, own.row + 1) for own in bound if own.row >= 0}


_SIDE_BY_SIDE = "The strategies side by side"


def _blocks(comparison: Comparison, runs: Mapping[str, Tables], summary: Mapping[str, Any]) -> Iterator[Block]:
    header, rows = texts(comparison.strategies)
    titles = {column.heading: capitalised(column.title) for column in PRINTED}
    named = [titles.get(name, capitalised(name)) for name in header]
    yield from (Block("", str(note)) for note in summary.get("notes", ()))
    yield Block(_SIDE_BY_SIDE, table=_transposed(named, rows))
    yield from (Block(f"{name}: no result", code=f"{name}: {error}") for name, error in comparison.errors.items())
    for name, stories in summary.get("violations", {}).items():
        if stories:
            yield Block(f"{name}: a run broke what checkpoints promise", code=f"violation: {name}: {stories[0]}")
    yield from (Block("", str(outcome)) for outcome in summary.get("outcomes", ()))
    drawn = phases(runs, end_s(runs))
    yield Block(
        "How long each checkpoint takes, by phase",
        chart=drawn,
        caption=_phases_caption(comparison),
        text="" if drawn is not None else "No checkpoint is over.",
    )
    yield from checkpoint_blocks(comparison)
    yield from _through_time(comparison, runs)
    if (consequences := comparison.consequences_texts()) is not None:
        yield Block("Failures, recovery and commits", comparison.consequences_sentence, _transposed(*consequences))
    for section in comparison.stored:
        yield Block(section.title, table=section)


def _through_time(comparison: Comparison, runs: Mapping[str, Tables]) -> Iterator[Block]:
    failures, triggers = failures_s(runs), triggers_s(runs)
    for quantity in QUANTITIES.values():
        curves = curves_of(quantity, comparison)
        if all((curve == 0).all() for curve in curves.values()):
            continue
        drawn = lines(
            curves, quantity.unit, triggers=triggers, failures=failures, warmup_s=comparison.warmup_s, end_s=end_s(runs)
        )
        yield Block(quantity.title, chart=drawn, caption=_caption(quantity, curves, len(failures), next(iter(runs))))


def _caption(quantity: PlottedQuantity, curves: Mapping[str, pd.Series[float]], failures: int, first: str) -> str:
    means = [
        f"{name}: {count_text(curve.mean())} on average, {count_text(curve.max())} at most"
        for name, curve in curves.items()
    ]
    same = [
        f"{', '.join(names[:-1])} and {names[-1]} are identical"
        for names in group_identical_curves(curves).values()
        if len(names) > 1
    ]
    marked = [f"{failures} failure{'s' if failures > 1 else ''} marked"] if failures else []
    return (
        f"{quantity.title} through time, {quantity.unit}. "
        + "; ".join([*means, *same, *marked])
        + f". Ticks: checkpoints triggered with {first}."
    )


def _phases_caption(comparison: Comparison) -> str:
    rows = [
        f"{line.label}: median {ms_text(line.summary.end_to_end_p50_ms)}"
        for line in comparison.strategies
        if line.summary.completed
    ]
    return "A bar per checkpoint, stacked by the phases of its critical path. " + "; ".join(rows) + "."


def _transposed(header: list[str], rows: list[list[str]]) -> TextTable:
    """Return a table with a column per strategy instead of a row: pages are read on narrow screens too."""
    names, *columns = (list(column) for column in zip(header, *rows, strict=True))
    return TextTable("", ["", *names[1:]], columns)


# ---- Results of `run` for a page, read from their folder.


def stored_comparison(folder: Path) -> Page:
    """Return the page of the results that `run` stored in a folder.

    FolderError: the folder has no such results, or they do not match its scenario.  ScenarioError: the stored scenario is
    invalid.
    """
    kept = read_folder(folder)
    if (folder / "manifest.json").is_file() and not (folder / "comparison.json").is_file():
        raise FolderError(f"{folder}: is a single run of a comparison: give its parent folder")
    results, planned = [], cells(kept.study.scenarios)
    for cell in with_baselines(planned):
        place = kept.folder_of(cell.scenario)
        if place is not None:
            results.append(_read_run(place, cell.scenario))
    if all(kept.folder_of(cell.scenario) is None for cell in planned):
        raise FolderError(
            f"{folder}: the scenario, a trace that it reads, or ckptsim has changed since the run: repeat it with 'ckptsim run'"
        )
    summary = kept.summary
    comparison = replace(
        comparison_of(results),
        question=kept.study.question,
        name=kept.study.name,
        errors=dict(summary.get("errors", {})),
        prices=Prices(**summary["prices"]) if "prices" in summary else S3_STANDARD,
    )
    return comparison_page(comparison, assumptions(kept.study, kept.text), kept.study.backtest, summary)


def assumptions(study: ScenarioFile, text: str) -> tuple[str, ...]:
    """Return the assumptions of a study: values marked UNKNOWN, values that no recording covers, and the backtest."""
    lines = unknown_values(text)
    if finding := warning(study.scenarios):
        lines.append(finding)
    if study.backtest is not None:
        lines += [verdict(study.backtest), *sentences(study.backtest, study.scenarios)]
    lines.append("Simulated: a simulated run is exactly repeatable, a real job is not.")
    return tuple(lines)


def unknown_values(text: str) -> list[str]:
    """Return ``checkpoint.interval: 1 s (unknown: how often?)`` for every value that a scenario file marks UNKNOWN."""
    return [
        f"{unknown.key}{'' if unknown.assumed is None else f': {unknown.assumed}'} (unknown: {unknown.question})"
        for unknown in unknowns(text)
    ]


def provenance_text(kept: Mapping[str, Any]) -> str:
    """Return ``ckptsim 0.1.0 (code ...), 2026-11-23 07:15 UTC``, or "" for results of older versions."""
    return f"ckptsim {kept['version']}, {kept['date']}" if "version" in kept and "date" in kept else ""


def _read_run(folder: Path, scenario: Scenario) -> Result:
    try:
        tables: dict[str, Any] = {name: pd.read_parquet(folder / f"{name}.parquet") for name in TABLES}
        manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
        status = str(manifest["job_status"])
        ended_ns = (
            scenario.run.duration_ns if status == "RUNNING" and not scenario.run.ends_caught_up else _last_ns(folder)
        )
    except (OSError, ValueError, LookupError) as error:
        raise FolderError(f"{folder}: is not what 'ckptsim run' wrote: {error}".splitlines()[0]) from None
    return Result(
        scenario=scenario, **tables, journal=Journal(), manifest_read=manifest, job_status=status, ended_ns=ended_ns
    )


def _last_ns(folder: Path) -> int:
    """Return the time of the last journal entry [ns], which is the end of a job that did not run until the end."""
    with (folder / "journal.jsonl").open(encoding="utf-8") as journal:
        return max((int(json.loads(line)[0]) for line in journal), default=0)


# ---- The page of an answer that `sweep`, `advise` or `diff` stored.


def answer_page(folder: Path, name: str) -> Page:
    """Return the page of the answer in the file `name` of a folder.  FolderError: it cannot be read."""
    try:
        kept = json.loads((folder / name).read_text(encoding="utf-8"))
        table = pd.read_parquet(folder / "results.parquet")
        title, question, verdict, command = (str(kept[key]) for key in ("title", "question", "verdict", "command"))
        parts, assumptions = list(kept["parts"]), [str(line) for line in kept["assumptions"]]
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise FolderError(f"{folder}: is not what 'ckptsim sweep' or 'advise' wrote: {error}".splitlines()[0]) from None
    names = [name for name in table.columns if "_" in name]
    blocks = [*_parts(parts, names), *_intervals(kept, table)]
    findings = [str(line) for line in kept.get("findings", ())]
    return Page(title, question, spelled(verdict, names), blocks, assumptions, command, findings, provenance_text(kept))


def _parts(parts: list[Any], names: list[str]) -> Iterator[Block]:
    """Yield blocks of text, tables, and configuration."""
    for part in parts:
        if isinstance(part, str):
            lines = part.strip().splitlines()
            if len(lines) < 2:
                yield Block("", spelled(part, names))
            else:
                differs = any(line.startswith(("+ ", "- ")) for line in lines)
                yield Block("Configuration, against today" if differs else "Configuration", code=part)
        else:
            title, _, rest = spelled(str(part["title"]), names).partition(". ")
            yield Block(
                capitalised(title),
                f"{capitalised(rest)}." if rest else "",
                table=TextTable("", [heading(name) for name in part["header"]], part["rows"]),
            )


def _intervals(kept: dict[str, Any], table: pd.DataFrame) -> Iterator[Block]:
    """Yield the chart of a sweep's answer; none for other answers, whose files do not tell what to draw."""
    columns = [name for name in kept.get("show", ()) if pd.api.types.is_numeric_dtype(table[name])]
    rows = table[(table["status"] == "ok") & (table["strategy"] != "none")] if columns else table
    if columns and len(rows) and (drawn := intervals(table, kept["settings"], columns)) is not None:
        caption = "Mean over windows and seeds per setting, with 95 % confidence intervals."
        yield Block("Values and confidence intervals", chart=drawn, caption=caption)


def spelled(text: str, names: list[str]) -> str:
    """Replace column names in the text by words."""
    for name in sorted(names, key=len, reverse=True):
        text = re.sub(rf"\b{re.escape(name)}\b", in_words(name), text)
    return text


def heading(name: str) -> str:
    """Return a column name as words, and any other text unchanged."""
    return in_words(name) if "_" in name and " " not in name else name


# ---- The page of a results folder.


def page_of(folder: Path) -> Page:
    """Return the page of a results folder of any verb.  FolderError, ScenarioError: it cannot be read."""
    if not folder.is_dir():
        raise FolderError(
            f"{folder}: is not a folder of results: 'ckptsim run FILE --out FOLDER', 'sweep', 'advise' and 'diff' write one"
        )
    for name in (ANSWER, ADVICE, DIFF):
        if (folder / name).is_file():
            return answer_page(folder, name)
    return stored_comparison(folder)
