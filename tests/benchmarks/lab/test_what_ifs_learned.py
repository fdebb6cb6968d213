"""What recordings say of each kind of what-if: few enough of a job that was left out lie outside."""

import numpy as np
import pytest

from benchmarks.lab.what_ifs_learned import CrossPrediction, is_covered, is_promised, learned
from sim.jobs.evidence.what_ifs import MIN_FAMILIES, MISSED_SHARE

BARRIERS, STORAGE, LOAD, INTERVAL = ("barriers",), ("storage",), ("load",), ("interval",)
BACKEND, FAILURE = ("backend",), ("failure",)


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


def test_a_kind_with_few_families_has_the_worst_of_all_changes():
    """A share of them is not known from so few.  The job as it is is no change."""
    families = [
        *(setting(k, BARRIERS, 1.25) for k in range(2 * MIN_FAMILIES)),
        setting("b", BARRIERS, 2.5),
        setting("b", (), 50.0),
    ]

    assert 2.0 == beyond([*families, setting("a", STORAGE, 1.25)], STORAGE) == beyond(families, INTERVAL)
    assert beyond([*families, setting("a", STORAGE, 5.0)], STORAGE) == 4.0


def test_what_a_job_has_never_done_has_its_own_worst_or_nothing():
    """Flushes of RocksDB, say: other changes do not tell how long they take, and are not judged by them."""
    others = [setting("a", BARRIERS, 2.5), setting("b", LOAD, 2.5)]
    alone = [*others, setting("c", BACKEND, 5.0)]

    assert beyond(alone, BACKEND) == 4.0
    assert beyond(alone, LOAD) == 2.0
    assert (np.inf, np.inf) == learned(others)[BACKEND].beyond == learned(others)[FAILURE].beyond
    assert not is_promised(alone[2], alone)
    assert None is learned(alone)[BACKEND].covered
    assert learned([*alone, setting("d", BACKEND, 7.5)])[BACKEND].covered == (0.5, 0.5)


def test_left_out_means_without_any_run_of_that_job():
    """What only one job shows is not known where that job is left out."""
    others = [setting(k, BARRIERS, 1.5) for k in range(MIN_FAMILIES)]
    alone = [setting("a", STORAGE, 5.0), setting("a", BARRIERS, 5.0)]

    assert is_covered(alone[0], [*others, *alone]) == (False, False)
    assert is_covered(setting("a", STORAGE, 1.4), [*others, *alone]) == (True, True)
    assert learned([*others, *alone])[STORAGE].covered == (0.0, 0.0)


def test_of_jobs_left_out_as_many_lie_inside_as_promised():
    """Drawn errors: chance alone is covered by the history, what comes on top is that of the kind."""
    random = np.random.default_rng(3)
    found = []
    for family in range(60):
        worse = float(np.exp(random.normal(0, 0.3)))  # of the job
        found += [
            setting(family, BARRIERS, max(worse * float(np.exp(abs(random.normal(0, 0.3)))), 1.0)) for _ in range(4)
        ]

    share = learned(found)[BARRIERS].covered[0]
    assert 1 - MISSED_SHARE - 0.03 <= share < 1
