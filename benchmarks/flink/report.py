"""The outcome of a switch, as text that fits a ticket."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd

from benchmarks.flink.measured import PER_MINUTE
from sim.model.quantities import QUANTITIES as OBSERVED

__all__ = ["QUANTITIES", "chosen", "decision", "table_text"]

QUANTITIES = {
    "end_to_end_duration": "end to end, p50",
    PER_MINUTE: "completed per minute",
    "start_delay": "start delay",
    "alignment_duration": "alignment",
    "persisted_data": "in-flight data stored",
    "checkpointed_size": "written per checkpoint",
    "state_size": "full size",
    "numRecordsInPerSecond": "throughput",
}
"""What a person compares, in the order of reading."""


def chosen(table: pd.DataFrame) -> pd.DataFrame:
    """The rows worth reading: the quantities above, of vertices that read others; what is 0 on both sides says nothing."""
    rows = table[table["quantity"].isin(QUANTITIES)]
    rows = rows[(rows["observed_p50"] != 0) | (rows["predicted_p50"] != 0)]
    sources = set(rows["vertex"].dropna()) - set(table[table["quantity"] == "numRecordsInPerSecond"]["vertex"])
    rows = rows[~rows["vertex"].isin(sources)]
    readers = rows[rows["quantity"] == "numRecordsInPerSecond"].groupby("protocol", sort=False).tail(1).index
    # of the last vertex: what comes out
    rows = rows[(rows["quantity"] != "numRecordsInPerSecond") | rows.index.isin(readers)]
    order = {name: number for number, name in enumerate(QUANTITIES)}
    protocols = {name: number for number, name in enumerate(table["protocol"].unique())}
    keys = pd.DataFrame({"protocol": rows["protocol"].map(protocols), "quantity": rows["quantity"].map(order)})
    return rows.loc[keys.sort_values(["protocol", "quantity"], kind="stable").index].reset_index(drop=True)


def table_text(table: pd.DataFrame, first: str) -> str:
    """One line per quantity; `first` is the protocol the job was imported under."""
    lines: list[tuple[str, ...]] = [
        ("protocol", "quantity", "vertex", "predicted", "(p10 - p90)", "measured", "(p10 - p90)", "error")
    ]
    before = None
    for row in chosen(table).to_dict("records"):
        name, quantity = str(row["protocol"]), str(row["quantity"])
        title = "" if name == before else f"{name} (imported)" if name == first else name
        before = name
        predicted, measured = (
            (_value(quantity, row[f"{side}_p50"]), _spread(quantity, row, side)) for side in ("predicted", "observed")
        )
        lines.append((title, QUANTITIES[quantity], row["vertex"] or "", *predicted, *measured, _error(row)))
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    text = [_line(line, widths) for line in lines]
    rule = "-" * max(map(len, text))
    parts = [text[0], rule]
    for line, printed in zip(lines[1:], text[1:], strict=True):
        parts += ["", printed] if line[0] and line is not lines[1] else [printed]
    return "\n".join(parts)


def decision(table: pd.DataFrame, first: str) -> str:
    """What each other protocol changes, one line each: measured, and in brackets what was predicted."""
    rows = chosen(table)
    lines = []
    for name in [name for name in rows["protocol"].unique() if name != first]:
        changes = []
        for quantity in ("end_to_end_duration", PER_MINUTE, "checkpointed_size", "numRecordsInPerSecond"):
            before, after = (
                rows[(rows["protocol"] == protocol) & (rows["quantity"] == quantity)] for protocol in (first, name)
            )
            if len(before) and len(after):
                changes.append(f"{QUANTITIES[quantity]} {_change(quantity, 'p50', before, after)}")
                if quantity == "end_to_end_duration":
                    changes.append(f"p90 {_change(quantity, 'p90', before, after)}")
        lines.append(f"{name} instead of {first}: {'; '.join(changes)}")
    return "\n".join(lines)


def _change(quantity: str, level: str, before: pd.DataFrame, after: pd.DataFrame) -> str:
    """'2.11 s -> 32 ms (34 ms)': measured before and after, and what was predicted of it."""
    values = (
        before[f"observed_{level}"].iloc[0],
        after[f"observed_{level}"].iloc[0],
        after[f"predicted_{level}"].iloc[0],
    )
    was, now, predicted = (_value(quantity, value) for value in values)
    return f"{was} -> {now} ({predicted})"


def _line(columns: tuple[str, ...], widths: list[int]) -> str:
    left = 3  # columns of words, then of numbers
    cells = [
        word.ljust(width) if i < left else word.rjust(width)
        for i, (word, width) in enumerate(zip(columns, widths, strict=True))
    ]
    return "  ".join(cells).rstrip()


def _spread(quantity: str, row: dict[Any, Any], side: str) -> str:
    low, high = _value(quantity, row[f"{side}_p10"]), _value(quantity, row[f"{side}_p90"])
    return "" if low == high else f"({low} - {high})"


def _error(row: dict[Any, Any]) -> str:
    difference = row["predicted_p50"] - row["observed_p50"]
    quantity = OBSERVED.get(row["quantity"])
    if quantity is not None and abs(difference) < quantity.noise:
        return f"< {quantity.noise:.0f} ms"
    return "none" if math.isnan(row["relative_error"]) else f"{row['relative_error']:+.1%}"


def _value(quantity: str, value: float) -> str:
    if math.isnan(value):
        return "none"
    if quantity in OBSERVED and OBSERVED[quantity].unit == "ms":
        return f"{value:.0f} ms" if value < 1000 else f"{value / 1000:.2f} s"
    if quantity in ("persisted_data", "checkpointed_size", "state_size"):
        return f"{value / 1e6:.2f} MB"
    return f"{value:,.1f}" if quantity == PER_MINUTE else f"{value:,.0f}/s"
