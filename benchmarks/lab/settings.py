"""The settings of a configured job, a value for each independent choice: recordings are compared by them
(`sim.jobs.evidence.prediction`)."""

from __future__ import annotations

from typing import Any

from benchmarks.lab.config import Configuration, Node
from sim.jobs.evidence.prediction import Settings

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


def _barriers(config: Configuration) -> str:
    if str(config.flink.get(_UNALIGNED, "false")).lower() != "true":
        return "aligned"
    timeout = str(config.flink.get(_TIMEOUT, 0))
    return "unaligned" if timeout.startswith("0") else f"unaligned after {timeout}"


def _of_nodes(nodes: tuple[Node, ...]) -> dict[str, Any]:
    """Each field of all vertices as one setting: an equal change of all vertices is one change."""
    fields = [field for node in nodes for field in node.model_dump() if field not in _APART]
    found: dict[str, Any] = {
        field: {node.id: node.model_dump().get(field) for node in nodes} for field in dict.fromkeys(fields)
    }
    state = {node.id: node.state_keys * node.state_value_bytes // node.parallelism for node in nodes}
    work = {node.id: sum(getattr(node, phase) for phase in _PHASES) for node in nodes}
    place = {node.id: [name for phase, name in _PHASES.items() if getattr(node, phase)] for node in nodes}
    return found | {"state": state, "work": work if any(work.values()) else {}, "place of work": place}
