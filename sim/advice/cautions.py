"""Cautions that are shown with an advised setting: sinks that barriers must not overtake, edges that stay aligned, levers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sim.advice.levers import RESTARTS, SPARE, WITHOUT_END
from sim.advice.settings import TIMERS, Change, options_missing_in_release, sinks_of
from sim.advice.trials import TASK_MANAGER, Failure, restarts_after_losses
from sim.jobs.evidence.envelope import firings_ns
from sim.jobs.evidence.known_issues import issues_of, unsafe_issues
from sim.model.job import SHIPPING
from sim.model.schema.option_values import key_in_release
from sim.model.schema.study import key_of
from sim.model.sinks import ALIGNED_INSIDE, SINKS, SinkKind
from sim.model.text import capitalised
from sim.model.units import format_duration
from sim.protocol.recovery import outages
from sim.results.formats import ms_text
from sim.results.stored import table_sinks

if TYPE_CHECKING:
    from sim.advice.settings import BarrierSetting
    from sim.model.scenario import Scenario

UNLIMITED_ATTEMPTS_S = 365 * 86_400.0
"""If the attempts of a restart strategy last longer than this, they count as unlimited; else more of them are part of the advice."""
WATERMARKS = "nightlies.apache.org/flink/flink-docs-stable/docs/ops/state/checkpointing_under_backpressure"


@dataclass(frozen=True, slots=True)
class Caution:
    """A caution or question to the user: `short` fits half a line of the overview, `text` has full sentences."""

    short: str
    text: str
    source: str
    is_question: bool = False  # a question that the user has to answer first
    # a known defect; these apply to nearly every job, so other cautions are shown first
    is_known_defect: bool = False

    @property
    def sentence(self) -> str:
        return f"{'Ask first' if self.is_question else 'Caution'}: {self.text}"


def restart_attempts_caution(scenario: Scenario, mtbf_s: float, failure: Failure) -> Caution | None:
    """Return a caution if the expected failures use up the attempts of the restart strategy, else None.

    After the loss of a TaskManager each deployment counts as an attempt until there are slots.  A loss that uses up all attempts
    ends the job, even if it is the first.
    """
    restart = scenario.restart
    counts = (
        [
            outage.deployments + (outage.ready_ns is None)
            for own in restarts_after_losses(scenario)
            for outage in outages(own, fail_ns=scenario.overheads.fail_ns, restart_ns=scenario.overheads.restart_ns)
        ]
        if failure == TASK_MANAGER
        else [1]
    )
    attempts, more = f"restart-strategy.{restart.strategy}.", str(WITHOUT_END)
    if not options_missing_in_release(scenario, {"restart.strategy": "exponential-delay"}):
        more += f", or {key_in_release('restart-strategy.type', scenario)}: exponential-delay"
    if restart.strategy == "fixed-delay" and restart.attempts is not None:
        first, last = (restart.attempts // count + 1 for count in (max(counts), max(min(counts), 1)))
        if first * mtbf_s > UNLIMITED_ATTEMPTS_S:
            return None
        ends = sorted({first, last})
        times, after = (" to ".join(map(text, ends)) for text in (str, lambda count: ms_text(1e3 * mtbf_s * count)))
        short = f"attempts are never reset: the job ends at failure {times}, in about {after}"
        attempts += "attempts"
    elif (
        restart.strategy == "failure-rate"
        # expected failures in one interval, given that one has just happened
        and max(counts) * (1 + restart.rate_interval_ns / 1e9 / mtbf_s) > restart.rate
    ):
        within = format_duration(restart.rate_interval_ns)
        short = f"more than {restart.rate} failures in {within}, which are usual here, end the job"
        attempts += "max-failures-per-interval"
    else:
        return None
    return Caution(short, f"{capitalised(short)}. To keep it running, set {attempts}: {more}.", RESTARTS.source)


def sinks_without_unaligned(scenario: Scenario) -> list[Caution]:
    """Return a caution on each sink that excludes unaligned barriers from the search, also if the current setting uses them."""
    cautions = []
    for vertex, kind in sinks_of(scenario).items():
        if kind is None or not kind.verdict:
            continue
        now = (
            " Today's setting is unaligned: change this first." if scenario.checkpoint.barriers.record.overtakes else ""
        )
        instead = f" Instead: {kind.instead}." if kind.instead else ""
        tried = f"Unaligned was not tried: '{vertex}' writes to {kind.title}, which {kind.verdict} with unaligned checkpoints."
        text = f"{tried} {_sentence(kind.why)}{instead}{now}"
        cautions.append(Caution(f"unaligned not tried: {kind.title} {kind.verdict}", text, kind.source))
    return cautions


AT_LEAST_ONCE_CAUTION = Caution(
    "at-least-once: after a failure state and committed output repeat records",
    "With at-least-once a failure counts records twice in state and commits them twice, whatever the sink is. Aligned barriers "
    "(execution.checkpointing.mode: EXACTLY_ONCE) avoid this. With at-least-once, transactions delay output and guarantee nothing.",
    "execution.checkpointing.mode",
)
INTERRUPTIBLE_TIMERS_CAUTION = Caution(
    "interruptible timers: for windows of SQL only, not the WindowOperator",
    "Interruptible timers: operators of SQL let barriers pass between two timers, the DataStream WindowOperator does not.",
    "FLIP-443",
)


def cautions(scenario: Scenario, protocol: BarrierSetting, changes: Sequence[Change]) -> list[Caution]:
    """Return the cautions on sinks, edges and levers of a setting, questions first."""
    overtaking = [] if protocol.aligned else _unaligned_cautions(scenario)
    repeating = [AT_LEAST_ONCE_CAUTION] if protocol.barriers == "at-least-once" else []
    yielding = [INTERRUPTIBLE_TIMERS_CAUTION] if TIMERS in protocol.point else []
    all_cautions = [
        *repeating,
        *overtaking,
        *yielding,
        *_lever_cautions(scenario, changes),
        *_transaction_cautions(scenario),
        *_table_format_cautions(scenario),
    ]
    return sorted(all_cautions, key=lambda caution: not caution.is_question)


def new_defects(today: Scenario, advised: Scenario) -> list[Caution]:
    """Return cautions on known defects that apply to the advised setting, but not to the current one."""
    old = {issue.issue.id for issue in issues_of([today])}
    issues = [issue for issue in issues_of([advised]) if issue.issue.id not in old]
    if not issues:
        return []
    named = ", ".join(
        f"{issue.issue.id} ({issue.issue.consequence})" for issue in sorted(issues, key=lambda issue: not issue.applies)
    )
    count = f"{len(issues)} known defect{'s' * (len(issues) > 1)} that today's setting does not have"
    text = f"With this setting {count} may apply: {named}. 'ckptsim known-issues' says when, and in which versions."
    return [
        Caution(
            f"new with this setting, {len(issues)} known defect{'s' * (len(issues) > 1)} may apply: {named}",
            text,
            ", ".join(issue.issue.source for issue in issues[:3]),
        )
    ]


def windows_longer_than_trials(advised: Scenario, seen_ns: int) -> list[Caution]:
    """Return a caution for each window that is longer than a trial (`seen_ns`), unless the time that it fires is known (`firings_ns`)."""
    cautions = []
    known = firings_ns(advised)
    for vertex in advised.job.vertices:
        window = vertex.window
        if window is None or window.hold_ns or vertex.name in known or window.size_ns <= seen_ns:
            continue
        size = format_duration(window.size_ns)
        text = (
            f"Windows of '{vertex.name}' last {size}, trials at most {format_duration(seen_ns)}: no trial shows how long a "
            "checkpoint waits while such a window fires."
        )
        short = f"windows of '{vertex.name}' ({size}) are longer than trials, which show no firing"
        cautions.append(Caution(short, text, "sim.model.job.Window"))
    return cautions


def unsafe_defects(advised: Scenario) -> list[Caution]:
    """Return a caution on the known defects that may change output, are not simulated, and may apply to the advised setting."""
    unsafe = unsafe_issues([advised])
    if unsafe is None:
        return []
    short = f"{unsafe.number} may lose or repeat records"
    return [Caution(short, f"{unsafe.sentence}.", "ckptsim known-issues FILE", is_known_defect=True)]


def unaligned_precondition(scenario: Scenario, protocol: BarrierSetting) -> str:
    """Return the condition under which a barrier mode is safe, e.g. ``'sink' is not Iceberg's FlinkSink or Hudi``.

    Returns "" if barriers are aligned or all sinks are known.
    """
    unknown = [] if protocol.aligned else unknown_sinks(scenario)
    titles = _titles_of_losing(SINKS.values())
    names = ", ".join(f"'{vertex}'" for vertex in unknown)
    return f"{names} {'is' if len(unknown) == 1 else 'are'} not {titles}" if unknown else ""


def unknown_sinks(scenario: Scenario) -> list[str]:
    """Return the sinks whose connector is not known, so that they may forbid barriers that overtake data."""
    return [vertex for vertex, kind in sinks_of(scenario).items() if kind is None]


def _unaligned_cautions(scenario: Scenario) -> Iterator[Caution]:
    unknown = unknown_sinks(scenario)
    if unknown:
        yield _unknown_sinks(unknown)
    inside = [
        (vertex, kind)
        for vertex, kind in sinks_of(scenario).items()
        if kind is not None and kind.overtaking == "aligned inside"
    ]
    for vertex, kind in inside:
        why = f"'{vertex}' writes to {kind.title}: {kind.why}. {ALIGNED_INSIDE}."
        yield Caution(
            f"{kind.title}: unaligned needs Flink 1.19.3, 1.20.2 or 2.0.1", why, f"{kind.source}; FLINK-37870"
        )
    if edges := _forced_aligned_edges(scenario):
        text = f"Flink keeps barriers aligned on edges that are pointwise or broadcast: {', '.join(edges)}. So does the simulation."
        yield Caution(f"stays aligned: {edges[0]}", text, WATERMARKS)
    if scenario.job.event_time_windows:
        text = "After a restore in-flight records come before new watermarks: operators may see an older watermark than before the failure."
        yield Caution("watermarks come later after a restore", text, WATERMARKS)


def _table_format_cautions(scenario: Scenario) -> Iterator[Caution]:
    for vertex, kind in table_sinks(scenario.job).items():
        if scenario.job.vertex(vertex).committer_of:
            continue  # its writer is a sink of the same kind
        text = (
            f"Each commit of '{vertex}' adds at least {kind.metadata} to the table, in addition to data files. What many small "
            "files cost readers and compaction is not simulated, and the advice does not count it. Where it matters, prefer the "
            "longest interval whose output is recent enough for you to a shorter one with the same durations."
        )
        yield Caution(
            "the cost of many small files of the table is not judged",
            text,
            f"specification of {kind.title}'s table format",
        )


def _unknown_sinks(unknown: Sequence[str]) -> Caution:
    bad = [kind for kind in SINKS.values() if kind.verdict]
    named = "; ".join(
        f"{kind.title} {'loses records' if kind.overtaking == 'loses' else 'refuses to start'} ({kind.source})"
        for kind in bad
    )
    options = " ".join(f"--set '{key_of(('job', vertex, 'connector'))}=NAME'" for vertex in unknown)
    names = ", ".join(f"'{vertex}'" for vertex in unknown)
    short = f"is the sink {_titles_of_losing(bad)}? Unaligned would lose records"
    text = f"What does {names} write to? Under unaligned checkpoints {named}. Set it with {options}; NAME: {', '.join(SINKS)}."
    return Caution(short, text, "; ".join(kind.source for kind in bad), is_question=True)


def _titles_of_losing(kinds: Iterable[SinkKind]) -> str:
    return " or ".join(kind.title for kind in kinds if kind.overtaking == "loses")


def _forced_aligned_edges(scenario: Scenario) -> list[str]:
    """Return the edges on which barriers never overtake data, e.g. ``source -> map (forward)``."""
    return [
        f"{inlet.upstream} -> {vertex.name} ({inlet.ship})"
        for vertex in scenario.job.vertices
        for inlet in vertex.inputs
        if not SHIPPING[inlet.ship].overtaken
    ]


def _transaction_cautions(scenario: Scenario) -> Iterator[Caution]:
    for vertex, kind in sinks_of(scenario).items():
        if kind is not None and kind.timeout:
            text = f"'{vertex}' writes to {kind.title}: {capitalised(kind.why)} ({kind.timeout})."
            yield Caution(f"{kind.timeout.partition(',')[0]}: above interval and downtime", text, kind.source)


def _lever_cautions(scenario: Scenario, changes: Sequence[Change]) -> Iterator[Caution]:
    for change in changes:
        lever = change.lever
        if lever is SPARE and scenario.restart.provider != "standalone":
            continue
        if lever.ask:
            yield Caution(lever.short_ask or lever.ask, f"{change.name}: {lever.ask}", lever.source, is_question=True)
        if lever.caution:
            yield Caution(lever.short_caution or lever.caution, f"{change.name}: {lever.caution}.", lever.source)


def _sentence(text: str) -> str:
    return f"{capitalised(text)}." if text else ""
