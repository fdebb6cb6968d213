"""``ckptsim advise``: a job and its limits in; protocol, interval and Flink configuration out."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sim.cli.console.errors import Code, UserError, print_message, speaking, stoppable
from sim.cli.console.progress import bar
from sim.cli.options import ConfOption, Engine, EngineOption, JobsOption, OutOption, SetOption, parsed, spark_settings
from sim.cli.reports.backtesting import with_backtest
from sim.cli.reports.validity import print_backtest, print_tails, warn_outside
from sim.verbs.options import writable_folder

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

    from sim.advice.judgement import Limits
    from sim.advice.report import Report
    from sim.advice.trials import Bench

__all__ = ["advise_on"]

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
    mtbf: Annotated[str | None, _limit("--mtbf", "Mean time between failures, e.g. '12 h'. (Default: a day, and marked UNKNOWN.)")] = None,
    load: Annotated[
        list[str] | None,
        typer.Option("--load", metavar="[SOURCE=]FILE.csv[:COLUMN]", help="What arrives: a CSV of rates.", show_default=False),
    ] = None,
    overrides: SetOption = None,
    replications: Annotated[int, typer.Option(min=1, help="At most so many runs of each setting.")] = 12,
    budget: Annotated[str, typer.Option(metavar="DURATION", help="Processor time of all runs; what is left out is listed.")] = "90 s",
    horizon: Annotated[str, typer.Option(metavar="DURATION", help="For how long limits have to be kept where state grows.")] = "2 h",
    unknowns: Annotated[bool, typer.Option("--unknowns/--no-unknowns", help="Try other values of what is marked UNKNOWN.")] = True,
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
        if jobs is not None and master is not None:
            raise UserError("--jobs and --master exclude each other", Code.USAGE)
        on_spark = spark_settings(master, conf)
        from sim.advice.judgement import Limits
        from sim.advice.report import report
        from sim.advice.trial_runner import TrialRunner

        limits = Limits(_duration("--recovery", recovery), _duration("--p99", p99), _share("--loss", loss), _duration("--visible", visible))
        mtbf_ms, budget_ms, ahead_ms = _duration("--mtbf", mtbf), _duration("--budget", budget), _duration("--horizon", horizon)
        name, text = _read(source)
        folder = writable_folder(Path("runs") / f"advise-{name}" if out is None else out)
        budget_s = (budget_ms or 0.0) / 1e3
        kept = f"what has run is kept in {folder}; the same command goes on"
        runner = TrialRunner(folder, engine=engine.value, jobs=jobs, master=master, conf=on_spark, budget_s=budget_s)
        trying = bar("trying settings", round(budget_s * 1e9), None, what_each="runs", details=runner.progress)
        with stoppable(kept), runner.workers, trying as runner.watch:
            bench = _prepared(source, text, folder, limits, round((ahead_ms or 0.0) * 1e6), load or [], overrides or [])
            found = report(bench, limits, mtbf_ms, runner.run, folder, max_replications=replications, affords=runner.affords, vary=unknowns)
        table = runner.collected()
        for finding in runner.store.findings():
            print_message(finding)
        _keep(found, folder, name)
        _print(found, folder, runner.spent_s(), as_json=as_json)
        if failures := _failed(table):
            print_message(failures)
            raise typer.Exit(Code.CELLS_FAILED)
        raise typer.Exit(Code.FINE if found.chosen else Code.EXPECTATION_FAILED)


def _prepared(
    source: Path, text: str | None, folder: Path, limits: Limits, ahead_ns: int, load: Sequence[str], overrides: Sequence[str]
) -> Bench:
    from sim.advice.job import job_file, prepared

    file = job_file(source, text, folder)
    bench = prepared(file, overrides, load, recovery_ms=limits.recovery_ms, ahead_ns=ahead_ns)
    scenario = bench.load(bench.common)
    warn_outside(scenario.name, [scenario])
    if text is None:  # else it was printed just now
        print_backtest(scenario.name, bench.backtest)
    print_tails(scenario.name, [scenario])
    return bench


def _read(source: Path) -> tuple[str, str | None]:
    """The name of a job and, unless it is a scenario already, the text of one."""
    if source.suffix in (".yaml", ".yml"):
        return source.stem, None
    from sim.recordings import Inference, Recording, infer, read_source, to_document
    from sim.scenario import write

    read = read_source([source])
    imported: Any = to_document(read) if isinstance(read, Recording) else infer(read)
    for lost in imported.not_modelled:
        print_message(f"not modelled: {lost}")
    if isinstance(imported, Inference) and not isinstance(read, Recording):
        print_message(f"{imported.inferred} values with a source, {len(imported.unknown)} UNKNOWN")
    imported = with_backtest(read, imported)
    named = read.name if isinstance(read, Recording) else source.name.partition(".")[0]
    return named, write(imported.document, imported.question, imported.comments)


def _failed(table: pd.DataFrame) -> str:
    """What went wrong in runs; empty: nothing."""
    failed, broken = table[table["status"] != "ok"], table[table["violations"] > 0]
    if len(failed):
        return f"{len(failed)} runs failed, the first: {failed.iloc[0]['error']}"
    if len(broken):
        return f"{len(broken)} runs broke what checkpoints promise, the first: {broken.iloc[0]['violation'].splitlines()[0]}"
    return ""


def _keep(report: Report, folder: Path, name: str) -> None:
    """What a report says beside the rows."""
    from sim.report.answer_page import ADVICE
    from sim.whole_file import replace_text

    first, *others = report.parts
    verdict, parts = (first, others) if isinstance(first, str) else ("", list(report.parts))
    kept = {
        "title": f"Advice for {name}",
        "question": "Which checkpoint settings keep the limits?",
        "verdict": verdict,
        "parts": [part if isinstance(part, str) else part._asdict() for part in parts],
        "assumptions": ["Simulated; what is marked UNKNOWN in the job was varied if its table says so."],
        "command": f"ckptsim {shlex.join(sys.argv[1:])}\nckptsim report {folder} -o report.html",
    }
    replace_text(folder / ADVICE, json.dumps(kept, indent=1) + "\n")


def _print(report: Report, folder: Path, spent_s: float, *, as_json: bool) -> None:
    if as_json:
        print(json.dumps(report.plain(), indent=1, allow_nan=False))
        return
    from sim.cli.console.terminal import put, show

    for part in report.parts:
        if isinstance(part, str):
            put(f"{part}\n")
        else:
            put(part.title)
            show(part.header, part.rows)
            print()
    put(f"{folder}: the job, the sweep (sweep.yaml) and every run (results.parquet); {spent_s:.0f} s of processor time in all")


def _duration(option: str, text: str | None) -> float | None:
    """ms."""
    from sim.units import parse_duration

    if text is None:
        return None
    if (found := parsed(option, text, parse_duration) / 1e6) <= 0:
        raise UserError(f"{option}: expected more than nothing, not '{text}'", Code.USAGE)
    return found


def _share(option: str, text: str | None) -> float | None:
    from sim.units import parse_share

    return None if text is None else float(parsed(option, text, parse_share))
