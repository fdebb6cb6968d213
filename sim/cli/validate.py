"""``ckptsim validate``: recordings of real jobs beside what is predicted from their configuration alone."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sim.cli.console.errors import Code, speaking
from sim.cli.console.listener import Console
from sim.cli.console.overview import Purpose, Verb
from sim.cli.console.terminal import put
from sim.cli.options import EnvironmentOption, JobsOption

if TYPE_CHECKING:
    from sim.verbs.validate import Leading, Validation


def validate_recordings(
    recordings: Annotated[list[Path], typer.Argument(metavar="RECORDING...", help="Recordings, or folders of them.", show_default=False)],
    seeds: Annotated[int, typer.Option("--seeds", min=1, help="Simulations per recording.")] = 3,
    jobs: JobsOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="All rows as a JSON list.")] = False,
    everything: Annotated[
        bool, typer.Option("--all", help="Count recordings with features that are not modelled, too, not only show them.")
    ] = False,
    environment: EnvironmentOption = None,
    time_limit: Annotated[float, typer.Option(min=1, metavar="SECONDS", help="For one recording; then it is skipped.")] = 600,
    report: Annotated[
        Path | None, typer.Option("--report", metavar="FILE", help="Write the table as one HTML file as well.", show_default=False)
    ] = None,
    explain: Annotated[bool, typer.Option("--explain", help="Compare what leads their checkpoints instead.")] = False,
) -> None:
    """Compare predictions with recordings: observed beside predicted, and how far off on the whole."""
    with speaking():
        console = Console(partial(_show_leading if explain else _show, as_json=as_json))
        from sim.verbs.validate import validate, validate_explanations

        if explain:
            leading = validate_explanations(recordings, listener=console)
            console.finish()
            raise typer.Exit(Code.CELLS_FAILED if leading.skipped else Code.FINE)
        found = validate(
            recordings, seeds=seeds, jobs=jobs, environment=environment, time_limit_s=time_limit, everything=everything, report=report,
            listener=console,
        )  # fmt: skip
        console.finish()
        raise typer.Exit(Code.CELLS_FAILED if found.skipped else Code.FINE)


def _show(found: Validation, *, as_json: bool) -> None:
    from sim.cli.truth_tables import show_bars, show_orderings, show_summaries, show_table

    if as_json:
        print(json.dumps(found.plain(), allow_nan=False))
        return
    if found.judged:
        show_table(found.table)
    if found.counted:
        show_orderings(found.orderings)
        show_summaries(found)
        show_bars(found.bars)


def _show_leading(found: Leading, *, as_json: bool) -> None:
    from dataclasses import asdict

    from sim.cli.truth_tables import table

    if as_json:
        print(json.dumps([asdict(recording) for recording in found.recordings]))
    else:
        put("\n".join(table(found.recordings)))


VERB = Verb("validate", Purpose.TRUST, 1, "Compare predictions with recordings.", validate_recordings)
