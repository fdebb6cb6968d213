"""The coordinator's commands, carried out one by one: what they take, whom they reach in which order, what is kept of them."""

from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace

import pytest

from sim.protocol import coordinator_messages
from sim.protocol.coordinator_messages import Plan, RequestKind, Savepoint
from sim.protocol.options import Ending, FailureReason
from sim.results.journal import Entry, Happening, Journal
from sim.results.tables import CheckpointStats
from sim.runtime.jobmanager.coordinator_host import PACKED_BEHIND, CoordinatorHost
from tests.laws.small_jobs import MS, SECOND, chain, scenario
from tests.runtime.task.fake_slots import FakeClock

ALL = frozenset({0, 1, 2})
PLAN = Plan(frozenset({0}), ALL)
ACKNOWLEDGE_MS, NOTIFY_MS, TRIGGER_MS = 3, 7, 5


class Machine:
    """The state of the machine, as a test sets it."""

    leader, locked, absent, latest_completed = 0, False, False, 4
    pending = needed = retained = ()

    def accepts_messages_from(self, leader):
        return leader == self.leader


class Host:
    """A coordinator's host whose machine hears events and decides nothing."""

    def __init__(self, profile="2.x", **options):
        self.env, self.machine = FakeClock(), Machine()
        self.heard, self.calls, self.residuals = [], [], {}
        base = scenario(chain(1), interval_ms=400)
        overheads = replace(
            base.overheads,
            acknowledge_ns=ACKNOWLEDGE_MS * MS,
            notify_ns=NOTIFY_MS * MS,
            trigger_ns=TRIGGER_MS * MS,
            first_trigger_ns=10 * MS,
        )
        checkpoint, cluster = replace(base.checkpoint, **options), replace(base.cluster, profile=profile)
        self.env.call_each_in = lambda delay_ns, actions: self.env.call_in(
            delay_ns, lambda: [action() for action in actions]
        )
        self.context = SimpleNamespace(
            env=self.env,
            scenario=replace(base, overheads=overheads, checkpoint=checkpoint, cluster=cluster),
            stats={},
            begun_from=0,
            journal=Journal(),
            storage=SimpleNamespace(end_merging=lambda checkpoint: iter(())),
            residual_ns=lambda part, task, checkpoint: self.residuals.get((part, task), 0),
        )
        self.context.note = lambda happening, checkpoint=-1, task=-1, number=0, detail="": self.context.journal.note(
            self.env.now, happening, checkpoint, task, number, detail
        )
        tasks = [self.task(task) for task in range(3)]
        self.parts = {}
        contents = SimpleNamespace(of=lambda *which: self.parts.get(which), keep=self.keep, forget=self.call("forget"))
        contents.cut = lambda checkpoint, task, finished: self.calls.append(("cut", checkpoint, task, finished))
        contents.completed = self.call("contents completed")
        self.acknowledged = True
        files = SimpleNamespace(
            acknowledged=lambda *_: self.acknowledged,
            begun=lambda _, options: options,
            keep=self.call("files keep"),
            completed=self.call("files completed"),
            lose_store=self.call("lose store"),
            discard=lambda _, done: done(),
        )
        self.delays_ns = {}
        job_end = SimpleNamespace(
            union_state=SimpleNamespace(refusal=lambda _: None),
            begun=self.call("begun"),
            graph=None,
            plan=lambda not_running: (PLAN, not_running),
        )
        reachability = SimpleNamespace(delay_ns=lambda task: self.delays_ns.get(task, 0))
        checks = SimpleNamespace(part_kept=self.call("part kept"), completed=self.call("completed"))
        self.host = CoordinatorHost(
            self.context, None, tasks, contents, files, job_end, reachability, self.call("fail job"), checks
        )
        self.job_end = job_end
        self.host._loop = SimpleNamespace(
            machine=self.machine, busy=False, dispatch=lambda event: self.heard.append((self.env.now // MS, event))
        )

    def call(self, name):
        return lambda *facts: self.calls.append((name, *facts))

    def keep(self, checkpoint, task, before):
        self.calls.append(("keep", checkpoint, task, before))
        return SimpleNamespace(checkpoint=before - 1)

    def task(self, number):
        record = lambda name: lambda *facts: self.calls.append((self.env.now // MS, name, number, *facts))  # noqa: E731
        return SimpleNamespace(
            task=number,
            running=number != 2,
            trigger=record("trigger"),
            notify_complete=record("complete"),
            notify_aborted=record("aborted"),
        )

    def do(self, command, until_ms=100):
        self.host.carry_out(command)
        self.env.run(until_ms * MS)
        calls, self.calls[:] = list(self.calls), []
        return calls

    def events(self):
        events, self.heard[:] = list(self.heard), []
        return events


class TestMessages:
    """An acknowledgement takes 3 ms, what its network waits, and what is drawn."""

    def acknowledge(self, host, checkpoint=5, task=1, status="IN_PROGRESS"):
        host.context.stats[checkpoint] = CheckpointStats(checkpoint, 0, 3, status)
        host.host.receive_acknowledgement(task, checkpoint)
        host.env.run(99 * MS)
        return host.context.stats[checkpoint]

    def test_an_acknowledgement_arrives_and_counts(self):
        host = Host()
        host.delays_ns[1], host.residuals["acknowledgement", 1] = 20 * MS, 4 * MS
        stats = self.acknowledge(host)
        ((at_ms, event),) = host.events()
        assert (at_ms, event.task, event.checkpoint) == (27, 1, 5)
        assert (stats.of(1).ack_ns, stats.latest_ack_ns, stats.acknowledged) == (27 * MS, 27 * MS, 1)
        assert [Entry(27 * MS, Happening.ACKNOWLEDGED, 5, 1)] == list(host.context.journal)

    def test_one_that_comes_late_is_no_longer_counted(self):
        stats = self.acknowledge(Host(), status="FAILED")
        assert (stats.latest_ack_ns, stats.acknowledged, stats.of(1).ack_ns) == (-1, 0, 3 * MS)

    def test_one_that_names_files_that_are_gone_comes_to_nothing(self):
        host = Host()
        host.acknowledged = False
        self.acknowledge(host)
        assert host.events() == []
        assert [row.happening for row in host.context.journal] == [Happening.STATE_UNKNOWN]

    def test_a_decline_arrives(self):
        host = Host()
        host.host.receive_decline(1, 5, FailureReason.CHECKPOINT_DECLINED)
        host.env.run(99 * MS)
        ((at_ms, event),) = host.events()
        assert (at_ms, event.task, event.checkpoint, event.reason) == (3, 1, 5, FailureReason.CHECKPOINT_DECLINED)

    def test_messages_to_a_job_manager_that_is_gone_are_lost(self):
        host = Host()
        host.host.receive_decline(1, 5, FailureReason.CHECKPOINT_DECLINED)
        host.host.message(MS, lambda: host.calls.append("arrived"))
        host.machine.leader = 1
        host.env.run(99 * MS)
        assert (host.events(), host.calls) == ([], [])

    def test_messages_wait_for_the_lock_in_turn(self):
        host = Host()
        host.machine.locked = True
        for task in (1, 0):
            host.host.receive_decline(task, 5, FailureReason.CHECKPOINT_DECLINED)
        host.env.run(9 * MS)
        assert host.events() == []
        host.machine.locked = False
        host.host.dispatch("unlocked")
        assert [getattr(event, "task", event) for _, event in host.events()] == ["unlocked", 1, 0]


class TestBeginnings:
    @pytest.mark.parametrize(("options", "delays"), [({}, [10]), ({"interval_ns": None}, [])])
    def test_periodic_checkpoints_begin(self, options, delays):
        host = Host(**options)
        host.host.start()
        assert delays == [event.first_delay_ns // MS for _, event in host.events()]

    def test_the_first_trigger_is_drawn_anew_for_each_restart(self):
        host = Host(profile="1.20")
        for restarts in (0, 1, 1):
            host.host.start(restarts)
        first, second, again = (event.first_delay_ns for _, event in host.events())
        assert first != second == again

    def test_a_trigger_is_prepared(self):
        host = Host()
        host.host.keeps = lambda _: frozenset()
        host.do(coordinator_messages.PrepareTrigger(0, RequestKind.SAVEPOINT))
        ((at_ms, event),) = host.events()
        assert at_ms == TRIGGER_MS
        assert (PLAN, frozenset({2})) == event.plan, "who does not run"

    def test_calls_to_tasks_keep_their_order(self):
        """The call of the second checkpoint waits for that of the first, which is slow."""
        host = Host()
        host.machine.pending = (SimpleNamespace(plan=PLAN),)
        host.residuals["scheduling", 1] = 20 * MS
        host.host.carry_out(coordinator_messages.TriggerTasks(5, frozenset({1, 0}), "options"))
        assert host.calls == [(0, "trigger", 0, 5, "options")]
        host.residuals.clear()
        host.env.run(6 * MS)
        calls = host.do(coordinator_messages.TriggerTasks(6, frozenset({1, 0}), "options"))
        assert [(row[0], *row[2:4]) for row in calls] == [(0, 0, 5), (6, 0, 6), (20, 1, 5), (20, 1, 6)]

    def test_tasks_that_keep_their_part_are_noted(self):
        host = Host()
        host.machine.pending = (SimpleNamespace(plan=SimpleNamespace(kept={2, 1})),)
        calls = host.do(coordinator_messages.TriggerTasks(5, frozenset(), "options"))
        assert [row for row in calls if row[0] == "keep"] == [("keep", 5, 1, 4), ("keep", 5, 2, 4)]
        assert [row for row in calls if row[0] == "part kept"] == [("part kept", 5, 1, 4), ("part kept", 5, 2, 4)]
        assert [(row.task, row.number) for row in host.context.journal if row.happening is Happening.PART_KEPT] == [
            (1, 3),
            (2, 3),
        ]

    @pytest.mark.parametrize(
        ("completed", "pending", "kind", "is_partial"),
        [
            (4, (), RequestKind.PERIODIC, True),
            (0, (), RequestKind.PERIODIC, False),
            (4, (1,), RequestKind.PERIODIC, False),
            (4, (), RequestKind.SAVEPOINT, False),
        ],
        ids=["alone", "nothing complete", "another one is pending", "a savepoint"],
    )
    def test_parts_are_kept_only_of_the_latest_own_checkpoint(self, completed, pending, kind, is_partial, monkeypatch):
        host = Host()
        host.job_end.plan = lambda _: PLAN
        host.machine.latest_completed, host.machine.pending = completed, pending
        monkeypatch.setattr("sim.runtime.jobmanager.coordinator_host.partial_plan", lambda *_: "partial")
        assert ("partial" if is_partial else PLAN) == host.host.plan(kind)

    def test_a_timeout_waits_for_the_lock(self):
        host = Host()
        host.machine.locked = True
        host.do(coordinator_messages.ArmCheckpointTimeout(5, 30 * MS))
        assert host.events() == []
        host.machine.locked = False
        host.host.dispatch("unlocked")
        assert host.events()[1][1].checkpoint == 5


class TestRecords:
    def triggered(self, host, checkpoint=5, **options):
        plan = Plan(frozenset({0}), frozenset({0, 1}), frozenset({2}), frozenset({7}))
        calls = host.do(coordinator_messages.RecordTriggered(checkpoint, 4 * MS, RequestKind.PERIODIC, plan, **options))
        return host.context.stats[checkpoint], calls

    def test_tasks_that_have_finished_or_keep_their_part_count_as_acknowledged(self):
        host = Host()
        stats, calls = self.triggered(host)
        assert (stats.tasks, stats.acknowledged, stats.trigger_ns) == (4, 2, 4 * MS)
        assert [("cut", 5, 2, True), ("begun", 5, frozenset({2}))] == calls
        assert [Entry(4 * MS, Happening.TRIGGERED, 5, number=2)] == list(host.context.journal)
        assert (stats.savepoint_format, stats.stops) == ("", False)

    @pytest.mark.parametrize("stop", [None, Ending.DRAIN])
    def test_savepoints_say_what_they_are(self, stop):
        stats, _ = self.triggered(Host(), savepoint=Savepoint("native", stop))
        assert ("native", stop is not None) == (stats.savepoint_format, stats.stops)

    def test_rows_of_older_checkpoints_are_packed(self):
        host = Host()
        for number in (4, 5, 6):
            host.context.stats[number] = CheckpointStats(number, 0, 3)
            host.context.stats[number].of(1)
        self.triggered(host, 5 + PACKED_BEHIND)
        assert [bool(host.context.stats[number]._packed) for number in (4, 5, 6)] == [False, True, False]

    def test_a_completion_is_measured_and_told(self):
        host = Host()
        host.machine.needed, host.machine.retained = {3}, (5,)
        complete_ns = []
        host.host.on_completed = lambda: complete_ns.append(host.env.now)
        host.context.stats[5] = CheckpointStats(5, 0, 3)
        calls = host.do(coordinator_messages.RecordCompleted(5, RequestKind.PERIODIC, 0, 8, 9))
        stats = host.context.stats[5]
        assert (stats.status, stats.latest_ack_ns, stats.completed_ns) == ("COMPLETED", 8, 9)
        assert [("files completed", 5), ("contents completed", 5, {3}), ("completed", 5, (5,))] == calls
        assert complete_ns == [0]

    def test_a_failure_is_measured(self):
        host = Host()
        host.context.stats[5] = CheckpointStats(5, 0, 3)
        host.do(
            coordinator_messages.RecordFailed(
                5, RequestKind.PERIODIC, FailureReason.CHECKPOINT_DECLINED, 0, -1, 9, frozenset()
            )
        )
        stats = host.context.stats[5]
        assert (stats.status, stats.failed_ns, stats.failure, stats.standstill) == (
            "FAILED",
            9,
            "CHECKPOINT_DECLINED",
            "",
        )
        assert [Entry(0, Happening.ABORTED, 5, detail="CHECKPOINT_DECLINED")] == list(host.context.journal)

    @pytest.mark.parametrize(("kind", "number"), [(RequestKind.SAVEPOINT, 1), (RequestKind.PERIODIC, 0)])
    def test_who_asked_in_vain_is_noted(self, kind, number):
        host = Host()
        host.do(coordinator_messages.RecordRefused(kind, FailureReason.TOO_MANY_CHECKPOINT_REQUESTS))
        assert [(number, "TOO_MANY_CHECKPOINT_REQUESTS")] == [(row.number, row.detail) for row in host.context.journal]

    @pytest.mark.parametrize(
        ("stopping", "task", "what"),
        [(False, None, "tolerable failed checkpoints exceeded"), (True, 1, "the savepoint to stop with failed")],
    )
    def test_the_job_fails_with_its_checkpoints(self, stopping, task, what):
        host = Host()
        reason = FailureReason.CHECKPOINT_EXPIRED
        assert [("fail job", f"{what}: CHECKPOINT_EXPIRED", task)] == host.do(
            coordinator_messages.FailJob(reason, task, stopping)
        )
        (row,) = host.context.journal
        assert (-1 if task is None else task, int(stopping)) == (row.task, row.number)


class TestNotifications:
    def test_all_tasks_hear_of_a_completion(self):
        calls = Host().do(coordinator_messages.NotifyComplete(5, ALL))
        assert [(NOTIFY_MS, "complete", task, 5) for task in (0, 1, 2)] == calls

    def test_some_notifications_are_lost(self):
        host = Host(lost_notifications=Fraction(1, 2))
        for checkpoint in range(1, 201):
            host.host.carry_out(coordinator_messages.NotifyComplete(checkpoint, frozenset({0, 1})))
        host.env.run(SECOND)
        first, second = ({row[3] for row in host.calls if row[2] == task} for task in (0, 1))
        assert 70 < len(first) < 130
        assert first != second

    def test_an_abort_tells_of_the_completion_before_it(self):
        """A task that kept its part has an older one."""
        host = Host()
        host.parts[4, 1] = SimpleNamespace(checkpoint=2)
        calls = host.do(coordinator_messages.NotifyAborted(5, frozenset({1, 0}), 4))
        assert calls == [(NOTIFY_MS, "aborted", 0, 5, 4), (NOTIFY_MS, "aborted", 1, 5, 2)]

    def test_state_is_discarded(self):
        host = Host()
        assert host.do(coordinator_messages.DiscardState(5)) == [("forget", 5)]
        assert [event.checkpoint for _, event in host.events()] == [5]


def test_a_lost_job_manager_forgets_what_is_pending_and_what_it_was_to_stop():
    host = Host()
    host.machine.pending = (SimpleNamespace(checkpoint=6), SimpleNamespace(checkpoint=7))
    for number, stops in ((5, True), (6, False)):
        host.context.stats[number] = CheckpointStats(number, 0, 3, stops=stops)
    host.host.lose_leader()

    assert host.calls == [("lose store",), ("forget", 6), ("forget", 7)]
    assert [host.context.stats[number].stop_forgotten for number in (5, 6)] == [True, False]
    host.host.elect_leader()
    assert [coordinator_messages.LeaderLost, coordinator_messages.LeaderElected] == [
        type(event) for _, event in host.events()
    ]
