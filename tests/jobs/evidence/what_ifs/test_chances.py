"""How often a change keeps a limit: by families that the chance was not learned from."""

import json
from collections import defaultdict

import numpy as np
import pytest

from benchmarks.lab.backtest_verdicts import document, read_results
from benchmarks.lab.what_ifs_learned import LEVELS, ratios
from sim.jobs.evidence.what_ifs import FILE, LIKELY, chance, within

BARRIERS = ("barriers",)


def test_four_of_five_changes_of_a_family_left_out_come_out_within_what_is_said():
    """Eleven families with other barriers; each is judged by what the ten others say."""
    own = [setting for setting in read_results() if setting.kinds == BARRIERS]
    inside = defaultdict(list)
    for family in {setting.family for setting in own}:
        level = ratios(BARRIERS, [setting for setting in read_results() if setting.family != family])[
            LEVELS.index(LIKELY)
        ]
        inside[family] += [
            setting.observed_ms[1] <= level * setting.predicted_ms[1] for setting in own if setting.family == family
        ]

    assert 0.8 <= np.mean([np.mean(kept) for kept in inside.values()]) < 0.95


def test_chances_of_this_package_are_those_of_the_recordings():
    assert json.loads(document(read_results())) == json.loads(FILE.read_text())


@pytest.mark.parametrize("kinds", [(), BARRIERS, ("barriers", "storage")])
def test_a_chance_grows_with_the_room(kinds):
    """What four of five keep has that chance; with less room it is less."""
    assert chance(kinds, 0.5) <= chance(kinds, 1.0) < chance(kinds, 3.0)
    assert LIKELY - 1e-9 <= chance(kinds, within(kinds)) < LIKELY + 0.06
    assert chance(kinds, 1e9) < 1.0


def test_several_changes_at_once_leave_less_chance():
    assert chance(("barriers", "storage"), 1.5) < chance(BARRIERS, 1.5)
    assert within(("barriers", "storage")) > within(BARRIERS)


def test_kinds_that_few_families_changed_have_what_all_changes_have():
    assert (
        ratios(("network",), read_results()) == ratios(("storage",), read_results()) != ratios(BARRIERS, read_results())
    )
