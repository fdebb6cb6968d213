"""A handful of the worlds that run by the thousand at night: same seed, same world; sound ones are sound, wrong ones are caught."""

import pytest

from sim.scenario import loads
from tests.worlds import nightly
from tests.worlds.generator import WRONG, text
from tests.worlds.nightly import SOUND, WRONG_EVERY, Outcome, Task, plan, report, run

SEEDS = range(40)


def test_a_seed_is_a_world():
    """The same file every time; another seed is another file; all of them can be read."""
    texts = [text(seed) for seed in SEEDS]

    assert texts == [text(seed) for seed in SEEDS]
    assert len(texts) == len(set(texts))
    assert all(len(loads(one).scenarios) == 1 for one in texts[:10])


def test_worlds_cover_what_matters():
    """Failures, savepoints, stops, both ways of uploading, every kind of barrier: all are drawn."""
    everything = "\n".join(text(seed) for seed in SEEDS)
    words = (
        "kill:", "task-manager:", "job-manager:", "storage: outage", "network: random", "slow:", "savepoint:", "stop: drain",
        "stop: no-drain", "barriers: aligned", "barriers: unaligned", "aligned-timeout", "operator-io: async", "abort-policy: reupload",
        "finish: naive", "lost-notifications", "committer: global", "flush:", "combine: join", "max-concurrent: 3", "rocksdb",
    )  # fmt: skip

    assert [] == [word for word in words if word not in everything]


def test_sound_worlds_are_sound():
    """No violation, no error."""
    outcomes = [run(Task(seed)) for seed in range(12)]

    assert [] == [one for one in outcomes if one.violations or "Error" in one.fact]
    assert sum(one.restarts for one in outcomes) >= 3, "something fails in them"
    assert sum(one.commits for one in outcomes) >= 50


@pytest.mark.parametrize("seed", [11718, 10162, 14303])
def test_worlds_that_failed_once_are_sound(seed):
    """11718: a newer barrier gave an alignment up, and freed the channel it had just blocked.  10162: a barrier outlived its checkpoint.

    14303: slow storage keeps the buffers of what unaligned checkpoints captured, and the job needs more time than it has.
    """
    outcome = run(Task(seed))

    assert not outcome.failed, outcome.fact


@pytest.mark.parametrize("wrong", sorted(WRONG))
def test_wrong_strategies_are_caught(wrong):
    """In one of a few worlds at least."""
    assert any(run(Task(seed, wrong)).violations for seed in range(8))


def test_the_plan_mixes_them():
    """One world in ten has a wrong strategy, each in turn; seeds go up."""
    tasks = plan(200, first_seed=50)

    assert list(range(50, 250)) == [task.seed for task in tasks]
    assert 200 // WRONG_EVERY == sum(task.wrong != SOUND for task in tasks)
    assert set(WRONG) | {SOUND} == {task.wrong for task in tasks}


def outcome(seed=1, wrong=SOUND, violations=0, fact=""):
    return Outcome(Task(seed, wrong), violations, fact, 1, 5, 9, 2 * 10**9)


def test_a_sound_world_with_a_violation_fails(tmp_path, capsys):
    """It is told by its seed, and its scenario is kept."""
    code = report([outcome(), outcome(7, violations=2, fact="3 records are lost")], 2, tmp_path)

    assert 1 == code
    assert text(7) == (tmp_path / "world-7.yaml").read_text()
    assert "world 7: 3 records are lost" in capsys.readouterr().out


def test_a_wrong_world_with_a_violation_is_as_it_should_be(tmp_path):
    wrong = min(WRONG)

    assert 0 == report([outcome(), outcome(8, wrong, 1, "3 records are lost")], 2, tmp_path)
    assert 1 == report([outcome(8, wrong, 0, "the job ends as RUNNING")], 1, tmp_path), "an end of another kind is a mistake"


def test_a_wrong_strategy_that_is_never_caught_is_told(tmp_path, capsys):
    wrong = min(WRONG)
    outcomes = [outcome(seed, wrong) for seed in range(20)] + [outcome(50, name, 1, "lost") for name in WRONG if name != wrong]

    assert 1 == report(outcomes, 20, tmp_path)
    assert f"never caught: {wrong}" in capsys.readouterr().out


def test_an_error_is_an_outcome(monkeypatch):
    """The other worlds do not suffer."""

    def broken(*_args, **_kwargs):
        raise ArithmeticError("negative credit\nwith a story")

    monkeypatch.setattr(nightly, "simulate", broken)

    assert "ArithmeticError: negative credit" == run(Task(1)).fact
    assert run(Task(1)).failed
