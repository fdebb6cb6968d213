"""The answer of `advise`: an overview that fits a screen, texts and tables, JSON, and patches."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any, NamedTuple

from sim.advice.candidates import excess
from sim.advice.configuration import (
    PATCH,
    PATCH_BACK,
    KeyChange,
    diff_flink_keys,
    differences_to_current,
    patch,
    patches,
)
from sim.advice.constraints import Caution, cautions, new_defects, refusals, unsafe_defects, window_phases
from sim.advice.judgement import room
from sim.advice.settings import PAUSE, TIMEOUT_NS
from sim.advice.situation import dominant, situation_of
from sim.advice.texts import (
    breaks_text,
    changed_by_failures,
    close_value,
    closest,
    condition_of,
    name_of,
    quantity_of,
    reason_against,
    share,
    value_text,
)
from sim.advice.uncertainty import agreements
from sim.advice.warnings import JUDGED, other_failure, watch
from sim.jobs.evidence.known_issues import issues_of
from sim.model.files import replace_text
from sim.model.quantities import S3_STANDARD, Prices, cost_text, smallest_sample
from sim.model.text import one_line
from sim.model.units import format_duration, parse_duration
from sim.results.formats import TextTable, bytes_text, change_text, count_text
from sim.results.stored import table_sinks

if TYPE_CHECKING:
    from sim.advice.candidates import CandidateSearch
    from sim.advice.judgement import Choice, Limits, Setting
    from sim.advice.requirements import NeededChange
    from sim.advice.settings import Candidate, Change
    from sim.advice.warnings import OtherFailure, Watch
    from sim.model.scenario import Scenario


# ---- The numbers behind the sentences and tables, as data.


def numbers(race: CandidateSearch, choice: Choice, needed: Sequence[NeededChange]) -> dict[str, Any]:
    """Return the numbers for JSON.  `needed`: changes that would be enough if no setting keeps the limits."""
    return {
        "times": [_times(race, setting) for setting in race.settings],
        "against_today": [row.plain() for row in differences_to_current(race)],
        "alternatives": [{"setting": name, "share": share} for name, share in choice.others],
        "requirements": [asdict(own) for own in needed],
        "mtbf_changes_advice_s": [mtbf_s for mtbf_s, _ in changed_by_failures(race)],
        "not_run": [asdict(left) for left in race.left_out if left.sentence(race.trials)],
        "worlds": dict(race.bench.worlds),
        "history": _history(race),
    }


def _times(race: CandidateSearch, setting: Setting) -> dict[str, Any]:
    """Return the parts of a setting's slowest checkpoints and of its recovery [ms], and the bytes that it uploads."""
    situation = situation_of(race, setting.name)
    return {
        "setting": setting.name,
        "parts_ms": dict(situation.milliseconds),
        "recovery_ms": dict(situation.recovery),
        "uploaded_bytes": situation.uploaded_bytes,
    }


def _history(race: CandidateSearch) -> dict[str, Any] | None:
    """Return facts on the history of an imported job, or None without history."""
    backtest = race.bench.backtest
    if backtest is None:
        return None
    return {
        "checkpoints": backtest.checkpoints,
        "longest_ms": list(backtest.longest_ms),
        "tail": backtest.tail,
        "agreements": [{"what": text, "share": share} for share, text in agreements(backtest, race.limits)],
    }


# ---- The overview: values and limits, costs, changed Flink keys, cautions, and what to watch. With the verdict above, it has at
# most 15 lines of 80 characters; full tables and sentences follow below it.

WIDTH, LINES = 80, 15
LABEL = 8
MAX_TEXT_CHARS = 400
"""Characters after which a text is cut before it is fitted into a line."""
CHANGE_LINES = 4
"""Minimum lines reserved for changed keys."""
RANK_ALWAYS_SHOWN = 9
"""Rank of texts that are always shown."""
QUESTIONS = 2
CAUTIONS = 2


class Text(NamedTuple):
    """A line of the overview.  If lines do not fit, those with the lowest `rank` are dropped; the full texts are below."""

    label: str
    text: str
    rank: int


def lines_below(verdict: str) -> int:
    """Return the number of lines for the overview below a verdict and an empty line."""
    return LINES - 1 - len(wrap(verdict, WIDTH))


def summary(
    chosen: Setting,
    before: Setting | None,
    limits: Limits,
    *,
    line_count: int,
    dominant: str,
    changes: Sequence[Change],
    differences: Sequence[KeyChange],
    cautions: Sequence[Caution],
    refusals: Sequence[Caution],
    watch: Watch,
    others: Sequence[str] = (),
    other_failure: OtherFailure | None = None,
    recovery: str = "recovery",
    prices: Prices = S3_STANDARD,
    is_most: bool = False,
    assumed: str = "",
    commits: str = "",
    uncounted: str = "",
) -> str:
    """Return the overview for an advised setting.

    `before`: the current setting, if another one is advised.  `dominant`: where the time of the current one goes.
    `others`: changes that have no Flink key.  `recovery`: label of the recovery time.  `other_failure`: recovery from the
    failure that is not judged.  `is_most`: the rate at which records rewrite state is unknown, and the maximum is assumed.
    `assumed`: values that are not known.  `commits`: commits per hour.  `uncounted`: what the storage cost leaves out.
    Texts may be "".
    """
    questions = [caution.short for caution in cautions if caution.is_question]
    known = [caution for caution in (*refusals, *cautions) if not caution.is_question]
    change = [line for difference in differences for line in difference.lines()] + [f"+ {other}" for other in others]
    above = [
        *_keeps(chosen, before, limits, other_failure, recovery),
        *([Text("today", dominant, 4)] if dominant else []),
        *_costs(chosen, before, changes, prices, is_most=is_most, commits=commits, uncounted=uncounted),
    ]
    below = [
        *([Text("ask", assumed, RANK_ALWAYS_SHOWN)] if assumed else []),
        *(Text("ask", question, 4 - place) for place, question in enumerate(questions[:QUESTIONS])),
        *(
            Text("caution", own.short, 1 if place or own.is_of_catalogue else 6)
            for place, own in enumerate(known[:CAUTIONS])
        ),
        Text("watch", watch.watched(), 7),
        Text("back", watch.taken_back(), RANK_ALWAYS_SHOWN),
    ]
    fitting = _fitting([*above, *below], line_count - min(len(change), CHANGE_LINES))
    middle = _change(change, line_count - len(fitting))
    return "\n".join(
        _labelled([text for text in above if text in fitting], middle, [text for text in below if text in fitting])
    )


def _fitting(texts: Sequence[Text], line_count: int) -> list[Text]:
    """Return the texts that fit, in order.  Of those with the lowest rank, the last is dropped first."""
    left = list(texts)
    while (
        len(left) > line_count and (lowest := min(reversed(left), key=lambda text: text.rank)).rank < RANK_ALWAYS_SHOWN
    ):
        left.remove(lowest)
    return left


def no_setting(
    dominant: str,
    closest: Sequence[str],
    enough: Sequence[str],
    refusals: Sequence[Caution],
    line_count: int,
    assumed: str = "",
) -> str:
    """Return the overview if no setting keeps the limits: the nearest setting, its dominant part, and changes that would be enough."""
    cautions = [caution.short for caution in refusals]
    lines = _labelled([Text("ask", assumed, RANK_ALWAYS_SHOWN)] if assumed else [])
    for label, texts in (
        ("closest", closest),
        ("time", [dominant] if dominant else []),
        ("fits", enough),
        ("caution", cautions),
    ):
        lines += _with_label(label, [line for text in texts for line in wrap(text, WIDTH - LABEL)])
    return "\n".join(lines[:line_count])


def _keeps(
    chosen: Setting, before: Setting | None, limits: Limits, other: OtherFailure | None, recovery: str
) -> Iterator[Text]:
    """Return ``p99 of checkpoints 21 s -> 540 ms (limit 2 s: 270 % room)``, or ``longest of 37 checkpoints 21 s -> ...``."""
    breaks = other is not None and other.breaks
    for limit in limits.of_means():
        value, bound = float(getattr(chosen, limit.column)), limit.at_most
        if math.isnan(value):
            continue
        own = close_value(limit.column, value, bound)
        was = "" if before is None else f"{close_value(limit.column, getattr(before, limit.column), bound)} -> "
        is_recovery = limit.column == "recovery_ms"
        has_room = 0 < value <= bound and not (breaks and is_recovery)
        spare = f": {share(room(value, bound))} room" if has_room else ""
        what = recovery if is_recovery else quantity_of(limit.column, chosen).removeprefix("the ")
        yield Text("keeps", f"{what} {was}{own} (limit {value_text(limit.column, bound)}{spare})", RANK_ALWAYS_SHOWN)
        if other is not None and is_recovery:
            yield Text("keeps", other.short(), RANK_ALWAYS_SHOWN if breaks else 2)
    if limits.recovery_ms is None and math.isfinite(chosen.recovery_ms):
        was = "" if before is None else f"{value_text('recovery_ms', before.recovery_ms)} -> "
        yield Text("keeps", f"{recovery} {was}{value_text('recovery_ms', chosen.recovery_ms)} (no limit given)", 8)


def _costs(
    chosen: Setting,
    before: Setting | None,
    changes: Sequence[Change],
    prices: Prices,
    *,
    is_most: bool,
    commits: str,
    uncounted: str,
) -> Iterator[Text]:
    """`is_most`: how often records rewrite state is unknown, and the most is assumed."""
    by = "by checkpoints " if commits else ""  # sinks write files too
    written = f"{'up to ' if is_most else ''}{bytes_text(chosen.written_per_hour)} written {by}per hour"
    than = f" (today {bytes_text(before.written_per_hour)})" if before else ""
    yield Text("costs", f"throughput {change_text(-chosen.loss)}; {written}{than}", 8)
    fewest = min(setting.completed for setting in (chosen, before) if setting is not None)
    if fewest < smallest_sample(0.9):
        yield Text(
            "costs",
            f"bytes are those of {count_text(fewest)} checkpoint{'s' * (fewest != 1)}: rare large ones may be missing",
            1,
        )
    if commits:
        yield Text("costs", commits, 7)
    if math.isfinite(chosen.storage_cost):
        than = f" (today {cost_text(before.storage_cost)})" if before else ""
        yield Text("costs", f"object store {prices.text(chosen.storage_cost)} a month{than}{uncounted}", 7)
    if is_most:
        yield Text("ask", "UNKNOWN: how often do records rewrite state (update)? Assumed: all do", RANK_ALWAYS_SHOWN)
    for change in changes:
        if change.assumption is not None:
            yield Text("costs", f"UNKNOWN: {change.assumption.what}; {change.assumption.assumed} is assumed", 5)


def _commits(race: CandidateSearch, chosen: Setting) -> str:
    """Return the commits per hour caused by checkpoints, or "" if no sink commits."""
    vertices = race.scenario.job.vertices
    behind = {vertex.committer_of for vertex in vertices}  # its committer commits what it writes
    committers = sum(
        vertex.parallelism
        for vertex in vertices
        if vertex.committer_of or (vertex.commit is not None and vertex.name not in behind)
    )

    def per_hour(setting: Setting) -> str:
        return count_text(committers * 3600e9 / race.period_ns(setting))

    if not committers:
        return ""
    than = f" (today {per_hour(race.replaced)})" if race.replaced else ""
    return f"up to {per_hour(chosen)} commits per hour{than}, which no limit is about"


def _change(lines: Sequence[str], most: int) -> list[Text]:
    """Return the lines of changed keys that fit in the overview."""
    if len(lines) > max(most, 1):
        kept = max(most, 2) - 1
        lines = [*lines[:kept], f"  ... {len(lines) - kept} more lines: see below, and advised.yaml"]
    return [Text("change", line, RANK_ALWAYS_SHOWN) for line in lines]


def _cut(line: str) -> str:
    """Cut a long line at its end, between words."""
    if len(line) <= WIDTH - LABEL:
        return line
    kept = line[: WIDTH - LABEL - 3]
    beginning, space, _ = kept.rpartition(" ")
    return f"{beginning if space and len(beginning) > (WIDTH - LABEL) // 2 else kept.rstrip()}..."


def _labelled(*parts: Sequence[Text]) -> list[str]:
    """Return a line per text; a label is printed only for its first text."""
    texts = [text for part in parts for text in part]
    labels = dict.fromkeys(text.label for text in texts)
    return [
        line
        for label in labels
        for line in _with_label(
            label, [_cut(one_line(own.text, MAX_TEXT_CHARS)) for own in texts if own.label == label]
        )
    ]


def _with_label(label: str, lines: Sequence[str]) -> list[str]:
    return [f"{label if not i else '':{LABEL}}{line}" for i, line in enumerate(lines)]


# ---- Building the answer from the results of a search.

ADVISED, ROLLBACK = "advised.yaml", "rollback.yaml"
TIMEOUT_PER_LONGEST_CHECKPOINT = 2
"""Minimum ratio of the checkpoint timeout to the longest simulated checkpoint."""


@dataclass(frozen=True, slots=True)
class AdviceAnswer:
    """The answer of an advice."""

    screen: str  # overview; with the verdict, at most 15 lines of 80 characters
    parts: list[str | TextTable]  # full texts and tables
    data: dict[str, Any]  # for JSON
    files: dict[str, str] = field(default_factory=dict)  # patches: file name -> text

    def keep(self, folder: Path) -> None:
        """Write the patches, and delete those of an earlier advice."""
        for name in (ADVISED, ROLLBACK, PATCH, PATCH_BACK):
            (folder / name).unlink(missing_ok=True)
        for name, text in self.files.items():
            replace_text(folder / name, text)


def answer(
    race: CandidateSearch,
    chosen: Setting | None,
    line_count: int,
    enough: Sequence[str],
    assumed: str,
) -> AdviceAnswer:
    """Return the answer for the chosen setting, or for None.

    `line_count`: lines of the overview.  `enough`: smallest changes with which the nearest setting would keep the limits.
    `assumed`: values that are not known, or "".
    """
    refused = refusals(race.scenario)
    if chosen is None:
        near = dominant(situation_of(race, race.nearest.name)) if race.settings else ""
        lines = closest(race) if race.settings else []
        screen = no_setting(
            near, [line.removeprefix("Closest: ") for line in lines], enough, refused, line_count, assumed
        )
        return AdviceAnswer(
            screen,
            [*levers_left(race, None), *_cautions(refused)],
            {"dominates": near, "enough": list(enough), "cautions": [asdict(caution) for caution in refused]},
        )
    candidate = race.candidate_of(chosen.name)
    changes = candidate.changes
    scenario, conf = advised_scenario(race, chosen), race.bench.conf
    found = diff_flink_keys(race.scenario, scenario, changes, conf)
    warnings = [
        *cautions(race.scenario, candidate.barriers, changes),
        *window_phases(scenario),
        *new_defects(race.scenario, scenario),
        *unsafe_defects(scenario),
    ]
    today = race.current
    where = dominant(situation_of(race, today.name)) if today is not None else ""
    kinds, is_most = race.kinds_of(chosen.name), bool(race.unasked_updates([candidate]))
    seen = watch(
        chosen,
        race.limits,
        race.bench.backtest,
        race.period_ns(chosen) / 1e9,
        kinds,
        keeps_up=not race.unlimited,
        is_most=is_most,
    )
    others = _others(candidate, changes)
    other = other_failure(race, chosen)
    screen = summary(
        chosen,
        race.replaced,
        race.limits,
        line_count=line_count,
        dominant=where,
        changes=changes,
        differences=found,
        cautions=warnings,
        refusals=refused,
        watch=seen,
        others=[f"{what}: {value}" for what, value in others.items()],
        other_failure=other,
        recovery=JUDGED[race.bench.failure],
        prices=race.bench.prices,
        is_most=is_most,
        assumed=assumed,
        commits=_commits(race, chosen),
        uncounted=", without the table's metadata" if table_sinks(race.scenario.job) else "",
    )
    parts: list[str | TextTable] = [
        *([other.sentence()] if other is not None else []),
        *_difference(found, others),
        *levers_left(race, chosen),
        *_cautions([*refused, *warnings]),
        *_without_overtaking(race, chosen),
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
        "taken_for_granted": [asdict(change.assumption) for change in changes if change.assumption is not None],
        "levers": [
            {"name": change.name, "costs": change.lever.costs, "source": change.lever.source} for change in changes
        ],
        "difference": [asdict(item) for item in found],
        "beside_flinks_keys": others,
        "cautions": [asdict(caution) for caution in (*refused, *warnings)],
        "known_issues": [own.plain for own in issues_of([scenario])],
        "watch": seen.plain(),
        "patches": files,
    }
    return AdviceAnswer(screen, parts, data, files)


def advised_scenario(race: CandidateSearch, chosen: Setting) -> Scenario:
    """Return the job with the advised setting, but with the current timeout and min-pause if these leave enough room."""
    trial = next(race.bench.trials(race.candidate_of(chosen.name)))
    today, longest_ns = race.scenario.checkpoint, chosen.longest_ms * TIMEOUT_PER_LONGEST_CHECKPOINT * 1e6
    kept = {}
    if today.timeout_ns < TIMEOUT_NS and longest_ns <= today.timeout_ns:
        kept["checkpoint.timeout"] = format_duration(today.timeout_ns)
    if PAUSE in race.candidate_of(chosen.name).binding_keys and today.min_pause_ns + longest_ns <= parse_duration(
        chosen.interval
    ):
        kept[PAUSE] = format_duration(today.min_pause_ns)
    return race.bench.load(trial.point | kept) if kept else race.bench.scenario(trial)


def levers_left(race: CandidateSearch, chosen: Setting | None) -> list[str]:
    """Return a table of levers that were tried and are not advised, each with its setting nearest to the limits."""
    nearest: dict[str, Setting] = {}
    advised = {change.name for change in (() if chosen is None else race.candidate_of(chosen.name).changes)}
    for setting in race.settings:
        for change in race.candidate_of(setting.name).changes[-1:]:
            best = nearest.get(change.name)
            if change.name not in advised and (
                best is None or excess(setting, race.limits) < excess(best, race.limits)
            ):
                nearest[change.name] = setting
    lines = [f"{name_of(setting.name)}: {_left_because(race, setting, chosen)}" for setting in nearest.values()]
    relaxed = f" {len(race.relaxed)} keys relaxed: {', '.join(race.relaxed)}." if race.relaxed and not chosen else ""
    return [f"Levers that were tried and are not advised: {'; '.join(lines)}.{relaxed}"] if lines else []


def _left_because(race: CandidateSearch, setting: Setting, chosen: Setting | None) -> str:
    if not setting.completed:
        return "no checkpoint completes"
    return breaks_text(setting, race.limits) if setting.breaks or chosen is None else reason_against(setting, chosen)


def _others(candidate: Candidate, changes: Sequence[Change]) -> dict[str, str]:
    """Return {description: value} of advised changes that have no Flink key."""
    found = {}
    for change in changes:
        if not change.lever.is_configuration:
            keys = {key: value for key, value in change.point.items() if key in candidate.point}
            found[change.lever.name] = ", ".join(f"{key} = {value}" for key, value in keys.items()) or change.name
    return found


def _difference(found: Sequence[KeyChange], others: dict[str, str]) -> list[str]:
    """Return the changed keys as a block of code, or nothing if nothing changes."""
    lines = [line for item in found for line in item.lines()] + [f"+ {what}: {value}" for what, value in others.items()]
    return ["\n".join(["# against today; what is not set has Flink's default", *lines])] if lines else []


def _cautions(warnings: Sequence[Caution]) -> list[str | TextTable]:
    return [
        f"{'Ask first' if caution.is_question else 'Caution'}: {_with_source(caution.text, caution.source)}"
        for caution in warnings
    ]


def _with_source(text: str, source: str) -> str:
    is_said = all(part.strip() in text for part in source.replace(";", ",").split(","))
    return text if is_said else f"{text} Source: {source}."


def _without_overtaking(race: CandidateSearch, chosen: Setting) -> list[str]:
    """Return a sentence on the best aligned setting if unaligned barriers are advised, because a sink may forbid these."""
    if race.candidate_of(chosen.name).barriers.aligned:
        return []
    fitting = [
        setting
        for setting in race.settings
        if setting.keeps_limits and race.candidate_of(setting.name).barriers.aligned
    ]
    if fitting:
        least = min(fitting, key=lambda setting: setting.lost)
        return [
            f"If the sink forbids unaligned checkpoints: {least.protocol}, every {least.interval} keeps the limits as well, in short runs."
        ]
    return [
        "If the sink forbids unaligned checkpoints: no aligned setting that was tried keeps the limits. Say the sink to try further levers."
    ]


def _pulled(changes: Sequence[Change]) -> Iterator[str]:
    for change in changes:
        yield _with_source(f"Lever: {change.name}. It costs: {change.lever.costs}.", change.lever.source)
        if (own := change.assumption) is not None:
            yield (
                f"UNKNOWN: {own.what}. Assumed: {own.assumed}; {own.least} to {own.most} are possible "
                f"({own.source}). Throughput and recovery with {change.name} rest on it."
            )
