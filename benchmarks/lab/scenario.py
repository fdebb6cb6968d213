"""A recording -> the scenario that a person would have written for its job.

Only its configuration goes in, no observation.  Features that a scenario lacks are named, not dropped.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from benchmarks.lab.config import Configuration, DelayedFileSystem, Node
from benchmarks.lab.lost_task_managers import kills, replacement
from benchmarks.lab.not_modelled import TASK_MANAGERS, is_known_action, not_modelled
from benchmarks.lab.passed_on import mean_bytes
from benchmarks.lab.recording import Recording
from benchmarks.lab.startup import startup_ms
from sim.jobs.infer.work import input_names
from sim.jobs.source.recorded_job import ImportedScenario
from sim.model.schema.flink_keys import current_names
from sim.model.units import (
    format_byte_rate,
    format_duration,
    format_number,
    format_rate,
    format_share,
    format_size,
)

SOURCE_TIMESTAMP_BYTES = 8  # a record that leaves a source carries its timestamp over one hop
# Bytes of the file that every subtask writes next to its keyed state, for the kinds of nodes of the recorded job. It
# holds: a counter; a counter and the slow element behind `asyncMs`; a source's split; no requests of asynchronous I/O.
COUNTER_FILE_BYTES, COUNTER_AND_SLOW_FILE_BYTES, SPLIT_FILE_BYTES, REQUESTS_FILE_BYTES = 199, 329, 266, 678
KEY_GROUPS = 128
# Managed memory of the recorder's slots.  RocksDB may use a third of it for memtables.  The first flush of a prefilled
# state comes at 18 blocks of 1 MiB: among round sizes, only 64 MiB explains that.
MANAGED_BYTES = 64 << 20
# Options that the recorder sets besides the recorded ones, in Flink's words.
FIXED_OPTIONS = {
    "execution.checkpointing.timeout": "10 min",
    "execution.checkpointing.tolerable-failed-checkpoints": 1000,  # as good as unlimited
    "execution.checkpointing.data-inline-threshold": 0,
    "execution.buffer-timeout.interval": "100 ms",
}
RESTART_OPTIONS = {  # ... if something fails
    "restart-strategy.type": "fixed-delay",
    "restart-strategy.fixed-delay.attempts": 10,
    "restart-strategy.fixed-delay.delay": "1 s",
}


def to_document(recording: Recording) -> ImportedScenario:
    """The scenario of a recorded job: as it was configured."""
    config = recording.config
    lost = not_modelled(config)
    document: dict[str, Any] = {"version": 1, "job": {node.id: _vertex(config, node) for node in config.nodes}}
    flink = _flink(config)
    begun_ms = startup_ms(recording)
    if actions := [
        _action(action, begun_ms)
        for action in config.actions
        if is_known_action(action) and action["do"] not in TASK_MANAGERS
    ]:
        document["actions"] = actions
    if faults := _faults(config, begun_ms):
        document["faults"] = faults
    if restart := replacement(config):
        document["restart"] = restart
    document |= {
        "flink": flink,
        "cluster": {
            "placement": config.placement,
            "profile": "1.20" if recording.flink_version.startswith("1.") else "2.x",
        },
        "storage": _storage(config.fs),
        "run": {"duration": format_duration(round(config.duration_s * 10**9))},
    }
    comments = [
        f"Imported from the recording '{recording.name}' of Flink {recording.flink_version}: its configuration, nothing observed."
    ]
    comments += [f"Not modelled: {what}." for what in lost]
    return ImportedScenario(
        document,
        f"How does the recorded job '{recording.name}' checkpoint, configured as it was?",
        {"": "\n".join(comments)},
        tuple(lost),
    )


def _action(action: dict[str, object], begun_ms: float) -> dict[str, str]:
    """An action of a scenario.  The recorder asks for no format of savepoints, so they are canonical."""
    what = (
        {"savepoint": "canonical"}
        if action["do"] == "savepoint"
        else {"stop": "drain" if action.get("drain") else "no-drain"}
    )
    return what | {"at": _since_begun(float(str(action["at_s"])) * 1000, begun_ms)}


def _faults(config: Configuration, begun_ms: float) -> list[dict[str, Any]]:
    lost = [
        {"task-manager": number, "orderly": True, "at": _since_begun(at_s * 1000, begun_ms)}
        for number, at_s in kills(config)
    ]
    return lost + [
        {"kill": f"{node.id}[{node.fail_subtask}]", "at": _since_begun(node.fail_at_ms, begun_ms)}
        for node in config.nodes
        if node.fail_at_ms
    ]


def _since_begun(submitted_ms: float, begun_ms: float) -> str:
    """A time since submission, as a time of a run, which begins when all tasks run."""
    return format_duration(round(max(0, submitted_ms - begun_ms)) * 10**6)


def _flink(config: Configuration) -> dict[str, Any]:
    """Recorded options under their current names, then the fixed ones."""
    switches = {"true": True, "false": False}
    current = current_names()
    recorded = {current.get(key, key): switches.get(str(value), value) for key, value in config.flink.items()}
    fails = bool(kills(config)) or any(node.fail_at_ms for node in config.nodes)
    fixed = FIXED_OPTIONS | (RESTART_OPTIONS if fails else {})
    return recorded | {key: value for key, value in fixed.items() if key not in recorded}


def _vertex(config: Configuration, node: Node) -> dict[str, Any]:
    vertex: dict[str, Any] = {}
    if node.kind == "source":
        vertex["source"] = _source(node)
    else:
        names = input_names([edge.upstream for edge in node.inputs], [other.id for other in config.nodes])
        vertex["input"] = {name: _edge(config, node, i, name) for i, name in enumerate(names)}
        if node.kind == "join":
            vertex["combine"] = "join"
        if not _service_per_input(node):
            vertex["service"] = _service(node, node.service_us)
        if config.is_read(node.id) and (size := _record(config, node)) is not None:
            vertex["record"] = format_size(size)
        if node.selectivity != 1:
            vertex["fan-out"] = format_number(_exact(node.selectivity))
    vertex["parallelism"] = node.parallelism
    if node.parallelism * 3 > KEY_GROUPS * 2:  # Flink would choose more itself
        vertex["max-parallelism"] = KEY_GROUPS
    if node.kind == "asyncwait":
        vertex["async-io"] = {"latency": format_duration(round(node.latency_ms * 10**6)), "capacity": node.capacity}
    if node.state_keys * node.state_value_bytes:
        vertex["state"] = _state(config, node)
    vertex["snapshot"] = _snapshot(node)
    if node.commit != "none":
        details = {"emits": "on-commit"} if node.commit == "cascade" else {}
        if node.commit_ms:
            details["time"] = format_duration(round(node.commit_ms * 10**6))
        vertex["commit"] = details or "two-phase"
    return vertex


def _source(node: Node) -> dict[str, Any]:
    rate = format_rate(_exact(node.rate)) if node.rate else "unlimited"
    source: dict[str, Any] = {
        "rate-per-subtask": rate,
        "record": format_size(node.record_bytes + SOURCE_TIMESTAMP_BYTES),
    }
    return source | ({"records-per-subtask": node.total} if node.total else {})


def _edge(config: Configuration, node: Node, i: int, name: str) -> str | dict[str, Any]:
    """An input: only its ship strategy if it has no further details."""
    edge = node.inputs[i]
    details: dict[str, Any] = {} if name == edge.upstream else {"from": edge.upstream}
    details["ship"] = edge.shipping.name
    weights = config.node(edge.upstream).out_weights
    if weights and edge.exchange == "keyby":
        details["weights"] = [_plain(weight) for weight in weights]
    if _service_per_input(node):
        details["service"] = _service(node, node.service_us if i == 0 or node.service_us2 is None else node.service_us2)
    return details if len(details) > 1 else details["ship"]


def _service_per_input(node: Node) -> bool:
    """Whether the inputs have different services: only a join tells its inputs apart."""
    return node.kind == "join" and node.service_us2 not in (None, node.service_us)


def _service(node: Node, mean_us: float) -> str | dict[str, Any]:
    mean = format_duration(round(mean_us * 1000))
    if 0 < node.service_jitter < 1:
        return {"shifted-exponential": {"mean": mean, "cv": format_number(_exact(node.service_jitter))}}
    return {"exponential": mean} if node.service_jitter == 1 else mean


def _state(config: Configuration, node: Node) -> dict[str, Any]:
    state: dict[str, Any] = {"size": format_size(node.state_keys * node.state_value_bytes)}
    if config.flink.get("state.backend.type") == "rocksdb":
        state["backend"] = "rocksdb"
        state["lsm"] = {"managed-memory": format_size(MANAGED_BYTES)}
    return state | {
        "update": format_share(_exact(node.state_update_prob)),
        "value": format_size(node.state_value_bytes),
    }


def _snapshot(node: Node) -> dict[str, Any]:
    """The operator's own delays, and the small file that every subtask writes."""
    delays = {"pre-barrier": node.prepare_ms, "sync": node.snapshot_ms, "async": node.async_ms}
    snapshot = {key: format_duration(round(delay * 10**6)) for key, delay in delays.items() if delay}
    if snapshot and node.snap_prob < 1:
        snapshot["probability"] = format_share(_exact(node.snap_prob))
    own = {"source": SPLIT_FILE_BYTES, "asyncwait": REQUESTS_FILE_BYTES}.get(
        node.kind, COUNTER_AND_SLOW_FILE_BYTES if node.async_ms else COUNTER_FILE_BYTES
    )
    return snapshot | {"operator-state": format_size(own)}


def _storage(fs: DelayedFileSystem) -> dict[str, Any]:
    storage: dict[str, Any] = {}
    if fs.bytes_per_sec:
        storage["bandwidth"] = format_byte_rate(round(fs.bytes_per_sec))
    read_rate = fs.read_bytes_per_sec
    storage["read-bandwidth"] = format_byte_rate(round(read_rate)) if read_rate else "unlimited"
    storage["file-latency"] = format_duration(round((fs.create_ms + fs.close_ms) * 10**6))
    storage["read-latency"] = "0 s"  # the lab's file system is slow at creating and closing files
    storage["metadata-latency"] = format_duration(round((fs.create_ms + fs.metadata_close_ms) * 10**6))
    if fs.slow_prob:
        storage["slow"] = {"share": format_share(_exact(fs.slow_prob)), "factor": round(fs.slow_factor)}
    return storage


def _record(config: Configuration, node: Node) -> int | None:
    """Size of the records that an operator emits [bytes]; None: that of the records it reads."""
    sizes = config.emitted_bytes()
    emitted = round(mean_bytes(config)[node.id]) + _timestamp(config, node)
    read = {
        size + _timestamp(config, config.node(edge.upstream)) for edge in node.inputs for size in sizes[edge.upstream]
    }
    return None if read == {emitted} else emitted


def _timestamp(config: Configuration, node: Node) -> int:
    """Bytes of a record's timestamp: a source adds it, asynchronous I/O passes it on, other operators drop it."""
    passes = node.kind == "asyncwait" and all(_timestamp(config, config.node(edge.upstream)) for edge in node.inputs)
    return SOURCE_TIMESTAMP_BYTES if node.kind == "source" or passes else 0


def _exact(value: float) -> Fraction:
    """The decimal number in the file, not its nearest binary fraction."""
    return Fraction(str(value))


def _plain(value: float) -> int | float:
    return int(value) if value == int(value) else value
