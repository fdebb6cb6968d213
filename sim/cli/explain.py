"""``ckptsim explain``: where the time of a checkpoint went, simulated or real, in sentences and as a waterfall."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from sim.cli.console.errors import Code, UserError, speaking, stoppable
from sim.cli.console.listener import Console
from sim.cli.console.overview import Purpose, Verb
from sim.cli.console.terminal import put
from sim.cli.options import DeadlineOption, Engine, EngineOption, HeaderOption, JobOption, SetOption, StrategyOption, job_place

WHAT = "A folder of results, or a scenario file.  Of a real job: http(s)://HOST:8081, or another source of import."


def explain_checkpoints(
    run: Annotated[str, typer.Argument(metavar="RUN", help=WHAT, show_default=False)],
    checkpoint: Annotated[
        int | None,
        typer.Option(
            min=1, help="Its id. (Default: a first upload, the median and the slowest; of a real job, the slow ones.)", show_default=False
        ),
    ] = None,
    strategy: StrategyOption = None,
    verify: Annotated[bool, typer.Option("--verify", help="Simulate what each part would save.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="A JSON list instead of text; times in ns.")] = False,
    overrides: SetOption = None,
    engine: EngineOption = Engine.COMPILED,
    job: JobOption = None,
    deadline: DeadlineOption = None,
    header: HeaderOption = None,
) -> None:
    """Explain one checkpoint: what it waited for, where, and why.  Of a real job, also what its slow ones have in common."""
    with speaking(), stoppable("nothing is kept"):
        from sim.verbs.explain import explain_job, is_real

        console = Console(lambda found: print(json.dumps(found.plain)) if as_json else put(found.text))
        if is_real(run):
            refuse("is for simulated runs", strategy=strategy is not None, set=bool(overrides))
            explain_job(job_place([run], job, deadline, header), checkpoint=checkpoint, verify=verify, listener=console)
        else:
            refuse("is for real jobs", job=job is not None, deadline=deadline is not None, header=bool(header))
            from sim.explain.runs import runs_of
            from sim.verbs.explain_runs import explain_runs

            explain_runs(
                runs_of(Path(run), overrides or ()), checkpoint, strategy=strategy, verify=verify, engine=engine.value, listener=console
            )
        console.finish()


def refuse(why: str, **given: bool) -> None:
    """Options that do not go with what was named end the command."""
    for option, is_given in given.items():
        if is_given:
            raise UserError(f"--{option}: {why}", Code.USAGE)


VERB = Verb("explain", Purpose.WHY, 1, "Say what one checkpoint waited for, and where.", explain_checkpoints)
