"""``ckptsim schema``: what may stand in a scenario or a sweep file (JSON Schema), or what stands in the result tables."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from sim.cli.console.errors import Code, UserError, speaking
from sim.cli.console.overview import Purpose, Verb

COLUMN = ("name", "unit", "meaning")


def print_schema(
    sweep: Annotated[bool, typer.Option("--sweep", help="The JSON Schema of sweep files.")] = False,
    results: Annotated[bool, typer.Option("--results", help="Columns of the result tables: name, unit, meaning.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="The columns as JSON.")] = False,
) -> None:
    """Print the JSON Schema of scenarios or of sweep files, or describe the result tables."""
    with speaking():
        if sweep and results:
            raise UserError("--sweep and --results exclude each other", Code.USAGE)
        if not results:
            from sim.scenario.schemas import schema_text
            from sim.sweeps.file.document import SweepDocument

            print(schema_text(SweepDocument, "ckptsim sweep") if sweep else schema_text(), end="")
            return
        from sim.cells.described import SWEPT, described
        from sim.cli.console.terminal import show

        found = described()
        if as_json:
            print(json.dumps({name: [dict(zip(COLUMN, row, strict=True)) for row in rows] for name, rows in found.items()}, indent=2))
            return
        for name, rows in found.items():
            print(f"{name}.parquet{' of a sweep' if name in SWEPT else ''}\n")
            show(COLUMN, rows, text_cells=True)
            print()


VERB = Verb("schema", Purpose.LOOK, 2, "Print what files and tables may hold.", print_schema)
