"""``ckptsim validate``: recordings of real jobs beside what is predicted from their configuration alone."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sim.cli.console.errors import Code, UserError, print_message, speaking, stoppable
from sim.cli.console.progress import bar
from sim.cli.options import EnvironmentOption, JobsOption
from sim.cli.recording_files import in_folder

if TYPE_CHECKING:
    from sim.model.scenario import Overheads
    from sim.validation.judging import Judgement

__all__ = ["validate_recordings"]


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
) -> None:
    """Hold predictions to recordings: observed beside predicted, and how far off on the whole."""
    with speaking():
        from sim.scenario.environment import load

        paths = [file for path in recordings for file in _files(path)]
        if not paths:
            raise UserError(f"no recordings (.json, .json.gz, .zip) in {', '.join(map(str, recordings))}", Code.INVALID_INPUT)
        overheads = None if environment is None else load(environment)
        found = list(zip(paths, _outcomes(paths, seeds, jobs, time_limit, overheads), strict=True))
        for path, outcome in found:
            if outcome.table is None:
                print_message(f"skipped: {outcome.trouble}")
            elif outcome.lost:
                print_message(f"{path.name}: not modelled: {'; '.join(outcome.lost)}{'' if everything else ' (shown, not counted)'}")
        judged = _by_name([(path, outcome) for path, outcome in found if outcome.table is not None])
        _show(judged, {name: outcome for name, outcome in judged.items() if everything or not outcome.lost}, as_json)
        raise typer.Exit(Code.FINE if len(judged) == len(found) else Code.CELLS_FAILED)


def _by_name(found: list[tuple[Path, Judgement]]) -> dict[str, Judgement]:
    """Recordings of one name are told apart by their folders, then by their paths."""
    names = [outcome.name for _, outcome in found]
    paths = [path for path, _ in found]
    foldered = [f"{path.absolute().parent.name}/{name}" if names.count(name) > 1 else name for path, name in zip(paths, names, strict=True)]
    unique = [str(path) if foldered.count(name) > 1 else name for path, name in zip(paths, foldered, strict=True)]
    return {
        name: outcome._replace(table=None if outcome.table is None else outcome.table.assign(recording=name))
        for name, (_, outcome) in zip(unique, found, strict=True)
    }


def _files(path: Path) -> list[Path]:
    """A folder of saved REST answers is one recording."""
    if not path.is_dir() or (path / "jobs").is_dir():
        return [path]
    return in_folder(path)


def _outcomes(paths: list[Path], seeds: int, jobs: int | None, time_limit_s: float, overheads: Overheads | None) -> list[Judgement]:
    """In the order of the paths."""
    from functools import partial

    from sim.cells.local import cores, run_each
    from sim.validation.judging import judge

    with bar("validate", len(paths), len(paths), what_each="recordings") as watch:
        one_file = partial(judge, seeds=seeds, time_limit_s=time_limit_s, overheads=overheads)
        with stoppable("nothing is kept: all recordings are judged by one call"):
            done = dict(run_each(one_file, paths, jobs=jobs or cores(), watch=lambda finished, _: watch(finished, finished)))
    return [done[i] for i in range(len(paths))]


def _show(judged: dict[str, Judgement], counted: dict[str, Judgement], as_json: bool) -> None:
    import pandas as pd

    from sim.cli.reports.truth_tables import as_records, show_bars, show_orderings, show_summaries, show_table
    from sim.validation.bars import MEASURED_BARS, bars
    from sim.validation.orderings import orderings

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
