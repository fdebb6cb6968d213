"""What is known of a job before it runs: what predictions were held to, what the backtest says, and what tails rest on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import starmap
from typing import TYPE_CHECKING, NamedTuple

from sim.analysis.number_texts import bytes_text
from sim.prose import listed
from sim.units import SECOND, format_duration
from sim.verbs.command_lines import portable

if TYPE_CHECKING:
    from sim.model.backtest import Backtest
    from sim.model.scenario import Scenario
    from sim.scenario.text.problems import Problem
    from sim.verbs.listener import Listener


_SHORT_UPLOAD_NS = 30 * SECOND
"""Attempts that last so long together outlive the slow requests of object stores."""


class Remark(NamedTuple):
    """A line about a job, which may be a warning."""

    text: str
    is_warning: bool = False


def of_problem(problem: Problem) -> Remark:
    """A warning or a note of a reader of files."""
    return Remark(str(replace(problem, file=portable(problem.file))), is_warning=not problem.is_note)


def job_findings(name: str, scenarios: Iterable[Scenario], backtest: Backtest | None) -> Iterator[Remark]:
    """Values without a recording, the backtest of an imported file, and the residuals that its tails are drawn from."""
    from sim.advice.settings import dangers
    from sim.evidence.envelope.validity import warning
    from sim.evidence.what_ifs.history import history_sentences
    from sim.scenario.defaults import deciding_defaults
    from sim.scenario.history.verdict import missed_failures

    scenarios = list(scenarios)
    if finding := warning(scenarios):
        yield Remark(f"{name}: {finding}", is_warning=True)
    for danger in dict.fromkeys(danger for scenario in scenarios for danger in dangers(scenario)):
        yield Remark(f"{name}: {danger}", is_warning=True)
    for sentence in dict.fromkeys(sentence for scenario in scenarios for sentence in _union_sentences(scenario)):
        yield Remark(f"{name}: {sentence}")
    for sentence in dict.fromkeys(sentence for scenario in scenarios for sentence in _upload_sentences(scenario)):
        yield Remark(f"{name}: {sentence}", is_warning=True)
    if names := deciding_defaults(scenarios):
        yield Remark(f"{name}: at their defaults, which decide in many jobs: {', '.join(names)}")
    for i, line in enumerate(history_sentences(backtest, scenarios)):
        yield Remark(f"{name}: {line}", is_warning=i == 0 and backtest is not None and bool(backtest.off or missed_failures(backtest)))
    yield from issue_remarks(name, scenarios)


def issue_remarks(name: str, scenarios: Sequence[Scenario]) -> Iterator[Remark]:
    """The known defects that apply to a job, and those that may."""
    from sim.verbs.known_issues import issue_lines

    return starmap(Remark, issue_lines(name, scenarios))


def axes_of(scenarios: Iterable[Scenario]) -> Iterator[Remark]:
    """The lists of a file that stand for one value: a run for each combination of their values."""
    values: dict[str, set[str]] = {}
    for axis, value in (pair for scenario in scenarios for pair in scenario.axes if pair[0]):
        values.setdefault(axis, set()).add(value)
    if values:
        yield Remark(f"axes: {' x '.join(f'{axis} ({len(found)})' for axis, found in values.items())}")


def _union_sentences(scenario: Scenario) -> Iterator[str]:
    """What a restart does to union list state."""
    if not (scenario.faults or scenario.rescale or scenario.instances.count > 1):
        return
    for vertex in scenario.job.vertices:
        if (union := vertex.union_state) is None:
            continue
        own, number = vertex.snapshot.operator_state_bytes, vertex.parallelism
        state = f"each of the {number} subtasks of '{vertex.name}' restores the union list state of all, {bytes_text(own * number)}"
        if not own:
            yield f"the union list state of '{vertex.name}' has no size: write it as snapshot: {{operator-state: SIZE}}, per subtask"
        elif union.clears:
            yield f"{state}, and keeps its own; with union-state: {{clears: false}} it is {number} times as large after each restart"
        else:
            yield (
                f"{state}, and snapshots all of it again (clears: false): {number} times as large after each restart; acknowledgements "
                "carry 8 B per element of it besides: Flink drops those above pekko.framesize (10 MiB), which is not simulated"
            )


def _upload_sentences(scenario: Scenario) -> Iterator[str]:
    """What a short timeout does to uploads of a changelog (RetryingExecutor, RetryPolicy.fixed), or that nothing is uploaded."""
    logs = [(own.name, own.state.changelog) for own in scenario.job.vertices if own.state is not None and own.state.changelog is not None]
    if in_memory := [f"'{name}'" for name, log in logs if log.in_memory]:
        yield (
            f"the changelog of {listed(in_memory)} is kept in memory, as Flink does unless state.changelog.storage is filesystem: keys of "
            "dstl.dfs.upload have no effect, and each checkpoint carries the log in its acknowledgements"
        )
    limits: dict[tuple[int, int], list[str]] = {}
    for name, log in logs:
        if not log.in_memory and log.upload_timeout_ns is not None and log.upload_timeout_ns * log.upload_attempts < _SHORT_UPLOAD_NS:
            limits.setdefault((log.upload_timeout_ns, log.upload_attempts), []).append(f"'{name}'")
    for (timeout_ns, attempts), names in limits.items():
        timeout, end = format_duration(timeout_ns), format_duration(timeout_ns * attempts)
        again = f" is attempted again while it goes on, {attempts} attempts in all, and" if attempts > 1 else ""
        yield (
            f"an upload of the changelog of {listed(names)} longer than {timeout}{again} fails the checkpoint if none has ended by {end} "
            "(dstl.dfs.upload.timeout, dstl.dfs.upload.max-attempts): too short for storage whose requests are slow now and then"
        )


def tell(findings: Iterable[Remark], listener: Listener) -> tuple[str, ...]:
    """Pass each remark to the listener.  Returns all of them as lines."""
    lines = []
    for finding in findings:
        (listener.warning if finding.is_warning else listener.message)(finding.text)
        lines.append(f"warning: {finding.text}" if finding.is_warning else finding.text)
    return tuple(lines)
