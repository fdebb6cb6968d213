"""Laws 113 to 116: how the data of tasks ends, and what follows."""

from types import SimpleNamespace

from sim.invariants import output
from sim.invariants.recovery import Deployed
from sim.invariants.violation import JournalFormatter
from sim.results.journal import Entry, Happening

TELLER = JournalFormatter([], [("source", 0), ("sink", 0)])
STOPPED = {1: SimpleNamespace(stops=True, status="COMPLETED", trigger_ns=5)}
TRIGGERED, END = Happening.TRIGGERED, Happening.END_OF_DATA
ALL_ENDED = [Entry(10, END, task=0, detail="drain"), Entry(20, END, task=1, detail="drain")]


def missing(*rows, end_ns=99, deployed=(), deletions=()):
    """What is said where no checkpoint begins within 10 ns behind the end of all data."""
    found = output.commits_missing_at_end(rows, 2, 10, end_ns, deployed, TELLER, deletions)
    return [violation.fact for violation in found]


def test_a_checkpoint_follows_the_end_of_all_data():
    """It counts from the end of the last task, or of the checkpoint that was under way then."""
    begun, done = Entry(15, TRIGGERED, 3), Entry(40, Happening.COMPLETED, 3)

    assert missing(*ALL_ENDED, Entry(25, TRIGGERED, 4)) == []
    assert missing(*ALL_ENDED, end_ns=30) == []
    assert missing(*ALL_ENDED, end_ns=31) == ["all data has ended, and no checkpoint begins for 1.1e-05 ms"]
    assert missing(ALL_ENDED[0]) == []
    assert missing(begun, *ALL_ENDED) == missing(begun, *ALL_ENDED, done) == []


def test_deletions_come_before_the_last_checkpoint():
    """Those under way at the end of all data, and those without a gap behind them; a later one excuses nothing."""
    cases = [[], [(15, 21)], [(15, 60), (60, 90)], [(15, 60), (61, 90)], [(21, 90)]]

    assert [len(missing(*ALL_ENDED, deletions=rows)) for rows in cases] == [1, 1, 0, 1, 1]


def test_who_has_finished():
    finished, counted = Entry(5, Happening.TASK_FINISHED, task=0), Entry(9, TRIGGERED, 2, number=1)

    assert list(output.finished_count_errors([finished, counted], [], lambda _: 0, TELLER)) == []


def test_a_story_ends_with_what_it_accuses():
    """What happened in the same instant belongs to it, what came later does not."""
    rows = [
        Entry(5, Happening.TASK_FINISHED, task=0),
        Entry(7, Happening.JOB_RESTORED, 1, number=1),
        Entry(9, TRIGGERED, 2, number=1),
        Entry(9, Happening.REFUSED, detail="busy"),
        Entry(10, TRIGGERED, 3),
    ]
    (found,) = output.finished_count_errors(
        rows, [Deployed(7, 1, frozenset({0}))], lambda _: 0, JournalFormatter(rows, TELLER.names)
    )

    lines = ["source[0] has finished", "restart 1 deploys its tasks", "the coordinator triggers checkpoint 2"]
    assert lines == [line[12:][: len(part)].strip() for line, part in zip(found.story, lines, strict=True)]


def test_the_story_of_a_task_leaves_out_the_ends_of_others():
    rows = [Entry(3, END, task=0, detail="drain"), Entry(4, END, task=1, detail="drain")]
    found = output.unknown_end_error(3, 1, "its data has ended", 9, JournalFormatter(rows, TELLER.names))

    (line,) = found.story
    assert found.where == "sink[0]"
    assert "sink[0] has come to the end" in line


def test_a_failure_breaks_the_wait_for_the_last_checkpoint_off():
    """Until all tasks run again, and have come to their ends again."""
    lost, runs = Entry(22, Happening.TASK_FAILED, task=0), Entry(50, Happening.JOB_RECOVERED)
    restored, own = Entry(30, Happening.JOB_RESTORED, 1, number=1), [Deployed(30, 1, frozenset({0, 1}))]
    again = [Entry(60, END, task=0, detail="drain"), Entry(61, END, task=1, detail="drain")]

    assert missing(*ALL_ENDED, lost, restored, runs, deployed=own) == []
    assert missing(*ALL_ENDED, lost, restored, *again, deployed=own) == []
    assert len(missing(*ALL_ENDED, lost, restored, runs, *again, deployed=own)) == 1


def test_a_stop_answers_for_what_ends_behind_its_trigger():
    drained = [Entry(at, END, task=0, detail="drain") for at in (4, 5)]

    assert [len(list(output.wrong_stop_mode([row], STOPPED, "no-drain", {0}, TELLER))) for row in drained] == [0, 1]
