"""Truth tables for people and for machines."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

from sim.cli.console.terminal import show

if TYPE_CHECKING:
    import pandas as pd

_PERCENTILES = ("p10", "p50", "p90")


def as_records(table: pd.DataFrame) -> str:
    """A JSON list, `observed` and `predicted` as {p10, p50, p90}; what is not known is null."""
    return json.dumps([_record(row) for row in table.to_dict("records")], allow_nan=False)


def _record(row: dict[Any, Any]) -> dict[str, Any]:
    sides = {side: {name: _known(row[f"{side}_{name}"]) for name in _PERCENTILES} for side in ("observed", "predicted")}
    return {
        "recording": row["recording"], "family": row["family"], "quantity": row["quantity"], "unit": unit(row["quantity"]),
        "vertex": row["vertex"], **sides, "relative_error": _known(row["relative_error"]), "covered": bool(row["covered"]),
    }  # fmt: skip


def _known(number: float) -> float | None:
    return float(number) if math.isfinite(number) else None


def unit(quantity: str) -> str:
    from sim.evidence.truth import FIRST
    from sim.recordings.observe.quantities import UNITS

    return UNITS[quantity.removesuffix(FIRST)]


def show_table(table: pd.DataFrame) -> None:
    """Every row but those that are 0 on both sides."""
    nonzero = table[(table["observed_p50"] != 0) | (table["predicted_p50"] != 0)]
    rows = [
        [
            row["recording"], row["quantity"], row["vertex"] or "", *_numbers(row, "observed"), *_numbers(row, "predicted"),
            unit(row["quantity"]), share(row["relative_error"], signed=True), "yes" if row["covered"] else "no",
        ]
        for row in nonzero.to_dict("records")
    ]  # fmt: skip
    sides = [f"{side} {name}" for side in ("observed", "predicted") for name in _PERCENTILES]
    show(["recording", "quantity", "vertex", *sides, "unit", "error", "covered"], rows)


def show_summaries(table: pd.DataFrame) -> None:
    """Per quantity, per family, and per quantity within families."""
    from sim.evidence.summary import PER_FAMILY, PER_FAMILY_AND_QUANTITY, PER_QUANTITY, summary

    for by in (PER_FAMILY_AND_QUANTITY, PER_FAMILY, PER_QUANTITY):
        off = summary(table, by)
        print()
        header = [*by, "recordings", "rows", "covered", "median error", "p90 error"]
        rows = [
            [*(str(row[key]) for key in (*by, "recordings", "rows")), *(share(row[key]) for key in ("covered", "median", "p90"))]
            for row in off.to_dict("records")
        ]
        show(header, rows)


def show_orderings(orderings: pd.DataFrame) -> None:
    """Nothing, where no two recordings differ in one setting."""
    if orderings.empty:
        return
    print()
    columns = ["observed_one", "observed_other", "predicted_one", "predicted_other"]
    rendered = orderings.assign(order=orderings["right"].map({True: "right", False: "WRONG"}))
    rows = [
        [*(row[key] for key in ("setting", "one", "other", "quantity")), *(_number(row[key]) for key in columns), row["order"]]
        for row in rendered.to_dict("records")
    ]
    show(["one setting differs", "one", "other", "quantity", "observed", "and", "predicted", "and", "order"], rows)
    print(f"\n{int(orderings['right'].sum())} of {len(orderings)} orderings are predicted right.")


def show_bars(bars: pd.DataFrame) -> None:
    if bars.empty:
        return
    print()
    rendered = bars.assign(met=bars["met"].map({True: "met", False: "MISSED"}))
    rows = [
        [row["what"], row["where"], row["bar"], str(row["rows"]), share(row["reached"]), share(row["p90"]), row["met"]]
        for row in rendered.to_dict("records")
    ]
    show(["bar", "where", "asked for", "rows", "reached", "p90", ""], rows)


def _numbers(row: dict[Any, Any], side: str) -> list[str]:
    return [_number(row[f"{side}_{name}"]) for name in _PERCENTILES]


def _number(value: float) -> str:
    if not math.isfinite(value):
        return "-"
    return f"{value:,.0f}" if abs(value) >= 10 or value == int(value) else f"{value:.2g}"


def share(number: float, *, signed: bool = False) -> str:
    """In per cent; '-': there is none."""
    if not math.isfinite(number):
        return "-"
    return (f"{number:+.1%}" if signed else f"{number:.1%}") if number else "0 %"
