"""What differences of inputs do to an answer: both sides and every step between them, under the same random numbers.

A step is A with its options changed alone.  What all changes together do beyond the sum of the steps is their interaction.
Differences are run by run: each replication meets the same load on all sides (common random numbers).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from sim.analysis.json_ready import json_ready
from sim.analysis.number_texts import NONE, change_text
from sim.analysis.paired import PairedChange, paired_change
from sim.analysis.sweeps.measure import text as value_text
from sim.analysis.sweeps.observed import DEAD
from sim.cells.cell import Row, outcome
from sim.cells.local import Watch, no_watch, run_each
from sim.cells.plan import cells
from sim.quantities.prices import COST, S3_STANDARD, USE, Prices
from sim.quantities.results import STATISTICS, has_sample, unit

if TYPE_CHECKING:
    from sim.differences.inputs import InputDifferences
    from sim.plane import Engine

Values: TypeAlias = NDArray[np.float64]
A, B = "A", "B"
SIDE = "side"
"""The column that says of what a row is: A, B, or the name of a step."""
LEADING = ("end_to_end_p50_ms", "end_to_end_max_ms", "throughput_per_second", "visible_p99_ms", "caught_up_ms", "checkpointed_bytes", COST)
"""What the screen shows first, in this order."""
WORTH_NAMING = 0.1
"""Repetitions of one real job differ by as much (`sim.analysis.strategies.noise`)."""


@dataclass(frozen=True, slots=True)
class QuantityDifference:
    """A quantity of the catalogue on both sides.  `steps`: what each change alone does to it, by name."""

    column: str
    before: float
    after: float
    change: PairedChange
    bounds: frozenset[str]  # sides and steps of which a run did not see the end: their values are lower bounds
    steps: Mapping[str, PairedChange]

    @property
    def title(self) -> str:
        return STATISTICS[self.column].title

    @property
    def is_same(self) -> bool:
        """Whether both sides have the same text, which has two or three digits.  Bounds and missing values are not the same."""
        before, after = self.sides_text()
        return before == after and not self.bounds & {A, B} and math.isfinite(self.change.value) and not self.is_shown(self.change)

    @property
    def is_sure(self) -> bool:
        """Whether the change has a direction: the interval leaves out zero, and no bound may turn it."""
        can_turn = {A: self.change.value > 0, B: self.change.value < 0}
        return self.change.is_sure and not self.bounds >= {A, B} and not any(can_turn[side] for side in self.bounds & {A, B})

    @property
    def is_of_one_side(self) -> bool:
        """Whether one side has a value and the other has none."""
        return math.isfinite(self.before) != math.isfinite(self.after)

    def is_shown(self, change: PairedChange) -> bool:
        """Whether a change is more than nothing in the digits of a text."""
        return value_text(self.column, abs(change.value)) != value_text(self.column, 0.0)

    @property
    def interaction(self) -> float:
        """What all changes do together beyond what each does alone; nan: a step has no value, or a bound."""
        return math.nan if self.bounds else self.change.value - sum(step.value for step in self.steps.values())

    @property
    def largest(self) -> str:
        """The step that does most; empty: none does anything."""
        known = {name: abs(step.value) for name, step in self.steps.items() if math.isfinite(step.value) and self.is_shown(step)}
        return max(known, key=lambda name: known[name]) if known else ""

    @property
    def share(self) -> float:
        """The change as a share of the value before."""
        return abs(self.change.value / self.before) if self.before else math.inf

    def sides_text(self) -> tuple[str, str]:
        texts = ((side, value_text(self.column, value)) for side, value in ((A, self.before), (B, self.after)))
        before, after = (f"> {text}" if side in self.bounds and text != NONE else text for side, text in texts)
        return before, after

    def effect_text(self, side: str = B) -> str:
        """The change from A to B or to a step, with its sign; of a bound the side that is known."""
        change, ends = self.change if side == B else self.steps[side], self.bounds & {A, side}
        if len(ends) > 1 or not math.isfinite(change.value):
            return NONE
        known = PairedChange(change.value, math.inf) if ends else change
        return ("" if not ends else "< " if A in ends else "> ") + known.text(partial(value_text, self.column))

    @property
    def text(self) -> str:
        """``throughput: 196/s -> 389/s (+194/s)``"""
        (before, after), change = self.sides_text(), self.effect_text()
        if self.is_same:
            return f"{self.title}: {before}, the same"
        return f"{self.title}: {before} -> {after}" + ("" if change == NONE else f" ({change})")

    def relative_text(self) -> str:
        return (
            change_text(self.change.value / self.before)
            if self.before and not self.bounds & {A, B} and math.isfinite(self.before)
            else NONE
        )

    def plain(self) -> dict[str, Any]:
        """JSON-ready; null: no value."""
        steps = {name: {"change": json_ready(step.value), "half_width": json_ready(step.half_width)} for name, step in self.steps.items()}
        return {
            "quantity": self.column, "title": self.title, "unit": unit(self.column), "before": json_ready(self.before),
            "after": json_ready(self.after), "change": json_ready(self.change.value), "half_width": json_ready(self.change.half_width),
            "bounds": "".join(side for side in (A, B) if side in self.bounds), "steps": steps, "interaction": json_ready(self.interaction),
        }  # fmt: skip


def runs(
    found: InputDifferences, *, prices: Prices = S3_STANDARD, engine: Engine = "compiled", jobs: int | None = None,
    watch: Watch = no_watch,
) -> pd.DataFrame:  # fmt: skip
    """A row per side or step and replication: columns of `sim.cells.columns`, and the cost of an object store."""
    named = [(A, found.before), *((step.name, step.scenario) for step in found.steps), (B, found.after)]
    if len(found.steps) == 1:
        named = [named[0], named[-1]]  # the step is B
    planned = [(name, cell) for name, scenario in named for cell in cells([scenario])]
    rows = dict(run_each(partial(_row, engine), [cell for _, cell in planned], jobs=jobs, watch=watch))
    made = [{SIDE: name, "replication": cell.replication, **rows[i], **_cost(rows[i], prices)} for i, (name, cell) in enumerate(planned)]
    return pd.DataFrame(made)


def _cost(row: Row, prices: Prices) -> Row:
    return {COST: prices.cost_per_month(row)} if set(USE) <= set(row) else {}


def _row(engine: Engine, cell: Any, progress: Any) -> Row:
    return outcome(cell, engine, progress)


def simulated_ns(found: InputDifferences) -> tuple[int, int]:
    """(cells, simulated time of all) that `runs` will run."""
    sides = 2 + (len(found.steps) if len(found.steps) > 1 else 0)
    count = sides * found.before.run.replications
    return count, count * found.before.run.duration_ns


def quantities(rows: pd.DataFrame) -> list[QuantityDifference]:
    """Every quantity of the catalogue that either side has."""
    sides = {name: rows[rows[SIDE] == name].sort_values("replication").to_dict("records") for name in dict.fromkeys(rows[SIDE])}
    before, after = sides[A], sides[B]
    steps = {name: own for name, own in sides.items() if name not in (A, B)}
    columns = [column for column in STATISTICS if column in rows]
    found = []
    for column in columns:
        old, new = _values(column, before), _values(column, after)
        if np.isnan(old).all() and np.isnan(new).all():
            continue
        bounds = frozenset(name for name, own in sides.items() if any(_is_bound(column, row) for row in own))
        alone = {name: paired_change(old, _values(column, own)) for name, own in steps.items()}
        found.append(QuantityDifference(column, _mean(old), _mean(new), paired_change(old, new), bounds, alone))
    return found


def leading(found: Sequence[QuantityDifference]) -> QuantityDifference | None:
    """What the screen explains: that no checkpoint completes on one side; else of what surely changes the first leading quantity, or
    any other, that changes by a tenth, or the one that changes most; else what one side alone has."""
    by_column = {own.column: own for own in found}
    completed = by_column.get("completed")
    if completed is not None and min(completed.before, completed.after) == 0 < max(completed.before, completed.after):
        return completed
    ordered = [*(by_column[column] for column in LEADING if column in by_column), *(own for own in found if own.column not in LEADING)]
    sure = [own for own in ordered if not own.is_same and own.is_sure]
    alone = next((own for own in ordered if own.is_of_one_side), None)
    return next((own for own in sure if own.share >= WORTH_NAMING), max(sure, key=lambda own: own.share, default=alone))


def trouble(rows: pd.DataFrame) -> list[str]:
    """What went wrong in runs: failed cells, broken promises, jobs that died."""
    found = []
    for name, own in rows.groupby(SIDE, sort=False):
        failed = own[own["status"] != "ok"]
        if len(failed):
            found.append(f"{name}: {len(failed)} of {len(own)} runs failed: {failed.iloc[0]['error']}")
            continue
        broken, dead = own[own["violations"] > 0], own[own["job_status"].str.startswith(DEAD)]
        if len(broken):
            found.append(f"{name}: a run broke what checkpoints promise: {str(broken.iloc[0]['violation']).splitlines()[0]}")
        if len(dead):
            found.append(f"{name}: the job died in {len(dead)} of {len(own)} runs: {dead.iloc[0]['job_status']}")
    return found


def _values(column: str, rows: Sequence[Mapping[Any, Any]]) -> Values:
    """One value per row; nan: a failed run, nothing measured, or a sample too small for the percentile."""
    return np.array([_value(column, row) for row in rows], dtype=float)


def _value(column: str, row: Mapping[Any, Any]) -> float:
    if row["status"] != "ok" or not has_sample(column, row) or column in str(row.get("nothing", "")).split():
        return math.nan
    return float(row[column])


def _is_bound(column: str, row: Mapping[Any, Any]) -> bool:
    return column in str(row.get("unfinished", "")).split()


def _mean(values: Values) -> float:
    return float(values.mean()) if len(values) else math.nan
