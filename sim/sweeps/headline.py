"""The sentences of a sweep's answer: where nothing can be chosen and what failed, then the least, how sure it is, and what to take."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

from sim.analysis.sweeps.choice import Selection, Setting, Standing
from sim.analysis.sweeps.measure import limit_text, spread_text, text, text_beside
from sim.analysis.sweeps.observed import dead, numbered, planned
from sim.analysis.sweeps.samples import smallest
from sim.cells.columns import COLUMNS
from sim.quantities.results import STATISTICS
from sim.sweeps.file.question import Question

MOST_NAMED = 4
"""Settings or windows that a sentence names one by one."""


def headline(question: Question, results: pd.DataFrame, found: Selection) -> str:
    """The sentences, what decides first."""
    return " ".join([
        *_nothing(question, found), *_hopeless(question, results, found), *_failing(question, results, found),
        *_without_checkpoints(question, results, found), *_behind(question, found), *_unknown(question, found), *_unranked(question, found),
        *_answer(question, found),
    ])  # fmt: skip


def _nothing(question: Question, found: Selection) -> Iterator[str]:
    for column in found.unmeasured:
        so = " Its limit cannot be kept." if any(limit.column == column for limit in question.limits) else ""
        yield f"No run has a value of {column}: there was nothing to measure.{so}"


def _hopeless(question: Question, results: pd.DataFrame, found: Selection) -> Iterator[str]:
    if not found.hopeless:
        return
    does = COLUMNS[question.least].ends or "end"
    rows = planned(results)
    rows = rows[~dead(rows)]
    if "bottleneck" in rows and found.sample == "windows" and "window" in rows:
        rows = rows[rows["window"].astype(str).isin(found.hopeless)]
    keys = ", ".join(question.settings)
    yield f"In {_of(len(found.hopeless), found)} the job does not {does} with any {keys}{_busy(rows)}{_which(found.hopeless, found)}."


def _which(windows: Sequence[str], found: Selection) -> str:
    return f" ({_listed(windows)})" if len(windows) < len(found.windows) else ""


def _busy(rows: pd.DataFrame) -> str:
    """Where the work piles up."""
    if "bottleneck" not in rows or (named := rows["bottleneck"].replace("", None).dropna()).empty:
        return ""
    vertex = str(named.mode().iloc[0])
    share = float(rows.loc[rows["bottleneck"] == vertex, "busy_share"].mean())
    return f": '{vertex}' is {100 * share:.0f} % busy there" if not math.isnan(share) else ""


def _failing(question: Question, results: pd.DataFrame, found: Selection) -> Iterator[str]:
    if found.failed:
        yield f"In {_of(len(found.failed), found)} every {_noun(question)} fails{_reason(results)}{_which(found.failed, found)}."
    failing = [standing for standing in found.standings if standing.failed]
    for standing in failing[:MOST_NAMED]:
        rows = planned(results)
        for key, value in zip(question.settings, standing.setting, strict=True):
            rows = rows[rows[key].astype(str) == value]
        yield f"With {_named(question, standing.setting)} {_what(rows, question)} in {_of(standing.failed, found)}{_reason(rows)}."
    if (others := len(failing) - MOST_NAMED) > 0:
        yield f"{others} more {'setting fails' if others == 1 else 'settings fail'} in some windows."


def _without_checkpoints(question: Question, results: pd.DataFrame, found: Selection) -> Iterator[str]:
    """Settings whose runs end before any checkpoint does: they say nothing about checkpoints."""
    if "completed" not in results:
        return
    used = {*question.settings, "completed", "strategy", "status", "job_status"}
    rows = planned(results[[name for name in results.columns if name in used]])  # all columns would be copied
    rows = rows[~dead(rows)]
    if rows.empty:
        return
    settings, setting_of = numbered(rows, question.settings)
    completed = np.bincount(setting_of, rows["completed"].astype(float).fillna(0), len(settings))
    never = {setting for setting, count in zip(settings, completed, strict=True) if count == 0}
    none = [standing.setting for standing in found.standings if standing.setting in never]
    if none and len(none) == len(found.standings):
        yield f"No run completes a checkpoint, with any {', '.join(question.settings)}."
    elif none:
        yield f"No run completes a checkpoint with {_shorts(none)}."


def _what(rows: pd.DataFrame, question: Question) -> str:
    if not dead(rows).any():
        return f"there is no value of {question.least}"
    return "cells fail" if (rows["status"] != "ok").any() else "the job fails"


def _reason(rows: pd.DataFrame) -> str:
    """The first reason that is on record."""
    texts = [
        str(text) for _, row in rows[dead(rows)].iterrows()
        for text in ((row.get("error") if row["status"] != "ok" else str(row.get("job_status")).partition(": ")[2]),) if text
    ]  # fmt: skip
    return f" ({texts[0].rstrip('.')})" if texts else ""


def _behind(question: Question, found: Selection) -> Iterator[str]:
    late = sorted((standing for standing in found.standings if standing.behind), key=lambda standing: -standing.behind)
    if not late:
        return
    does = COLUMNS[question.least].ends or "end"
    named = ", ".join(f"with {_short(standing.setting)} in {standing.behind}" for standing in late[:MOST_NAMED])
    unnamed = len(late) - MOST_NAMED
    rest = f", with {unnamed} more setting{'s' if unnamed > 1 else ''} in some" if unnamed > 0 else ""
    others = "other " if found.hopeless else ""
    yield f"Of the {others}{found.compared} {found.sample}, the job does not {does} {named}{rest}."


def _unknown(question: Question, found: Selection) -> Iterator[str]:
    """Limits of percentiles without their sample: the settings that seem to keep them stand behind those that do."""
    several = len(found.standings) > 1
    for limit in question.limits:
        own = [(standing.setting, unknown) for standing in found.standings if standing.sound for unknown in standing.unknown]
        few = [(setting, unknown.sample) for setting, unknown in own if unknown.column == limit.column]
        if not few:
            continue
        needs = f"{smallest(limit.column)} {STATISTICS[limit.column].counts} in all runs{' of a setting' if several else ''}"
        yield f"Not known to keep {limit_text(limit)}, as that needs {needs}: {_having(few)}."


def _having(samples: Sequence[tuple[Setting, int]]) -> str:
    """``5 min has 8, 2 min has 20``."""
    named = ", ".join(f"{_short(setting)} has {sample:,}" for setting, sample in samples[:MOST_NAMED])
    others = len(samples) - MOST_NAMED
    return named + (f", {others} more {'has' if others == 1 else 'have'} too few as well" if others > 0 else "")


def _unranked(question: Question, found: Selection) -> Iterator[str]:
    """Settings without the sample of the percentile, or that none has it."""
    noun = STATISTICS[question.least].counts if question.least in STATISTICS else ""
    left = [standing for standing in found.standings if not standing.ranked and not standing.unknown and standing.sample is not None]
    if few := [(standing.setting, standing.sample) for standing in left if standing.sample is not None]:
        yield f"Not ranked, as {question.least} needs {found.needed} {noun} in all runs of a setting: {_having(few)}."
    sizes = [standing.sample for standing in found.eligible if standing.sample is not None]
    if sizes and max(sizes) < found.needed:
        span = " to ".join(f"{size:,}" for size in sorted({min(sizes), max(sizes)}))
        yield (f"No setting that could be chosen has the {found.needed} {noun} that {question.least} needs: "
               f"it is the longest of {span}, and compared as that.")  # fmt: skip


def _answer(question: Question, found: Selection) -> Iterator[str]:
    limits = " and ".join(limit_text(limit) for limit in question.limits)
    if found.advised is None:
        yield f"None of {len(found.standings)} settings keeps {limits}." if limits else "No setting can be chosen."
        return
    first = found.eligible[0]
    unranked = sum(not standing.ranked for standing in found.standings)
    among = (
        f"of {len(found.standings) - unranked} settings that are ranked"
        if unranked
        else f"of {len(found.standings)} setting{'s' if len(found.standings) > 1 else ''}"
    )
    if limits:
        known = [standing for standing in found.standings if standing.sound and not standing.unknown]
        kept = len(known) or sum(standing.sound for standing in found.standings)
        keep = ("keeps" if kept == 1 else "keep") if known else ("seems to keep" if kept == 1 else "seem to keep")
        mean = f" on average over {'all ' if found.compared < len(found.windows) else ''}{len(found.windows)} {found.sample}"
        limits += mean if len(found.windows) > 1 else ""
        among = f"{kept} of {len(found.standings)} settings {keep} {limits}"
        among = f"of the settings that keep {limits}" if question.racing else among  # those that are out may keep them
    value = f"{_value(question, first)}{_where(found)}"
    yield f"Least {question.least}: {value}, with {_named(question, first.setting)} ({among})."
    if found.compared < 2:
        yield "That is one window with one seed: there is no interval, and no setting is surely better than another."
        return
    yield from _set(question, found, first)
    yield from _limits(question, found)
    if found.sample == "seeds":
        yield "It is one window: its seeds say nothing about others."


def _set(question: Question, found: Selection, first: Standing) -> Iterator[str]:
    others = [name for name in found.best if name != first.setting]
    ties = found.ties
    if not others:
        if len(found.eligible) > 1 or any(standing.absent for standing in found.standings):  # those that are out lost surely
            yield f"It is surely the least: 95 % for all comparisons together{_next(question, found, first)}."
        return
    if len(ties) == len(others) and first.setting == found.advised:
        yield f"It ties with {_shorts(ties)}: their values agree to nine digits."
    else:
        yield f"It cannot be told apart from {len(others)} other{'s' if len(others) > 1 else ''}: {_shorts(others)}."
        if ties:
            yield f"{_short(found.advised or ())} ties with {_shorts(ties)}."
    assert found.advised is not None  # noqa: S101 - there is a first one
    why = {
        "reference": "it is compared with, and no other is surely better",
        "changes": "of these it changes least against what it is compared with",
        "least": "of equal ones it stands first" if ties and first.setting == found.advised else "of these it has the least mean",
    }[found.reason]
    took = found.standing(found.advised)
    value = "" if found.advised == first.setting else f" ({_value(question, took)})"
    yield f"Take {_named(question, found.advised)}{value}: {why}."


def _next(question: Question, found: Selection, first: Standing) -> str:
    """By how much another setting is worse: what is sure may be little."""
    others = [standing for standing in found.eligible[1:2] if standing.behind == first.behind]
    return "".join(f"; next is {_short(other.setting)}, by {text(question.least, other.value - first.value)}" for other in others)


def _limits(question: Question, found: Selection) -> Iterator[str]:
    """Where limits are broken, and what they leave open."""
    assert found.advised is not None  # noqa: S101 - there is a choice
    yield from _exceeded(question, found, found.standing(found.advised))
    if unsure := found.standing(found.advised).unsure:
        yield f"Whether it keeps its limit is not sure: the interval of {' and '.join(unsure)} reaches beyond."
    near = [standing for standing in found.standings if standing.broken and set(standing.broken) <= set(standing.unsure)]
    if near:
        those = _shorts([standing.setting for standing in near])
        yield f"{len(near)} more may keep {'it' if len(question.limits) == 1 else 'them'}: {those}."


def _exceeded(question: Question, found: Selection, advised: Standing) -> Iterator[str]:
    """The windows in which the advised setting breaks a limit, and which settings break none."""
    for limit in question.limits:
        windows = [window for window in advised.exceeded if window.column == limit.column]
        if not windows:
            continue
        bound = limit.at_most if math.isfinite(limit.at_most) else limit.at_least
        named = "; ".join(f"{window.window}: {text_beside(limit.column, window.value, bound)}" for window in windows[:MOST_NAMED])
        rest = f"; and {len(windows) - MOST_NAMED} more" if len(windows) > MOST_NAMED else ""
        count = len(found.windows)
        yield (f"{_short(advised.setting)} keeps {limit_text(limit)} in {count - len(windows)} of {count} {found.sample} only "
               f"(broken at {named}{rest}).")  # fmt: skip
    if advised.exceeded:
        always = [standing.setting for standing in found.eligible if not standing.exceeded]
        alone, everywhere = len(question.limits) == 1, f"in all {len(found.windows)} {found.sample}"
        if always:
            yield f"{'It is' if alone else 'All limits are'} kept {everywhere} with {_shorts(always)}."
        else:
            yield f"No setting keeps {'it' if alone else 'all limits'} {everywhere}."


def _value(question: Question, standing: Standing) -> str:
    bound = "more than " if standing.behind else ""
    return f"{bound}{text(question.least, standing.value)}{spread_text(question.least, standing.half_width)}"


def _where(found: Selection) -> str:
    if found.compared < 2:
        return ""
    return f" over {'the other ' if found.compared < len(found.windows) else ''}{found.compared} {found.sample}"


def _of(count: int, found: Selection) -> str:
    return f"{count} of {len(found.windows)} {found.sample}" if len(found.windows) > 1 else "this window"


def _noun(question: Question) -> str:
    """``checkpoint.interval`` is an interval; several keys make a setting."""
    return question.settings[0].rpartition(".")[2] if len(question.settings) == 1 else "setting"


def _named(question: Question, setting: Setting) -> str:
    return ", ".join(f"{key} {value}" for key, value in zip(question.settings, setting, strict=True))


def _short(setting: Setting) -> str:
    return " ".join(setting) if len(setting) == 1 else f"({', '.join(setting)})"


def _shorts(settings: Sequence[Setting]) -> str:
    return _listed([_short(setting) for setting in settings])


def _listed(names: Sequence[str]) -> str:
    rest = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return ", ".join(names[:MOST_NAMED]) + rest
