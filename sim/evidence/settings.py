"""The settings of a recorded job, a value for each independent choice: recordings are compared by them.

Two keys of Flink for one choice (unaligned, and its timeout) are one setting.  So is the place of the work for checkpoints, on however
many vertices.  State counts per subtask: twice the subtasks with twice the keys are one difference.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sim.evidence.run_names import run_name
from sim.recordings import Measured

Settings = Mapping[str, Any]


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
