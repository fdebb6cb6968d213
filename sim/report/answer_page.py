"""The answer of a sweep, or an advice, as it was kept -> its page."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from sim.analysis.section import TextTable
from sim.explain.runs import FolderError
from sim.prose import capitalised
from sim.quantities.results import in_words
from sim.report.advice_figure import advice_block
from sim.report.page import Block, Page
from sim.report.results import provenance_text
from sim.report.sweep_figures import heat_map, intervals, sensitivity, trade_off
from sim.report.window_figure import MOST_WINDOWS, WINDOW, per_window

ANSWER, ADVICE, DIFF = "answer.json", "advice.json", "diff.json"
"""What `sweep`, `advise` and `diff` keep for a report, beside their rows."""


def answer_page(folder: Path, name: str) -> Page:
    """Raises FolderError."""
    try:
        kept = json.loads((folder / name).read_text(encoding="utf-8"))
        table = pd.read_parquet(folder / "results.parquet")
        title, question, verdict, command = (str(kept[key]) for key in ("title", "question", "verdict", "command"))
        parts, assumptions = list(kept["parts"]), [str(line) for line in kept["assumptions"]]
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise FolderError(f"{folder}: is not what 'ckptsim sweep' or 'advise' wrote: {error}".splitlines()[0]) from None
    names = [name for name in table.columns if "_" in name]
    blocks = [*_parts(parts, names), *_figures(kept, table)]
    if (picture := advice_block(kept.get("data", {}))) is not None:
        first_titled = next((i for i, block in enumerate(blocks) if block.title), len(blocks))
        blocks.insert(first_titled, picture)
    findings = [str(line) for line in kept.get("findings", ())]
    return Page(title, question, _spelled(verdict, names), blocks, assumptions, command, findings, provenance_text(kept))


def _parts(parts: list[Any], names: list[str]) -> Iterator[Block]:
    """Texts, tables, and configuration to paste."""
    for part in parts:
        if isinstance(part, str):
            lines = part.strip().splitlines()
            if len(lines) < 2:
                yield Block("", _spelled(part, names))
            elif not lines[0].startswith("#"):  # columns of words
                yield Block("", code=part)
            else:
                differs = any(line.startswith(("+ ", "- ")) for line in lines)
                yield Block("Configuration, against today" if differs else "Configuration", code=part)
        else:
            heading, _, rest = _spelled(str(part["title"]), names).partition(". ")
            yield Block(
                capitalised(heading), f"{capitalised(rest)}." if rest else "",
                table=TextTable("", [_heading(name) for name in part["header"]], part["rows"]),
            )  # fmt: skip


def _figures(kept: dict[str, Any], table: pd.DataFrame) -> Iterator[Block]:
    """Only a sweep with a question says what to draw."""
    settings, columns = (
        list(kept.get("settings", ())),
        [name for name in kept.get("show", ()) if pd.api.types.is_numeric_dtype(table[name])],
    )
    if not settings or not columns:
        return
    rows = table[(table["status"] == "ok") & (table["strategy"] != "none")]
    if rows.empty:
        return
    pair = " and ".join(in_words(column) for column in columns[:2])
    if (drawn := intervals(table, settings, columns)) is not None:
        yield Block(
            "Values and how sure they are", chart=drawn, caption="Mean over windows and seeds per setting, with 95 % confidence intervals."
        )
    depends = str(kept.get("depends", ""))
    drawn = per_window(rows, settings, depends) if depends in rows else None
    if drawn is not None:
        count = rows[WINDOW].nunique()
        others = f" The first {MOST_WINDOWS} of {count} windows." if count > MOST_WINDOWS else ""
        caption = f"A panel per window on one scale: {in_words(depends)}, mean (dot; open: more than that) and span over seeds.{others}"
        yield Block("Window by window", chart=drawn, caption=caption)
    if (drawn := trade_off(table, settings, columns)) is not None:
        yield Block("What one costs the other", chart=drawn, caption=f"A point per setting: {pair}.")
    if (drawn := heat_map(rows, settings, columns[0])) is not None:
        yield Block("Over two settings", chart=drawn, caption=f"The mean of {in_words(columns[0])}, darker is more.")
    varied = [str(name) for name in kept.get("varied", ()) if name in rows]
    if depends in rows and (drawn := sensitivity(rows, varied, depends)) is not None:
        name = in_words(depends)
        caption = f"Share of the variance of {name} between settings and windows that each key explains: alone, and with others."
        yield Block(f"What {name} depends on, drawn", chart=drawn, caption=caption)


def _spelled(text: str, names: list[str]) -> str:
    """The text without names of columns: their values carry units already."""
    for name in sorted(names, key=len, reverse=True):
        text = re.sub(rf"\b{re.escape(name)}\b", in_words(name), text)
    return text


def _heading(name: str) -> str:
    """A name of a column, as words; others stay."""
    return in_words(name) if "_" in name and " " not in name else name
