"""Transactions a job began with: each is committed or lost by the time its first checkpoint is complete, or the account says so."""

from types import SimpleNamespace

from sim.protocol.commit import Committable
from sim.runtime.context import Uncommitted
from sim.runtime.monitors.output import CommitMonitor

NAMES = [("sink", 0), ("sink", 1)]
TELLER = SimpleNamespace(story=lambda _: ())


def account():
    context = SimpleNamespace(names=NAMES, commits=[], env=SimpleNamespace(now=7))
    contents = SimpleNamespace(checkpoints={})
    return CommitMonitor(SimpleNamespace(context=context, contents=contents, ends=None, ledger=None, formatter=TELLER))


def begun_from(before, checkpoint):
    """The account of a job that begins with a checkpoint of another one."""
    after = account()
    after.contents.checkpoints[checkpoint] = {}
    after.continue_from(before, checkpoint)
    return after


def missing(after):
    """What it finds when its next checkpoint is complete."""
    after.found.clear()
    after.completed(9, [9])
    return after.found


def test_checkpoints_that_are_gone_are_forgotten():
    before = account()
    for checkpoint in (2, 3):
        committables = Uncommitted(0, (Committable(0, checkpoint, ((0, 10),), 0, 100),))
        before.cut(checkpoint, 0, SimpleNamespace(committables=committables, held_back=(5, 1)))
    before.forget(lambda number: number < 3)

    assert [len(missing(begun_from(before, number))) for number in (2, 3)] == [0, 1]
    assert [len(begun_from(before, number).found) for number in (2, 3)] == [0, 1]
