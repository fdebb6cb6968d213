"""The command `validate`: print how well predictions agree with recordings."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Unpack

from sim.app.cli.console import Console
from sim.app.cli.errors import Code
from sim.app.cli.options import argument
from sim.app.cli.overview import Purpose, Verb
from sim.app.cli.terminal import show
from sim.app.verbs.options import JsonOption, ValidateOptions
from sim.results.formats import bare_text

if TYPE_CHECKING:
    import pandas as pd

    from sim.app.verbs.validate import Validation


# ---- Tables of ``ckptsim validate``


def show_table(table: pd.DataFrame) -> None:
    """Print observed and predicted values.  Rows that are 0 on both sides are omitted."""
    from sim.app.verbs.validate import PERCENTILES, unit_of

    nonzero = table[(table["observed_p50"] != 0) | (table["predicted_p50"] != 0)]
    sides = [f"{side}_{name}" for side in ("observed", "predicted") for name in PERCENTILES]
    rows = [
        [
            row["recording"],
            row["quantity"],
            row["vertex"] or "",
            *(bare_text(row[side]) for side in sides),
            unit_of(row["quantity"]),
            share(row["relative_error"], signed=True),
            "yes" if row["covered"] else "no",
        ]
        for row in nonzero.to_dict("records")
    ]
    show(
        ["recording", "quantity", "vertex", *(side.replace("_", " ") for side in sides), "unit", "error", "covered"],
        rows,
    )


def show_summary(found: Validation) -> None:
    """Print the errors per quantity."""
    print()
    rows = [
        [
            *(str(row[key]) for key in ("quantity", "recordings", "rows")),
            *(share(row[key]) for key in ("covered", "median", "p90")),
        ]
        for row in found.summary.to_dict("records")
    ]
    show(["quantity", "recordings", "rows", "covered", "median error", "p90 error"], rows)


def share(number: float, *, signed: bool = False) -> str:
    """Format a share as a percentage; "-" if it is not finite."""
    if not math.isfinite(number):
        return "-"
    return (f"{number:+.1%}" if signed else f"{number:.1%}") if number else "0 %"


# ---- ``ckptsim validate``


def validate_recordings(
    recordings: Annotated[list[Path], argument("RECORDING", "Recordings, or folders of recordings.")],
    *,
    as_json: JsonOption = False,
    **options: Unpack[ValidateOptions],
) -> Code:
    """Compare predictions with recordings: observed and predicted values, and their overall error."""
    from sim.app.verbs.validate import validate

    with Console(show_validation, as_json=as_json) as console:
        validation = validate(*recordings, listener=console, **options)
    return Code.CELLS_FAILED if validation.skipped else Code.FINE


def show_validation(validation: Validation) -> None:
    """Print the table of all recordings, and the errors of those that count."""
    if validation.judged:
        show_table(validation.table)
    if validation.counted:
        show_summary(validation)


VALIDATE_VERB = Verb("validate", Purpose.TRUST, 1, "Compare predictions with recordings.", validate_recordings)
