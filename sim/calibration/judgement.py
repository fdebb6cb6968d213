"""What the truth table says on the whole: how far off, per quantity, over many recordings."""

from __future__ import annotations

import pandas as pd

from sim.recordings.observed_ends import QUANTITIES

__all__ = ["JUDGED", "far_off", "judged", "summary"]

JUDGED = {
    "end_to_end_duration": "ms",
    "start_delay": "ms",
    "alignment_duration": "ms",
    "async_duration": "ms",
    "alignment_persisted": "bytes",
    "numRecordsInPerSecond": "1/s",
    "completed": "",
    "failed": "",
    "checkpointed_size": "bytes",
    **QUANTITIES,
}
"""The quantities predictions are held to, with their units."""


def judged(table: pd.DataFrame) -> pd.DataFrame:
    """The rows predictions are held to; quantities that are 0 on both sides say nothing and are left out."""
    rows = table[table["quantity"].isin(JUDGED)]
    return rows[(rows["observed"] != 0) | (rows["predicted"] != 0)].reset_index(drop=True)


def summary(table: pd.DataFrame) -> pd.DataFrame:
    """Per quantity: rows, median and 90 % quantile of the absolute relative error (rows observed as 0 have none)."""
    absolute = table.assign(error=table["relative_error"].abs()).dropna(subset=["error"])
    grouped = absolute.groupby("quantity", sort=False)["error"]
    return grouped.agg(rows="size", median="median", p90=lambda error: error.quantile(0.9)).reset_index()


def far_off(table: pd.DataFrame, *, beyond: float = 0.3) -> pd.DataFrame:
    """Rows whose prediction misses by more than `beyond` (share)."""
    return table[table["relative_error"].abs() > beyond]
