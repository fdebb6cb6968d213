"""Khaos: what Kafka's metrics make of a backlog, the rule of recovery on recorded series, and the bars of the simulated recovery times."""

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.published import khaos
from benchmarks.published.khaos_data import failures, p99_lag, recorded_s, rule
from benchmarks.published.khaos_fit import Fit, caught_up_s, expected_s, formula_s
from benchmarks.published.khaos_windows import window
from benchmarks.published.recovery import recovery_s

NUMBERS = {"iot": Fit(16, 34_750, 9, 0.5), "ysb": Fit(18, 134_000, 17, 1)}


# ---------------------------------------------------------------------------------------------- what a consumer shows


# ---------------------------------------------------------------------------------------------- the rule


@pytest.mark.parametrize(("job", "run", "most"), [("iot", 1, 0.06), ("iot", 2, 0.03), ("ysb", 1, 0.02)])
def test_the_rule_finds_the_published_times_in_the_recorded_series(job, run, most):
    """Mean difference; one in two is below 2 %.  iot, run 1: the authors' values at 10 and 30 s are of another series for five of them."""
    errors = [
        abs(recorded_s(failure) / failure.published_s - 1)
        for failure in failures(job, run)
        if not np.isnan(failure.published_s)
    ]

    assert np.mean(errors) < most
    assert np.median(errors) < 0.02


# ---------------------------------------------------------------------------------------------- the window of one failure


@pytest.fixture(scope="module")
def some_failure():
    return next(failure for failure in failures("iot") if failure.interval_s == 60 and 15_000 < failure.rate < 16_000)


@pytest.mark.slow
def test_the_simulated_recovery_is_the_backlogs_arithmetic_at_any_scale(some_failure):
    """What cannot be served waits in the log: buffers make no difference, so rates and services may be scaled together."""
    numbers = NUMBERS["iot"]
    times = [recovery_s(window(some_failure, numbers, scale=scale)["lag"], rule(some_failure)) for scale in (50, 200)]

    assert times[0] == pytest.approx(times[1], abs=1)
    assert expected_s(some_failure, numbers) == pytest.approx(times[1], abs=2)


# ---------------------------------------------------------------------------------------------- the fit


def test_more_load_a_longer_interval_and_a_cold_start_take_longer():
    failure = next(failure for failure in failures("ysb") if failure.interval_s == 60 and failure.rate > 80_000)
    base, numbers = caught_up_s(failure, NUMBERS["ysb"]), NUMBERS["ysb"]

    assert base < caught_up_s(failure, replace(numbers, lost_s=19))
    assert base < caught_up_s(failure, replace(numbers, capacity=125_000))
    assert base < caught_up_s(replace(failure, interval_s=120), numbers)
    assert formula_s(failure, 70, 140_000) < formula_s(replace(failure, rate=failure.rate + 1000), 70, 140_000)


# ---------------------------------------------------------------------------------------------- the bars


@pytest.mark.slow
@pytest.mark.nightly
def test_recovery_times_of_the_yahoo_benchmark():
    """Fitted on all intervals, and the shortest and the longest left out; the formula does worse; lag ranks as recorded."""
    table = khaos.compare("ysb", jobs=2)

    assert khaos.mean_error(table, "simulated") < khaos.BARS["ysb"]
    assert khaos.mean_error(table, "left_out") < khaos.LEFT_OUT_BAR
    assert khaos.mean_error(table, "left_out") < khaos.mean_error(table, "formula_left_out")
    simulated, recorded = khaos.p99_lag(table), p99_lag("ysb")

    assert sorted(recorded, key=lambda interval: recorded[interval]) == sorted(
        simulated, key=lambda interval: simulated[interval]
    )


@pytest.mark.slow
def test_recovery_times_of_the_traffic_job():
    """Simulated with what other intervals tell: 60 and 120 s."""
    table = khaos.compare("iot", jobs=2, intervals=(60, 120))

    assert khaos.mean_error(table, "simulated") < khaos.BARS["iot"]
    assert khaos.mean_error(table, "left_out") < khaos.LEFT_OUT_BAR
    assert khaos.mean_error(table, "left_out") < khaos.mean_error(table, "formula_left_out")
