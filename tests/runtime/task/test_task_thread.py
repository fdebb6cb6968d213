"""A task's thread: mails run between records, in order, and wait while the thread works for the control plane."""

import pytest

from sim.plane import build
from sim.runtime.clock import TwoPlaneEnvironment
from sim.runtime.task.thread import TaskThread
from tests.oracle import oracle
from tests.plane.lab import pipe
from tests.runtime.fakes import FakePlane


@pytest.fixture
def plane() -> FakePlane:
    return FakePlane()


@pytest.fixture
def thread(plane) -> TaskThread:
    return TaskThread(plane, task=3)


def test_a_mail_waits_for_a_safe_point(thread, plane):
    """Posting asks for one; nothing runs before it."""
    story = []
    thread.post(lambda: story.append("mail"))

    assert story == []
    assert plane.verbs == [("interrupt", 3)]
    thread.at_safe_point()
    assert story == ["mail"]


def test_mails_run_in_order_and_once(thread):
    story = []
    for n in range(3):
        thread.post(lambda n=n: story.append(n))
    thread.at_safe_point()
    thread.at_safe_point()

    assert story == [0, 1, 2]


def test_a_mail_may_post_another(thread):
    """It runs at the same safe point, behind those that were there."""
    story = []
    thread.post(lambda: (story.append("first"), thread.post(lambda: story.append("third"))))
    thread.post(lambda: story.append("second"))
    thread.at_safe_point()

    assert story == ["first", "second", "third"]


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


def occupied_by(thread, story, name):
    """A mail that keeps the thread."""
    return lambda: (story.append(name), thread.occupy())


def test_one_element_comes_between_two_batches(thread, plane):
    """Mails that were there run on when the thread is free; what came meanwhile waits for an element (MailboxProcessor)."""
    story = []
    thread.post(occupied_by(thread, story, "snapshot"))
    thread.post(lambda: story.append("of the batch"))
    thread.at_safe_point()
    thread.post(lambda: story.append("came meanwhile"))
    thread.vacate()

    assert plane.verbs[-2:] == [("release", 3), ("interrupt", 3)]
    thread.at_safe_point()
    assert story == ["snapshot", "of the batch"]
    assert plane.verbs[-1] == ("interrupt_behind", 3)
    thread.at_safe_point()
    assert story == ["snapshot", "of the batch", "came meanwhile"]


def test_an_element_comes_behind_the_last_mail_of_a_batch(thread, plane):
    """Snapshots one after the other fill all of the thread's time: an element is served between two of them."""
    story = []
    for n in range(3):
        thread.post(occupied_by(thread, story, n))
        if n:
            thread.vacate()
            assert plane.verbs[-2:] == [("release", 3), ("interrupt_behind", 3)]
        thread.at_safe_point()

    assert story == [0, 1, 2]


def test_work_that_an_element_began_is_no_batch(thread, plane):
    """A barrier of the input keeps the thread: the mails that came meanwhile are the next batch, and come first."""
    thread.occupy()
    thread.post(lambda: None)
    thread.vacate()

    assert plane.verbs[-2:] == [("release", 3), ("interrupt", 3)]


def test_a_batch_that_ended_with_its_thread_free_is_forgotten(thread, plane):
    """No mail waited: the next one comes after whatever the thread serves now."""
    thread.post(thread.occupy)
    thread.at_safe_point()
    thread.vacate()
    thread.post(lambda: None)

    assert plane.verbs[-1] == ("interrupt", 3)


def test_a_thread_without_input_knows_no_batches(thread, plane):
    """Its data has ended: there is no element to wait for."""
    story = []
    thread.serve_mails_only()
    thread.post(occupied_by(thread, story, "snapshot"))
    thread.post(lambda: story.append("came meanwhile"))
    thread.vacate()

    assert story == ["snapshot", "came meanwhile"]
    assert "interrupt_behind" not in {verb for verb, *_ in plane.verbs}


def test_posting_to_an_occupied_thread_asks_for_nothing(thread, plane):
    """A held task has no safe points: the question is put when it is free."""
    thread.occupy()
    thread.post(lambda: None)

    assert plane.verbs == [("hold", 3)]


def test_a_thread_is_kept_once(thread, plane):
    """Pre-barrier and sync phase keep the same thread; giving back a free one is nothing."""
    thread.occupy()
    thread.occupy()
    thread.vacate()
    thread.vacate()

    assert plane.verbs == [("hold", 3), ("release", 3)]


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


def test_what_an_operator_waits_for_at_its_end_comes_before_mails(thread, plane):
    """Outputs were let go and are written; others are still late, so the thread stays with them."""
    thread.serve_mails_only()
    thread.release_late_outputs(7)
    thread.begin_yield()

    assert thread.written()
    assert plane.verbs.count(("hold", 3)) == 1
    thread.end_yield()
    assert plane.verbs.count(("hold", 3)) == 2


@pytest.mark.parametrize("engine", [oracle, "compiled"])
def test_a_mail_never_runs_inside_a_record(engine):
    """Posted at 13 while the record of 10 to 20 is served: it runs at 20."""
    times = []
    plane = build(pipe(), engine)
    env = TwoPlaneEnvironment(plane, lambda notice: thread.at_safe_point())
    thread = TaskThread(plane, task=0)
    env.call_in(13, lambda: thread.post(lambda: times.append(env.now)))
    env.run(until=100)

    assert times == [20]


@pytest.mark.parametrize("engine", [oracle, "compiled"])
def test_an_occupied_thread_serves_nothing(engine):
    """Held from 20 for 45 ns: the records of 20 to 60 are made up from 65 on."""
    plane = build(pipe(), engine)
    env = TwoPlaneEnvironment(plane, lambda notice: thread.at_safe_point())
    thread = TaskThread(plane, task=0)
    env.call_in(13, lambda: thread.post(lambda: (thread.occupy(), env.call_in(45, thread.vacate))))
    served = []
    for at in (21, 64, 74, 76):
        env.call_in(at, lambda: served.append(int(plane.tasks()["served"][0])))
    env.run(until=100)

    assert served == [2, 2, 2, 3]
