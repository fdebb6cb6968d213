"""A backtest for people: a table and sentences of at most `WIDTH` columns, for the terminal and for the head of a file."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING

from sim.analysis.number_texts import amount_text, change_text
from sim.evidence.what_ifs.factors import by_kind
from sim.prose import capitalised
from sim.quantities.observed import of_history
from sim.scenario.history.verdict import missed_failures
from sim.units import format_duration

if TYPE_CHECKING:
    from sim.model.backtest import Backtest, ComparedQuantity, Quantiles
    from sim.quantities.observed import Level

WIDTH = 78
"""A comment adds two columns."""
_NAME, _NUMBER = 19, 8


def lines_of(backtest: Backtest) -> list[str]:
    compared = [*_table(backtest), *_findings(backtest), *_others(backtest)] if backtest.checkpoints else []
    return [*_head(backtest), *_failures(backtest), *compared]


def _failures(backtest: Backtest) -> Iterator[str]:
    if missed := missed_failures(backtest):
        yield from _wrapped(f"{capitalised(missed)}.")


def _head(backtest: Backtest) -> Iterator[str]:
    plural = "s" if backtest.runs > 1 else ""
    durations = backtest.of("end-to-end")
    count = f"{backtest.checkpoints} of its history (without the first)"
    beside = "" if durations is None else f": {durations.predicted.count} checkpoints, beside {count}"
    yield from _wrapped(
        f"Backtest: the job as it is, simulated {format_duration(backtest.simulated_ns)} in {backtest.runs} run{plural}{beside}."
    )


def _table(backtest: Backtest) -> Iterator[str]:
    levels = "".join(f"{level:>{_NUMBER}}" for level in ("p50", "p90", "max"))
    yield f"{'':{_NAME}}{'observed':>{3 * _NUMBER}} |{'predicted':>{3 * _NUMBER}}"
    yield f"{'':{_NAME}}{levels} |{levels}  off by"
    for row in backtest.compared:
        yield f"{row.quantity:{_NAME}}{_numbers(row, row.observed)} |{_numbers(row, row.predicted)}  {_off(row)}".rstrip()


def _numbers(row: ComparedQuantity, quantiles: Quantiles) -> str:
    kind = of_history()[row.quantity][0].kind
    return "".join(f"{amount_text(value, kind):>{_NUMBER}}" for value in (quantiles.p50, quantiles.p90, quantiles.largest))


def _off(row: ComparedQuantity) -> str:
    return _change(row, max(row.off, key=lambda level: -row.agreement(level))) if row.off else ""


def _change(row: ComparedQuantity, level: Level) -> str:
    """Predicted against observed."""
    change = row.change(level)
    return "not seen" if change is None else change_text(change)


def _findings(backtest: Backtest) -> Iterator[str]:
    if not backtest.off:
        yield "Nothing is off by more than repetitions of one job are."
        return
    yield "Off by more than repetitions of one job are:"
    for cause in dict.fromkeys(row.cause for row in backtest.off):
        alike = ", ".join(_named(row) for row in backtest.off if row.cause == cause)
        yield from _wrapped(f"- {alike}: {cause}.", indent="  ")


def _others(backtest: Backtest) -> Iterator[str]:
    for line in by_kind(backtest):
        yield from _wrapped(line, indent="  ")


def _named(row: ComparedQuantity) -> str:
    """``sync of sink (p50 +7 %, p90 -30 %)``."""
    changes = ", ".join(f"{level} {_change(row, level)}" for level in row.off)
    return f"{row.quantity}{f' of {row.vertex}' if row.vertex else ''} ({changes})"


def _wrapped(text: str, indent: str = "") -> list[str]:
    return textwrap.wrap(text, WIDTH, subsequent_indent=indent, break_long_words=True)
