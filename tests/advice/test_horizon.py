"""State that grows: trials end at the horizon, and advice says for how long a setting keeps its limits."""

import pytest

from sim.advice import horizon as horizons
from sim.advice.candidates import CandidateSearch
from sim.advice.horizon import GrowingState
from sim.advice.job import prepare_bench
from sim.advice.judgement import Limits
from sim.advice.optimizer import LimitBreak, limit_break_sentence, limit_break_text, predict_limit_break
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


def test_a_limit_that_growing_state_breaks_is_refused(job):
    """State reaches 3 MB after 50 s, and the hour is not over."""
    found = raced(job, 3600, 3000.0)
    lasts = predict_limit_break(found, found.nearest)

    assert found.chosen is None
    # an eighth of the hour is 450 s, and the gap to now is halved twice
    assert (lasts.kept_s, lasts.broken_s) == (0.0, 112.5)
    assert "keeps the limits until some time between 0 ms and 1" in limit_break_sentence(found, lasts)
    assert limit_break_text(None) == limit_break_text(LimitBreak(lasts.setting, None, 112.5)) == ""
    assert limit_break_text(lasts) == "keeps the limits until some time between 0 ms and 112 s from now"


def test_advice_says_when_it_breaks(job):
    """10 MB are reached after 225 s: after the horizon, before twice its length."""
    found = raced(job, 200, 10_000.0)
    lasts = predict_limit_break(found, found.chosen)

    assert found.chosen is not None
    assert found.other_trials
    assert (lasts.kept_s, lasts.broken_s) == (200.0, 250.0)  # twice the horizon is 400 s, and the gap is halved twice
    assert "checkpoints 11 s > 10 s with sink between 9 MB and 11 MB" in limit_break_sentence(found, lasts)


def test_a_setting_that_outlasts_all_that_is_tried_says_so(job):
    found = raced(job, 200, 1e6)
    lasts = predict_limit_break(found, found.chosen)

    assert LimitBreak(found.chosen.name, 3200.0, None) == lasts
    assert "keeps them for the next 53 min as well" in limit_break_sentence(found, lasts)


class Uploading(Growing):
    """With more than 2 MB of state the first upload takes longer than a trial."""

    def row(self, axes, k, more_ms):
        return super().row(axes, k, more_ms) | {"completed": 0 if more_ms > 2000 else 100}


@pytest.mark.parametrize(("incremental", "lasts"), [("true", (20.0, None)), ("false", (25.0, 30.0))])
def test_a_first_upload_that_outlasts_a_trial_breaks_no_limit_later(tmp_path, incremental, lasts):
    """A job that grows into its state writes what changes; one that writes all of it does not complete."""
    file = tmp_path / "job.yaml"
    file.write_text(
        JOB.replace("growth: 100 B}", "growth: 100 B, backend: rocksdb}").replace(
            "interval: 30 s", f"interval: 30 s, incremental: {incremental}"
        )
    )
    search = CandidateSearch(bench_of(file, 20), Limits(checkpoint_ms=1e4), 86_400.0, Uploading(), 1)
    search.replicate([search.current_candidate], 1)
    found = predict_limit_break(search, search.current)

    assert lasts == (found.kept_s, found.broken_s)


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
