"""Summaries of truth tables: errors and coverage, per quantity and per family of recordings."""

from __future__ import annotations

import pandas as pd

from sim.evidence.errors import FIRST

PER_QUANTITY = ("quantity",)
PER_FAMILY = ("family",)
PER_FAMILY_AND_QUANTITY = ("family", "quantity")


def judged(table: pd.DataFrame) -> pd.DataFrame:
    """The rows that count.  Rows with 0 on both sides have no error, and the first checkpoint meets a job still starting."""
    has_value = (table["observed_p50"] != 0) | (table["predicted_p50"] != 0)
    return table[has_value & ~table["quantity"].str.endswith(FIRST)].reset_index(drop=True)


def summary(table: pd.DataFrame, by: tuple[str, ...] = PER_QUANTITY) -> pd.DataFrame:
    """Per group: recordings, rows, share covered, median and 90 % quantile of the absolute relative error.

    First the median over the vertices of a recording is computed, then that over recordings.  Rows without an error (observed 0, predicted
    more) only count as not covered.
    """
    rows = judged(table).assign(error=lambda rows: rows["relative_error"].abs())
    groups = rows.groupby(list(by), sort=False)
    per_recording = rows.groupby([*by, "recording", *({"quantity"} - set(by))], sort=False)["error"].median().dropna()
    errors = per_recording.groupby(level=list(by), sort=False)
    return pd.DataFrame({
        "recordings": groups["recording"].nunique(), "rows": groups.size(), "covered": groups["covered"].mean(),
        "median": errors.median(), "p90": errors.quantile(0.9),
    }).reset_index()  # fmt: skip
