"""A value per window and setting, from the rows of a sweep."""

import numpy as np
import pytest

from sim.results.sweep_values import observed
from tests.results.analysis.sweeps.made_up import rows_of

SETTINGS, COLUMN = ["checkpoint.interval"], "caught_up_ms"


def of(rows, column=COLUMN):
    return observed(rows, SETTINGS, column)


@pytest.mark.parametrize(
    "change",
    [
        {"status": "error", COLUMN: np.nan},
        {"job_status": "FAILED: killed"},
        {"job_status": "RESTARTING FOR EVER: slots"},
        {COLUMN: np.nan},
    ],
)
def test_a_run_that_fails_is_lost(change):
    """So is a value that is missing where another setting has one: it is never left out silently."""
    rows = rows_of({"10 s": [30.0, 9.0], "30 s": [30.0, 8.0]})
    rows.loc[0, list(change)] = list(change.values())
    seen = of(rows)

    assert seen.lost.to_numpy().tolist() == [[True, False], [False, False]]
    assert np.isnan(seen.scores.iloc[0, 0])


def test_the_sample_is_what_differs():
    """Windows; without them what else varies; of a single window its seeds."""
    rows = rows_of({"10 s": [[1.0, 2.0]], "30 s": [[3.0, 4.0]]})
    varied = rows_of({"10 s": [1.0, 2.0], "30 s": [3.0, 4.0]}).rename(columns={"window": "faults.0.from"})

    assert (of(rows).sample, of(rows).scores.to_numpy().tolist()) == ("seeds", [[1.0, 3.0], [2.0, 4.0]])
    assert (of(varied).sample, len(of(varied).scores)) == ("worlds", 2)
    assert (of(rows[rows["seed"] == 0]).sample, len(of(rows[rows["seed"] == 0]).scores)) == ("windows", 1)
