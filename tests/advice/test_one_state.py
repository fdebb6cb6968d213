"""Short trials and confirming ones are about the same job: as much state, and settings in the same order."""

import pytest

from sim.advice import trials
from sim.advice.job import prepare_bench
from sim.advice.settings import make_candidate, protocols
from sim.runtime.simulate import simulate

S = 1_000_000_000
JOB = """\
# A job whose aligned barriers wait behind queues.
version: 1
job:
  source: {source: {rate: 2000/s, record: 200 B}, parallelism: 2}
  sink: {input: {source: hash}, service: 600 us, parallelism: 2, state: STATE}
checkpoint: {interval: 10 s, incremental: true}
storage: {bandwidth: 20 MB/s}
run: {duration: 3 s}
"""
ALIGNED, UNALIGNED = protocols()[0], protocols()[-1]


def checkpoints(bench, trial):
    """Those that completed after the job had settled."""
    found = simulate(bench.scenario(trial)).tables["checkpoints"]
    return found[(found["status"] == "COMPLETED") & (found["trigger_timestamp"] >= 60_000)]


@pytest.mark.parametrize(
    "state",
    [
        "{size: 5 MB, growth: 20 B}",
        "{size: 5 MB, growth: 40 B, ttl: 2 min}",
        "{size: 300 MB, backend: rocksdb, update: 30 %}",
        "{size: 5 MB, backend: rocksdb, growth: 100 B, update: 10 %}",
        "{size: 5 MB, growth: 50 B, changelog: {materialize: 1 min}}",
    ],
)
def test_short_trials_and_long_ones_agree(tmp_path, monkeypatch, state):
    """With three minutes of growth: a long trial lasts longer than that, and has no more state."""
    monkeypatch.setattr(trials, "LONG_PERIODS", 40)
    file = tmp_path / "job.yaml"
    file.write_text(JOB.replace("STATE", state))
    bench = prepare_bench(file, (), (), recovery_ms=None, ahead_ns=180 * S)
    found = {}
    for protocol in (ALIGNED, UNALIGNED):
        setting = make_candidate(bench.load({}), 10 * S, protocol)
        found[protocol.name] = [
            checkpoints(bench, trial) for trial in bench.trials(setting, (trials.UNDISTURBED, trials.LONG))
        ]

    for short, long in found.values():
        assert len(long) >= 40 > len(short)
        assert short["state_size"].mean() == pytest.approx(long["state_size"].mean(), rel=0.1)
        assert short["end_to_end_duration"].median() == pytest.approx(long["end_to_end_duration"].median(), rel=0.1)
    medians = [[rows["end_to_end_duration"].median() for rows in runs] for runs in zip(*found.values(), strict=True)]
    assert medians[0][0] > medians[0][1]
    assert medians[1][0] > medians[1][1]
