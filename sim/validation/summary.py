"""What truth tables say on the whole: how far off and how often covered, per quantity and per family of recordings."""

from __future__ import annotations

import pandas as pd

from sim.validation.truth import FIRST

__all__ = ["PER_FAMILY", "PER_FAMILY_AND_QUANTITY", "PER_QUANTITY", "judged", "summary"]

PER_QUANTITY = ("quantity",)
PER_FAMILY = ("family",)
PER_FAMILY_AND_QUANTITY = ("family", "quantity")


def judged(table: pd.DataFrame) -> pd.DataFrame:
    """The rows predictions are held to: those that are 0 on both sides say nothing, the first checkpoint meets a job still starting."""
    said = (table["observed_p50"] != 0) | (table["predicted_p50"] != 0)
    return table[said & ~table["quantity"].str.endswith(FIRST)].reset_index(drop=True)


def summary(table: pd.DataFrame, by: tuple[str, ...] = PER_QUANTITY) -> pd.DataFrame:
    """Per group: recordings, rows, share covered, median and 90 % quantile of the absolute relative error.

    First the median over the vertices of a recording, then over recordings; rows that have no error (observed as 0, predicted as
    more) count as not covered and nothing else.
    """
    rows = judged(table).assign(error=lambda rows: rows["relative_error"].abs())
    groups = rows.groupby(list(by), sort=False)
    per_recording = rows.groupby([*by, "recording", *({"quantity"} - set(by))], sort=False)["error"].median().dropna()
    errors = per_recording.groupby(level=list(by), sort=False)
    return pd.DataFrame({
        "recordings": groups["recording"].nunique(), "rows": groups.size(), "covered": groups["covered"].mean(),
        "median": errors.median(), "p90": errors.quantile(0.9),
    }).reset_index()  # fmt: skip
