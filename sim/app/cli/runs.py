"""Commands about scenarios: run, sweep, diff, advise."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from sim.app.cli.console import Console
from sim.app.cli.errors import Code, print_message, speaking
from sim.app.cli.options import (
    ChecksOption,
    ConfOption,
    Engine,
    EngineOption,
    EnvironmentOption,
    FlinkOption,
    JobsOption,
    OutOption,
    PricesOption,
    SeedOption,
    SetOption,
    StrategyOption,
    in_environment,
    spark_settings,
)
from sim.app.cli.overview import Purpose, Verb
from sim.app.cli.terminal import put, put_parts, show

if TYPE_CHECKING:
    from sim.app.verbs.advise import Advised
    from sim.app.verbs.diff import Diff
    from sim.app.verbs.run import RunOutcome
    from sim.app.verbs.sweep import Sweep


# ---- ``ckptsim run``: every combination of a scenario side by side, one table, one sentence, a folder of results.

AssumptionsOption = Annotated[
    bool,
    typer.Option(
        "--assumptions/--no-assumptions",
        help="Try what the file leaves out (network card, bandwidth); say what decides.",
    ),
]


def run_scenarios(
    scenarios: Annotated[
        list[Path], typer.Argument(metavar="SCENARIO...", help="Scenario files (YAML).", show_default=False)
    ],
    out: OutOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per scenario instead of tables.")] = False,
    overrides: SetOption = None,
    flink: FlinkOption = None,
    engine: EngineOption = Engine.COMPILED,
    jobs: JobsOption = None,
    seed: SeedOption = None,
    checks: ChecksOption = True,
    picture: Annotated[
        bool, typer.Option("--picture", help="Draw comparison.png as well: checkpoints, queues, back-pressure.")
    ] = False,
    environment: EnvironmentOption = None,
    try_assumptions: AssumptionsOption = True,
    prices: PricesOption = None,
) -> None:
    """Compare the checkpoint strategies of a scenario."""
    with speaking():
        from sim.app.verbs.run import default_folder, origin_of, read_request, run

        changes = [*(overrides or ()), *(() if seed is None else (f"run.seed={seed}",))]
        from sim.model.schema.flink_file import flink_change
        from sim.model.schema.validation import load_prices

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
                request,
                folder,
                engine=engine.value,
                jobs=jobs,
                checks=checks,
                picture=picture,
                try_assumptions=try_assumptions,
                listener=console,
                **listed,
            )
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
    from sim.results.side_by_side import texts

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


RUN_VERB = Verb("run", Purpose.BEGIN, 2, "Simulate a scenario and compare its strategies.", run_scenarios)


# ---- ``ckptsim sweep``: many cells, in processes or on Spark, one row each; run again, it goes on where it was.

AxisOption = Annotated[
    list[str] | None,
    typer.Option("--axis", metavar="KEY=V1,V2", help="Vary a value, e.g. run.seed=1,2.", show_default=False),
]
MasterOption = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="Run on Spark: local[*], spark://HOST:PORT, yarn or k8s://...; needs Java.",
        show_default=False,
    ),
]
RacingOption = Annotated[
    int | None,
    typer.Option(
        metavar="N", help="Try all settings in N windows x seeds; then go on with possible winners.", show_default=False
    ),
]
FailFastOption = Annotated[
    bool, typer.Option("--fail-fast", help="Stop at the first cell that fails: --max-failures 0.")
]
MaxFailuresOption = Annotated[
    int | None, typer.Option(min=0, help="Stop when more cells than this have failed.", show_default=False)
]


def run_sweep(
    file: Annotated[
        Path, typer.Argument(metavar="SWEEP|SCENARIO", help="A sweep file or a scenario (YAML).", show_default=False)
    ],
    axes: AxisOption = None,
    out: OutOption = None,
    replications: Annotated[
        int | None, typer.Option(min=1, help="Instead of run.replications.", show_default=False)
    ] = None,
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
        from sim.app.verbs.sweep import read_request, sweep
        from sim.studies.sweeps.design import axis_override as override
        from sim.studies.sweeps.design import naming_axes

        changes = [*(overrides or ()), *map(override, axes or ())]
        changes += [
            f"run.{key}={value}" for key, value in (("seed", seed), ("replications", replications)) if value is not None
        ]
        with naming_axes(axes or ()):
            request = read_request(file, changes, racing, flink=flink)
        console = Console(_print_sweep_json if as_json else show_sweep)
        found = sweep(
            request,
            out,
            engine=engine.value,
            jobs=jobs,
            master=master,
            conf=on_spark,
            checks=checks,
            max_failures=0 if fail_fast else max_failures,
            listener=console,
        )
        (print_message if as_json else put)(found.counted)
        console.finish()
        raise typer.Exit(Code.FINE if found.failed.empty else Code.CELLS_FAILED)


def _print_sweep_json(found: Sweep) -> None:
    rows = json.loads(found.results.to_json(orient="records"))  # NaN becomes null
    answer = {
        "sections": [section._asdict() for section in found.sections],
        "sentence": found.sentence,
        "known_issues": found.known_issues,
    }
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


# ---- ``ckptsim diff``: what differs between two scenarios, jobs or folders of results, and what that does to the answer.

WHAT = "A scenario, a recording, what import reads, or a folder that run, sweep, advise or watch kept."
OtherOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set-b",
        metavar="KEY=VALUE",
        help="Replace a value of B only: diff job.yaml job.yaml --set-b ...",
        show_default=False,
    ),
]


def diff_of(
    a: Annotated[Path, typer.Argument(metavar="A", help=WHAT, show_default=False)],
    b: Annotated[Path, typer.Argument(metavar="B", help="The same, later or changed.", show_default=False)],
    overrides: SetOption = None,
    overrides_b: OtherOption = None,
    overrides_a: Annotated[
        list[str] | None,
        typer.Option("--set-a", metavar="KEY=VALUE", help="Replace a value of A only.", show_default=False),
    ] = None,
    strategy: StrategyOption = None,
    replications: Annotated[
        int, typer.Option(min=1, help="Runs of each side and each change, under the same seeds.")
    ] = 5,
    prices: PricesOption = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for what is kept. (Default: nothing is.)", show_default=False)
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="For machines.")] = False,
    engine: EngineOption = Engine.COMPILED,
    jobs: JobsOption = None,
) -> None:
    """Say what differs in the inputs of A and B, what that does to the answer, and which change accounts for how much of it.

    Scenarios and jobs run under the same random numbers, with each change alone and with all. What sweep and advise kept is read.
    """
    with speaking():
        from sim.app.verbs.diff import DiffRequest, diff

        both, of_a, of_b = (tuple(lines or ()) for lines in (overrides, overrides_a, overrides_b))
        request = DiffRequest(a, b, both, of_a, of_b, strategy, replications, prices)
        console = Console(lambda found: _print(found, as_json=as_json))
        found = diff(request, out, engine=engine.value, jobs=jobs, listener=console)
        console.finish()
        raise typer.Exit(
            Code.CELLS_FAILED if found.has_failed else Code.VIOLATED if found.has_violations else Code.FINE
        )


def _print(found: Diff, *, as_json: bool) -> None:
    if as_json:
        print(json.dumps(found.data, indent=1, allow_nan=False))
        return
    put_parts(found.parts)
    if found.folder is not None:
        put(f"\n{found.folder}: the answer (diff.json) and every run (results.parquet)")


DIFF_VERB = Verb("diff", Purpose.WHY, 4, "What differs between two jobs, and what that does.", diff_of)


# ---- ``ckptsim advise``: a job and its limits in; protocol, interval and Flink configuration out.

ADVISE_HELP = "A scenario, a recording, or what import reads: a folder of saved answers, an archive, logs."
AdviseMasterOption = Annotated[
    str | None, typer.Option(metavar="URL", help="Try settings on Spark instead of here.", show_default=False)
]


def _limit(name: str, what: str) -> typer.models.OptionInfo:
    option: typer.models.OptionInfo = typer.Option(name, metavar="VALUE", help=what, show_default=False)
    return option


def advise_on(
    source: Annotated[Path, typer.Argument(metavar="SOURCE", help=ADVISE_HELP, show_default=False)],
    recovery: Annotated[str | None, _limit("--recovery", "Maximum recovery time, e.g. '2 min'.")] = None,
    p99: Annotated[str | None, _limit("--p99", "Longest checkpoint, 99 %, e.g. '60 s'.")] = None,
    loss: Annotated[str | None, _limit("--loss", "Throughput that checkpoints may cost, e.g. '3 %'.")] = None,
    visible: Annotated[
        str | None, _limit("--visible", "Longest time until output of transactional sinks is visible, 99 %.")
    ] = None,
    failure: Annotated[
        str,
        typer.Option(metavar="WHAT", help="What recovery is judged by: a lost task-manager, or a failing task."),
    ] = ("task-manager"),
    mtbf: Annotated[
        str | None, _limit("--mtbf", "Mean time between failures, e.g. '12 h'. (Default: a day, and marked UNKNOWN.)")
    ] = None,
    load: Annotated[
        list[str] | None,
        typer.Option(
            "--load", metavar="[SOURCE=]FILE.csv[:COLUMN]", help="What arrives: a CSV of rates.", show_default=False
        ),
    ] = None,
    overrides: SetOption = None,
    replications: Annotated[int, typer.Option(min=1, help="At most so many runs of each setting.")] = 12,
    budget: Annotated[
        str,
        typer.Option(
            metavar="DURATION", help="Work of all runs, in seconds of an idle machine; what it leaves out is listed."
        ),
    ] = "90 s",
    within: Annotated[
        str, typer.Option(metavar="DURATION", help="Time until the answer; what it cuts is listed.")
    ] = "5 min",
    horizon: Annotated[
        str, typer.Option(metavar="DURATION", help="For how long limits have to be kept where state grows.")
    ] = "2 h",
    unknowns: Annotated[
        bool, typer.Option("--unknowns/--no-unknowns", help="Try other values of what is marked UNKNOWN.")
    ] = True,
    prices: PricesOption = None,
    flink: Annotated[
        Path | None,
        typer.Option(
            "--flink",
            metavar="FILE",
            show_default=False,
            help="What is deployed: flink-conf.yaml, config.yaml, a FlinkDeployment. A patch of it is kept, and its rollback.",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="For machines.")] = False,
    out: OutOption = None,
    engine: EngineOption = Engine.COMPILED,
    jobs: JobsOption = None,
    master: AdviseMasterOption = None,
    conf: ConfOption = None,
) -> None:
    """Try protocols and intervals on a job, undisturbed and with a failure, and recommend a setting that keeps your limits.

    All runs are kept in the folder, with the job and a sweep file of what was tried; the same command goes on where it stopped.
    """
    with speaking():
        on_spark = spark_settings(master, conf, jobs)
        from sim.app.verbs.advise import AdviceOptions, advise, job_of

        options = AdviceOptions(
            p99=p99,
            recovery=recovery,
            loss=loss,
            visible=visible,
            failure=failure,
            mtbf=mtbf,
            load=load or (),
            replications=replications,
            budget=budget,
            within=within,
            horizon=horizon,
            unknowns=unknowns,
            prices=None if prices is None else str(prices),
            flink=None if flink is None else str(flink),
        )
        _ = options.limits, options.judged_failure  # mistakes are told before a source is read
        console = Console(lambda found: _print_advice(found, as_json=as_json))
        advised = advise(
            job_of(source, overrides or (), console),
            options,
            out,
            engine=engine.value,
            jobs=jobs,
            master=master,
            conf=on_spark,
            listener=console,
        )
        console.finish()
        if advised.trouble:
            raise typer.Exit(Code.CELLS_FAILED)
        raise typer.Exit(Code.FINE if advised.report.chosen else Code.EXPECTATION_FAILED)


def _print_advice(advised: Advised, *, as_json: bool) -> None:
    if as_json:
        print(json.dumps(advised.report.plain(), indent=1, allow_nan=False))
        return
    put_parts(advised.report.parts)
    kept = "the job, the sweep (sweep.yaml) and every run (results.parquet)" if len(advised.table) else "the job"
    place = f"{advised.folder}: {kept}"
    put(f"\n{place}; {advised.spent_s:.0f} s of processor time in all")


ADVISE_VERB = Verb("advise", Purpose.JOB, 2, "Recommend a setting that keeps your limits.", advise_on)
