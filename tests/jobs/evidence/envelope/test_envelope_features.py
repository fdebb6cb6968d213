"""What of a scenario matters for validity: each feature is seen when its key is set, and not before."""

import pytest

from sim.jobs.evidence.envelope import features
from sim.model.schema.study import loads

PLAIN = """\
# What is there?
version: 1
job:
  src: {source: {rate: 100/s, record: 1 kB}, parallelism: 2}
  sink: {input: {src: hash}, service: 1 ms, parallelism: 2}
checkpoint: {interval: 4 s}
run: {duration: 30 s}
"""


def seen(*changes):
    return features(loads(PLAIN, overrides=list(changes)).scenarios[0])


@pytest.mark.parametrize(
    ("change", "name", "values"),
    [
        ("job.sink.parallelism=4", "parallelism", (2, 4)),
        ("job.sink.parallelism=4", "subtasks", (6,)),
        ("job.sink.service={exponential: 1 ms}", "service law", ("exponential",)),
        ("job.src.source.records=100", "end of the job", ("all sources",)),
        (
            "job.src.source.rate=[{at: 0 s, rate: 100/s}, {at: 5 s, rate: 200/s}]",
            "load",
            ("below 80 %", "changing rates"),
        ),
        ("job.sink.state={size: 8 MB, backend: rocksdb}", "state", ("rocksdb",)),
        ("job.sink.state={size: 8 MB, backend: rocksdb}", "state per subtask", (4_000_000,)),
        ("job.sink.flush={bytes: 1 MB}", "work per checkpoint", ("files flushed",)),
        ("job.sink.commit=two-phase", "commit", ("two-phase",)),
        ("cluster.network.debloat={}", "network", ("debloating",)),
        ("cluster.network.buffer-timeout=0 ms", "network", ("a flush after each record",)),
        ("storage={dfs: {nodes: 4}}", "storage", ("dfs",)),
        ("storage={slow: {share: 8 %, factor: 10}}", "storage", ("flat", "slow files")),
        ("storage={file-merging: {}}", "storage", ("flat", "merged files")),
        ("job.sink.state={size: 8 MB, changelog: {}}", "state", ("changelog", "hashmap")),
        ("job.sink.async-io={latency: 100 ms}", "async I/O latency", (100 * 10**6,)),
        ("job.sink.window={tumbling: 7 s, time: processing}", "windows", (7 * 10**9,)),
        ("job.sink.input={src: {ship: hash, weights: {hot: 70 %}}}", "skewed keys", ("yes",)),
        ("rescale=[{at: 10 s, parallelism: {sink: 4}}]", "restarts", ("rescaling",)),
        ("cluster.latency=1 ms", "network", ("latency",)),
        ("checkpoint.max-concurrent=3", "concurrent checkpoints", (3,)),
        ("checkpoint.min-pause=3 s", "pause between checkpoints", (3 * 10**9,)),
        ("faults=[{kill: sink, at: 5 s}]", "faults", ("a task fails",)),
        ("faults=[{task-manager: 0, at: 5 s, silent: true}]", "faults", ("a silent task manager",)),
        ("actions=[{savepoint: native, at: 5 s}]", "snapshots asked for", ("native",)),
    ],
)
def test_what_is_there_is_seen(change, name, values):
    assert values == seen(change)[name]
    assert values != seen().get(name)
