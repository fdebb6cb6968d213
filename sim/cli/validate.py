"""``ckptsim validate``: recordings of real jobs beside what is predicted from their configuration alone."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sim.cli.console.errors import Code, UserError, print_message, speaking, stoppable
from sim.cli.console.progress import bar
from sim.cli.explained_recordings import explain_recordings
from sim.cli.options import EnvironmentOption, JobsOption

if TYPE_CHECKING:
    from sim.evidence.judging import Judgement
    from sim.model.scenario import Overheads

_KEPT = "nothing is kept: all recordings are judged by one call"


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
        from sim.evidence.folder import by_name, recordings_in
        from sim.scenario.environment import load

        paths = [file for path in recordings for file in recordings_in(path, print_message)]
        if not paths:
            raise UserError(f"no recordings (.json, .json.gz, .zip) in {', '.join(map(str, recordings))}", Code.INVALID_INPUT)
        if explain:
            explain_recordings(paths, as_json=as_json)
        overheads = None if environment is None else load(environment)
        found = list(zip(paths, _outcomes(paths, seeds, jobs, time_limit, overheads), strict=True))
        for path, outcome in found:
            if outcome.table is None:
                print_message(f"skipped: {outcome.trouble}")
            elif outcome.lost:
                print_message(f"{path.name}: not modelled: {'; '.join(outcome.lost)}{'' if everything else ' (shown, not counted)'}")
        judged = by_name([(path, outcome) for path, outcome in found if outcome.table is not None])
        _show(judged, {name: outcome for name, outcome in judged.items() if everything or not outcome.lost}, as_json)
        if report is not None and judged:
            _report(report, judged, [f"{path.name}: not modelled: {'; '.join(outcome.lost)}" for path, outcome in found if outcome.lost])
        raise typer.Exit(Code.FINE if all(outcome.table is not None for _, outcome in found) else Code.CELLS_FAILED)


def _outcomes(paths: list[Path], seeds: int, jobs: int | None, time_limit_s: float, overheads: Overheads | None) -> list[Judgement]:
    """In the order of the paths."""
    from sim.evidence.folder import judge_all

    with bar("validate", len(paths), len(paths), what_each="recordings") as watch, stoppable(_KEPT):
        return judge_all(paths, seeds=seeds, jobs=jobs, time_limit_s=time_limit_s, overheads=overheads, watch=watch)


def _report(file: Path, judged: dict[str, Judgement], notes: list[str]) -> None:
    """The same as a page."""
    import shlex
    import sys

    import pandas as pd

    from sim.cli.truth_tables import unit
    from sim.report.page import html
    from sim.report.truth_page import truth_page
    from sim.whole_file import replace_text

    table = pd.concat([outcome.table for outcome in judged.values() if outcome.table is not None], ignore_index=True)
    units = {name: unit(name) for name in table["quantity"].unique()}
    assumptions = [*notes, "Predicted from configurations alone: nothing that a recording observed is an input."]
    replace_text(file, html(truth_page(table, units, assumptions, f"ckptsim {shlex.join(sys.argv[1:])}")))
    print_message(str(file))


def _show(judged: dict[str, Judgement], counted: dict[str, Judgement], as_json: bool) -> None:
    import pandas as pd

    from sim.cli.truth_tables import as_records, show_bars, show_orderings, show_summaries, show_table
    from sim.evidence.bars import MEASURED_BARS, bars
    from sim.evidence.orderings import orderings

    tables = [outcome.table for outcome in judged.values() if outcome.table is not None]
    if as_json:
        print(as_records(pd.concat(tables, ignore_index=True)) if tables else "[]")
    elif tables:
        show_table(pd.concat(tables, ignore_index=True))
    if as_json or not counted:
        return
    table = pd.concat([outcome.table for outcome in counted.values() if outcome.table is not None], ignore_index=True)
    show_orderings(orderings(table, {name: outcome.settings for name, outcome in counted.items() if outcome.settings is not None}))
    show_summaries(table)
    measured = {name: outcome.is_measured for name, outcome in counted.items()}
    graphs = {name: outcome.graph for name, outcome in counted.items()}
    show_bars(bars(table[~table["recording"].map(measured)], graphs))
    show_bars(bars(table[table["recording"].map(measured)], graphs, MEASURED_BARS))
