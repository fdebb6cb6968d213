"""All result tables and their columns, as texts: of a run, and of a sweep."""

from __future__ import annotations

from sim.cells.columns import MEANING, PROVENANCE
from sim.metrics.schema import TABLES
from sim.quantities.results import unit

SWEPT = ("results", "runs")
"""The tables of a sweep."""


def described() -> dict[str, list[tuple[str, str, str]]]:
    """Table -> (column, unit, meaning) of its columns."""
    swept: dict[str, list[tuple[str, str, str]]] = {name: [] for name in SWEPT}
    for name, meaning in MEANING.items():
        swept[SWEPT[name in PROVENANCE]].append((name, unit(name), meaning))
    return {name: [(column.name, column.unit, column.meaning) for column in columns] for name, columns in TABLES.items()} | swept
