"""``ckptsim sweep``: many cells, in processes or on Spark, one row each; run again, it goes on where it was."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sim.cli.errors import Code, Stopped, UserError, output_folder, say, speaking
from sim.cli.options import ChecksOption, Engine, EngineOption, JobsOption, OutOption, SeedOption, SetOption
from sim.cli.progress import bar

if TYPE_CHECKING:
    import pandas as pd

    from sim.sweep.plan import Cell

__all__ = ["run_sweep"]

AxisOption = Annotated[
    list[str] | None,
    typer.Option("--axis", metavar="KEY=V1,V2", help="Vary a value, e.g. checkpoint.interval='10 s,30 s'.", show_default=False),
]
MasterOption = Annotated[
    str | None, typer.Option(metavar="URL", help="Run on Spark: local[*] or spark://HOST:PORT; needs Java.", show_default=False)
]


def run_sweep(
    scenario: Annotated[Path, typer.Argument(metavar="SCENARIO", help="A scenario file (YAML).", show_default=False)],
    axes: AxisOption = None,
    out: OutOption = None,
    replications: Annotated[int | None, typer.Option(min=1, help="Instead of run.replications.", show_default=False)] = None,
    overrides: SetOption = None,
    engine: EngineOption = Engine.COMPILED,
    jobs: JobsOption = None,
    master: MasterOption = None,
    seed: SeedOption = None,
    checks: ChecksOption = True,
) -> None:
    """Run every combination of the scenario's lists and the given axes; one row per cell."""
    with speaking():
        if jobs is not None and master is not None:
            raise UserError("--jobs and --master exclude each other", Code.USAGE)
        from sim.scenario import load
        from sim.sweep.axes import override
        from sim.sweep.compare import run_folder
        from sim.sweep.plan import cells, with_baselines

        changes = [*(overrides or ()), *map(override, axes or ())]
        changes += [f"run.{key}={value}" for key, value in (("seed", seed), ("replications", replications)) if value is not None]
        study = load(scenario, changes)
        for warning in study.warnings:
            say(f"warning: {warning}")
        folder = output_folder(Path("runs") / run_folder(study) if out is None else out)
        table = _rows(with_baselines(cells(study.scenarios)), folder, engine, jobs, master, checks)
        failed = table[table["status"] != "ok"]
        for _, row in failed.iterrows():
            say(f"cell {row['cell']}: {row['error']}")
        broken = table[table["violations"] > 0] if "violations" in table else table[:0]
        for _, row in broken.iterrows():
            say(f"cell {row['cell']}: {row['violation'].splitlines()[0]}")
        print(f"{len(table) - len(failed)} of {len(table)} cells have a row in {folder / 'results.parquet'}")
        raise typer.Exit(Code.CELLS_FAILED if len(failed) else Code.FINE)


def _rows(planned: list[Cell], folder: Path, engine: Engine, jobs: int | None, master: str | None, checks: bool) -> pd.DataFrame:
    from sim.sweep.runners import sweep
    from sim.sweep.store import Store

    store = Store(folder)
    missing = store.missing(planned)
    if len(missing) < len(planned):
        say(f"{len(planned) - len(missing)} of {len(planned)} cells are there already")
    with bar(folder.name, sum(cell.scenario.run.duration_ns for cell in missing), len(missing)) as watch:
        try:
            return sweep(planned, store, engine=engine.value, jobs=jobs, master=master, watch=watch, check=checks)
        except KeyboardInterrupt:
            left = len(store.missing(planned))
            raise Stopped(f"{len(planned) - left} of {len(planned)} cells are kept in {folder}; the same command goes on") from None
