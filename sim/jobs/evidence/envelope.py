"""The validity envelope: the features of scenarios that were compared with a real Flink."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple

from sim.model.faults import kind_of_fault
from sim.model.job import Input, Job, Vertex, key_groups
from sim.model.scenario import Scenario
from sim.model.units import SECOND, format_byte_rate, format_duration, format_size
from sim.results.formats import bytes_text

# ---- Utilization: the busy share of the busiest subtask at the highest rate of the sources.

_MAX_SHORT_QUEUE_UTILIZATION = Fraction(4, 5)
"""Maximum utilization at which queues stay short.  Above it, random service times lead to long queues."""


def loads_of(scenario: Scenario) -> list[str]:
    """Return the load in words: whether it changes, and its maximum.

    A source without a rate limit counts as more than can be served.
    """
    sources = [vertex.source for vertex in scenario.job.vertices if vertex.source is not None]
    changing = ["changing rates"] if any(len(source.rates) > 1 for source in sources) else []
    busiest = utilisation(scenario.job)
    if busiest is None or busiest > 1:
        return [*changing, "more than can be served"]
    return [*changing, "below 80 %" if busiest < _MAX_SHORT_QUEUE_UTILIZATION else "80 to 100 %"]


def utilisation(job: Job) -> Fraction | None:
    """Return the utilization of the busiest subtask, or None if a source has no rate limit.  Above 1, sources are throttled."""
    arrivals = _arrivals(job)
    if arrivals is None:
        return None
    busiest = Fraction(0)
    for name, coming in arrivals.items():
        vertex = job.vertex(name)
        work = [(rate * vertex.largest_work(_shares(inlet, vertex)), inlet.service.mean) for inlet, rate in coming]
        busy = sum((records * each_ns / SECOND for records, each_ns in work), Fraction(0))
        if vertex.async_io is not None:
            offered = sum((rate * max(_shares(inlet, vertex)) for inlet, rate in coming), Fraction(0))
            busy = max(busy, offered * vertex.async_io.latency.mean / SECOND / vertex.async_io.capacity)
        busiest = max(busiest, busy + _firing_share(vertex, coming))
    return busiest


def firings_ns(scenario: Scenario) -> dict[str, int]:
    """Return {vertex: time for which its windows fire on the busiest task thread, and let no barrier pass, at each end [ns]}.

    Empty if a source has no rate limit or a rate that varies.  Windows without a common end, of sessions or before each
    barrier, are left out.
    """
    job = scenario.job
    arrivals = _arrivals(job)
    if arrivals is None or any(len(vertex.source.rates) > 1 for vertex in job.vertices if vertex.source is not None):
        return {}
    windows = {vertex.name: vertex.window for vertex in job.vertices if vertex.window is not None}
    return {
        name: round(_firing_share(job.vertex(name), arrivals[name]) * window.step_ns)
        for name, window in windows.items()
        if window.fire_ns and not (window.hold_ns or window.early or scenario.yields(job.vertex(name)))
    }


_Arrivals = list[tuple[Input, Fraction]]


def _arrivals(job: Job) -> dict[str, _Arrivals] | None:
    """Return {vertex: [(input, records/s)]} at the maximum rates of sources, or None if a source has no rate limit."""
    arrivals: dict[str, _Arrivals] = {}
    rates: dict[str, Fraction] = {}  # records read, or emitted by a source
    for vertex in job.vertices:
        if vertex.source is not None:
            if not vertex.source.rates:
                return None
            rates[vertex.name] = max(rate.per_second for rate in vertex.source.rates) * vertex.emitting
            continue
        arrivals[vertex.name] = [
            (inlet, rates[inlet.upstream] * job.fan_out(inlet) * (vertex.parallelism if inlet.shipping.copies else 1))
            for inlet in vertex.inputs
        ]
        rates[vertex.name] = sum((rate for _, rate in arrivals[vertex.name]), Fraction(0))
    return arrivals


def _firing_share(vertex: Vertex, coming: _Arrivals) -> Fraction:
    """Return the share of time in which the busiest task thread of a vertex fires windows."""
    if vertex.window is None:
        return Fraction(0)
    records = sum((rate * vertex.largest_work(_shares(inlet, vertex)) for inlet, rate in coming), Fraction(0))
    return records * vertex.fan_out * vertex.window.fire_ns / SECOND


def _shares(inlet: Input, vertex: Vertex) -> list[Fraction]:
    """Return the share of each subtask in the records of an input."""
    if inlet.shipping.to_one:
        return [Fraction(1)]
    if shares := vertex.shares(inlet):
        return list(shares)
    # By default, the share of a subtask is proportional to its number of key groups.
    groups = vertex.max_parallelism if inlet.shipping.keyed else vertex.parallelism
    return [Fraction(len(key_groups(i, vertex.parallelism, groups)), groups) for i in range(vertex.parallelism)]


# ---- Features of a scenario.  Their values are compared with those of the recordings.
#
# The values of a feature are words or numbers.  A feature may have several values in a scenario, for example the
# parallelism of each vertex.  A missing part (no state, no faults) has no value, and needs no recording.

Value = str | int


class NumberFeature(NamedTuple):
    """The comparison rule of a feature with numeric values.

    A number is inside the envelope if it is beyond the recorded range by at most the factor `slack`.  Only the given
    `sides` of the range are limits.
    """

    text: Callable[[int], str] = str
    slack: int = 2
    sides: Literal["up", "down", "both"] = "up"


NUMBERS = {
    "parallelism": NumberFeature(slack=1),
    "exchanges in a row": NumberFeature(slack=1),
    "subtasks": NumberFeature(),
    "record size": NumberFeature(format_size, sides="both"),
    "time per record": NumberFeature(format_duration, sides="both"),
    "async I/O latency": NumberFeature(format_duration, sides="both"),
    "windows": NumberFeature(format_duration, sides="both"),
    "state per subtask": NumberFeature(bytes_text),
    "storage bandwidth": NumberFeature(format_byte_rate, sides="both"),
    "latency per file": NumberFeature(format_duration),
    "buffer size": NumberFeature(format_size, sides="both"),
    "exclusive buffers per channel": NumberFeature(),
    "floating buffers per gate": NumberFeature(),
    "checkpoint interval": NumberFeature(format_duration, sides="both"),
    "checkpoint timeout": NumberFeature(format_duration, sides="down"),
    "aligned timeout": NumberFeature(format_duration, sides="both"),
    "concurrent checkpoints": NumberFeature(slack=1),
    "pause between checkpoints": NumberFeature(format_duration),
}
"""The features with numeric values.  The values of other features are words."""


def features(scenario: Scenario) -> dict[str, tuple[Value, ...]]:
    """Return the distinct values of each feature, in ascending order.  Features are in the order of messages."""
    values_of = _job_features(scenario) | _state_and_network_features(scenario) | _checkpoint_features(scenario)
    return {
        name: tuple(sorted(set(values), key=lambda value: (isinstance(value, str), value)))
        for name, values in values_of.items()
    }


def _job_features(scenario: Scenario) -> dict[str, Sequence[Value]]:
    job, vertices = scenario.job, scenario.job.vertices
    inlets = [inlet for vertex in vertices for inlet in vertex.inputs]
    services = [inlet.service for inlet in inlets if inlet.service.mean]
    sources = [vertex.source for vertex in vertices if vertex.source is not None]
    readers = Counter(inlet.upstream for inlet in inlets)
    depth: dict[str, int] = {}  # exchanges on the longest path from a source
    for vertex in vertices:
        depth[vertex.name] = max((depth[inlet.upstream] + 1 for inlet in vertex.inputs), default=0)
    return {
        "barriers": [scenario.checkpoint.barriers.kind],
        "Flink profile": [scenario.cluster.profile],
        "placement": [scenario.cluster.placement],
        "exchanges": [inlet.ship for inlet in inlets],
        "inputs": _chosen(
            {
                "join": any(vertex.joined for vertex in vertices),
                "union": any(len(vertex.inputs) > 1 and not vertex.joined for vertex in vertices),
                "several readers": any(count > 1 for count in readers.values()),
                "several edges between two vertices": len(set(job.edges)) < len(job.edges),
                "edges with amounts of their own": any(inlet.fan_out is not None for inlet in inlets),
                "several sources": len(sources) > 1,
            }
        ),
        "skewed keys": _chosen({"yes": any(len(set(inlet.weights)) > 1 for inlet in inlets)}),
        "records out per record in": [
            "as many" if vertex.fan_out == 1 else "more" if vertex.fan_out > 1 else "fewer" for vertex in vertices
        ],
        "load": loads_of(scenario),
        "sources that wait in poll or with the lock": [source.waits for source in sources if source.waits != "mailbox"],
        "parallelism": [vertex.parallelism for vertex in vertices],
        "exchanges in a row": [max(depth.values(), default=0)],
        "subtasks": [sum(vertex.parallelism for vertex in vertices)],
        "record size": [
            inlet.record_bytes.mean
            for vertex in vertices
            if not vertex.committer_of  # it reads committables
            for inlet in vertex.inputs
        ],
        "record size law": [inlet.record_bytes.kind for inlet in inlets],
        "time per record": [service.mean for service in services],
        "services by subtask": _chosen({"yes": any(vertex.service_factors for vertex in vertices)}),
        "service law": [service.kind for service in services],
        "async I/O latency": [vertex.async_io.latency.mean for vertex in vertices if vertex.async_io],
        "windows": [vertex.window.size_ns for vertex in vertices if vertex.window],
    }


def _state_and_network_features(scenario: Scenario) -> dict[str, Sequence[Value]]:
    with_state = [(vertex.state, vertex.parallelism) for vertex in scenario.job.vertices if vertex.state is not None]
    options, storage, network = scenario.checkpoint.state, scenario.storage, scenario.cluster.network
    is_flat = storage.kind is None
    return {
        "state": [
            *(state.backend for state, _ in with_state),
            *_chosen(
                {
                    "incremental": options.incremental and any(state.kind.keeps_files for state, _ in with_state),
                    "changelog": any(state.changelog is not None for state, _ in with_state),
                    "local recovery": options.local_recovery and bool(scenario.faults or scenario.rescale),
                }
            ),
        ],
        "state per subtask": [state.bytes // parallelism for state, parallelism in with_state if state.bytes],
        "storage": _chosen(
            {
                "flat" if storage.kind is None else storage.kind.title: True,
                "slow files": storage.slow_probability > 0,
                "slow nodes": storage.dfs is not None and storage.dfs.slow is not None,
                "slow prefixes": storage.object_store is not None and storage.object_store.slow is not None,
                "slow disks": storage.disk.slow is not None,
                "merged files": storage.merging is not None,
                "shared uplink": storage.nic_bytes_per_second is not None,
                "full disks": storage.disk.space_bytes is not None,
            }
        ),
        "storage bandwidth": [storage.bytes_per_second] if is_flat and storage.bytes_per_second else [],
        "latency per file": [storage.close_ns] if is_flat else [],
        "network": _chosen(
            {
                "latency": scenario.cluster.latency_ns > 0,
                "limited bandwidth": scenario.cluster.nic_bytes_per_second is not None,
                "debloating": network.debloat is not None,
                "a flush after each record": network.buffer_timeout_ns == 0,
                "no flush timer": network.buffer_timeout_ns < 0,
            }
        ),
        "buffer size": [network.segment_bytes],
        "exclusive buffers per channel": [network.exclusive_per_channel],
        "floating buffers per gate": [network.floating_per_gate],
    }


def _checkpoint_features(scenario: Scenario) -> dict[str, Sequence[Value]]:
    vertices, options = scenario.job.vertices, scenario.checkpoint
    works, flushes = [vertex.snapshot for vertex in vertices], any(vertex.flush is not None for vertex in vertices)
    commits = [vertex.commit for vertex in vertices if vertex.commit is not None]
    is_bounded = [vertex.source.total is not None for vertex in vertices if vertex.source is not None]
    return {
        "checkpoint interval": [options.interval_ns] if options.interval_ns else [],
        "checkpoint timeout": [options.timeout_ns],
        "aligned timeout": [options.barriers.timeout_ns] if options.barriers.record.has_deadline else [],
        "concurrent checkpoints": [options.max_concurrent],
        "pause between checkpoints": [options.min_pause_ns] if options.min_pause_ns else [],
        "work per checkpoint": _chosen(  # of operators, without their state
            {
                "before the barrier": any(work.pre_barrier_ns for work in works),
                "after the barrier": any(work.sync_ns for work in works),
                "asynchronous": any(work.async_ns for work in works),
                "now and then": any(
                    work.probability < 1 and (work.pre_barrier_ns or work.sync_ns or work.async_ns) for work in works
                ),
                "files flushed": flushes,
                "files uploaded behind the barrier": flushes and options.operator_io == "async",
            }
        ),
        "commit": _chosen(
            {
                "two-phase": bool(commits),
                "global committer": any(commit.committer == "global" for commit in commits),
                "output held until committed": any(commit.emits == "on-commit" for commit in commits),
                "records held back": any(commit.holds_back for commit in commits),
                "transaction timeout": any(commit.transaction_timeout_ns is not None for commit in commits),
            }
        ),
        "end of the job": _chosen(
            {
                "all sources": any(is_bounded) and all(is_bounded),
                "some sources": any(is_bounded) and not all(is_bounded),
                f"finish: {options.finish}": any(is_bounded) and options.finish != "flink",
            }
        ),
        "snapshots asked for": [
            text
            for action in scenario.actions
            for text in (action.format, action.stop and f"stop with {action.stop}")
            if text
        ],
        "faults": [kind_of_fault(fault.what) for fault in scenario.faults],
        "restarts": _chosen(
            {
                "rescaling": bool(scenario.rescale),
                "a job started from another's snapshot": scenario.instances.count > 1,
                "warming up": bool(scenario.faults) and scenario.restart.warm_up_ns > 0,
            }
        ),
        "strategy": _chosen(  # options that no released Flink has, or that Flink does not guarantee
            {
                f"aborts {options.abort_policy}": options.abort_policy != "survive",
                "lost notifications": options.lost_notifications > 0,
                f"paths {scenario.directories.paths}": scenario.directories.paths != "absolute",
                "some edges forced aligned": bool(options.forced_aligned),
            }
        ),
    }


def _chosen(flags: Mapping[str, bool]) -> list[str]:
    """Return the names of the flags that are set."""
    return [name for name, is_set in flags.items() if is_set]


# ---- The validity envelope: the recorded values of each feature.
#
# `make envelope` computes the file from recordings, with the errors of predictions there.  It is part of the package, so
# that users without recordings are warned.  Features are checked one by one, so a combination that was never recorded is
# not detected.

FILE = Path(__file__).parent / "envelope.json"
_MAX_NAMED = 5  # number of features in a line


@cache
def recorded_values() -> dict[str, list[Value]]:
    """Return the recorded values of each feature."""
    features = json.loads(FILE.read_text(encoding="utf-8"))["features"]
    return {name: [int(value) if name in NUMBERS else value for value in values] for name, values in features.items()}


_CHECKOUT, _PAGE = Path(__file__).parents[3], "docs/truth.md"


def unvalidated(scenarios: Iterable[Scenario]) -> list[str]:
    """Return a phrase per feature outside the envelope, for example 'parallelism 50 (recordings: 1 to 4)'."""
    values_of: dict[str, dict[Value, None]] = {}
    for scenario in scenarios:
        for name, values in features(scenario).items():
            values_of.setdefault(name, {}).update(dict.fromkeys(values))
    phrases = []
    for name, unique in values_of.items():
        recorded = recorded_values().get(name, [])
        if beyond := [value for value in unique if not _is_inside(name, value, recorded)]:
            text = f"recordings: {values_text(name, recorded)}" if recorded else "no recording"
            phrases.append(f"{name} {values_text(name, beyond)} ({text})")
    return phrases


def warning(scenarios: Iterable[Scenario]) -> str:
    """Return a warning about values that were never compared with a real Flink, or "" if there are none."""
    phrases = unvalidated(scenarios)
    others = [f"{len(phrases) - _MAX_NAMED} more"] if len(phrases) > _MAX_NAMED else []
    named = ", ".join([*phrases[:_MAX_NAMED], *others])
    page = _PAGE if (_CHECKOUT / _PAGE).is_file() else "'ckptsim docs truth'"
    return f"not validated: {named}; see {page}" if phrases else ""


def _is_inside(name: str, value: Value, recorded: Sequence[Value]) -> bool:
    """Return whether a value of a feature is inside the envelope."""
    if isinstance(value, str) or not recorded:
        return value in recorded
    numbers, feature = [number for number in recorded if isinstance(number, int)], NUMBERS[name]
    is_large_enough = feature.sides == "up" or value * feature.slack >= min(numbers)
    return is_large_enough and (feature.sides == "down" or value <= max(numbers) * feature.slack)


def values_text(name: str, values: Iterable[Value]) -> str:
    """Return the values of a feature as text: the range of numbers, or a list of words."""
    if name not in NUMBERS:
        return ", ".join(map(str, values))
    numbers = [value for value in values if isinstance(value, int)]
    return " to ".join(map(NUMBERS[name].text, dict.fromkeys((min(numbers), max(numbers)))))
