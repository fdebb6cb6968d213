"""Known issues of Flink and its connectors: the catalogue, and the conditions of its entries."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

from pydantic import BaseModel, Field, field_validator

from sim.model.cluster import spans_from, version_span
from sim.model.job import SOURCES, UNKNOWN
from sim.model.scenario import Scenario
from sim.model.sinks import SINKS

# ---- Predicates: named properties of a scenario, each with a message and the path of the field it tests.
#
# The value of a predicate is True, False or None (undecided): its event (a failure, a rescale, a drain) is not in the
# scenario but may happen.  A key of Flink or its operator that is not modelled is undecided unless the scenario sets it.

ThreeValued = bool | None


class Predicate(NamedTuple):
    """A test of one field of the scenario: equal to the entry's value, or to `wanted`, or truthy if neither is given."""

    sentence: str  # the message if it is true; {} is the entry's value
    path: str = ""  # dotted field names; any element of a tuple may match.  "" if a scenario cannot decide it
    wanted: Any = None
    is_event: bool = False

    def holds(self, scenario: Scenario, expected: str) -> ThreeValued:
        """Evaluate the predicate.  `expected` is the value in the entry, or "" if it has none."""
        if self.path == "written_keys":
            value = dict(scenario.written_keys).get(expected)
            return None if value is None else value.lower() not in ("false", "off", "none", "0", "")
        wanted = expected or self.wanted
        values = [*_values(scenario, self.path.split("."))] if self.path else []
        is_met = any(bool(value) if wanted is None else value == wanted for value in values)
        return is_met or (None if self.is_event or not self.path or UNKNOWN in values else False)


def _values(node: Any, path: list[str]) -> Iterator[Any]:
    if isinstance(node, tuple):
        for item in node:
            yield from _values(item, path)
    elif node is not None:
        yield from _values(getattr(node, path[0]), path[1:]) if path else [node]


TRUTH_RANK = (False, None, True).index
"""Sort key: the minimum of truth values is their conjunction, the maximum their disjunction (Kleene)."""


def negated(truth: ThreeValued) -> ThreeValued:
    """Return the negation of a truth value; that of None (undecided) is None."""
    return None if truth is None else not truth


# ---- The catalogue `known_issues.toml`: predicates and known defects, and the entries that apply to a job.
#
# The key `when` is a condition:
#   "changelog"                                 a predicate
#   {backend = "rocksdb"}                       a predicate with a value
#   {asks = "..."}                              a condition that a scenario cannot decide
#   {all = [...]}, {any = [...]}, {not = ...}   combinations of conditions

FILE = Path(__file__).parent / "known_issues.toml"

Consequence = Literal[
    "loss",
    "duplicates",
    "wrong-results",
    "no-restore",
    "restart-loop",
    "crash",
    "hang",
    "failure",
    "failing-checkpoints",
    "leak",
    "larger-state",
    "larger-files",
    "slow",
]
"""Ordered from most to least severe."""
UNSAFE = ("loss", "duplicates", "wrong-results")
"""Consequences that change the output: records are lost, repeated or wrong."""


class KnownIssue(BaseModel, frozen=True, extra="forbid"):
    """A defect of Flink or of a connector, with its source."""

    id: str = Field(pattern=r"^[A-Za-z-]+[-#][\w-]+$")
    component: str
    title: str
    since: tuple[str, ...]
    """First affected version of each branch; empty if unknown."""
    fixed: tuple[str, ...] | None = None
    """First version of each branch without the defect; (): not fixed in any release; None: unknown."""
    confirmed: tuple[str, ...] = ()
    """Versions in which the source observed it."""
    flink: tuple[str, ...] = ()
    """Flink versions in which a defect of a connector occurs; empty: all."""
    when: Any
    condition: str
    """The condition in words, including the parts that no predicate tests."""
    consequence: Consequence
    happens: str
    way_out: str
    source: str = Field(pattern="^https://")
    evidence: str = ""
    simulated: str = ""
    """Scenario option that simulates the defect; empty if it is not simulated, or only in part."""
    simulated_in_part: str = ""
    """Which part is simulated, and by which option."""

    @field_validator("when")
    @classmethod
    def _check_condition(cls, when: Any) -> Any:
        evaluate(when, None)
        return when

    def affects(self, version: str) -> ThreeValued:
        """Return whether a version is affected, or None if that, or the version, is unknown."""
        if not version:
            return None
        span = version_span(version)
        if span.is_in([*map(version_span, self.confirmed)]):
            return True
        began = span.is_in(spans_from(self.since)) if self.since else None
        ended = None if self.fixed is None else span.is_in(spans_from(self.fixed))
        return min(began, negated(ended), key=TRUTH_RANK)


class IssueMatch(NamedTuple):
    """A known defect that applies to a job, or may apply."""

    issue: KnownIssue
    applies: bool  # whether it certainly applies; otherwise it may apply
    holding: tuple[str, ...]  # conditions that are satisfied, as sentences
    unsure: tuple[str, ...]  # conditions that are undecided

    @property
    def is_about_written_key(self) -> bool:
        """Whether one of its conditions is a Flink key that the job sets."""
        return any(text.endswith(predicates()["key"].sentence.removeprefix("{}")) for text in self.holding)

    @property
    def simulated(self) -> str:
        """A sentence: whether the defect is simulated."""
        issue = self.issue
        if issue.simulated_in_part:
            return f"Simulated in part: {issue.simulated_in_part}"
        return f"Simulated by {issue.simulated}" if issue.simulated else "Not simulated"

    @property
    def plain(self) -> dict[str, Any]:
        """The match as values for JSON."""
        conditions = {"applies": self.applies, "holding": list(self.holding), "unsure": list(self.unsure)}
        return self.issue.model_dump(mode="json", exclude={"when"}) | conditions


@cache
def _catalogue() -> dict[str, Any]:
    return tomllib.loads(FILE.read_text(encoding="utf-8"))


@cache
def predicates() -> dict[str, Predicate]:
    """Return the predicates by name."""
    return {name: Predicate(**fields) for name, fields in _catalogue()["predicate"].items()}


@cache
def known_issues() -> tuple[KnownIssue, ...]:
    """Return all entries, the most severe first; of the same consequence those of connectors before those of Flink."""
    entries = [KnownIssue(**entry) for entry in _catalogue()["issue"]]
    return tuple(
        sorted(entries, key=lambda issue: (get_args(Consequence).index(issue.consequence), issue.component == "flink"))
    )


def evaluate(when: Any, scenario: Scenario | None) -> tuple[ThreeValued, list[str], list[str]]:
    """Return (value of a condition, sentences of its satisfied predicates, sentences of its undecided predicates).

    If `scenario` is None, the condition is only checked.  Raises `ValueError` if `when` is not a condition.
    """
    name, value = next(iter(when.items())) if isinstance(when, dict) and len(when) == 1 else (when, "")
    if name == "not":
        return negated(evaluate(value, scenario)[0]), [], []  # no sentences: they state the opposite
    if name in ("all", "any") and value:
        truths, holding, unsure = zip(*(evaluate(part, scenario) for part in value), strict=True)
        return (min if name == "all" else max)(truths, key=TRUTH_RANK), [*chain(*holding)], [*chain(*unsure)]
    predicate = predicates().get(name) if isinstance(name, str) else None
    if predicate is None or ("{}" in predicate.sentence) is not bool(value):
        raise ValueError(f"{when} is not a condition: expected all, any, not, or one of {', '.join(predicates())}")
    truth = None if scenario is None else predicate.holds(scenario, value)
    sentences = [predicate.sentence.format(value)]
    return truth, sentences if truth else [], sentences if truth is None else []


def versions_of(scenario: Scenario) -> dict[str, str]:
    """Return the versions of Flink and of each connector in a job, by component.  An unknown version is ""."""
    versions = {"flink": scenario.cluster.version}
    if scenario.restart.provider == "kubernetes" or scenario.is_operated:
        versions["flink-kubernetes-operator"] = ""
    for vertex in scenario.job.vertices:
        kind = SINKS.get(vertex.known_connector)
        component = kind.component if kind else SOURCES.get(vertex.known_connector, "")
        if component not in ("", "flink"):
            versions[component] = vertex.connector_version or versions.get(component, "")
    return versions


def issues_of(scenarios: Iterable[Scenario]) -> list[IssueMatch]:
    """Return the known defects that apply, or may apply, to any of the scenarios."""
    matches: dict[str, IssueMatch] = {}
    for scenario in scenarios:
        for component, version in versions_of(scenario).items():
            for issue in known_issues():
                match = _match(issue, version, scenario) if issue.component == component else None
                if match is not None and (match.applies or issue.id not in matches):
                    matches[issue.id] = match
    worst_first = [matches[issue.id] for issue in known_issues() if issue.id in matches]
    return sorted(worst_first, key=lambda match: not match.applies)


MAX_LISTED_IDS = 5
"""Maximum number of ids in a line."""


def count_defects(count: int, noun: str = "known defect") -> str:
    """Return a number with a noun: ``1 known defect``, ``2 known defects``."""
    return f"{count} {noun}{'s' * (count != 1)}"


def first_ids(matches: Sequence[IssueMatch]) -> str:
    """Return up to `MAX_LISTED_IDS` ids: first those about a Flink key that the job sets, then the most severe."""
    ordered = sorted(matches, key=lambda match: not match.is_about_written_key)
    return ", ".join(
        [*(match.issue.id for match in ordered[:MAX_LISTED_IDS]), *["..."] * (len(matches) > MAX_LISTED_IDS)]
    )


class UnsafeIssues(NamedTuple):
    """The known defects that change output, are not simulated, and may apply to a job."""

    number: str  # ``2 known defects``
    sentence: str  # without a full stop, with their ids


def unsafe_issues(scenarios: Iterable[Scenario]) -> UnsafeIssues | None:
    """Return the unsafe known defects of the scenarios, or None if there are none."""
    matches = [
        match for match in issues_of(scenarios) if match.issue.consequence in UNSAFE and not match.issue.simulated
    ]
    if not matches:
        return None
    count, is_or_are = count_defects(len(matches)), "are" if len(matches) > 1 else "is"
    sentence = f"{count} may apply, which can lose, repeat or change records and {is_or_are} not simulated"
    return UnsafeIssues(count, f"{sentence} ({first_ids(matches)}): ckptsim known-issues FILE")


def _match(issue: KnownIssue, version: str, scenario: Scenario) -> IssueMatch | None:
    affects, (truth, holding, unsure) = issue.affects(version), evaluate(issue.when, scenario)
    if issue.flink and scenario.cluster.version:
        occurs = version_span(scenario.cluster.version).is_in([*map(version_span, issue.flink)])
        affects = min(affects, occurs, key=TRUTH_RANK)
    applies = min(affects, truth, key=TRUTH_RANK)
    if applies is False or (applies is None and not holding):  # undecided, and nothing speaks for it
        return None
    if affects is not False:
        version_text = f"{issue.component} {version}" if version else f"the version of {issue.component}"
        (holding if affects else unsure).insert(0, f"{version_text} has it")
    return IssueMatch(issue, bool(applies), tuple(holding), tuple(unsure))
