"""Invariants of a job stopped in the middle of its run, or of one that has a journal only: tests tell them what is not true."""

from dataclasses import replace
from functools import cache
from types import SimpleNamespace

from sim.results.journal import Journal
from sim.results.violations import EVENTS, JournalFormatter
from sim.runtime.invariants.invariant import ObservedRun
from sim.runtime.job_instance import JobInstance
from tests.scenarios import read_scenario

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
    run = ObservedRun.of(instance.context, instance.tasks)
    run.coordinator = instance.job.coordinator.machine
    return kind(run)


def hollow(kind, rows=(), names=(("source", 0), ("sink", 0)), *, now_ns=0, events=None, run=None, **context):
    """An invariant of a run that has these journal rows, and what else a test gives it."""
    journal = rows if isinstance(rows, Journal) else Journal(rows)
    empty = {"stats": {}, "commits": [], "origin": None, "instance": 0, "begun_from": 0, "periodic": True}
    empty |= {"contents": None, "output": SimpleNamespace(covered_before=None, counted_from=0)}
    fields = {"scenario": stateful().scenario, "env": SimpleNamespace(now=now_ns), "tasks": range(len(names))}
    context = SimpleNamespace(journal=journal, names=list(names), **empty | fields | context)
    events = list(journal.only(EVENTS)) if events is None else events
    shared = {"ends": None, "ledger": None, "deployed": {}, "surpluses": {}, "kept": ()}
    shared |= {"finished": False, "coordinator": None, "events": events}
    formatter = JournalFormatter(journal, names)
    without_data = type(kind.__name__, (kind,), {"start": lambda _: None})
    return without_data(SimpleNamespace(context=context, formatter=formatter, **shared | (run or {})))


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


def facts(account):
    """What has been found since the last call."""
    found = [violation.fact for violation in account.found]
    account.found.clear()
    account._reported.clear()
    return found


def ended(account, *turns, finished=False):
    """What the end of the run shows, if these were the rare rows of its journal."""
    account.found.clear()
    account._reported.clear()
    account.run.events, account.run.finished = turns, finished
    account.at_the_end()
    return account.found


def end_facts(account, *turns, finished=False):
    return [violation.fact for violation in ended(account, *turns, finished=finished)]
