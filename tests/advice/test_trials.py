"""What is tried to advise on a job: settings, and the two runs of each."""

from dataclasses import replace

import pytest

from sim.advice.job import write_sweep
from sim.advice.settings import candidate, intervals, protocols, todays_setting, without_binding_keys
from sim.advice.trials import FAILURE, UNDISTURBED, Bench
from sim.model.cluster import Debloating
from sim.runtime.manifest import identity
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
    setting = candidate(bench.load({}), interval_s * S, protocol)
    return {trial.kind: bench.scenario(trial) for trial in bench.trials(setting)}


def test_todays_setting_changes_nothing(bench):
    now = bench.load({})

    assert candidate(now, 20 * S, PROTOCOLS[0]).point == {}
    assert candidate(now, 10 * S, PROTOCOLS[0]).point == {"checkpoint.interval": "10 s", "checkpoint.timeout": "10 min"}
    assert {"checkpoint.barriers", "checkpoint.timeout"} == set(candidate(now, 20 * S, PROTOCOLS[-1]).point)


def test_grid_of_intervals(study):
    """Today's is among them, and what the limits leave room for."""
    scenario = study.scenarios[0]

    assert intervals(scenario, recovery_ms=None, visible_ms=None) == [1 * S, 10 * S, 30 * S, 60 * S, 180 * S, 600 * S]
    assert {2 * S, 120 * S} < set(intervals(scenario, recovery_ms=240_000, visible_ms=5000))


def test_a_failure_comes_late_in_an_interval_and_leaves_time_to_recover(bench):
    """After a minute, and after a checkpoint could complete; what was to happen to the job is no part of its setting."""
    for interval_s in (4, 30, 60, 600):
        found = runs(bench, interval_s, PROTOCOLS[0])
        (fault,), steady = found[FAILURE].faults, found[UNDISTURBED]
        (at_ns,) = fault.when.at_ns

        assert at_ns >= max(60, interval_s) * S
        since_ns = at_ns - S  # the first checkpoint begins when the min-pause is over
        assert pytest.approx(since_ns % (interval_s * S) / (interval_s * S)) == 0.9
        assert found[FAILURE].run.duration_ns - at_ns == 262 * S  # at most 22 s of these without slots
        assert found[FAILURE].run.ends_caught_up
        assert not steady.run.ends_caught_up
        assert steady.faults == ()
        assert steady.run.duration_ns - steady.run.warmup_ns >= max(60, 2 * interval_s) * S


def test_a_protocol_of_ones_own_stays(study):
    """Its target of debloating is kept wherever debloating stays on."""
    scenario = study.scenarios[1]
    own = replace(
        scenario,
        cluster=replace(
            scenario.cluster, network=replace(scenario.cluster.network, debloat=Debloating(target_ns=S // 2))
        ),
    )

    assert todays_setting(scenario)[1].name == "unaligned"
    assert todays_setting(own)[1].name == "unaligned, debloating"
    assert candidate(own, S, PROTOCOLS[1]).point == {"checkpoint.barriers": "aligned"}
    assert candidate(own, S, PROTOCOLS[-1]).point == {"cluster.network.debloat": "off"}


def test_a_short_timeout_is_tried_longer(bench):
    """Flink's default is the least."""
    assert without_binding_keys(bench.load({}), PROTOCOLS[0]).name == "aligned, timeout 10 min"


def test_the_sweep_file_says_the_same_runs(bench, tmp_path):
    """`ckptsim sweep` finds every row that is there: same scenarios, same seeds, same names of cells."""
    now = bench.load({})
    settings = [candidate(now, 20 * S, protocol) for protocol in PROTOCOLS] + [candidate(now, 60 * S, PROTOCOLS[2])]
    trials = {trial: i + 1 for i, setting in enumerate(settings) for trial in bench.trials(setting)}
    varied = dict.fromkeys(bench.trials(settings[0], {"job.sink.state.size": "10 MB"}), 1)
    folder = tmp_path / "out"
    folder.mkdir()

    write_sweep(folder / "sweep.yaml", bench, trials | varied, {"job.sink.state.size": "1 MB"})
    written = define(folder / "sweep.yaml").scenarios

    assert [identity(bench.scenario(trial)) for trial in (*trials, *varied)] == [
        identity(replace(scenario, run=replace(scenario.run, replications=1))) for scenario in written
    ]
    assert [*trials.values(), 1, 1] == [scenario.run.replications for scenario in written]
