"""What is known of a job before it runs: what predictions were held to, what the backtest says, and what tails rest on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from sim.verbs.command_lines import portable

if TYPE_CHECKING:
    from sim.model.backtest import Backtest
    from sim.model.scenario import Scenario
    from sim.scenario.text.problems import Problem
    from sim.verbs.listener import Listener


class Remark(NamedTuple):
    """A line about a job, which may be a warning."""

    text: str
    is_warning: bool = False


def of_problem(problem: Problem) -> Remark:
    """A warning of a reader of files."""
    return Remark(str(replace(problem, file=portable(problem.file))), is_warning=True)


def job_findings(name: str, scenarios: Iterable[Scenario], backtest: Backtest | None) -> Iterator[Remark]:
    """Values without a recording, the backtest of an imported file, and the residuals that its tails are drawn from."""
    from sim.advice.settings import dangers
    from sim.evidence.envelope.validity import warning
    from sim.evidence.what_ifs.history import history_sentences

    scenarios = list(scenarios)
    if finding := warning(scenarios):
        yield Remark(f"{name}: {finding}", is_warning=True)
    for danger in dict.fromkeys(danger for scenario in scenarios for danger in dangers(scenario)):
        yield Remark(f"{name}: {danger}", is_warning=True)
    for i, line in enumerate(history_sentences(backtest, scenarios)):
        yield Remark(f"{name}: {line}", is_warning=i == 0 and backtest is not None and bool(backtest.off))


def tell(findings: Iterable[Remark], listener: Listener) -> tuple[str, ...]:
    """Pass each remark to the listener.  Returns all of them as lines."""
    lines = []
    for finding in findings:
        (listener.warning if finding.is_warning else listener.message)(finding.text)
        lines.append(f"warning: {finding.text}" if finding.is_warning else finding.text)
    return tuple(lines)
