"""The effect of differing inputs, for `ckptsim diff`: quantities of both sides, their paired change, and texts about it."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from sim.model.frozen import frozen
from sim.model.quantities import COST, S3_STANDARD, USE, Prices
from sim.model.text import capitalised, listed, one_line
from sim.results.columns import Population, unit_of
from sim.results.columns import text as value_text
from sim.results.consequences import MIN_UNLIKE_PHASE
from sim.results.estimates import MIN_INTERVALS, PairedChange, count_intervals, longer_run, paired_change
from sim.results.formats import MISSING, TextTable, change_text, json_ready, share_text
from sim.results.summary import STATISTICS, has_sample
from sim.results.sweep_answers import DEAD
from sim.studies.cells import outcome
from sim.studies.differences import InputDifferences
from sim.studies.local import run_each
from sim.studies.plan import cells
from sim.studies.progress import Watch, no_watch

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
    "written_bytes_per_hour",
    COST,
)
"""Columns that the overview prefers, in this order."""
MIN_UNLIKE_SHARE = 0.1
"""Minimum difference of a kind's share of the failures for which what failures cost is not compared."""
_PHASE = "interval_passed_share"
INTERVAL = "interval_ms"
"""Column with the interval of checkpoints; 0 if they are off."""
MIN_COMPLETED = 5
"""Minimum completed checkpoints per run for which statistics of their durations are compared without a warning."""
MIN_LEADING_SHARE = 0.1
"""Minimum relative change that the verdict prefers; repetitions of a real job differ by as much (`sim.results.estimates`)."""


@frozen
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
            and not self.bounds
            and math.isfinite(self.change.value)
            and value_text(self.column, abs(self.change.value)) == value_text(self.column, 0.0)
        )

    @property
    def is_sure(self) -> bool:
        """Return True if the sign of the change is certain: its interval excludes zero, and no lower bound can reverse it."""
        # the true value of a side with a lower bound may be higher, which may reverse an increase of A or a decrease of B
        can_reverse = {A: self.change.value > 0, B: self.change.value < 0}
        return self.change.is_sure and not any(can_reverse[side] for side in self.bounds) and len(self.bounds) < 2

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
        if len(self.bounds) > 1 or not math.isfinite(self.change.value):
            return MISSING
        change = replace(self.change, half_width=math.inf) if self.bounds else self.change
        sign = "" if not self.bounds else "< " if A in self.bounds else "> "
        return sign + change.text(partial(value_text, self.column))

    @property
    def text(self) -> str:
        """Return ``throughput: 196/s -> 389/s (+194/s)``."""
        (before, after), change = self.sides_text(), self.effect_text()
        return f"{self.title}: {before} -> {after}" + ("" if change == MISSING else f" ({change})")

    def relative_text(self) -> str:
        """Return the change in percent of A, or MISSING if it is not defined or a value is a lower bound."""
        return (
            change_text(self.change.value / self.before)
            if self.before and not self.bounds and math.isfinite(self.before)
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
            "bounds": "".join(sorted(self.bounds)),
        }


def run_both_sides(
    differences: InputDifferences,
    *,
    prices: Prices = S3_STANDARD,
    jobs: int | None = None,
    watch: Watch = no_watch,
) -> pd.DataFrame:
    """Simulate both sides.  Return a row per side and replication, with the columns of `sim.studies.cells` and the storage cost."""
    sides = ((A, differences.before), (B, differences.after))
    planned = [(side, cell) for side, scenario in sides for cell in cells([scenario])]
    outcomes = dict(run_each(outcome, [cell for _, cell in planned], jobs=jobs, watch=watch))
    rows = []
    for i, (side, cell) in enumerate(planned):
        cost = {COST: prices.cost_per_month(outcomes[i])} if set(USE) <= set(outcomes[i]) else {}
        interval_ms = (cell.scenario.checkpoint.interval_ns or 0) / 1e6
        rows.append({SIDE: side, "replication": cell.replication, INTERVAL: interval_ms, **outcomes[i], **cost})
    return pd.DataFrame(rows)


def quantities(rows: pd.DataFrame) -> list[QuantityDifference]:
    """Return the quantities that have a value on at least one side."""
    rows_of = {side: rows[rows[SIDE] == side].sort_values("replication").to_dict("records") for side in (A, B)}
    not_compared = {"failures"} if unlike_failures_sentence(rows, by_cause=True) else set()
    if unlike_phases_sentence(rows):
        not_compared = {"failures", "restarts", "lag_s", "delay_mean_s", "delay_p99_s"}
    if _too_few_intervals(rows):
        not_compared |= {
            name
            for name, column in STATISTICS.items()
            if column.population is Population.COMPLETED and name != "completed"
        }
    differences = []
    for name, column in STATISTICS.items():
        if not column.title or name not in rows:
            continue
        before, after = (_values_by_replication(name, side_rows) for side_rows in rows_of.values())
        if np.isnan(before).all() and np.isnan(after).all():
            continue
        is_compared = not {name, column.of} & not_compared or name == _PHASE
        change = paired_change(before, after) if is_compared else PairedChange(math.nan, math.nan)
        bounds = frozenset(
            side
            for side, side_rows in rows_of.items()
            if any(name in str(row.get("unfinished", "")).split() for row in side_rows)
        )
        differences.append(QuantityDifference(name, float(before.mean()), float(after.mean()), change, bounds))
    return differences


def unlike_failures_sentence(rows: pd.DataFrame, *, by_cause: bool = False) -> str:
    """Return a sentence on the failures of both sides if the share of some kind differs, or "".

    `by_cause`: do not distinguish failures after which all tasks restart from others.
    """
    counts: dict[str, Counter[str]] = {A: Counter(), B: Counter()}
    for side, text in rows[[SIDE, "failure_kinds"]].dropna().itertuples(index=False):
        for number, kind in re.findall(r"(\d+) ([^,]+)", text):
            counts[side][kind.partition(" ")[0] if by_cause else kind] += int(number)
    before, after = counts.values()
    if not (before and after) or all(
        abs(before[kind] / before.total() - after[kind] / after.total()) < MIN_UNLIKE_SHARE for kind in before | after
    ):
        return ""
    texts = (
        f"{side} has {listed([f'{count} x {kind}' for kind, count in sorted(kinds.items())])}"
        for side, kinds in counts.items()
    )
    return f"Failures are unlike, and so are downtime and time until caught up: {'; '.join(texts)}"


def unlike_phases_sentence(rows: pd.DataFrame) -> str:
    """Return a sentence on failures that come at different parts of the interval, and always at the same with one side, or "".

    Flink 2.x takes its first checkpoint at a fixed time and Flink 1.x at a random one.  So a planned failure is late in an
    interval, or early, in all runs of 2.x: what differs by that alone would seem to be certain.
    """
    if _PHASE not in rows:
        return ""
    shares = rows.groupby(SIDE)[_PHASE]
    a, b = shares.mean().reindex([A, B])
    if not abs(a - b) > MIN_UNLIKE_PHASE or (shares.max() - shares.min()).min() > MIN_UNLIKE_PHASE:
        return ""
    return (
        f"Failures are unlike, and what they cost is not compared: of the interval {share_text(a)} has passed before one with A, "
        f"{share_text(b)} with B. Faults at several times (every: or a list) meet all parts of it"
    )


def _too_few_intervals(rows: pd.DataFrame) -> str:
    """Return the side with the longer interval if its runs have too few of them for checkpoints that are like those of the other, or ""."""
    if INTERVAL not in rows or (rows["completed"] == 0).any():
        return ""
    first = rows.groupby(SIDE)[[INTERVAL, "completed"]].min().sort_values(INTERVAL)
    longest = first.iloc[-1]
    measured_ms = (rows["ended_s"] * 1e3 - rows["warmup_ms"]).min()
    has_few = count_intervals(longest["completed"], measured_ms, max(longest[INTERVAL], 1)) < MIN_INTERVALS
    return str(longest.name) if has_few and longest[INTERVAL] > first.iloc[0][INTERVAL] else ""


def few_checkpoints_sentence(rows: pd.DataFrame, duration_ns: int) -> str:
    """Return a sentence on the side with the fewest completed checkpoints in a run, if they are too few to compare, or ""."""
    fewest = rows.groupby(SIDE)["completed"].min().sort_values()
    if fewest.empty or not 0 < fewest.iloc[0] < MIN_COMPLETED:
        return ""
    side, count = str(fewest.index[0]), float(fewest.iloc[0])
    own = rows[rows[SIDE] == side]
    warmup_ms, interval_ms = float(own["warmup_ms"].max()), float(own[INTERVAL].max())
    measured_ms = duration_ns / 1e6 - warmup_ms
    # without the first upload, and the one that is under way at the end
    is_on_time = (count + 2) * interval_ms >= measured_ms
    longer = longer_run(MIN_COMPLETED + 1, warmup_ms, interval_ms if is_on_time else measured_ms / count)
    unlike = ", and its interval too long for the run: checkpoints are not compared" if _too_few_intervals(rows) else ""
    return f"{side} has {count:.0f} completed checkpoints in a run, too few for a median or a longest one{unlike}: {longer}"


def leading(quantities: Sequence[QuantityDifference]) -> QuantityDifference | None:
    """Return the quantity that the verdict is about, or None if there is none.

    In order of preference: completed checkpoints, if one side has none; the first certain change of at least
    MIN_LEADING_SHARE, in the order of LEADING; the largest certain change; a quantity that only one side has.
    """
    by_column = {quantity.column: quantity for quantity in quantities}
    completed = by_column.get("completed")
    if completed is not None and min(completed.before, completed.after) == 0 < max(completed.before, completed.after):
        return completed
    ordered = [by_column[column] for column in dict.fromkeys((*LEADING, *by_column)) if column in by_column]
    sure = [quantity for quantity in ordered if not quantity.is_same and quantity.is_sure]
    of_one_side = next((quantity for quantity in ordered if quantity.is_of_one_side), None)
    largest = max(sure, key=lambda quantity: quantity.share, default=of_one_side)
    return next((quantity for quantity in sure if quantity.share >= MIN_LEADING_SHARE), largest)


def trouble(rows: pd.DataFrame) -> list[str]:
    """Return messages on runs with errors, violated invariants, and failed jobs, for each side."""
    messages = []
    for side, side_rows in rows.groupby(SIDE, sort=False):
        errors = side_rows[side_rows["status"] != "ok"]
        if len(errors):
            messages.append(f"{side}: {len(errors)} of {len(side_rows)} runs failed: {errors.iloc[0]['error']}")
            continue
        violating = side_rows[side_rows["violations"] > 0]
        dead = side_rows.loc[side_rows["job_status"].str.startswith(DEAD), "job_status"]
        if len(violating):
            messages.append(
                f"{side}: a run broke what checkpoints promise: {str(violating.iloc[0]['violation']).splitlines()[0]}"
            )
        if len(dead):
            messages.append(f"{side}: the job died in {len(dead)} of {len(side_rows)} runs: {dead.iloc[0]}")
    return messages


def _values_by_replication(column: str, rows: Sequence[Mapping[Any, Any]]) -> Values:
    """Return a value per row.  NaN if the run failed, if there was nothing to measure, or if a percentile has too small a sample."""
    has_value = [
        row["status"] == "ok" and has_sample(column, row) and column not in str(row.get("nothing", "")).split()
        for row in rows
    ]
    return np.array(
        [float(row[column]) if is_known else math.nan for row, is_known in zip(rows, has_value, strict=True)]
    )


# ---- Texts: the verdict, and tables.

MAX_VALUE_CHARS = 60
"""Maximum characters of a value in a table; JSON has the full value."""
NO_DIFFERENCE = "Nothing that is simulated differs: the same values, or values that mean the same."


def verdict(differences: InputDifferences, quantities: Sequence[QuantityDifference], rows: pd.DataFrame) -> str:
    """Return a sentence on the effect of the differing inputs.  `rows`: of all runs; empty if nothing that is simulated differs."""
    changes = differences.changes
    if not changes:
        return "Nothing that is simulated differs but how they run." if differences.runs else NO_DIFFERENCE
    first = leading(quantities)
    has_failed = (rows["status"] != "ok").any()
    if has_failed and (first is None or first.is_of_one_side):
        return f"{_input_count_text(differences)}; runs failed, so what that changes is not known."
    if first is None:
        return f"{_input_count_text(differences)}, and no quantity surely changes."
    cause = f", from {changes[0].key}" if len(changes) == 1 else f"; {_input_count_text(differences)}"
    died = rows["job_status"].astype(str).str.startswith(DEAD).groupby(rows[SIDE])
    if not has_failed and died.any().sum() == 1 == died.all().sum():
        return f"The job of {died.all().idxmax()} dies in each run, the other runs on{cause}; {first.text}."
    return f"{capitalised(first.text)}{cause}."


def tables(differences: InputDifferences, quantities: Sequence[QuantityDifference]) -> list[TextTable]:
    """Return tables of differing inputs and of differing quantities."""
    inputs = [
        [
            change.key,
            one_line(change.before_text, MAX_VALUE_CHARS),
            one_line(change.after_text, MAX_VALUE_CHARS),
            change.kind,
            ", ".join(change.flink),
        ]
        for change in differences.changes
    ]
    results = [
        [quantity.title, *quantity.sides_text(), quantity.effect_text(), quantity.relative_text()]
        for quantity in quantities
        if not quantity.is_same
    ]
    made = (
        TextTable("Inputs that differ", ["key", "A", "B", "about", "Flink"], inputs, ["Flink"]),
        TextTable("Quantities, mean over the same seeds", ["quantity", "A", "B", "B - A", "share"], results, ["share"]),
    )
    return [table for table in made if table.rows]


def same_quantities_sentence(quantities: Sequence[QuantityDifference]) -> str:
    """Return a sentence that lists equal quantities, or "" if all differ."""
    titles = [quantity.title for quantity in quantities if quantity.is_same]
    return f"The same on both sides: {'; '.join(titles)}." if titles else ""


def _input_count_text(differences: InputDifferences) -> str:
    count = len(differences.changes)
    return f"{count} input{'' if count == 1 else 's'} {'differs' if count == 1 else 'differ'}"
