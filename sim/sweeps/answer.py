"""The answer to the question of a sweep file (`answer:`): tables from its results.  `sim.sweeps.headline` has the sentences."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence

import pandas as pd

from sim.analysis.section import TextTable
from sim.analysis.sweeps.answers import Limit, differences, means, settings_of
from sim.analysis.sweeps.choice import Selection, Setting, choose
from sim.analysis.sweeps.effects import effects
from sim.analysis.sweeps.measure import limit_text, spread_text, text
from sim.analysis.sweeps.observed import Observed, observed, planned, scored
from sim.analysis.sweeps.samples import counts, smallest
from sim.quantities.results import STATISTICS
from sim.sweeps.file.question import Question
from sim.sweeps.headline import headline

MOST_WINDOWS = 24
"""Windows of a table: those in which something did not end or failed come first."""
MOST_ACROSS = 5
"""Settings that stand side by side in the table of windows; of more the least, the reference and the most do."""

Out = Mapping[str, Collection[Setting]]
"""Value of `by` -> settings that lost a race and did not run everywhere."""


def sections(question: Question, results: pd.DataFrame, complete: pd.DataFrame | None = None, out: Out | None = None) -> list[TextTable]:
    """Tables: the means of the settings, their differences to the reference, each window, and the effect of each axis on the first column.

    `results`: failed rows too.  `complete`: the rows of worlds that all settings have met, for the effects; None: all rows.
    """
    if planned(results).empty:
        return []
    tables = [_means(question, results)]
    if question.against:
        tables.append(_differences(question, results))
    selected = {value: _choice(question, rows, out, value).advised if question.least else None for value, rows in groups(question, results)}
    tables.extend(windows for column in _decisive(question) if (windows := _windows(question, results, column, selected)))
    if shares := _effects(question, results if complete is None else complete):
        tables.append(shares)
    return tables


def sentence(question: Question, results: pd.DataFrame, out: Out | None = None) -> str:
    """Which setting to take, what is against it, and how sure that is; a paragraph for each value of `by`.

    Empty if the question wants no best one.
    """
    if not question.least:
        return ""
    return "\n".join(f"{question.by} {value}: {_best(question, rows, out, value)}" if value else _best(question, rows, out, value)
                     for value, rows in groups(question, results))  # fmt: skip


def groups(question: Question, results: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """(value of `by`, its rows), in the order of the plan; without `by` all rows, under ""."""
    if not question.by:
        yield "", results
        return
    rows = planned(results)
    for value in rows[question.by].dropna().unique():
        yield value, rows[rows[question.by] == value]


def _best(question: Question, results: pd.DataFrame, out: Out | None, value: str) -> str:
    return headline(question, results, _choice(question, results, out, value))


def _choice(question: Question, results: pd.DataFrame, out: Out | None, value: str) -> Selection:
    reference, lost = [own for _, own in question.against], (out or {}).get(value, ())
    return choose(results, question.settings, question.least, question.limits, reference, lost)


def _means(question: Question, results: pd.DataFrame) -> TextTable:
    columns = _columns(question)
    tables = [(value, group, means(group, question.settings, columns)) for value, group in groups(question, results)]
    rows = [
        [*_key(value), *setting, *(_mean(column, row) for column in columns)]
        for value, _, table in tables
        for setting, (_, row) in zip(settings_of(table.index), table.iterrows(), strict=True)
    ]
    bounds = any((table[f"{column} unfinished"] > 0).any() for _, _, table in tables for column in columns)
    note = ". More than: it did not end everywhere, and counts there with the longest time known" if bounds else ""
    title = f"Mean {_over([group for _, group, _ in tables], question)}{note}{_samples(question, results)}"
    return TextTable(title, [*_key(question.by), *question.settings, *columns], rows)


def _columns(question: Question) -> list[str]:
    """The columns of the table of means.  Columns that decide stand there, too: last, unless they are asked for."""
    least = [question.least] if question.least else []
    return list(dict.fromkeys([*question.show, *least, *(limit.column for limit in question.limits)]))


def _samples(question: Question, results: pd.DataFrame) -> str:
    """Percentiles that stand on fewer than they need in some run that has a value."""
    found = []
    for column in _columns(question):
        sizes = counts(results, column)
        if not sizes.empty and sizes.min() < (needed := smallest(column)):
            span = " to ".join(map(str, sorted({int(sizes.min()), int(sizes.max())})))
            found.append(
                f". {column} is of {span} {STATISTICS[column].counts} a run and needs {needed}: it is hardly more than the longest"
            )
    return "".join(found)


def _over(tables: Sequence[pd.DataFrame], question: Question) -> str:
    """The sample of the mean, in words."""
    seen = [observed(rows, question.settings, question.show[0]) for rows in tables]
    counts = sorted({len(table.scores) for table in seen})
    count = f"{counts[0]} to {counts[-1]}" if len(counts) > 1 else str(counts[0])
    match seen[0].sample:
        case "seeds":
            return f"over {count} seeds of a single window, with 95 % confidence for this window alone"
        case _ if counts[-1] == 1:
            return "of one window: it has no interval over windows"
        case sample:
            return f"over {count} {sample}, seeds averaged within each, with 95 % confidence"


def _mean(column: str, row: pd.Series[float]) -> str:
    known, unfinished, lost, of = (int(row[f"{column} {name}"]) for name in ("n", "unfinished", "lost", "of"))
    if lost:
        return f"- (fails in {lost} of {of})"
    if not known:
        return "-"
    value = text(column, row[column])
    if not unfinished:
        return f"{value}{spread_text(column, row[f'{column} ±'])}" + (f" (n={known})" if known < of else "")
    where = f"all {known}" if unfinished == known else f"{unfinished} of {known}"
    return f"> {value}{spread_text(column, row[f'{column} ±'])} (not ended in {where})"


def _differences(question: Question, results: pd.DataFrame) -> TextTable:
    reference: Mapping[str, str] = dict(question.against)
    tables_of = {
        value: {column: differences(group, question.settings, column, reference) for column in question.show}
        for value, group in groups(question, results)
    }
    most = {value: max(int(table["windows"].max()) for table in tables.values()) for value, tables in tables_of.items()}
    rows = [
        [*_key(value), *setting, *(_apart(column, table.iloc[i], most[value]) for column, table in tables.items())]
        for value, tables in tables_of.items()
        for i, setting in enumerate(settings_of(next(iter(tables.values())).index))
        if list(setting) != list(reference.values())  # it does not differ from itself
    ]
    against = ", ".join(f"{key} {value}" for key, value in reference.items())
    together = ", with 95 % confidence for all settings of a column together" if len(rows) > len(tables_of) else ""
    title = f"Difference to {against}, window by window{together}"
    return TextTable(title, [*_key(question.by), *question.settings, *question.show], rows)


def _apart(column: str, row: pd.Series[float], most: int) -> str:
    if math.isnan(row["difference"]) or row["unfinished"] == row["windows"]:
        return "-"
    marks = [f"n={row['windows']:.0f}"] if row["windows"] < most else []
    marks += [f"not ended in {row['unfinished']:.0f}"] if row["unfinished"] else []
    return f"{_signed(column, row['difference'])}{spread_text(column, row['±'])}" + (f" ({', '.join(marks)})" if marks else "")


def _decisive(question: Question) -> list[str]:
    """The columns that are told window by window: the least, and those of limits."""
    return list(dict.fromkeys([question.least or question.show[0], *(limit.column for limit in question.limits)]))


def _windows(question: Question, results: pd.DataFrame, column: str, selected: Mapping[str, Setting | None]) -> TextTable | None:
    """A column, window by window; None: there is a single window.  `selected`: value of `by` -> the setting that the sentence takes."""
    seen = {value: observed(group, question.settings, column) for value, group in groups(question, results)}
    names = {value: settings_of(table.scores.columns) for value, table in seen.items()}
    if sum(len(table.scores) for table in seen.values()) < 2 or any(table.sample == "seeds" for table in seen.values()):
        return None
    first = next(iter(names.values()))
    side_by_side = len(first) <= MOST_ACROSS and all(own == first for own in names.values())
    limits = [limit for limit in question.limits if limit.column == column]
    named = {"taken": selected, "compared with": dict.fromkeys(selected, tuple(own for _, own in question.against))}
    named = {name: settings for name, settings in named.items() if any(settings.values())}
    header = [", ".join(name) for name in first] if side_by_side else [*(["kept by"] if limits else []), "ended", "least", *named, "most"]

    def in_window(value: str, table: Observed, i: int) -> list[str]:
        if side_by_side:
            return _cells(table, i, column)
        return _brief(table, i, column, limits, [settings[value] for settings in named.values()])

    rows = [
        (bool(table.unfinished.iloc[i].any() or table.lost.iloc[i].any()), [
            *_key(value), str(table.scores.index[i]), *in_window(value, table, i),
        ])
        for value, table in seen.items() for i in range(len(table.scores))
    ]  # fmt: skip
    chosen = rows if len(rows) <= MOST_WINDOWS else sorted(rows, key=lambda row: not row[0])[:MOST_WINDOWS]
    part = "" if chosen is rows else f" ({MOST_WINDOWS} of {len(rows)}: those where something did not end or failed first)"
    bounds = "".join(f" (limit: {limit_text(limit).removeprefix(column).strip()})" for limit in limits)
    return TextTable(f"{column} in each window{bounds}{part}", [*_key(question.by), "window", *header], [row for _, row in chosen])


def _cells(seen: Observed, i: int, column: str) -> list[str]:
    parts = (table.iloc[i].tolist() for table in (seen.scores, seen.unfinished, seen.lost))
    return [_cell(column, score, unfinished=unfinished, lost=lost) for score, unfinished, lost in zip(*parts, strict=True)]


def _brief(seen: Observed, i: int, column: str, limits: Sequence[Limit], named: Sequence[Setting | None]) -> list[str]:
    """How many settings keep the limits and how many ended, the least of them, the `named` ones, and the most."""
    cells, score, unfinished = _cells(seen, i, column), seen.scores.iloc[i].tolist(), seen.unfinished.iloc[i].tolist()
    ran = (seen.runs.iloc[i] > 0).sum()
    kept = [all(limit.keeps(score[k], is_bound=unfinished[k]) for limit in limits) for k in range(len(score))]
    order = sorted((k for k in range(len(score)) if not math.isnan(score[k])), key=lambda k: (unfinished[k], score[k]))
    least, most = (cells[order[0]], cells[order[-1]]) if order else ("-", "-")
    names = settings_of(seen.scores.columns)
    others = [cells[names.index(name)] if name in names else "-" for name in named]
    ended = sum(not unfinished[k] for k in order)
    first = [f"{sum(kept)} of {ran}"] if limits else []
    return [*first, f"{ended} of {ran}", least, *others, "fails" if seen.lost.iloc[i].any() else most]


def _cell(column: str, score: float, *, unfinished: bool, lost: bool) -> str:
    if lost:
        return "fails"
    return "-" if math.isnan(score) else f"{'> ' if unfinished else ''}{text(column, score)}"


def _effects(question: Question, results: pd.DataFrame) -> TextTable | None:
    column = question.least or question.show[0]
    shares, used, of = effects(results, question.varied, column), scored(results, column)["value"].notna().sum(), len(planned(results))
    if len(shares) < 2:
        return None
    rows = [[axis, _percent(first), _percent(total)] for axis, first, total in shares.itertuples(index=False, name=None)]
    part = "" if used == of else f" ({used:,} of {of:,} runs have a value)"
    return TextTable(f"What {column} depends on{part}", ["key", "alone", "with others"], rows)


def _key(value: str) -> list[str]:
    """The first cells of a row: the value of `by`, if there is one."""
    return [value] if value else []


def _signed(column: str, value: float) -> str:
    number = text(column, value)
    return f"+{number}" if value > 0 and number[0].isdigit() else number


def _percent(share: float) -> str:
    return "-" if math.isnan(share) else f"{100 * max(share, 0.0):.0f} %"  # below 0 by rounding only
