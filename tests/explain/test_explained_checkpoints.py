"""Twelve checkpoints, each slow for a reason that its scenario plants: that reason is named, and the parts sum to the duration."""

from dataclasses import dataclass
from functools import cache

import pytest

from sim.explain.close_up import rerun_with_observers
from sim.explain.explanation import account, accounts
from sim.results.critical_path import PathKind
from tests.scenarios import read_scenario

STEADY = """
  source: {{source: {{rate: 400/s, record: 1 kB}}, parallelism: 2}}
  sink: {{input: {{source: hash}}, service: 1 ms, parallelism: 2{sink}}}
"""
PRESSED = """
  source: {{source: {{rate: unlimited, record: 1 kB}}, parallelism: 2}}
  sink: {{input: {{source: hash}}, service: 1 ms, parallelism: 2{sink}}}
"""


@dataclass(frozen=True)
class Planted:
    """A scenario, and what the account of one of its checkpoints must say."""

    part: str  # the longest
    place: str
    cause: str  # part of the sentence
    scenario: str
    which: str = "slowest"  # or first, last, or a status
    share: float = 0.5  # of the duration, at least


def scenario(job, checkpoint="interval: 2 s", sink="", extra="", run="duration: 9 s"):
    return f"version: 1\njob:{job.format(sink=sink)}checkpoint: {{{checkpoint}}}\n{extra}\nrun: {{{run}}}\n"


TWELVE = {
    "aligned, back-pressured": Planted("behind data", "sink[", "queued ahead of it", scenario(PRESSED), share=0.8),
    "unaligned": Planted(
        "channel state",
        "sink[",
        "in-flight data",
        scenario(PRESSED, "interval: 2 s, barriers: [unaligned]", extra="storage: {bandwidth: 1 MB/s}"),
    ),
    "timeout converted at the output": Planted(
        "until the timeout",
        "sink[",
        "may overtake only 300 ms after the trigger",
        scenario(PRESSED, "interval: 2 s, barriers: [{aligned-timeout: 300 ms}]"),
    ),
    "slow node": Planted(
        "upload",
        "sink[",
        "was slow (bandwidth divided by 20)",
        scenario(
            STEADY,
            sink=", state: {size: 20 MB}",
            extra="storage: {dfs: {nodes: 4, bandwidth: 100 MB/s, replication: 2, slow: {share: 50 %, factor: 20, lasts: 10 min}}}",
        ),
    ),
    "operators write asynchronously": Planted(
        "upload",
        "sink[",
        "flush/sink/",
        scenario(
            STEADY,
            "interval: 2 s, operator-io: async",
            sink=", flush: {bytes: 5 MB}",
            extra="storage: {bandwidth: 5 MB/s}",
        ),
    ),
    "the fourth of four files under way": Planted(
        "file before barrier",
        "sink[",
        "/3 was not durable",
        scenario(
            STEADY,
            "interval: 5 s, timeout: 3800 ms, tolerable-failed: 100",
            sink=", flush: {bytes: 20 MB, files: 4}",
            extra="storage: {bandwidth: 5 MB/s}",
        ),
        which="FAILED",
    ),
    "expired": Planted(
        "behind data",
        "sink[",
        "not drained when the checkpoint was given up",
        scenario(PRESSED, "interval: 2 s, timeout: 200 ms, tolerable-failed: 100"),
        which="FAILED",
    ),
    "savepoint": Planted(
        "async work",
        "sink[",
        "serialised for the canonical savepoint",
        scenario(
            STEADY,
            "interval: 20 s, savepoint-rate: 10 MB/s",
            sink=", state: {size: 20 MB, backend: rocksdb}",
            extra="actions: [{savepoint: canonical, at: 2 s}]\nstorage: {bandwidth: 1 GB/s}",
        ),
    ),
    "a record in hand": Planted(
        "behind data",
        "sink[",
        "was processing a record, which no barrier overtakes: its service time decides",
        "version: 1\njob: {source: {source: {rate: 2/s, record: 90 kB}}, sink: {input: {source: hash}, service: 460 ms}}\n"
        "checkpoint: {interval: 2150 ms}\nrun: {duration: 20 s}\n",
    ),
    "a memtable is flushed": Planted(
        "sync",
        "sink[",
        "it flushes what the memtable has got since the last flush, 211 kB at 1 MB/s",
        scenario(
            STEADY,
            "interval: 2 s, incremental: true",
            sink=", state: {size: 2 MB, update: 100 %, value: 500 B, backend: rocksdb, lsm: {flush: 1 MB/s}}",
            extra="storage: {bandwidth: 1 GB/s, file-latency: 1 ms}",
        ),
    ),
    "final": Planted(
        "sync",
        "sink[",
        "on the task thread",
        scenario(
            STEADY.replace("rate: 400/s", "rate: 400/s, records: 2k"),
            "interval: 2 s",
            sink=", snapshot: {sync: 700 ms}, commit: two-phase",
            run="duration: 60 s",
        ),
        which="last",
    ),
    "after a recovery": Planted(
        "behind data",
        "sink[",
        "queued ahead of it",
        scenario(PRESSED, extra="faults: [{kill: sink, at: 3.5 s}]", run="duration: 14 s"),
        which="last",
    ),
    "a group that shares files of channel state": Planted(
        "channel state",
        "",
        "subtasks share a file",
        scenario(
            PRESSED,
            "interval: 2 s, barriers: [unaligned], subtasks-per-channel-state-file: 4",
            extra="storage: {bandwidth: 1 MB/s}\ncluster: {slots: 4, placement: spread}",
        ),
    ),
    "files before the barrier": Planted(
        "file before barrier",
        "sink[",
        "on the task thread",
        scenario(STEADY, sink=", flush: {bytes: 5 MB}", extra="storage: {bandwidth: 5 MB/s}"),
    ),
    "RocksDB": Planted(
        "upload",
        "sink[",
        "keyed/sink/",
        scenario(
            STEADY,
            "interval: 2 s, incremental: true",
            sink=", state: {size: 40 MB, backend: rocksdb}",
            extra="storage: {bandwidth: 20 MB/s}",
        ),
        which="first",
    ),
    "compaction": Planted(
        "upload",
        "sink[",
        "of which a compaction wrote 20 MB anew",
        scenario(
            STEADY,
            "interval: 1 s, incremental: true",
            sink=", state: {size: 40 MB, backend: rocksdb, update: 10 %}",
            extra="storage: {bandwidth: 50 MB/s}",
            run="duration: 4900 ms",
        ),
        which="last",
    ),
    "the operator's asynchronous work": Planted(
        "async work",
        "sink[",
        "the operator's own work in the asynchronous part",
        scenario(STEADY, sink=", snapshot: {async: 900 ms}"),
    ),
    "an older checkpoint has the thread": Planted(
        "async queue",
        "sink[",
        "at work for an older checkpoint",
        scenario(STEADY, "interval: 1 s, max-concurrent: 4", sink=", snapshot: {async: 1.7 s}"),
        share=0.4,
    ),
    "a full queue of requests": Planted(
        "behind data",
        "lookup[",
        "thread of lookup[0], which waits until the oldest of its 100 asynchronous requests returns (async-io.capacity)",
        scenario(
            """
  source: {{source: {{rate: unlimited, record: 500 B}}}}
  lookup: {{input: {{source: hash}}, service: 20 us, async-io: {{latency: 2 s}}}}
""",
            "interval: 5 s, barriers: [unaligned]",
            run="duration: 18 s",
        ),
    ),
    "data that is not sent yet, before FLINK-27251": Planted(
        "alignment",
        "sink[",
        "not sent yet, where barriers overtake nothing before Flink 1.16 (FLINK-27251)",
        scenario(
            PRESSED.replace("1 ms", "20 ms"),
            "interval: 5 s, barriers: [{aligned-timeout: 300 ms}]",
            extra="cluster: {version: 1.15.4}",
            run="duration: 20 s",
        ),
        share=0.3,
    ),
    "requests that an object store refuses": Planted(
        "upload",
        "sink[",
        "requests were refused meanwhile (503), as a prefix takes 5/s, and tried again",
        scenario(
            STEADY,
            sink=", state: {size: 40 MB, backend: rocksdb}",
            extra="storage: {object-store: {requests: 5/s, latency: 10 ms, bandwidth: 90 MB/s}}",
        ),
        which="first",
    ),
    "a canonical savepoint on slow storage": Planted(
        "upload",
        "sink[",
        "its entries are serialised at most at 10 MB/s (checkpoint.savepoint-rate)",
        scenario(
            STEADY,
            "interval: 20 s, savepoint-rate: 10 MB/s",
            sink=", state: {size: 20 MB, backend: rocksdb}",
            extra="actions: [{savepoint: canonical, at: 2 s}]\nstorage: {bandwidth: 12 MB/s}",
        ),
    ),
    "a window that fires": Planted(
        "behind data",
        "win[",
        "its window ended, and",
        scenario(
            STEADY
            + "  win: {{input: {{source: hash}}, service: 10 us, window: {{tumbling: 5 s, time: processing, fire: 1 ms}}}}\n",
            "interval: 3 s",
            run="duration: 18 s",
        ),
    ),
}


@cache
def explained(planted):
    run = rerun_with_observers(read_scenario(planted.scenario))
    (instance,) = run.instances
    over = {row.number: row for row in instance.context.stats.values() if row.status != "IN_PROGRESS"}
    match planted.which:
        case "slowest":
            return accounts("it", run)[-1]
        case "first":
            number = min(over)
        case "last":
            number = max(over)
        case status:
            number = max(number for number, row in over.items() if row.status == status)
    return account("it", 0, instance, number)


@pytest.mark.parametrize("kind", TWELVE)
def test_the_planted_cause_is_named(kind):
    planted = TWELVE[kind]
    found = explained(planted)

    assert (planted.part, True, True) == (
        found.longest.name,
        found.longest.place.startswith(planted.place),
        planted.cause in found.longest.cause,
    )
    assert found.longest.duration_ns >= planted.share * found.duration_ns
    assert [0, *(line.end_ns for line in found.lines)] == [*(line.begin_ns for line in found.lines), found.duration_ns]


def test_storage_is_no_remedy_while_entries_are_serialised():
    """Files of a canonical savepoint are written meanwhile, and the slower of both counts."""
    slow = Planted(
        "async work",
        "sink[",
        "serialised for the canonical savepoint",
        scenario(
            STEADY,
            "interval: off, savepoint-rate: 10 MB/s",
            sink=", state: {size: 40 MB}",
            extra="actions: [{savepoint: canonical, at: 2 s}]\nstorage: {bandwidth: 40 MB/s}",
        ),
    )
    found = explained(slow)

    assert {PathKind.UPLOAD, PathKind.ASYNC_WORK} <= {line.kind for line in found.lines}
    assert [change.change for change in found.changes] == ["without the asynchronous work"]
