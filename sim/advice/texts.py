"""The sentences and tables in which ``advise`` describes the result of a search."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from sim.advice.candidates import LONG_RUNS, CandidateSearch
from sim.advice.cautions import (
    Caution,
    restart_attempts_caution,
    unaligned_precondition,
    windows_longer_than_trials,
)
from sim.advice.configuration import P99_LABEL, differences
from sim.advice.file_runs import advised_point, file_trial, unjudged_event
from sim.advice.judgement import (
    Choice,
    FileRun,
    Limits,
    Setting,
    falls_short,
    near_ties,
    rows_of,
)
from sim.advice.levers import PATIENT
from sim.advice.settings import PAUSE, TIMEOUT, SettingName
from sim.advice.situation import hot_subtask, situation_of
from sim.advice.trials import LONG, UNDISTURBED
from sim.advice.uncertainty import MIN_CHECKPOINTS_FOR_P99, doubts
from sim.model.job import Job
from sim.model.scenario import Scenario
from sim.model.text import capitalised, listed
from sim.model.units import parse_duration
from sim.results.estimates import renewal
from sim.results.formats import TextTable, apart_text, bytes_text, change_text, ms_text, per_second_text
from sim.results.stored import unlimited_text

LIMITED = {
    "checkpoint_ms": "checkpoints",
    "loss": "throughput loss",
    "visible_ms": "output visible",
    "recovery_ms": "recovery",
}
_FILE_RUN_CLAUSES = {
    "checkpoint_ms": "the longest checkpoint takes",
    "loss": "throughput loss is",
    "visible_ms": "output is visible after",
    "recovery_ms": "recovery takes",
}
MAX_NAMED_SETTINGS = 4
MIN_RUNS_FOR_RESAMPLING = 3
"""With this number of runs or fewer, no confidence is printed: the variance of the runs is not known well enough."""
_DOCS = "docs/your-own-job.md"
MIN_LISTED_SHARE = 0.005
"""Minimum share of draws for an alternative to be listed."""


def verdict(search: CandidateSearch, choice: Choice, unknown_count: int = 0) -> list[str]:
    """Return the sentences of the verdict: first the advised setting, then reasons and confidence.

    `unknown_count`: number of values that are assumed because the user does not know them.
    """
    chosen = search.chosen
    clauses = [_advice(search, chosen)]
    if chosen is not None:
        clauses.append(unlimited_text(search.scenario.unlimited_bytes))
    if unknown_count:
        clauses.append(f"it depends on {unknown_count} {'value' if unknown_count == 1 else 'values'} marked UNKNOWN")
    first = [f"{'; '.join(filter(None, clauses))}.", overload_sentence(search)]
    if search.is_cut:
        first.append("The time limit ended the search: run the same command to resume it.")
    sentences = [" ".join(filter(None, first)), *excluded_sentences(search), *interval_limit_sentences(search)]
    return (
        sentences if chosen is None else [*sentences, _confidence(search, choice), *_judging_sentences(search, chosen)]
    )


def _advice(search: CandidateSearch, chosen: Setting | None) -> str:
    """Return what to do and why, without the full stop at the end."""
    limits = search.limits
    bounds = limits_text(limits)
    if chosen is None:
        return f"No setting tried {'so far ' if search.is_cut else ''}meets the limits ({bounds})"
    extra_keys = advised_point(search, chosen).keys() - search.candidate_of(chosen.name).point.keys()
    restart_changes = [text for key, (text, _) in PATIENT.items() if f"restart.{key}" in extra_keys]
    is_current = chosen.name == search.current_name and not restart_changes
    keys = _with_keys(search, chosen)
    name = name_of(chosen.name) + keys
    name += "".join(f", {'and' if keys else 'with'} {change}" for change in restart_changes)
    condition = condition_of(search, chosen)
    prefix = f"If {condition}, " if condition else ""
    meets = f"It meets the limits ({bounds})" if bounds else "No limits were given"
    if reason := _reason_to_monitor(search, chosen, meets):
        action = f"Keep the current setting, {name}" if is_current else capitalised(f"{prefix}try {name}")
        return f"{action}, and monitor it. {reason}"
    if not is_current:
        return f"{capitalised(f'{prefix}use {name}')}. {meets}"
    is_least = "; no other setting tried loses significantly less time" if math.isfinite(chosen.recovery_ms) else ""
    return f"Keep the current setting, {name_of(chosen.name)}. {meets}{is_least}"


def _reason_to_monitor(search: CandidateSearch, chosen: Setting, meets: str) -> str:
    """Return why the advice is not certain enough to be followed without monitoring, or "" if it is.

    `meets`: the sentence on the limits that the setting meets.
    """
    if chosen.tight:
        return f"The margin is small: {room_text(search, chosen)}"
    if not search.settled:
        return f"{meets}, but there are too few runs to rule out a better setting"
    if not search.confirmed:
        return f"{meets}, but it ran only {'a few times' if chosen.ran_long else 'for a short time'}"
    cautions = doubtful_cautions(search, chosen)
    if search.limits.checkpoint_ms is not None or search.bench.varying:
        cautions += firing_cautions(search, chosen)
    if not cautions:
        return ""
    return f"{meets}{' in trials' if search.limits.bounds else ''}, but {cautions[0].short}"


def _with_keys(search: CandidateSearch, setting: Setting) -> str:
    """Return e.g. ``, with min-pause 2 s`` for keys that must change for the setting to take effect, or ""."""
    candidate = search.candidate_of(setting.name)
    changed = candidate.binding_keys | ({TIMEOUT: candidate.point[TIMEOUT]} if candidate.has_longer_timeout else {})
    own = search.own_keys(setting) if changed else {}
    keys = [f"{key.removeprefix('checkpoint.')} {value}" for key, value in changed.items() if key not in own]
    unnamed = [key for key in keys if key not in setting.protocol.split(", ")]
    return f", with {listed(unnamed)}" if unnamed else ""


def excluded_sentences(search: CandidateSearch) -> list[str]:
    """Return sentences on settings that cannot be advised: they lose output, or need a change that no Flink option makes."""
    sentences = []
    today = search.current_name
    if search.losing:
        tried = [setting for setting in search.settings if setting.name in search.losing and setting.name != today]
        names = ["the current setting"] if search.loses_today else []
        names += [name_of(setting.name) for setting in tried[:MAX_NAMED_SETTINGS]]
        if len(tried) > MAX_NAMED_SETTINGS:
            names.append(f"{len(tried) - MAX_NAMED_SETTINGS} others")
        sentences.append(
            "Output is lost, because transactions stay open longer than commit.transaction-timeout, with "
            f"{'; '.join(names)}."
        )
    if unseen := [
        setting for setting in search.settings if not setting.breaks and search.has_unseen_tail(setting.name)
    ]:
        rare = max(search.longer_ms, key=lambda name: search.longer_ms[name])
        sentences.append(
            f"With {name_of(rare)}, the longest of {search.long_checkpoints[rare]} checkpoints "
            f"({ms_text(search.longer_ms[rare])}) exceeds the limit. {len(unseen)} settings that met it in shorter runs, e.g. "
            f"{name_of(unseen[0].name)}, were not run long enough and are not advised."
        )
    with_changes = [
        setting
        for setting in search.settings
        if search.needs_async_operate(setting.name) and setting.name not in search.losing
    ]
    if search.chosen is None and (best := search.choose(with_changes)) is not None:
        sentences.append(
            "No Flink option meets the limits, but a change of Flink's operators (FLINK-37375) would: "
            f"{name_of(best.name)}."
        )
    return sentences


def interval_limit_sentences(search: CandidateSearch) -> list[str]:
    """Return sentences on why checkpoints start less often than the interval says: min-pause or their duration."""
    options, today = search.scenario.checkpoint, search.current
    pause = ms_text(options.min_pause_ns / 1e6)
    sentences = []
    if any(PAUSE in search.candidate_of(setting.name).binding_keys for setting in search.settings):
        sentences.append(
            f"The current min-pause of {pause} prevents more frequent checkpoints: settings with shorter intervals were tried "
            "with a shorter min-pause."
        )
    if today is not None and today.completed and not search.has_named_interval(today):
        period, p50 = ms_text(search.period_ns(today) / 1e6), ms_text(today.checkpoint_p50_ms)
        number = "one at a time" if options.max_concurrent == 1 else f"{options.max_concurrent} at a time"
        after = f", with a min-pause of {pause}" if options.min_pause_ns else ""
        sentences.append(
            f"Checkpoints currently start every {period} instead of every {today.interval}: each takes {p50}, {number}{after}."
        )
    return sentences


def overload_sentence(search: CandidateSearch) -> str:
    """Return a sentence if the job falls behind with the advised setting, with today's, or with all; else "".

    A fully busy subtask is a sign of this, too, because sources may emit everything on time during a trial, while buffers
    are still filling.
    """
    means, behind = search.steady, search.behind
    names = [
        setting.name
        for setting in (search.chosen, search.current_candidate)
        if setting is not None and setting.name in behind
    ]
    if not names or (search.chosen is None and len(behind) < len(means)):
        return ""
    is_short = falls_short(means)
    # a busy subtask is not the reason if sources still emit on time
    name = next((name for name in names if is_short[name]), names[0])
    own: Any = means.loc[name]
    full = situation_of(search, name).full
    reasons = (
        [f"'{full}' is fully busy{_async_limit(search.scenario.job, full)}{_hot_subtask(search, name)}"] if full else []
    )
    if is_short[name]:
        emitted, due = (per_second_text(own[f"{rate}_per_second"]) for rate in ("emitted", "offered"))
        reasons.append(f"sources emit {emitted} of the {due} that are due once buffers are full")
    why = ", and ".join(reasons)
    if search.chosen is not None and search.chosen.name != name:
        return f"The job currently falls behind: {why}; with the advised setting it keeps up."
    is_all = len(behind) == len(means) and is_short.all() == is_short[name]
    return f"The job falls behind with {'every setting tried' if is_all else name_of(name)}: {why}."


def _hot_subtask(search: CandidateSearch, name: SettingName) -> str:
    """Return a part of a sentence if the busiest subtask is far busier than the average of its vertex; else ""."""
    rows = rows_of(search.rows, name, UNDISTURBED)
    worst = rows.sort_values("busiest_subtask_share").iloc[-1]
    if not hot_subtask(worst):
        return ""
    busy, usual = float(worst["busiest_subtask_share"]), float(worst["busy_share"])
    is_keyed = any(inlet.ship == "hash" for inlet in search.scenario.job.vertex(str(worst["bottleneck"])).inputs)
    why = "as with a hot key" if is_keyed else "because its share of the input is larger"
    return f" in subtask {worst['busiest_subtask']} only, {percentage(busy)} busy (average: {percentage(usual)}), {why}"


def _async_limit(job: Job, name: str) -> str:
    """Return the rate that asynchronous I/O allows a vertex, in parentheses, or "" if the vertex does not use it."""
    vertex = job.vertex(name)
    if vertex.async_io is None:
        return ""
    rate = per_second_text(vertex.parallelism * vertex.async_io.answers_per_second)
    return f" (async-io.capacity {vertex.async_io.capacity} allows {rate})"


def condition_of(search: CandidateSearch, chosen: Setting) -> str:
    """Return the condition on sinks of unknown kind under which the setting is safe, or "" if it is safe with all sinks.

    Some sinks lose records if barriers overtake data.
    """
    return unaligned_precondition(search.scenario, search.candidate_of(chosen.name).barriers)


def grade(search: CandidateSearch) -> str:
    """Return the grade of the advice: "use", "try" (watch it, and revert if it exceeds its limit) or "nothing"."""
    if search.chosen is None:
        return "nothing"
    return "use" if search.confirmed and not doubtful_cautions(search, search.chosen) else "try"


PART_OF_LOAD = Caution(
    "its checkpoints cover only part of the varying load",
    "Trials simulate at most 20 min of a varying load (10 min of a long trace), with the failure at its peak. At this interval fewer "
    "than two checkpoints fit into that time, or the load changes later. `ckptsim run` with the interval shows more.",
    _DOCS,
)


def firing_cautions(search: CandidateSearch, chosen: Setting) -> list[Caution]:
    """Return a caution for each window whose longest wait of a checkpoint for its firing is outside of trials."""
    candidate = search.candidate_of(chosen.name)
    kind = LONG if chosen.ran_long else UNDISTURBED
    seen_ns = search.bench.duration_ns(candidate, kind)
    return [
        *windows_longer_than_trials(search.bench.with_setting(candidate), seen_ns),
        *([] if search.bench.meets_whole_load(candidate) else [PART_OF_LOAD]),
    ]


def transaction_cautions(search: CandidateSearch, chosen: Setting) -> list[Caution]:
    """Return a caution for each sink whose transactions may time out if the job fails late in an interval."""
    cautions = []
    for name, timeout_ms in search.timeouts_ms.items():
        if (open_ms := search.transactions_ms(chosen)) > timeout_ms:
            timeout, left_ms = ms_text(timeout_ms), timeout_ms - open_ms + search.period_ns(chosen) / 1e6
            short = f"after a failure, transactions of '{name}' may stay open {ms_text(open_ms)}; their timeout is {timeout}"
            safe = f"; intervals of up to {ms_text(left_ms)} are safe" if left_ms > 0 else ""
            text = (
                f"A transaction of '{name}' is open for an interval, a checkpoint and the downtime of a failure, "
                f"{ms_text(open_ms)} here. After {timeout} (commit.transaction-timeout) it is aborted, and its output is lost{safe}."
            )
            cautions.append(Caution(short, text, "docs/sinks.md"))
    return cautions


def advised_scenario(search: CandidateSearch, chosen: Setting) -> Scenario:
    """Return the job with the advised setting, without changes made only for trials, e.g. a fixed size of state."""
    return search.bench.load({**search.bench.common, **advised_point(search, chosen)})


def restart_cautions(search: CandidateSearch, chosen: Setting) -> list[Caution]:
    """Return a caution if today's restarts were used up, so that more are advised, and if failing checkpoints restart the job."""
    advised = advised_scenario(search, chosen)
    before, after = (
        restart_attempts_caution(own, search.mtbf_s, search.bench.failure)
        for own in (replace(advised, restart=search.scenario.restart), advised)
    )
    found = []
    if before is not None and after is None:
        text = f"Today {before.text[0].lower()}{before.text[1:]}"
        found.append(replace(before, short=f"today {before.short}", text=text))
    if chosen.restarting >= MIN_LISTED_SHARE:
        lost = percentage(chosen.restarting)
        text = f"Checkpoints that fail restart the job: this alone costs {lost} of the time, without any other failure."
        found.append(Caution(f"checkpoints that fail restart the job: {lost} of time", text, _DOCS))
    return found


def file_cautions(search: CandidateSearch, setting: Setting) -> list[Caution]:
    """Return a caution for each limit that a setting may break with the events in the file, and one if that run is missing."""
    run, trial = search.file_runs.get(setting.name), file_trial(search, setting)
    if run is None:
        short = "the events in the file were not simulated"
        why = f"{short}: {search.runner.lack}. Trials leave out its faults, savepoints and backlog; `ckptsim run` simulates them."
        return [Caution(short, capitalised(why), _DOCS)] if trial is not None else []
    shorts = [run.ends] if run.ends else []
    if run.restarts:
        shorts.append(f"checkpoints that fail restart the job ({run.restarts})")
    shorts.extend(
        f"{_FILE_RUN_CLAUSES[column]} {file_text(search, run, column)}"
        for column in search.limits.bounds
        if column in run.limited and not keeps_in_file(search, setting, column)
    )
    return [
        Caution(f"with the events in the file, {short}", f"With the events in the file, {short}.", _DOCS)
        for short in shorts
    ]


def keeps_in_file(search: CandidateSearch, setting: Setting, column: str) -> bool:
    """Return whether a setting meets a limit with margin with the events in the file; False if that run is needed but missing."""
    run = search.file_runs.get(setting.name)
    if run is None:
        return file_trial(search, setting) is None
    value = run.limited.get(column, 0.0) * (1 + search.margins(setting.name, column))
    return column not in run.unsure and value <= search.limits.bounds[column]


def file_text(search: CandidateSearch, run: FileRun, column: str) -> str:
    """Return a value with the events in the file, and the event that caused it, e.g. ``2.2 min (a storage outage at 100 s)``."""
    value = value_text_apart_from(column, run.limited[column], search.limits.bounds.get(column, math.inf))
    return f"{'more than ' if column in run.unsure else ''}{value} ({run.event})"


def doubtful_cautions(search: CandidateSearch, chosen: Setting) -> list[Caution]:
    """Return the cautions that lower the grade to "try": output that a failure loses, events of the file, used up attempts."""
    unjudged = unjudged_event(search.bench.load(search.bench.as_written), search.limits)
    return [
        *transaction_cautions(search, chosen),
        *([Caution(f"{unjudged} is not judged", f"{capitalised(unjudged)} is not judged.", _DOCS)] if unjudged else []),
        *file_cautions(search, chosen),
        *filter(
            None, [restart_attempts_caution(advised_scenario(search, chosen), search.mtbf_s, search.bench.failure)]
        ),
    ]


def file_runs_text(search: CandidateSearch) -> str:
    """Return a sentence with the results of each run with the events in the file, or "" without one."""
    texts = []
    for name, run in search.file_runs.items():
        shown = [f"{LIMITED[column]} {file_text(search, run, column)}" for column in run.limited]
        if run.restarts:
            shown.append(f"checkpoints that fail restart the job ({run.restarts})")
        texts.append(f"{name_of(name)}: {', '.join([*shown, *filter(None, [run.ends])]) or 'no limited value'}")
    return f"With the events in the file (faults, savepoints, backlog): {'; '.join(texts)}." if texts else ""


def room_text(search: CandidateSearch, setting: Setting) -> str:
    """Return e.g. ``recovery 57 s, limit 60 s, and may be 20 % longer``, or "" if the margin is enough."""
    texts = []
    for tight in setting.tight:
        column, bound = tight.column, search.limits.bounds[tight.column]
        value = f"{value_text_apart_from(column, setting.value(column), bound)}, limit {value_text(column, bound)}"
        texts.append(f"{LIMITED[column]} {value}, and may be {percentage(tight.needed)} {_more(column)}")
    return "; ".join(texts)


def equal_intervals(search: CandidateSearch, chosen: Setting) -> list[Setting]:
    """Return the equal settings that differ only in the interval, including the chosen one, in ascending order; or []."""
    ties = [setting for setting in near_ties(search.eligible) if setting.protocol == chosen.protocol]
    is_one = len(ties) > 1 and chosen.name in [setting.name for setting in ties]
    return sorted(ties, key=lambda setting: parse_duration(setting.interval)) if is_one else []


def equal_text(ties: Sequence[Setting]) -> str:
    """Return the intervals of equal settings, e.g. ``20 s, 30 s and 1 min lose about the same time (0.1 % to 0.34 %)``."""
    least, most = (percentage(bound(setting.lost for setting in ties)) for bound in (min, max))
    lost = least if least == most else f"{least} to {most}"
    intervals = listed([setting.interval for setting in ties])
    return f"{intervals} lose about the same time ({lost}): chosen by fewest keys, then longest"


def _judging_sentences(search: CandidateSearch, chosen: Setting) -> list[str]:
    """Return a sentence on the number of checkpoints by which the limit on p99 is judged, or [] without such a limit."""
    if search.limits.checkpoint_ms is None:
        return []
    count = search.checkpoint_count(chosen.name)
    few = (
        ""
        if count >= LONG_RUNS * MIN_CHECKPOINTS_FOR_P99
        else f": at least {LONG_RUNS * MIN_CHECKPOINTS_FOR_P99} are needed for a p99 with 95 % confidence"
    )
    unknown = (
        ""
        if chosen.ran_long
        else " Whether more of them meet it is unknown: the budget has no room for a long run (--budget)."
    )
    return [f"The limit on checkpoints is judged by the longest of {count} simulated ones{few}.{unknown}"]


def _confidence(search: CandidateSearch, choice: Choice) -> str:
    """Return a sentence on the confidence in the choice."""
    if reasons := doubts(search.bench.backtest, search.limits):
        return (
            f"Confidence: at most {_percent(choice.same_setting)} ({_percent(choice.same_protocol)} including its other "
            f"intervals), because the simulation of the current job deviates from its history ({reasons})."
        )
    if search.chosen is not None and search.chosen.runs <= MIN_RUNS_FOR_RESAMPLING:
        return f"Confidence: too few runs to estimate it ({search.chosen.runs} of the advised setting)."
    alternatives = [
        f"{'no setting meets the limits' if name is None else name_of(name)} ({_percent(part)})"
        for name, part in choice.others[:2]
        if part >= MIN_LISTED_SHARE
    ]
    next_ones = f"; otherwise {', '.join(alternatives)}" if alternatives else ""
    return (
        f"Confidence: chosen in {_percent(choice.same_setting)} of bootstrap resamples "
        f"({_percent(choice.same_protocol)} including its other intervals){next_ones}."
    )


def quantity_of(column: str, setting: Setting) -> str:
    """Return the name of a limited quantity, e.g. ``recovery``, ``p99 of checkpoints`` or ``the longest of 37 checkpoints``."""
    if column != "checkpoint_ms" or setting.rare:
        return LIMITED[column]
    return "p99 of checkpoints" if _is_p99(setting) else f"the longest of {setting.checkpoints} checkpoints"


def _is_p99(setting: Setting) -> bool:
    """Return True if `checkpoint_ms` of a setting is a p99, False if it is the longest checkpoint."""
    return setting.checkpoints >= MIN_CHECKPOINTS_FOR_P99 and not setting.ran_long


def checkpoint_text(setting: Setting) -> str:
    """Return the checkpoint duration that is judged, e.g. ``p99 2.9 s of 312`` or ``4.7 s, longest of 37``.

    It is the longest one if there are too few checkpoints for a p99, or if the setting has done long runs.
    """
    if setting.rare or not math.isfinite(setting.checkpoint_ms):
        return f"{ms_text(setting.checkpoint_ms)}{', ' * bool(setting.rare)}{setting.rare}"
    if _is_p99(setting):
        return f"p99 {ms_text(setting.checkpoint_ms)} of {setting.checkpoints}"
    return f"{ms_text(setting.checkpoint_ms)}, longest of {setting.checkpoints}"


def comparison_with_today(search: CandidateSearch) -> TextTable | None:
    """Return a table that compares the chosen with the current setting, or None if nothing changes or there is none to compare."""
    chosen, now = search.chosen, search.replaced
    if chosen is None or now is None:
        return None
    rows, are_repeated = differences(search.trials, now.name, chosen.name)
    if not (_is_p99(now) and _is_p99(chosen)):
        rows = [["longest checkpoint" if row[0] == P99_LABEL else row[0], *row[1:]] for row in rows]
    for row in rows:
        if row[0] == "recovery":
            row[1:3] = [own.gives_up or text for own, text in zip((now, chosen), row[1:3], strict=True)]
    rows.append(["time lost", percentage(now.lost), percentage(chosen.lost), ""])
    how = "run by run, with 95 % confidence" if are_repeated else "a single run of each"
    then = (
        f", both with the state of {ms_text(search.bench.horizon.ahead_ns / 1e6)} from now"
        if search.bench.horizon.moved
        else ""
    )
    return TextTable(
        f"Compared with today ({name_of(now.name)}{then}), {how}", ["", "today", "advised", "difference"], rows
    )


def tables_of_settings(search: CandidateSearch) -> list[TextTable]:
    """Return a table of the settings with several or long runs, and one of the settings with a single short run.

    They are separate, because the longest of many checkpoints is not comparable with the longest of a few.  Remarks in the
    last column name the limits that a setting breaks.
    """
    settings = sorted(search.settings, key=lambda setting: parse_duration(setting.interval))
    repeated = [setting for setting in settings if setting.runs > 1 or setting.ran_long]
    short = [setting for setting in settings if setting not in repeated]
    titles = (
        "Settings with several or long runs (means)",
        "Settings with one short run: can show that a limit is broken, not that it is met",
    )
    visible = any(math.isfinite(setting.visible_ms) for setting in settings)
    return [
        _settings_table(search, title, of_title, visible)
        for title, of_title in zip(titles, (repeated, short), strict=True)
        if of_title
    ]


def _settings_table(search: CandidateSearch, title: str, settings: Sequence[Setting], visible: bool) -> TextTable:
    header = ["setting", "runs", "checkpoints", "p50", "in flight", "throughput", "recovery"]
    header += [*(["visible"] if visible else []), "time lost", "remarks"]
    rows = [
        [
            name_of(setting.name),
            str(setting.runs),
            checkpoint_text(setting),
            ms_text(setting.checkpoint_p50_ms),
            bytes_text(setting.persisted_bytes),
            change_text(-setting.loss),
            recovery_text(setting),
            *([ms_text(setting.visible_ms)] if visible else []),
            f"{'> ' if math.isinf(setting.recovery_ms) and math.isfinite(setting.lost) else ''}{percentage(setting.lost)}",
            "; ".join(_remarks(setting, search)),
        ]
        for setting in settings
    ]
    return TextTable(title, header, rows)


def _remarks(setting: Setting, search: CandidateSearch) -> Iterator[str]:
    """Yield the remarks on a setting in its row of the table."""
    chosen = search.chosen
    if chosen is not None and setting.name == chosen.name:
        yield "advised"
    if setting.name == search.current_name:
        yield "today"
    if setting.completed and not search.has_named_interval(setting):
        yield f"starts every {ms_text(search.period_ns(setting) / 1e6)}"
    if with_keys := _with_keys(search, setting):
        yield with_keys.removeprefix(", ")
    if setting.name in search.losing:
        yield "loses output"
    if search.needs_async_operate(setting.name):
        yield "no option"
    if setting.breaks:
        yield breaks_text(setting, search.limits)
    elif search.has_unseen_tail(setting.name):
        yield "no long run"
    for tight in setting.tight:
        yield f"{LIMITED[tight.column]} may be {percentage(tight.needed)} {_more(tight.column)}"


def _more(column: str) -> str:
    """Return the word for more of a limited quantity."""
    return "larger" if column == "loss" else "longer"


def breaks_text(setting: Setting, limits: Limits) -> str:
    """Return the exceeded limits, e.g. ``checkpoints 6.3 s > 2 s``, separated by commas."""
    texts = []
    for column, at_most in limits.bounds.items():
        if column in setting.breaks:
            value, bound = setting.value(column), value_text(column, at_most)
            limit = f"> {bound}" if math.isfinite(value) else f"(limit {bound})"
            given_up = setting.gives_up if column == "recovery_ms" else ""
            texts.append(f"{LIMITED[column]} {given_up or value_text_apart_from(column, value, at_most)} {limit}")
    return ", ".join(texts)


def renewal_sentence(search: CandidateSearch) -> str:
    """Return a sentence with the optimal interval by renewal theory."""
    cost_s, mtbf_s = search.cost_s, search.mtbf_s
    if not cost_s:
        return "Checkpoints cost no measurable throughput: the choice of the interval depends on replay after failures."
    cost, mtbf, optimum = (ms_text(1e3 * time_s) for time_s in (cost_s, mtbf_s, renewal(cost_s, mtbf_s)))
    return (
        f"A checkpoint costs {cost} of processing time; with a failure every {mtbf}, renewal theory gives an optimal interval "
        f"of {optimum}."
    )


def limits_text(limits: Limits) -> str:
    """Return e.g. ``checkpoints at most 2 s, recovery at most 60 s``, or "" without limits."""
    return ", ".join(
        f"{LIMITED[column]} at most {value_text(column, bound)}" for column, bound in limits.bounds.items()
    )


def name_of(name: SettingName) -> str:
    """Return e.g. ``unaligned, every 30 s``."""
    return f"{name[1]}, every {name[0]}"


def percentage(value: float, digits: int = 2) -> str:
    """Return a share as a percentage, e.g. ``5.3 %`` for 0.053, or ``-`` if it is not finite."""
    if not math.isfinite(value):
        return "-"
    percent = 100 * value
    is_long = abs(percent) >= 10**digits - 0.5  # .2g of 100 is 1e+02
    return f"{percent:.0f} %" if is_long else f"{percent:.{digits}g} %"


def value_text(column: str, value: float, digits: int = 2) -> str:
    """Return the value of a limited column with its unit: a percentage for loss, a duration for all others."""
    return percentage(max(value, 0.0), digits) if column == "loss" else ms_text(value, digits)


def value_text_apart_from(column: str, value: float, bound: float) -> str:
    """Return a value with its unit, and with enough digits to differ from its limit."""
    return apart_text(value, bound, lambda number, digits: value_text(column, number, digits))


def recovery_text(setting: Setting) -> str:
    """Return the recovery of a setting; if the restart strategy gives up, that instead of an infinite duration."""
    return setting.gives_up or f"{'about ' if setting.is_extrapolated else ''}{ms_text(setting.recovery_ms)}"


def _percent(part: float) -> str:
    """Return a share as a percentage, as ``< 1 %`` below 0.01, and as ``> 99 %`` above 0.99."""
    if part > 0.99:
        return "> 99 %"
    return "< 1 %" if part < 0.01 else f"{100 * part:.0f} %"
