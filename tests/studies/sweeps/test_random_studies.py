"""Laws of the choice over drawn sweeps: what is advised keeps the limits by the rows, and nothing that does not matter changes it."""

import math
from dataclasses import replace
from functools import cache
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import ttest_1samp

from sim.results.sweep_answers import Limit, choose, differences, means
from tests.studies.sweeps.test_sentences_of_sweeps import KEY, Known, drawn

QUICK, NIGHTLY = range(3000, 3012), range(4000, 6000)
pytestmark = pytest.mark.parametrize(
    "seeds",
    [QUICK, pytest.param(NIGHTLY, marks=[pytest.mark.slow, pytest.mark.nightly])],
    ids=lambda seeds: str(len(seeds)),
)


def chosen(question, rows):
    return choose(rows, [KEY], question.least, question.limits, [value for _, value in question.against])


@cache
def chosen_of(seed):
    """What is chosen of a study as it was drawn: several laws ask for it, and it costs more than its rows."""
    return chosen(*drawn(seed))


def outcome(selection):
    """What must not change: the set, and which setting of it is advised unless several are equal."""
    advised = () if selection.ties else (selection.advised,)
    return (
        frozenset(selection.best),
        frozenset(selection.ties if selection.advised is None else {*selection.ties, selection.advised}),
        advised,
    )


def test_what_is_advised_keeps_the_limits(seeds):
    """In the mean over windows, which is counted again from the rows; no run of it failed or lacks a value."""
    advised = 0
    for seed in seeds:
        selection = chosen_of(seed)
        if selection.advised is None:
            continue
        question, rows = drawn(seed)
        (setting,), known = selection.advised, Known(question, rows)
        advised += 1
        assert selection.advised in selection.best, seed
        for limit in question.limits:
            own = known.table(limit.column)[setting]
            assert np.nanmean([value for value, _, _ in own]) <= limit.at_most, (seed, limit)
            assert not any(unfinished for _, unfinished, _ in own), (seed, limit)
        least = known.table(question.least)
        everywhere = known.failed(least)
        assert not any(lost for i, (_, _, lost) in enumerate(least[setting]) if i not in everywhere), seed
    assert advised > len(seeds) / 4


def test_the_order_of_rows_does_not_matter(seeds):
    for seed in seeds:
        question, rows = drawn(seed)
        shuffled = rows.sample(frac=1, random_state=seed)

        assert outcome(chosen_of(seed)) == outcome(chosen(question, shuffled)), seed


def test_the_unit_of_time_does_not_matter(seeds):
    """All values and limits of a column are multiplied."""
    for seed in seeds:
        question, rows = drawn(seed)
        factor = 2.0 ** (seed % 7 - 3)
        scaled = rows.assign(**{question.least: rows[question.least] * factor})
        limits = tuple(
            Limit(limit.column, at_most=limit.at_most * factor) if limit.column == question.least else limit
            for limit in question.limits
        )

        assert outcome(chosen_of(seed)) == outcome(chosen(replace(question, limits=limits), scaled)), seed


def test_a_setting_that_fails_everywhere_changes_no_limit_and_is_never_advised(seeds):
    """It may only make comparisons fewer: those that share the error are the settings that can be chosen."""
    for seed in seeds:
        question, rows = drawn(seed)
        dead = rows[rows[KEY] == rows[KEY].iloc[0]].assign(**{KEY: "dead", "job_status": "FAILED: killed"})
        before, after = chosen_of(seed), chosen(question, pd.concat([rows, dead], ignore_index=True))

        assert ("dead",) not in after.best, seed
        for standing in before.standings:
            assert standing.broken == after.standing(standing.setting).broken, (seed, standing.setting)


def near(value):
    return pytest.approx(value, rel=1e-9, abs=1e-9, nan_ok=True)


def interval(values, confidence=0.95):
    """(mean, half of its interval) by scipy; a single value has no interval, and equal ones a narrow one."""
    if len(values) < 2:
        return (float(values[0]) if values else math.nan), math.inf
    if np.ptp(values) == 0:
        return float(values[0]), 0.0
    found = ttest_1samp(values, 0.0).confidence_interval(confidence)
    return (found.low + found.high) / 2, (found.high - found.low) / 2


def counted_windows(known, table):
    left_out = known.hopeless(table) | known.failed(table)
    return [i for i in range(len(known.windows)) if i not in left_out]


def test_the_ranking_is_that_of_the_rows(seeds):
    """Value, interval, windows behind and failures of each setting, and the order of those that can be chosen."""
    behind = failed = 0
    for seed in seeds:
        question, rows = drawn(seed)
        selection, known = chosen_of(seed), Known(question, rows)
        table = known.table(question.least)
        counted, hopeless, all_failed = counted_windows(known, table), known.hopeless(table), known.failed(table)
        windows = selection.windows
        assert len(windows) == len(known.windows), seed
        assert selection.hopeless == tuple(windows[i] for i in sorted(hopeless)), seed
        assert selection.failed == tuple(windows[i] for i in sorted(all_failed)), seed
        for standing in selection.standings:
            own = table[standing.setting[0]]
            mean, half = interval([own[i][0] for i in counted if not math.isnan(own[i][0])])
            assert (near(mean), near(half)) == (standing.value, standing.half_width), (seed, standing)
            assert standing.behind == sum(cell[1] for i, cell in enumerate(own) if i not in hopeless), (seed, standing)
            assert standing.failed == sum(cell[2] for i, cell in enumerate(own) if i not in all_failed), (
                seed,
                standing,
            )
            assert standing.absent == 0, (seed, standing)
            of_limits = {limit: known.table(limit.column)[standing.setting[0]] for limit in question.limits}
            broken = tuple(
                limit.column
                for limit, cells in of_limits.items()
                if any(unfinished or lost for _, unfinished, lost in cells)
                or not np.nanmean([value for value, _, _ in cells]) <= limit.at_most
            )
            assert broken == standing.broken, (seed, standing)
            exceeded = sorted(
                (limit.column, window, value)
                for limit, cells in of_limits.items()
                for window, (value, _, _) in zip(windows, cells, strict=True)
                if value > limit.at_most
            )
            stated = sorted((found.column, found.window, found.value) for found in standing.exceeded)
            for expected, actual in zip(exceeded, stated, strict=True):
                assert expected[:2] == actual[:2], (seed, standing)
                assert near(expected[2]) == actual[2], (seed, standing)
            behind, failed = behind + (standing.behind > 0), failed + (standing.failed > 0)
        ranked = [(standing.behind, standing.value) for standing in selection.eligible]
        assert ranked == sorted(ranked), seed
    assert behind > len(seeds) / 4
    assert failed > len(seeds) / 4


def is_significantly_worse(table, i, j, counted, confidence):
    """Whether setting i is surely worse than j by a paired test of scipy over windows that both have.

    Where only i did not end, its difference counts no more than what makes the others clearest; where only j did not,
    nothing is sure.
    """
    pairs = [
        (table[i][w], table[j][w]) for w in counted if not (math.isnan(table[i][w][0]) or math.isnan(table[j][w][0]))
    ]
    if any(there[1] and not here[1] for here, there in pairs) or len(pairs) < 2:
        return False
    apart = [0.0 if math.isclose(here[0], there[0], rel_tol=1e-9) else here[0] - there[0] for here, there in pairs]
    is_bound = [here[1] and not there[1] for here, there in pairs]
    others = [d for d, bound in zip(apart, is_bound, strict=True) if not bound]
    if any(is_bound) and sum(others) > 0:
        clearest = sum(d * d for d in others) / sum(others)
        apart = [min(d, clearest) if bound else d for d, bound in zip(apart, is_bound, strict=True)]
    if np.ptp(apart) <= 1e-8 * abs(np.mean(apart)):
        return np.mean(apart) > 0
    return ttest_1samp(apart, 0.0).confidence_interval(confidence).low > 0


def test_the_set_of_the_best_is_that_of_paired_tests(seeds):
    """Who is out of the set is surely worse than another setting, with 5 % shared by all pairs."""
    told_apart = 0
    for seed in seeds:
        question, rows = drawn(seed)
        selection, known = chosen_of(seed), Known(question, rows)
        table = known.table(question.least)
        counted = counted_windows(known, table)
        names = [standing.setting[0] for standing in selection.eligible]
        confidence = 1 - 0.05 / max(1, len(list(combinations(table, 2))))
        expected = {
            name
            for name in names
            if not any(
                other != name and is_significantly_worse(table, name, other, counted, confidence) for other in names
            )
        } or set(names[:1])
        told_apart += len(expected) < len(names)
        assert {(name,) for name in expected} == set(selection.best), (seed, expected)
    assert told_apart > len(seeds) / 20


def test_means_and_differences_of_tables_are_those_of_the_rows(seeds):
    """The table of means, and the differences to a reference with an interval that holds for all settings together."""
    intervals = 0
    for seed in seeds:
        question, rows = drawn(seed)
        known, reference = Known(question, rows), rows[KEY].iloc[0]
        table = known.table(question.least)
        found = means(rows, [KEY], [question.least])
        apart = differences(rows, [KEY], question.least, {KEY: reference})
        pairs_of_settings = max(1, len(list(combinations(table, 2))))
        hopeless = known.hopeless(table)
        for setting, own in table.items():
            values, lost = [cell[0] for cell in own if not math.isnan(cell[0])], sum(cell[2] for cell in own)
            unfinished = sum(cell[1] for cell in own)
            mean, half = interval(values)
            row = found.loc[setting]
            assert lost == row[f"{question.least} lost"], (seed, setting)
            assert unfinished == row[f"{question.least} unfinished"], (seed, setting)
            assert len(values) == row[f"{question.least} n"], (seed, setting)
            assert near(math.nan if lost else mean) == row[question.least], (seed, setting)
            assert near(math.inf if lost or unfinished >= len(values) else half) == row[f"{question.least} ±"], (
                seed,
                setting,
            )
            pairs = [
                (a, b)
                for i, (a, b) in enumerate(zip(own, table[reference], strict=True))
                if not (i in hopeless or math.isnan(a[0]) or math.isnan(b[0]))
            ]
            difference, spread = interval([a[0] - b[0] for a, b in pairs], 1 - 0.05 / pairs_of_settings)
            any_lost = lost or any(cell[2] for cell in table[reference])
            assert near(math.nan if any_lost else difference) == apart.loc[setting, "difference"], (seed, setting)
            assert near(math.inf if any_lost else spread) == apart.loc[setting, "±"], (seed, setting)
            assert len(pairs) == apart.loc[setting, "windows"], (seed, setting)
            assert sum(a[1] or b[1] for a, b in pairs) == apart.loc[setting, "unfinished"], (seed, setting)
            intervals += setting != reference and 0 < spread < math.inf
    assert intervals > len(seeds)
