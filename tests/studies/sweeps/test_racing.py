"""Which cells of a race run, and what is told about the others."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from sim.model.schema.study import load
from sim.results.sweep_answers import choose
from sim.studies.plan import cells
from sim.studies.sweeps.racing import SweepRace
from sim.studies.sweeps.sweep_file import Question
from tests.conftest import STUDY

SETTINGS, WINDOWS = ("1 s", "2 s", "4 s"), tuple(f"{i} min" for i in range(40))
QUESTION = Question(("checkpoint.interval",), ("lag_s",), ("window", "checkpoint.interval"), "lag_s", racing=8)
LAG_S = {"1 s": 5.0, "2 s": 5.01, "4 s": 9.0}


@pytest.fixture(scope="module")
def planned(tmp_path_factory):
    """Forty windows with three settings."""
    file = tmp_path_factory.mktemp("race") / "tiny.yaml"
    file.write_text(STUDY.replace("[aligned, unaligned]", "aligned"))
    (scenario,) = load(file).scenarios
    found = []
    for i, window in enumerate(WINDOWS):
        for setting in SETTINGS:
            axes = (("window", window), ("load", "high" if i % 2 else "low"), ("checkpoint.interval", setting))
            found.append(replace(scenario, run=replace(scenario.run, seed=len(found)), axes=axes))
    return cells(found)


def results_of(run, lag_s=LAG_S):
    """Windows differ much, settings as `lag_s` says, and a little by chance."""
    chance = np.random.default_rng(1)
    found = []
    for cell in run:
        axes = dict(cell.scenario.axes)
        value = lag_s[axes["checkpoint.interval"]] + WINDOWS.index(axes["window"]) + 0.1 * chance.standard_normal()
        row = {
            "cell": cell.id,
            "scenario": "s",
            "replication": 0,
            "seed": 1,
            **axes,
            "strategy": "aligned",
            "status": "ok",
            "lag_s": value,
        }
        found.append(row)
    return pd.DataFrame(found)


def run(race, lag_s=LAG_S):
    """The number of cells in each round."""
    counts = [len(race.cells)]
    while race.begin_next_round(results_of(race.cells, lag_s)):
        counts.append(len(race.cells))
    return counts


def settings_run(race):
    return pd.Series([dict(cell.scenario.axes)["checkpoint.interval"] for cell in race.cells]).value_counts().to_dict()


def test_losers_do_not_run_everywhere(planned):
    """Three settings meet eight windows; the two that are close to each other meet all."""
    race = SweepRace(QUESTION, planned)

    assert run(race) == [3 * 8, 2 * 32 + 8, 2 * 40 + 8]
    assert settings_run(race) == {"1 s": 40, "2 s": 40, "4 s": 8}
    (section,) = race.sections()
    assert section.rows == [["4 s", "lag_s", "8 of 40"]]
    assert race.sentence() == "Racing left out 32 of 120 runs: those settings cannot be the best."


def test_the_choice_is_that_of_all_runs(planned):
    """What was left out is out of the set of those that cannot be told apart, too."""
    race = SweepRace(QUESTION, planned)
    run(race)
    of_all = results_of(planned)
    of_race = of_all[of_all["cell"].isin([cell.id for cell in race.cells])]

    expected = choose(of_all, ("checkpoint.interval",), "lag_s")
    found = choose(of_race, ("checkpoint.interval",), "lag_s", out=race.out[""])
    assert (expected.best, expected.advised) == (found.best, found.advised)
    assert [("4 s",)] == race.out[""] == [standing.setting for standing in found.standings if standing.absent]


def test_the_reference_runs_everywhere(planned):
    """Others are compared with it, window by window."""
    race = SweepRace(replace(QUESTION, against=(("checkpoint.interval", "4 s"),)), planned)

    assert run(race) == [24, 96, 120]
    assert race.sections() == []
    assert race.sentence() == ""


def test_each_value_of_by_has_a_race(planned):
    """Each value has twenty windows, and eight of them come first."""
    race = SweepRace(replace(QUESTION, by="load"), planned)
    run(race)

    assert settings_run(race) == {"1 s": 40, "2 s": 40, "4 s": 16}
    assert race.sections()[0].rows == [["high", "4 s", "lag_s", "8 of 20"], ["low", "4 s", "lag_s", "8 of 20"]]


def test_the_first_windows_are_spread_over_all(planned):
    race = SweepRace(QUESTION, planned)
    first = sorted(WINDOWS.index(dict(cell.scenario.axes)["window"]) for cell in race.first)

    assert race.first == race.cells
    assert len(set(first)) == 8
    assert max(np.diff(sorted(set(first)))) <= 8
    assert first[-1] >= 32


def test_windows_come_before_seeds(planned):
    """Eight seeds of one window are one value: a first round of eight worlds meets eight windows, however many seeds there are."""
    seeded = [replace(cell, replication=k) for cell in planned for k in range(5)]
    race = SweepRace(QUESTION, seeded)
    met = [(dict(cell.scenario.axes)["window"], cell.replication) for cell in race.first]

    assert 8 == len(set(met)) == len({window for window, _ in met})
    assert {0} == {seed for _, seed in met}
    wide = SweepRace(replace(QUESTION, racing=60), seeded)
    assert set(WINDOWS) == {dict(cell.scenario.axes)["window"] for cell in wide.first}


def test_a_first_round_of_all_windows_is_no_race(planned):
    race = SweepRace(replace(QUESTION, racing=40), planned)

    assert run(race) == [120]
