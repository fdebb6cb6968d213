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


def committable(writer=0, epoch=3, opened_ns=0, records=10):
    return Committable(writer, epoch, ((0, records),), opened_ns, 100)


def store(*committables, back=()):
    """What one task has in a checkpoint."""
    return SimpleNamespace(committables=Uncommitted(0, committables) if committables else None, held_back=back)


def begun_from(before, checkpoint=3, parts=None):
    """The account of a job that begins with a checkpoint of another one; `parts`: as they are dealt out to it."""
    after = account()
    after.contents.checkpoints[checkpoint] = parts or {}
    after.continue_from(before, checkpoint)
    return after


def missing(after):
    """What it finds when its next checkpoint is complete."""
    after.found.clear()
    after.completed(9, [9])
    return after.found


def commit(transactions, *committed, lost=()):
    transactions.context.commits.append(SimpleNamespace(committed=committed, lost=lost))


def test_checkpoints_that_are_gone_are_forgotten():
    before = account()
    for checkpoint in (2, 3):
        before.cut(checkpoint, 0, store(committable(epoch=checkpoint), back=(5, 1)))
    before.forget(lambda number: number < 3)

    assert [len(missing(begun_from(before, number))) for number in (2, 3)] == [0, 1]
    assert [len(begun_from(before, number).found) for number in (2, 3)] == [0, 1]
