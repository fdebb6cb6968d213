"""The answer of a sweep, as sentences and tables."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial

import pandas as pd

from sim.results.columns import spread_text, text, text_unlike
from sim.results.consequences import MIN_UNLIKE_PHASE
from sim.results.estimates import MIN_INTERVALS, PairedChange, critical, longer_run
from sim.results.formats import TextTable, count_text, share_text
from sim.results.rates import MIN_SHORTFALL_SHARE
from sim.results.summary import STATISTICS
from sim.results.sweep_answers import (
    Observed,
    Selection,
    Setting,
    Standing,
    choose,
    counts,
    differences,
    has_no_result,
    intervals_ms,
    is_named,
    joint_confidence,
    limit_text,
    means,
    observed,
    planned,
    settings_of,
    smallest_sample_of,
)
from sim.studies.cells import COLUMNS
from sim.studies.sweeps.sweep_file import Question

# ---- Sentences: first failures and other restrictions, then the smallest value, its confidence, and the recommended setting.

MAX_NAMED = 4
"""Maximum number of settings or windows that a sentence names."""


def headline(question: Question, results: pd.DataFrame, selection: Selection) -> str:
    """Return the answer as a paragraph: restrictions, then the recommendation."""
    return " ".join(
        [
            *_unmeasured_column_sentences(question, selection),
            *_unfinished_window_sentences(question, selection),
            *_failure_sentences(question, results, selection),
            *_no_checkpoint_sentences(question, results, selection),
            *_overload_sentences(question, results),
            *_unfinished_setting_sentences(question, selection),
            *_unknown_limit_sentences(question, selection),
            *_unranked_setting_sentences(question, results, selection),
            *_unlike_time_sentences(question, results),
            *_recommendation_sentences(question, selection),
        ]
    )


def _unmeasured_column_sentences(question: Question, selection: Selection) -> Iterator[str]:
    """Yield a sentence on each column that no run has a value of."""
    for column in selection.unmeasured:
        is_limited = any(limit.column == column for limit in question.limits)
        yield f"No run has a value of {column}: there was nothing to measure.{' Its limit cannot be kept.' * is_limited}"


def _unfinished_window_sentences(question: Question, selection: Selection) -> Iterator[str]:
    """Yield a sentence on windows in which no setting makes the value final, e.g. all output visible within the run."""
    if not selection.hopeless:
        return
    does = COLUMNS[question.least].ends or "end"
    keys = ", ".join(question.settings)
    where = _window_names_text(selection.hopeless, selection)
    yield f"In {_window_count_text(len(selection.hopeless), selection)} the job does not {does} with any {keys}{where}."


def _window_names_text(windows: Sequence[str], selection: Selection) -> str:
    """Return the names of windows in brackets, or "" if they are all windows."""
    return f" ({_first_names(windows)})" if len(windows) < len(selection.windows) else ""


def _failure_sentences(question: Question, results: pd.DataFrame, selection: Selection) -> Iterator[str]:
    """Yield sentences on windows in which every setting fails, and on settings that fail in some windows."""
    if selection.failed:
        why = f"{_reason_text(results)}{_window_names_text(selection.failed, selection)}"
        yield f"In {_window_count_text(len(selection.failed), selection)} every {_setting_noun(question)} fails{why}."
    failing = [standing for standing in selection.standings if standing.failed]
    for standing in failing[:MAX_NAMED]:
        rows = planned(results)
        for key, value in zip(question.settings, standing.setting, strict=True):
            rows = rows[rows[key].astype(str) == value]
        failure = (
            f"{_failure_text(rows, question)} in {_window_count_text(standing.failed, selection)}{_reason_text(rows)}"
        )
        yield f"With {_setting_with_keys(question, standing.setting)} {failure}."
    if (others := len(failing) - MAX_NAMED) > 0:
        yield f"{others} more {'setting fails' if others == 1 else 'settings fail'} in some windows."


def _means_of_runs(question: Question, results: pd.DataFrame, columns: Sequence[str]) -> pd.DataFrame | None:
    """Return the means of columns over all runs of each setting that have a result, or None if a column is missing."""
    needed = {*question.settings, *columns}
    if not needed <= {*results.columns}:
        return None
    # select columns first, because `planned` copies them
    rows = planned(results[[name for name in results if name in {*needed, "strategy", "status", "job_status"}]])
    rows = rows[~has_no_result(rows)].astype(dict.fromkeys(question.settings, str))
    return rows.groupby(list(question.settings), sort=False)[list(columns)].mean()


def _overload_sentences(question: Question, results: pd.DataFrame) -> Iterator[str]:
    """Yield a sentence on settings under which sources emit less than is due, so that delays grow with the run."""
    used = ("emitted_per_second", "offered_per_second", "busiest_subtask_share", "recovering", "restarts")
    rows = results.assign(
        recovering=is_named(results, "unfinished", "caught_up_ms"), restarts=results.get("restarts", 0.0)
    )
    if (means := _means_of_runs(question, rows, used)) is None:
        return
    is_short = means[used[0]] < (1 - MIN_SHORTFALL_SHARE) * means[used[1]]
    # a run that ends soon after a failure lacks what was due during it, whatever the load
    is_short &= ((means["recovering"] == 0) & (means["restarts"] == 0)) | (means[used[2]] >= _BUSY_SHARE)
    is_full = ~is_short & (means[used[2]] >= _FULL_SHARE)
    for what, found in (
        ("Overloaded, so that delays grow with the run", is_short),
        (
            "Never idle while sources emit what is due, so that only a longer run shows whether the job keeps up",
            is_full,
        ),
    ):
        if found.any():
            yield f"{what}: {_setting_texts(settings_of(means.index[found]))}."


_BUSY_SHARE = 0.9
"""Busy share of a subtask, downtime included, from which a job that was restarted, or has not caught up, counts as overloaded."""
_FULL_SHARE = 0.995
"""Busy share of a subtask from which it is never idle.

This does not mean that it cannot keep up: at 97 to 99.9 % of its capacity a subtask is as busy for minutes after a failure
of 2 s, as it catches up in 2 s / (1 - load), and its backlog shrinks meanwhile.
"""


def _no_checkpoint_sentences(question: Question, results: pd.DataFrame, selection: Selection) -> Iterator[str]:
    """Yield a sentence on settings without any completed checkpoint."""
    if (means := _means_of_runs(question, results, ["completed"])) is None:
        return
    none = settings_of(means.index[~(means["completed"] > 0)])
    without = [standing.setting for standing in selection.standings if standing.setting in none]
    if without and len(without) == len(selection.standings):
        yield f"No run completes a checkpoint, with any {', '.join(question.settings)}."
    elif without:
        yield f"No run completes a checkpoint with {_setting_texts(without)}."


def _failure_text(rows: pd.DataFrame, question: Question) -> str:
    """Return the clause on the kind of failure: no value, a run with an error, or a failed job."""
    if not has_no_result(rows).any():
        return f"there is no value of {question.least}"
    return "cells fail" if (rows["status"] != "ok").any() else "the job fails"


def _reason_text(rows: pd.DataFrame) -> str:
    """Return the first recorded reason of a failure in brackets, or ""."""
    texts = [
        str(text)
        for _, row in rows[has_no_result(rows)].iterrows()
        for text in ((row.get("error") if row["status"] != "ok" else str(row.get("job_status")).partition(": ")[2]),)
        if text
    ]
    return f" ({texts[0].rstrip('.')})" if texts else ""


def _unfinished_setting_sentences(question: Question, selection: Selection) -> Iterator[str]:
    """Yield a sentence on settings with which the value is not final in some windows, e.g. some output is not visible yet."""
    standings = [standing for standing in selection.standings if standing.behind]
    if not standings:
        return
    standings.sort(key=lambda standing: -standing.behind)
    does = COLUMNS[question.least].ends or "end"
    named = _first_names([f"with {_setting_text(standing.setting)} in {standing.behind}" for standing in standings])
    others = "other " if selection.hopeless else ""
    yield f"Of the {others}{selection.compared} {selection.sample}, the job does not {does} {named}."


def _unknown_limit_sentences(question: Question, selection: Selection) -> Iterator[str]:
    """Yield a sentence on each limit of a percentile that may not be kept, because the sample of some settings is too small.

    Settings that certainly keep the limit rank higher.
    """
    of_setting = " of a setting" if len(selection.standings) > 1 else ""
    for limit in question.limits:
        samples = [
            (standing.setting, standing.unknown[limit.column])
            for standing in selection.standings
            if standing.sound and limit.column in standing.unknown
        ]
        if samples:
            needs = f"{smallest_sample_of(limit.column)} {STATISTICS[limit.column].counts} in all runs{of_setting}"
            yield f"Not known to keep {limit_text(limit)}, as that needs {needs}: {_sample_sizes_text(samples)}."


def _sample_sizes_text(samples: Sequence[tuple[Setting, int]]) -> str:
    """Return sample sizes of settings, e.g. ``5 min has 8, 2 min has 20``."""
    return _first_names([f"{_setting_text(setting)} has {sample:,}" for setting, sample in samples])


def _unranked_setting_sentences(question: Question, results: pd.DataFrame, selection: Selection) -> Iterator[str]:
    """Yield sentences on settings with too few intervals, or too small a sample for the percentile that settings are ranked by."""
    if short := [standing.setting for standing in selection.standings if standing.is_short]:
        longest_ms = max(intervals_ms(results, question.settings)[setting] for setting in short)
        longer = longer_run(MIN_INTERVALS, float(planned(results)["warmup_ms"].max()), longest_ms)
        yield (
            f"Not ranked, as a run has fewer than {MIN_INTERVALS} of their intervals, and its first checkpoint meets a job that has just "
            f"started: {_setting_texts(short)} ({longer})."
        )
    noun = STATISTICS[question.least].counts if question.least in STATISTICS else ""
    needed = smallest_sample_of(question.least)
    samples = [
        (standing.setting, standing.sample)
        for standing in selection.standings
        if not (standing.ranked or standing.is_short or standing.unknown) and standing.sample is not None
    ]
    if samples:
        yield (
            f"Not ranked, as {question.least} needs {needed} {noun} in all runs of a setting: {_sample_sizes_text(samples)}."
        )
    sizes = [standing.sample for standing in selection.eligible if standing.sample is not None]
    if sizes and max(sizes) < needed:
        span = " to ".join(f"{size:,}" for size in sorted({min(sizes), max(sizes)}))
        yield (
            f"No setting that could be chosen has the {needed} {noun} that {question.least} needs: "
            f"it is the longest of {span}, and compared as that."
        )


def _unlike_time_sentences(question: Question, results: pd.DataFrame) -> Iterator[str]:
    """Yield a sentence if failures come at unlike parts of the interval, and some column is about what they cost."""
    if not any(COLUMNS[column].of in ("failures", "restarts") for column in (question.least, *question.show)):
        return
    if (means := _means_of_runs(question, results, ["interval_passed_share"])) is None:
        return
    shares = means["interval_passed_share"].dropna()
    if len(shares) > 1 and shares.max() - shares.min() > MIN_UNLIKE_PHASE:
        late, early = (settings_of(shares.index)[int(place)] for place in (shares.argmax(), shares.argmin()))
        yield (
            f"Failures come after {share_text(shares.max())} of the interval with {_setting_text(late)}, after {share_text(shares.min())} of the "
            f"interval with {_setting_text(early)}, on average: what they cost may differ, or be the same, by that alone."
        )


def _recommendation_sentences(question: Question, selection: Selection) -> Iterator[str]:
    """Yield the sentences on the smallest value, its confidence, the recommended setting, and its limits."""
    limits = " and ".join(limit_text(limit) for limit in question.limits)
    if selection.advised is None:
        is_kept = any(standing.sound for standing in selection.standings)
        none = f"None of {len(selection.standings)} settings keeps {limits}."
        yield none if limits and not is_kept else "No setting can be chosen."
        return
    first = selection.eligible[0]
    unranked = sum(not standing.ranked for standing in selection.standings)
    among = (
        f"of {len(selection.standings) - unranked} settings that are ranked"
        if unranked
        else f"of {len(selection.standings)} setting{'s' if len(selection.standings) > 1 else ''}"
    )
    if limits:
        certain = sum(standing.sound and not standing.unknown for standing in selection.standings)
        kept = certain or sum(standing.sound for standing in selection.standings)
        keep = ("keeps" if kept == 1 else "keep") if certain else ("seems to keep" if kept == 1 else "seem to keep")
        mean = f" on average over {'all ' if selection.compared < len(selection.windows) else ''}{len(selection.windows)} {selection.sample}"
        limits += mean if len(selection.windows) > 1 else ""
        among = f"{kept} of {len(selection.standings)} settings {keep} {limits}"
    value = f"{_mean_text(question, first)}{_sample_text(selection)}"
    yield f"Least {question.least}: {value}, with {_setting_with_keys(question, first.setting)} ({among})."
    if selection.compared < 2:
        yield "That is one window with one seed: there is no interval, and no setting is surely better than another."
        return
    yield from _confidence_sentences(question, selection, first)
    yield from _limit_sentences(question, selection)
    if selection.sample == "seeds":
        yield "It is one window: its seeds say nothing about others."


def _confidence_sentences(question: Question, selection: Selection, first: Standing) -> Iterator[str]:
    """Yield sentences on settings that are not significantly worse than the first one, and on the setting to take."""
    others = [name for name in selection.best if name != first.setting]
    ties = selection.ties
    if not others:
        if len(selection.eligible) > 1:
            yield f"It is surely the least: 95 % for all comparisons together{_next_setting_text(question, selection, first)}."
        return
    if len(ties) == len(others) and first.setting == selection.advised:
        yield f"It ties with {_setting_texts(ties)}: their values agree to nine digits."
    else:
        yield f"It cannot be told apart from {len(others)} other{'s' if len(others) > 1 else ''}: {_setting_texts(others)}."
        if ties:
            yield f"{_setting_text(selection.advised or ())} ties with {_setting_texts(ties)}."
        yield from _two_samples_sentences(selection)
    assert selection.advised is not None
    why = {
        "reference": "it is compared with, and no other is surely better",
        "changes": "of these it changes least against what it is compared with",
        "least": "of equal ones it stands first"
        if ties and first.setting == selection.advised
        else "of these it has the least mean",
    }[selection.reason]
    advised = selection.standing(selection.advised)
    value = "" if selection.advised == first.setting else f" ({_mean_text(question, advised)})"
    yield f"Take {_setting_with_keys(question, selection.advised)}{value}: {why}."


_ENOUGH_TO_TELL = 5
"""Number of windows or seeds that is proposed where there are only two, of which hardly any difference is sure."""


def _two_samples_sentences(selection: Selection) -> Iterator[str]:
    """Yield a sentence if there are only two windows or seeds, with the size from which a difference between settings is sure."""
    if selection.compared == 2:
        confidence = joint_confidence(len(selection.standings))
        two, more = (
            f"{count_text(float(critical(count, confidence)) / math.sqrt(count))} times"
            for count in (2, _ENOUGH_TO_TELL)
        )
        yield (
            f"That says little: with 2 {selection.sample} a difference is sure only from {two} its standard deviation between them on, with "
            f"{_ENOUGH_TO_TELL} from {more}."
        )


def _next_setting_text(question: Question, selection: Selection, first: Standing) -> str:
    """Return a clause on the difference to the second setting, because a significant difference may still be small."""
    others = [standing for standing in selection.eligible[1:2] if standing.behind == first.behind]
    return "".join(
        f"; next is {_setting_text(other.setting)}, by {text(question.least, other.value - first.value)}"
        for other in others
    )


def _limit_sentences(question: Question, selection: Selection) -> Iterator[str]:
    """Yield sentences on windows in which limits are exceeded, and on limits inside the confidence interval of a mean."""
    assert selection.advised is not None
    yield from _exceeded_limit_sentences(question, selection, selection.standing(selection.advised))
    if unsure := selection.standing(selection.advised).unsure:
        yield f"Whether it keeps its limit is not sure: the interval of {' and '.join(unsure)} reaches beyond."
    close = [
        standing.setting
        for standing in selection.standings
        if standing.broken and set(standing.broken) <= set(standing.unsure)
    ]
    if close:
        yield f"{len(close)} more may keep {'it' if len(question.limits) == 1 else 'them'}: {_setting_texts(close)}."


def _exceeded_limit_sentences(question: Question, selection: Selection, advised: Standing) -> Iterator[str]:
    """Yield sentences on windows in which the recommended setting exceeds a limit, and on settings that never exceed one."""
    for limit in question.limits:
        windows = [window for window in advised.exceeded if window.column == limit.column]
        if not windows:
            continue
        bound = limit.at_most if math.isfinite(limit.at_most) else limit.at_least
        named = _first_names(
            [f"{window.window}: {text_unlike(limit.column, window.value, bound)}" for window in windows]
        )
        count = len(selection.windows)
        yield (
            f"{_setting_text(advised.setting)} keeps {limit_text(limit)} in {count - len(windows)} of {count} {selection.sample} only "
            f"(broken at {named})."
        )
    if advised.exceeded:
        always = [standing.setting for standing in selection.eligible if not standing.exceeded]
        alone, everywhere = len(question.limits) == 1, f"in all {len(selection.windows)} {selection.sample}"
        if always:
            yield f"{'It is' if alone else 'All limits are'} kept {everywhere} with {_setting_texts(always)}."
        else:
            yield f"No setting keeps {'it' if alone else 'all limits'} {everywhere}."


def _mean_text(question: Question, standing: Standing) -> str:
    """Return the mean of a setting with its confidence interval; ``more than`` if it is a lower bound."""
    bound = "more than " if standing.behind else ""
    return f"{bound}{text(question.least, standing.value)}{spread_text(question.least, standing.half_width)}"


def _sample_text(selection: Selection) -> str:
    """Return the clause on the compared windows or seeds, or "" for a single one."""
    if selection.compared < 2:
        return ""
    return f" over {'the other ' if selection.compared < len(selection.windows) else ''}{selection.compared} {selection.sample}"


def _window_count_text(count: int, selection: Selection) -> str:
    return f"{count} of {len(selection.windows)} {selection.sample}" if len(selection.windows) > 1 else "this window"


def _setting_noun(question: Question) -> str:
    """Return the noun for a setting: the last part of the only key, e.g. ``interval``, or ``setting`` for several keys."""
    return question.settings[0].rpartition(".")[2] if len(question.settings) == 1 else "setting"


def _setting_with_keys(question: Question, setting: Setting) -> str:
    """Return a setting with its keys: ``checkpoint.interval 10 s``."""
    return ", ".join(f"{key} {value}" for key, value in zip(question.settings, setting, strict=True))


def _setting_text(setting: Setting) -> str:
    """Return a setting without its keys: ``10 s``, or ``(10 s, unaligned)``."""
    return " ".join(setting) if len(setting) == 1 else f"({', '.join(setting)})"


def _setting_texts(settings: Sequence[Setting]) -> str:
    return _first_names([_setting_text(setting) for setting in settings])


def _first_names(names: Sequence[str]) -> str:
    rest = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
    return ", ".join(names[:MAX_NAMED]) + rest


# ---- Tables.

MAX_WINDOWS = 24
"""Maximum rows of the table of windows.  Windows with failures or lower bounds come first if there are more."""
MAX_SIDE_BY_SIDE = 5
"""Maximum settings for which the table of windows has a column each.

With more settings, its columns are the recommended setting and the reference.
"""


def sections(question: Question, results: pd.DataFrame) -> list[TextTable]:
    """Return the tables: means by setting, differences to the reference, and values by window.

    `results`: all rows, including failed runs.
    """
    if planned(results).empty:
        return []
    tables = [_means_table(question, results)]
    if question.against:
        tables.append(_differences_table(question, results))
    selected = {
        value: _choose_setting(question, rows).advised if question.least else None
        for value, rows in groups(question, results)
    }
    decisive = dict.fromkeys([question.least or question.show[0], *(limit.column for limit in question.limits)])
    tables.extend(windows for column in decisive if (windows := _windows_table(question, results, column, selected)))
    return tables


def sentence(question: Question, results: pd.DataFrame) -> str:
    """Return the recommendation with its restrictions and confidence: one paragraph, or one for each value of `by`.

    Return "" if the question has no `least`.
    """
    if not question.least:
        return ""
    return "\n".join(
        (f"{question.by} {value}: " if value else "") + headline(question, rows, _choose_setting(question, rows))
        for value, rows in groups(question, results)
    )


def groups(question: Question, results: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield (value of `by`, its rows) for each value, in the order of the plan.  Without `by`, yield ("", all rows)."""
    if not question.by:
        yield "", results
        return
    rows = planned(results)
    for value in rows[question.by].dropna().unique():
        yield value, rows[rows[question.by] == value]


def _choose_setting(question: Question, results: pd.DataFrame) -> Selection:
    reference = [value for _, value in question.against]
    return choose(results, question.settings, question.least, question.limits, reference)


def _means_table(question: Question, results: pd.DataFrame) -> TextTable:
    """Return the table of means, a row per setting (and value of `by`)."""
    columns = _shown_columns(question)
    tables = [(value, group, means(group, question.settings, columns)) for value, group in groups(question, results)]
    rows = [
        [*_by_cell(value), *setting, *(_mean_cell(column, row) for column in columns)]
        for value, _, table in tables
        for setting, (_, row) in zip(settings_of(table.index), table.iterrows(), strict=True)
    ]
    bounds = any((table[f"{column} unfinished"] > 0).any() for _, _, table in tables for column in columns)
    note = ". More than: it did not end everywhere, and counts there with the longest time known" if bounds else ""
    title = f"Mean {_averaged_over_text([group for _, group, _ in tables], question)}{note}{sample_size_notes(_shown_columns(question), results)}"
    return TextTable(title, [*_by_cell(question.by), *question.settings, *columns], rows)


def _shown_columns(question: Question) -> list[str]:
    """Return the columns of the table of means: those of `show`, then `least` and those of limits."""
    least = [question.least] if question.least else []
    return list(dict.fromkeys([*question.show, *least, *(limit.column for limit in question.limits)]))


def sample_size_notes(columns: Iterable[str], results: pd.DataFrame) -> str:
    """Return notes on those columns that are percentiles whose sample is too small in some run, each after ``. ``, or ""."""
    notes = ""
    for column in columns:
        sizes = counts(results, column)
        if not sizes.empty and sizes.min() < (needed := smallest_sample_of(column)):
            span = " to ".join(map(str, sorted({int(sizes.min()), int(sizes.max())})))
            notes += f". {column} needs {needed} {STATISTICS[column].counts}, and a run has {span}: read it as the longest one"
    return notes


def _averaged_over_text(tables: Sequence[pd.DataFrame], question: Question) -> str:
    """Return what the means are computed over: windows, or seeds of a single window."""
    observations = [observed(rows, question.settings, question.show[0]) for rows in tables]
    counts = sorted({len(table.scores) for table in observations})
    count = f"{counts[0]} to {counts[-1]}" if len(counts) > 1 else str(counts[0])
    match observations[0].sample:
        case "seeds":
            return f"over {count} seeds of a single window, with 95 % confidence for this window alone"
        case _ if counts[-1] == 1:
            return "of one window: it has no interval over windows"
        case sample:
            return f"over {count} {sample}, seeds averaged within each, with 95 % confidence"


def _mean_cell(column: str, row: pd.Series[float]) -> str:
    """Return a cell of the table of means, with the number of failed runs or lower bounds."""
    measured, unfinished, lost, total = (int(row[f"{column} {name}"]) for name in ("n", "unfinished", "lost", "of"))
    if lost:
        return f"- (fails in {lost} of {total})"
    if not measured:
        return "-"
    value = text(column, row[column])
    if not unfinished:
        return f"{value}{spread_text(column, row[f'{column} ±'])}" + (f" (n={measured})" if measured < total else "")
    where = f"all {measured}" if unfinished == measured else f"{unfinished} of {measured}"
    return f"> {value}{spread_text(column, row[f'{column} ±'])} (not ended in {where})"


def _differences_table(question: Question, results: pd.DataFrame) -> TextTable:
    """Return the table of paired differences to the reference setting, a row per other setting (and value of `by`)."""
    reference: Mapping[str, str] = dict(question.against)
    tables_of = {
        value: {column: differences(group, question.settings, column, reference) for column in question.show}
        for value, group in groups(question, results)
    }
    most = {value: max(int(table["windows"].max()) for table in tables.values()) for value, tables in tables_of.items()}
    rows = [
        [
            *_by_cell(value),
            *setting,
            *(_difference_cell(column, table.iloc[i], most[value]) for column, table in tables.items()),
        ]
        for value, tables in tables_of.items()
        for i, setting in enumerate(settings_of(next(iter(tables.values())).index))
        if list(setting) != list(reference.values())
    ]
    against = ", ".join(f"{key} {value}" for key, value in reference.items())
    together = ", with 95 % confidence for all settings of a column together" if len(rows) > len(tables_of) else ""
    title = f"Difference to {against}, window by window{together}"
    return TextTable(title, [*_by_cell(question.by), *question.settings, *question.show], rows)


def _difference_cell(column: str, row: pd.Series[float], most: int) -> str:
    """Return a cell of the table of differences.

    `most`: largest number of windows behind a cell.  A cell with fewer windows shows their number, e.g. ``n=7``.
    """
    if math.isnan(row["difference"]) or row["unfinished"] == row["windows"]:
        return "-"
    marks = [f"n={row['windows']:.0f}"] if row["windows"] < most else []
    marks += [f"not ended in {row['unfinished']:.0f}"] if row["unfinished"] else []
    change = PairedChange(row["difference"], math.inf).text(partial(text, column))
    return change + spread_text(column, row["±"]) + (f" ({', '.join(marks)})" if marks else "")


def _windows_table(
    question: Question, results: pd.DataFrame, column: str, selected: Mapping[str, Setting | None]
) -> TextTable | None:
    """Return the values of a column by window, or None if there is a single window, or no setting to show.

    `selected`: value of `by` -> the recommended setting.
    """
    tables = {value: observed(group, question.settings, column) for value, group in groups(question, results)}
    names = {value: settings_of(table.scores.columns) for value, table in tables.items()}
    first = next(iter(names.values()))
    is_side_by_side = len(first) <= MAX_SIDE_BY_SIDE and all(settings == first for settings in names.values())
    reference = tuple(setting for _, setting in question.against)
    named = {"taken": selected, "compared with": dict.fromkeys(selected, reference)}
    named = {name: settings for name, settings in named.items() if any(settings.values())}
    if is_side_by_side:
        named = {", ".join(name): dict.fromkeys(tables, name) for name in first}
    is_of_seeds = any(table.sample == "seeds" for table in tables.values())
    if sum(len(table.scores) for table in tables.values()) < 2 or is_of_seeds or not named:
        return None
    rows = []
    for value, table in tables.items():
        for i, window in enumerate(table.scores.index):
            cells = dict(zip(names[value], _window_cells(table, i, column), strict=True))
            is_first = bool(table.unfinished.iloc[i].any() or table.lost.iloc[i].any())
            shown = (cells.get(settings[value] or (), "-") for settings in named.values())
            rows.append((is_first, [*_by_cell(value), str(window), *shown]))
    part = ""
    if len(rows) > MAX_WINDOWS:
        part = f" ({MAX_WINDOWS} of {len(rows)}: those where something did not end or failed first)"
        rows = sorted(rows, key=lambda row: not row[0])[:MAX_WINDOWS]
    limit = next((limit for limit in question.limits if limit.column == column), None)
    bound = f" (limit: {limit_text(limit).removeprefix(column).strip()})" if limit else ""
    return TextTable(
        f"{column} in each window{bound}{part}", [*_by_cell(question.by), "window", *named], [row for _, row in rows]
    )


def _window_cells(table: Observed, i: int, column: str) -> list[str]:
    """Return the cells of window `i`, one per setting."""
    parts = (values.iloc[i].tolist() for values in (table.scores, table.unfinished, table.lost))
    return [
        "fails" if lost else f"{'> ' if unfinished and not math.isnan(score) else ''}{text(column, score)}"
        for score, unfinished, lost in zip(*parts, strict=True)
    ]


def _by_cell(value: str) -> list[str]:
    """Return the cell with the value of `by` as a list, which is empty without `by`."""
    return [value] if value else []
