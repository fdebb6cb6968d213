"""Which features meet which faults in random worlds: `python -m tests.worlds.pairs` prints a table of pairs and counts.

A feature is what a world sets.  A fault is what strikes it, or what its limits allow to happen: which of those
happened, a run says.
"""

import argparse
import sys
from collections import Counter
from itertools import product

from sim.results.journal import Happening
from tests.worlds.generator import document

MOST_TOLD = 12
"""Pairs that no world has."""


def _sections(world, section):
    """What the vertices of a world say in a section."""
    found = (vertex.get(section) for vertex in world["job"].values())
    return [row for row in found if isinstance(row, dict)]


def _inputs(world):
    return [
        edge for vertex in world["job"].values() for edge in vertex.get("input", {}).values() if isinstance(edge, dict)
    ]


def _windows(**options):
    return lambda world: any(
        all(window.get(key) == value for key, value in options.items()) for window in _sections(world, "window")
    )


def _window_with(key):
    return lambda world: any(key in window for window in _sections(world, "window"))


def _state_with(key):
    return lambda world: any(key in state for state in _sections(world, "state"))


def _watermark_with(key):
    return lambda world: any(key in source.get("watermark", {}) for source in _sections(world, "source"))


def _checkpoint(key, *values):
    return lambda world: key in world["checkpoint"] and (not values or world["checkpoint"][key] in values)


def _commit_with(key, value):
    return lambda world: any(commit.get(key) == value for commit in _sections(world, "commit"))


def _bounded(world):
    return all({"records", "records-per-subtask"} & set(source) for source in _sections(world, "source"))


FEATURES = {
    "windows of event time": _windows(time="event"),
    "windows of processing time": _windows(time="processing"),
    "sessions": _window_with("session"),
    "sliding windows": _window_with("sliding"),
    "first stages": _windows(stage="local"),
    "idle sources": _watermark_with("idle-timeout"),
    "time to live": _state_with("ttl"),
    "growing state": _state_with("growth"),
    "changelog": _state_with("changelog"),
    "changelog in memory": lambda world: any(
        isinstance(log := state.get("changelog"), dict) and log.get("storage") == "memory"
        for state in _sections(world, "state")
    ),
    "incremental": lambda world: (
        _checkpoint("incremental", True)(world)
        and any(state.get("backend") == "rocksdb" for state in _sections(world, "state"))
    ),
    "local recovery": _checkpoint("local-recovery", True),
    "double edges": lambda world: any("from" in edge for edge in _inputs(world)),
    "side outputs": lambda world: any("output" in edge for edge in _inputs(world)),
    "transactions": lambda world: any(vertex.get("commit", "none") != "none" for vertex in world["job"].values()),
    "global committers": _commit_with("committer", "global"),
    "output on commit": _commit_with("emits", "on-commit"),
    "unaligned": _checkpoint("barriers", "unaligned"),
    "aligned with a timeout": lambda world: isinstance(world["checkpoint"].get("barriers"), dict),
    "concurrent checkpoints": _checkpoint("max-concurrent"),
    "async operate": lambda world: _checkpoint("operator-io", "async")(world) and bool(_sections(world, "flush")),
    "final checkpoints": lambda world: _bounded(world) and world["checkpoint"].get("finish", "flink") == "flink",
    "backlogs (FLIP-309)": lambda world: any("backlog" in source for source in _sections(world, "source")),
    "checkpoints in recovery (FLIP-547)": _checkpoint("during-recovery", True),
    "interruptible timers": _checkpoint("interruptible-timers", True),
    "savepoints": lambda world: any("savepoint" in action for action in world.get("actions", ())),
    "stops": lambda world: any("stop" in action for action in world.get("actions", ())),
    "rescales": lambda world: "rescale" in world,
    "later jobs": lambda world: "instances" in world,
    "async I/O": lambda world: bool(_sections(world, "async-io")),
    "merged files": lambda world: "file-merging" in world.get("storage", {}),
}
"""What is newer in a world -> whether a world has it."""


def _struck(*keys):
    return lambda world: any(key in fault for fault in world.get("faults", ()) for key in keys)


def _slow_storage(world):
    storage = world.get("storage", {})
    return "slow" in storage or any("slow" in kind for kind in storage.values() if isinstance(kind, dict))


def _may_exhaust(world):
    """A restart strategy that gives up, and failures."""
    restart, kills = world["restart"], _struck("kill", "task-manager")(world)
    return kills and (restart.get("strategy") in ("none", "failure-rate") or "attempts" in restart)


FAULTS = {
    "a task fails": _struck("kill"),
    "a task manager is lost": _struck("task-manager"),
    "the JobManager is lost": _struck("job-manager"),
    "storage stands still": _struck("storage"),
    "storage is slow": _slow_storage,
    "the network is cut": _struck("network"),
    "a task is slow": _struck("slow"),
    "checkpoints may expire": lambda world: world["checkpoint"].get("timeout") in ("250 ms", "600 ms"),
    "restarts may be exhausted": _may_exhaust,
}
"""What goes wrong in a world, or may -> whether it does so in this one."""

MET = {
    "a checkpoint is declined": lambda result: _failed(result, "CHECKPOINT_DECLINED"),
    "a checkpoint expires": lambda result: _failed(result, "CHECKPOINT_EXPIRED"),
    "storage fails a checkpoint": lambda result: _failed(
        result, "CHECKPOINT_ASYNC_EXCEPTION", "IO_EXCEPTION", "FINALIZE"
    ),
    "restarts are exhausted": lambda result: any(entry.happening is Happening.GIVEN_UP for entry in result.journal),
}
"""What only a run says -> whether it happened in this one."""


def _failed(result, *reasons):
    """Whether a checkpoint failed for a reason that begins so."""
    return any(str(message).startswith(reasons) for message in result.checkpoints["failure_message"].dropna().unique())


def met(result):
    return frozenset(name for name, happened in MET.items() if happened(result))


def features_of(world):
    return frozenset(name for name, has in FEATURES.items() if has(world))


def faults_of(world):
    return frozenset(name for name, strikes in FAULTS.items() if strikes(world))


class Pairs:
    """How many worlds have each feature together with each fault."""

    def __init__(self, faults=FAULTS):
        self.faults = tuple(faults)
        self.counts = Counter[tuple[str, str]]()

    def add(self, features, faults):
        self.counts.update(product(features, faults))

    @property
    def empty(self):
        return [pair for pair in product(FEATURES, self.faults) if not self.counts[pair]]

    def lines(self):
        width = max(map(len, FEATURES))
        yield f"{'pairs of feature and fault, worlds':{width}} " + " ".join(
            f"{number:>6}" for number in range(1, len(self.faults) + 1)
        )
        for feature in FEATURES:
            yield f"{feature:{width}} " + " ".join(f"{self.counts[feature, fault]:6}" for fault in self.faults)
        yield "; ".join(f"{number}: {fault}" for number, fault in enumerate(self.faults, 1))
        least = min(self.counts[pair] for pair in product(FEATURES, self.faults))
        yield f"{len(FEATURES) * len(self.faults)} pairs, {len(self.empty)} of them in no world; the rarest is in {least}"
        if self.empty:
            pairs = "; ".join(f"{feature} and {fault}" for feature, fault in self.empty[:MOST_TOLD])
            yield f"in no world: {pairs}{', ...' if len(self.empty) > MOST_TOLD else ''}"


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.worlds.pairs", description=__doc__)
    parser.add_argument("--count", type=int, default=20_000, help="worlds to draw; none is run (default: %(default)s)")
    parser.add_argument("--first", type=int, default=0, help="first seed (default: %(default)s)")
    chosen = parser.parse_args()
    pairs = Pairs()
    for seed in range(chosen.first, chosen.first + chosen.count):
        world = document(seed)
        pairs.add(features_of(world), faults_of(world))
    sys.stdout.write("\n".join(pairs.lines()) + "\n")
    return 1 if pairs.empty else 0


if __name__ == "__main__":
    sys.exit(main())
