"""``ckptsim advise``: a job and its limits in; protocol, interval and Flink configuration out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sim.cli.console.errors import Code, speaking
from sim.cli.console.listener import Console
from sim.cli.console.overview import Purpose, Verb
from sim.cli.console.terminal import put, put_parts
from sim.cli.options import ConfOption, Engine, EngineOption, JobsOption, OutOption, PricesOption, SetOption, spark_settings

if TYPE_CHECKING:
    from sim.verbs.advise import Advised

WHAT = "A scenario, a recording, or what import reads: a folder of saved answers, an archive, logs."
MasterOption = Annotated[str | None, typer.Option(metavar="URL", help="Try settings on Spark instead of here.", show_default=False)]


def _limit(name: str, what: str) -> typer.models.OptionInfo:
    option: typer.models.OptionInfo = typer.Option(name, metavar="VALUE", help=what, show_default=False)
    return option


def advise_on(
    source: Annotated[Path, typer.Argument(metavar="SOURCE", help=WHAT, show_default=False)],
    recovery: Annotated[str | None, _limit("--recovery", "Maximum recovery time, e.g. '2 min'.")] = None,
    p99: Annotated[str | None, _limit("--p99", "Longest checkpoint, 99 %, e.g. '60 s'.")] = None,
    loss: Annotated[str | None, _limit("--loss", "Throughput that checkpoints may cost, e.g. '3 %'.")] = None,
    visible: Annotated[str | None, _limit("--visible", "Longest time until output of transactional sinks is visible, 99 %.")] = None,
    failure: Annotated[str, typer.Option(metavar="WHAT", help="What recovery is judged by: a lost task-manager, or a failing task.")] = (
        "task-manager"
    ),
    mtbf: Annotated[str | None, _limit("--mtbf", "Mean time between failures, e.g. '12 h'. (Default: a day, and marked UNKNOWN.)")] = None,
    load: Annotated[
        list[str] | None,
        typer.Option("--load", metavar="[SOURCE=]FILE.csv[:COLUMN]", help="What arrives: a CSV of rates.", show_default=False),
    ] = None,
    overrides: SetOption = None,
    replications: Annotated[int, typer.Option(min=1, help="At most so many runs of each setting.")] = 12,
    budget: Annotated[
        str,
        typer.Option(metavar="DURATION", help="Work of all runs, in seconds of an idle machine; what it leaves out is listed."),
    ] = "90 s",
    within: Annotated[str, typer.Option(metavar="DURATION", help="Time until the answer; what it cuts is listed.")] = "5 min",
    horizon: Annotated[str, typer.Option(metavar="DURATION", help="For how long limits have to be kept where state grows.")] = "2 h",
    unknowns: Annotated[bool, typer.Option("--unknowns/--no-unknowns", help="Try other values of what is marked UNKNOWN.")] = True,
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
    master: MasterOption = None,
    conf: ConfOption = None,
) -> None:
    """Try protocols and intervals on a job, undisturbed and with a failure, and recommend a setting that keeps your limits.

    All runs are kept in the folder, with the job and a sweep file of what was tried; the same command goes on where it stopped.
    """
    with speaking():
        on_spark = spark_settings(master, conf, jobs)
        from sim.verbs.advise import AdviceOptions, advise, job_of

        options = AdviceOptions(
            p99=p99, recovery=recovery, loss=loss, visible=visible, failure=failure, mtbf=mtbf, load=load or (),
            replications=replications, budget=budget, within=within, horizon=horizon, unknowns=unknowns,
            prices=None if prices is None else str(prices), flink=None if flink is None else str(flink),
        )  # fmt: skip
        _ = options.limits, options.judged_failure  # mistakes are told before a source is read
        console = Console(lambda found: _print(found, as_json=as_json))
        advised = advise(
            job_of(source, overrides or (), console), options, out, engine=engine.value, jobs=jobs, master=master, conf=on_spark,
            listener=console,
        )  # fmt: skip
        console.finish()
        if advised.trouble:
            raise typer.Exit(Code.CELLS_FAILED)
        raise typer.Exit(Code.FINE if advised.report.chosen else Code.EXPECTATION_FAILED)


def _print(advised: Advised, *, as_json: bool) -> None:
    if as_json:
        print(json.dumps(advised.report.plain(), indent=1, allow_nan=False))
        return
    put_parts(advised.report.parts)
    kept = "the job, the sweep (sweep.yaml) and every run (results.parquet)" if len(advised.table) else "the job"
    place = f"{advised.folder}: {kept}"
    put(f"\n{place}; {advised.spent_s:.0f} s of processor time in all")


VERB = Verb("advise", Purpose.JOB, 2, "Recommend a setting that keeps your limits.", advise_on)
