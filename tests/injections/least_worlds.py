"""The worlds in which bugs show: small jobs, and what happens to them.  Each makes a scenario file as a user writes it."""

from __future__ import annotations

from tests.worlds.settings import SHORT_CALLS

KILL = {"kill": "m[0]", "at": "1 s"}
"""A task fails between two checkpoints."""


def source(rate=100, records=200, parallelism=2, **options):
    """So many records per second and subtask, and so many in all."""
    rates = {"rate-per-subtask": f"{rate}/s", "records-per-subtask": records, "record": "300 B"}
    return {"source": rates | _keys(options), "parallelism": parallelism}


def reader(upstream="s", parallelism=2, service="1 ms", ship="hash", **options):
    return {"input": {upstream: ship}, "parallelism": parallelism, "service": service, "record": "300 B"} | _keys(
        options
    )


def sink(upstream="m", parallelism=2, **options):
    """It commits what it has read."""
    return reader(upstream, parallelism, **({"commit": "two-phase"} | options))


def chain(*, s=None, m=None, k=None):
    """Source, operator and transactional sink."""
    return {"s": s or source(), "m": m or reader(), "k": k or sink()}


def world(
    job=None,
    *,
    checkpoint=None,
    faults=(),
    **options,
):
    """Checkpoints every 150 ms, calls of a millisecond, restarts after 20 ms; `options`: other sections."""
    sections = {
        "version": 1,
        "job": job or chain(),
        "checkpoint": {"interval": "150 ms", "tolerable-failed": 1000} | (checkpoint or {}),
        "run": {"duration": "8 s", "seed": 1},
        "cluster": {"placement": "isolated"},
        "storage": {"bandwidth": "40 MB/s", "file-latency": "2 ms", "inline-threshold": "0 B"},
        "overheads": dict(SHORT_CALLS),
        "restart": {
            "strategy": "fixed-delay",
            "delay": "20 ms",
            "heartbeat-interval": "300 ms",
            "heartbeat-timeout": "300 ms",
            "connection-reset": "10 ms",
        },
    }
    for key, value in _keys(options).items():
        sections[key] = sections[key] | value if isinstance(value, dict) and key in sections else value
    return sections | ({"faults": list(faults)} if faults else {})


def _keys(options):
    return {key.replace("_", "-"): value for key, value in options.items()}
