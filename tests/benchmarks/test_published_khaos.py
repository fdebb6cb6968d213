"""Khaos: what Kafka's metrics make of a backlog, the rule of recovery on recorded series, and the bars of the simulated recovery times."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from benchmarks.published import khaos
from benchmarks.published.consumer import Monitor, consumed_rate, lag_max, lag_seen_until
from benchmarks.published.khaos_data import failures, load, p99_lag, recorded_s, rule
from benchmarks.published.khaos_fit import Fit, caught_up_s, expected_s, fit, formula_s, outage_s
from benchmarks.published.khaos_windows import scenario, window
from benchmarks.published.recovery import Rule, recovery_s

NUMBERS = {"iot": Fit(16, 34_750, 9, 0.5), "ysb": Fit(18, 134_000, 17, 1)}


# ---------------------------------------------------------------------------------------------- what a consumer shows


def test_a_lag_that_is_gone_stays_visible_for_thirty_to_sixty_seconds():
    """Until the sample it fell into is neither the current one nor the one before."""
    for gone_s in (0, 29, 30, 59):
        lag = np.where(np.arange(200) <= gone_s, 7.0, 0.0)
        seen = np.flatnonzero(lag_max(lag))

        assert list(range(int(lag_seen_until(np.array(gone_s))))) == seen.tolist()


def test_a_consumer_that_begins_shows_half_its_rate():
    """The first sample counts as if one had gone before it; from the second on the rate is that of all that is kept."""
    rate = consumed_rate(np.full(120, 10.0))

    assert pytest.approx([10 / 31, 150 / 45, 10 * 29 / 59, 10, 10]) == rate[[0, 14, 28, 29, 100]]


def test_the_monitor_sees_consumers_one_after_the_other():
    """The mean is over those seen, the total too: a sum grows while they come back."""
    counts, monitor = np.full(10, 6.0), Monitor(consumers=3, first_s=1, last_s=5)

    assert monitor.total(counts)[:6].tolist() == [0, 6, 6, 12, 12, 18]
    assert np.isnan(monitor.mean(counts)[0])
    assert monitor.mean(counts)[1:].tolist() == [6] * 9


# ---------------------------------------------------------------------------------------------- the rule


def test_recovered_is_what_stays_normal():
    """From the first missing second to the first of eleven normal ones; a short dip below the limit does not count."""
    lag = pd.Series(10.0, index=range(-300, 120))
    lag.loc[2:16] = np.nan
    lag.loc[17:60] = 500.0
    lag.loc[30:35] = 10.0

    assert recovery_s(lag, Rule()) == 59
    assert recovery_s(lag, Rule(above=1000)) == 15
    assert np.isnan(recovery_s(lag.loc[:65], Rule())), "not long enough"
    assert np.isnan(recovery_s(pd.Series(10.0, index=range(-300, 100)), Rule())), "nothing failed"


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


def test_recoveries_end_in_steps_of_thirty_seconds():
    """Six seconds after a multiple of 30 s since the consumers were seen again, give or take one, in four of five: Kafka's samples."""
    steps = []
    for failure in [*failures("iot", 1), *failures("iot", 2), *failures("ysb")]:
        end_s = recorded_s(failure) + 2
        steps.append((end_s - outage_s(failure) - 1 - 6 + 15) % 30 - 15)

    assert len(steps) == 139
    assert np.mean(np.abs(steps) <= 2) > 0.8


# ---------------------------------------------------------------------------------------------- the window of one failure


@pytest.fixture(scope="module")
def some_failure():
    return next(failure for failure in failures("iot") if failure.interval_s == 60 and 15_000 < failure.rate < 16_000)


def test_a_window_begins_six_minutes_before_the_kill_in_the_real_load(some_failure):
    """At a two-hundredth, a twelfth for each consumer; killed a second before a checkpoint."""
    made = scenario(some_failure, NUMBERS["iot"])
    (source, _), (fault,) = made.job.vertices, made.faults
    offered = load("iot").loc[some_failure.kill_epoch_s - 359]

    assert offered / 2400 == pytest.approx(float(source.source.rates[0].per_second), rel=1e-3)
    assert fault.when.at_ns == (359_000_000_000,)
    assert 360 % some_failure.interval_s == 0
    assert (made.restart.replacement.mean, made.restart.warm_up_ns) == (15_900_000_000, 18_000_000_000)


@pytest.mark.slow
def test_the_simulated_recovery_is_the_backlogs_arithmetic_at_any_scale(some_failure):
    """What cannot be served waits in the log: buffers make no difference, so rates and services may be scaled together."""
    numbers = NUMBERS["iot"]
    times = [recovery_s(window(some_failure, numbers, scale=scale)["lag"], rule(some_failure)) for scale in (50, 200)]

    assert times[0] == pytest.approx(times[1], abs=1)
    assert expected_s(some_failure, numbers) == pytest.approx(times[1], abs=2)


@pytest.mark.slow
def test_nobody_waited_for_the_heartbeat(some_failure):
    """A TaskManager that ends is missed at once; one that fell silent would cost 24 to 34 s more outage, and the recovery after it."""
    noticed, silent = (
        window(some_failure, NUMBERS["iot"], overrides=overrides)["lag"]
        for overrides in ((), ("faults=[{task-manager: 0, at: 359 s, silent: true}]",))
    )
    first_seen = [int(lag.loc[0:][lag.isna()].index[-1]) + 1 for lag in (noticed, silent)]

    assert outage_s(some_failure) + 1 == pytest.approx(first_seen[0], abs=2)
    assert 40 < first_seen[1] < 56
    assert recovery_s(silent, rule(some_failure)) >= recovery_s(noticed, rule(some_failure)) + 20


# ---------------------------------------------------------------------------------------------- the fit


def test_a_fit_finds_the_numbers_it_was_made_with():
    """Recovery times of the arithmetic give back a capacity within 2 %."""
    true = replace(NUMBERS["ysb"], capacity=138_000, lost_s=10)
    found = fit(failures("ysb"), lambda failure: expected_s(failure, true))

    assert true.capacity == pytest.approx(found.capacity, rel=0.02)


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
