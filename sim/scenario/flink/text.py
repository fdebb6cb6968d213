"""Settings of a scenario -> lines of a Flink configuration, to paste.  What `flink:` reads, written.

Flat keys are read in config.yaml (1.19 and later, 2.x) and in flink-conf.yaml (1.x) alike.  Names are those of 1.20 and 2.x, which
share them (FLIP-406); the profile 1.15 has older ones.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from sim.model.catalogs.backends import BACKENDS
from sim.model.catalogs.barriers import DEADLINE
from sim.model.checkpoint import CheckpointOptions
from sim.model.cluster import NetworkMemory
from sim.model.faults import Restart
from sim.model.scenario import Scenario
from sim.scenario.flink.block import CHANGELOG, CHANGELOG_STORAGE, LOCAL_BACKUP, LOCAL_RECOVERY, LOCAL_RESTORE, MERGING
from sim.scenario.flink.keys import FlinkKey, modelled_keys
from sim.units import format_duration, format_number, format_size

_CHECKPOINTING = "execution.checkpointing"
_OLDER = {
    f"{_CHECKPOINTING}.unaligned.enabled": f"{_CHECKPOINTING}.unaligned",
    f"{_CHECKPOINTING}.incremental": "state.backend.incremental",
    "state.backend.type": "state.backend",
    "execution.state-recovery.claim-mode": "execution.savepoint-restore-mode",
    "restart-strategy.type": "restart-strategy",
}
"""Names of Flink before 1.20, which later ones still read."""
_MILLISECONDS = ("heartbeat.interval", "heartbeat.timeout", "task.cancellation.timeout")
"""Before 2.0 these are numbers of milliseconds; later Flink reads a number without a unit so."""
_FIXED_ATTEMPTS, _ATTEMPTS = "restart-strategy.fixed-delay.attempts", 2**31 - 1


def flink_text(scenario: Scenario, also: Collection[str] = ()) -> str:
    """Interval, timeout, barriers and debloating; `also`: keys of the scenario that were changed beside them."""
    options, network, profile = scenario.checkpoint, scenario.cluster.network, scenario.cluster.profile
    lines = {} if options.interval_ns is None else {f"{_CHECKPOINTING}.interval": _flink(options.interval_ns)}
    lines[f"{_CHECKPOINTING}.timeout"] = _flink(options.timeout_ns)
    deadline = _flink(options.barriers.timeout_ns)
    lines |= {key: value.replace(DEADLINE, deadline) for key, value in options.barriers.record.flink.items()}
    changed = {name: key for name, key in modelled_keys().items() if ".".join(key.path) in also and key.is_alone}
    lines |= {name: _written(key, scenario) for name, key in changed.items() if key.path[0] == "checkpoint"}
    if "checkpoint.local-recovery" in also:
        own = [LOCAL_RECOVERY] if profile == "1.15" else [LOCAL_BACKUP, LOCAL_RESTORE]
        lines |= dict.fromkeys(own, _switch(options.state.local_recovery))
    lines["taskmanager.network.memory.buffer-debloat.enabled"] = _switch(network.debloat is not None)
    lines |= {name: _written(key, scenario) for name, key in changed.items() if key.path[0] != "checkpoint"}
    return "".join(f"{flink_key(key, scenario)}: {value}\n" for key, value in lines.items())


def flink_lines(scenario: Scenario) -> dict[str, str]:
    """Every key of Flink that advice may change, with its value here; one that has Flink's default is left out."""
    options, network, profile = scenario.checkpoint, scenario.cluster.network, scenario.cluster.profile
    default = CheckpointOptions(None)
    lines = {} if options.interval_ns is None else {f"{_CHECKPOINTING}.interval": _flink(options.interval_ns)}
    if options.timeout_ns != default.timeout_ns:
        lines[f"{_CHECKPOINTING}.timeout"] = _flink(options.timeout_ns)
    if options.min_pause_ns:
        lines[f"{_CHECKPOINTING}.min-pause"] = _flink(options.min_pause_ns)
    if options.max_concurrent != default.max_concurrent:
        lines[f"{_CHECKPOINTING}.max-concurrent-checkpoints"] = str(options.max_concurrent)
    deadline = _flink(options.barriers.timeout_ns)
    lines |= {key: value.replace(DEADLINE, deadline) for key, value in options.barriers.record.flink.items() if value != "false"}
    states = [vertex.state for vertex in scenario.job.vertices if vertex.state is not None]
    for kind in BACKENDS.values():
        if any(state.backend == kind.name for state in states) and kind.name != next(iter(BACKENDS)):
            lines["state.backend.type"] = kind.name
    if options.state.transfer_threads != default.state.transfer_threads:
        lines["state.backend.rocksdb.checkpoint.transfer.thread.num"] = str(options.state.transfer_threads)
    own = [LOCAL_RECOVERY] if profile == "1.15" else [LOCAL_BACKUP, LOCAL_RESTORE]
    on = {
        f"{_CHECKPOINTING}.incremental": options.state.incremental,
        CHANGELOG: any(state.changelog is not None for state in states),
        **dict.fromkeys(own, options.state.local_recovery),
        MERGING: scenario.storage.merging is not None,
        "taskmanager.network.memory.buffer-debloat.enabled": network.debloat is not None,
    }
    lines |= {key: "true" for key, is_on in on.items() if is_on}
    if CHANGELOG in lines:
        lines[CHANGELOG_STORAGE] = next(state.changelog.storage for state in states if state.changelog is not None)
    usual = NetworkMemory()
    if network.segment_bytes != usual.segment_bytes:
        lines["taskmanager.memory.segment-size"] = _size(network.segment_bytes)
    if profile != "2.x" and network.floating_per_gate != usual.floating_per_gate:
        lines["taskmanager.network.memory.floating-buffers-per-gate"] = str(network.floating_per_gate)
    lines |= _restart_lines(scenario.restart)
    return {flink_key(key, scenario): value for key, value in lines.items()}


def _restart_lines(restart: Restart) -> dict[str, str]:
    """Heartbeats and restart strategy, as far as they are no defaults of Flink; of strategies only the one that is in force."""
    keys = {name: key for name, key in modelled_keys().items() if key.path[0] == "restart"}
    lines = {}
    for name, key in keys.items():
        value, is_of_another = getattr(restart, key.record.field), key.flink.when not in ("", restart.strategy)
        needs = key.record.needs
        if is_of_another or (needs and getattr(restart, needs[0]) not in needs[1]):
            continue
        if name == _FIXED_ATTEMPTS:
            lines[name] = str(_ATTEMPTS if value is None else value)  # Flink's default is one
        elif value != key.record.default:
            lines[name] = str(value // 10**6) if name in _MILLISECONDS else _WRITERS.get(key.form, str)(value)
    return lines


def flink_key(key: str, scenario: Scenario) -> str:
    """The name of a key in the job's version of Flink."""
    return _OLDER.get(key, key) if scenario.cluster.profile == "1.15" else key


def _written(key: FlinkKey, scenario: Scenario) -> str:
    """The value that an option has here, as Flink writes it."""
    holders: dict[tuple[str, ...], tuple[object, ...]] = {
        ("checkpoint",): (scenario.checkpoint, scenario.checkpoint.state),
        ("cluster", "network"): (scenario.cluster.network,),
        ("directories",): (scenario.directories,),
        ("restart",): (scenario.restart,),
        ("storage",): (scenario.storage,),
    }
    value = next(getattr(holder, key.record.field) for holder in holders[key.path[:-1]] if hasattr(holder, key.record.field))
    return _WRITERS.get(key.form, str)(value)


def _size(size: int) -> str:
    """Flink's kb and mb are binary."""
    number, unit = format_size(size).split(" ")
    return f"{number}{unit[0].lower()}b" if unit in ("KiB", "MiB") else f"{size}b"


def _switch(on: bool) -> str:
    return "true" if on else "false"


def _flink(ns: int) -> str:
    """Flink knows whole numbers only."""
    return format_duration(ns) if "." not in format_duration(ns) else f"{ns // 10**6} ms"


_WRITERS: dict[str, Callable[[Any], str]] = {
    "duration": _flink,
    "interval": lambda value: _flink(value or 0),
    "size": _size,
    "boolean": _switch,
    "finish": lambda value: _switch(value != "off"),
    "threshold": lambda value: str(value or -1),
    "number": format_number,
    "share": format_number,
}
"""Form -> text of a value of the model; other forms are written as they are."""
