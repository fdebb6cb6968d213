"""The benchmark workloads as scenario files: the same chains with state, storage and a protocol."""

from __future__ import annotations

__all__ = ["everything_text", "scenario_text"]

BARRIERS = "[aligned, unaligned, {aligned-timeout: 1 s}]"


def scenario_text(
    stages: int,
    parallelism: int,
    *,
    record_bytes: int = 1000,
    load: float = 0.7,
    barriers: str = BARRIERS,
    interval_s: int = 10,
    duration_s: int = 60,
) -> str:
    """A chain of all-to-all stages at ``load`` times what its sink serves (30 MB/s per task), as YAML."""
    sink_us = record_bytes * 1000 / 32768
    rate = round(load * 1e6 / sink_us)
    rows = [f"  s0: {{source: {{rate-per-subtask: {rate}/s, record: {record_bytes} B}}, parallelism: {parallelism}}}"]
    for i in range(1, stages):
        service_ns = round(sink_us * 1000 * (1.0 if i == stages - 1 else 0.6))
        record = "" if i == stages - 1 else f"record: {record_bytes} B, "
        state = f"{record}state: {{size: 64 MB, update: 10 %, value: 1 kB}}"
        rows.append(
            f"  s{i}: {{input: {{s{i - 1}: hash}}, service: {service_ns} ns, parallelism: {parallelism}, {state}}}"
        )
    job = "\n".join(rows)
    return f"""# How long does the simulator take for a chain of {stages} x {parallelism}?
version: 1
job:
{job}
checkpoint: {{interval: {interval_s} s, barriers: {barriers}}}
storage: {{bandwidth: 100 MB/s, file-latency: 20 ms, metadata-latency: 20 ms}}
run: {{duration: {duration_s} s, seed: 7}}
"""


def everything_text(parallelism: int, *, interval_s: int = 10, duration_s: int = 60) -> str:
    """A chain of three stages of 1000 B records with whatever makes checkpoints and runs dearer, as YAML.

    RocksDB's files taken incrementally, a distributed file system with slow nodes, a sink of two-phase commits, tasks
    that fail.
    """
    return f"""# How long does the simulator take when every feature is used?
version: 1
job:
  s0: {{source: {{rate-per-subtask: 21k/s, record: 1 kB}}, parallelism: {parallelism}}}
  s1:
    input: {{s0: hash}}
    service: 18 us
    record: 1 kB
    parallelism: {parallelism}
    state: {{size: 64 MB, backend: rocksdb, update: 10 %, value: 1 kB}}
  s2: {{input: {{s1: hash}}, service: 30 us, parallelism: {parallelism}, commit: two-phase}}
checkpoint: {{interval: {interval_s} s, incremental: true, barriers: {BARRIERS}}}
storage: {{dfs: {{nodes: 20, bandwidth: 120 MB/s, replication: 3, slow: {{share: 5 %, factor: 20, lasts: 90 s}}}}}}
restart: {{strategy: fixed-delay, delay: 1 s}}
faults: [{{kill: random-task, every: {{exponential: 60 s}}}}]
run: {{duration: {duration_s} s, seed: 7}}
"""
