"""State that grows: trials end at the horizon, and advice says for how long a setting keeps its limits."""

import pytest

from sim.advice import horizon as horizons
from sim.advice.horizon import GrowingState
from sim.advice.job import prepare_bench
from sim.advice.settings import make_candidate, protocols
from sim.advice.trials import FAILURE, LONG, UNDISTURBED
from sim.model.scenario import Backtest, ComparedQuantity, Quantiles
from tests.advice.made_up import MadeUp, row, searched
from tests.scenarios import run_scenario

S = 1_000_000_000
JOB = """\
# A job whose state grows by 40 kB/s.
version: 1
job:
  source: {source: {rate: 400/s, record: 100 B}, parallelism: 2}
  sink: {input: {source: hash}, service: 1 ms, parallelism: 2, state: {size: 1 MB, growth: 100 B}}
checkpoint: {interval: 30 s}
run: {duration: 3 s}
"""


class Growing(MadeUp):
    """A checkpoint takes 1 ms for each kB of state that its run begins with."""

    def __init__(self):
        super().__init__({}, state=True)

    def row(self, axes, k, more_ms):
        return row(axes, k, more_ms, caught_up_ms=6000.0, backlog_growth=0.0)


def bench_of(job, ahead_s):
    return prepare_bench(job, (), (), recovery_ms=None, ahead_ns=ahead_s * S)


def raced(job, ahead_s, limit_ms):
    return searched(bench_of(job, ahead_s), Growing(), most=3, checkpoint_ms=limit_ms)


@pytest.mark.parametrize("ahead_s", [60, 3600])
def test_every_trial_is_about_the_state_of_the_horizon(job, ahead_s):
    """40 kB/s from 1 MB on; a trial that lasts longer than the horizon has no more, and none grows."""
    bench = bench_of(job, ahead_s)
    setting = make_candidate(bench.load({}), 30 * S, protocols()[0])
    states = [
        bench.scenario(trial).job.vertices[-1].state for trial in bench.trials(setting, (UNDISTURBED, FAILURE, LONG))
    ]

    assert len(states) == 3
    assert {states[0]} == set(states)
    assert 1e6 + 40_000 * ahead_s == pytest.approx(states[0].bytes, rel=0.02)
    assert (states[0].growth_bytes, states[0].ttl) == (0, None)


def test_another_job_has_another_state_at_the_horizon(job):
    """Twice the records bring twice the growth.  A storage that is faster brings none."""
    bench = bench_of(job, 3600)
    setting = make_candidate(bench.load({}), 30 * S, protocols()[0])

    def size_of(extra):
        (size,) = {bench.scenario(trial).job.vertices[-1].state.bytes for trial in bench.trials(setting, extra=extra)}
        return size

    assert pytest.approx(size_of({"job.source.source.rate": "800/s"}), rel=0.02) == 1e6 + 80_000 * 3600
    assert pytest.approx(size_of({"job.sink.state.growth": "200 B"}), rel=0.02) == 1e6 + 80_000 * 3600
    assert size_of({}) == size_of({"storage.bandwidth": "1 GB/s"})


def test_the_horizon_begins_at_the_end_of_the_history(job):
    """The scenario of an import begins an interval before the first checkpoint: 10 intervals of 30 s before the last of ten."""
    nine = Quantiles(100.0, 100.0, 100.0, 9)
    history = Backtest((ComparedQuantity("end-to-end", nine, nine),))
    scenario = bench_of(job, 3600).load({})
    (state,) = horizons.horizon([scenario], history, 3600 * S).states

    assert 1e6 + 300 * state.per_second == pytest.approx(state.now_bytes, abs=1)


@pytest.mark.parametrize(("seconds", "expected"), [(0, 1_000_000), (100, 1_000_000 + 632_121), (10**5, 2_000_000)])
def test_state_whose_keys_have_all_come_stays(seconds, expected):
    """2 MB of keys, half of them there, 20 kB/s of new ones while there was none."""
    assert expected == GrowingState("sink", 1_000_000, 20_000.0, limit_bytes=2_000_000).after(seconds)


@pytest.mark.parametrize(
    "keys", ["growth: 100 B, ttl: 100 s, update: 10 %", "growth: 100 B, ttl: 100 s, ttl-checks: 1"]
)
def test_the_horizon_has_the_size_that_a_run_until_then_comes_to(job, keys):
    """Rewritten keys stay longer, and expired ones that the cleanup has not met are in snapshots as well."""
    job.write_text(JOB.replace("growth: 100 B", keys))
    (state,) = bench_of(job, 600).horizon.states
    found = run_scenario(job.read_text().replace("duration: 3 s", "duration: 10 min")).tables["checkpoints"]

    assert found["state_size"].iloc[-1] == pytest.approx(state.after(600), rel=0.05)
