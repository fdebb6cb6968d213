"""Print the costs of strategies beyond checkpoint durations: tables with a row per strategy, and a sentence that compares them."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from types import MappingProxyType
from typing import NamedTuple

from sim.results.columns import columns_of, in_printing_order
from sim.results.consequences import Consequences
from sim.results.formats import MISSING, TextTable, count_text, ms_text


def consequences_texts(
    costs: Mapping[str, Consequences],
    statuses: Mapping[str, str],
    runs: Mapping[str, int] = MappingProxyType({}),
    at_once: Collection[str] = (),
    behind: Collection[str] = (),
) -> tuple[list[str], list[list[str]]]:
    """Return (header, rows) of the table of consequences as texts.

    Columns on commits, failures or restarts are left out if there were none.  Percentiles of commits are shown only if
    the sample is large enough (`sim.model.quantities`).

    `costs`: by label of the strategy.  `statuses`: status of the job of each strategy.  `runs`: number of runs of each
    strategy (default: 1).  `at_once`: strategies whose output is visible immediately because no vertex commits.  `behind`:
    strategies whose backlog grows.
    """
    lines = [
        _Line(statuses[label], row, runs.get(label, 1), label in at_once, label in behind)
        for label, row in costs.items()
    ]
    columns = [("strategy", list(costs)), ("job", [line.status for line in lines])]
    for column in in_printing_order(_COLUMNS.values()):
        if any(getattr(row, column.printed_with) for row in costs.values()):
            texts = [
                column.value_text(asdict(line.costs)) if column.cell is None else column.cell(line) for line in lines
            ]
            if not all(map(column.says_nothing, texts)):
                columns.append((column.heading, texts))
    return [name for name, _ in columns], [list(cells) for cells in zip(*(cells for _, cells in columns), strict=True)]


_COLUMNS = columns_of(Consequences)
_COST_COLUMNS = ("downtime_ms", "replayed_records", "caught_up_ms")


class _Line(NamedTuple):
    """A strategy as a row of the table of consequences."""

    status: str
    costs: Consequences
    runs: int
    is_at_once: bool  # output is visible immediately
    is_behind: bool  # the backlog grows

    def visible_text(self, name: str) -> str:
        """Return a cell with the time until output is visible, or `MISSING` if there are too few commits for the quantile."""
        column = _COLUMNS[name]
        if column.smallest_sample > 1 and not column.has_sample({"commits": self.costs.commits * self.runs}):
            return MISSING
        return "at once" if self.is_at_once else self.costs.ms_text(name)

    def cost_text(self, name: str, text_if_failed: str) -> str:
        """Return a cell with the cost of failures, or `text_if_failed` if the job failed permanently without a counted failure."""
        if self.costs.has_failed and math.isnan(self.costs.downtime_ms):
            return text_if_failed
        return _cost_text(self.costs, name, is_behind=self.is_behind)


def _cost_text(row: Consequences, column: str, *, is_behind: bool) -> str:
    """Return a cost as text, or "not in this run" if a job whose backlog grows never catches up."""
    is_never = column.endswith("caught_up_ms") and is_behind and row.is_bound(column)
    return "not in this run" if is_never else row.ms_text(column)


def planned_restarts_table(costs: Mapping[str, Consequences], behind: Collection[str] = ()) -> TextTable | None:
    """Return a table of the costs of planned restarts, with a row per strategy that has any, or None if none has.

    `costs`: by label of the strategy.  `behind`: strategies whose backlog grows.
    """
    rows = [
        [
            label,
            count_text(row.planned_restarts),
            _cost_text(row, "planned_downtime_ms", is_behind=label in behind),
            count_text(row.planned_replayed_records),
            _cost_text(row, "planned_caught_up_ms", is_behind=label in behind),
        ]
        for label, row in costs.items()
        if row.planned_restarts
    ]
    header = ["strategy", "restarts", *(_COLUMNS[name].heading for name in _COST_COLUMNS)]
    title = "Planned restarts (rescales, and jobs that start from a snapshot)"
    return TextTable(title, header, rows) if rows else None


def consequences_sentence(costs: Mapping[str, Consequences], *, overloaded: Collection[str] = ()) -> str:
    """Return a sentence that compares the best and the worst strategy by their cost of failures.

    Without failures it compares the cost of planned restarts.  Returns "" if fewer than two strategies can be compared, or
    if they replay equally many records but may differ in other costs, because downtimes differ or some costs are lower bounds.
    Strategies whose job failed permanently are ignored.

    `costs`: by label of the strategy.  `overloaded`: strategies that cannot keep up even before a restart.
    """
    alive = [(label, row) for label, row in costs.items() if row.restarts and not row.has_failed]
    kind, prefix = ("failure", "") if any(row.failures for _, row in alive) else ("planned restart", "planned_")
    compared = [_Compared(label, row, prefix) for label, row in alive if prefix or row.failures]
    if len(compared) < 2:
        return ""
    best, worst = _best_and_worst(compared, "disturbed_share", "replayed_records")
    if worst.row.disturbed_share < 1.1 * best.row.disturbed_share + 0.01:
        best, worst = _best_and_worst(compared, "replayed_records")
        if worst.value("replayed_records") <= 1.1 * best.value("replayed_records"):
            may_differ = any(line.bounds for line in compared) or _downtimes_differ(
                [line.value("downtime_ms") for line in compared]
            )
            return "" if may_differ else f"A {kind} stops the job and replays as much under all of them."
    sentence = f"After a {kind} {worst}; {best}."
    if labels := " and ".join(line.label for line in (worst, best) if line.label in overloaded):
        sentence += f" {labels} cannot keep up before the {kind} either: lag and disturbed time are not its cost alone."
    return sentence


class _Compared(NamedTuple):
    """A strategy in the comparison of costs: of failures (`prefix` "") or of planned restarts (`prefix` "planned_")."""

    label: str
    row: Consequences
    prefix: str

    def value(self, column: str) -> float:
        """Return the value of a cost column for the compared kind of restart, if it is about one; most are medians."""
        return float(getattr(self.row, self.prefix * (column in _COST_COLUMNS) + column))

    @property
    def bounds(self) -> list[str]:
        """Return the cost columns whose values are lower bounds."""
        return [name for name in _COST_COLUMNS if self.row.is_bound(self.prefix + name)]

    def __str__(self) -> str:
        """Return a clause with the replayed records of the compared kind, and the lag and disturbed time of all restarts."""
        row, others = self.row, 0 if self.prefix else self.row.planned_restarts
        counted = (
            f" by {_count_with_noun(row.failures, 'failure')} and {_count_with_noun(others, 'planned restart')}"
            if others
            else ""
        )
        return (
            f"{self.label} replays {count_text(self.value('replayed_records'))} records, lags by up to {ms_text(1e3 * row.lag_s)} and is disturbed "
            f"{100 * row.disturbed_share:.0f} % of the time{counted}"
        )


def _best_and_worst(compared: Sequence[_Compared], *columns: str) -> tuple[_Compared, _Compared]:
    """Return the best and the worst strategy by these columns.  Of several equal worst ones, the one labelled most like the best.

    Any other label would suggest that options without an effect make the difference.
    """
    values = {line.label: [line.value(column) for column in columns] for line in compared}
    best = min(compared, key=lambda line: values[line.label])
    parts = set(best.label.split(", "))
    others = [line for line in compared if line is not best]
    return best, max(others, key=lambda line: (values[line.label], len(parts & set(line.label.split(", ")))))


def _count_with_noun(number: float, noun: str) -> str:
    """Return a number with its noun, e.g. ``1 failure`` or ``3 failures``."""
    return f"{count_text(number)} {noun}{'' if number == 1 else 's'}"


def _downtimes_differ(downtimes_ms: Sequence[float]) -> bool:
    """Return True if downtimes differ by more than noise: a tenth, or 100 ms."""
    return max(downtimes_ms) - min(downtimes_ms) >= max(100.0, 0.1 * max(downtimes_ms))
