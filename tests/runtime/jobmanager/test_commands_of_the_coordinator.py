"""The coordinator's commands, carried out one by one: what they take, whom they reach in which order, what is kept of them."""

from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import pytest

from sim.protocol import coordinator_messages
from sim.protocol.options import FailureReason
from sim.results.journal import Entry, Happening, Journal
from sim.results.tables import CheckpointStats
from sim.runtime.context import Context
from sim.runtime.jobmanager.coordinator_host import CoordinatorHost
from tests.laws.small_jobs import MS, chain, scenario
from tests.runtime.task.fake_slots import FakeClock

NOTIFY_MS = 7


class Host:
    """A coordinator's host whose machine decides nothing."""

    def __init__(self):
        self.env, self.calls, self.residuals, self.parts = FakeClock(), [], {}, {}
        base = scenario(chain(1))
        self.context = SimpleNamespace(
            env=self.env,
            scenario=replace(base, overheads=replace(base.overheads, notify_ns=NOTIFY_MS * MS)),
            stats={},
            journal=Journal(),
            residual_ns=lambda part, task, checkpoint: self.residuals.get((part, task), 0),
        )
        self.context.note = partial(Context.note, self.context)
        self.host = CoordinatorHost(
            self.context,
            SimpleNamespace(pending=(SimpleNamespace(plan=SimpleNamespace(kept=())),), latest_completed=4),
            [self.task(task) for task in range(2)],
            SimpleNamespace(of=lambda *which: self.parts.get(which)),
            SimpleNamespace(begun=lambda _, options: options),
            None,
            SimpleNamespace(delay_ns=lambda _: 0),
            lambda *facts: self.calls.append(("fail job", *facts)),
            None,
        )

    def task(self, number):
        record = lambda name: lambda *facts: self.calls.append((self.env.now // MS, name, number, *facts))  # noqa: E731
        return SimpleNamespace(trigger=record("trigger"), notify_aborted=record("aborted"))

    def do(self, command):
        self.host.carry_out(command)
        self.env.run(100 * MS)
        return self.calls


class TestBeginnings:
    def test_calls_to_tasks_keep_their_order(self):
        """The call of the second checkpoint waits for that of the first, which is slow."""
        host = Host()
        host.residuals["scheduling", 1] = 20 * MS
        host.host.carry_out(coordinator_messages.TriggerTasks(5, frozenset({1, 0}), "options"))
        assert host.calls == [(0, "trigger", 0, 5, "options")]
        host.residuals.clear()
        host.env.run(6 * MS)
        calls = host.do(coordinator_messages.TriggerTasks(6, frozenset({1, 0}), "options"))
        assert [(row[0], *row[2:4]) for row in calls] == [(0, 0, 5), (6, 0, 6), (20, 1, 5), (20, 1, 6)]


class TestRecords:
    def test_a_failure_is_measured(self):
        host = Host()
        stats = host.context.stats[5] = CheckpointStats(5, 0, 3)
        reason = FailureReason.CHECKPOINT_DECLINED
        host.do(coordinator_messages.RecordFailed(5, reason, 9))
        assert (stats.status, stats.failed_ns, stats.failure, stats.standstill) == ("FAILED", 9, reason.name, "")
        assert [Entry(0, Happening.ABORTED, 5, detail=reason.name)] == list(host.context.journal)

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
