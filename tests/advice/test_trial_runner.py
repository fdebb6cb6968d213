"""Trials cost processor time: what was spent, what more fits, and what a line of progress says."""

from dataclasses import replace

import pytest

from sim.advice.trials import TrialRunner
from sim.model.schema.study import load


@pytest.fixture
def undisturbed(tmp_path):
    (tmp_path / "tiny.yaml").write_text("""\
# A job of a second.
version: 1
job:
  source: {source: {rate: 100/s, record: 400 B}}
  sink: {input: {source: hash}, service: 1 ms}
checkpoint: {interval: 300 ms}
run: {duration: 1 s}
""")
    return replace(load(tmp_path / "tiny.yaml").scenarios[0], axes=(("trial", "undisturbed"),))


def lengthened(scenario, factor):
    return replace(scenario, run=replace(scenario.run, duration_ns=scenario.run.duration_ns * factor, seed=factor))


def test_runs_are_afforded_by_what_runs_cost_so_far(tmp_path, undisturbed):
    """Ten times as long is ten times as dear; what has run costs nothing more."""
    runner = TrialRunner(tmp_path / "out", jobs=1, budget_s=1e9)
    runner.run([undisturbed])
    spent_s = runner.spent_s()
    within, beyond = (TrialRunner(tmp_path / "out", jobs=1, budget_s=spent_s * times) for times in (12, 10))
    for again in (within, beyond):
        again.run([undisturbed])

    assert spent_s == within.spent_s() > 0
    assert within.affords([lengthened(undisturbed, 10)], 1.0)
    assert not beyond.affords([lengthened(undisturbed, 10)], 1.0)
    assert not within.affords([lengthened(undisturbed, 10)], 0.5)
    assert TrialRunner(tmp_path / "out", jobs=1, budget_s=0.0).affords([undisturbed], 1.0)


def test_progress_says_what_is_left_of_the_budget(tmp_path, undisturbed):
    seen = []
    runner = TrialRunner(tmp_path / "out", jobs=1, budget_s=90.0)

    assert runner.progress() == "0 of 90 s of work"
    runner.watch = lambda finished, spent_ns: seen.append((finished, spent_ns))
    runner.run([undisturbed])
    assert runner.progress().startswith("0 of 90 s of work, at most ")
    runner.run([lengthened(undisturbed, 2)])
    assert seen[-1][0] == 4
    assert runner.spent_s() > 0
    assert seen[-1][1] > 0
