"""``ckptsim timeline``: a run as a file that Perfetto opens."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sim.cli.console.errors import print_message, speaking, stoppable
from sim.cli.console.listener import Console
from sim.cli.console.overview import Purpose, Verb
from sim.cli.explain import WHAT, refuse
from sim.cli.options import DeadlineOption, Engine, EngineOption, HeaderOption, JobOption, SetOption, StrategyOption, job_place

if TYPE_CHECKING:
    from sim.verbs.timeline import WrittenTimeline


def draw_timeline(
    run: Annotated[str, typer.Argument(metavar="RUN", help=WHAT, show_default=False)],
    out: Annotated[Path, typer.Option("--out", "-o", help="The file to write (.json).", show_default=False)],
    strategy: StrategyOption = None,
    begin: Annotated[str, typer.Option("--from", metavar="TIME", help="Beginning of the window, e.g. '30 s'.")] = "0 s",
    end: Annotated[str | None, typer.Option("--to", metavar="TIME", help="Its end. (Default: of the run.)", show_default=False)] = None,
    step: Annotated[
        str | None, typer.Option(metavar="TIME", help="Between two looks at threads and queues. (Default: 1/1000.)", show_default=False)
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="Events at most: viewers open about a million.")] = 300_000,
    overrides: SetOption = None,
    engine: EngineOption = Engine.COMPILED,
    checkpoint: Annotated[int | None, typer.Option(min=1, help="Of a real job: only the one of this id.", show_default=False)] = None,
    job: JobOption = None,
    deadline: DeadlineOption = None,
    header: HeaderOption = None,
) -> None:
    """Write what every subtask, file and barrier did as Trace Event JSON, for ui.perfetto.dev.  Of a real job, what Flink tells of it."""
    with speaking(), stoppable("nothing is kept"):
        from sim.verbs.explain import is_real

        console = Console(_show)
        if is_real(run):
            refuse("is for simulated runs", strategy=strategy is not None, set=bool(overrides), step=step is not None)
            from sim.verbs.job_pictures import draw_job

            place = job_place([run], job, deadline, header)
            draw_job(place, out, checkpoint=checkpoint, begin=begin, end=end, limit=limit, listener=console)
        else:
            given = {"checkpoint": checkpoint is not None, "job": job is not None, "deadline": deadline is not None}
            refuse("is for real jobs", **given, header=bool(header))
            from sim.explain.runs import runs_of
            from sim.verbs.timeline import write_timeline

            write_timeline(
                runs_of(Path(run), overrides or ()), out, strategy=strategy, begin=begin, end=end, step=step, limit=limit,
                engine=engine.value, listener=console,
            )  # fmt: skip
        console.finish()


def _show(written: WrittenTimeline) -> None:
    if written.others:
        print_message(f"of {written.strategy}; --strategy picks another: {', '.join(written.others)}")
    if written.left_out:
        print_message(
            f"{written.left_out} events after {written.end} are left out: narrow the window with --from and --to, or raise --limit"
        )
    print_message(f"{written.file}: open it with ui.perfetto.dev")


VERB = Verb("timeline", Purpose.WHY, 2, "Write a run for Perfetto, as a trace.", draw_timeline)
