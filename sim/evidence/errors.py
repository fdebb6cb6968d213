"""Two tidy tables of observations, of a real job and of its simulation, as one table with errors: what all of this room compares.

For each quantity and vertex both sides have three percentiles over the checkpoints of a run or the samples of a series.  A vertex's value
in a checkpoint is the median over its subtasks.  The first checkpoint meets queues that are not full yet, so it has rows of its own: their
quantity ends with `FIRST`.  A number about the whole run is its own three percentiles.
"""

from __future__ import annotations

import pandas as pd

from sim.quantities.observed import QUANTITIES, Level

FIRST = " (first)"
"""Suffix of a quantity of the first checkpoint: 'start_delay (first)'."""
_SHARES = {"p10": 0.1, "p50": 0.5, "p90": 0.9}
COLUMNS = ("quantity", "vertex", *(f"{side}_{name}" for side in ("observed", "predicted") for name in _SHARES), "relative_error", "covered")
"""`vertex`: None for the whole checkpoint or job.  Percentiles have the unit of the quantity; NaN: absent from a run."""


def join_observed_predicted(observations: pd.DataFrame, predictions: pd.DataFrame) -> pd.DataFrame:
    """Two tables of observations (`sim.recordings.observe`) joined: `COLUMNS`, in the order of the first."""
    table = _percentiles(observations, "observed").merge(_percentiles(predictions, "predicted"), on=["quantity", "vertex"], how="left")
    table["relative_error"] = relative_errors(table)
    table["covered"] = covered(table)
    table["vertex"] = table["vertex"].astype(object).where(table["vertex"] != "", None)
    return table[list(COLUMNS)]


def relative_errors(table: pd.DataFrame, level: Level = "p50") -> pd.Series:
    """(predicted - observed) / observed, of the medians; 0 where they differ by less than noise, NaN if only the observed one is 0."""
    predicted, observed = table[f"predicted_{level}"], table[f"observed_{level}"]
    difference = predicted - observed
    relative = difference / observed.where(observed != 0)
    return relative.mask((difference.abs() < noise(table)) | (difference == 0), 0.0)


def covered(table: pd.DataFrame) -> pd.Series:
    """Whether the observed median lies between the predicted 10 % and 90 %, or within noise of them; without a prediction it does not."""
    slack = noise(table)
    return (table["observed_p50"] >= table["predicted_p10"] - slack) & (table["observed_p50"] <= table["predicted_p90"] + slack)


def noise(table: pd.DataFrame) -> pd.Series:
    """By how much each row may differ and count as equal."""
    return table["quantity"].str.removesuffix(FIRST).map({name: quantity.noise for name, quantity in QUANTITIES.items()})


def _percentiles(rows: pd.DataFrame, side: str) -> pd.DataFrame:
    named = rows.assign(quantity=rows["quantity"].where(~rows["first"], rows["quantity"] + FIRST))
    grouped = named.groupby(["quantity", "vertex"], sort=False)["value"]
    return pd.DataFrame({f"{side}_{name}": grouped.quantile(share) for name, share in _SHARES.items()}).reset_index()
