"""Every number in every sentence of a sweep's answer is made anew from its rows, over drawn sweeps; so are the counts of windows."""

import re

import numpy as np
import pytest
from scipy.stats import t

from sim.results.columns import text, text_unlike
from sim.results.formats import count_text
from sim.results.sweep_answers import Limit, limit_text
from sim.studies.sweeps.answer import sentence
from sim.studies.sweeps.sweep_file import Question
from tests.results.analysis.sweeps.made_up import rows_of
from tests.studies.comparison.sentence_numbers import numbers

KEY, SEEDS = "checkpoint.interval", range(40)
BOUNDS = {"caught_up_ms": 30_000.0, "end_to_end_p99_ms": 1_000.0, "lag_s": 20.0}


def drawn(seed):
    """(question, rows): settings, windows, seeds, bounds, failures, missing values, ties, limits and samples by chance."""
    chance = np.random.default_rng(seed)
    settings, windows, seeds = (
        [f"x{i}" for i in range(chance.integers(1, 9))],
        int(chance.integers(1, 9)),
        int(chance.integers(1, 4)),
    )
    least = str(chance.choice(["caught_up_ms", "end_to_end_p99_ms"]))
    load = chance.uniform(0, 1, (windows, 1))
    spread = chance.choice([0.0, 0.05, 0.5])

    def values(column):
        return {
            setting: BOUNDS[column]
            * (
                0.6
                + load
                + spread * chance.standard_normal()
                + 0.05 * spread * chance.standard_normal((windows, seeds))
            )
            for setting in settings
        }

    hard = [
        (setting, window)
        for setting in settings
        for window in range(windows)
        if chance.random() < chance.choice([0.0, 0.1, 0.6])
    ]
    rows = rows_of(
        values(least),
        column=least,
        bounds=hard if least == "caught_up_ms" else (),
        completed=int(chance.choice([3, 30, 200])),
    )
    for column in BOUNDS:
        if column != least:
            rows[column] = rows_of(values(column), column=column)[column]
    for column, value, share in (
        ("job_status", ("FAILED: killed", "RESTARTING FOR EVER: slots")[seed % 2], chance.choice([0.0, 0.1])),
        (least, np.nan, chance.choice([0.0, 0.05])),
    ):
        rows.loc[chance.random(len(rows)) < share, column] = value
    limits = [Limit(column, at_most=1.2 * BOUNDS[column]) for column in BOUNDS if chance.random() < 0.4]
    against = ((KEY, str(chance.choice(settings))),) if chance.random() < 0.5 else ()
    return Question((KEY,), (least,), least, tuple(limits), against), rows


class Known:
    """What the rows say, by other means than the answer: of each column the value of a window and a setting."""

    def __init__(self, question, rows):
        self.question, self.settings, found = question, list(dict.fromkeys(rows[KEY])), rows.to_dict("records")
        per = "window" if rows["window"].nunique() > 1 else "replication"
        self.windows = list(dict.fromkeys(rows[per]))
        self.worlds, self.cells = {}, {}
        for row in found:
            row["dead"] = row["job_status"] != "RUNNING"
            self.worlds.setdefault((row["window"], row["replication"]), []).append(row)
            self.cells.setdefault((row[per], row[KEY]), []).append(row)

    def cell(self, column, window, setting):
        """(value, unfinished, lost) of a window and a setting; seeds are averaged, and what did not end has the longest of its world."""
        scores, unfinished, lost = [], False, False
        for row in self.cells[window, setting]:
            world = self.worlds[row["window"], row["replication"]]
            alive = [other[column] for other in world if not other["dead"] and not np.isnan(other[column])]
            has_value = not row["dead"] and not np.isnan(row[column])
            is_open = row["unfinished"] == column and has_value
            lost |= not has_value and (bool(alive) or row["dead"])
            unfinished |= is_open
            scores += [max(alive) if is_open else row[column]] if has_value else []
        return (np.nan if lost or not scores else float(np.mean(scores))), unfinished, lost

    def table(self, column):
        return {setting: [self.cell(column, window, setting) for window in self.windows] for setting in self.settings}

    def hopeless(self, table):
        """Windows in which no setting ends, though some have a bound there."""
        own = {i: [cells[i] for cells in table.values()] for i in range(len(self.windows))}
        return {
            i
            for i, cells in own.items()
            if any(not np.isnan(value) for value, _, _ in cells)
            and all(unfinished or np.isnan(value) for value, unfinished, _ in cells)
        }

    def failed(self, table):
        """Windows in which every setting fails."""
        return {i for i in range(len(self.windows)) if all(cells[i][2] for cells in table.values())}

    def numbers(self, named):
        """Texts of all that a sentence may say that names the settings `named`."""
        question, least = self.question, self.table(self.question.least)
        count = range(len(self.windows))
        hopeless, failed = self.hopeless(least), self.failed(least)
        counted = [i for i in count if i not in hopeless | failed]
        with_a_value = [i for i in counted if any(not np.isnan(own[i][0]) for own in least.values())]
        yield from map(str, (len(self.windows), len(hopeless), len(failed), len(with_a_value), len(self.settings)))
        pairs = len(self.settings) * (len(self.settings) - 1) / 2
        yield from ("2", "5")
        yield from (
            count_text(t.ppf(1 - 0.025 / pairs, n - 1) / np.sqrt(n)) for n in (2, 5) if len(counted) == 2 and pairs
        )
        means = []
        for setting, own in least.items():
            known = np.array([own[i][0] for i in counted if not np.isnan(own[i][0])])
            yield from map(
                str,
                (sum(own[i][1] for i in count if i not in hopeless), sum(own[i][2] for i in count if i not in failed)),
            )
            if len(known) and setting in named:
                means.append(known.mean())
                half = (
                    t.ppf(0.975, len(known) - 1) * known.std(ddof=1) / np.sqrt(len(known)) if len(known) > 1 else np.nan
                )
                yield from (text(question.least, known.mean()), text(question.least, half))
        yield from (text(question.least, a - b) for a in means for b in means if a >= b)
        for limit in question.limits:
            yield from numbers(limit_text(limit))
            for setting, own in self.table(limit.column).items():
                broken = [cell[0] for cell in own if cell[0] > limit.at_most]
                yield from (str(len(own) - len(broken)), str(len(broken) - 4))
                yield from (text_unlike(limit.column, value, limit.at_most) for value in broken if setting in named)
        for column in {question.least, *(limit.column for limit in question.limits)} & {"end_to_end_p99_ms"}:
            yield "100"
            runs = [
                row for found in self.cells.values() for row in found if not row["dead"] and not np.isnan(row[column])
            ]
            yield from (
                f"{sum(row['completed'] for row in runs if row[KEY] == setting):,}" for setting in self.settings
            )
        shares = [
            row["busy_share"]
            for i in hopeless
            for setting in self.settings
            for row in self.cells[self.windows[i], setting]
            if not row["dead"]
        ]
        yield from ("95 %", f"{100 * np.mean(shares or [0.0]):.0f} %")


def counts_of_settings(sentence):
    """Counts of settings depend on the comparisons themselves: each is held to how many are named, or to what is left of all."""
    for match in re.finditer(
        r"cannot be told apart from (\d+) others?: ([^.]*)\.|(\d+) more may keep (?:it|them): ([^.]*)\.", sentence
    ):
        stated, named = int(match[1] or match[3]), match[2] or match[4]
        unnamed = int(found[1]) if (found := re.search(r" and (\d+) more", named)) else 0
        yield stated, len(re.findall(r"\bx\d", named)) + unnamed


NAMED = re.compile(r"(?:with checkpoint.interval|Take checkpoint.interval|next is) (x\d)")
"""The settings whose values a sentence says."""


def without_counts(sentence):
    sentence = re.sub(
        r"apart from \d+ others?|\d+ more may keep| and \d+ more|\d+ more settings? fails?|\d+ more settings? in some|\d+ more ha(?:s|ve)",
        "",
        sentence,
    )
    return re.sub(
        r"\b\d+ (of \d+ settings (?:seem to )?(?:seems to )?keep)",
        r"\1",
        re.sub(r"of \d+ settings that are ranked", "", sentence),
    )


def missing(question, rows, found):
    known = set(Known(question, rows).numbers(set(NAMED.findall(found))))
    return [number for number in re.findall(r"\d{1,3}(?:,\d{3})+", found) if number not in known] + [
        number
        for number in numbers(re.sub(r"\d{1,3}(?:,\d{3})+", "", without_counts(found)))
        if number.lstrip("±") not in known
    ]


@pytest.mark.parametrize(
    "seeds", [SEEDS, pytest.param(range(100, 2100), marks=[pytest.mark.slow, pytest.mark.nightly])], ids=len
)
def test_numbers_of_sentences_are_those_of_the_rows(seeds):
    count, lost = 0, {}
    for seed in seeds:
        question, rows = drawn(seed)
        found = sentence(question, rows)
        count += len(numbers(found))
        if wrong := missing(question, rows, found):
            lost[seed] = (found, wrong)
        assert [pair for pair in counts_of_settings(found) if pair[0] != pair[1]] == [], found

    assert lost == {}
    assert count > 6 * len(seeds)
