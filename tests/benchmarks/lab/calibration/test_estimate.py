"""From votes to constants: medians, intervals, and what is kept for want of votes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.lab.calibration.estimate import calibrated, estimates, rounded_ms
from benchmarks.lab.calibration.estimators import CONSTANTS
from sim.model.scenario import Overheads

VOTES = st.lists(st.floats(0, 5000), min_size=2, max_size=12)


@given(VOTES, st.randoms())
def test_the_interval_lies_among_the_votes_and_holds_the_value(votes, shuffling):
    """Whatever the votes and whatever their order; one more of the value itself does not widen it beyond them."""
    found = estimates([{"trigger": vote} for vote in votes])["trigger"]
    shuffled = list(votes)
    shuffling.shuffle(shuffled)

    assert rounded_ms(min(votes)) <= found.low_ms <= found.value_ms <= found.high_ms <= rounded_ms(max(votes))
    assert found == estimates([{"trigger": vote} for vote in shuffled])["trigger"]


def test_the_interval_covers_what_was_planted():
    """95 % of the intervals of 25 noisy recordings hold the median they were drawn around: 93 % at least of 200 here."""
    drawn = np.random.default_rng(7).lognormal(np.log(30), 0.4, size=(200, 25))
    found = [estimates([{"close": vote} for vote in votes])["close"] for votes in drawn]

    assert sum(estimate.low_ms <= 30 <= estimate.high_ms for estimate in found) >= 186


def test_one_recording_of_many_does_not_move_a_constant():
    """A recording on a machine that stood still for a second has one vote."""
    calm = [{"acknowledge": 3.0}] * 8

    assert (
        estimates(calm)["acknowledge"].value_ms == estimates([*calm, {"acknowledge": 1000.0}])["acknowledge"].value_ms
    )


def test_what_too_few_recordings_tell_is_kept():
    """One vote says nothing of how sure it is; none says nothing at all.  The default stays, and says so."""
    default = Overheads(fail_ns=77_000_000)
    found = estimates([{"fail": 20.0, "trigger": 4.0}, {"trigger": 4.0}], default=default)

    assert (found["fail"].value_ms, found["fail"].recordings, found["fail"].low_ms, found["fail"].kept) == (
        77,
        1,
        None,
        True,
    )
    assert (found["close"].recordings, found["close"].kept) == (0, True)
    assert Overheads(fail_ns=77_000_000, trigger_ns=4_000_000) == calibrated(found, default)
    assert estimates([{"fail": 20.0}], at_least=1)["fail"].value_ms == 20


def test_no_constant_is_negative():
    """Differences of cut times may be."""
    assert estimates([{"notify": -1.2}, {"notify": -0.3}])["notify"].value_ms == 0
    assert set(CONSTANTS) == set(estimates([]))


@pytest.mark.parametrize(
    ("given_ms", "to_ms"), [(2.74, 2.5), (2.76, 3), (19.9, 20), (33.6, 34), (104, 100), (1234, 1200)]
)
def test_values_are_rounded_to_what_can_be_told_apart(given_ms, to_ms):
    assert to_ms == rounded_ms(given_ms)
