"""The settings of a recorded job, a value for each independent choice: recordings are compared by them."""

# Two Flink keys for one choice (unaligned, and its timeout) are one setting.  So is the place of the work for
# checkpoints, on any number of vertices.  State is counted per subtask, so that doubling both parallelism and keys is one
# difference.

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from benchmarks.lab.config import Configuration, Node
from benchmarks.lab.recording import Recording
from sim.jobs.reading import Measured, infer
from sim.jobs.source.recorded_job import RecordedJob
from sim.model.checkpoint import Barriers

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


# ---- Names of recordings consist of the job, the barrier mode, and the number of the run.
#
# For example, ``J4-pressed-timeout500-r1`` is the first run of the job J4-pressed with an aligned timeout of 500 ms.

_NAME_PATTERN = re.compile(r"(?P<job>.+?)-(?P<kind>aligned|unaligned|interruptible|timeout\d+)(-r\d+)?")


class RunName(NamedTuple):
    """The parts of a recording's name."""

    job: str
    kind: str  # the barrier mode in the name; empty if it has none

    @property
    def barriers(self) -> Barriers:
        """The barrier mode; that of runs with interruptible timers is unaligned."""
        if self.kind.startswith("timeout"):
            return Barriers("aligned-timeout", int(self.kind.removeprefix("timeout")) * 10**6)
        return Barriers("aligned" if self.kind == "aligned" else "unaligned")


def run_name(text: str) -> RunName:
    found = _NAME_PATTERN.fullmatch(text)
    return RunName(found["job"], found["kind"]) if found else RunName(text, "")


# ---- Settings of any recorded job.


def settings_of_job(job: RecordedJob) -> Settings | None:
    """Return the settings of a recorded job, or None for a job of another kind."""
    if isinstance(job, Recording):
        return job.settings()
    return _settings_of_measured(job) if isinstance(job, Measured) else None


def _settings_of_measured(job: Measured) -> Settings:
    """Return the checkpoint options of a measured job, prefixed by its name.

    The program of a measured job is unknown.  Recordings are of the same job if their names differ only in barrier mode
    and run number.  The prefix ensures that recordings of two jobs never differ in a single setting.
    """
    named, options = run_name(job.name), infer(job.source).document["checkpoint"]
    name = job.name if named.kind == "interruptible" else named.job  # interruptible timers are not in the options
    settings = {key: str(value) for key, value in options.items()} | {"barriers": _measured_barriers(options)}
    return {f"{key} of {name}": value for key, value in settings.items()}


def _measured_barriers(checkpoint: Mapping[str, Any]) -> str:
    """Return the barrier mode, in the words that settings of configured jobs use."""
    barriers = checkpoint.get("barriers", "aligned")
    return str(barriers) if isinstance(barriers, str) else f"unaligned after {barriers['aligned-timeout']}"
