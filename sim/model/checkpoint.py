"""Checkpoint options: one concrete strategy.  Names and defaults are Flink's (execution.checkpointing.*)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sim.model.state import StateOptions

__all__ = ["Barriers", "CheckpointOptions"]


@dataclass(frozen=True, slots=True)
class Barriers:
    """How barriers travel.  `aligned-timeout` starts aligned and switches `timeout_ns` after the trigger."""

    kind: Literal["aligned", "unaligned", "aligned-timeout", "at-least-once"] = "aligned"
    timeout_ns: int = 0  # aligned-timeout only

    def __str__(self) -> str:
        if self.kind == "aligned-timeout":
            return f"aligned-timeout {self.timeout_ns / 1e9:g} s"
        return self.kind


@dataclass(frozen=True, slots=True)
class CheckpointOptions:
    interval_ns: int | None  # None: no periodic checkpoints
    barriers: Barriers = Barriers()
    timeout_ns: int = 600_000_000_000
    min_pause_ns: int = 0
    max_concurrent: int = 1
    tolerable_failed: int = 0
    subtasks_per_channel_state_file: int = 5
    finish: Literal["flink", "naive", "commit-at-finish", "discard", "off"] = "flink"  # how a bounded job ends (FLIP-147)
    forced_aligned: tuple[tuple[str, str], ...] = ()  # edges (upstream, downstream) beyond those Flink forces itself
    state: StateOptions = StateOptions()
