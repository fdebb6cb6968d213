"""Tables of observations, tidy: a row per quantity, vertex and checkpoint or sample.  `sim.quantities.observed` says what each is."""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd

from sim.quantities.observed import QUANTITIES

WHOLE_RUN = -1
"""Number in place of a checkpoint: a row about the whole run, or a sample of a series."""
COLUMNS = ("quantity", "vertex", "checkpoint", "first", "value", "unit")

Observation = tuple[str, str, int, bool, float]  # quantity, vertex ("": the whole job), checkpoint, first, value
RunValue = tuple[str, str, float]  # quantity, vertex, value of the whole run


def table_of(rows: Iterable[Observation]) -> pd.DataFrame:
    """A table with `COLUMNS`, of fixed types even without rows."""
    types = {"checkpoint": "int64", "first": "bool", "value": "float64"}
    table = pd.DataFrame(rows, columns=list(COLUMNS[:-1])).astype(types)
    return table.assign(unit=table["quantity"].map({name: quantity.unit for name, quantity in QUANTITIES.items()}))


def values_of(values: Iterable[RunValue]) -> pd.DataFrame:
    """A table with `COLUMNS`, of values about the whole run."""
    return table_of([(quantity, vertex, WHOLE_RUN, False, float(value)) for quantity, vertex, value in values])
