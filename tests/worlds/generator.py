"""Random tiny worlds as scenario files: a bounded job, a way of checkpointing, what goes wrong.  The same seed writes the same file.

Everything a scenario can say that matters to exactly-once is drawn here; sizes and times are such that a run takes milliseconds.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from sim.scenario import write

__all__ = ["WRONG", "document", "text"]

Document = dict[str, Any]


def text(seed: int, wrong: str = "") -> str:
    """A scenario file."""
    world = document(seed)
    if wrong:
        WRONG[wrong](world)
    return write(world, f"Is everything processed exactly once? (world {seed}{', ' + wrong if wrong else ''})")


def document(seed: int) -> Document:
    """A world whose strategy is sound."""
    rng = Random(seed)
    job = _job(rng)
    world: Document = {"version": 1, "job": job}
    world["checkpoint"] = _checkpoint(rng)
    world["run"] = {"duration": "60 s", "seed": rng.randint(1, 10**6)}
    world["cluster"] = _cluster(rng)
    world["storage"] = _storage(rng)
    world["overheads"] = {"trigger": "1 ms", "acknowledge": "1 ms", "complete": "1 ms", "notify": "1 ms",
                          "first-trigger": "10 ms", "fail": "3 ms", "restart": "1 ms", "deploy": "4 ms"}  # fmt: skip
    if actions := _actions(rng):
        world["actions"] = actions
    stops = any("stop" in action for action in actions)
    if stops:  # what nobody hears of is waited for, as in Flink
        world["checkpoint"].pop("lost-notifications", None)
    if faults := [one for one in _faults(rng, job) if not (stops and "job-manager" in one)]:  # a new one knows nothing of savepoints
        world["faults"] = faults
    world["restart"] = {"strategy": "fixed-delay", "delay": _ms(rng, 1, 60), "failover": rng.choice(["region", "full"]),
                        "heartbeat-timeout": "150 ms", "connection-reset": "10 ms", "replacement": "20 ms"}  # fmt: skip
    return world


def _ms(rng: Random, low: int, high: int) -> str:
    return f"{rng.randint(low, high)} ms"


def _job(rng: Random) -> Document:
    job: Document = {}
    readable: dict[str, int] = {}  # vertex -> parallelism
    for name in ["a", "b"][: rng.choice([1, 1, 2])]:
        readable[name] = rng.randint(1, 3)
        pace = rng.choice([60, 150, 400])
        job[name] = {
            "source": {"record": _record(rng), "rate-per-subtask": f"{pace}/s", "records-per-subtask": round(pace * rng.uniform(0.3, 2))},
            "parallelism": readable[name],
            "service": "20 us",
        }
    unread = set(readable)
    names = ["c", "d"][: rng.choice([0, 1, 1, 2])]
    for name in [*names, "sink"]:
        upstream = sorted(unread) if name == "sink" else sorted(rng.sample(sorted(readable), min(len(readable), rng.choice([1, 1, 2]))))
        readable[name] = rng.randint(1, 3)
        vertex: Document = {
            "input": {up: {"ship": _ship(rng, readable[up], readable[name]), "service": _service(rng)} for up in upstream},
            "parallelism": readable[name],
            "record": _record(rng),
        }
        if len(upstream) > 1 and rng.random() < 0.5:
            vertex["combine"] = "join"
        if name != "sink":
            vertex["fan-out"] = rng.choice([1, 1, 0.5, 2])
        if rng.random() < 0.6:
            vertex["state"] = {"size": f"{rng.choice([1, 20])} kB", "backend": rng.choice(["hashmap", "rocksdb"]), "update": "20 %",
                               "value": "100 B"}  # fmt: skip
        if rng.random() < 0.5:
            vertex["snapshot"] = {"pre-barrier": rng.choice(["0 s", "5 ms", "40 ms"]), "sync": rng.choice(["0 s", "4 ms"]),
                                  "async": rng.choice(["0 s", "30 ms"]), "operator-state": rng.choice(["0 B", "60 B"])}  # fmt: skip
        job[name] = vertex
        unread = (unread - set(upstream)) | {name}
    job["sink"]["commit"] = {"committer": rng.choice(["chained", "chained", "global"]), "time": rng.choice(["0 s", "1 ms", "15 ms"])}
    if rng.random() < 0.6:
        job["sink"]["flush"] = {"share": "20 %", "files": rng.randint(1, 3)}
    return job


def _record(rng: Random) -> str:
    return f"{rng.choice([300, 2000, 9000])} B"


def _service(rng: Random) -> Any:
    time = rng.choice(["100 us", "1 ms", "4 ms"])
    return rng.choice([time, {"exponential": time}])


def _ship(rng: Random, writers: int, readers: int) -> str:
    return rng.choice(["hash", "hash", "rebalance", "rescale", "global", *(["forward"] if writers == readers else [])])


def _checkpoint(rng: Random) -> Document:
    timeout = {"aligned-timeout": rng.choice(["1 ms", "5 ms", "40 ms", "150 ms"])}
    barriers = rng.choice(["aligned", "aligned", "unaligned", "unaligned", timeout])
    options: Document = {
        "interval": _ms(rng, 60, 400),
        "barriers": barriers,
        "timeout": rng.choice(["250 ms", "600 ms", "10 s", "10 s"]),
        "min-pause": rng.choice(["0 s", "0 s", "50 ms"]),
        "tolerable-failed": 10**6,
        "num-retained": rng.choice([1, 1, 3]),
        "operator-io": rng.choice(["pre-barrier", "async"]),
        "abort-policy": rng.choice(["survive", "reupload"]),
        "finish": rng.choice(["flink", "flink", "flink", "naive"]),
        "incremental": rng.choice([True, False]),
    }
    if barriers == "aligned":
        options["max-concurrent"] = rng.choice([1, 1, 2, 3])
    if rng.random() < 0.3:
        options["lost-notifications"] = rng.choice(["20 %", "60 %"])
    if rng.random() < 0.2:
        options["staging"] = {"space": "4 MB", "when-full": "block"}
    return options


def _cluster(rng: Random) -> Document:
    network: Document = {"segment-size": "4 KiB", "starting-segment-size": "4 KiB", "buffers-per-channel": 2,
                         "floating-buffers-per-gate": rng.choice([1, 2, 8]), "max-buffers-per-channel": 4,
                         "overdraft": rng.choice([0, 2]), "buffer-timeout": rng.choice(["0 s", "5 ms", "20 ms"])}  # fmt: skip
    if rng.random() < 0.2:
        network["debloat"] = {"period": "30 ms", "target": "60 ms", "min": "256 B"}
    cluster: Document = {"placement": rng.choice(["isolated", "spread", "single"]), "network": network}
    if rng.random() < 0.5:
        cluster["latency"] = rng.choice(["50 us", "2 ms"])
    if rng.random() < 0.2:
        cluster["nic"] = "10 MB/s"
    return cluster


def _storage(rng: Random) -> Document:
    storage: Document = {"bandwidth": rng.choice(["2 MB/s", "40 MB/s"]), "inline-threshold": rng.choice(["0 B", "1 kB"])}
    if rng.random() < 0.3:
        storage["slow"] = {"share": "20 %", "factor": rng.choice([5, 40])}
    return storage


def _actions(rng: Random) -> list[Document]:
    actions: list[Document] = []
    if rng.random() < 0.25:
        actions.append({"savepoint": rng.choice(["canonical", "native"]), "at": _ms(rng, 100, 900)})
    if rng.random() < 0.15:
        actions.append({"stop": rng.choice(["drain", "no-drain"]), "at": _ms(rng, 901, 2000)})
    return actions


def _faults(rng: Random, job: Document) -> list[Document]:
    """Up to three; what strikes after the end strikes nobody."""
    return [_fault(rng, job) | {"at": _ms(rng, 20, 2500)} for _ in range(rng.choice([0, 1, 1, 2, 3]))]


def _fault(rng: Random, job: Document) -> Document:
    vertex = rng.choice(sorted(job))
    one = f"{vertex}[{rng.randrange(job[vertex]['parallelism'])}]"
    return rng.choice([
        {"kill": rng.choice(["random-task", one, vertex])},
        {"kill": one},
        {"task-manager": "random"},
        {"task-manager": "random", "silent": True},
        {"job-manager": f"down-for {rng.randint(10, 300)} ms"},
        {"storage": "outage", "lasts": _ms(rng, 50, 500)},
        {"network": "random", "lasts": _ms(rng, 10, 300)},
        {"slow": one, "factor": rng.randint(2, 6), "lasts": _ms(rng, 50, 600)},
    ])  # fmt: skip


def _counting(world: Document) -> None:
    """Unequal channels into a slow sink, and a failure."""
    world["checkpoint"].update({"barriers": "at-least-once", "max-concurrent": 1})
    world["job"]["sink"].update(parallelism=2, service="5 ms")
    for vertex in world["job"].values():
        if "source" in vertex:
            vertex["parallelism"] = max(2, vertex["parallelism"])
        for inlet in vertex.get("input", {}).values():
            inlet["ship"] = "hash"
    world["faults"] = [{"kill": "random-task", "at": "700 ms"}]


def _dropping(world: Document) -> None:
    """With files, so that something can be dropped, and checkpoints that are aborted."""
    world["job"]["sink"]["flush"] = {"share": "100 %", "bytes": "20 kB"}
    world["storage"]["bandwidth"] = "1 MB/s"
    world["checkpoint"].update({"operator-io": "async", "abort-policy": "drop", "timeout": "80 ms"})


def _expiring(world: Document) -> None:
    world["job"]["sink"]["commit"]["transaction-timeout"] = "100 ms"


WRONG: dict[str, Callable[[Document], None]] = {
    "at least once": _counting,
    "upload dropped on abort": _dropping,
    "commit at finish": lambda world: world["checkpoint"].update({"finish": "commit-at-finish"}),
    "discard at finish": lambda world: world["checkpoint"].update({"finish": "discard"}),
    "no checkpoints after tasks finish": lambda world: world["checkpoint"].update({"finish": "off"}),
    "transactions expire": _expiring,
}
"""Strategies known to be wrong, as changes of a sound world."""
