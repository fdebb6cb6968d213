"""The answer to the question of a sweep file (`answer:`): tables and a sentence from its results."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import pandas as pd

from sim.analysis.section import Section
from sim.analysis.sweeps.answers import Best, Limit, best, differences, means, worlds
from sim.analysis.sweeps.effects import effects
from sim.analysis.sweeps.measure import text
from sim.sweeps.file.question import Question

__all__ = ["FEW", "groups", "sections", "sentence"]

FEW = 5
"""Fewer windows x seeds tell no setting from another: resampled, four rows give no more than 35 different sets."""


def sections(question: Question, results: pd.DataFrame, complete: pd.DataFrame | None = None) -> list[Section]:
    """Tables: the means of the settings, their differences to the reference, and the effect of each axis on the first column.

    `complete`: the rows of worlds that all settings have met, for the effects; None: all rows.
    """
    if results[results["strategy"] != "none"].empty:
        return []
    tables = [_means(question, results)]
    if question.against:
        tables.append(_differences(question, results))
    shares = effects(results if complete is None else complete, question.varied, question.least or question.show[0])
    if len(shares) > 1:
        rows = [[axis, _percent(first), _percent(total)] for axis, first, total in shares.itertuples(index=False, name=None)]
        tables.append(Section(f"What {question.least or question.show[0]} depends on", ["key", "alone", "with others"], rows))
    return tables


def sentence(question: Question, results: pd.DataFrame) -> str:
    """The best setting, its value and its confidence, a line for each value of `by`; empty if the question wants no best one."""
    if not question.least:
        return ""
    return "\n".join(f"{question.by} {value}: {_best(question, rows)}" if value else _best(question, rows)
                     for value, rows in groups(question, results))  # fmt: skip


def groups(question: Question, results: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """(value of `by`, its rows), in the order of the plan; without `by` all rows, under ""."""
    if not question.by:
        yield "", results
        return
    rows = results[results["strategy"] != "none"]
    for value in rows[question.by].dropna().unique():
        yield value, rows[rows[question.by] == value]


def _best(question: Question, results: pd.DataFrame) -> str:
    found: Best = best(results, question.settings, question.least, question.limits)
    limits = " and ".join(_limit(limit) for limit in question.limits)
    if found.setting is None:
        return f"None of {found.settings} settings keeps {limits or 'a value at all'} as a mean over windows x seeds."
    chosen = ", ".join(f"{key} {value}" for key, value in found.setting.items())
    among = f"of {found.settings} settings"
    if limits:
        keep = "keeps" if found.within_limits == 1 else "keep"
        among = f"{found.within_limits} of {found.settings} settings {keep} {limits}"
        among = f"of the settings that keep {limits}" if question.racing else among  # those that are out may keep them
    least = f"Least {question.least}: {text(question.least, found.value)} on average, with {chosen} ({among})."
    if found.settings > 1 and (count := len(worlds(results, question.settings, question.least))) < FEW:
        rows = "one window x seed is" if count == 1 else f"{count} windows x seeds are"
        return f"{least} But {rows} too few to tell: {FEW} or more are needed, by more windows or replications."
    return f"{least} Chosen in {_share(found.confidence)} of bootstrap resamples."


def _means(question: Question, results: pd.DataFrame) -> Section:
    rows = [
        [*_key(value), *_values(index), *(_mean(column, row) for column in question.show)]
        for value, group in groups(question, results)
        for index, row in means(group, question.settings, question.show).iterrows()
    ]
    return Section("Mean over windows x seeds, with 95 % confidence", [*_key(question.by), *question.settings, *question.show], rows)


def _mean(column: str, row: pd.Series[float]) -> str:
    return f"{text(column, row[column])}{_sure(column, row[f'{column} ±'])}" + _of(row[f"{column} n"], row["worlds"])


def _differences(question: Question, results: pd.DataFrame) -> Section:
    reference: Mapping[str, str] = dict(question.against)
    tables_of = {
        value: {column: differences(group, question.settings, column, reference) for column in question.show}
        for value, group in groups(question, results)
    }
    most = {value: max(int(table["worlds"].max()) for table in tables.values()) for value, tables in tables_of.items()}
    rows = [
        [*_key(value), *_values(index), *(_apart(column, table.iloc[i], most[value]) for column, table in tables.items())]
        for value, tables in tables_of.items()
        for i, index in enumerate(next(iter(tables.values())).index)
        if _values(index) != list(reference.values())  # it does not differ from itself
    ]
    against = ", ".join(f"{key} {value}" for key, value in reference.items())
    counts = " to ".join(map(str, sorted({min(most.values()), max(most.values())})))
    title = f"Difference to {against}, world by world ({counts} of them; n where fewer have both values)"
    return Section(title, [*_key(question.by), *question.settings, *question.show], rows)


def _key(value: str) -> list[str]:
    """The first cells of a row: the value of `by`, if there is one."""
    return [value] if value else []


def _apart(column: str, row: pd.Series[float], most: int) -> str:
    change = _signed(column, row["difference"])
    return f"{change}{_sure(column, row['±'])}" + _of(row["worlds"], most)


def _sure(column: str, spread: float) -> str:
    """Half the confidence interval; empty for a single world."""
    return f" ± {_spread(column, spread)}" if math.isfinite(spread) else ""


def _of(count: float, worlds: float) -> str:
    """A remark if some worlds have no value: they may have been worse."""
    return f" (n={count:.0f})" if 0 < count < worlds else ""


def _values(index: object) -> list[str]:
    return [str(value) for value in (index if isinstance(index, tuple) else (index,))]


def _signed(column: str, value: float) -> str:
    number = text(column, value)
    return f"+{number}" if value > 0 and number[0].isdigit() else number


def _spread(column: str, value: float) -> str:
    return text(column, value).lstrip("+±")


def _share(confidence: float) -> str:
    return "> 99 %" if confidence > 0.99 else f"{100 * confidence:.0f} %"


def _percent(share: float) -> str:
    return "-" if math.isnan(share) else f"{100 * max(share, 0.0):.0f} %"  # below 0 by rounding only


def _limit(limit: Limit) -> str:
    upper = math.isfinite(limit.at_most)
    return f"{limit.column} {'at most' if upper else 'at least'} {text(limit.column, limit.at_most if upper else limit.at_least)}"
