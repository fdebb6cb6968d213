"""Work beside everything else: at once if it takes no time, a process that may be stopped if it does."""

import simpy

from sim.runtime.clock import begin
from sim.storage.ledger import StorageFailed


def takes(env, ns, value="done", failure=None):
    if ns:
        yield env.timeout(ns)
    if failure:
        raise failure
    return value


def test_work_without_time_is_over_at_once():
    """No process, no turn of its own."""
    heard = []

    assert begin(simpy.Environment(), takes(None, 0), heard.append) is None
    assert heard == ["done"]


def test_work_calls_back_when_it_is_over():
    env, heard = simpy.Environment(), []
    begin(env, takes(env, 5), lambda value: heard.append((env.now, value)))
    env.run()

    assert heard == [(5, "done")]


def test_stopped_work_calls_nobody():
    env, heard = simpy.Environment(), []
    working = begin(env, takes(env, 5), heard.append, heard.append)
    env.run(until=2)
    working.interrupt()
    env.run()

    assert heard == []


def test_failures_are_told_to_whoever_minds():
    """At once or later; nobody need listen."""
    env, heard = simpy.Environment(), []
    for ns in (0, 5):
        failure = StorageFailed(str(ns))
        begin(env, takes(env, ns, failure=failure), heard.append, heard.append)
        begin(env, takes(env, ns, failure=failure), heard.append)
    env.run()

    assert [str(failure) for failure in heard] == ["0", "5"]
