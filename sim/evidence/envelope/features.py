"""The features of a scenario that decide whether recordings cover it, with their values.

A choice has words as values, a number has counts or amounts.  A feature may have several values in a scenario, e.g. the parallelisms of
its vertices.  An absent part (no state, no faults) has no value, and needs no recording.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from sim.evidence.envelope.load import loads_of
from sim.model.faults import FailedCommits, JobManagerDown, Kill, NetworkOutage, SlowTask, StorageOutage, Target, TaskManagerLost
from sim.model.job import Input, Job, Vertex
from sim.model.scenario import Scenario
from sim.units import format_byte_rate, format_duration, format_size

Value = str | int


@dataclass(frozen=True, slots=True)
class Feature:
    """A feature of a scenario.  A number may exceed the largest recorded one by the factor `slack`; `sides`: upwards, downwards or both."""

    name: str
    of: Callable[[Scenario], Iterable[Value]]
    text: Callable[[int], str] | None = None  # text of a number; None: the feature is a choice
    slack: int = 2
    sides: Literal["up", "down", "both"] = "up"

    def value_text(self, value: Value) -> str:
        return self.text(value) if self.text is not None and isinstance(value, int) else str(value)


def features(scenario: Scenario) -> dict[str, tuple[Value, ...]]:
    """Feature -> distinct values in order; features without a value are left out."""
    found = {feature.name: set(feature.of(scenario)) for feature in FEATURES}
    return {name: tuple(sorted(values, key=lambda value: (isinstance(value, str), value))) for name, values in found.items() if values}


def _chosen(flags: Mapping[str, bool]) -> list[str]:
    return [name for name, there in flags.items() if there]


def _all_inputs(job: Job) -> list[Input]:
    return [inlet for vertex in job.vertices for inlet in vertex.inputs]


def _inputs(job: Job) -> list[str]:
    readers = Counter(inlet.upstream for inlet in _all_inputs(job))
    return _chosen({
        "join": any(vertex.joined for vertex in job.vertices),
        "union": any(len(vertex.inputs) > 1 and not vertex.joined for vertex in job.vertices),
        "several readers": any(count > 1 for count in readers.values()),
        "several edges between two vertices": len(set(job.edges)) < len(job.edges),
        "edges with amounts of their own": any(inlet.fan_out is not None for inlet in _all_inputs(job)),
        "several sources": sum(vertex.source is not None for vertex in job.vertices) > 1,
    })  # fmt: skip


def _depth(job: Job) -> int:
    """The number of exchanges on the longest path from a source."""
    deep: dict[str, int] = {}
    for vertex in job.vertices:
        deep[vertex.name] = max((deep[inlet.upstream] + 1 for inlet in vertex.inputs), default=0)
    return max(deep.values(), default=0)


def _waits(scenario: Scenario) -> list[str]:
    waits = [vertex.source.waits for vertex in scenario.job.vertices if vertex.source is not None]
    return [place for place in waits if place != "mailbox"]


def _fan_out(vertex: Vertex) -> str:
    return "as many" if vertex.fan_out == 1 else "more" if vertex.fan_out > 1 else "fewer"


def _services(vertex: Vertex) -> Iterable[tuple[int, str]]:
    """(mean ns, law) per input.  Sources do not count: their time per record is small and the same everywhere."""
    return ((inlet.service.mean, inlet.service.kind) for inlet in vertex.inputs if inlet.service.mean)


def _state(scenario: Scenario) -> list[str]:
    states = [vertex.state for vertex in scenario.job.vertices if vertex.state is not None]
    options = scenario.checkpoint.state
    return [
        *(state.backend for state in states),
        *_chosen({
            "incremental": options.incremental and any(state.kind.keeps_files for state in states),
            "changelog": any(state.changelog is not None for state in states),
            "local recovery": options.local_recovery and bool(scenario.faults or scenario.rescale),
        }),
    ]  # fmt: skip


def _state_sizes(job: Job) -> list[int]:
    return [vertex.state.bytes // vertex.parallelism for vertex in job.vertices if vertex.state is not None and vertex.state.bytes]


def _storage(scenario: Scenario) -> list[str]:
    storage = scenario.storage
    return _chosen({
        "flat" if storage.kind is None else storage.kind.title: True,
        "slow files": storage.slow_probability > 0,
        "slow nodes": storage.dfs is not None and storage.dfs.slow is not None,
        "slow prefixes": storage.object_store is not None and storage.object_store.slow is not None,
        "slow disks": storage.disk.slow is not None,
        "merged files": storage.merging is not None,
        "shared uplink": storage.nic_bytes_per_second is not None,
        "full disks": storage.disk.space_bytes is not None,
    })  # fmt: skip


def _is_flat(scenario: Scenario) -> bool:
    return scenario.storage.kind is None


def _network(scenario: Scenario) -> list[str]:
    cluster, network = scenario.cluster, scenario.cluster.network
    return _chosen({
        "latency": cluster.latency_ns > 0,
        "limited bandwidth": cluster.nic_bytes_per_second is not None,
        "debloating": network.debloat is not None,
        "a flush after each record": network.buffer_timeout_ns == 0,
        "no flush timer": network.buffer_timeout_ns < 0,
    })  # fmt: skip


def _work(scenario: Scenario) -> list[str]:
    """Work of operators for a checkpoint, besides their state."""
    works = [vertex.snapshot for vertex in scenario.job.vertices]
    flushes = any(vertex.flush is not None for vertex in scenario.job.vertices)
    return _chosen({
        "before the barrier": any(work.pre_barrier_ns for work in works),
        "after the barrier": any(work.sync_ns for work in works),
        "asynchronous": any(work.async_ns for work in works),
        "now and then": any(work.probability < 1 and (work.pre_barrier_ns or work.sync_ns or work.async_ns) for work in works),
        "files flushed": flushes,
        "files uploaded behind the barrier": flushes and scenario.checkpoint.operator_io == "async",
    })  # fmt: skip


def _commits(job: Job) -> list[str]:
    commits = [vertex.commit for vertex in job.vertices if vertex.commit is not None]
    return _chosen({
        "two-phase": bool(commits),
        "global committer": any(commit.committer == "global" for commit in commits),
        "output held until committed": any(commit.emits == "on-commit" for commit in commits),
        "records held back": any(commit.holds_back for commit in commits),
        "transaction timeout": any(commit.transaction_timeout_ns is not None for commit in commits),
    })  # fmt: skip


def _ends(scenario: Scenario) -> list[str]:
    sources = [vertex.source for vertex in scenario.job.vertices if vertex.source is not None]
    bounded = sum(source.total is not None for source in sources)
    found = _chosen({"all sources": bool(bounded) and bounded == len(sources), "some sources": 0 < bounded < len(sources)})
    return [*found, *([f"finish: {scenario.checkpoint.finish}"] if bounded and scenario.checkpoint.finish != "flink" else ())]


def _fault(what: Target) -> str:
    match what:
        case Kill():
            return "a task fails"
        case TaskManagerLost():
            return "a silent task manager" if what.silent else "a task manager is lost"
        case JobManagerDown():
            return "the job manager is down"
        case StorageOutage():
            return "a storage outage"
        case NetworkOutage():
            return "a network outage"
        case SlowTask():
            return "a slow task"
        case FailedCommits():
            return "failed commits"


def _restarts(scenario: Scenario) -> list[str]:
    return _chosen({
        "rescaling": bool(scenario.rescale),
        "a job started from another's snapshot": scenario.instances.count > 1,
        "warming up": bool(scenario.faults) and scenario.restart.warm_up_ns > 0,
    })  # fmt: skip


def _snapshots(scenario: Scenario) -> list[str]:
    return [text for action in scenario.actions for text in (action.format, action.stop and f"stop with {action.stop}") if text]


def _strategy(scenario: Scenario) -> list[str]:
    """Strategies that no released Flink has, or that Flink does not promise."""
    options = scenario.checkpoint
    return _chosen({
        f"aborts {options.abort_policy}": options.abort_policy != "survive",
        "lost notifications": options.lost_notifications > 0,
        f"paths {scenario.directories.paths}": scenario.directories.paths != "absolute",
        "some edges forced aligned": bool(options.forced_aligned),
    })  # fmt: skip


FEATURES = (
    Feature("barriers", lambda scenario: [scenario.checkpoint.barriers.kind]),
    Feature("Flink profile", lambda scenario: [scenario.cluster.profile]),
    Feature("placement", lambda scenario: [scenario.cluster.placement]),
    Feature("exchanges", lambda scenario: [inlet.ship for inlet in _all_inputs(scenario.job)]),
    Feature("inputs", lambda scenario: _inputs(scenario.job)),
    Feature("skewed keys", lambda scenario: ["yes" for inlet in _all_inputs(scenario.job) if len(set(inlet.weights)) > 1]),
    Feature("records out per record in", lambda scenario: [_fan_out(vertex) for vertex in scenario.job.vertices]),
    Feature("load", loads_of),
    Feature("sources that wait in poll or with the lock", _waits),
    Feature("parallelism", lambda scenario: [vertex.parallelism for vertex in scenario.job.vertices], str, slack=1),
    Feature("exchanges in a row", lambda scenario: [_depth(scenario.job)], str, slack=1),
    Feature("subtasks", lambda scenario: [sum(vertex.parallelism for vertex in scenario.job.vertices)], str),
    Feature("record size", lambda scenario: [inlet.record_bytes.mean for inlet in _all_inputs(scenario.job)], format_size, sides="both"),
    Feature("record size law", lambda scenario: [inlet.record_bytes.kind for inlet in _all_inputs(scenario.job)]),
    Feature(
        "time per record", lambda scenario: [mean for vertex in scenario.job.vertices for mean, _ in _services(vertex)], format_duration,
        sides="both",
    ),
    Feature("services by subtask", lambda scenario: ["yes" for vertex in scenario.job.vertices if vertex.service_factors]),
    Feature("service law", lambda scenario: [kind for vertex in scenario.job.vertices for _, kind in _services(vertex)]),
    Feature(
        "async I/O latency", lambda scenario: [vertex.async_io.latency.mean for vertex in scenario.job.vertices if vertex.async_io],
        format_duration, sides="both",
    ),
    Feature(
        "windows", lambda scenario: [vertex.window.size_ns for vertex in scenario.job.vertices if vertex.window], format_duration,
        sides="both",
    ),
    Feature("state", _state),
    Feature("state per subtask", lambda scenario: _state_sizes(scenario.job), format_size),
    Feature("storage", _storage),
    Feature(
        "storage bandwidth",
        lambda scenario: [scenario.storage.bytes_per_second] if _is_flat(scenario) and scenario.storage.bytes_per_second else [],
        format_byte_rate, sides="both",
    ),
    Feature("latency per file", lambda scenario: [scenario.storage.close_ns] if _is_flat(scenario) else [], format_duration),
    Feature("network", _network),
    Feature("buffer size", lambda scenario: [scenario.cluster.network.segment_bytes], format_size, sides="both"),
    Feature("exclusive buffers per channel", lambda scenario: [scenario.cluster.network.exclusive_per_channel], str),
    Feature("floating buffers per gate", lambda scenario: [scenario.cluster.network.floating_per_gate], str),
    Feature(
        "checkpoint interval", lambda scenario: [scenario.checkpoint.interval_ns] if scenario.checkpoint.interval_ns else [],
        format_duration, sides="both",
    ),
    Feature("checkpoint timeout", lambda scenario: [scenario.checkpoint.timeout_ns], format_duration, sides="down"),
    Feature(
        "aligned timeout",
        lambda scenario: [scenario.checkpoint.barriers.timeout_ns] if scenario.checkpoint.barriers.record.has_deadline else [],
        format_duration, sides="both",
    ),
    Feature("concurrent checkpoints", lambda scenario: [scenario.checkpoint.max_concurrent], str, slack=1),
    Feature(
        "pause between checkpoints", lambda scenario: [scenario.checkpoint.min_pause_ns] if scenario.checkpoint.min_pause_ns else [],
        format_duration,
    ),
    Feature("work per checkpoint", _work),
    Feature("commit", lambda scenario: _commits(scenario.job)),
    Feature("end of the job", _ends),
    Feature("snapshots asked for", _snapshots),
    Feature("faults", lambda scenario: [_fault(fault.what) for fault in scenario.faults]),
    Feature("restarts", _restarts),
    Feature("strategy", _strategy),
)  # fmt: skip
"""In the order of messages."""
