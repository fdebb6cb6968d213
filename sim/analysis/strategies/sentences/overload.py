"""The sentence that a job does not keep up with its load, even before any failure."""

from __future__ import annotations

import math
from collections.abc import Sequence

from sim.analysis.number_texts import ms_text, per_second_text, share_text
from sim.analysis.strategies.side_by_side import StrategyRow

_NAMED = 3
"""So many strategies are named; of more the number is told."""


def overload_sentence(strategies: Sequence[StrategyRow]) -> str:
    """The strategy that falls short most, in numbers, and which others do; empty: all keep up."""
    found = [(line.overload.emitted_per_second / line.overload.due_per_second, line, line.overload) for line in strategies if line.overload]
    if not found:
        return ""
    _, worst, overload = min(found, key=lambda item: item[0])
    when = "" if math.isnan(overload.until_s) else f" before anything fails (until {ms_text(1e3 * overload.until_s)})"
    rates = f"{per_second_text(overload.emitted_per_second)} of {per_second_text(overload.due_per_second)} that are due{when}"
    name, share = worst.busiest
    others = [line.label for _, line, _ in found if line is not worst]
    also = f" So are {_named(others)}." if len(others) > 1 else f" So is {others[0]}." if others else ""
    load = f"'{name}' is busy {share_text(share)}"
    return f"Overloaded: {worst.label}: sources emit {rates}, and their backlog grows; {load} over the whole run.{also}"


def _named(labels: Sequence[str]) -> str:
    return " and ".join(labels) if len(labels) <= _NAMED else f"{len(labels)} others"
