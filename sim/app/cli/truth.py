"""The command `validate`: print how well predictions agree with recordings."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple, Unpack

from sim.app.cli.console import Console
from sim.app.cli.errors import Code
from sim.app.cli.options import argument
from sim.app.cli.overview import Purpose, Verb
from sim.app.cli.terminal import put, show
from sim.app.verbs.options import Option, ValidateOptions
from sim.results.formats import bare_text

if TYPE_CHECKING:
    import pandas as pd

    from sim.app.verbs.validate import Leading, Validation
    from sim.jobs.history.side_by_side import SideBySide


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


def show_summaries(found: Validation) -> None:
    """Print the errors per quantity and family, per family, and per quantity."""
    from sim.jobs.evidence.prediction import PER_FAMILY, PER_FAMILY_AND_QUANTITY, PER_QUANTITY

    for by in (PER_FAMILY_AND_QUANTITY, PER_FAMILY, PER_QUANTITY):
        off = found.summary_by(by)
        print()
        header = [*by, "recordings", "rows", "covered", "median error", "p90 error"]
        rows = [
            [
                *(str(row[key]) for key in (*by, "recordings", "rows")),
                *(share(row[key]) for key in ("covered", "median", "p90")),
            ]
            for row in off.to_dict("records")
        ]
        show(header, rows)


def show_orderings(orderings: pd.DataFrame) -> None:
    """Print which predicted orderings are right; nothing if no two recordings differ in exactly one setting."""
    if orderings.empty:
        return
    print()
    columns = ["observed_one", "observed_other", "predicted_one", "predicted_other"]
    rendered = orderings.assign(order=orderings["right"].map({True: "right", False: "WRONG"}))
    rows = [
        [
            *(row[key] for key in ("setting", "one", "other", "quantity")),
            *(bare_text(row[key]) for key in columns),
            row["order"],
        ]
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


def share(number: float, *, signed: bool = False) -> str:
    """Format a share as a percentage; "-" if it is not finite."""
    if not math.isfinite(number):
        return "-"
    return (f"{number:+.1%}" if signed else f"{number:.1%}") if number else "0 %"


_NAME_CHARS = 36


def table(found: Sequence[SideBySide]) -> list[str]:
    """Return the lines of ``validate --explain``: a row per recording with a long enough checkpoint, and the total."""
    from sim.jobs.history.side_by_side import MIN_COMPARED_MS
    from sim.model.text import one_line

    counted = [recording for recording in found if recording.comparison.pairs]
    shares = {one_line(recording.recording, _NAME_CHARS - 1): _Shares.of(recording) for recording in counted}
    rows = [_row(name, row) for name, row in shares.items()]
    total = _Shares(*(sum(column) for column in zip(*shares.values(), strict=True))) if shares else _Shares()
    return [
        f"{f'checkpoints of {MIN_COMPARED_MS} ms and more':{_NAME_CHARS}}{'':>5}{'part':>7}{'often':>7}{'kind':>7}{'itself':>8}{'readable':>10}",
        *rows,
        _row(f"all {len(counted)}", total),
        "",
        "part: recording and simulation name the same leading part, at the same vertex;",
        "  checkpoints of equal rank are compared.  often: whatever the ranks, as often.",
        "kind: the same part, at any vertex.",
        "itself: the simulation with another seed in the recording's place, by ranks.",
        "readable: statistics of simulated checkpoints name what their journal names.",
    ]


class _Shares(NamedTuple):
    """Numerators and denominators of the shares in a row."""

    pairs: int = 0  # compared checkpoints; denominator of the next three
    agreeing: int = 0
    matched: int = 0
    same_kind: int = 0
    repetition: int = 0  # agreeing checkpoints of two simulations, out of of_itself
    of_itself: int = 0
    read: int = 0  # simulated checkpoints whose statistics name what their journal names, out of simulated
    simulated: int = 0

    @classmethod
    def of(cls, recording: SideBySide) -> _Shares:
        comparison, repetition = recording.comparison, recording.repetition
        return cls(
            len(comparison.pairs),
            comparison.agreeing,
            comparison.matched,
            comparison.same_kind,
            repetition.agreeing,
            len(repetition.pairs),
            recording.read,
            recording.simulated,
        )


def _row(name: str, row: _Shares) -> str:
    part, often, kind = (_share(count, row.pairs) for count in (row.agreeing, row.matched, row.same_kind))
    repetition, readable = _share(row.repetition, row.of_itself), _share(row.read, row.simulated)
    return f"{name:{_NAME_CHARS}}{row.pairs:>5}{part:>7}{often:>7}{kind:>7}{repetition:>8}{readable:>10}"


def _share(count: int, of: int) -> str:
    return f"{count / of:.0%}" if of else "-"


# ---- ``ckptsim validate``


def validate_recordings(
    recordings: Annotated[list[Path], argument("RECORDING", "Recordings, or folders of recordings.")],
    *,
    explain: Annotated[bool, Option("Compare which phase dominates each checkpoint instead.")] = False,
    as_json: Annotated[bool, Option("Print all rows as a JSON list.", flag="--json")] = False,
    **options: Unpack[ValidateOptions],
) -> Code:
    """Compare predictions with recordings: observed and predicted values, and their overall error."""
    from sim.app.verbs.validate import validate, validate_explanations

    with Console(_show_leading if explain else _show, as_json=as_json) as console:
        found = (
            validate_explanations(recordings, listener=console)
            if explain
            else validate(recordings, listener=console, **options)
        )
    return Code.CELLS_FAILED if found.skipped else Code.FINE


def _show(found: Validation) -> None:
    if found.judged:
        show_table(found.table)
    if found.counted:
        show_orderings(found.orderings)
        show_summaries(found)
        show_bars(found.bars)


def _show_leading(found: Leading) -> None:
    put("\n".join(table(found.recordings)))


VALIDATE_VERB = Verb("validate", Purpose.TRUST, 1, "Compare predictions with recordings.", validate_recordings)
