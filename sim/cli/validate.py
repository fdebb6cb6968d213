"""``ckptsim validate``: recordings of real jobs beside what is predicted from their configuration alone."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from sim.cli.errors import Code, UserError, say, speaking
from sim.cli.options import EnvironmentOption
from sim.cli.progress import bar

if TYPE_CHECKING:
    import pandas as pd

    from sim.model.scenario import Overheads
    from sim.sweep.local import Progress

__all__ = ["validate_recordings"]


class _Outcome(NamedTuple):
    """Of one file."""

    table: pd.DataFrame | None
    lost: list[str]  # what is not modelled
    trouble: str  # why there is no table


def validate_recordings(
    recordings: Annotated[list[Path], typer.Argument(metavar="RECORDING...", help="Recordings, or folders of them.", show_default=False)],
    seeds: Annotated[int, typer.Option("--seeds", min=1, help="Simulations per recording.")] = 3,
    jobs: Annotated[int, typer.Option("--jobs", "-j", min=1, help="Recordings side by side, in processes.")] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="All rows as a JSON list.")] = False,
    everything: Annotated[
        bool, typer.Option("--all", help="Count recordings with features that are not modelled, too, not only show them.")
    ] = False,
    environment: EnvironmentOption = None,
) -> None:
    """Hold predictions to recordings: observed beside predicted, and how far off on the whole."""
    with speaking():
        import pandas as pd

        from sim.scenario.environment import load

        paths = [file for path in recordings for file in _files(path)]
        if not paths:
            raise UserError(f"no recordings (.json, .json.gz) in {', '.join(map(str, recordings))}", Code.INVALID_INPUT)
        overheads = None if environment is None else load(environment)
        tables, counted, skipped = [], [], 0
        for path, outcome in zip(paths, _outcomes(paths, seeds, jobs, overheads), strict=True):
            if outcome.table is None:
                say(f"skipped: {outcome.trouble}")
                skipped += 1
                continue
            tables.append(outcome.table)
            if outcome.lost:
                say(f"{path.name}: not modelled: {'; '.join(outcome.lost)}{'' if everything else ' (shown, not counted)'}")
            if everything or not outcome.lost:
                counted.append(outcome.table)
        table = pd.concat(tables, ignore_index=True) if tables else pd.DataFrame()
        _show(table, pd.concat(counted, ignore_index=True) if counted else table.iloc[:0], as_json)
        raise typer.Exit(Code.CELLS_FAILED if skipped else Code.FINE)


def _files(path: Path) -> list[Path]:
    return sorted([*path.glob("*.json"), *path.glob("*.json.gz")]) if path.is_dir() else [path]


def _outcomes(paths: list[Path], seeds: int, jobs: int, overheads: Overheads | None) -> list[_Outcome]:
    """In the order of the paths."""
    from functools import partial

    from sim.sweep.local import each

    with bar("validate", len(paths), len(paths), what_each="recordings") as watch:
        judge = partial(_judge, seeds=seeds, overheads=overheads)
        done = dict(each(judge, paths, jobs=jobs, watch=lambda finished, _: watch(finished, finished)))
    return [done[i] for i in range(len(paths))]


def _judge(path: Path, progress: Progress, *, seeds: int, overheads: Overheads | None = None) -> _Outcome:
    """The truth table of one file.  Nothing in one file keeps the others from being judged."""
    from sim.calibration.truth import truth, unmodelled
    from sim.recordings import RecordingError, read
    from sim.scenario import ScenarioError

    progress(0)
    try:
        recording = read(path)
        lost = unmodelled(recording)
        return _Outcome(truth(recording, seeds=range(1, seeds + 1), overheads=overheads), lost, "")
    except RecordingError as error:
        return _Outcome(None, [], str(error))
    except ScenarioError as error:
        return _Outcome(None, [], f"{path}: is a recording of a job that cannot be simulated: {error}")
    except Exception as error:  # noqa: BLE001 -- ours, and no reason to lose what the other recordings say
        return _Outcome(None, [], f"{path}: the simulation broke: {type(error).__name__}: {error}")


def _show(table: pd.DataFrame, counted: pd.DataFrame, as_json: bool) -> None:
    from sim.cli.truth_shown import as_records, show_summaries, show_table

    if as_json:
        print(as_records(table))
    elif len(table):
        show_table(table)
        show_summaries(counted)
