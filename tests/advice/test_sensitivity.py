"""By how much an unknown moves the advice, and which settings are tried at its values."""

import math
from types import SimpleNamespace

import pytest

from sim.advice.sensitivity import MAX_LISTED_INPUTS, Sensitivity, _moved, shortlist

STEADY = {"checkpoint_ms": 100.0, "recovery_ms": 5000.0, "loss": 0.02, "visible_ms": math.nan}


def moved(**changes):
    return _moved(SimpleNamespace(**STEADY), SimpleNamespace(**(STEADY | changes)))


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, {}),
        ({"checkpoint_ms": 200.0}, {"checkpoint_ms": math.log(2)}),
        ({"checkpoint_ms": 50.0}, {"checkpoint_ms": -math.log(2)}),
        ({"loss": 0.05}, {"loss": 0.3}),
        ({"loss": 0.0}, {"loss": -0.2}),
        ({"recovery_ms": math.inf}, {"recovery_ms": math.inf}),
        ({"recovery_ms": 0.0}, {"recovery_ms": math.inf}),
        ({"recovery_ms": math.nan, "visible_ms": 7.0}, {}),
    ],
)
def test_a_quantity_moves_by_a_factor_and_a_loss_by_tenths(changes, expected):
    """What cannot be compared does not move; beginning or ceasing to be infinite is the largest move."""
    assert pytest.approx(expected) == moved(**changes)


def test_the_largest_move_is_that_of_any_value_and_quantity():
    base = SimpleNamespace(**STEADY)
    ends = [
        (value, SimpleNamespace(**(STEADY | change)), None)
        for value, change in enumerate(({"checkpoint_ms": 25.0}, {"loss": 0.1}))
    ]

    assert math.log(4) == pytest.approx(Sensitivity("rate", "?", 1, tuple(ends), base).largest_move)
    assert pytest.approx(Sensitivity("rate", "?", 1, tuple(ends[1:]), base).largest_move) == 0.8
    assert Sensitivity("rate", "?", 1, ((1, None, None),), base).largest_move == 0.0


def racing(chosen, *, today=None, breaks=()):
    """Two protocols at five intervals; the shorter, the less is lost."""
    settings = [
        SimpleNamespace(
            name=(protocol, f"{seconds} s"), interval=f"{seconds} s", protocol=protocol, lost=seconds, breaks=breaks
        )
        for protocol in ("aligned", "unaligned")
        for seconds in (5, 10, 30, 60, 120)
    ]
    named = {setting.name: setting for setting in settings}
    return SimpleNamespace(
        settings=settings,
        chosen=named.get(chosen),
        nearest=named["aligned", "60 s"],
        today=named.get(today),
        candidate_of=lambda name: name,
    )


@pytest.mark.parametrize(
    ("chosen", "seconds"), [("5 s", {5, 10}), ("10 s", {5, 10, 30}), ("60 s", {30, 60, 120}), ("120 s", {60, 120})]
)
def test_replacements_are_at_the_interval_and_its_neighbours(chosen, seconds):
    """The one that is advised stands first, then the other protocol at its interval, then the others of its own, the best first."""
    found = shortlist(racing(("aligned", chosen)))

    assert [("aligned", chosen), ("unaligned", chosen)] == found[:2]
    assert {f"{n} s" for n in seconds} == {interval for _, interval in found}
    assert 2 * len(seconds) == len(found) <= MAX_LISTED_INPUTS
    own = [interval for protocol, interval in found[2:] if protocol == "aligned"]
    assert own == [interval for _, interval in found[2 : 2 + len(own)]] == sorted(own, key=lambda text: int(text[:-2]))


def test_todays_setting_is_tried_whatever_its_interval():
    found = shortlist(racing(("aligned", "5 s"), today=("unaligned", "120 s")))

    assert found[:2] == [("aligned", "5 s"), ("unaligned", "120 s")]
    assert shortlist(racing(None))[0] == ("aligned", "60 s")  # the nearest to the limits
