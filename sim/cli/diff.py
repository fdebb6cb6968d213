"""``ckptsim diff``: what differs between two scenarios, jobs or folders of results, and what that does to the answer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sim.cli.console.errors import Code, speaking
from sim.cli.console.listener import Console
from sim.cli.console.overview import Purpose, Verb
from sim.cli.console.terminal import put, put_parts
from sim.cli.options import Engine, EngineOption, JobsOption, PricesOption, SetOption, StrategyOption

if TYPE_CHECKING:
    from sim.verbs.diff import Diff

WHAT = "A scenario, a recording, what import reads, or a folder that run, sweep, advise or watch kept."
OtherOption = Annotated[
    list[str] | None,
    typer.Option("--set-b", metavar="KEY=VALUE", help="Replace a value of B only: diff job.yaml job.yaml --set-b ...", show_default=False),
]


def diff_of(
    a: Annotated[Path, typer.Argument(metavar="A", help=WHAT, show_default=False)],
    b: Annotated[Path, typer.Argument(metavar="B", help="The same, later or changed.", show_default=False)],
    overrides: SetOption = None,
    overrides_b: OtherOption = None,
    overrides_a: Annotated[
        list[str] | None, typer.Option("--set-a", metavar="KEY=VALUE", help="Replace a value of A only.", show_default=False)
    ] = None,
    strategy: StrategyOption = None,
    replications: Annotated[int, typer.Option(min=1, help="Runs of each side and each change, under the same seeds.")] = 5,
    prices: PricesOption = None,
    out: Annotated[Path | None, typer.Option(help="Folder for what is kept. (Default: nothing is.)", show_default=False)] = None,
    as_json: Annotated[bool, typer.Option("--json", help="For machines.")] = False,
    engine: EngineOption = Engine.COMPILED,
    jobs: JobsOption = None,
) -> None:
    """Say what differs in the inputs of A and B, what that does to the answer, and which change accounts for how much of it.

    Scenarios and jobs run under the same random numbers, with each change alone and with all. What sweep and advise kept is read.
    """
    with speaking():
        from sim.verbs.diff import DiffRequest, diff

        both, of_a, of_b = (tuple(lines or ()) for lines in (overrides, overrides_a, overrides_b))
        request = DiffRequest(a, b, both, of_a, of_b, strategy, replications, prices)
        console = Console(lambda found: _print(found, as_json=as_json))
        found = diff(request, out, engine=engine.value, jobs=jobs, listener=console)
        console.finish()
        raise typer.Exit(Code.CELLS_FAILED if found.has_failed else Code.VIOLATED if found.has_violations else Code.FINE)


def _print(found: Diff, *, as_json: bool) -> None:
    if as_json:
        print(json.dumps(found.data, indent=1, allow_nan=False))
        return
    put_parts(found.parts)
    if found.folder is not None:
        put(f"\n{found.folder}: the answer (diff.json) and every run (results.parquet)")


VERB = Verb("diff", Purpose.WHY, 4, "What differs between two jobs, and what that does.", diff_of)
