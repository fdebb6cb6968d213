"""Laws 82 and 83: what happens without a JobManager, or for reasons that it cannot know, is told."""

import pytest

from sim.invariants.checkpoints import restarts_counted_across_leaders, without_job_manager
from sim.invariants.violation import JournalFormatter
from sim.results.journal import Happening, Journal

H = Happening
LOST, ELECTED = (H.JOB_MANAGER_LOST, -1), (H.JOB_MANAGER_ELECTED, -1)
RESTART, GIVEN_UP, ABORTED, FAILED = (H.JOB_RESTARTING, -1), (H.GIVEN_UP, -1), (H.ABORTED, 1), (H.JOB_FAILED, -1)


def journal(*rows):
    """(happening, checkpoint), a millisecond each."""
    written = Journal()
    for ms, (happening, checkpoint) in enumerate(rows):
        written.note(ms * 1_000_000, happening, checkpoint)
    return written


def violations(*rows):
    written = journal(*rows)
    return list(without_job_manager(written, JournalFormatter(written, [("source", 0)])))


def counted(*rows, attempts=1, tolerable=1):
    written = journal(*rows)
    return [
        row.fact
        for row in restarts_counted_across_leaders(
            written, attempts, tolerable, JournalFormatter(written, [("source", 0)])
        )
    ]


@pytest.mark.parametrize(
    "happening",
    [
        H.TRIGGERED,
        H.ACKNOWLEDGED,
        H.COMPLETED,
        H.NOTIFIED_COMPLETE,
        H.JOB_RESTARTING,
        H.JOB_RESTORED,
        H.JOB_FINISHED,
        H.RESCALED,
        H.GIVEN_UP,
    ],
)
def test_what_only_a_job_manager_can_do_is_told(happening):
    doing = (happening, 1)

    assert violations(doing, LOST, ELECTED, doing) == []
    assert [row.time_ns for row in violations(doing, LOST, doing, ELECTED, doing)] == [1_000_000 * 2]
    assert len(violations(LOST, doing)) == 1, "it need not come back"


def test_what_happens_in_the_instant_of_the_loss_is_let_pass():
    """What was pending is aborted then."""
    written = Journal([row._replace(time_ns=5) for row in journal(LOST, (H.TRIGGERED, 1))])

    assert list(without_job_manager(written, JournalFormatter(written, []))) == []


def test_giving_up_for_what_another_one_saw_is_told():
    assert counted(RESTART, GIVEN_UP) == []
    assert counted(RESTART, LOST, ELECTED, RESTART, GIVEN_UP) == ["the restart strategy gives up after 0 restarts of 1"]
    assert counted(RESTART, LOST, ELECTED, RESTART, RESTART, GIVEN_UP) == []
    assert counted(GIVEN_UP, attempts=None) == []


def test_failing_for_checkpoints_of_another_one_is_told():
    assert counted(ABORTED, ABORTED, FAILED) == []
    assert counted(ABORTED, LOST, ELECTED, RESTART, ABORTED, FAILED) == [
        "the job fails after 1 failed checkpoint, 1 may fail"
    ]
