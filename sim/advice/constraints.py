"""Keys that bind a candidate, and cautions."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sim.advice.levers import HEARTBEATS, MORE_THREADS, SOON_NS, TOLERABLE_FAILURES, WITHOUT_END
from sim.advice.settings import sinks_of
from sim.advice.situation import PARTS, Change, Lever
from sim.jobs.evidence.known_issues import issues_of, unsafe_issues
from sim.model.catalog import Kind
from sim.model.job import SHIPPING
from sim.model.schema.axes import key_of
from sim.model.schema.flink_text import OptionValue, option_values
from sim.model.sinks import ALIGNED_INSIDE, SINKS, SinkKind
from sim.model.text import capitalised
from sim.model.units import MS, SECOND
from sim.results.stored import table_sinks

if TYPE_CHECKING:
    from sim.advice.settings import Protocol
    from sim.model.scenario import Scenario


# ---- Keys of Flink that may keep a setting from its limits, whatever its barriers and its interval: each at a value that does not.
#
# A checkpoint waits for a pause, a restart for a delay, an upload for a thread.  Where nothing that was tried keeps the
# limits, all of these are set to values that bind nothing.  If the limits are kept then, no machine is missing: one of
# these keys is what binds.

DEFAULT = "default"
"""Stands for the default of the option, which is Flink's."""


@dataclass(frozen=True, slots=True)
class Constraint:
    """The values of an option that bind nothing.  All None: those that are not `instead`."""

    at_most: Any = None
    at_least: Any = None
    instead: Any = None  # the only one
    costs: str = "what it was set for"

    def relaxed(self, option: OptionValue) -> Any:
        """The value that binds nothing; None: the present one does not bind."""
        value, default = option.value, option.option.record.default
        least, most, only = (
            default if bound == DEFAULT else bound for bound in (self.at_least, self.at_most, self.instead)
        )
        if only is not None:
            return only if value != only else None
        if value is None:
            return None  # there is no limit, or the option follows another one
        number = math.inf if option.option.record.kind is Kind.BUFFER_TIMEOUT and value < 0 else value
        if least is not None:
            return least if number < least else None
        return most if number > most else None


CONSTRAINTS: dict[str, Constraint] = {
    "checkpoint.min-pause": Constraint(at_most=0, costs="checkpoints may follow each other without a pause"),
    "checkpoint.max-concurrent": Constraint(at_most=1, costs="a checkpoint begins when the one before it has ended"),
    "checkpoint.timeout": Constraint(at_least=3600 * SECOND, costs="a checkpoint that hangs is noticed later"),
    "checkpoint.tolerable-failed": Constraint(
        at_least=TOLERABLE_FAILURES, costs="a job whose checkpoints fail goes on for longer"
    ),
    "checkpoint.transfer-threads": Constraint(at_least=MORE_THREADS, costs="more requests to storage at a time"),
    "checkpoint.subtasks-per-channel-state-file": Constraint(at_most=1, costs="more files for data in flight"),
    "checkpoint.local-recovery": Constraint(
        instead=True, costs="a second copy of state on the disk of each TaskManager"
    ),
    "checkpoint.incremental": Constraint(instead=True, costs="more files in storage; a restore reads more of them"),
    "checkpoint.interruptible-timers": Constraint(instead=True, costs="records come between the timers of a watermark"),
    "job.VERTEX.state.lsm.memtable": Constraint(at_most=DEFAULT, costs="more files of level 0"),
    "job.VERTEX.state.lsm.table": Constraint(at_least=DEFAULT, costs="larger files are merged"),
    "job.VERTEX.state.lsm.base": Constraint(at_least=DEFAULT, costs="larger files are merged"),
    "job.VERTEX.state.changelog.materialize": Constraint(at_most=DEFAULT, costs="state is written in full more often"),
    "job.VERTEX.state.changelog.threshold": Constraint(at_most=DEFAULT, costs="more uploads"),
    "job.VERTEX.state.changelog.batch-delay": Constraint(at_most=DEFAULT, costs="more uploads"),
    "job.VERTEX.state.changelog.batch-size": Constraint(at_most=DEFAULT, costs="more uploads"),
    "job.VERTEX.state.changelog.upload-threads": Constraint(
        at_least=DEFAULT, costs="more requests to storage at a time"
    ),
    "job.VERTEX.state.changelog.upload-timeout": Constraint(
        at_least=DEFAULT, costs="an upload that hangs is noticed later"
    ),
    "job.VERTEX.state.changelog.upload-attempts": Constraint(
        at_least=DEFAULT, costs="an upload that fails is noticed later"
    ),
    "job.VERTEX.state.changelog.storage": Constraint(
        instead="filesystem", costs="the log is written to checkpoint storage"
    ),
    "cluster.network.segment-size": Constraint(at_most=DEFAULT, costs="more buffers to handle, and less in flight"),
    "cluster.network.buffers-per-channel": Constraint(at_most=DEFAULT, costs="less in flight"),
    "cluster.network.floating-buffers-per-gate": Constraint(at_most=DEFAULT, costs="less in flight"),
    "cluster.network.max-buffers-per-channel": Constraint(at_most=DEFAULT, costs="less in flight"),
    "cluster.network.buffer-timeout": Constraint(at_most=100 * MS, costs="more and smaller buffers"),
    "cluster.network.debloat.target": Constraint(at_most=DEFAULT, costs="smaller buffers"),
    "cluster.network.debloat.period": Constraint(at_most=DEFAULT, costs="buffer sizes change more often"),
    "cluster.network.debloat.samples": Constraint(at_most=DEFAULT, costs="buffer sizes follow short bursts"),
    "cluster.network.debloat.threshold": Constraint(at_most=DEFAULT, costs="buffer sizes change more often"),
    "cluster.network.debloat.min": Constraint(at_most=DEFAULT, costs="smaller buffers"),
    "storage.inline-threshold": Constraint(at_least=DEFAULT, costs="a larger _metadata"),
    "storage.object-store.part": Constraint(at_most=DEFAULT, costs="more requests"),
    "storage.object-store.parallel-parts": Constraint(at_least=DEFAULT, costs="more requests at a time"),
    "restart.strategy": Constraint(
        instead="exponential-delay", costs="a job that fails again and again restarts more often"
    ),
    "restart.delay": Constraint(at_most=SOON_NS, costs="a job that fails again and again restarts more often"),
    "restart.attempts": Constraint(at_least=WITHOUT_END, costs="a job that fails again and again does not end"),
    "restart.initial": Constraint(at_most=SOON_NS, costs="a job that fails again and again restarts more often"),
    "restart.multiplier": Constraint(at_most=DEFAULT, costs="a job that fails again and again restarts more often"),
    "restart.max": Constraint(at_most=SOON_NS, costs="a job that fails again and again restarts more often"),
    "restart.rate": Constraint(at_least=100, costs="a job that fails again and again does not end"),
    "restart.within": Constraint(at_most=DEFAULT, costs="a job that fails again and again does not end"),
    "restart.failover": Constraint(instead="region", costs="regions restart alone"),
    "restart.heartbeat-timeout": Constraint(
        at_most=DEFAULT, costs="a TaskManager that pauses for as long is taken for lost"
    ),
    "restart.heartbeat-interval": Constraint(at_most=SOON_NS, costs="more messages"),
    "restart.heartbeat-failures": Constraint(instead=2, costs="two heartbeats that fail in a row lose a TaskManager"),
    "restart.slot-check": Constraint(at_most=DEFAULT, costs="slots are looked for more often"),
    "restart.scheduler": Constraint(instead="default", costs="the job waits for all of its slots"),
    "restart.stabilization": Constraint(at_most=SECOND, costs="the job may start with fewer slots"),
    "restart.cooldown": Constraint(at_most=SECOND, costs="more restarts while slots come"),
    "restart.rescale-stabilization": Constraint(at_most=SECOND, costs="more restarts while slots come"),
    "restart.rescale-delay": Constraint(at_most=SECOND, costs="a rescaled job processes more records again"),
    "restart.resource-wait": Constraint(at_least=DEFAULT, costs="a job without slots fails later"),
}
"""Option -> the values of it that bind nothing.  Levers and candidates change the others that may bind (docs/adding.md)."""
_OF_FAILURES = ("checkpoint.timeout", "checkpoint.tolerable-failed")
"""Options that matter only where checkpoints fail ..."""
_OF_RECOVERY = ("restart.", "checkpoint.local-recovery")
"""... and those that only a recovery depends on."""


def relaxations(scenario: Scenario, breaks: Sequence[str], *, fails: bool) -> Iterator[Change]:
    """Each key of Flink that may bind, at a value that does not.

    `breaks`: the limits that are broken.  `fails`: checkpoints fail.
    """
    for option in option_values(scenario):
        path = ".".join(option.option.path)
        constraint = CONSTRAINTS.get(path)
        concerns = fails if path in _OF_FAILURES else "recovery_ms" in breaks if path.startswith(_OF_RECOVERY) else True
        value = (
            constraint.relaxed(option) if constraint is not None and concerns and _applies(scenario, option) else None
        )
        if constraint is not None and value is not None:
            name, written = option.key.rpartition(".")[2], option.written(value)
            of_cluster = HEARTBEATS if path.startswith("restart.heartbeat") else None
            caution, short = (of_cluster.caution, of_cluster.short_caution) if of_cluster else ("", "")
            lever = Lever(
                name, frozenset(PARTS), lambda _: iter(()), costs=constraint.costs, caution=caution, short_caution=short
            )
            section, is_debloating = option.key.rpartition(".")[0], path.startswith("cluster.network.debloat.")
            # `debloat: on` has no keys to set
            point = {section: {name: written}} if is_debloating else {option.key: written}
            yield Change(lever, f"{name} {str(written).lower()}", point)


def _applies(scenario: Scenario, option: OptionValue) -> bool:
    """Whether an option that is a switch would do anything."""
    states = [vertex.state for vertex in scenario.job.vertices if vertex.state is not None]
    needed: dict[str, bool] = {
        "checkpoint.incremental": any(state.kind.keeps_files for state in states),
        "checkpoint.transfer-threads": any(state.kind.keeps_files for state in states),
        "checkpoint.local-recovery": bool(states),
        "checkpoint.interruptible-timers": bool(scenario.job.event_time_windows)
        and scenario.checkpoint.barriers.record.overtakes,
        "checkpoint.subtasks-per-channel-state-file": scenario.checkpoint.barriers.record.overtakes,
        "restart.strategy": scenario.restart.strategy == "none",
    }
    return needed.get(option.key, True)


# ---- Cautions before a setting is applied: sinks that barriers must not overtake, edges that stay aligned, levers.

WATERMARKS = "nightlies.apache.org/flink/flink-docs-stable/docs/ops/state/checkpointing_under_backpressure"


@dataclass(frozen=True, slots=True)
class Caution:
    """A caution.  `short` fits into half a line, `text` is a sentence or two."""

    short: str
    text: str
    source: str
    is_question: bool = False  # the user has to answer it first
    # known defects, which nearly every job may have: what fits on the screen comes before them
    is_of_catalogue: bool = False


def refusals(scenario: Scenario) -> list[Caution]:
    """Sinks for which barriers that overtake data are not tried; today's setting may be such a one."""
    found = []
    for vertex, kind in sinks_of(scenario).items():
        if kind is None or not kind.verdict:
            continue
        now = (
            " Today's setting is unaligned: change that first." if scenario.checkpoint.barriers.record.overtakes else ""
        )
        instead = f" Instead: {kind.instead}." if kind.instead else ""
        tried = f"Unaligned was not tried: '{vertex}' writes to {kind.title}, which {kind.verdict} under it."
        text = f"{tried} {_sentence(kind.why)}{instead}{now}"
        found.append(Caution(f"unaligned not tried: {kind.title} {kind.verdict}", text, kind.source))
    return found


def cautions(scenario: Scenario, protocol: Protocol, changes: Sequence[Change]) -> list[Caution]:
    """The cautions before a setting is applied, questions first."""
    overtaking = [] if protocol.aligned else _of_overtaking(scenario)
    found = [*overtaking, *_of_transactions(scenario), *_of_levers(changes), *_of_tables(scenario)]
    return sorted(found, key=lambda caution: not caution.is_question)


def new_defects(today: Scenario, advised: Scenario) -> list[Caution]:
    """Known defects that the advised setting may have, and today's has not."""
    old = {own.issue.id for own in issues_of([today])}
    found = [own for own in issues_of([advised]) if own.issue.id not in old]
    if not found:
        return []
    named = ", ".join(
        f"{own.issue.id} ({own.issue.consequence})" for own in sorted(found, key=lambda own: not own.applies)
    )
    what = f"{len(found)} known defect{'s' * (len(found) > 1)} that today's setting does not have"
    text = f"With this setting {what} may apply: {named}. 'ckptsim known-issues' says when, and in which versions."
    return [Caution(f"may bring {what}", text, ", ".join(own.issue.source for own in found[:3]))]


def unsafe_defects(advised: Scenario) -> list[Caution]:
    """Known defects that change output, are not simulated, and that the advised setting has or may have."""
    unsafe = unsafe_issues([advised])
    if unsafe is None:
        return []
    short = f"{unsafe.number} may lose or repeat records"
    return [Caution(short, f"{unsafe.sentence}.", "ckptsim known-issues FILE", is_of_catalogue=True)]


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
    inside = [
        (vertex, kind)
        for vertex, kind in sinks_of(scenario).items()
        if kind is not None and kind.overtaking == "aligned inside"
    ]
    for vertex, kind in inside:
        why = f"'{vertex}' writes to {kind.title}: {kind.why}. {ALIGNED_INSIDE}."
        yield Caution(f"{kind.title}: not before Flink 2.0 or 1.20.2", why, f"{kind.source}; FLINK-37870")
    if edges := _stay_aligned(scenario):
        text = f"Flink keeps barriers aligned on edges that are pointwise or broadcast: {', '.join(edges)}. So does the simulation."
        yield Caution(f"stays aligned: {edges[0]}", text, WATERMARKS)
    if scenario.job.event_time_windows:
        text = "After a restore in-flight records come before new watermarks: operators that use the latest watermark see an older one."
        yield Caution("watermarks come later after a restore", text, WATERMARKS)


def _of_tables(scenario: Scenario) -> Iterator[Caution]:
    sinks = sinks_of(scenario)
    for vertex in table_sinks(scenario.job):
        if (kind := sinks.get(vertex)) is not None:
            text = (
                f"Each commit of '{vertex}' adds files to the table: {kind.metadata}, at least, beside its data files. What many small "
                "files cost readers and compaction is not simulated, and the advice does not count it. Where it matters, the longest "
                "interval whose output is recent enough for you is better than a shorter one with the same durations."
            )
            yield Caution(
                "many small files of the table are not judged", text, f"specification of {kind.title}'s table format"
            )


def _unknown_sinks(unknown: Sequence[str]) -> Caution:
    bad = [kind for kind in SINKS.values() if kind.verdict]
    named = "; ".join(
        f"{kind.title} {'loses records' if kind.overtaking == 'loses' else 'refuses to start'} ({kind.source})"
        for kind in bad
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
        for vertex in scenario.job.vertices
        for inlet in vertex.inputs
        if not SHIPPING[inlet.ship].overtaken
    ]


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
