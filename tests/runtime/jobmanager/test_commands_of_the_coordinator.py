"""The coordinator's commands, carried out one by one: what they take, whom they reach in which order, what is kept of them."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from sim.protocol import coordinator_messages
from sim.protocol.coordinator_messages import Plan, RequestKind
from sim.protocol.options import FailureReason
from sim.results.journal import Entry, Happening, Journal
from sim.results.tables import CheckpointStats
from sim.runtime.jobmanager.coordinator_host import CoordinatorHost
from tests.laws.small_jobs import MS, chain, scenario
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


class TestBeginnings:
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


class TestRecords:
    def triggered(self, host, checkpoint=5, **options):
        plan = Plan(frozenset({0}), frozenset({0, 1}), frozenset({2}), frozenset({7}))
        calls = host.do(coordinator_messages.RecordTriggered(checkpoint, 4 * MS, RequestKind.PERIODIC, plan, **options))
        return host.context.stats[checkpoint], calls

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
    def test_an_abort_tells_of_the_completion_before_it(self):
        """A task that kept its part has an older one."""
        host = Host()
        host.parts[4, 1] = SimpleNamespace(checkpoint=2)
        calls = host.do(coordinator_messages.NotifyAborted(5, frozenset({1, 0}), 4))
        assert calls == [(NOTIFY_MS, "aborted", 0, 5, 4), (NOTIFY_MS, "aborted", 1, 5, 2)]
