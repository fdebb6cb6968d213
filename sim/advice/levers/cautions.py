"""Cautions before a setting is applied: sinks that barriers must not overtake, edges that stay aligned, levers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sim.advice.levers.lever import Change
from sim.advice.settings import sinks_of
from sim.evidence.known_issues.catalogue import UNSAFE, issues_of
from sim.model.catalogs.shipping import SHIPPING
from sim.model.catalogs.sinks import ALIGNED_INSIDE, SINKS, SinkKind
from sim.prose import capitalised
from sim.scenario.overrides import key_of

if TYPE_CHECKING:
    from sim.advice.settings import Protocol
    from sim.model.scenario import Scenario

WATERMARKS = "nightlies.apache.org/flink/flink-docs-stable/docs/ops/state/checkpointing_under_backpressure"


@dataclass(frozen=True, slots=True)
class Caution:
    """A caution.  `short` fits into half a line, `text` is a sentence or two."""

    short: str
    text: str
    source: str
    is_question: bool = False  # the user has to answer it first
    is_of_catalogue: bool = False  # known defects, which nearly every job may have: what fits on the screen comes before them


def refusals(scenario: Scenario) -> list[Caution]:
    """Sinks for which barriers that overtake data are not tried; today's setting may be such a one."""
    found = []
    for vertex, kind in sinks_of(scenario).items():
        if kind is None or not kind.verdict:
            continue
        now = " Today's setting is unaligned: change that first." if scenario.checkpoint.barriers.record.overtakes else ""
        instead = f" Instead: {kind.instead}." if kind.instead else ""
        tried = f"Unaligned was not tried: '{vertex}' writes to {kind.title}, which {kind.verdict} under it."
        text = f"{tried} {_sentence(kind.why)}{instead}{now}"
        found.append(Caution(f"unaligned not tried: {kind.title} {kind.verdict}", text, kind.source))
    return found


def cautions(scenario: Scenario, protocol: Protocol, changes: Sequence[Change]) -> list[Caution]:
    """The cautions before a setting is applied, questions first."""
    found = [*([] if protocol.aligned else _of_overtaking(scenario)), *_of_transactions(scenario), *_of_levers(changes)]
    return sorted(found, key=lambda caution: not caution.is_question)


def new_defects(today: Scenario, advised: Scenario) -> list[Caution]:
    """Known defects that the advised setting may have, and today's has not."""
    old = {own.issue.id for own in issues_of([today])}
    found = [own for own in issues_of([advised]) if own.issue.id not in old]
    if not found:
        return []
    named = ", ".join(f"{own.issue.id} ({own.issue.consequence})" for own in sorted(found, key=lambda own: not own.applies))
    what = f"{len(found)} known defect{'s' * (len(found) > 1)} that today's setting does not have"
    text = f"With this setting {what} may apply: {named}. 'ckptsim known-issues' says when, and in which versions."
    return [Caution(f"may bring {what}", text, ", ".join(own.issue.source for own in found[:3]))]


def unsafe_defects(advised: Scenario) -> list[Caution]:
    """Known defects that change output, are not simulated, and that the advised setting has or may have."""
    unsafe = [own for own in issues_of([advised]) if own.issue.consequence in UNSAFE and not own.issue.simulated]
    if not unsafe:
        return []
    what = f"{len(unsafe)} known defect{'s' * (len(unsafe) > 1)}"
    are = "are" if len(unsafe) > 1 else "is"
    text = (
        f"{what} may apply, which can lose, repeat or change records and {are} not simulated: {', '.join(own.issue.id for own in unsafe)}."
    )
    return [Caution(f"{what} may lose or repeat records", text, "ckptsim known-issues FILE", is_of_catalogue=True)]


def condition(scenario: Scenario, protocol: Protocol) -> str:
    """What has to hold before barriers overtake data: ``'sink' is not Iceberg's FlinkSink or Hudi``; empty: no sink is unknown."""
    unknown = [] if protocol.aligned else _unknown(scenario)
    titles = _titles(list(SINKS.values()), "loses")
    names = ", ".join(f"'{vertex}'" for vertex in unknown)
    return f"{names} {'is' if len(unknown) == 1 else 'are'} not {titles}" if unknown else ""


def _unknown(scenario: Scenario) -> list[str]:
    return [vertex for vertex, kind in sinks_of(scenario).items() if kind is None]


def _of_overtaking(scenario: Scenario) -> Iterator[Caution]:
    unknown = _unknown(scenario)
    if unknown:
        yield _unknown_sinks(unknown)
    inside = [(vertex, kind) for vertex, kind in sinks_of(scenario).items() if kind is not None and kind.overtaking == "aligned inside"]
    for vertex, kind in inside:
        why = f"'{vertex}' writes to {kind.title}: {kind.why}. {ALIGNED_INSIDE}."
        yield Caution(f"{kind.title}: not before Flink 2.0 or 1.20.2", why, f"{kind.source}; FLINK-37870")
    if edges := _stay_aligned(scenario):
        text = f"Flink keeps barriers aligned on edges that are pointwise or broadcast: {', '.join(edges)}. So does the simulation."
        yield Caution(f"stays aligned: {edges[0]}", text, WATERMARKS)
    if scenario.job.event_time_windows:
        text = "After a restore in-flight records come before new watermarks: operators that use the latest watermark see an older one."
        yield Caution("watermarks come later after a restore", text, WATERMARKS)


def _unknown_sinks(unknown: Sequence[str]) -> Caution:
    bad = [kind for kind in SINKS.values() if kind.verdict]
    named = "; ".join(
        f"{kind.title} {'loses records' if kind.overtaking == 'loses' else 'refuses to start'} ({kind.source})" for kind in bad
    )
    options = " ".join(f"--set '{key_of(('job', vertex, 'connector'))}=NAME'" for vertex in unknown)
    names = ", ".join(f"'{vertex}'" for vertex in unknown)
    short = f"is the sink {_titles(bad, 'loses')}? Unaligned would lose records"
    text = f"What does {names} write to? Under unaligned checkpoints {named}. Say it with {options}, NAME being one of {', '.join(SINKS)}."
    return Caution(short, text, "; ".join(kind.source for kind in bad), is_question=True)


def _titles(kinds: Sequence[SinkKind], overtaking: str) -> str:
    return " or ".join(kind.title for kind in kinds if kind.overtaking == overtaking)


def _stay_aligned(scenario: Scenario) -> list[str]:
    """``source -> map (forward)``: edges that barriers never overtake on."""
    return [
        f"{inlet.upstream} -> {vertex.name} ({inlet.ship})"
        for vertex in scenario.job.vertices for inlet in vertex.inputs if not SHIPPING[inlet.ship].overtaken
    ]  # fmt: skip


def _of_transactions(scenario: Scenario) -> Iterator[Caution]:
    for vertex, kind in sinks_of(scenario).items():
        if kind is not None and kind.timeout:
            text = f"'{vertex}' writes to {kind.title}: {capitalised(kind.why)} ({kind.timeout})."
            yield Caution(f"{kind.timeout.partition(',')[0]}: above checkpoint and downtime", text, kind.source)


def _of_levers(changes: Sequence[Change]) -> Iterator[Caution]:
    for change in changes:
        lever = change.lever
        if lever.ask:
            yield Caution(lever.short_ask or lever.ask, f"{change.name}: {lever.ask}", lever.source, is_question=True)
        if lever.caution:
            yield Caution(lever.short_caution or lever.caution, f"{change.name}: {lever.caution}.", lever.source)


def _sentence(text: str) -> str:
    return f"{capitalised(text)}." if text else ""
