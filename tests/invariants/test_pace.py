"""Laws 94 to 99: checkpoints begin and end as the coordinator's options say."""

from dataclasses import replace

from sim.invariants.checkpoints import TimingOptions, checkpoint_timing_errors, excess_triggers_in_backlog
from sim.invariants.violation import JournalFormatter
from sim.results.journal import Entry, Happening
from sim.results.tables import CheckpointStats

TRIGGERED, COMPLETED, ABORTED = Happening.TRIGGERED, Happening.COMPLETED, Happening.ABORTED
PACE = TimingOptions(max_concurrent=1, min_pause_ns=10, timeout_ns=100, tolerable=1)


def completed(number, begun, ended, **options):
    return CheckpointStats(
        number, begun, 1, status="COMPLETED", latest_ack_ns=ended, acknowledged=1, completed_ns=ended, **options
    )


def failed(number, begun, ended, reason):
    return CheckpointStats(number, begun, 1, status="FAILED", failed_ns=ended, failure=reason)


def facts(*rows, turns=(), pace=PACE):
    stats = {row.number: row for row in rows}
    journal = sorted(
        [Entry(row.trigger_ns, TRIGGERED, row.number) for row in rows]
        + [Entry(row.completed_ns, COMPLETED, row.number) for row in rows if row.completed_ns >= 0]
        + [Entry(row.failed_ns, ABORTED, row.number, detail=row.failure) for row in rows if row.failed_ns >= 0]
        + list(turns)
    )
    found = checkpoint_timing_errors(stats, journal, pace, 1, 10_000, JournalFormatter(journal, [("map", 0)]))
    return [violation.fact for violation in found]


def test_one_after_the_other():
    assert facts(completed(1, 0, 50), completed(2, 60, 90), completed(3, 100, 120)) == []


def test_two_at_a_time():
    assert facts(completed(1, 0, 50), completed(2, 40, 90)) == ["it begins while 1 is under way, 1 may be at a time"]
    assert facts(completed(1, 0, 50), completed(2, 40, 90), pace=PACE._replace(max_concurrent=2)) == []
    assert facts(completed(1, 0, 50), completed(2, 40, 90, savepoint_format="native")) == []


def test_the_checkpoint_behind_the_end_of_all_data_does_not_wait():
    assert facts(completed(1, 0, 50), completed(2, 55, 60), turns=[Entry(54, Happening.END_OF_DATA, task=0)]) == []


def test_a_timeout_waits_while_metadata_is_written():
    writes = CheckpointStats(1, 0, 1, status="COMPLETED", latest_ack_ns=99, acknowledged=1, completed_ns=130)

    assert facts(writes, failed(2, 20, 130, "CHECKPOINT_EXPIRED"), pace=PACE._replace(max_concurrent=2)) == []
    assert len(facts(writes, failed(2, 20, 131, "CHECKPOINT_EXPIRED"), pace=PACE._replace(max_concurrent=2))) == 1


def test_a_checkpoint_does_not_outlast_a_failure():
    restart = Entry(30, Happening.JOB_RESTORED, number=1)

    assert facts(completed(1, 0, 50), turns=[restart]) == ["it began before restart 1, and is under way behind it"]
    assert facts(failed(1, 0, 30, "CHECKPOINT_COORDINATOR_SUSPEND"), turns=[restart]) == []


def test_too_many_failures_in_a_row():
    two = failed(1, 0, 5, "CHECKPOINT_DECLINED"), failed(2, 20, 25, "CHECKPOINT_DECLINED")

    assert facts(*two, completed(3, 40, 50)) == ["2 checkpoints in a row failed, 1 may, and the job goes on"]
    assert facts(*two, completed(3, 40, 50), turns=[Entry(25, Happening.JOB_FAILED)]) == []
    assert facts(*two, completed(3, 40, 50), pace=PACE._replace(tolerable=2)) == []


def test_the_interval_of_a_backlog():
    backlog = PACE._replace(backlog_ns=100)

    assert excess_triggers_in_backlog(0, [0, 100, 200], 200, backlog, first=True) is None
    assert "5 checkpoints began" in excess_triggers_in_backlog(0, [0, 50, 100, 150, 200], 200, backlog, first=True).fact
    late = PACE._replace(backlog_ns=50_000_000)  # a restarted source says so within 100 ms: three more may have begun
    assert excess_triggers_in_backlog(0, [0] * 6, 50_000_000, late, first=False) is None
    assert excess_triggers_in_backlog(0, [0] * 7, 50_000_000, late, first=False) is not None
    # no checkpoint of this attempt began in a backlog
    assert excess_triggers_in_backlog(1_000, [1_100], -1, backlog, first=False) is None
    # no interval of a backlog is held to nothing
    assert excess_triggers_in_backlog(0, [0] * 9, 200, PACE, first=True) is None


def test_what_happens_in_one_instant_may_have_come_in_either_order():
    """A checkpoint that begins in the instant of an end has waited for it, or knows nothing of it."""
    at_once = PACE._replace(min_pause_ns=0)

    assert facts(completed(1, 0, 50), completed(2, 50, 60), pace=at_once) == []
    assert len(facts(completed(1, 0, 50), completed(2, 49, 60), pace=at_once)) == 1
    assert facts(completed(1, 0, 50), completed(2, 50, 60)) == []
    assert len(facts(completed(1, 0, 50), completed(2, 51, 60))) == 1


def test_all_that_are_under_way_are_told():
    three = completed(1, 0, 50), completed(2, 10, 50), completed(3, 20, 60)

    assert facts(*three, pace=PACE._replace(max_concurrent=2)) == [
        "it begins while 1, 2 are under way, 2 may be at a time"
    ]


def test_a_new_job_manager_knows_of_no_pause():
    two = completed(1, 0, 50), completed(2, 55, 60)

    assert facts(*two, turns=[Entry(52, Happening.JOB_MANAGER_LOST)]) == []
    assert facts(completed(1, 0, 50), completed(2, 55, 60, savepoint_format="native")) == []


def test_a_task_that_goes_on_has_more_data():
    ended = [Entry(51, Happening.END_OF_DATA, task=0), Entry(52, Happening.TASK_RESTORED, task=0)]

    assert len(facts(completed(1, 0, 50), completed(2, 55, 60), turns=ended)) == 1


def test_the_timeout_counts_from_the_call():
    """It is set when the tasks are called, some time after the trigger."""
    delayed = PACE._replace(call_ns=7)

    assert facts(failed(1, 0, 107, "CHECKPOINT_EXPIRED"), pace=delayed) == []
    assert facts(failed(1, 0, 106, "CHECKPOINT_EXPIRED"), pace=delayed) == [
        "it expires after 9.9e-05 ms, the timeout is 0.0001 ms"
    ]
    assert facts(completed(1, 0, 107), pace=delayed) == []
    assert facts(completed(1, 0, 108), pace=delayed) == [
        "it waits for acknowledgements for 0.000101 ms, the timeout is 0.0001 ms"
    ]


def test_only_failures_in_a_row_that_flink_counts_are_counted():
    """No savepoint, none for other reasons, none older than the last that completed, none that another JobManager saw."""
    first, end = failed(1, 0, 5, "CHECKPOINT_DECLINED"), completed(4, 60, 70)
    second = failed(2, 20, 25, "CHECKPOINT_DECLINED")

    assert len(facts(first, second, end)) == 1
    assert facts(first, replace(second, savepoint_format="native"), end) == []
    assert facts(first, failed(2, 20, 25, "CHECKPOINT_SUBSUMED"), end) == []
    assert facts(first, second, end, turns=[Entry(10, Happening.JOB_MANAGER_LOST)]) == []
    two = PACE._replace(max_concurrent=3, tolerable=0, min_pause_ns=0)
    assert facts(failed(1, 0, 25, "CHECKPOINT_DECLINED"), completed(2, 10, 20), end, pace=two) == []
    assert len(facts(completed(1, 0, 20), failed(2, 10, 25, "CHECKPOINT_DECLINED"), end, pace=two)) == 1


def test_the_failure_that_is_too_many_is_accused():
    rows = failed(1, 0, 5, "IO_EXCEPTION"), failed(2, 20, 25, "IO_EXCEPTION"), completed(3, 40, 50)
    journal = [Entry(row.failed_ns, ABORTED, row.number, detail=row.failure) for row in rows[:2]] + [
        Entry(40, TRIGGERED, 3)
    ]
    (found,) = checkpoint_timing_errors(
        {row.number: row for row in rows}, journal, PACE, 1, 10_000, JournalFormatter(journal, [("map", 0)])
    )

    assert (found.where, found.time_ns) == ("checkpoint 2", 25)
    assert [line[line.index("checkpoint ") :][:12] for line in found.story] == ["checkpoint 1", "checkpoint 2"]


def test_checkpoints_of_a_backlog_are_those_that_begin_in_it():
    none = PACE._replace(backlog_ns=0)  # two may have begun before the source says so

    assert excess_triggers_in_backlog(10, [9, 10, 20, 21], 20, none, first=True) is None
    assert excess_triggers_in_backlog(10, [10, 15, 20], 20, none, first=True) is not None
    assert excess_triggers_in_backlog(10, [10, 15, 20], 20, none, first=False) is None
    assert excess_triggers_in_backlog(10, [10, 12, 15, 20], 20, none, first=False) is not None
