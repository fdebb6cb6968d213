"""``ckptsim sweep``: many cells, in processes or on Spark, one row each; run again, it goes on where it was."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sim.cli.console.errors import Code, Stopped, UserError, output_folder, print_message, speaking
from sim.cli.console.progress import bar
from sim.cli.console.terminal import put, show
from sim.cli.options import ChecksOption, ConfOption, Engine, EngineOption, JobsOption, OutOption, SeedOption, SetOption, spark_settings
from sim.cli.reports.validity import print_backtest, print_tails, warn_outside

if TYPE_CHECKING:
    import pandas as pd

    from sim.cells.cell import Row
    from sim.cells.local import Watch
    from sim.cells.plan import Cell
    from sim.model.scenario import Scenario
    from sim.sweeps.file.definition import Definition
    from sim.sweeps.run import SweepResult
    from sim.sweeps.store import Store

__all__ = ["run_sweep"]

COUNTS_FIRST = "the first checkpoint of every run writes all state, and counts in p99; run.warmup: auto leaves it out"
MOST_LISTED = 10
"""Failed cells that are told one by one; the others are in the results."""

AxisOption = Annotated[
    list[str] | None,
    typer.Option("--axis", metavar="KEY=V1,V2", help="Vary a value, e.g. run.seed=1,2.", show_default=False),
]
MasterOption = Annotated[
    str | None,
    typer.Option(metavar="URL", help="Run on Spark: local[*], spark://HOST:PORT, yarn or k8s://...; needs Java.", show_default=False),
]
RacingOption = Annotated[
    int | None,
    typer.Option(metavar="N", help="Try all settings in N windows x seeds; then go on with possible winners.", show_default=False),
]
FailFastOption = Annotated[bool, typer.Option("--fail-fast", help="Stop at the first cell that fails: --max-failures 0.")]
MaxFailuresOption = Annotated[int | None, typer.Option(min=0, help="Stop when more cells than this have failed.", show_default=False)]


def run_sweep(
    file: Annotated[Path, typer.Argument(metavar="SWEEP|SCENARIO", help="A sweep file or a scenario (YAML).", show_default=False)],
    axes: AxisOption = None,
    out: OutOption = None,
    replications: Annotated[int | None, typer.Option(min=1, help="Instead of run.replications.", show_default=False)] = None,
    overrides: SetOption = None,
    engine: EngineOption = Engine.COMPILED,
    jobs: JobsOption = None,
    master: MasterOption = None,
    conf: ConfOption = None,
    seed: SeedOption = None,
    checks: ChecksOption = True,
    racing: RacingOption = None,
    fail_fast: FailFastOption = False,
    max_failures: MaxFailuresOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Answer and rows as one JSON object.")] = False,
) -> None:
    """Run every combination of what a sweep file, a scenario's lists and the given axes vary; one row per cell."""
    with speaking():
        if jobs is not None and master is not None:
            raise UserError("--jobs and --master exclude each other", Code.USAGE)
        on_spark = spark_settings(master, conf)
        from sim.cells.folder_name import run_folder
        from sim.sweeps.axes import naming_axes, override
        from sim.sweeps.file.definition import define
        from sim.sweeps.run import run_sweep as sweep

        changes = [*(overrides or ()), *map(override, axes or ())]
        changes += [f"run.{key}={value}" for key, value in (("seed", seed), ("replications", replications)) if value is not None]
        with naming_axes(axes or ()):
            definition = _raced(define(file, changes), racing)
        for warning in definition.warnings:
            print_message(f"warning: {warning}")
        if any(_counts_first_upload(scenario) for scenario in definition.scenarios):
            print_message(f"warning: {definition.name}: {COUNTS_FIRST}")
        warn_outside(definition.name, definition.scenarios)
        print_backtest(definition.name, definition.backtest)
        print_tails(definition.name, definition.scenarios)
        folder = output_folder(Path("runs") / run_folder(definition.name, definition.scenarios) if out is None else out)
        most = 0 if fail_fast else max_failures
        swept = sweep(
            definition, folder, engine=engine.value, jobs=jobs, master=master, conf=on_spark, watching=_watching, check=checks,
            max_failures=most,
        )  # fmt: skip
        _answer(swept, as_json=as_json)
        raise typer.Exit(_exit_code(swept.results, folder, print_message if as_json else put))


def _raced(definition: Definition, racing: int | None) -> Definition:
    """The sweep with the first pass that --racing asks for."""
    from sim.sweeps.file.question import racing_fault

    question = definition.question
    if racing is None:
        return definition
    if question is None:
        raise UserError("--racing: the file asks for no best setting: write answer: in a sweep file", Code.USAGE)
    if fault := racing_fault(racing, question.least, precise=definition.precision is not None):
        raise UserError(f"--racing: {fault}", Code.USAGE)
    return replace(definition, question=replace(question, racing=racing))


@contextmanager
def _watching(planned: Sequence[Cell], store: Store) -> Iterator[tuple[Watch, Callable[[Row], object]]]:
    """Says what is there already and how far the others are; Ctrl-C says what is kept."""
    from sim.sweeps.tally import Tally

    missing, distinct = store.missing(planned), len({cell.id for cell in planned})
    for finding in store.findings():
        print_message(finding)
    if len(missing) < distinct:
        print_message(f"{distinct - len(missing)} of {distinct} cells are there already")
    elif strangers := len(store.rows()):
        print_message(
            f"{strangers} rows in {store.folder} are of other settings or another version of ckptsim: they stay, "
            f"and all {distinct} cells run"
        )
    tally = Tally()
    with bar(store.folder.name, sum(cell.scenario.run.duration_ns for cell in missing), len(missing), details=tally.text) as watch:
        try:
            yield watch, tally.seen
        except KeyboardInterrupt:
            left = len(store.missing(planned))
            raise Stopped(f"{distinct - left} of {distinct} cells are kept in {store.folder}; the same command goes on") from None


def _answer(swept: SweepResult, *, as_json: bool) -> None:
    """What the sweep file wants to know."""
    if as_json:
        rows = json.loads(swept.results.to_json(orient="records"))  # NaN becomes null
        answer = {"sections": [section._asdict() for section in swept.sections], "sentence": swept.sentence}
        print(json.dumps({"name": swept.definition.name, "question": swept.definition.text, **answer, "rows": rows}))
    if swept.definition.question is None:
        return
    from sim.analysis.strategies.picture import save
    from sim.whole_file import replace_file

    if not as_json:
        _print_answer(swept)
    if (figure := swept.picture()) is not None:
        replace_file(swept.folder / "answer.png", partial(save, figure))
    _keep_answer(swept)


def _print_answer(swept: SweepResult) -> None:
    if swept.definition.text:
        put(swept.definition.text)
    for section in swept.sections:
        put(f"\n{section.title}")
        show(section.header, section.rows)
    if swept.sentence:
        put(f"\n{swept.sentence}\n")
    if swept.left_out:
        put(f"{swept.left_out}\n")


def _keep_answer(swept: SweepResult) -> None:
    """What a report says beside the rows."""
    from sim.report.answer_page import ANSWER
    from sim.whole_file import replace_text

    definition, question = swept.definition, swept.definition.question
    if question is None:
        return
    from sim.scenario.backtest.history import history_of, history_sentences

    backtest, residuals = definition.backtest, definition.scenarios[0].residuals
    same = "Simulated; all settings meet the same windows with the same random numbers."
    kept = {
        "title": f"Sweep {definition.name}",
        "question": definition.text,
        "verdict": swept.sentence,
        "parts": [section._asdict() for section in swept.sections],
        "settings": question.settings,
        "show": question.show,
        "assumptions": [
            *filter(None, [same, swept.left_out]),
            *(f"{sentence[:1].upper()}{sentence[1:]}." for sentence in history_sentences(backtest, residuals)),
        ],
        "history": history_of(backtest, residuals),
        "varied": [] if question.racing else list(question.varied),  # effects want the same worlds for all settings
        "depends": question.least or question.show[0],
        "command": f"ckptsim {shlex.join(sys.argv[1:])}\nckptsim report {swept.folder} -o report.html",
    }
    replace_text(swept.folder / ANSWER, json.dumps(kept, indent=1) + "\n")


def _counts_first_upload(scenario: Scenario) -> bool:
    """The first incremental checkpoint writes everything, and nothing leaves it out."""
    keeps_files = any(vertex.state is not None and vertex.state.kind.keeps_files for vertex in scenario.job.vertices)
    return scenario.checkpoint.state.incremental and keeps_files and not scenario.run.warmup_ns


def _exit_code(table: pd.DataFrame, folder: Path, report_count: Callable[[str], object]) -> Code:
    """What went wrong, where the rows are, and how to run again what has none."""
    failed, broken = table[table["status"] != "ok"], table[table["violations"] > 0]
    for _, row in failed[:MOST_LISTED].iterrows():
        print_message(f"cell {row['cell']}: {row['error']}")
    if len(failed) > MOST_LISTED:
        print_message(f"... and {len(failed) - MOST_LISTED} more, in the column error of {folder / 'results.parquet'}")
    for _, row in broken[:MOST_LISTED].iterrows():
        print_message(f"cell {row['cell']}: {row['violation'].splitlines()[0]}")
    report_count(f"{len(table) - len(failed)} of {len(table)} cells have a row in {folder / 'results.parquet'}")
    if failed.empty:
        return Code.FINE
    arguments = [word for word in sys.argv[1:] if word != "--fail-fast"]
    print_message(f"the same command runs the failed ones again, and no others: ckptsim {shlex.join(arguments)}")
    return Code.CELLS_FAILED
