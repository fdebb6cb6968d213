"""Two answers of `sweep` or `advise` side by side, setting by setting, as they were kept."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import Any

import pandas as pd

from sim.analysis.section import TextTable
from sim.cells.columns import OUTCOME
from sim.differences.effects import LEADING, SIDE, A, B, QuantityDifference, quantities
from sim.differences.kept import KeptAnswer
from sim.differences.texts import LABEL, LINES, WIDTH
from sim.explain.runs import FolderError
from sim.foreign import one_line

_NOT_AXES = ("scenario", "replication", "seed", "throughput_change", *OUTCOME)


@dataclass(frozen=True, slots=True)
class ComparedAnswers:
    """Two kept answers, compared."""

    verdict: str
    screen: str
    tables: list[TextTable]
    data: dict[str, Any]
    rows: pd.DataFrame


def compared(first: KeptAnswer, second: KeptAnswer) -> ComparedAnswers:
    """FolderError: they have no setting in common."""
    axes = [name for name in first.rows.columns if name not in _NOT_AXES and name in second.rows.columns]
    rows = pd.concat([_side(first.rows, A, axes), _side(second.rows, B, axes)], ignore_index=True)
    of_a, of_b = (set(rows.loc[rows[SIDE] == side, "setting"]) for side in (A, B))
    both = [name for name in dict.fromkeys(rows["setting"]) if name in of_a & of_b]
    if not both:
        raise FolderError(f"{first.folder} and {second.folder}: have no setting in common")
    found = {name: _of_setting(rows[rows["setting"] == name]) for name in both}
    apart = [(name, own) for name, answer in found.items() for own in answer if not own.is_same]
    table = TextTable(
        "Settings that both tried, mean over the same seeds", ["setting", "quantity", "A", "B", "B - A"],
        [[name, own.title, *own.sides_text(), own.effect_text()] for name, own in apart],
    )  # fmt: skip
    configured = _configuration(first.data, second.data)
    verdict = f"Both: {first.verdict}" if first.verdict == second.verdict else f"B: {second.verdict}"
    lines = wrap(verdict, WIDTH)[:4] + ([] if first.verdict == second.verdict else wrap(f"A: {first.verdict}", WIDTH)[:4])
    shown = [*configured[:3], *([f"... and {len(configured) - 3} more"] if len(configured) > 3 else [])]
    lines += [f"{'change' if not i else '':{LABEL}}{line}"[:WIDTH] for i, line in enumerate(shown)]
    lines += _counts(of_a, of_b, found, {name for name, _ in apart})
    lines += [_line(name, own) for name, own in apart if own.column in LEADING]
    data = {
        "verdict": verdict, "verdicts": [first.verdict, second.verdict], "configuration": configured,
        "settings": {name: [own.plain() for own in answer] for name, answer in found.items()},
        "only_in_a": sorted(of_a - of_b), "only_in_b": sorted(of_b - of_a),
    }  # fmt: skip
    return ComparedAnswers(verdict, "\n".join(lines[:LINES]), [table] if apart else [], data, rows)


def _side(rows: pd.DataFrame, side: str, axes: list[str]) -> pd.DataFrame:
    varied = [name for name in axes if name != "strategy"]
    setting = rows[varied].apply(lambda row: ", ".join(_value_texts(row)), axis=1)
    named = setting.where(setting != "", rows["strategy"]) if varied else rows["strategy"]
    bare = rows["strategy"].eq("none")
    made = rows[~bare].copy()
    made[SIDE], made["setting"] = side, named[~bare]
    return made


def _value_texts(row: pd.Series[Any]) -> Iterator[str]:
    """``checkpoint.interval 10 s``; what an advice varies has no key of a scenario, and its value says enough."""
    for key, value in row.items():
        if isinstance(value, str) and value:
            yield f"{key} {value}" if "." in str(key) else value


def _of_setting(rows: pd.DataFrame) -> list[QuantityDifference]:
    """Over the seeds that both sides ran."""
    seeds = [set(rows.loc[rows[SIDE] == side, "seed"]) for side in (A, B)]
    paired = rows[rows["seed"].isin(seeds[0] & seeds[1])].drop_duplicates([SIDE, "seed"])
    return quantities(paired.assign(replication=paired["seed"])) if len(paired) else []


def _configuration(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """The lines of the advised configuration that differ."""
    old, new = (str(side.get("configuration", "")).splitlines() for side in (before, after))
    return [*(f"- {line}" for line in old if line not in new), *(f"+ {line}" for line in new if line not in old)]


def _counts(of_a: set[str], of_b: set[str], both: Mapping[str, Sequence[QuantityDifference]], differing: set[str]) -> list[str]:
    unpaired = sum(not answer for answer in both.values())
    only = [f"{len(own)} only in {side}" for side, own in ((A, of_a - of_b), (B, of_b - of_a)) if own]
    what = ", ".join([
        f"{len(both)} setting{'' if len(both) == 1 else 's'} in both, {len(differing)} with other results",
        *([f"{unpaired} without a seed that both ran"] if unpaired else []), *only,
    ])  # fmt: skip
    return [f"{'tried':{LABEL}}{what}"]


def _line(name: str, own: QuantityDifference) -> str:
    short = ", ".join(re.sub(r"^(?:[a-z][\w-]*\.)+(?=[a-z])", "", value) for value in name.split(", "))  # without the section of a key
    text = one_line(f"{short}: {own.text}", 400)
    line = f"{'':{LABEL}}{text}"
    return line if len(line) <= WIDTH else f"{line[: WIDTH - 3]}..."
