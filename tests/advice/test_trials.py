"""What is tried to advise on a job: settings, and the two runs of each."""

from dataclasses import replace

import pytest

from sim.advice.job import write_sweep
from sim.advice.settings import make_candidate, protocols
from sim.advice.trials import Bench
from sim.runtime.result import identity
from sim.studies.sweeps.sweep_file import define

S = 1_000_000_000
PROTOCOLS = protocols()
JOB = """\
# A job with a configuration in Flink's own words.
version: 1
job:
  source: {source: {rate: 200/s, record: 100 B}, parallelism: 2}
  sink: {input: {source: hash}, service: 1 ms, parallelism: 2, state: {size: 1 MB, backend: rocksdb}}
checkpoint: {}
flink: {execution.checkpointing.interval: 20 s, execution.checkpointing.timeout: 1 min}
faults: [{kill: sink, at: 1 s}]
run: {duration: 3 s}
"""


@pytest.fixture
def bench(tmp_path):
    file = tmp_path / "job.yaml"
    file.write_text(JOB.replace("checkpoint: {}\n", "checkpoint: {min-pause: 1 s}\n"))
    return Bench(file, {}, patience_ns=240 * S)


def runs(bench, interval_s, protocol):
    setting = make_candidate(bench.load({}), interval_s * S, protocol)
    return {trial.kind: bench.scenario(trial) for trial in bench.trials(setting)}


def test_the_sweep_file_says_the_same_runs(bench, tmp_path):
    """`ckptsim sweep` finds every row that is there: same scenarios, same seeds, same names of cells."""
    now = bench.load({})
    settings = [make_candidate(now, 20 * S, protocol) for protocol in PROTOCOLS] + [
        make_candidate(now, 60 * S, PROTOCOLS[2])
    ]
    trials = {trial: i + 1 for i, setting in enumerate(settings) for trial in bench.trials(setting)}
    varied = dict.fromkeys(bench.trials(settings[0], extra={"job.sink.state.size": "10 MB"}), 1)
    folder = tmp_path / "out"
    folder.mkdir()

    write_sweep(folder / "sweep.yaml", bench, trials | varied)
    written = define(folder / "sweep.yaml").scenarios

    assert [identity(bench.scenario(trial)) for trial in (*trials, *varied)] == [
        identity(replace(scenario, run=replace(scenario.run, replications=1))) for scenario in written
    ]
    assert [*trials.values(), 1, 1] == [scenario.run.replications for scenario in written]
