"""The benchmark workloads as scenario files: the same chains with state, storage and a protocol."""

from __future__ import annotations

__all__ = ["scenario_text"]

BARRIERS = "[aligned, unaligned, {aligned-timeout: 1 s}]"


def scenario_text(
    stages: int, parallelism: int, *, record_bytes: int = 1000, load: float = 0.7, barriers: str = BARRIERS, interval_s: int = 10,
    duration_s: int = 60,
) -> str:
    """A chain of all-to-all stages at ``load`` times what its sink serves (30 MB/s per task), as YAML."""  # fmt: skip
    sink_us = record_bytes * 1000 / 32768
    rate = round(load * 1e6 / sink_us)
    rows = [f"  s0: {{source: {{rate-per-subtask: {rate}/s, record: {record_bytes} B}}, parallelism: {parallelism}}}"]
    for i in range(1, stages):
        service_ns = round(sink_us * 1000 * (1.0 if i == stages - 1 else 0.6))
        record = "" if i == stages - 1 else f"record: {record_bytes} B, "
        state = f"{record}state: {{size: 64 MB, update: 10 %, value: 1 kB}}"
        rows.append(f"  s{i}: {{input: {{s{i - 1}: hash}}, service: {service_ns} ns, parallelism: {parallelism}, {state}}}")
    job = "\n".join(rows)
    return f"""# How long does the simulator take for a chain of {stages} x {parallelism}?
version: 1
job:
{job}
checkpoint: {{interval: {interval_s} s, barriers: {barriers}}}
storage: {{bandwidth: 100 MB/s, file-latency: 20 ms, metadata-latency: 20 ms}}
run: {{duration: {duration_s} s, seed: 7}}
"""
