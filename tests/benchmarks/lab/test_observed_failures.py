"""Failures are read off what the operators logged: when they serve again, what is replayed, when they have caught up."""

import numpy as np
import pytest

from benchmarks.lab import Recording
from benchmarks.lab.failures import caught_up_ms, of_failures
from tests.benchmarks.lab.recorded import document


def recorded(events, metrics=None):
    changes = {"events": events, "metrics": metrics or {}}
    return Recording.model_validate(document("p2-severe-aligned") | changes)


def values(recording):
    return {quantity: value for quantity, _, value in of_failures(recording)}


FAILURE = {
    "fail_injected": {"cols": ["t", "node", "sub"], "rows": [[5000, "sink", 0]]},
    "init_state": {
        "cols": ["t", "node", "sub", "attempt", "chk"],
        "rows": [[10, "sink", 0, 0, -1], [7000, "sink", 0, 1, 4]],
    },
    "open": {"cols": ["t", "node", "sub"], "rows": [[15, "sink", 0], [7100, "sink", 0], [7150, "map", 0]]},
    "first_record": {"cols": ["t", "node", "sub"], "rows": [[20, "sink", 0], [7300, "sink", 0], [7200, "map", 0]]},
    "source_close": {"cols": ["t", "node", "sub", "emitted"], "rows": [[5100, "src", 0, 900], [9000, "src", 0, 2000]]},
    "source_start": {"cols": ["t", "node", "sub", "emitted"], "rows": [[5, "src", 0, 0], [7100, "src", 0, 650]]},
}


def test_a_failure_costs_what_it_takes_to_serve_again_and_what_is_replayed():
    assert values(recorded(FAILURE)) == {
        "restored_checkpoint": 4,
        "time_to_first_record": 2200.0,
        "downtime": 2150.0,
        "replayed_records": 250,
    }


def test_a_task_that_reads_its_channels_back_runs_later_than_it_is_open():
    """The map was open 150 ms after it began and took 900 ms in all: it ran at 7900."""
    metrics = {
        "map": {"t": [6000, 8000], "initializationTime": [[500], [900]]},
        "sink": {"t": [6000, 8000], "initializationTime": [[500], [100]]},
    }

    assert values(recorded(FAILURE, metrics))["downtime"] == 2900


def test_no_failure_nothing_to_come_back_from():
    assert values(recorded({})) == {}


def test_caught_up_is_when_the_ends_have_served_what_they_had():
    """100 records again at 40 a second from 1 s on: 98 of them are served after 2.45 s more."""
    times, served = np.arange(1000.0, 8000.0, 1000.0), np.array([0.0, *[40.0] * 6])

    assert pytest.approx(caught_up_ms(0.0, times, served, 100.0, 0.0)) == 1000 + 98 / 40 * 1000


def test_what_comes_due_meanwhile_must_be_served_too():
    """20 of 40 a second are new: from 120 missing after 1 s, 117.6 take 5.88 s; twice the rate is never caught up with."""
    times, served = np.arange(1000.0, 10_000.0, 1000.0), np.array([0.0, *[40.0] * 8])

    assert pytest.approx(caught_up_ms(0.0, times, served, 100.0, 20.0)) == 1000 + 117.6 / 20 * 1000
    assert caught_up_ms(0.0, times, served, 100.0, 40.0) is None
