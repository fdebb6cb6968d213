"""The settings of a recorded job, a value for each independent choice: recordings are compared by them.

Two keys of Flink for one choice (unaligned, and its timeout) are one setting.  So is the place of the work for checkpoints, on however
many vertices.  State counts per subtask: twice the subtasks with twice the keys are one difference.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sim.evidence.run_names import run_name
from sim.recordings import Measured
from sim.recordings.source.lab.config import Configuration, Node

Settings = Mapping[str, Any]

_UNALIGNED, _TIMEOUT = "execution.checkpointing.unaligned.enabled", "execution.checkpointing.aligned-checkpoint-timeout"
_PHASES = {"prepare_ms": "before the barrier", "snapshot_ms": "synchronous", "async_ms": "asynchronous"}
_NAMES = {"name", "family", "duration_s", "nodes", "flink", "fs"}
_APART = {"id", "state_keys", "state_value_bytes", *_PHASES}
_RECORDER = {"heap", "poll_s", "sample_s", "flink_release"}


def settings_of(config: Configuration, flink_version: str) -> Settings:
    """Setting -> value or default.  The name of a run and its duration are no settings."""
    flink = {key: str(value) for key, value in config.flink.items() if key not in (_UNALIGNED, _TIMEOUT)}
    plain = {key: value for key, value in config.model_dump().items() if key not in _NAMES | _RECORDER}
    return {
        "version": flink_version.rpartition(".")[0] or flink_version,
        "barriers": _barriers(config),
        **flink,
        **{f"storage {key}": value for key, value in config.fs.model_dump().items()},
        **plain,
        **_of_nodes(config.nodes),
    }


def settings_of_measured(job: Measured) -> Settings:
    """A measured job tells its options, not what it computes.  Two are of one job if their names differ in barriers and number alone.

    Each setting is one of its job, so that recordings of two jobs never differ in one setting.
    """
    named, options = run_name(job.name), job.inference.document["checkpoint"]
    name = job.name if named.kind == "interruptible" else named.job  # what no option says makes another job
    settings = {key: str(value) for key, value in options.items()} | {"barriers": _barriers_of(options)}
    return {f"{key} of {name}": value for key, value in settings.items()}


def differences(first: Settings, second: Settings) -> list[tuple[str, Any, Any]]:
    """(setting, first value, second value) of those that differ.  Work of another size at another place is two differences."""
    keys = [key for key in {**first, **second} if first.get(key) != second.get(key)]
    if "work" in keys and not (first["work"] and second["work"]):
        keys = [key for key in keys if key != "place of work"]  # without work there is no place of work
    return [(key, first.get(key), second.get(key)) for key in keys]


def _barriers_of(checkpoint: Mapping[str, Any]) -> str:
    """The way of barriers, in the words of the settings of configured jobs."""
    barriers = checkpoint.get("barriers", "aligned")
    return str(barriers) if isinstance(barriers, str) else f"unaligned after {barriers['aligned-timeout']}"


def _barriers(config: Configuration) -> str:
    if str(config.flink.get(_UNALIGNED, "false")).lower() != "true":
        return "aligned"
    timeout = str(config.flink.get(_TIMEOUT, 0))
    return "unaligned" if timeout.startswith("0") else f"unaligned after {timeout}"


def _of_nodes(nodes: tuple[Node, ...]) -> dict[str, Any]:
    """Each field of all vertices as one setting: an equal change of all vertices is one change."""
    fields = [field for node in nodes for field in node.model_dump() if field not in _APART]
    found: dict[str, Any] = {field: {node.id: node.model_dump().get(field) for node in nodes} for field in dict.fromkeys(fields)}
    state = {node.id: node.state_keys * node.state_value_bytes // node.parallelism for node in nodes}
    work = {node.id: sum(getattr(node, phase) for phase in _PHASES) for node in nodes}
    place = {node.id: [name for phase, name in _PHASES.items() if getattr(node, phase)] for node in nodes}
    return found | {"state": state, "work": work if any(work.values()) else {}, "place of work": place}
