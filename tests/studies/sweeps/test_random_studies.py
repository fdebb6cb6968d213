"""Laws of the choice over drawn sweeps: what is advised keeps the limits by the rows, and nothing that does not matter changes it."""

from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
import pytest

from sim.results.sweep_answers import Limit, choose
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
