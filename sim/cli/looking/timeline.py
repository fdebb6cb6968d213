"""``ckptsim timeline``: a run as a file that Perfetto opens."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from sim.cli.console.errors import Code, UserError, print_message, speaking, stoppable
from sim.cli.looking.explain import StrategyOption, selected, watched
from sim.cli.options import Engine, EngineOption, SetOption, parsed

__all__ = ["draw_timeline"]

_SAMPLES = 1000
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
        from sim.timeline.samples import Samples
        from sim.timeline.tracks import timeline
        from sim.units import format_duration, parse_duration
        from sim.whole_file import replace_text

        runs = selected(runs_of(run, overrides or ()), strategy)
        (name, scenario), *others = runs.items()
        if others:
            print_message(f"of {name}; --strategy picks another: {', '.join(other for other, _ in others)}")
        begin_ns = parsed("--from", begin, parse_duration)
        end_ns = scenario.run.duration_ns if end is None else parsed("--to", end, parse_duration)
        end_ns = min(end_ns, scenario.run.duration_ns)
        if begin_ns >= end_ns:
            raise UserError(f"--from {begin}: the window ends at {format_duration(end_ns)}: nothing lies in it", Code.USAGE)
        step_ns = max(_MILLISECOND, (end_ns - begin_ns) // _SAMPLES) if step is None else parsed("--step", step, parse_duration)
        if step_ns < 1:
            raise UserError("--step: of 0 never comes to an end: write at least '1 ms'", Code.USAGE)
        samples = Samples(step_ns, begin_ns, end_ns)
        close_up = watched(name, scenario, engine, samples.attach)
        drawn = timeline(close_up.instances, samples.by_instance, step_ns, begin_ns, end_ns, limit)
        about = {"run": f"{scenario.name}, {name}", "question": scenario.question, "step_ns": step_ns, "left_out": drawn.left_out}
        replace_text(out, json.dumps({"traceEvents": drawn.events, "displayTimeUnit": "ms", "otherData": about}) + "\n")
        if drawn.left_out:
            cut = format_duration(drawn.end_ns // _MILLISECOND * _MILLISECOND)
            print_message(f"{drawn.left_out} events after {cut} are left out: narrow the window with --from and --to, or raise --limit")
        print_message(f"{out}: open it with ui.perfetto.dev")
