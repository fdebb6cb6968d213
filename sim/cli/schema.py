"""``ckptsim schema``: what may stand in a scenario (JSON Schema), or what stands in the result tables."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from sim.cli.errors import speaking

__all__ = ["print_schema"]


def print_schema(
    results: Annotated[bool, typer.Option("--results", help="Columns of the result tables: name, unit, meaning.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="The columns as JSON.")] = False,
) -> None:
    """Print the JSON Schema of scenarios, or describe the result tables."""
    with speaking():
        if not results:
            from sim.scenario import json_schema

            print(json.dumps(json_schema(), indent=2))
            return
        from sim.cli.shown import show
        from sim.metrics.schema import TABLES

        if as_json:
            print(json.dumps({name: [column._asdict() for column in columns] for name, columns in TABLES.items()}, indent=2))
            return
        for name, columns in TABLES.items():
            print(f"{name}.parquet\n")
            show(("column", "unit", "meaning"), columns)
            print()
