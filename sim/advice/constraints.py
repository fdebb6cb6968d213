"""Flink keys whose current values may prevent every setting from keeping the limits; and cautions before a setting is used."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from sim.advice.levers import HEARTBEATS, MORE_THREADS, RESTARTS, SOON_NS, SPARE, TOLERABLE_FAILURES, WITHOUT_END
from sim.advice.settings import TIMERS, Change, Lever, options_missing_in_release, sinks_of
from sim.advice.situation import PARTS
from sim.advice.trials import TASK_MANAGER, Failure, restarts_after_losses
from sim.jobs.evidence.envelope import firings_ns
from sim.jobs.evidence.known_issues import issues_of, unsafe_issues
from sim.model.fields import BUFFER_TIMEOUT
from sim.model.job import SHIPPING
from sim.model.schema.option_values import OptionValue, key_in_release, option_values
from sim.model.schema.study import key_of
from sim.model.sinks import ALIGNED_INSIDE, SINKS, SinkKind
from sim.model.text import capitalised
from sim.model.units import MS, SECOND, format_duration
from sim.protocol.recovery import outages
from sim.results.formats import ms_text
from sim.results.stored import table_sinks

if TYPE_CHECKING:
    from sim.advice.settings import BarrierSetting
    from sim.model.scenario import Scenario


# ---- Limiting keys. A Flink key binds (is limiting) if its value delays something: a checkpoint waits for min-pause, a restart
# for its delay, an upload for a thread. For each key that may bind, this table has a value with which it does not.
#
# If no setting keeps the limits, all of these keys are set to non-binding values. If the limits are kept then, some of the
# keys are the cause, and no more machines are needed.

DEFAULT = "default"
"""Placeholder for the default of the option, which is Flink's."""


@dataclass(frozen=True, slots=True)
class Constraint:
    """The values of an option that do not bind: at most `value`, at least `value`, or only `value` ("instead")."""

    bound: Literal["at most", "at least", "instead"]
    value: Any
    costs: str

    def relaxed(self, option: OptionValue) -> Any:
        """Return the non-binding value, or None if the current value of the option does not bind."""
        value, record = option.value, option.key.record
        free = record.default if self.value == DEFAULT else self.value
        if value is None and self.bound != "instead":
            return None  # unlimited, or derived from another option
        if self.bound == "instead":
            return free if value != free else None
        number = math.inf if record.leaf is BUFFER_TIMEOUT and value < 0 else value
        return free if (number < free if self.bound == "at least" else number > free) else None


_VALUES: dict[Literal["at most", "at least", "instead"], dict[str, tuple[Any, str] | str]] = {
    "at most": {
        "checkpoint.min-pause": (0, "checkpoints may follow each other without a pause"),
        "checkpoint.max-concurrent": (1, "a checkpoint begins when the one before it has ended"),
        "checkpoint.subtasks-per-channel-state-file": (1, "more files for data in flight"),
        "job.VERTEX.state.lsm.memtable": "more files of level 0",
        "job.VERTEX.state.changelog.materialize": "state is written in full more often",
        "job.VERTEX.state.changelog.threshold": "more uploads",
        "job.VERTEX.state.changelog.batch-delay": "more uploads",
        "job.VERTEX.state.changelog.batch-size": "more uploads",
        "cluster.network.segment-size": "more buffers to handle, and less in flight",
        "cluster.network.buffers-per-channel": "less in flight",
        "cluster.network.floating-buffers-per-gate": "less in flight",
        "cluster.network.max-buffers-per-channel": "less in flight",
        "cluster.network.buffer-timeout": (100 * MS, "more and smaller buffers"),
        "cluster.network.debloat.target": "smaller buffers",
        "cluster.network.debloat.period": "buffer sizes change more often",
        "cluster.network.debloat.samples": "buffer sizes follow short bursts",
        "cluster.network.debloat.threshold": "buffer sizes change more often",
        "cluster.network.debloat.min": "smaller buffers",
        "storage.object-store.part": "more requests",
        "restart.delay": (SOON_NS, "a job that fails again and again restarts more often"),
        "restart.initial": (SOON_NS, "a job that fails again and again restarts more often"),
        "restart.multiplier": "a job that fails again and again restarts more often",
        "restart.max": (SOON_NS, "a job that fails again and again restarts more often"),
        "restart.within": "a job that fails again and again does not end",
        "restart.heartbeat-timeout": "a TaskManager that pauses for as long is taken for lost",
        "restart.heartbeat-interval": (SOON_NS, "more messages"),
        "restart.slot-check": "slots are looked for more often",
        "restart.stabilization": (SECOND, "the job may start with fewer slots"),
        "restart.cooldown": (SECOND, "more restarts while slots come"),
        "restart.rescale-stabilization": (SECOND, "more restarts while slots come"),
        "restart.rescale-delay": (SECOND, "a rescaled job processes more records again"),
    },
    "at least": {
        "checkpoint.timeout": (3600 * SECOND, "a checkpoint that hangs is noticed later"),
        "checkpoint.tolerable-failed": (TOLERABLE_FAILURES, "a job whose checkpoints fail goes on for longer"),
        "checkpoint.transfer-threads": (MORE_THREADS, "more requests to storage at a time"),
        "job.VERTEX.state.lsm.table": "larger files are merged",
        "job.VERTEX.state.lsm.base": "larger files are merged",
        "job.VERTEX.state.changelog.upload-threads": "more requests to storage at a time",
        "job.VERTEX.state.changelog.upload-timeout": "an upload that hangs is noticed later",
        "job.VERTEX.state.changelog.upload-attempts": "an upload that fails is noticed later",
        "storage.inline-threshold": "a larger _metadata",
        "storage.object-store.parallel-parts": "more requests at a time",
        "restart.attempts": (WITHOUT_END, "a job that fails again and again does not end"),
        "restart.rate": (100, "a job that fails again and again does not end"),
        "restart.resource-wait": "a job without slots fails later",
    },
    "instead": {
        "checkpoint.local-recovery": (True, "a second copy of state on the disk of each TaskManager"),
        "checkpoint.incremental": (True, "more files in storage; a restore reads more of them"),
        "checkpoint.interruptible-timers": (True, "records come between the timers of a watermark"),
        "job.VERTEX.state.changelog.storage": ("filesystem", "the log is written to checkpoint storage"),
        "restart.strategy": ("exponential-delay", "a job that fails again and again restarts more often"),
        "restart.failover": ("region", "regions restart alone"),
        "restart.heartbeat-failures": (2, "two heartbeats that fail in a row lose a TaskManager"),
        "restart.scheduler": ("default", "the job waits for all of its slots"),
    },
}
"""Kind of bound -> {option: (non-binding value, its cost), or the cost alone if the value is the default}."""
CONSTRAINTS = {
    option: Constraint(bound, DEFAULT, value) if isinstance(value, str) else Constraint(bound, *value)
    for bound, options in _VALUES.items()
    for option, value in options.items()
}
"""Option -> its non-binding values.  Other options that may bind are changed by levers and candidates (docs/adding.md)."""
_FAILURE_OPTIONS = ("checkpoint.timeout", "checkpoint.tolerable-failed")
"""Options that matter only if checkpoints fail."""
_RECOVERY_OPTION_PREFIXES = ("restart.", "checkpoint.local-recovery")
"""Prefixes of options that matter only for recovery."""


def relaxations(scenario: Scenario, breaks: Sequence[str], *, fails: bool) -> Iterator[Change]:
    """Yield the change to a non-binding value, for each Flink key that may bind.

    `breaks`: the exceeded limits.  `fails`: True if checkpoints fail.  Keys that concern neither are left out.
    """
    for option in option_values(scenario):
        path = ".".join(option.key.path)
        constraint = CONSTRAINTS.get(path)
        concerns = (
            fails
            if path in _FAILURE_OPTIONS
            else "recovery_ms" in breaks
            if path.startswith(_RECOVERY_OPTION_PREFIXES)
            else True
        )
        value = (
            constraint.relaxed(option) if constraint is not None and concerns and _applies(scenario, option) else None
        )
        if constraint is not None and value is not None:
            name, written = option.path.rpartition(".")[2], option.scenario_value(value)
            of_cluster = HEARTBEATS if path.startswith("restart.heartbeat") else None
            caution, short = (of_cluster.caution, of_cluster.short_caution) if of_cluster else ("", "")
            lever = Lever(
                name, tuple(PARTS), lambda _: iter(()), costs=constraint.costs, caution=caution, short_caution=short
            )
            section, is_debloating = option.path.rpartition(".")[0], path.startswith("cluster.network.debloat.")
            # the section is replaced as a whole, since `debloat: on` has no keys
            point = {section: {name: written}} if is_debloating else {option.path: written}
            if options_missing_in_release(scenario, point):
                continue
            yield Change(lever, f"{name} {str(written).lower()}", point)


def _applies(scenario: Scenario, option: OptionValue) -> bool:
    """Return False for options that have no effect in this scenario."""
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
    return needed.get(option.path, True)


# ---- Cautions before a setting is used: sinks that barriers must not overtake, edges that stay aligned, levers.

UNLIMITED_ATTEMPTS_S = 365 * 86_400.0
"""If the attempts of a restart strategy last longer than this, they count as unlimited."""
RAISE_ATTEMPTS_BELOW_S = 30 * 86_400.0
"""If they last no longer than this, more of them are part of the advice."""
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


def restart_attempts_cautions(
    scenario: Scenario, mtbf_s: float, failure: Failure, forgotten_s: float = UNLIMITED_ATTEMPTS_S
) -> list[Caution]:
    """Return a caution if the expected failures use up the attempts of the restart strategy, else [].

    After the loss of a TaskManager each deployment counts as an attempt until there are slots.
    """
    restart = scenario.restart
    counts = (
        [
            outage.deployments
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
        if last * mtbf_s > forgotten_s:
            return []
        times = " to ".join(dict.fromkeys(str(count) for count in (first, last)))
        short = f"attempts are never reset: failure {times} ends the job, in {ms_text(1e3 * mtbf_s * last)}"
        attempts += "attempts"
    elif (
        restart.strategy == "failure-rate"
        and max(counts) * (1 + restart.rate_interval_ns / 1e9 / mtbf_s) > restart.rate
    ):
        within = format_duration(restart.rate_interval_ns)
        short = f"more than {restart.rate} failures in {within}, which are usual here, end the job"
        attempts += "max-failures-per-interval"
    else:
        return []
    text = f"{capitalised(short)}; with {attempts}: {more} it goes on."
    return [Caution(short, text, RESTARTS.source)]


def refusals(scenario: Scenario) -> list[Caution]:
    """Return a caution on each sink that excludes unaligned barriers from the search, also if the current setting uses them."""
    cautions = []
    for vertex, kind in sinks_of(scenario).items():
        if kind is None or not kind.verdict:
            continue
        now = (
            " Today's setting is unaligned: change that first." if scenario.checkpoint.barriers.record.overtakes else ""
        )
        instead = f" Instead: {kind.instead}." if kind.instead else ""
        tried = f"Unaligned was not tried: '{vertex}' writes to {kind.title}, which {kind.verdict} under it."
        text = f"{tried} {_sentence(kind.why)}{instead}{now}"
        cautions.append(Caution(f"unaligned not tried: {kind.title} {kind.verdict}", text, kind.source))
    return cautions


AT_LEAST_ONCE_CAUTION = Caution(
    "at-least-once: after a failure state and committed output repeat records",
    "With at-least-once a failure counts records twice in state and commits them twice, whatever the sink is. Aligned barriers "
    "(execution.checkpointing.mode: EXACTLY_ONCE) do not; without them transactions only delay output.",
    "execution.checkpointing.mode",
)
INTERRUPTIBLE_TIMERS_CAUTION = Caution(
    "windows of SQL let barriers pass, the DataStream WindowOperator never",
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
        *_transaction_cautions(scenario),
        *_lever_cautions(scenario, changes),
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
    return [Caution(f"may bring {count}", text, ", ".join(issue.issue.source for issue in issues[:3]))]


def firings_longer_than_trials(advised: Scenario, seen_ns: int) -> list[Caution]:
    """Return a caution for each window that is longer than a trial (`seen_ns`), unless `rare_checkpoints` has the time that it fires."""
    cautions = []
    known = firings_ns(advised)
    for vertex in advised.job.vertices:
        window = vertex.window
        if window is None or window.hold_ns or vertex.name in known or window.size_ns <= seen_ns:
            continue
        size = format_duration(window.size_ns)
        text = (
            f"Windows of '{vertex.name}' last {size}, and trials {format_duration(seen_ns)} at most: they do not show how long a "
            "checkpoint waits for a window that fires."
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


def condition(scenario: Scenario, protocol: BarrierSetting) -> str:
    """Return the condition under which a barrier mode is safe, e.g. ``'sink' is not Iceberg's FlinkSink or Hudi``.

    Returns "" if barriers are aligned or all sinks are known.
    """
    unknown = [] if protocol.aligned else unknown_sinks(scenario)
    titles = _titles(list(SINKS.values()), "loses")
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
        text = "After a restore in-flight records come before new watermarks: operators that use the latest watermark see an older one."
        yield Caution("watermarks come later after a restore", text, WATERMARKS)


def _table_format_cautions(scenario: Scenario) -> Iterator[Caution]:
    for vertex, kind in table_sinks(scenario.job).items():
        if scenario.job.vertex(vertex).committer_of:
            continue  # its writer is a sink of the same kind
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
