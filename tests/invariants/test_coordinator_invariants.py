"""The coordinator's promises, without a JobManager as well: each is broken once in a journal written by hand."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from sim.model.faults import Fault, JobManagerDown, Kill, When
from sim.model.job import Backlog
from sim.results.journal import Entry, EventType
from sim.results.tables import CheckpointStats
from sim.results.violations import JournalFormatter, Violation
from sim.runtime.invariants.coordinator import CheckpointOrder, CheckpointTiming, StopWithSavepoint
from sim.runtime.invariants.invariant import ObservedRun
from tests.invariants.watched import account_of, end_facts, facts, hollow, stateful, with_journal, with_scenario

H = EventType
MS, SECOND = 10**6, 10**9
NOW, LATEST = 5400 * MS, 6
SOUND = [
    (H.TRIGGERED, 1, -1),
    (H.ACKNOWLEDGED, 1, 0),
    (H.ACKNOWLEDGED, 1, 1),
    (H.LAST_ACKNOWLEDGED, 1, -1),
    (H.COMPLETED, 1, -1),
]


def entries(*rows):
    """(happening, checkpoint, task), a millisecond each."""
    return [Entry(ms * MS, *row) for ms, row in enumerate(rows)]


def wrong_order(*rows):
    account = hollow(CheckpointOrder, entries(*rows), stats={n: CheckpointStats(n, 0, tasks=2) for n in range(1, 5)})
    account._check_order()
    return facts(account)


def test_ids_that_do_not_grow_are_told():
    """A restart must not use an id again."""
    assert wrong_order((H.TRIGGERED, 2, -1), (H.TRIGGERED, 1, -1)) == ["it is triggered after checkpoint 2"]
    assert wrong_order((H.TRIGGERED, 2, -1), (H.TRIGGERED, 2, -1)) == ["it is triggered after checkpoint 2"]


def test_a_second_end_an_early_one_and_an_early_notification_are_told():
    """A sink would commit what may still fail."""
    notified = "tasks are notified that it is complete, but it is not"

    assert wrong_order(*SOUND, (H.ABORTED, 1, -1)) == ["it is aborted after it was completed"]
    assert wrong_order(*SOUND[:3], SOUND[4]) == ["it completes although no metadata was written"]
    assert wrong_order(*SOUND[:4], (H.NOTIFIED_COMPLETE, 1, -1), SOUND[4]) == [notified]


@pytest.mark.parametrize(
    ("retained", "latest", "expected"),
    [
        ((1,), 1, []),
        ((), 0, []),
        ((1, 2), 2, ["retained: 1, 2; at most 1 allowed, 2 required"]),
        ((), 1, ["retained: none; at most 1 allowed, 1 required"]),
    ],
)
def test_retention_is_told(retained, latest, expected):
    """More than may be kept, or not the latest."""
    coordinator = SimpleNamespace(retained=retained, num_retained=1)
    account = hollow(CheckpointOrder, entries(*SOUND), begun_from=latest, run={"coordinator": coordinator})
    account._check_retained()

    assert expected == facts(account)


def test_the_latest_checkpoint_is_no_savepoint(monkeypatch):
    """What is retained is compared with it."""
    account = account_of(CheckpointOrder, stateful())
    account.run.coordinator = SimpleNamespace(retained=(LATEST - 1,), num_retained=1)

    assert len(end_facts(account)) == 1
    monkeypatch.setattr(account.context.stats[LATEST], "savepoint_format", "native")
    assert end_facts(account) == []


# What happens without a JobManager, or for reasons that it cannot know (invariants 82 and 83).


LOST, ELECTED = (H.JOB_MANAGER_LOST, -1), (H.JOB_MANAGER_ELECTED, -1)
RESTART, GIVEN_UP, ABORTED, FAILED = (H.JOB_RESTARTING, -1), (H.GIVEN_UP, -1), (H.ABORTED, 1), (H.JOB_FAILED, -1)


def actions(*rows):
    account = hollow(CheckpointOrder, entries(*rows))
    account._check_actions()
    return [violation.time_ns for violation in account.found]


def counted(*rows, attempts=1, tolerable=1):
    options = {"max_restarts": attempts}
    scenario = SimpleNamespace(
        restart=SimpleNamespace(**options), checkpoint=SimpleNamespace(tolerable_failed=tolerable)
    )
    account = hollow(CheckpointOrder, entries(*rows), scenario=scenario)
    account._check_counts()
    return facts(account)


@pytest.mark.parametrize(
    "event_type",
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
def test_what_only_a_job_manager_can_do_is_told(event_type):
    doing = (event_type, 1)

    assert actions(doing, LOST, ELECTED, doing) == []
    assert actions(doing, LOST, doing, ELECTED, doing) == [2 * MS]
    assert actions(LOST, doing) == [MS], "it need not come back"


def test_what_happens_in_the_instant_of_the_loss_is_let_pass():
    """What was pending is aborted then."""
    account = hollow(CheckpointOrder, [row._replace(time_ns=5) for row in entries(LOST, (H.TRIGGERED, 1))])
    account._check_actions()

    assert account.found == []


@pytest.mark.parametrize(("fault", "violations"), [(JobManagerDown(1), 1), (Kill(), 0)])
def test_the_run_is_read_for_it_only_if_there_may_be_no_job_manager(fault, violations):
    account = with_scenario(account_of(CheckpointOrder, stateful()), faults=(Fault(fault, When((1,))),))
    with_journal(account, Entry(1, H.JOB_MANAGER_LOST), Entry(2, H.TRIGGERED, 1))

    assert violations == len(end_facts(account))


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


# What a person reads: sentences with simulated times, in their order.


STORY_NAMES = [("source", 0), ("sink", 3)]


def test_every_sentence_can_be_told():
    """Templates name only what a row has, and no row is told by numbers alone."""
    for event_type in EventType:
        sentence = JournalFormatter([], STORY_NAMES).sentence(Entry(5, event_type, 7, 1, 10, "because"))

        assert "{" not in sentence
        assert any(
            noun in sentence
            for noun in ("sink[3]", "checkpoint 7", "because", "snapshot 7", "job", "manager", "Manager", "tasks")
        )


@pytest.mark.parametrize(("checkpoint", "about"), [(7, " (checkpoint 7)"), (0, " (checkpoint 0)"), (-1, "")])
def test_kinds_without_a_sentence_are_told_by_their_name(checkpoint, about):
    """A new kind of row needs no sentence to appear in a story."""
    unnamed = next(event_type for event_type in EventType if not event_type.sentence)
    row = Entry(5, unnamed, checkpoint, 1, 10, "why")

    assert f"sink[3]: {unnamed.value}{about}, 10, why" == JournalFormatter([], STORY_NAMES).sentence(row)


def evidence(*rows, until_ns=9 * SECOND, checkpoints=(2,), tasks=(1,)):
    lines = JournalFormatter(rows, STORY_NAMES).evidence(until_ns, checkpoints, tasks)
    return [line[12:] for line in lines]


def test_evidence_is_about_the_checkpoints_and_the_tasks():
    rows = [
        Entry(n, event_type, n, task)
        for n in (1, 2)
        for event_type, task in ((H.TRIGGERED, -1), (H.SNAPSHOT_BEGUN, 0), (H.SNAPSHOT_BEGUN, 1), (H.SYNC_FINISHED, 1))
    ]

    assert evidence(*rows) == ["the coordinator triggers checkpoint 2", "sink[3] begins snapshot 2"]
    assert evidence(*rows, until_ns=1) == []


def test_evidence_has_the_latest_events_of_the_job_and_of_the_tasks():
    failures = [Entry(n, H.TASK_FAILED, task=0, detail=str(n)) for n in range(9)]
    ends = [Entry(20, H.END_OF_DATA, task=task, detail="drain") for task in (0, 1)]

    assert evidence(Entry(0, H.TRIGGERED, 2), *failures, *ends) == [
        "the coordinator triggers checkpoint 2",
        *(f"source[0] fails: {n}" for n in range(2, 9)),
        "sink[3] has come to the end of its data (drain)",
    ]


def test_stories_are_in_the_order_of_time():
    """A trigger is noted when its id is known and happened before."""
    rows = Entry(2 * SECOND, H.SNAPSHOT_BEGUN, 2, 1), Entry(1_500_000, H.TRIGGERED, 2)

    assert JournalFormatter(rows, STORY_NAMES).evidence(3 * SECOND, {2}, {1}) == (
        "0.001500 s  the coordinator triggers checkpoint 2",
        "2.000000 s  sink[3] begins snapshot 2",
    )


def test_a_violation_reads_from_fact_to_story():
    violation = Violation("what must hold", 1_500_000, "checkpoint 1", "what holds instead", ("first", "then"))

    assert str(violation) == "0.001500 s  checkpoint 1: what holds instead\n  but: what must hold\n    first\n    then"


# Checkpoints begin and end as the options of the coordinator say (invariants 94 to 99).


PACE = replace(stateful().scenario.checkpoint, max_concurrent=1, min_pause_ns=10, timeout_ns=100, tolerable_failed=1)


def completed(number, begun, ended, **options):
    return CheckpointStats(
        number, begun, 1, status="COMPLETED", latest_ack_ns=ended, acknowledged=1, completed_ns=ended, **options
    )


def failed(number, begun, ended, reason):
    return CheckpointStats(number, begun, 1, status="FAILED", failed_ns=ended, failure=reason)


def paced(*rows, turns=(), pace=PACE, call_ns=0):
    journal = sorted(
        [Entry(row.trigger_ns, H.TRIGGERED, row.number) for row in rows]
        + [Entry(row.completed_ns, H.COMPLETED, row.number) for row in rows if row.completed_ns >= 0]
        + [Entry(row.failed_ns, H.ABORTED, row.number, detail=row.failure) for row in rows if row.failed_ns >= 0]
        + list(turns)
    )
    overheads = SimpleNamespace(trigger_ns=call_ns)
    scenario = SimpleNamespace(overheads=overheads)
    stats = {row.number: row for row in rows}
    account = hollow(CheckpointTiming, journal, [("map", 0)], now_ns=10_000, stats=stats, scenario=scenario)
    account.options, account._behind = pace, {}
    account.at_the_end()
    return account


def pace_facts(*rows, **options):
    return facts(paced(*rows, **options))


def test_two_at_a_time():
    assert pace_facts(completed(1, 0, 50), completed(2, 40, 90)) == [
        "it begins while 1 is under way, 1 may be at a time"
    ]
    assert pace_facts(completed(1, 0, 50), completed(2, 40, 90), pace=replace(PACE, max_concurrent=2)) == []
    assert pace_facts(completed(1, 0, 50), completed(2, 40, 90, savepoint_format="native")) == []


def test_the_checkpoint_behind_the_end_of_all_data_does_not_wait():
    assert pace_facts(completed(1, 0, 50), completed(2, 55, 60), turns=[Entry(54, H.END_OF_DATA, task=0)]) == []


def test_a_timeout_waits_while_metadata_is_written():
    writes = CheckpointStats(1, 0, 1, status="COMPLETED", latest_ack_ns=99, acknowledged=1, completed_ns=130)

    assert pace_facts(writes, failed(2, 20, 130, "CHECKPOINT_EXPIRED"), pace=replace(PACE, max_concurrent=2)) == []
    assert len(pace_facts(writes, failed(2, 20, 131, "CHECKPOINT_EXPIRED"), pace=replace(PACE, max_concurrent=2))) == 1


def test_a_checkpoint_does_not_outlast_a_failure():
    restart = Entry(30, H.JOB_RESTORED, number=1)

    assert pace_facts(completed(1, 0, 50), turns=[restart]) == ["it began before restart 1, and is under way behind it"]
    assert pace_facts(failed(1, 0, 30, "CHECKPOINT_COORDINATOR_SUSPEND"), turns=[restart]) == []


def test_too_many_failures_in_a_row():
    two = failed(1, 0, 5, "CHECKPOINT_DECLINED"), failed(2, 20, 25, "CHECKPOINT_DECLINED")

    assert pace_facts(*two, completed(3, 40, 50)) == ["2 checkpoints in a row failed, 1 may, and the job goes on"]
    assert pace_facts(*two, completed(3, 40, 50), turns=[Entry(25, H.JOB_FAILED)]) == []
    assert pace_facts(*two, completed(3, 40, 50), pace=replace(PACE, tolerable_failed=2)) == []


def test_what_happens_in_one_instant_may_have_come_in_either_order():
    """A checkpoint that begins in the instant of an end has waited for it, or knows nothing of it."""
    at_once = replace(PACE, min_pause_ns=0)

    assert pace_facts(completed(1, 0, 50), completed(2, 50, 60), pace=at_once) == []
    assert len(pace_facts(completed(1, 0, 50), completed(2, 49, 60), pace=at_once)) == 1
    assert pace_facts(completed(1, 0, 50), completed(2, 50, 60)) == []
    assert len(pace_facts(completed(1, 0, 50), completed(2, 51, 60))) == 1


def test_all_that_are_under_way_are_told():
    three = completed(1, 0, 50), completed(2, 10, 50), completed(3, 20, 60)

    assert pace_facts(*three, pace=replace(PACE, max_concurrent=2)) == [
        "it begins while 1, 2 are under way, 2 may be at a time"
    ]


def test_a_new_job_manager_knows_of_no_pause():
    two = completed(1, 0, 50), completed(2, 55, 60)

    assert pace_facts(*two, turns=[Entry(52, H.JOB_MANAGER_LOST)]) == []
    assert pace_facts(completed(1, 0, 50), completed(2, 55, 60, savepoint_format="native")) == []


def test_a_task_that_goes_on_has_more_data():
    ended = [Entry(51, H.END_OF_DATA, task=0), Entry(52, H.TASK_RESTORED, task=0)]

    assert len(pace_facts(completed(1, 0, 50), completed(2, 55, 60), turns=ended)) == 1


def test_the_timeout_counts_from_the_call():
    """It is set when the tasks are called, some time after the trigger."""
    assert pace_facts(failed(1, 0, 107, "CHECKPOINT_EXPIRED"), call_ns=7) == []
    assert pace_facts(failed(1, 0, 106, "CHECKPOINT_EXPIRED"), call_ns=7) == [
        "it expires after 9.9e-05 ms, the timeout is 0.0001 ms"
    ]
    assert pace_facts(completed(1, 0, 107), call_ns=7) == []
    assert pace_facts(completed(1, 0, 108), call_ns=7) == [
        "it waits for acknowledgements for 0.000101 ms, the timeout is 0.0001 ms"
    ]


def test_only_failures_in_a_row_that_flink_counts_are_counted():
    """No savepoint, none for other reasons, none older than the last that completed, none that another JobManager saw."""
    first, end = failed(1, 0, 5, "CHECKPOINT_DECLINED"), completed(4, 60, 70)
    second = failed(2, 20, 25, "CHECKPOINT_DECLINED")

    assert len(pace_facts(first, second, end)) == 1
    assert pace_facts(first, replace(second, savepoint_format="native"), end) == []
    assert pace_facts(first, failed(2, 20, 25, "CHECKPOINT_SUBSUMED"), end) == []
    assert pace_facts(first, second, end, turns=[Entry(10, H.JOB_MANAGER_LOST)]) == []
    two = replace(PACE, max_concurrent=3, tolerable_failed=0, min_pause_ns=0)
    assert pace_facts(failed(1, 0, 25, "CHECKPOINT_DECLINED"), completed(2, 10, 20), end, pace=two) == []
    assert len(pace_facts(completed(1, 0, 20), failed(2, 10, 25, "CHECKPOINT_DECLINED"), end, pace=two)) == 1


def test_the_failure_that_is_too_many_is_accused():
    (found,) = paced(failed(1, 0, 5, "IO_EXCEPTION"), failed(2, 20, 25, "IO_EXCEPTION"), completed(3, 40, 50)).found

    assert (found.where, found.time_ns) == ("checkpoint 2", 25)
    assert len([line for line in found.evidence if "aborts checkpoint" in line]) == 2


class TestPaceInABacklog:
    """A source reads a backlog; checkpoints begin at an interval of 2 s meanwhile."""

    def account(self, records=10**6, interval_ns=2 * SECOND, total=None, silent=0):
        instance = stateful()
        scenario = instance.context.scenario
        source = replace(scenario.job.vertices[0].source, backlog=Backlog(records), total=total, silent=silent)
        job = replace(
            scenario.job, vertices=(replace(scenario.job.vertices[0], source=source), *scenario.job.vertices[1:])
        )
        options = replace(scenario.checkpoint, interval_during_backlog_ns=interval_ns)
        context = replace(instance.context, scenario=replace(scenario, job=job, checkpoint=options))
        return CheckpointTiming(ObservedRun.of(context, instance.tasks))

    def triggered(self, account):
        return [
            Entry(account.context.stats[number].trigger_ns, EventType.TRIGGERED, number)
            for number in range(1, LATEST + 1)
        ]

    def facts_of(self, account, *turns):
        return [fact for fact in end_facts(account, *turns) if "reads a backlog" in fact]

    def test_a_source_is_behind_until_it_has_read_its_history(self):
        for lack, behind in ((0, {}), (1, {LATEST: NOW})):
            part = stateful().contents.checkpoints[LATEST][0]
            account = self.account(part.position.served + lack)
            account.cut(LATEST, 0, part)
            assert behind == account._behind

    def began(self, begun_ns, until_ns, *times_ns, interval_ns, again=False):
        """Whether so many checkpoints are too many from the start of the attempt until the last one behind the backlog."""
        stats = {number: CheckpointStats(number, at_ns, 1) for number, at_ns in enumerate(times_ns, 1)}
        rows = [Entry(begun_ns, H.JOB_RESTORED, 0)] * again + [
            Entry(at, H.TRIGGERED, n) for n, at in enumerate(times_ns, 1)
        ]
        account = hollow(CheckpointTiming, rows, stats=stats)
        account.options = SimpleNamespace(interval_during_backlog_ns=interval_ns)
        account._begun_ns, account._behind = (
            0 if again else begun_ns,
            {number: at for number, at in enumerate(times_ns, 1) if at == until_ns},
        )
        account._check_backlog()
        return facts(account)

    def test_checkpoints_begin_at_the_interval_of_the_backlog(self):
        (fact,) = self.began(0, 200, 0, 50, 100, 150, 200, interval_ns=100)

        assert (
            fact
            == "a source reads a backlog from 0.000000 s to 0.000000 s: 5 checkpoints began, its interval is 0.0001 ms"
        )
        assert self.began(0, 200, 0, 50, 100, 200, interval_ns=100) == []
        assert self.began(0, -1, *[100] * 9, interval_ns=100) == [], "none of this attempt began in a backlog"

    def test_without_checkpoints_two_may_begin_before_a_source_says_that_it_is_behind(self):
        """A restarted one says so within 100 ms: three more may begin at an interval of 50 ms."""
        assert self.began(10, 20, 10, 20, interval_ns=0) == []
        assert len(self.began(10, 20, 10, 15, 20, interval_ns=0)) == 1
        assert self.began(10, 20, 10, 15, 20, interval_ns=0, again=True) == []
        assert len(self.began(10, 20, 10, 12, 15, 20, interval_ns=0, again=True)) == 1
        late = {"interval_ns": 50 * MS, "again": True}
        assert self.began(0, 50 * MS, *[0] * 5, 50 * MS, **late) == []
        assert len(self.began(0, 50 * MS, *[0] * 6, 50 * MS, **late)) == 1

    def test_each_attempt_is_counted_for_itself(self):
        """The second one may have one more: its source is late to tell that it is behind again."""
        account = self.account(interval_ns=10 * SECOND)
        account._begun_ns = 0
        account._behind = {LATEST: NOW}
        rows = self.triggered(account)
        restored = Entry(2500 * MS, EventType.JOB_RESTORED, 3, number=1)
        assert self.facts_of(account, *rows[:3], restored, *rows[3:]) == []
        restored = Entry(1500 * MS, EventType.JOB_RESTORED, 2, number=1)
        (fact,) = self.facts_of(account, *rows[:2], restored, *rows[2:])
        assert fact.startswith("a source reads a backlog from 1.500000 s to 5.021000 s: 4 checkpoints began")


# Invariants 92 and 93: the savepoint of a stop is the last word, and resources are back.


STATS = {
    number: SimpleNamespace(stops=number == 2, savepoint_format="native" if number in (2, 4) else "")
    for number in (1, 2, 3, 4)
}
TRIGGERED, LAST_COMPLETED, STOP_ABORTED = H.TRIGGERED, H.COMPLETED, H.ABORTED


def stopped(*rows):
    journal = [Entry(1000 * (place + 1), *row) for place, row in enumerate(rows)]
    return hollow(StopWithSavepoint, journal, [("map", 0)], stats=STATS)


def stop_facts(*rows):
    account = stopped(*rows)
    account.at_the_end()
    return facts(account)


def test_a_job_that_stops():
    assert (
        stop_facts(
            (TRIGGERED, 1),
            (LAST_COMPLETED, 1),
            (TRIGGERED, 2),
            (TRIGGERED, 4),
            (LAST_COMPLETED, 2),
            (H.JOB_FINISHED, -1),
        )
        == []
    )


def test_checkpoints_go_on_behind_the_savepoint_or_beside_it():
    assert stop_facts((TRIGGERED, 2), (LAST_COMPLETED, 2), (TRIGGERED, 3)) == ["the coordinator triggers checkpoint 3"]
    assert stop_facts((TRIGGERED, 2), (TRIGGERED, 3), (LAST_COMPLETED, 2)) == ["the coordinator triggers checkpoint 3"]


def test_a_savepoint_that_fails_stops_nothing():
    assert stop_facts((TRIGGERED, 2), (STOP_ABORTED, 2), (TRIGGERED, 3), (H.JOB_RESTORED, 1)) == []


def test_a_stop_is_forgotten_with_its_job_manager():
    """The next one goes on from the latest completed checkpoint, and triggers more."""
    lost = (H.JOB_MANAGER_LOST, -1)

    assert stop_facts((TRIGGERED, 2), (LAST_COMPLETED, 2), lost, (H.JOB_RESTORED, 1), (TRIGGERED, 3)) == []
    assert stop_facts((TRIGGERED, 2), lost, (H.JOB_RESTORED, 1), (TRIGGERED, 3)) == []
    assert len(stop_facts(lost, (TRIGGERED, 2), (LAST_COMPLETED, 2), (TRIGGERED, 3))) == 1


def test_a_job_that_drains_has_one_more_checkpoint():
    """When all its data has ended."""
    rows = (TRIGGERED, 2), (H.END_OF_DATA, -1, 0, 0, "drain"), (LAST_COMPLETED, 3), (TRIGGERED, 4)

    assert stop_facts(*rows) == []
    assert stop_facts(*rows, (TRIGGERED, 1)) == ["the coordinator triggers checkpoint 1"]


def test_a_restart_behind_the_last_word():
    assert len(stop_facts((TRIGGERED, 2), (LAST_COMPLETED, 2), (H.JOB_RESTORED, 2))) == 1
