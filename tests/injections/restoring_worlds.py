"""A handful of small worlds in which everything that can be restored is restored: records in flight, state of every kind, transactions."""

from __future__ import annotations

from tests.worlds.settings import SHORT_CALLS


def restoring_world(barriers, *, commit=None, changelog=True, **changes):
    """Two sources that outrun their readers, operators of every kind, a sink with transactions; two failures."""
    logged = {"changelog": {"materialize": "400 ms", "threshold": "2 kB"}} if changelog else {}
    job = {
        "orders": {
            "source": {"record": "900 B", "rate-per-subtask": "300/s", "records-per-subtask": 400},
            "parallelism": 2,
        },
        "rates": {
            "source": {"record": "300 B", "rate-per-subtask": "100/s", "records-per-subtask": 150},
            "parallelism": 1,
        },
        "enrich": {
            "input": {"orders": {"ship": "hash", "service": "2 ms"}},
            "parallelism": 2,
            "record": "900 B",
            "async-io": {"latency": {"exponential": "15 ms"}, "capacity": 6},
            "snapshot": {"operator-state": "80 B"},
        },
        "count": {
            "input": {"enrich": {"ship": "hash", "service": "2 ms"}, "rates": {"ship": "rebalance", "service": "1 ms"}},
            "parallelism": 2,
            "record": "700 B",
            "fan-out": 1.5,
            "state": {
                "size": "20 kB",
                "backend": "rocksdb",
                "update": "30 %",
                "value": "100 B",
                "lsm": {"freeze": "0 ms", "upload": "0 ms"},
            },
        },
        "total": {
            "input": {"count": {"ship": "hash", "service": "1 ms"}},
            "parallelism": 2,
            "record": "700 B",
            "state": {"size": "10 kB", "backend": "hashmap", "update": "50 %", "value": "100 B"} | logged,
            "snapshot": {"operator-state": "60 B"},
        },
        "sink": {
            "input": {"total": {"ship": "rebalance", "service": "1500 us"}},
            "parallelism": 2,
            "commit": {"time": "30 ms"} | (commit or {}),
            "flush": {"share": "20 %", "files": 2},
        },
    }
    world = {
        "version": 1,
        "job": job,
        "checkpoint": {"interval": "100 ms", "barriers": barriers, "tolerable-failed": 1000, "incremental": True},
        "run": {"duration": "60 s", "seed": 11},
        "cluster": {
            "placement": "spread",
            "latency": "100 us",
            "network": {"segment-size": "4 KiB", "buffers-per-channel": 2, "buffer-timeout": "5 ms"},
        },
        "storage": {"bandwidth": "20 MB/s", "inline-threshold": "0 B"},
        "overheads": dict(SHORT_CALLS),
        "restart": {
            "strategy": "fixed-delay",
            "delay": "10 ms",
            "replacement": "20 ms",
            "heartbeat-interval": "150 ms",
            "heartbeat-timeout": "150 ms",
            "state-start": "0 ms",
            "fresh-start": "0 s",
        },
        "faults": [{"kill": "sink[0]", "at": "650 ms"}, {"kill": "count[1]", "at": "1130 ms"}],
    }
    for section, keys in changes.items():
        world[section] = {**world.get(section, {}), **keys} if isinstance(keys, dict) else keys
    return world


WORLDS = {
    "unaligned": restoring_world("unaligned"),
    "aligned, local copies": restoring_world(
        "aligned", checkpoint={"local-recovery": True}, cluster={"placement": "single"}
    ),
    "task manager lost": restoring_world(
        "unaligned", faults=[{"task-manager": "random", "at": "700 ms"}, {"kill": "orders[0]", "at": "900 ms"}]
    ),
    "rescaled": restoring_world(  # in the middle of a commit
        "unaligned",
        commit={"time": "80 ms", "holds-back": 3},
        faults=[],
        rescale={"at": "700 ms", "parallelism": {"count": 3, "total": 1}},
    ),
    "rescaled twice from one checkpoint": restoring_world(
        "unaligned",
        checkpoint={"interval": "500 ms"},
        faults=[],
        rescale=[
            {"at": "750 ms", "parallelism": {"count": 3, "total": 1}},
            {"at": "850 ms", "parallelism": {"count": 5, "total": 2}},
        ],
    ),
    "rescaled with a savepoint": restoring_world(
        "unaligned",
        rescale={"at": "600 ms", "parallelism": {"count": 1, "total": 3}, "from": "savepoint"},
        faults=[{"kill": "total[0]", "at": "1200 ms"}],
    ),
    "claimed": restoring_world(
        "unaligned", instances={"count": 2, "claim": "claim"}, run={"duration": "1700 ms"}, faults=[]
    ),
    "not claimed": restoring_world(  # stopped with the savepoint, so that nothing is committed behind it
        "unaligned",
        changelog=False,
        instances={"count": 2, "claim": "no-claim", "from": "savepoint"},
        run={"duration": "2400 ms"},
        faults=[],
        actions=[{"stop": "no-drain", "format": "native", "at": "700 ms"}],
    ),
}
