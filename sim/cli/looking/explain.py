"""``ckptsim explain``: where the time of a checkpoint went, simulated or real, in sentences and as a waterfall."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sim.cli.console.errors import Code, UserError, print_message, speaking, stoppable
from sim.cli.console.listener import Console
from sim.cli.console.progress import bar
from sim.cli.console.terminal import put
from sim.cli.options import DeadlineOption, Engine, EngineOption, HeaderOption, JobOption, SetOption, header_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sim.explain.close_up import CloseUp
    from sim.explain.runs import Runs
    from sim.model.scenario import Scenario
    from sim.runtime.run.world import World

StrategyOption = Annotated[
    str | None, typer.Option(metavar="LABEL", help="Only this strategy, as the table of run names it.", show_default=False)
]


WHAT = "A folder of results, or a scenario file.  Of a real job: http(s)://HOST:8081, or whatever else import reads."


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
        from sim.verbs.explain import is_real

        if is_real(run):
            _refuse(strategy=strategy is not None, set=bool(overrides))
            _explain_job(run, checkpoint, job, deadline, header or (), verify=verify, as_json=as_json)
            return
        _refuse("is for real jobs", job=job is not None, deadline=deadline is not None, header=bool(header))
        from sim.explain.choice import NoCheckpointError, accounts, verified
        from sim.explain.record import record
        from sim.explain.runs import runs_of
        from sim.explain.text import text

        chosen = selected(runs_of(Path(run), overrides or ()), strategy)
        records: list[dict[str, Any]] = []
        for name, scenario in chosen.items():
            close_up = watched(name, scenario, engine)
            try:
                found = accounts(name, close_up, checkpoint)
            except NoCheckpointError as error:
                if len(chosen) == 1:
                    raise UserError(f"{run}: {error}", Code.USAGE) from None
                print_message(f"{name}: {error}")
                continue
            for account in found:
                simulated = verified(account, engine.value) if verify else {}
                records.append(record(account, simulated))
                if not as_json:
                    put(("" if len(records) == 1 else "\n") + text(account, simulated))
        if as_json:
            print(json.dumps(records))


def _explain_job(
    source: str, checkpoint: int | None, job: str | None, deadline: str | None, headers: Sequence[str], *, verify: bool, as_json: bool
) -> None:
    from sim.verbs.explain import explain_job

    console = Console(lambda found: print(json.dumps(found.plain)) if as_json else put(found.text))
    explain_job(
        [source], checkpoint=checkpoint, job=job, deadline=deadline, headers=dict(map(header_of, headers)), verify=verify, listener=console
    )
    console.finish()


def _refuse(why: str = "is for simulated runs", **given: bool) -> None:
    for option, is_given in given.items():
        if is_given:
            raise UserError(f"--{option}: {why}", Code.USAGE)


def selected(runs: Runs, strategy: str | None) -> dict[str, Scenario]:
    """The strategies that take checkpoints, or the one that is asked for."""
    from sim.explain.choice import NoCheckpointError, with_checkpoints

    if runs.is_changed:
        print_message("warning: the results are of another version of ckptsim: what is shown is of this one")
    try:
        taking = with_checkpoints(runs.scenarios)
    except NoCheckpointError as error:
        raise UserError(f"{runs.name}: {error}", Code.USAGE) from None
    if strategy is None:
        return taking
    if strategy not in taking:
        raise UserError(f"--strategy: no '{strategy}': there are {', '.join(taking)}", Code.USAGE)
    return {strategy: taking[strategy]}


def watched(name: str, scenario: Scenario, engine: Engine, attach: Callable[[World], None] = lambda _: None) -> CloseUp:
    """The run again, with a bar; `attach` is called with each job instance."""
    from sim.cells.cell import warm
    from sim.explain.close_up import look

    warm(engine.value)
    with bar(name, scenario.run.duration_ns, 1) as watch:
        return look(scenario, engine=engine.value, progress=lambda now_ns: watch(0, now_ns), attach=attach)
