"""The beginning of a run that does not count: Conway's rule, and what it is applied to."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from sim.model.faults import Restart
from sim.model.scenario import AUTO_WARM_UP, Run
from sim.results.summary import WarmUpEnd, cold_start, drained_after, warm_up


def run(*checkpoints, queues=(), lag=(), served=(), failed=(), warmup_ns=AUTO_WARM_UP):
    """A checkpoint is (trigger [ms], duration, size); queues and lag have a value per second."""
    rows = [
        {
            "status": "COMPLETED",
            "savepointFormat": "",
            "trigger_timestamp": float(at),
            "end_to_end_duration": float(ms),
            "checkpointed_size": float(size),
        }
        for at, ms, size in checkpoints
    ]
    seconds = max(len(queues), len(lag), len(served))
    series = pd.DataFrame(
        {
            "time": [float(k + 1) for k in range(seconds)],
            "vertex": ["it"] * seconds,
            "inputQueueSize": list(queues) or [0] * seconds,
            "outputQueueSize": [0] * seconds,
            "lag": list(lag) or [0.0] * seconds,
            "numRecordsInPerSecond": list(served) or [100.0] * seconds,
        }
    )
    columns = ["status", "savepointFormat", "trigger_timestamp", "end_to_end_duration", "checkpointed_size"]
    tables = {
        "checkpoints": pd.DataFrame(rows, columns=columns),
        "series": series,
        "recoveries": pd.DataFrame({"failed": np.array(failed, dtype=float)}),
    }
    return SimpleNamespace(tables=tables, scenario=SimpleNamespace(run=Run(3600 * 10**9, warmup_ns)))


def ms_of(*checkpoints, **others):
    return warm_up([run(*checkpoints, **others)]).ns / 1e6


STEADY = [(10_000 * k, 500 + (k * 7) % 5, 10 + k % 3) for k in range(1, 12)]
"""Checkpoints that only vary."""


def test_the_first_full_upload_is_left_out():
    """It writes all state; the next one counts."""
    found = warm_up([run((21, 9000, 4000), *STEADY)])

    assert WarmUpEnd(9_999_000_000, "the size of checkpoints") == found
    assert str(found) == "10 s, until the size of checkpoints settled"


def test_a_drift_does_not_hide_the_first_upload():
    """Metadata grows by a few bytes with each checkpoint."""
    drift = [(10_000 * k, 500, 1000 + k) for k in range(1, 12)]

    assert ms_of((21, 9000, 40_000), *drift) == 9999.0
    assert ms_of(*drift) == 0.0


def test_a_failure_is_no_warm_up():
    """What follows from it, and the backlog after it, are results."""
    fills = [1, 3, 6, 9, 20, 19, 18, 17, 16, 15]

    assert ms_of(queues=fills, failed=[3500.0]) == 0.0
    assert ms_of(queues=[1, 2, 3, 9, 5, 9, 4, 8, 9, 5], failed=[60_000.0]) == 3000.0


def test_replications_leave_out_the_longest():
    first, second = run(queues=[1, 3, 6, 9, 8, 9, 10, 8, 9, 8]), run((21, 9000, 4000), *STEADY)

    assert warm_up([first, second]).ns == 9_999_000_000


FULL, WAVES = [1000.0] * 20, [100.0, 120.0, 80.0] * 12
"""A queue that is full, and one that checkpoints let rise and fall."""


@pytest.mark.parametrize(
    ("values", "after"),
    [
        (WAVES, 0),
        (FULL + WAVES, 20),
        ([*np.linspace(1000, 100, 20), *WAVES], 20),
        (WAVES[:9] + FULL + WAVES, 29),
        (list(np.linspace(1000, 1, 40)), 40),
        (WAVES[:9], 0),
    ],
)
def test_a_queue_that_the_start_has_left_is_worked_off_where_it_stays_low(values, after):
    """Within the samples of a mean; all values, if it is still being worked off at the end; 0 of few."""
    assert after == pytest.approx(drained_after(np.array(values)), abs=5)


def started(queues=(), start_s=2, warm_up_s=3, **others):
    result = run(queues=queues, **others)
    result.scenario.run = Run(3600 * 10**9, cold_start_ns=start_s * 10**9)
    result.scenario.restart = Restart(warm_up_ns=warm_up_s * 10**9)
    return result


def test_a_cold_start_ends_when_tasks_are_warm_and_queues_are_worked_off():
    """The longest of the replications."""
    assert cold_start([started(WAVES), started(FULL + WAVES)]).cause == "data in queues"
    assert cold_start([started(WAVES)]).ns == 5 * 10**9
    assert WarmUpEnd(9 * 10**9, "throughput") == cold_start([started(served=[50.0] * 9 + [100.0, 95.0] * 20)])
    assert WarmUpEnd(0) == cold_start([started(FULL + WAVES, start_s=0)])
