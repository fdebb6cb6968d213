"""The coordinator's commands, carried out one by one: whom they reach in which order, and what it is told."""

from dataclasses import replace
from functools import partial
from types import SimpleNamespace

from sim.protocol import coordinator_messages
from sim.results.journal import Journal
from sim.runtime.context import Context
from sim.runtime.jobmanager.coordinator_host import CoordinatorHost
from tests.laws.small_jobs import MS, chain, scenario
from tests.runtime.task.fake_slots import FakeClock


def test_an_abort_tells_of_the_completion_before_it():
    """A task that kept its part has an older one."""
    env, calls, base = FakeClock(), [], scenario(chain(1))
    task = lambda number: SimpleNamespace(notify_aborted=lambda *told: calls.append((env.now // MS, number, *told)))  # noqa: E731
    parts = {(4, 1): SimpleNamespace(checkpoint=2)}
    scenario_of_it = replace(base, overheads=replace(base.overheads, notify_ns=7 * MS))
    context = SimpleNamespace(env=env, scenario=scenario_of_it, journal=Journal())
    context.note = partial(Context.note, context)
    contents = SimpleNamespace(of=lambda *which: parts.get(which))
    host = CoordinatorHost(context, None, [task(0), task(1)], contents, *[None] * 5)
    host.carry_out(coordinator_messages.NotifyAborted(5, frozenset({1, 0}), 4))
    env.run(100 * MS)

    assert calls == [(7, 0, 5, 4), (7, 1, 5, 2)]
