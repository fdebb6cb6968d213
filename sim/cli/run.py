"""``ckptsim run``: every combination of a scenario side by side, one table, one sentence, a folder of results."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from sim.cli.console.errors import Code, print_message, speaking
from sim.cli.console.listener import Console
from sim.cli.console.overview import Purpose, Verb
from sim.cli.console.terminal import put, show
from sim.cli.options import (
    ChecksOption,
    Engine,
    EngineOption,
    EnvironmentOption,
    FlinkOption,
    JobsOption,
    OutOption,
    PricesOption,
    SeedOption,
    SetOption,
    in_environment,
)

if TYPE_CHECKING:
    from sim.verbs.run import RunOutcome

AssumptionsOption = Annotated[
    bool, typer.Option("--assumptions/--no-assumptions", help="Try what the file leaves out (network card, bandwidth); say what decides.")
]


def run_scenarios(
    scenarios: Annotated[list[Path], typer.Argument(metavar="SCENARIO...", help="Scenario files (YAML).", show_default=False)],
    out: OutOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per scenario instead of tables.")] = False,
    overrides: SetOption = None,
    flink: FlinkOption = None,
    engine: EngineOption = Engine.COMPILED,
    jobs: JobsOption = None,
    seed: SeedOption = None,
    checks: ChecksOption = True,
    picture: Annotated[bool, typer.Option("--picture", help="Draw comparison.png as well: checkpoints, queues, back-pressure.")] = False,
    environment: EnvironmentOption = None,
    try_assumptions: AssumptionsOption = True,
    prices: PricesOption = None,
) -> None:
    """Compare the checkpoint strategies of a scenario."""
    with speaking():
        from sim.verbs.run import default_folder, origin_of, read_request, run

        changes = [*(overrides or ()), *(() if seed is None else (f"run.seed={seed}",))]
        from sim.scenario.flink.file import flink_change
        from sim.scenario.prices import load_prices

        listed = {} if prices is None else {"prices": load_prices(prices)}
        deployed = [[] if flink is None else [flink_change(flink, path)] for path in scenarios]
        requests = [
            read_request(origin_of(path, [*own, *changes, *in_environment(environment, path)]))
            for path, own in zip(scenarios, deployed, strict=True)
        ]
        code = Code.FINE
        for request in requests:
            default = default_folder(request.study)
            folder = default if out is None else out / default.name if len(requests) > 1 else out
            console = Console(_print_json if as_json else show_run)
            found = run(
                request, folder, engine=engine.value, jobs=jobs, checks=checks, picture=picture, try_assumptions=try_assumptions,
                listener=console, **listed,
            )  # fmt: skip
            console.finish()
            print_message(str(folder))
            code = max(code, _exit_code(found))
        raise typer.Exit(code)


def _exit_code(found: RunOutcome) -> Code:
    if found.comparison.errors:
        return Code.CELLS_FAILED
    if found.comparison.violations:
        return Code.VIOLATED
    return Code.FINE if found.keeps_expectations else Code.EXPECTATION_FAILED


def _print_json(found: RunOutcome) -> None:
    print(json.dumps({**found.plain(), "folder": str(found.folder)}, allow_nan=False))


def show_run(found: RunOutcome) -> None:
    """Print the table, the sentence and further outcomes."""
    from sim.analysis.strategies.side_by_side import texts

    comparison = found.comparison
    if comparison.question:
        put(f"{comparison.question}\n")
    if comparison.strategies:
        show(*texts(comparison.strategies))
        put(f"\n{comparison.verdict}")
    for note in found.notes:
        put(note)
    if (consequences := comparison.consequences_texts()) is not None:
        print()
        show(*consequences)
        if sentence := comparison.consequences_sentence:
            put(f"\n{sentence}")
    for section in comparison.stored:
        put(f"\n{section.title}")
        show(section.header, section.rows)
    if comparison.stored and found.expectations:
        print()
    for name, error in comparison.errors.items():
        print_message(f"{name}: {error}")
    for name, stories in comparison.violations.items():
        _tell(name, stories)
    for outcome in found.outcomes:
        put(outcome)


_MORE_STORIES: Final = 6
"""Violations that are named; the first is told in full."""


def _tell(strategy: str, stories: Sequence[str]) -> None:
    """Print the first story in full, and what the next ones are about; whole they are in the folder."""
    put(f"\nviolation: {strategy}: {stories[0]}")
    for story in stories[1:_MORE_STORIES]:
        print(f"  also {story.partition(chr(10))[0]}")
    if len(stories) > 1:
        print(f"  {len(stories)} violations in all, in the file violations.txt of its folder below")


VERB = Verb("run", Purpose.BEGIN, 2, "Simulate a scenario and compare its strategies.", run_scenarios)
