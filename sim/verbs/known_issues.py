"""`known-issues`: the catalogue of known defects; of a scenario or a real job those that apply to it, or may."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sim.advice.settings import sinks_of
from sim.evidence.known_issues.catalogue import UNSAFE, IssueMatch, issues_of, known_issues, versions_of
from sim.model.versions import version_span
from sim.verbs.options import OptionError

if TYPE_CHECKING:
    from sim.model.scenario import Scenario

_MOST_NAMED = 5
"""Defects that a line names; of more the number is said."""
HEADER = ("", "id", "component", "consequence", "fixed in", "what", "why")


@dataclass(frozen=True)
class FoundIssues:
    """Known defects, the worst consequences first."""

    matches: tuple[IssueMatch, ...]
    has_job: bool  # False: they are entries of the catalogue, whatever the job
    missing: str = ""  # versions and connectors that the job does not say; empty: it says all

    @property
    def rows(self) -> list[list[str]]:
        """A row of text per defect, under `HEADER`."""
        return [[self._status(own), *_cells(own), _why(own) or own.issue.condition] for own in self.matches]

    def _status(self, own: IssueMatch) -> str:
        return "" if not self.has_job else "applies" if own.applies else "may apply"

    @property
    def summary(self) -> str:
        """How many there are, and what would tell more."""
        if not self.has_job:
            return f"{_counted(len(self.matches))}. With a FILE: those that apply to its job, or may."
        applying = sum(own.applies for own in self.matches)
        more = f" Say {self.missing} to know more: defects of connectors that are not named are left out." if self.missing else ""
        return f"{_counted(applying)} appl{'ies' if applying == 1 else 'y'}, {len(self.matches) - applying} may apply.{more}"

    @property
    def plain(self) -> list[dict[str, Any]]:
        """JSON-ready."""
        return [own.plain for own in self.matches]


def find_issues(scenarios: Sequence[Scenario] | None, component: str | None = None, version: str | None = None) -> FoundIssues:
    """The catalogue, or what of it applies to a job, or may.

    `version`: of the `component`, which is Flink by default; of a job instead of its own.
    OptionError: there is no such component or version.
    """
    components = {issue.component for issue in known_issues()}
    if component not in (None, *components):
        raise OptionError("component", f"expected {', '.join(sorted(components))}, not '{component}'")
    try:
        version_span(version or "1")
    except ValueError as error:
        raise OptionError("version", str(error)) from None
    judged = component or ("flink" if version else None)
    if scenarios is None:
        everything = [IssueMatch(issue, False, (), ()) for issue in known_issues() if issue.affects(version or "") is not False]
        return FoundIssues(tuple(own for own in everything if judged in (None, own.issue.component)), has_job=False)
    found = issues_of(scenarios, {judged: version} if judged and version else {})
    own = tuple(match for match in found if component in (None, match.issue.component))
    missing = _missing(scenarios)
    if component is not None and ".connector" in missing and not any(component in versions_of(scenario) for scenario in scenarios):
        unsure = (f"a connector of the job is {component}: it does not name all of them",)
        has_it = [issue for issue in known_issues() if issue.component == component and issue.affects(version or "") is not False]
        own, missing = (*own, *(IssueMatch(issue, False, (), unsure) for issue in has_it)), ""
    return FoundIssues(own, has_job=True, missing=missing)


def known_issues_json(scenarios: Iterable[Scenario]) -> list[dict[str, Any]]:
    return [own.plain for own in issues_of(scenarios)]


def issue_lines(name: str, scenarios: Sequence[Scenario]) -> Iterator[tuple[str, bool]]:
    """A line for each known defect that applies, which is a warning, and one about those that may."""
    found = issues_of(scenarios)
    applying = [own for own in found if own.applies]
    for own in applying[:_MOST_NAMED]:
        issue = own.issue
        text = f"{issue.id} ({issue.consequence}): {issue.title}. {own.simulated}. Way out: {issue.way_out}. {issue.source}"
        yield f"{name}: known defect {text}", True
    if others := len(applying[_MOST_NAMED:]):
        yield f"{name}: {_counted(others, 'more known defect')} apply: ckptsim known-issues FILE", True
    if possible := [own for own in found if not own.applies]:
        counts = ", ".join(f"{what} {count}" for what, count in Counter(own.issue.consequence for own in possible).items())
        text = f"{name}: {_counted(len(possible))} may apply ({counts}: {_named(possible)}): ckptsim known-issues FILE lists them"
        yield text + (f"; fewer if you say {missing}" if (missing := _missing(scenarios)) else ""), False


def different_issues(scenarios: Mapping[str, Scenario]) -> Iterator[str]:
    """By name of the scenario: the known defects that it alone has, or may have."""
    found = {name: dict.fromkeys(own.issue.id for own in issues_of([scenario])) for name, scenario in scenarios.items()}
    for name, own in found.items():
        if alone := [issue for issue in own if not all(issue in other for other in found.values())]:
            yield f"known defects that may apply to {name} alone: {', '.join(alone)}"


def nothing_lost(scenarios: Iterable[Scenario]) -> str:
    """What a run without a loss does not say; empty: no known defect contradicts it."""
    unsafe = [own for own in issues_of(scenarios) if own.issue.consequence in UNSAFE and not own.issue.simulated]
    if not unsafe:
        return ""
    is_or_are = "are" if len(unsafe) > 1 else "is"
    what = f"{_counted(len(unsafe))} may apply, which can lose, repeat or change records and {is_or_are} not simulated"
    return f"Nothing lost in the simulation; {what} ({_named(unsafe)}): ckptsim known-issues FILE"


def _named(found: Sequence[IssueMatch]) -> str:
    return ", ".join([*(own.issue.id for own in found[:_MOST_NAMED]), *["..."] * (len(found) > _MOST_NAMED)])


def _cells(own: IssueMatch) -> list[str]:
    issue = own.issue
    fixed = "unknown" if issue.fixed is None else ", ".join(issue.fixed) or "no release"
    return [issue.id, issue.component, issue.consequence, fixed, f"{issue.title}. {own.simulated}."]


def _why(own: IssueMatch) -> str:
    return "; ".join([*own.holding, *(f"if {text}" for text in own.unsure)])


def _missing(scenarios: Sequence[Scenario]) -> str:
    versions = {component: version for scenario in scenarios for component, version in versions_of(scenario).items()}
    names = ["cluster.version" if component == "flink" else f"the version of {component}" for component, own in versions.items() if not own]
    sinks = [vertex for scenario in scenarios for vertex, kind in sinks_of(scenario).items() if kind is None]
    sources = [vertex.name for scenario in scenarios for vertex in scenario.job.vertices if vertex.source and not vertex.connector]
    return ", ".join([*names, *(f"job.{vertex}.connector" for vertex in dict.fromkeys((*sources, *sinks)))])


def _counted(count: int, what: str = "known defect") -> str:
    return f"{count} {what}{'s' * (count != 1)}"
