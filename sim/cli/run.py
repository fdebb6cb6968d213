"""``ckptsim run``: every combination of a scenario side by side, one table, one sentence, a folder of results."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sim.cli.console.errors import Code, print_message, speaking
from sim.cli.console.progress import bar
from sim.cli.console.terminal import put, show
from sim.cli.options import (
    ChecksOption,
    Engine,
    EngineOption,
    EnvironmentOption,
    JobsOption,
    OutOption,
    SeedOption,
    SetOption,
    in_environment,
)
from sim.cli.reports.validity import print_backtest, print_tails, warn_outside
from sim.verbs.listener import Stopped
from sim.verbs.options import writable_folder

if TYPE_CHECKING:
    from sim.comparison.comparison import Comparison
    from sim.comparison.expect import Expectation
    from sim.scenario import Study

__all__ = ["run_scenarios"]


def run_scenarios(
    scenarios: Annotated[list[Path], typer.Argument(metavar="SCENARIO...", help="Scenario files (YAML).", show_default=False)],
    out: OutOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per scenario instead of tables.")] = False,
    overrides: SetOption = None,
    engine: EngineOption = Engine.COMPILED,
    jobs: JobsOption = None,
    seed: SeedOption = None,
    checks: ChecksOption = True,
    picture: Annotated[bool, typer.Option("--picture", help="Draw comparison.png as well: checkpoints, queues, back-pressure.")] = False,
    environment: EnvironmentOption = None,
) -> None:
    """Compare the checkpoint strategies of a scenario."""
    with speaking():
        from sim.comparison.expect import check
        from sim.scenario import load

        changes = [*(overrides or ()), *(() if seed is None else (f"run.seed={seed}",)), *in_environment(environment)]
        studies = [load(path, changes) for path in scenarios]
        expected = [check(study.scenarios[0].expect) for study in studies]  # before anything runs
        code = Code.FINE
        for path, study, expectations in zip(scenarios, studies, expected, strict=True):
            folder = _folder(out, study, several=len(studies) > 1)
            code = max(code, _run_file(path, study, expectations, folder, as_json, engine, jobs, changes, checks, picture))
        raise typer.Exit(code)


def _run_file(
    path: Path,
    study: Study,
    expected: list[Expectation],
    folder: Path,
    as_json: bool,
    engine: Engine,
    jobs: int | None,
    changes: list[str],
    checks: bool,
    picture: bool,
) -> Code:
    from sim.scenario.text.unknowns import assumed

    for warning in study.warnings:
        print_message(f"warning: {warning}")
    if assumptions := assumed(path.read_text(encoding="utf-8", errors="replace")):
        print_message(f"warning: {path}: {assumptions}")
    warn_outside(study.name, study.scenarios)
    print_backtest(study.name, study.backtest)
    print_tails(study.name, study.scenarios)
    from sim.comparison.files import keep, plain
    from sim.comparison.run_folder import replacing
    from sim.scenario.backtest.history import history_of

    history = history_of(study.backtest, study.scenarios[0].residuals)
    nobody_reads: BrokenPipeError | None = None
    with replacing(folder, print_message) as place:
        comparison = _compared(study, place, engine, jobs, checks)
        checked = _checked(comparison, expected)
        try:
            if as_json:
                verdicts = [{**row, "value": row["value"] if math.isfinite(row["value"]) else None} for row in checked]
                print(
                    json.dumps({**plain(comparison), "history": history, "expectations": verdicts, "folder": str(folder)}, allow_nan=False)
                )
            else:
                _print(study, comparison, checked)
            sys.stdout.flush()  # keeping and drawing take longer than comparing
        except BrokenPipeError as error:  # the results are kept all the same
            nobody_reads = error
        keep(comparison, place, path.read_text(encoding="utf-8"), path, changes, history=history, picture=picture)
    if nobody_reads is not None:
        raise nobody_reads
    print_message(str(folder))
    if comparison.errors:
        return Code.CELLS_FAILED
    if comparison.violations:
        return Code.VIOLATED
    return Code.FINE if all(row["holds"] for row in checked) else Code.EXPECTATION_FAILED


def _folder(out: Path | None, study: Study, *, several: bool) -> Path:
    from sim.cells.folder_name import run_folder

    name = run_folder(study.name, study.scenarios)
    return writable_folder(Path("runs") / name if out is None else out / name if several else out)


def _compared(study: Study, folder: Path, engine: Engine, jobs: int | None, checks: bool) -> Comparison:
    from sim.cells.plan import cells, with_baselines
    from sim.comparison.compare import compare_cells

    planned = with_baselines(cells(study.scenarios))
    with bar(study.name, sum(cell.scenario.run.duration_ns for cell in planned), len(planned)) as watch:
        try:
            return compare_cells(study, planned, engine=engine.value, jobs=jobs, folder=folder, watch=watch, check=checks)
        except KeyboardInterrupt:
            finished = len(list(folder.glob("*/journal.jsonl")))
            raise Stopped(f"{finished} of {len(planned)} runs are kept in {folder}") from None


def _checked(comparison: Comparison, expected: list[Expectation]) -> list[dict[str, Any]]:
    """Every expectation for every strategy."""
    return [
        {
            "strategy": name,
            "metric": line.metric,
            "condition": str(line.condition),
            "value": value.number,
            "n": value.sample,
            "holds": line.holds(value),
            "reached": line.reached(value),
        }
        for line in expected
        for name, results in comparison.results.items()
        for value in [line.value(results)]
    ]


def _print(study: Study, comparison: Comparison, checked: list[dict[str, Any]]) -> None:
    from sim.analysis.strategies.side_by_side import texts

    if study.question:
        put(f"{study.question}\n")
    if comparison.strategies:
        show(*texts(comparison.strategies))
        put(f"\n{comparison.verdict}")
    for name, resolution in comparison.resolutions.items():
        put(f"{name}: {resolution}.")
    if comparison.left_out:
        put(comparison.left_out)
    if (consequences := comparison.consequences_texts()) is not None:
        print()
        show(*consequences)
        if sentence := comparison.consequences_sentence:
            put(f"\n{sentence}")
    for section in comparison.stored:
        put(f"\n{section.title}")
        show(section.header, section.rows)
    if comparison.stored and checked:
        print()
    for name, error in comparison.errors.items():
        print_message(f"{name}: {error}")
    for name, repetition in comparison.repetitions.items():
        put(f"At least once, as asked for: {name}: {repetition}.")
    for name, refusal in comparison.refusals.items():
        put(f"Refused: {name}: {refusal}.")
    for name, stories in comparison.violations.items():
        _tell(name, stories)
    for row in checked:
        if not row["holds"]:
            put(f"expectation failed: {row['strategy']}: {row['metric']} {row['condition']}: {row['reached']}")
    if checked and all(row["holds"] for row in checked):
        print(f"All {len(checked)} expectations hold." if len(checked) > 1 else "The expectation holds.")


def _tell(strategy: str, stories: Sequence[str]) -> None:
    """The first story whole; the others are in the folder."""
    put(f"\nviolation: {strategy}: {stories[0]}")
    if len(stories) > 1:
        print(f"  and {len(stories) - 1} more, in the file violations.txt of its folder below")
