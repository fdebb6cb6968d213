"""The validity envelope: which features of a scenario were compared with a real Flink, and with which errors."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any, Literal

from sim.model.faults import kind_of_fault
from sim.model.job import Input, Job, Vertex, key_groups
from sim.model.quantities import quantities
from sim.model.scenario import Scenario
from sim.model.units import SECOND, format_byte_rate, format_duration, format_size

# ---- Utilization: the busiest subtask's share of time at the highest rate of the sources.

_MAX_SHORT_QUEUE_UTILIZATION = Fraction(4, 5)
"""Above this utilization, random service times lead to long queues."""


def loads_of(scenario: Scenario) -> list[str]:
    """Return the load in words: whether it changes, and its maximum.  A source without a rate limit exceeds any capacity."""
    sources = [vertex.source for vertex in scenario.job.vertices if vertex.source is not None]
    changing = ["changing rates"] if any(len(source.rates) > 1 for source in sources) else []
    busiest = utilisation(scenario.job)
    if busiest is None or busiest > 1:
        return [*changing, "more than can be served"]
    return [*changing, "below 80 %" if busiest < _MAX_SHORT_QUEUE_UTILIZATION else "80 to 100 %"]


def utilisation(job: Job) -> Fraction | None:
    """Return the utilization of the busiest subtask; above 1 sources are throttled.  None if a source has no rate limit."""
    rates: dict[str, Fraction] = {}  # records read, or emitted by a source
    busiest = Fraction(0)
    for vertex in job.vertices:
        if vertex.source is not None:
            if not vertex.source.rates:
                return None
            own = max(rate.per_second for rate in vertex.source.rates)
            rates[vertex.name] = own * vertex.emitting
            continue
        coming = [
            (inlet, rates[inlet.upstream] * job.fan_out(inlet) * (vertex.parallelism if inlet.shipping.copies else 1))
            for inlet in vertex.inputs
        ]
        work = [(rate * vertex.largest_work(_shares(inlet, vertex)), inlet.service.mean) for inlet, rate in coming]
        busy = sum((records * each_ns / SECOND for records, each_ns in work), Fraction(0))
        if vertex.async_io is not None:
            offered = sum((rate * max(_shares(inlet, vertex)) for inlet, rate in coming), Fraction(0))
            busy = max(busy, offered * vertex.async_io.latency.mean / SECOND / vertex.async_io.capacity)
        if vertex.window is not None:
            busy += sum((records for records, _ in work), Fraction(0)) * vertex.fan_out * vertex.window.fire_ns / SECOND
        busiest = max(busiest, busy)
        rates[vertex.name] = sum((rate for _, rate in coming), Fraction(0))
    return busiest


def _shares(inlet: Input, vertex: Vertex) -> list[Fraction]:
    """Return the share of each subtask in the records of an input."""
    if inlet.shipping.to_one:
        return [Fraction(1)]
    if shares := vertex.shares(inlet):
        return list(shares)
    # By default records follow the number of key groups.
    groups = vertex.max_parallelism if inlet.shipping.keyed else vertex.parallelism
    return [Fraction(len(key_groups(i, vertex.parallelism, groups)), groups) for i in range(vertex.parallelism)]


# ---- Features of a scenario, by whose values it is compared with recordings.
#
# The values of a feature are words or numbers.  A feature may have several values in a scenario, e.g. the parallelisms of
# its vertices.  A missing part (no state, no faults) has no value, and needs no recording.

Value = str | int


@dataclass(frozen=True, slots=True)
class Feature:
    """A feature of a scenario.

    A number is inside the envelope if it exceeds the recorded ones by at most the factor `slack`, on the given `sides`.
    """

    name: str
    of: Callable[[Scenario], Iterable[Value]]
    text: Callable[[int], str] | None = None  # text of a number; None: the feature is a choice
    slack: int = 2
    sides: Literal["up", "down", "both"] = "up"

    def value_text(self, value: Value) -> str:
        return self.text(value) if self.text is not None and isinstance(value, int) else str(value)


def features(scenario: Scenario) -> dict[str, tuple[Value, ...]]:
    """Return the distinct values of each feature in ascending order, without features that have none."""
    found = {feature.name: set(feature.of(scenario)) for feature in FEATURES}
    return {
        name: tuple(sorted(values, key=lambda value: (isinstance(value, str), value)))
        for name, values in found.items()
        if values
    }


def _chosen(flags: Mapping[str, bool]) -> list[str]:
    return [name for name, there in flags.items() if there]


def _all_inputs(job: Job) -> list[Input]:
    return [inlet for vertex in job.vertices for inlet in vertex.inputs]


def _inputs(job: Job) -> list[str]:
    readers = Counter(inlet.upstream for inlet in _all_inputs(job))
    return _chosen(
        {
            "join": any(vertex.joined for vertex in job.vertices),
            "union": any(len(vertex.inputs) > 1 and not vertex.joined for vertex in job.vertices),
            "several readers": any(count > 1 for count in readers.values()),
            "several edges between two vertices": len(set(job.edges)) < len(job.edges),
            "edges with amounts of their own": any(inlet.fan_out is not None for inlet in _all_inputs(job)),
            "several sources": sum(vertex.source is not None for vertex in job.vertices) > 1,
        }
    )


def _depth(job: Job) -> int:
    """Return the number of exchanges on the longest path from a source."""
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
    """Yield (mean ns, distribution) of the service time per input.  Sources have negligible service times."""
    return ((inlet.service.mean, inlet.service.kind) for inlet in vertex.inputs if inlet.service.mean)


def _state(scenario: Scenario) -> list[str]:
    states = [vertex.state for vertex in scenario.job.vertices if vertex.state is not None]
    options = scenario.checkpoint.state
    return [
        *(state.backend for state in states),
        *_chosen(
            {
                "incremental": options.incremental and any(state.kind.keeps_files for state in states),
                "changelog": any(state.changelog is not None for state in states),
                "local recovery": options.local_recovery and bool(scenario.faults or scenario.rescale),
            }
        ),
    ]


def _state_sizes(job: Job) -> list[int]:
    return [
        vertex.state.bytes // vertex.parallelism
        for vertex in job.vertices
        if vertex.state is not None and vertex.state.bytes
    ]


def _storage(scenario: Scenario) -> list[str]:
    storage = scenario.storage
    return _chosen(
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
    )


def _is_flat(scenario: Scenario) -> bool:
    return scenario.storage.kind is None


def _network(scenario: Scenario) -> list[str]:
    cluster, network = scenario.cluster, scenario.cluster.network
    return _chosen(
        {
            "latency": cluster.latency_ns > 0,
            "limited bandwidth": cluster.nic_bytes_per_second is not None,
            "debloating": network.debloat is not None,
            "a flush after each record": network.buffer_timeout_ns == 0,
            "no flush timer": network.buffer_timeout_ns < 0,
        }
    )


def _work(scenario: Scenario) -> list[str]:
    """Return the work of operators for a checkpoint, without their state."""
    works = [vertex.snapshot for vertex in scenario.job.vertices]
    flushes = any(vertex.flush is not None for vertex in scenario.job.vertices)
    return _chosen(
        {
            "before the barrier": any(work.pre_barrier_ns for work in works),
            "after the barrier": any(work.sync_ns for work in works),
            "asynchronous": any(work.async_ns for work in works),
            "now and then": any(
                work.probability < 1 and (work.pre_barrier_ns or work.sync_ns or work.async_ns) for work in works
            ),
            "files flushed": flushes,
            "files uploaded behind the barrier": flushes and scenario.checkpoint.operator_io == "async",
        }
    )


def _commits(job: Job) -> list[str]:
    commits = [vertex.commit for vertex in job.vertices if vertex.commit is not None]
    return _chosen(
        {
            "two-phase": bool(commits),
            "global committer": any(commit.committer == "global" for commit in commits),
            "output held until committed": any(commit.emits == "on-commit" for commit in commits),
            "records held back": any(commit.holds_back for commit in commits),
            "transaction timeout": any(commit.transaction_timeout_ns is not None for commit in commits),
        }
    )


def _ends(scenario: Scenario) -> list[str]:
    sources = [vertex.source for vertex in scenario.job.vertices if vertex.source is not None]
    bounded = sum(source.total is not None for source in sources)
    found = _chosen(
        {"all sources": bool(bounded) and bounded == len(sources), "some sources": 0 < bounded < len(sources)}
    )
    return [
        *found,
        *([f"finish: {scenario.checkpoint.finish}"] if bounded and scenario.checkpoint.finish != "flink" else ()),
    ]


def _restarts(scenario: Scenario) -> list[str]:
    return _chosen(
        {
            "rescaling": bool(scenario.rescale),
            "a job started from another's snapshot": scenario.instances.count > 1,
            "warming up": bool(scenario.faults) and scenario.restart.warm_up_ns > 0,
        }
    )


def _snapshots(scenario: Scenario) -> list[str]:
    return [
        text
        for action in scenario.actions
        for text in (action.format, action.stop and f"stop with {action.stop}")
        if text
    ]


def _strategy(scenario: Scenario) -> list[str]:
    """Return the options that no released Flink has, or that Flink does not guarantee."""
    options = scenario.checkpoint
    return _chosen(
        {
            f"aborts {options.abort_policy}": options.abort_policy != "survive",
            "lost notifications": options.lost_notifications > 0,
            f"paths {scenario.directories.paths}": scenario.directories.paths != "absolute",
            "some edges forced aligned": bool(options.forced_aligned),
        }
    )


FEATURES = (
    Feature("barriers", lambda scenario: [scenario.checkpoint.barriers.kind]),
    Feature("Flink profile", lambda scenario: [scenario.cluster.profile]),
    Feature("placement", lambda scenario: [scenario.cluster.placement]),
    Feature("exchanges", lambda scenario: [inlet.ship for inlet in _all_inputs(scenario.job)]),
    Feature("inputs", lambda scenario: _inputs(scenario.job)),
    Feature(
        "skewed keys", lambda scenario: ["yes" for inlet in _all_inputs(scenario.job) if len(set(inlet.weights)) > 1]
    ),
    Feature("records out per record in", lambda scenario: [_fan_out(vertex) for vertex in scenario.job.vertices]),
    Feature("load", loads_of),
    Feature("sources that wait in poll or with the lock", _waits),
    Feature("parallelism", lambda scenario: [vertex.parallelism for vertex in scenario.job.vertices], str, slack=1),
    Feature("exchanges in a row", lambda scenario: [_depth(scenario.job)], str, slack=1),
    Feature("subtasks", lambda scenario: [sum(vertex.parallelism for vertex in scenario.job.vertices)], str),
    Feature(
        "record size",
        lambda scenario: [
            inlet.record_bytes.mean
            for vertex in scenario.job.vertices
            if not vertex.committer_of  # it reads committables
            for inlet in vertex.inputs
        ],
        format_size,
        sides="both",
    ),
    Feature("record size law", lambda scenario: [inlet.record_bytes.kind for inlet in _all_inputs(scenario.job)]),
    Feature(
        "time per record",
        lambda scenario: [mean for vertex in scenario.job.vertices for mean, _ in _services(vertex)],
        format_duration,
        sides="both",
    ),
    Feature(
        "services by subtask", lambda scenario: ["yes" for vertex in scenario.job.vertices if vertex.service_factors]
    ),
    Feature(
        "service law", lambda scenario: [kind for vertex in scenario.job.vertices for _, kind in _services(vertex)]
    ),
    Feature(
        "async I/O latency",
        lambda scenario: [vertex.async_io.latency.mean for vertex in scenario.job.vertices if vertex.async_io],
        format_duration,
        sides="both",
    ),
    Feature(
        "windows",
        lambda scenario: [vertex.window.size_ns for vertex in scenario.job.vertices if vertex.window],
        format_duration,
        sides="both",
    ),
    Feature("state", _state),
    Feature("state per subtask", lambda scenario: _state_sizes(scenario.job), format_size),
    Feature("storage", _storage),
    Feature(
        "storage bandwidth",
        lambda scenario: (
            [scenario.storage.bytes_per_second] if _is_flat(scenario) and scenario.storage.bytes_per_second else []
        ),
        format_byte_rate,
        sides="both",
    ),
    Feature(
        "latency per file", lambda scenario: [scenario.storage.close_ns] if _is_flat(scenario) else [], format_duration
    ),
    Feature("network", _network),
    Feature("buffer size", lambda scenario: [scenario.cluster.network.segment_bytes], format_size, sides="both"),
    Feature("exclusive buffers per channel", lambda scenario: [scenario.cluster.network.exclusive_per_channel], str),
    Feature("floating buffers per gate", lambda scenario: [scenario.cluster.network.floating_per_gate], str),
    Feature(
        "checkpoint interval",
        lambda scenario: [scenario.checkpoint.interval_ns] if scenario.checkpoint.interval_ns else [],
        format_duration,
        sides="both",
    ),
    Feature("checkpoint timeout", lambda scenario: [scenario.checkpoint.timeout_ns], format_duration, sides="down"),
    Feature(
        "aligned timeout",
        lambda scenario: (
            [scenario.checkpoint.barriers.timeout_ns] if scenario.checkpoint.barriers.record.has_deadline else []
        ),
        format_duration,
        sides="both",
    ),
    Feature("concurrent checkpoints", lambda scenario: [scenario.checkpoint.max_concurrent], str, slack=1),
    Feature(
        "pause between checkpoints",
        lambda scenario: [scenario.checkpoint.min_pause_ns] if scenario.checkpoint.min_pause_ns else [],
        format_duration,
    ),
    Feature("work per checkpoint", _work),
    Feature("commit", lambda scenario: _commits(scenario.job)),
    Feature("end of the job", _ends),
    Feature("snapshots asked for", _snapshots),
    Feature("faults", lambda scenario: [kind_of_fault(fault.what) for fault in scenario.faults]),
    Feature("restarts", _restarts),
    Feature("strategy", _strategy),
)
"""The features, in the order of messages."""


# ---- The validity envelope: recorded values of features, and the errors of predictions there.
#
# `make envelope` computes the file from recordings.  It is part of the package, so that users without recordings are
# warned.  Features are checked one by one, so combinations that were never recorded are not noticed.

FILE = Path(__file__).parent / "envelope.json"
QUANTITIES = tuple(quantity.name for quantity in quantities(lambda quantity: quantity.in_envelope))
_WHERE = "see docs/truth.md"
_MAX_NAMED = 5  # number of features in a line


@dataclass(frozen=True, slots=True)
class Error:
    """Absolute relative errors of a quantity over recordings."""

    recordings: int
    median: float
    p90: float


@dataclass(frozen=True, slots=True)
class EnvelopeEvidence:
    """The evidence for a value of a feature, or for a family of recordings."""

    recordings: int
    errors: Mapping[str, Error]


@dataclass(frozen=True, slots=True)
class Envelope:
    """The envelope of all recordings."""

    recordings: int
    features: Mapping[str, Mapping[Value, EnvelopeEvidence]]  # a number's values are the recorded ones
    families: Mapping[str, EnvelopeEvidence]
    overall: EnvelopeEvidence

    def unvalidated(self, scenarios: Iterable[Scenario]) -> list[str]:
        """Return a phrase per feature with a value outside the envelope: 'parallelism 50 (recordings: 1 to 4)'."""
        found: dict[str, dict[Value, None]] = {}
        for scenario in scenarios:
            for name, values in features(scenario).items():
                found.setdefault(name, {}).update(dict.fromkeys(values))
        phrases = []
        for feature in FEATURES:
            known = self.features.get(feature.name, {})
            beyond = [value for value in found.get(feature.name, ()) if not _inside(feature, value, known)]
            if beyond:
                phrases.append(_phrase(feature, beyond, known))
        return phrases


def warning(scenarios: Iterable[Scenario]) -> str:
    """Return a warning about values that were never compared with a real Flink; empty if there are none."""
    phrases = envelope().unvalidated(scenarios)
    if not phrases:
        return ""
    others = [f"{len(phrases) - _MAX_NAMED} more"] if len(phrases) > _MAX_NAMED else []
    return f"not validated: {', '.join([*phrases[:_MAX_NAMED], *others])}; {_WHERE}"


@cache
def envelope() -> Envelope:
    """Return the envelope in this package."""
    return read_envelope(FILE.read_text(encoding="utf-8"))


def read_envelope(text: str) -> Envelope:
    given = json.loads(text)
    numbers = {feature.name for feature in FEATURES if feature.text is not None}
    return Envelope(
        given["recordings"],
        {
            name: {int(value) if name in numbers else value: _evidence(seen) for value, seen in values.items()}
            for name, values in given["features"].items()
        },
        {name: _evidence(seen) for name, seen in given["families"].items()},
        _evidence(given["overall"]),
    )


def _evidence(given: Mapping[str, Any]) -> EnvelopeEvidence:
    return EnvelopeEvidence(given["recordings"], {name: Error(*numbers) for name, numbers in given["errors"].items()})


def _inside(feature: Feature, value: Value, known: Mapping[Value, EnvelopeEvidence]) -> bool:
    if isinstance(value, str) or not known:
        return value in known
    numbers = [number for number in known if isinstance(number, int)]
    small = feature.sides == "up" or value * feature.slack >= min(numbers)
    large = feature.sides == "down" or value <= max(numbers) * feature.slack
    return small and large


def _phrase(feature: Feature, beyond: list[Value], known: Mapping[Value, EnvelopeEvidence]) -> str:
    return f"{feature.name} {_values_text(feature, beyond)} ({_recorded(feature, known)})"


def _recorded(feature: Feature, known: Mapping[Value, EnvelopeEvidence]) -> str:
    """Return for example 'recordings: aligned, unaligned', 'recordings: 1 to 4' or 'no recording'."""
    if not known:
        return "no recording"
    return f"recordings: {_values_text(feature, list(known))}"


def _values_text(feature: Feature, values: list[Value]) -> str:
    """Return the range of numbers, or the list of words."""
    numbers = [value for value in values if isinstance(value, int)]
    ends = dict.fromkeys((min(numbers), max(numbers))) if numbers else ()
    return " to ".join(map(feature.value_text, ends)) if ends else ", ".join(map(feature.value_text, values))
