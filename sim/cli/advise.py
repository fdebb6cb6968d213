"""``ckptsim advise``: a job and its limits in; protocol, interval and Flink configuration out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sim.cli.errors import Code, UserError, output_folder, say, speaking
from sim.cli.options import Engine, EngineOption, JobsOption, OutOption, parsed
from sim.cli.progress import bar
from sim.cli.validity import warn_outside

if TYPE_CHECKING:
    import pandas as pd

    from sim.model.scenario import Scenario
    from sim.sweep.advice.judgement import Limits
    from sim.sweep.advice.words import Advised

__all__ = ["advise_on"]

WHAT = "A scenario, a recording, or what import reads: a folder of saved answers, an archive, logs."
MasterOption = Annotated[str | None, typer.Option(metavar="URL", help="Try settings on Spark instead of here.", show_default=False)]


def _limit(name: str, what: str) -> typer.models.OptionInfo:
    option: typer.models.OptionInfo = typer.Option(name, metavar="VALUE", help=what, show_default=False)
    return option


def advise_on(
    source: Annotated[Path, typer.Argument(metavar="SOURCE", help=WHAT, show_default=False)],
    recovery: Annotated[str | None, _limit("--recovery", "Longest time until lost work is done again, e.g. '2 min'.")] = None,
    p99: Annotated[str | None, _limit("--p99", "Longest checkpoint, 99 %, e.g. '60 s'.")] = None,
    loss: Annotated[str | None, _limit("--loss", "Throughput that checkpoints may cost, e.g. '3 %'.")] = None,
    visible: Annotated[str | None, _limit("--visible", "Longest time until output of transactional sinks is visible, 99 %.")] = None,
    mtbf: Annotated[str | None, _limit("--mtbf", "Mean time between failures, e.g. '12 h'.")] = None,
    replications: Annotated[int, typer.Option(min=1, help="Runs of each setting.")] = 3,
    out: OutOption = None,
    engine: EngineOption = Engine.COMPILED,
    jobs: JobsOption = None,
    master: MasterOption = None,
) -> None:
    """Try protocols and intervals on a job, undisturbed and with a failure, and recommend a setting that keeps your limits."""
    with speaking():
        from sim.sweep.advice.judgement import Limits
        from sim.sweep.advice.words import advised

        limits = Limits(_duration("--recovery", recovery), _duration("--p99", p99), _share("--loss", loss), _duration("--visible", visible))
        scenario, unknown = _job(source)
        warn_outside(scenario.name, [scenario])
        mtbf_ms = _duration("--mtbf", mtbf)
        if mtbf_ms is None:
            unknown = [*unknown, "how often does the job fail? Assumed: once a day; --mtbf says otherwise"]
        folder = output_folder(Path("runs") / f"advise-{scenario.name}" if out is None else out)
        results = _tried(scenario, limits, folder, replications, engine, jobs, master)
        told = advised(scenario, results, limits=limits, mtbf_s=(mtbf_ms or 86_400_000) / 1e3, unknown=unknown)
        _print(told)
        raise typer.Exit(Code.FINE if told.advice.chosen else Code.EXPECTATION_FAILED)


def _job(source: Path) -> tuple[Scenario, list[str]]:
    """The job as it is set now, and what nobody knows about it."""
    from sim.scenario import load, loads, write

    if source.suffix in (".yaml", ".yml"):
        study = load(source)
        if len(study.scenarios) > 1:
            axes = ", ".join(axis.name for axis in study.axes)
            raise UserError(f"{source}: lists several values of {axes}: give the one that is set today", Code.INVALID_INPUT)
        return study.scenarios[0], []
    from sim.recordings import Measured, read_any, to_document

    recording = read_any(source)
    imported = to_document(recording)
    for lost in imported.not_modelled:
        say(f"not modelled: {lost}")
    unknown = list(recording.inference.unknown) if isinstance(recording, Measured) else []
    return loads(write(imported.document, imported.question, imported.comments), name=recording.name).scenarios[0], unknown


def _tried(
    scenario: Scenario, limits: Limits, folder: Path, replications: int, engine: Engine, jobs: int | None, master: str | None
) -> pd.DataFrame:
    from sim.sweep.advice.trials import trials
    from sim.sweep.plan import cells, with_baselines
    from sim.sweep.runners import sweep
    from sim.sweep.store import Store
    from sim.sweep.tally import Tally

    patience_ns = round(max(2 * (limits.recovery_ms or 0) * 1e6, 180e9))
    steady, failing = trials(scenario, patience_ns=patience_ns, replications=replications)
    planned, tally = [*with_baselines(cells(steady)), *cells(failing)], Tally()
    store = Store(folder)
    missing = store.missing(planned)
    with bar("trying settings", sum(cell.scenario.run.duration_ns for cell in missing), len(missing), details=tally.text) as watch:
        return sweep(planned, store, engine=engine.value, jobs=jobs, master=master, watch=watch, seen=tally.seen)


def _print(told: Advised) -> None:
    from sim.cli.shown import show

    for section in told.sections:
        print(section.title)
        show(section.header, section.rows)
        print()
    print("\n".join(told.sentences))
    if told.configuration:
        print(f"\n{told.configuration}", end="")


def _duration(option: str, text: str | None) -> float | None:
    """ms."""
    from sim.units import parse_duration

    return None if text is None else parsed(option, text, parse_duration) / 1e6


def _share(option: str, text: str | None) -> float | None:
    from sim.units import parse_share

    return None if text is None else float(parsed(option, text, parse_share))
