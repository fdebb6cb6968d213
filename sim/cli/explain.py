"""``ckptsim explain``: where the time of a checkpoint went, simulated or real, in sentences and as a waterfall."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from sim.cli.console.errors import Code, UserError, speaking, stoppable
from sim.cli.console.listener import Console
from sim.cli.console.overview import Purpose, Verb
from sim.cli.console.terminal import put
from sim.cli.options import DeadlineOption, Engine, EngineOption, HeaderOption, JobOption, SetOption, StrategyOption, job_place

WHAT = (
    "A folder of results, or a scenario file.  Of a real job: http(s)://HOST:8081, another source of import, or one answer; "
    "-: standard input."
)


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
    with ExitStack() as stack, speaking(), stoppable("nothing is kept"):
        from sim.verbs.explain import explain_job, is_real

        run = stack.enter_context(named_input(run))
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


@contextmanager
def named_input(name: str) -> Iterator[str]:
    """The file of this name; of ``-`` what is given to the command, in a file that is there meanwhile."""
    if name != "-":
        yield name
        return
    with TemporaryDirectory() as folder:
        file = Path(folder) / "standard-input"
        with file.open("wb") as copy:
            shutil.copyfileobj(sys.stdin.buffer, copy)
        yield str(file)


def refuse(why: str, **given: bool) -> None:
    """Options that do not go with what was named end the command."""
    for option, is_given in given.items():
        if is_given:
            raise UserError(f"--{option}: {why}", Code.USAGE)


VERB = Verb("explain", Purpose.WHY, 1, "Say what one checkpoint waited for, and where.", explain_checkpoints)
