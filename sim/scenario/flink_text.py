"""Settings of a scenario -> lines of a Flink configuration, to paste.  What `flink:` reads, written."""

from __future__ import annotations

from sim.model.scenario import Scenario
from sim.units import format_duration

__all__ = ["flink_text"]

_CHECKPOINTING = "execution.checkpointing"


def flink_text(scenario: Scenario) -> str:
    """Interval, barriers and debloating in the keys of Flink 1.20 and 2.x; what is said once and for all, such as state, is left out."""
    options, debloat = scenario.checkpoint, scenario.cluster.network.debloat
    lines = {} if options.interval_ns is None else {f"{_CHECKPOINTING}.interval": _flink(options.interval_ns)}
    lines[f"{_CHECKPOINTING}.unaligned.enabled"] = "true" if options.barriers.kind in ("unaligned", "aligned-timeout") else "false"
    if options.barriers.kind == "aligned-timeout":
        lines[f"{_CHECKPOINTING}.aligned-checkpoint-timeout"] = _flink(options.barriers.timeout_ns)
    lines["taskmanager.network.memory.buffer-debloat.enabled"] = "true" if debloat else "false"
    return "".join(f"{key}: {value}\n" for key, value in lines.items())


def _flink(ns: int) -> str:
    """Flink knows whole numbers only."""
    return format_duration(ns) if "." not in format_duration(ns) else f"{ns // 10**6} ms"
