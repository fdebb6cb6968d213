"""``ckptsim sweep``: many cells, in processes or on Spark, one row each; run again, it goes on where it was."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sim.cli.console.errors import Code, print_message, speaking
from sim.cli.console.listener import Console
from sim.cli.console.overview import Purpose, Verb
from sim.cli.console.terminal import put, show
from sim.cli.options import (
    ChecksOption,
    ConfOption,
    Engine,
    EngineOption,
    FlinkOption,
    JobsOption,
    OutOption,
    SeedOption,
    SetOption,
    spark_settings,
)

if TYPE_CHECKING:
    from sim.verbs.sweep import Sweep

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
    flink: FlinkOption = None,
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
        on_spark = spark_settings(master, conf, jobs)
        from sim.sweeps.axes import naming_axes, override
        from sim.verbs.sweep import read_request, sweep

        changes = [*(overrides or ()), *map(override, axes or ())]
        changes += [f"run.{key}={value}" for key, value in (("seed", seed), ("replications", replications)) if value is not None]
        with naming_axes(axes or ()):
            request = read_request(file, changes, racing, flink=flink)
        console = Console(_print_json if as_json else show_sweep)
        found = sweep(
            request, out, engine=engine.value, jobs=jobs, master=master, conf=on_spark, checks=checks,
            max_failures=0 if fail_fast else max_failures, listener=console,
        )  # fmt: skip
        (print_message if as_json else put)(found.counted)
        console.finish()
        raise typer.Exit(Code.FINE if found.failed.empty else Code.CELLS_FAILED)


def _print_json(found: Sweep) -> None:
    rows = json.loads(found.results.to_json(orient="records"))  # NaN becomes null
    answer = {"sections": [section._asdict() for section in found.sections], "sentence": found.sentence, "known_issues": found.known_issues}
    print(json.dumps({"name": found.definition.name, "question": found.definition.text, **answer, "rows": rows}))


def show_sweep(found: Sweep) -> None:
    """Print the answer to the question of the sweep file."""
    if found.definition.question is None:
        return
    if found.definition.text:
        put(found.definition.text)
    for section in found.sections:
        put(f"\n{section.title}")
        show(section.header, section.rows)
    if found.sentence:
        put(f"\n{found.sentence}\n")
    if found.left_out:
        put(f"{found.left_out}\n")


VERB = Verb("sweep", Purpose.SWEEP, 1, "Run every combination of settings and loads.", run_sweep)
