"""What recordings say of each kind of what-if: few enough of a job that was left out lie outside."""

import pytest

from benchmarks.lab.what_ifs_learned import CrossPrediction, learned
from sim.jobs.evidence.what_ifs import MIN_FAMILIES

BARRIERS = ("barriers",)


def setting(family, kinds, off_by, history=1.25):
    return CrossPrediction(
        str(family), "a", "b", kinds, (100.0, 100.0), (100.0, 100.0), (off_by, off_by), (history, history)
    )


def beyond(settings, kinds):
    return learned(settings)[kinds].beyond[0]


def test_with_enough_families_a_tenth_may_lie_outside():
    """Nineteen families: one of them may be outside as a whole; of nine none may."""
    off = [1.25 * (1 + 0.1 * k) for k in range(2 * MIN_FAMILIES + 1)]
    families = [setting(k, BARRIERS, off_by) for k, off_by in enumerate(off)]

    assert pytest.approx(off[-2] / 1.25) == beyond(families, BARRIERS)
    assert pytest.approx(off[MIN_FAMILIES - 1] / 1.25) == beyond(families[:MIN_FAMILIES], BARRIERS)


def test_a_family_counts_once_however_many_runs_it_has():
    """A tenth of its runs is a tenth of a family."""
    even = [setting(k, BARRIERS, 1.25) for k in range(MIN_FAMILIES)]
    one_of_many = [setting("large", BARRIERS, 5.0 if k == 0 else 1.25) for k in range(20)]
    one_of_few = [setting("small", BARRIERS, 5.0 if k == 0 else 1.25) for k in range(2)]

    assert beyond([*even, *one_of_many], BARRIERS) == 1.0
    assert beyond([*even, *one_of_few], BARRIERS) == 4.0
