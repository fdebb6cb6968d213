"""``ckptsim validate``: recordings of real jobs beside what is predicted from their configuration alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sim.cli.errors import Code, UserError, say, speaking
from sim.cli.progress import bar
from sim.cli.shown import show

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["validate_recordings"]


def validate_recordings(
    recordings: Annotated[list[Path], typer.Argument(metavar="RECORDING...", help="Recordings, or folders of them.", show_default=False)],
    seeds: Annotated[int, typer.Option("--seeds", min=1, help="Simulations per recording; the median counts.")] = 3,
    as_json: Annotated[bool, typer.Option("--json", help="All rows as a JSON list.")] = False,
    everything: Annotated[bool, typer.Option("--all", help="Also recordings with features that are not modelled.")] = False,
) -> None:
    """Hold predictions to recordings: observed beside predicted, and how far off on the whole."""
    with speaking():
        import pandas as pd

        paths = [file for path in recordings for file in _files(path)]
        if not paths:
            raise UserError(f"no recordings (.json, .json.gz) in {', '.join(map(str, recordings))}", Code.INVALID_INPUT)
        tables, unreadable = _tables(paths, seeds, everything)
        table = pd.concat(tables, ignore_index=True) if tables else pd.DataFrame()
        if as_json:
            print(json.dumps(json.loads(table.to_json(orient="records")), allow_nan=False))
        elif tables:
            _print(table)
        raise typer.Exit(Code.CELLS_FAILED if unreadable else Code.FINE)


def _files(path: Path) -> list[Path]:
    return sorted([*path.glob("*.json"), *path.glob("*.json.gz")]) if path.is_dir() else [path]


def _tables(paths: list[Path], seeds: int, everything: bool) -> tuple[list[pd.DataFrame], int]:
    """The judged rows of each recording, and how many files were no recordings."""
    from sim.calibration.judgement import judged
    from sim.calibration.truth import truth_table, unmodelled
    from sim.recordings import RecordingError

    tables, unreadable = [], 0
    with bar("validate", len(paths), len(paths)) as watch:
        for done, path in enumerate(paths):
            try:
                lost = unmodelled(path)
                if lost and not everything:
                    say(f"{path.name}: skipped, not modelled: {'; '.join(lost)}")
                else:
                    tables.append(judged(truth_table(path, seeds=range(1, seeds + 1))))
            except RecordingError as error:
                say(f"skipped: {error}")
                unreadable += 1
            watch(done + 1, done + 1)
    return tables, unreadable


def _print(table: pd.DataFrame) -> None:
    from sim.calibration.judgement import JUDGED, summary

    def row(recording: str, quantity: str, vertex: str, observed: float, predicted: float, error: float) -> list[str]:
        values = (f"{number:,.0f} {JUDGED[quantity]}".rstrip() for number in (observed, predicted))
        return [recording, quantity, vertex, *values, _share(error)]

    columns = ["recording", "quantity", "vertex", "observed", "predicted", "relative_error"]
    show(columns, [row(*values) for values in table[columns].itertuples(index=False, name=None)])
    print()
    off = summary(table)
    rows = [[name, str(n), _share(median), _share(p90)] for name, n, median, p90 in off.itertuples(index=False, name=None)]
    show(["quantity", "rows", "median error", "p90 error"], rows)


def _share(number: float) -> str:
    return "-" if number != number else f"{number:+.1%}" if number else "0 %"  # noqa: PLR0124 -- NaN: observed as 0
