"""A job stopped in the middle of its run, and accounts of it that have heard nothing yet: tests tell them what is not true."""

from dataclasses import replace
from functools import cache
from typing import TypeVar

from sim.results.journal import Journal
from sim.runtime.job_instance import JobInstance
from sim.runtime.monitors.monitor import EndOfRun, InvariantMonitor, WatchedRun
from tests.scenarios import read_scenario

A = TypeVar("A", bound=InvariantMonitor)
STATEFUL = """# What does a checkpoint hold?
version: 1
job:
  src: {source: {rate-per-subtask: 400/s, record: 1 kB}, parallelism: 2}
  map: {input: {src: hash}, service: 4 ms, parallelism: 2, state: {size: 400 kB, backend: rocksdb, update: 50%, value: 1 kB}}
  sink: {input: {map: hash}, service: 1 ms, snapshot: {operator-state: 500 B}}
checkpoint: {interval: 1 s, barriers: unaligned, incremental: true}
cluster: {placement: isolated}
storage: {bandwidth: 100 MB/s, file-latency: 20 ms, inline-threshold: 0 B}
run: {duration: 12 s}
"""
MAP, SINK = 2, 4  # the first task of each vertex


def stopped(text, at_ns):
    """The first job instance of a scenario file, run up to a time."""
    instance = JobInstance(read_scenario(text, name="stopped"), "compiled")
    instance.start()
    instance.env.run(until=instance.env.timeout(at_ns))
    return instance


@cache
def stateful():
    """Stopped at 5.4 s: six checkpoints are complete, the last one is retained.  What a test changes in it, it puts back."""
    return stopped(STATEFUL, 5_400_000_000)


def account_of(kind, instance):
    return kind(WatchedRun.of(instance.context, instance.contents, instance.output, instance.tasks))


def with_scenario(account, **changes):
    """The same account of a run that was configured otherwise."""
    account.context = replace(account.context, scenario=replace(account.context.scenario, **changes))
    return account


def with_checkpoint(account, **options):
    """The same account of a run with other options of its checkpoints."""
    return with_scenario(account, checkpoint=replace(account.context.scenario.checkpoint, **options))


def with_journal(account, *entries):
    account.context = replace(account.context, journal=Journal(entries))
    return account


def named(account, *name):
    """The first file whose name begins so."""
    return next(file for file in account.context.storage.files if file.name[: len(name)] == name)


def end_of(instance, *turns, finished=False):
    return EndOfRun(turns, instance.job.coordinator.machine, (), finished)


def facts(account):
    """What has been found since the last call."""
    found = [violation.fact for violation in account.found]
    account.found.clear()
    account._reported.clear()
    return found


def end_facts(account, *turns, finished=False):
    """What the end of the stateful job shows, if these were the rare rows of its journal."""
    return [violation.fact for violation in account.at_the_end(end_of(stateful(), *turns, finished=finished))]
