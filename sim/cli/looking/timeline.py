"""``ckptsim timeline``: a run as a file that Perfetto opens."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sim.cli.console.errors import Code, UserError, print_message, speaking, stoppable
from sim.cli.looking.explain import StrategyOption, selected, watched
from sim.cli.options import Engine, EngineOption, SetOption, parsed

_MILLISECOND = 1_000_000


def draw_timeline(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A folder of results, or a scenario file.", show_default=False)],
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
) -> None:
    """Write what every subtask, file and barrier did as Trace Event JSON, for ui.perfetto.dev."""
    with speaking(), stoppable("nothing is kept"):
        from sim.explain.runs import runs_of
        from sim.timeline.document import WindowError, document, samples_in
        from sim.timeline.tracks import timeline
        from sim.units import format_duration, parse_duration
        from sim.whole_file import replace_text

        runs = selected(runs_of(run, overrides or ()), strategy)
        (name, scenario), *others = runs.items()
        if others:
            print_message(f"of {name}; --strategy picks another: {', '.join(other for other, _ in others)}")
        begin_ns = parsed("--from", begin, parse_duration)
        end_ns = None if end is None else parsed("--to", end, parse_duration)
        step_ns = None if step is None else parsed("--step", step, parse_duration)
        try:
            samples = samples_in(scenario.run.duration_ns, begin_ns, end_ns, step_ns)
        except WindowError as error:
            option = {"begin": f"--from {begin}", "step": "--step"}[error.part]
            raise UserError(f"{option}: {error.reason}", Code.USAGE) from None
        close_up = watched(name, scenario, engine, samples.attach)
        drawn = timeline(close_up.instances, samples, limit)
        replace_text(out, document(name, scenario, samples, drawn))
        if drawn.left_out:
            cut = format_duration(drawn.end_ns // _MILLISECOND * _MILLISECOND)
            print_message(f"{drawn.left_out} events after {cut} are left out: narrow the window with --from and --to, or raise --limit")
        print_message(f"{out}: open it with ui.perfetto.dev")
