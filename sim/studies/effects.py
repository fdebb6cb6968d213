"""The effect of differing inputs, for `ckptsim diff`: quantities of both sides, their paired change, and texts about it."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from textwrap import wrap
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from sim.model.quantities import COST, S3_STANDARD, USE, Prices
from sim.model.text import capitalised, listed, one_line
from sim.results.columns import text as value_text
from sim.results.columns import unit_of
from sim.results.estimates import PairedChange, paired_change
from sim.results.formats import MISSING, TextTable, change_text, json_ready
from sim.results.summary import STATISTICS, has_sample
from sim.results.sweep_effects import DEAD
from sim.studies.cells import outcome
from sim.studies.differences import InputDifferences
from sim.studies.local import run_each
from sim.studies.plan import cells
from sim.studies.progress import Watch, no_watch

if TYPE_CHECKING:
    from sim.plane import Engine


# ---- Quantities on both sides. A replication has the same random numbers on both sides, so differences are paired.

Values: TypeAlias = NDArray[np.float64]
A, B = "A", "B"
SIDE = "side"
"""Column with the side of a row: A or B."""
LEADING = (
    "end_to_end_p50_ms",
    "end_to_end_max_ms",
    "throughput_per_second",
    "visible_p99_ms",
    "caught_up_ms",
    "checkpointed_bytes",
    COST,
)
"""Columns that the overview prefers, in this order."""
MIN_UNLIKE_SHARE = 0.1
"""Minimum difference of a kind's share of the failures for which what failures cost is not compared."""
WORTH_NAMING = 0.1
"""Minimum relative change that the verdict prefers; repetitions of a real job differ by as much (`sim.results.estimates`)."""


@dataclass(frozen=True, slots=True)
class QuantityDifference:
    """The means of a quantity (result column) on both sides, and its change.  NaN if a side has no value."""

    column: str
    before: float
    after: float
    change: PairedChange
    bounds: frozenset[str]  # sides whose value is a lower bound, because some run ended too early

    @property
    def title(self) -> str:
        return STATISTICS[self.column].title

    @property
    def is_same(self) -> bool:
        """Return True if both sides and their change look equal when rounded to two or three digits.

        False if a value is a lower bound or missing.
        """
        before, after = self.sides_text()
        return (
            before == after
            and not self.bounds & {A, B}
            and math.isfinite(self.change.value)
            and value_text(self.column, abs(self.change.value)) == value_text(self.column, 0.0)
        )

    @property
    def is_sure(self) -> bool:
        """Return True if the sign of the change is certain: its interval excludes zero, and no lower bound can reverse it."""
        # the true value of a side with a lower bound may be higher, which may reverse an increase of A or a decrease of B
        can_turn = {A: self.change.value > 0, B: self.change.value < 0}
        return (
            self.change.is_sure
            and not self.bounds >= {A, B}
            and not any(can_turn[side] for side in self.bounds & {A, B})
        )

    @property
    def is_of_one_side(self) -> bool:
        """Return True if only one side has a value."""
        return math.isfinite(self.before) != math.isfinite(self.after)

    @property
    def share(self) -> float:
        """Return the absolute change relative to the value before."""
        return abs(self.change.value / self.before) if self.before else math.inf

    def sides_text(self) -> tuple[str, str]:
        """Return the values of (A, B) as texts, lower bounds as ``> 12 s``."""
        texts = ((side, value_text(self.column, value)) for side, value in ((A, self.before), (B, self.after)))
        before, after = (f"> {text}" if side in self.bounds and text != MISSING else text for side, text in texts)
        return before, after

    def effect_text(self) -> str:
        """Return the change from A to B, e.g. ``+194/s``.

        If B is a lower bound, it is ``> +194/s``; if A is a lower bound, ``< +194/s``; if both are, MISSING.
        """
        change, ends = self.change, self.bounds
        if len(ends) > 1 or not math.isfinite(change.value):
            return MISSING
        known = PairedChange(change.value, math.inf) if ends else change
        return ("" if not ends else "< " if A in ends else "> ") + known.text(partial(value_text, self.column))

    @property
    def text(self) -> str:
        """Return ``throughput: 196/s -> 389/s (+194/s)``."""
        (before, after), change = self.sides_text(), self.effect_text()
        if self.is_same:
            return f"{self.title}: {before}, the same"
        return f"{self.title}: {before} -> {after}" + ("" if change == MISSING else f" ({change})")

    def relative_text(self) -> str:
        """Return the change in percent of A, or MISSING if it is not defined or a value is a lower bound."""
        return (
            change_text(self.change.value / self.before)
            if self.before and not self.bounds & {A, B} and math.isfinite(self.before)
            else MISSING
        )

    def plain(self) -> dict[str, Any]:
        """Return the values for JSON; None for missing values."""
        return {
            "quantity": self.column,
            "title": self.title,
            "unit": unit_of(self.column).symbol,
            "before": json_ready(self.before),
            "after": json_ready(self.after),
            "change": json_ready(self.change.value),
            "half_width": json_ready(self.change.half_width),
            "bounds": "".join(side for side in (A, B) if side in self.bounds),
        }


def runs(
    found: InputDifferences,
    *,
    prices: Prices = S3_STANDARD,
    engine: Engine = "compiled",
    jobs: int | None = None,
    watch: Watch = no_watch,
) -> pd.DataFrame:
    """Simulate both sides.  Return a row per side and replication, with the columns of `sim.studies.cells` and the storage cost."""
    planned = [(side, cell) for side, scenario in ((A, found.before), (B, found.after)) for cell in cells([scenario])]
    rows = dict(run_each(partial(outcome, engine=engine), [cell for _, cell in planned], jobs=jobs, watch=watch))
    made = [
        {SIDE: name, "replication": cell.replication, **rows[i]}
        | ({COST: prices.cost_per_month(rows[i])} if set(USE) <= set(rows[i]) else {})
        for i, (name, cell) in enumerate(planned)
    ]
    return pd.DataFrame(made)


def simulated_ns(found: InputDifferences) -> tuple[int, int]:
    """Return (number of runs, total simulated time [ns]) of `runs`."""
    count = 2 * found.before.run.replications
    return count, count * found.before.run.duration_ns


def quantities(rows: pd.DataFrame) -> list[QuantityDifference]:
    """Return the quantities that have a value on at least one side."""
    sides = {side: rows[rows[SIDE] == side].sort_values("replication").to_dict("records") for side in (A, B)}
    have_unlike_causes = bool(unlike_failures(rows, by_cause=True))
    before, after = sides[A], sides[B]
    columns = [name for name, column in STATISTICS.items() if column.title and name in rows]
    found = []
    for column in columns:
        old, new = _values(column, before), _values(column, after)
        if np.isnan(old).all() and np.isnan(new).all():
            continue
        bounds = frozenset(
            name for name, own in sides.items() if any(column in str(row.get("unfinished", "")).split() for row in own)
        )
        is_compared = not (have_unlike_causes and STATISTICS[column].of == "failures")
        change = paired_change(old, new) if is_compared else PairedChange(math.nan, math.nan)
        found.append(QuantityDifference(column, float(old.mean()), float(new.mean()), change, bounds))
    return found


def unlike_failures(rows: pd.DataFrame, *, by_cause: bool = False) -> str:
    """Return a sentence on the failures of both sides if the share of some kind differs, or "".

    `by_cause`: do not distinguish failures after which all tasks restart from others.
    """
    counts: dict[str, Counter[str]] = {A: Counter(), B: Counter()}
    for side, text in rows[[SIDE, "failure_kinds"]].dropna().itertuples(index=False):
        for number, kind in re.findall(r"(\d+) ([^,]+)", text):
            counts[side][kind.partition(" ")[0] if by_cause else kind] += int(number)
    before, after = counts.values()
    kinds = {*before, *after}
    if not (before and after) or all(
        abs(before[kind] / before.total() - after[kind] / after.total()) < MIN_UNLIKE_SHARE for kind in kinds
    ):
        return ""
    texts = (
        f"{side} has {listed([f'{count} {kind}' for kind, count in sorted(own.items())])}"
        for side, own in counts.items()
    )
    return f"Failures are unlike, and so are downtime and time until caught up: {'; '.join(texts)}"


def leading(found: Sequence[QuantityDifference]) -> QuantityDifference | None:
    """Return the quantity that the verdict is about, or None if there is none.

    In order of preference: completed checkpoints, if one side has none; the first certain change of at least WORTH_NAMING,
    in the order of LEADING; the largest certain change; a quantity that only one side has.
    """
    by_column = {quantity.column: quantity for quantity in found}
    completed = by_column.get("completed")
    if completed is not None and min(completed.before, completed.after) == 0 < max(completed.before, completed.after):
        return completed
    ordered = [
        *(by_column[column] for column in LEADING if column in by_column),
        *(quantity for quantity in found if quantity.column not in LEADING),
    ]
    sure = [quantity for quantity in ordered if not quantity.is_same and quantity.is_sure]
    alone = next((quantity for quantity in ordered if quantity.is_of_one_side), None)
    largest = max(sure, key=lambda quantity: quantity.share, default=alone)
    return next((quantity for quantity in sure if quantity.share >= WORTH_NAMING), largest)


def trouble(rows: pd.DataFrame) -> list[str]:
    """Return messages on runs with errors, violated invariants, and failed jobs, for each side."""
    found = []
    for name, own in rows.groupby(SIDE, sort=False):
        failed = own[own["status"] != "ok"]
        if len(failed):
            found.append(f"{name}: {len(failed)} of {len(own)} runs failed: {failed.iloc[0]['error']}")
            continue
        broken, dead = own[own["violations"] > 0], own[own["job_status"].str.startswith(DEAD)]
        if len(broken):
            found.append(
                f"{name}: a run broke what checkpoints promise: {str(broken.iloc[0]['violation']).splitlines()[0]}"
            )
        if len(dead):
            found.append(f"{name}: the job died in {len(dead)} of {len(own)} runs: {dead.iloc[0]['job_status']}")
    return found


def _values(column: str, rows: Sequence[Mapping[Any, Any]]) -> Values:
    """Return a value per row.  NaN if the run failed, if there was nothing to measure, or if a percentile has too small a sample."""
    is_known = [
        row["status"] == "ok" and has_sample(column, row) and column not in str(row.get("nothing", "")).split()
        for row in rows
    ]
    return np.array([float(row[column]) if known else math.nan for row, known in zip(rows, is_known, strict=True)])


# ---- Texts: an overview of at most 15 lines of 80 characters, and tables.

WIDTH, LINES, LABEL = 80, 15, 8
"""Characters per line, lines of the overview, and characters of the label column."""
MAX_INPUTS, MAX_QUANTITIES = 6, 3
"""Maximum differing inputs and maximum quantities in the overview; the tables list all of them."""
MAX_VALUE_CHARS = 60
"""Maximum characters of a value in a table; JSON has the full value."""
NO_DIFFERENCE = "Nothing that is simulated differs: the same values, or values that mean the same."


def verdict(found: InputDifferences, answer: Sequence[QuantityDifference], *, has_failed: bool = False) -> str:
    """Return a sentence on the effect of the differing inputs.  `has_failed`: some runs have no values."""
    if not found.changes:
        only = [*(["names of vertices"] if found.renamed else []), *(["how they run"] if found.runs else [])]
        return f"Nothing that is simulated differs but {' and '.join(only)}." if only else NO_DIFFERENCE
    first = leading(answer)
    if has_failed and (first is None or first.is_of_one_side):
        return f"{_count_inputs(found)}; runs failed, so what that changes is not known."
    if first is None:
        return f"{_count_inputs(found)}, and no quantity surely changes."
    text = capitalised(first.text)
    return f"{text}, from {found.changes[0].key}." if len(found.changes) == 1 else f"{text}; {_count_inputs(found)}."


def screen(found: InputDifferences, answer: Sequence[QuantityDifference], said: str, runs: str) -> str:
    """Return the overview: the verdict (`said`), differing inputs, the main quantities, and a line on the runs (`runs`)."""
    lines = wrap(said, WIDTH)
    if not found.changes:
        return "\n".join([*lines, *_labelled("inputs", list(_vertices(found)))])
    below = _labelled("answer", list(_leading_lines(answer)))
    below += _labelled("runs", [runs])
    vertices = list(_vertices(found))
    room = LINES - len(lines) - len(below) - len(vertices) - 2
    listed = found.changes[: min(max(room, 0), MAX_INPUTS)]
    left = len(found.changes) - len(listed)
    inputs = [change.sentence() for change in listed]
    more = [f"... and {left} more below"] if left else []
    lines += _labelled("inputs", [_count_inputs(found), *vertices, *inputs, *more])
    return "\n".join([*lines[: LINES - len(below)], *below][:LINES])


def tables(found: InputDifferences, answer: Sequence[QuantityDifference]) -> list[TextTable]:
    """Return tables of differing inputs and of differing quantities."""
    made = []
    if found.changes:
        rows = [
            [
                own.key,
                one_line(own.before_text, MAX_VALUE_CHARS),
                one_line(own.after_text, MAX_VALUE_CHARS),
                own.kind,
                ", ".join(own.flink),
            ]
            for own in found.changes
        ]
        made.append(TextTable("Inputs that differ", ["key", "A", "B", "about", "Flink"], rows))
    different = [quantity for quantity in answer if not quantity.is_same]
    if different:
        rows = [[row.title, *row.sides_text(), row.effect_text(), row.relative_text()] for row in different]
        made.append(TextTable("Quantities, mean over the same seeds", ["quantity", "A", "B", "B - A", "share"], rows))
    return made


def same_quantities(answer: Sequence[QuantityDifference]) -> str:
    """Return a sentence that lists equal quantities, or "" if all differ."""
    same = [own.title for own in answer if own.is_same]
    return f"The same on both sides: {'; '.join(same)}." if same else ""


def _count_inputs(found: InputDifferences) -> str:
    count = len(found.changes)
    return f"{count} input{'' if count == 1 else 's'} {'differs' if count == 1 else 'differ'}"


def _vertices(found: InputDifferences) -> Iterator[str]:
    """Yield a line each on renamed, added and removed vertices, if there are any."""
    if found.renamed:
        yield f"renamed: {', '.join(f'{old} -> {new}' for old, new in found.renamed)}"
    for what, names in (("added", found.added), ("removed", found.removed)):
        if names:
            yield f"{what}: {', '.join(names)}"


def _leading_lines(answer: Sequence[QuantityDifference]) -> Iterator[str]:
    """Yield a line for the quantity of the verdict, and for others of LEADING."""
    first = leading(answer)
    known = [own for column in LEADING for own in answer if own.column == column and own is not first]
    listed = [*([first] if first is not None else []), *known][:MAX_QUANTITIES]
    for own in listed:
        yield own.text


def _labelled(label: str, texts: Sequence[str]) -> list[str]:
    """Return a line per text, the first one with the label."""
    return [f"{label if not i else '':{LABEL}}{_cut(text)}" for i, text in enumerate(texts)]


def _cut(text: str) -> str:
    line = one_line(text, 400)
    return line if len(line) <= WIDTH - LABEL else f"{line[: WIDTH - LABEL - 3].rstrip()}..."
