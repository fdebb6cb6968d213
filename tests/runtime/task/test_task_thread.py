"""A task's thread: mails run between records, in order, and wait while the thread works for the control plane."""

import pytest

from sim.runtime.task.thread import TaskThread
from tests.runtime.fakes import FakePlane


@pytest.fixture
def plane():
    return FakePlane()


@pytest.fixture
def thread(plane):
    return TaskThread(plane, task=3)


def test_mails_wait_while_the_thread_is_occupied(thread, plane):
    """A mail that keeps the thread keeps the mails behind it waiting; they ask again when it is free."""
    story = []
    thread.post(thread.occupy)
    thread.post(lambda: story.append("waited"))
    thread.at_safe_point()
    thread.at_safe_point()

    assert story == []
    assert plane.verbs[-1] == ("hold", 3)
    thread.vacate()
    assert plane.verbs[-2:] == [("release", 3), ("interrupt", 3)]
    thread.at_safe_point()
    assert story == ["waited"]


def test_an_operator_that_waits_lets_notifications_through(thread, plane):
    """MailboxExecutor#yield: mails of the task itself, barriers among them, wait in their order until the last late output is written."""
    story = []
    thread.begin_yield()
    for n, notifies in enumerate((False, True, False, True)):
        thread.post(lambda n=n: story.append(n), notifies=notifies)
    thread.at_safe_point()

    assert story == [1, 3]
    assert plane.verbs == [("wait_for_late", 3), ("interrupt", 3), ("interrupt", 3)], "nobody asks for what cannot run"
    thread.end_yield()
    assert plane.verbs[-1] == ("interrupt", 3)
    thread.at_safe_point()
    assert story == [1, 3, 0, 2]


def test_mails_wait_until_what_was_let_go_is_written(thread, plane):
    """The outputs may block the thread: the mails behind wait for the safe point after them."""
    story = []
    thread.post(lambda: (story.append("commit"), thread.release_late_outputs(7)))
    thread.post(lambda: story.append("next"))
    thread.at_safe_point()

    assert story == ["commit"]
    assert plane.verbs[-2:] == [("release_late_outputs", 3, 7), ("interrupt", 3)]
    thread.at_safe_point()
    assert story == ["commit", "next"]


def test_a_thread_that_takes_mails_only_goes_back_to_them(thread, plane):
    """Its data has ended: it writes what is let go, be it nothing, serves no record, and its mails go on."""
    story = []
    thread.serve_mails_only()
    thread.post(lambda: (story.append("timer"), thread.release_late_outputs(7)))
    thread.post(lambda: story.append("next"))

    assert story == ["timer"]
    assert plane.verbs[:4] == [("hold", 3), ("release_late_outputs", 3, 7), ("release", 3), ("report_written", 3)]
    assert thread.written()
    assert plane.verbs[-1] == ("hold", 3)
    assert story == ["timer", "next"]
