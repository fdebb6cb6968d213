"""Strategies known to be wrong are caught, sound ones are not accused: every strategy meets every fault."""

import pytest

from tests.worlds.strategies import FAULTS, STRATEGIES
from tests.worlds.verdicts import TABLE, run, table, verdict


@pytest.fixture(scope="module")
def verdicts():
    return {strategy.name: {fault: verdict(strategy, fault) for fault in FAULTS} for strategy in STRATEGIES}


@pytest.mark.parametrize(
    "strategy", [strategy for strategy in STRATEGIES if strategy.sound], ids=lambda strategy: strategy.name
)
def test_sound_strategies_are_not_accused(strategy, verdicts):
    """Whatever fails: the job finishes, nothing is lost, nothing comes twice."""
    assert dict.fromkeys(FAULTS, "sound") == verdicts[strategy.name]


@pytest.mark.parametrize(
    "strategy", [strategy for strategy in STRATEGIES if not strategy.sound], ids=lambda strategy: strategy.name
)
def test_wrong_strategies_are_caught(strategy, verdicts):
    """By one of the faults at least."""
    assert {"sound"} != set(verdicts[strategy.name].values())


def test_the_table_is_up_to_date(verdicts):
    """What is written beside these tests is what they find."""
    assert table((strategy, verdicts[strategy.name]) for strategy in STRATEGIES) in TABLE.read_text()


def test_the_faults_happen():
    """A table of faults that strike nobody would be a table of nothing."""
    runs = {fault: run(STRATEGIES[0], fault) for fault in FAULTS}
    restarts = {fault: len(result.recoveries) for fault, result in runs.items()}

    assert restarts == {
        "nothing": 0,
        "a task fails": 2,
        "a sink fails": 3,
        "a sink fails when the other has ended": 1,
        "a task manager is lost": 1,
        "the JobManager is lost": 1,
        "storage stands still, checkpoints expire": 0,
    }
    assert (runs["storage stands still, checkpoints expire"].checkpoints["status"] == "FAILED").sum() >= 2


def test_commits_happen():
    """Every strategy's sink commits something in the middle of the run, and files are written."""
    for strategy in STRATEGIES:
        commits = run(strategy, "nothing").commits

        assert len(commits) >= 4, strategy.name
        assert commits["files"].sum() > 0, strategy.name
