"""Remarks about a job, known issues that apply to it, and the files that store a verb's answer for `report`."""

from __future__ import annotations

import json
import math
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from sim.advice.settings import sink_hazards, sinks_of
from sim.app.verbs.common import Listener
from sim.app.verbs.options import command_line, portable
from sim.jobs.evidence.known_issues import (
    MAX_LISTED_IDS,
    IssueMatch,
    count_defects,
    first_ids,
    issues_of,
    known_issues,
    versions_of,
)
from sim.model.files import replace_text
from sim.model.scenario import Backtest, Scenario
from sim.model.schema.text import Problem
from sim.model.text import listed
from sim.model.units import SECOND, format_duration
from sim.results.formats import TextTable, bytes_text
from sim.runtime.result import code_version
from sim.studies.plan import SEED

if TYPE_CHECKING:
    from sim.results.page import Page


# ---- Remarks about a job before it runs.

_SHORT_UPLOAD_NS = 30 * SECOND
"""Upload attempts that take less time in total may all hit one slow phase of an object store."""


class Remark(NamedTuple):
    """A line of text about a job."""

    text: str
    is_warning: bool = False


def of_problem(problem: Problem) -> Remark:
    """Return a problem that was found while reading a file as a remark."""
    return Remark(str(replace(problem, file=portable(problem.file))), is_warning=not problem.is_note)


def job_findings(name: str, scenarios: Iterable[Scenario], backtest: Backtest | None) -> Iterator[Remark]:
    """Yield remarks about settings that no recording covers, sink_hazards, decisive defaults, the backtest, and known issues."""
    from sim.jobs.evidence.envelope import warning
    from sim.jobs.evidence.what_ifs import history_sentences
    from sim.model.schema.history_file import contradiction
    from sim.model.schema.option_values import influential_defaults

    scenarios = list(scenarios)
    if finding := warning(scenarios):
        yield Remark(f"{name}: {finding}", is_warning=True)
    for sentences, is_warning in (
        (sink_hazards, True),
        (_memory_storage_sentences, True),
        (_chain_sentences, False),
        (_union_sentences, False),
        (_upload_sentences, True),
    ):
        for sentence in dict.fromkeys(sentence for scenario in scenarios for sentence in sentences(scenario)):
            yield Remark(f"{name}: {sentence}", is_warning)
    if names := influential_defaults(scenarios):
        yield Remark(f"{name}: left at defaults that often matter: {', '.join(names)}")
    for i, line in enumerate(history_sentences(backtest, scenarios)):
        yield Remark(
            f"{name}: {line}",
            is_warning=i == 0 and backtest is not None and bool(backtest.off or contradiction(backtest)),
        )
    yield from issue_remarks(name, scenarios)


def axes_of(scenarios: Iterable[Scenario]) -> Iterator[Remark]:
    """Yield a remark on the axes of a file: keys whose value is a list, with a run for each combination, or keys that vary in step."""
    values, combinations = dict[str, set[str]](), set[tuple[tuple[str, str], ...]]()
    for axes in (tuple(pair for pair in scenario.axes if pair[0]) for scenario in scenarios):
        combinations.add(axes)
        for axis, value in axes:
            values.setdefault(axis, set()).add(value)
    if len(values.get(SEED, ())) == 1:
        del values[SEED]  # a sweep repeats each combination with several seeds, of which these scenarios have one
    if values:
        in_step = math.prod(map(len, values.values())) != len(combinations)
        text = " x ".join(f"{axis} ({len(found)})" for axis, found in values.items())
        yield Remark(f"axes: {text}{f', in {len(combinations)} combinations' * in_step}")


_MAX_STATE_IN_MEMORY_BYTES = 5 * 1024**2
"""JobManagerCheckpointStorage.DEFAULT_MAX_STATE_SIZE: of one state of one subtask."""


def _memory_storage_sentences(scenario: Scenario) -> Iterator[str]:
    """Yield a sentence on each vertex whose checkpoints a real job declines, as it stores them in the JobManager's memory."""
    written = dict(scenario.written_keys)
    if not any(
        written.get(key) == "jobmanager" for key in ("execution.checkpointing.storage", "state.checkpoint-storage")
    ):
        return
    for vertex in scenario.job.vertices:
        if vertex.state is not None and vertex.state.bytes > _MAX_STATE_IN_MEMORY_BYTES * vertex.parallelism:
            yield (
                f"checkpoints are stored in the JobManager's memory, which takes 5 MiB of a state: a real job declines each of them, as a "
                f"subtask of '{vertex.name}' has {bytes_text(vertex.state.bytes / vertex.parallelism)}, and restarts. Not simulated: set "
                "execution.checkpointing.storage: filesystem and execution.checkpointing.dir"
            )


def _chain_sentences(scenario: Scenario) -> Iterator[str]:
    """Yield a sentence on vertices that Flink would chain (StreamingJobGraphGenerator#isChainable)."""
    sizes = {vertex.name: vertex.parallelism for vertex in scenario.job.vertices}
    pairs = [
        f"'{edge.upstream}' -> '{vertex.name}'"
        for vertex in scenario.job.vertices
        for edge in vertex.inputs
        if edge.shipping.one_to_one and len(vertex.inputs) == 1 and sizes[edge.upstream] == vertex.parallelism
    ]
    if pairs:
        yield (
            f"Flink chains vertices with a forward edge and one parallelism unless the program forbids it: {listed(pairs)}. A chain is one "
            "vertex here, with the sum of the service times, and has no channels inside"
        )


def _union_sentences(scenario: Scenario) -> Iterator[str]:
    """Yield sentences on how union list state grows at a restart, if the scenario has restarts."""
    if not (scenario.faults or scenario.rescale or scenario.instances.count > 1):
        return
    for vertex in scenario.job.vertices:
        if (union := vertex.union_state) is None:
            continue
        own_bytes, number = vertex.snapshot.operator_state_bytes, vertex.parallelism
        state = f"each of the {number} subtasks of '{vertex.name}' restores the union list state of all, {bytes_text(own_bytes * number)}"
        if not own_bytes:
            yield f"the union list state of '{vertex.name}' has no size: write it as snapshot: {{operator-state: SIZE}}, per subtask"
        elif union.clears:
            yield f"{state}, and keeps its own; with union-state: {{clears: false}} it is {number} times as large after each restart"
        else:
            yield (
                f"{state}, and snapshots all of it again (clears: false): {number} times as large after each restart; acknowledgements "
                "carry 8 B per element of it besides: Flink drops those above pekko.framesize (10 MiB), which is not simulated"
            )


def _upload_sentences(scenario: Scenario) -> Iterator[str]:
    """Yield sentences on changelogs in memory, and on upload timeouts that are too short (RetryingExecutor, RetryPolicy.fixed)."""
    logs = [
        (vertex.name, vertex.state.changelog)
        for vertex in scenario.job.vertices
        if vertex.state is not None and vertex.state.changelog is not None
    ]
    if in_memory := [f"'{name}'" for name, log in logs if log.in_memory]:
        yield (
            f"the changelog of {listed(in_memory)} is kept in memory, as Flink does unless state.changelog.storage is filesystem: keys of "
            "dstl.dfs.upload have no effect, and each checkpoint carries the log in its acknowledgements. Flink drops those above "
            "pekko.framesize (10 MiB), and the checkpoint expires, which is not simulated"
        )
    limits: dict[tuple[int, int], list[str]] = {}
    for name, log in logs:
        if (
            not log.in_memory
            and log.upload_timeout_ns is not None
            and log.upload_timeout_ns * log.upload_attempts < _SHORT_UPLOAD_NS
        ):
            limits.setdefault((log.upload_timeout_ns, log.upload_attempts), []).append(f"'{name}'")
    for (timeout_ns, attempts), names in limits.items():
        timeout, end = format_duration(timeout_ns), format_duration(timeout_ns * attempts)
        again = f" is attempted again while it goes on, {attempts} attempts in all, and" if attempts > 1 else ""
        yield (
            f"an upload of the changelog of {listed(names)} longer than {timeout}{again} fails the checkpoint if none has ended by {end} "
            "(dstl.dfs.upload.timeout, dstl.dfs.upload.max-attempts): too short for storage whose requests are slow now and then"
        )


def report_remarks(findings: Iterable[Remark], listener: Listener) -> tuple[str, ...]:
    """Pass each remark to the listener.  Returns all of them as lines."""
    lines = []
    for finding in findings:
        (listener.warning if finding.is_warning else listener.message)(finding.text)
        lines.append(f"warning: {finding.text}" if finding.is_warning else finding.text)
    return tuple(lines)


# ---- `known-issues`: the catalogue of known defects, or those that apply to a job or may apply.

HEADER = ("", "id", "component", "consequence", "fixed in", "what", "why")


@dataclass(frozen=True)
class FoundIssues:
    """The known defects that apply to a job or may apply, or the whole catalogue."""

    scenarios: Sequence[Scenario] | None  # of the job; None: there is none

    @cached_property
    def matches(self) -> list[IssueMatch]:
        """The defects, worst consequences first."""
        if self.scenarios is None:
            return [IssueMatch(issue, False, (), ()) for issue in known_issues()]
        return issues_of(self.scenarios)

    @property
    def rows(self) -> list[list[str]]:
        """Return a table row per defect, with the columns of `HEADER`."""
        rows = []
        for match in self.matches:
            issue = match.issue
            status = "" if self.scenarios is None else "applies" if match.applies else "may apply"
            fixed = "unknown" if issue.fixed is None else ", ".join(issue.fixed) or "no release"
            why = "; ".join([*match.holding, *(f"if {text}" for text in match.unsure)]) or issue.condition
            what = f"{issue.title}. {match.simulated}."
            rows.append([status, issue.id, issue.component, issue.consequence, fixed, what, why])
        return rows

    @property
    def summary(self) -> str:
        """Return a sentence with the number of defects, and with keys that would narrow them down."""
        if self.scenarios is None:
            return f"{count_defects(len(self.matches))}. With a FILE: those that apply to its job, or may."
        applying = sum(match.applies for match in self.matches)
        missing = _missing(self.scenarios)
        more = f" Set {missing} to know more: defects of connectors that are not named are left out." if missing else ""
        return f"{count_defects(applying)} appl{'ies' if applying == 1 else 'y'}, {len(self.matches) - applying} may apply.{more}"

    @property
    def facts(self) -> list[dict[str, Any]]:
        """JSON-ready."""
        return [match.plain for match in self.matches]


def known_issues_json(scenarios: Iterable[Scenario]) -> list[dict[str, Any]]:
    return [match.plain for match in issues_of(scenarios)]


def issue_remarks(name: str, scenarios: Sequence[Scenario]) -> Iterator[Remark]:
    """Yield a warning for each known defect that applies to a job, and a remark about those that may apply."""
    matches = issues_of(scenarios)
    applying = [match for match in matches if match.applies]
    for match in applying[:MAX_LISTED_IDS]:
        issue = match.issue
        text = f"{issue.id} ({issue.consequence}): {issue.title}. {match.simulated}. Way out: {issue.way_out}. {issue.source}"
        yield Remark(f"{name}: known defect {text}", is_warning=True)
    if others := len(applying[MAX_LISTED_IDS:]):
        more = count_defects(others, "more known defect")
        yield Remark(f"{name}: {more} apply: ckptsim known-issues FILE", is_warning=True)
    possible = [match for match in matches if not match.applies]
    versions = dict.fromkeys(versions_of(scenario).get("flink") for scenario in scenarios)
    minor = [version for version in versions if version and version.count(".") == 1]
    for issue in (match.issue for match in possible if minor):
        if issue.simulated.startswith("cluster.version"):
            text = f"whether {issue.id} applies depends on the patch release of {listed(minor)}: {issue.title}, since {listed(issue.since)}"
            fixed = f"fixed in {listed(issue.fixed)}" if issue.fixed else "not fixed"
            yield Remark(f"{name}: {text}, {fixed}. Simulated only if cluster.version has it", is_warning=True)
    if possible:
        kinds = Counter(match.issue.consequence for match in possible)
        counts = ", ".join(f"{what} {count}" for what, count in kinds.items())
        text = f"{name}: {count_defects(len(possible))} may apply ({counts}: {first_ids(possible)}): ckptsim known-issues FILE lists them"
        yield Remark(text + (f"; set {missing} to narrow them down" if (missing := _missing(scenarios)) else ""))


def different_issues(scenarios: Mapping[str, Scenario]) -> Iterator[str]:
    """Yield a line per scenario with known defects that apply or may apply to this scenario only."""
    ids_by_side = {
        name: dict.fromkeys(ids.issue.id for ids in issues_of([scenario])) for name, scenario in scenarios.items()
    }
    for name, ids in ids_by_side.items():
        if alone := [issue for issue in ids if not all(issue in other for other in ids_by_side.values())]:
            yield f"known defects that may apply to {name} alone: {', '.join(alone)}"


def _missing(scenarios: Sequence[Scenario]) -> str:
    versions = {component: version for scenario in scenarios for component, version in versions_of(scenario).items()}
    names = [
        "cluster.version" if component == "flink" else f"the version of {component}"
        for component, own in versions.items()
        if not own
    ]
    sinks = [vertex for scenario in scenarios for vertex, kind in sinks_of(scenario).items() if kind is None]
    sources = [
        vertex.name
        for scenario in scenarios
        for vertex in scenario.job.vertices
        if vertex.source and not vertex.connector
    ]
    return ", ".join([*names, *(f"job.{vertex}.connector" for vertex in dict.fromkeys((*sources, *sinks)))])


# ---- The answer that a verb stores in its results folder, for `report`: question, verdict, texts, tables and command.
#
# It has the version of ckptsim and the date. If the same result is computed again, the date is kept.


def keep_answer(
    folder: Path,
    name: str,
    *,
    title: str,
    question: str,
    verdict: str,
    parts: Sequence[str | TextTable],
    findings: Sequence[str],
    assumptions: Sequence[str],
    command: str,
    **extra: Any,
) -> None:
    """Write the answer to the JSON file `folder`/`name`.

    `findings`: the remarks that were reported.  `extra`: further entries, which the figures of the report need.
    """
    kept = {
        "title": title,
        "question": question,
        "verdict": verdict,
        "parts": [part if isinstance(part, str) else part._asdict() for part in parts],
        "findings": list(findings),
        "assumptions": list(assumptions),
        **extra,
        "command": f"{command}\n{command_line('report', [folder])} -o report.html",
    }
    replace_text(folder / name, json.dumps(with_provenance(kept), indent=1, allow_nan=False) + "\n")


def write_page(page: Page, file: Path) -> None:
    """Write a page as a self-contained HTML file."""
    from sim.results.page import html  # imported here, because it loads the charts

    replace_text(file, html(page))


def now() -> str:
    """Return the current time, e.g. ``2026-11-23 07:15 UTC``.

    SOURCE_DATE_EPOCH (seconds) overrides the clock: https://reproducible-builds.org/specs/source-date-epoch/.
    """
    epoch = os.environ.get("SOURCE_DATE_EPOCH", "")
    moment = datetime.fromtimestamp(int(epoch), UTC) if epoch.isdigit() else datetime.now(UTC)
    return f"{moment:%Y-%m-%d %H:%M} UTC"


def with_provenance(kept: Mapping[str, Any]) -> dict[str, Any]:
    """Return `kept` with version and date."""
    return {**kept, "version": f"{_release()} (code {code_version()})", "date": now()}


def _release() -> str:
    try:
        return version("ckptsim")
    except PackageNotFoundError:
        return "of a checkout"
