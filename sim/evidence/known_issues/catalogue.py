"""The catalogue of known defects: its entries, and those that apply to a job.

`known_issues.toml` holds the entries.  `when` is a condition: the name of a predicate, `{name = value}` for one that takes a value,
`{asks = "..."}` for what no scenario says, and `{all = [...]}`, `{any = [...]}`, `{not = ...}` around others.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from functools import cache
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, get_args

from pydantic import BaseModel, Field, field_validator

from sim.evidence.known_issues.predicates import PREDICATES, RANK, Truth, negated
from sim.model.catalogs.sinks import SINKS
from sim.model.catalogs.sources import SOURCES
from sim.model.scenario import Scenario
from sim.model.versions import spans_from, version_span

FILE = Path(__file__).parent / "known_issues.toml"

Consequence = Literal[
    "loss", "duplicates", "wrong-results", "no-restore", "restart-loop", "crash", "hang", "failure", "failing-checkpoints", "leak",
    "larger-state", "larger-files", "slow",
]  # fmt: skip
"""From the worst on."""
UNSAFE = ("loss", "duplicates", "wrong-results")
"""Consequences that make "nothing is lost" wrong."""


class KnownIssue(BaseModel, frozen=True, extra="forbid"):
    """A defect of Flink or of a connector, with its source."""

    id: str = Field(pattern=r"^[A-Za-z-]+[-#][\w-]+$")
    component: str
    title: str
    since: tuple[str, ...]
    """First version of each branch that has it; empty: not known."""
    fixed: tuple[str, ...] | None = None
    """First version of each branch without it; empty: no release is; None: not known."""
    confirmed: tuple[str, ...] = ()
    """Versions in which the source saw it."""
    when: Any
    condition: str
    """The same in words, with what no predicate says."""
    consequence: Consequence
    happens: str
    way_out: str
    source: str = Field(pattern="^https://")
    evidence: str = ""
    simulated: str = ""
    """The option of a scenario that plays it; empty: it is not simulated."""

    @field_validator("when")
    @classmethod
    def _check_condition(cls, when: Any) -> Any:
        evaluate(when, None)
        return when

    def affects(self, version: str) -> Truth:
        """Whether a version has it; None: that is not known, or the version is empty."""
        if not version:
            return None
        span = version_span(version)
        if span.is_in([*map(version_span, self.confirmed)]):
            return True
        began = span.is_in(spans_from(self.since)) if self.since else None
        ended = None if self.fixed is None else span.is_in(spans_from(self.fixed))
        return min(began, negated(ended), key=RANK)


class IssueMatch(NamedTuple):
    """A known defect that applies to a job, or may apply."""

    issue: KnownIssue
    applies: bool  # False: it may
    holding: tuple[str, ...]  # sentences of its condition that hold
    unsure: tuple[str, ...]  # ... and that may

    @property
    def simulated(self) -> str:
        """Whether the simulation plays it."""
        return f"Simulated by {self.issue.simulated}" if self.issue.simulated else "Not simulated"

    @property
    def plain(self) -> dict[str, Any]:
        """JSON-ready."""
        found = {"applies": self.applies, "holding": list(self.holding), "unsure": list(self.unsure)}
        return self.issue.model_dump(mode="json", exclude={"when"}) | found


@cache
def known_issues() -> tuple[KnownIssue, ...]:
    """All entries, the worst consequences first, and those of connectors before Flink's."""
    entries = [KnownIssue(**entry) for entry in tomllib.loads(FILE.read_text(encoding="utf-8"))["issue"]]
    return tuple(sorted(entries, key=lambda own: (get_args(Consequence).index(own.consequence), own.component == "flink")))


def evaluate(when: Any, scenario: Scenario | None) -> tuple[Truth, list[str], list[str]]:
    """Whether a condition holds, the sentences that do, and those that may.  ValueError: it is not a condition."""
    name, value = next(iter(when.items())) if isinstance(when, dict) and len(when) == 1 else (when, "")
    if name == "not":
        return negated(evaluate(value, scenario)[0]), [], []
    if name in ("all", "any") and value:
        truths, holding, unsure = zip(*(evaluate(part, scenario) for part in value), strict=True)
        return (min if name == "all" else max)(truths, key=RANK), [*chain(*holding)], [*chain(*unsure)]
    predicate = PREDICATES.get(name) if isinstance(name, str) else None
    if predicate is None or ("{}" in predicate.sentence) is not bool(value):
        raise ValueError(f"{when} is not a condition: expected all, any, not, or one of {', '.join(PREDICATES)}")
    truth = None if scenario is None else predicate.holds(scenario, value)
    sentence = [predicate.sentence.format(value)]
    return truth, sentence * (truth is True), sentence * (truth is None)


def versions_of(scenario: Scenario) -> dict[str, str]:
    """The version of Flink and of each connector in a job, by component; empty: the scenario does not say it."""
    found = {"flink": scenario.cluster.version}
    if scenario.restart.provider == "kubernetes" or scenario.is_operated:
        found["flink-kubernetes-operator"] = ""
    for vertex in scenario.job.vertices:
        kind = SINKS.get(vertex.known_connector)
        component = kind.component if kind else SOURCES.get(vertex.known_connector, "")
        if component not in ("", "flink"):
            found[component] = vertex.connector_version or found.get(component, "")
    return found


def issues_of(scenarios: Iterable[Scenario], versions: Mapping[str, str] = MappingProxyType({})) -> list[IssueMatch]:
    """The known defects that apply to a scenario, or may; of several scenarios those of any.  `versions`: instead of those of the job."""
    found: dict[str, IssueMatch] = {}
    for scenario in scenarios:
        for component, version in {**versions_of(scenario), **versions}.items():
            for issue in known_issues():
                own = _match(issue, version, scenario) if issue.component == component else None
                if own is not None and (own.applies or issue.id not in found):
                    found[issue.id] = own
    worst_first = [found[issue.id] for issue in known_issues() if issue.id in found]
    return sorted(worst_first, key=lambda own: not own.applies)


def _match(issue: KnownIssue, version: str, scenario: Scenario) -> IssueMatch | None:
    affects, (truth, holding, unsure) = issue.affects(version), evaluate(issue.when, scenario)
    applies = min(affects, truth, key=RANK)
    if applies is False or not (applies or holding):  # nothing in the job speaks for it
        return None
    named = [f"{issue.component} {version} has it" if version else f"the version of {issue.component} has it"]
    return IssueMatch(issue, bool(applies), (*named * bool(affects), *holding), (*named * (affects is None), *unsure))
