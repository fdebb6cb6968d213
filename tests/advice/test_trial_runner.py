"""Trials cost processor time: what was spent, what more fits."""

from dataclasses import replace

import pytest

from sim.advice.trials import TrialRunner
from sim.model.schema.study import loads
from sim.studies.plan import baseline
from sim.studies.work import planned_work_s

TINY = """\
# A job of a second.
version: 1
job:
  source: {source: {rate: 100/s, record: 400 B}}
  sink: {input: {source: hash}, service: 1 ms}
checkpoint: {interval: 300 ms}
run: {duration: 1 s}
"""


@pytest.fixture
def undisturbed():
    return replace(loads(TINY).scenarios[0], axes=(("trial", "undisturbed"),))


def lengthened(scenario, factor):
    return replace(scenario, run=replace(scenario.run, duration_ns=scenario.run.duration_ns * factor, seed=factor))


def test_runs_are_afforded_by_what_they_will_simulate(tmp_path, undisturbed):
    """Ten times as long is ten times the work of a run without the cost of its start; what has run costs nothing more."""
    long = lengthened(undisturbed, 10)
    runner = TrialRunner(tmp_path / "out", jobs=1, budget_s=1e9)
    runner.run([undisturbed])
    spent_s = runner.spent_s()
    needed_s = sum(planned_work_s(scenario, 100.0) for scenario in (long, baseline(long)))
    within, beyond = (
        TrialRunner(tmp_path / "out", jobs=1, budget_s=spent_s + needed_s * share) for share in (1.01, 0.99)
    )
    for again in (within, beyond):
        again.run([undisturbed])

    assert spent_s == within.spent_s() > 0
    assert within.affords([long], 1.0)
    assert not beyond.affords([long], 1.0)
    assert not within.affords([long], 0.5)
    assert beyond.affords([undisturbed], 0.0)


def test_runs_that_end_early_are_counted_as_earlier_ones(tmp_path, undisturbed):
    """A failure that is caught up after a twentieth of the time costs a twentieth of what its duration says."""
    fails = replace(
        undisturbed,
        axes=(("trial", "failure"),),
        faults=loads(TINY, overrides=["faults=[{kill: random-task, at: 500 ms}]"]).scenarios[0].faults,
        run=replace(undisturbed.run, duration_ns=400 * 10**9, until="caught-up"),
    )
    runner = TrialRunner(tmp_path / "out", jobs=1, budget_s=1.0)
    assert planned_work_s(fails, 100.0) > 0.5

    assert not TrialRunner(tmp_path / "other", jobs=1, budget_s=0.5).affords([fails], 1.0)
    (row,) = runner.run([fails]).to_dict("records")
    assert row["caught_up_ms"] > row["downtime_ms"] > 0
    assert "caught_up_ms" not in str(row["unfinished"])  # the run ended because the job had caught up
    assert runner.affords([replace(fails, run=replace(fails.run, seed=7))], 0.5)
