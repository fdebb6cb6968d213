"""`explain` of simulated runs: each is run again, watched closely, and its checkpoints are explained."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from sim.cells.cell import warm
from sim.explain.choice import NoCheckpointError, accounts, verified, with_checkpoints
from sim.explain.close_up import look
from sim.explain.record import record
from sim.explain.text import text
from sim.verbs.explanation import Explanation
from sim.verbs.findings import issue_remarks, tell
from sim.verbs.known_issues import known_issues_json
from sim.verbs.listener import Listener, Stopped
from sim.verbs.options import OptionError

if TYPE_CHECKING:
    from sim.explain.close_up import CloseUp
    from sim.explain.runs import Runs
    from sim.model.scenario import Scenario
    from sim.plane import Engine
    from sim.runtime.run.job_instance import JobInstance


def explain_runs(
    runs: Runs, checkpoint: int | None = None, *, strategy: str | None = None, verify: bool = False, engine: Engine = "compiled",
    listener: Listener | None = None,
) -> Explanation:  # fmt: skip
    """The checkpoint of this id; None: first uploads, the median and the slowest, of every strategy that takes checkpoints.

    `verify`: what each part would save is simulated.
    OptionError: no such strategy.  NoCheckpointError: nothing to explain.
    """
    listener = listener or Listener()
    texts: list[str] = []
    records: list[dict[str, Any]] = []
    missing: list[str] = []
    chosen = chosen_of(runs, strategy, listener)
    tell(issue_remarks(runs.name, list(chosen.values())), listener)
    for name, scenario in chosen.items():
        close_up = watched(name, scenario, engine, listener)
        try:
            found = accounts(name, close_up, checkpoint)
        except NoCheckpointError as error:
            missing.append(f"{name}: {str(error).removeprefix(f'{name}: ')}")
            continue
        for account in found:
            simulated = verified(account, engine) if verify else {}
            texts.append(text(account, simulated))
            records.append(record(account, simulated) | {"known_issues": known_issues_json([scenario])})
    if not records:
        raise NoCheckpointError(f"{runs.name}: {'; '.join(missing)}")
    for line in missing:
        listener.message(line)
    explained = Explanation("\n\n".join(texts), records)
    listener.result(explained)
    return explained


def chosen_of(runs: Runs, strategy: str | None, listener: Listener) -> dict[str, Scenario]:
    """The strategies that take checkpoints, or the one that is asked for.

    OptionError: there is none of that name.  NoCheckpointError: none takes any.
    """
    if runs.is_changed:
        listener.warning("the results are of another version of ckptsim: the explanation is of this one")
    try:
        taking = with_checkpoints(runs.scenarios)
    except NoCheckpointError as error:
        raise NoCheckpointError(f"{runs.name}: {error}") from None
    if strategy is None:
        return taking
    if strategy not in taking:
        raise OptionError("strategy", f"no '{strategy}': there are {', '.join(taking)}")
    return {strategy: taking[strategy]}


def watched(
    name: str, scenario: Scenario, engine: Engine, listener: Listener, attach: Callable[[JobInstance], None] = lambda _: None
) -> CloseUp:
    """The run again; `attach` is called with each job instance."""
    warm(engine)
    with listener.progress(name, scenario.run.duration_ns, 1) as watch:
        try:
            return look(scenario, engine=engine, progress=lambda now_ns: watch(0, now_ns), attach=attach)
        except KeyboardInterrupt:
            raise Stopped("nothing is kept") from None
