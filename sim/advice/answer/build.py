"""From a race and its levers to everything that an advice says first: the screen, the difference, cautions, patches, what to watch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sim.advice.answer.conf_patch import PATCH, PATCH_BACK, patches
from sim.advice.answer.configuration import KeyChange, difference, patch
from sim.advice.answer.lost import JUDGED, other_failure
from sim.advice.answer.summary import no_setting, summary
from sim.advice.answer.watch import watch
from sim.advice.excess import excess
from sim.advice.levers.cautions import Caution, cautions, new_defects, refusals, unsafe_defects
from sim.advice.levers.situation import dominant, situation_of
from sim.advice.running.bounds import BudgetUsedError
from sim.advice.sensitivity import advise_if
from sim.advice.settings import PAUSE, TIMEOUT_NS
from sim.advice.texts import breaks_text, closest, condition_of, name_of, passes_text, reason_against, value_text
from sim.advice.trials import UNDISTURBED
from sim.analysis.number_texts import change_text
from sim.analysis.section import TextTable
from sim.evidence.known_issues.catalogue import issues_of
from sim.units import format_duration, parse_duration
from sim.whole_file import replace_text

if TYPE_CHECKING:
    from sim.advice.judgement import Setting
    from sim.advice.levers.lever import Assumption, Change
    from sim.advice.levers.search import Levers
    from sim.advice.race import Race
    from sim.advice.settings import Candidate
    from sim.advice.trials import Trial
    from sim.model.scenario import Scenario

ADVISED, ROLLBACK = "advised.yaml", "rollback.yaml"
ROOM = 2
"""The timeout of checkpoints is at least so many times the longest checkpoint seen."""


@dataclass(frozen=True, slots=True)
class AdviceAnswer:
    """The answer of an advice: a screenful, all texts and tables, JSON, and patches."""

    screen: str  # with the verdict above it fifteen lines of eighty characters
    parts: list[str | TextTable]  # the same in full
    data: dict[str, Any]  # as JSON
    files: dict[str, str] = field(default_factory=dict)  # name -> text: patches

    def keep(self, folder: Path) -> None:
        """Write the patches; those of an earlier advice go."""
        for name in (ADVISED, ROLLBACK, PATCH, PATCH_BACK):
            (folder / name).unlink(missing_ok=True)
        for name, text in self.files.items():
            replace_text(folder / name, text)


def answer(
    race: Race, levers: Levers, chosen: Setting | None, line_count: int, enough: Sequence[str], planned: dict[Trial, int]
) -> AdviceAnswer:
    """`line_count`: lines of the screen below the verdict.  `enough`: the smallest changes with which the nearest setting would fit.

    `planned` collects the trials that run.
    """
    refused = refusals(race.scenario)
    if chosen is None:
        near = dominant(situation_of(race, race.nearest.name)) if race.settings else ""
        lines = closest(race) if race.settings else []
        screen = no_setting(near, [line.removeprefix("Closest: ") for line in lines], enough, refused, line_count)
        return AdviceAnswer(
            screen,
            [*levers_left(race, levers, None), *_cautions(refused)],
            {"dominates": near, "enough": list(enough), "cautions": [asdict(caution) for caution in refused]},
        )
    changes, candidate = levers.changes(chosen.name), race.candidate_of(chosen.name)
    scenario, conf = advised_scenario(race, chosen), race.bench.conf
    found = difference(race.scenario, scenario, changes, conf)
    warnings = [
        *cautions(race.scenario, race.protocols.get(chosen.protocol, race.now), changes),
        *new_defects(race.scenario, scenario),
        *unsafe_defects(scenario),
    ]
    today = race.todays(race.settings)
    where = dominant(situation_of(race, today.name)) if today is not None else ""
    kinds, is_most = race.kinds_of(chosen.name), bool(race.unasked_updates([candidate]))
    seen = watch(
        chosen, race.limits, race.bench.backtest, race.period_ns(chosen) / 1e9, kinds, keeps_up=not race.unlimited, is_most=is_most
    )  # fmt: skip
    others = _others(candidate, changes)
    other = other_failure(race, chosen)
    screen = summary(
        chosen, race.replaced, race.limits, line_count=line_count, dominant=where, changes=changes, differences=found, cautions=warnings,
        refusals=refused, watch=seen, others=[f"{what}: {value}" for what, value in others.items()], other_failure=other,
        recovery=JUDGED[race.bench.failure], prices=race.bench.prices, is_most=is_most,
    )  # fmt: skip
    assumed = _assumptions(race, candidate, changes, planned)
    parts: list[str | TextTable] = [
        *([other.sentence()] if other is not None else []),
        *_difference(found, others),
        *levers_left(race, levers, chosen),
        *_cautions([*refused, *warnings]),
        *_without_overtaking(race, chosen),
        *_taken_for_granted(race, chosen, assumed),
    ]
    parts += _pulled(changes)
    warned = [f"{'Ask first' if own.is_question else 'Caution'}: {own.text}" for own in warnings]
    files = (
        {
            ADVISED: patch(found, back=False, others=others, warnings=warned, conf=conf),
            ROLLBACK: patch(found, back=True, others={}, conf=conf),
        }
        if found
        else {}
    )
    if found and conf is not None:
        files |= (own := patches(found, conf))
        parts += [] if own else [f"{conf.file} is not patched: it has keys in braces. Set the keys above by hand."]
    data = {
        "dominates": where,
        "failure": race.bench.failure,
        "other_failure": None if other is None else other.plain(),
        "only_if": condition_of(race, chosen),
        "taken_for_granted": [
            {"what": own.what, "assumed": own.assumed, "value": value, "setting": asdict(setting)} for own, value, setting in assumed
        ],
        "levers": [{"name": change.name, "costs": change.lever.costs, "source": change.lever.source} for change in changes],
        "difference": [asdict(item) for item in found],
        "beside_flinks_keys": others,
        "cautions": [asdict(caution) for caution in (*refused, *warnings)],
        "known_issues": [own.plain for own in issues_of([scenario])],
        "watch": seen.plain(),
        "patches": files,
    }
    return AdviceAnswer(screen, parts, data, files)


def advised_scenario(race: Race, chosen: Setting) -> Scenario:
    """The job as advised, with today's timeout and min-pause where these leave room."""
    trial = next(trial for trial in race.bench.trials(race.candidate_of(chosen.name)) if trial.kind == UNDISTURBED)
    today, longest_ns = race.scenario.checkpoint, chosen.longest_ms * ROOM * 1e6
    kept = {}
    if today.timeout_ns < TIMEOUT_NS and longest_ns <= today.timeout_ns:
        kept["checkpoint.timeout"] = format_duration(today.timeout_ns)
    if PAUSE in race.binding_keys(chosen.name) and today.min_pause_ns + longest_ns <= parse_duration(chosen.interval):
        kept[PAUSE] = format_duration(today.min_pause_ns)
    return race.bench.load(trial.point | kept) if kept else race.bench.scenario(trial)


def levers_left(race: Race, levers: Levers, chosen: Setting | None) -> list[str]:
    """A table of the levers that were tried and are not advised, each with its setting nearest to the limits."""
    nearest: dict[str, Setting] = {}
    pulled = {change.name for change in (() if chosen is None else levers.changes(chosen.name))}
    for setting in race.settings:
        for change in levers.changes(setting.name)[-1:]:
            best = nearest.get(change.name)
            if change.name not in pulled and (best is None or excess(setting, race.limits) < excess(best, race.limits)):
                nearest[change.name] = setting
    lines = [f"{name_of(setting.name)}: {_left_because(race, setting, chosen)}" for setting in nearest.values()]
    return [f"Levers that were tried and are not advised: {'; '.join(lines)}."] if lines else []


def _left_because(race: Race, setting: Setting, chosen: Setting | None) -> str:
    if not setting.completed:
        return "no checkpoint completes"
    return breaks_text(setting, race.limits) if setting.breaks or chosen is None else reason_against(setting, chosen)


def _others(candidate: Candidate, changes: Sequence[Change]) -> dict[str, str]:
    """The changes of an advice that no key of Flink's configuration can express."""
    found = {}
    for change in changes:
        if not change.lever.is_configuration:
            keys = {key: value for key, value in change.point.items() if key in candidate.point}
            found[change.lever.name] = ", ".join(f"{key} = {value}" for key, value in keys.items()) or change.name
    return found


def _difference(found: Sequence[KeyChange], others: dict[str, str]) -> list[str]:
    """The difference of the configuration as a block of code; nothing if nothing changes."""
    lines = [line for item in found for line in item.lines()] + [f"+ {what}: {value}" for what, value in others.items()]
    return ["\n".join(["# against today; what is not set has Flink's default", *lines])] if lines else []


def _cautions(warnings: Sequence[Caution]) -> list[str | TextTable]:
    return [f"{'Ask first' if caution.is_question else 'Caution'}: {_with_source(caution.text, caution.source)}" for caution in warnings]


def _with_source(text: str, source: str) -> str:
    is_said = all(part.strip() in text for part in source.replace(";", ",").split(","))
    return text if is_said else f"{text} Source: {source}."


def _without_overtaking(race: Race, chosen: Setting) -> list[str]:
    """The best setting that keeps barriers aligned, where unaligned ones are advised: a sink may forbid those."""
    own = race.protocols.get(chosen.protocol)
    if own is None or own.aligned:
        return []
    aligned = [setting for setting in race.settings if setting.completed and _is_aligned(race, setting)]
    fitting = sorted((setting for setting in aligned if not setting.breaks), key=lambda setting: setting.lost)
    if fitting:
        least = fitting[0]
        return [
            f"If the sink forbids unaligned checkpoints: {least.protocol}, every {least.interval} keeps the limits as well, in short runs."
        ]
    return [
        "If the sink forbids unaligned checkpoints: no aligned setting that was tried keeps the limits. Say the sink to try further levers."
    ]


def _is_aligned(race: Race, setting: Setting) -> bool:
    return setting.protocol in race.protocols and race.protocols[setting.protocol].aligned


def _assumptions(
    race: Race, candidate: Candidate, changes: Sequence[Change], planned: dict[Trial, int]
) -> list[tuple[Assumption, str, Setting]]:
    """The advised setting at the bounds of the assumptions of its levers."""
    found = []
    for change in changes:
        if change.assumption is None:
            continue
        own = change.assumption
        for value, point in ((own.least, own.least_point), (own.most, own.most_point)):
            other = type(candidate)(candidate.interval, candidate.protocol, candidate.point | point)
            try:
                there = advise_if(race, [other], {}, planned)
            except BudgetUsedError:
                race.noted(f"{own.what}: {value}", covered=False)
                continue
            setting = None if there is None else there[0]
            if setting is not None:
                found.append((own, value, setting))
    return found


def _taken_for_granted(race: Race, chosen: Setting, found: Sequence[tuple[Assumption, str, Setting]]) -> list[str | TextTable]:
    bare = chosen.per_second / (1 - chosen.loss)
    rows = [[own.what, own.assumed, value, *_kept_at(race, setting, bare)] for own, value, setting in found]
    header = ["UNKNOWN", "assumed", "tried", "throughput", "checkpoints p99", "recovery", "limits"]
    return [TextTable("What a lever takes for granted: each bound in a short run", header, rows)] if rows else []


def _kept_at(race: Race, setting: Setting, bare: float) -> list[str]:
    """`bare`: records per second of today's job without checkpoints."""
    kept = passes_text(setting, race.limits) if setting.breaks or not setting.completed else "kept"
    numbers = [value_text("checkpoint_ms", setting.checkpoint_ms), value_text("recovery_ms", setting.recovery_ms)]
    return [change_text(setting.per_second / bare - 1), *numbers, kept]


def _pulled(changes: Sequence[Change]) -> list[str | TextTable]:
    return [_with_source(f"Lever: {change.name}. It costs: {change.lever.costs}.", change.lever.source) for change in changes]
