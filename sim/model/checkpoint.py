"""Checkpoint options: one concrete strategy.  Names and defaults are Flink's (execution.checkpointing.*)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from sim.model.catalogs.barriers import Barriers
from sim.model.state import StateOptions

__all__ = ["Barriers", "CheckpointOptions"]


@dataclass(frozen=True, slots=True)
class CheckpointOptions:
    interval_ns: int | None  # None: no periodic checkpoints
    barriers: Barriers = Barriers()
    timeout_ns: int = 600_000_000_000
    min_pause_ns: int = 0
    max_concurrent: int = 1
    tolerable_failed: int = 0
    num_retained: int = 1  # completed checkpoints kept
    subtasks_per_channel_state_file: int = 5
    finish: Literal["flink", "naive", "commit-at-finish", "discard", "off"] = "flink"  # how a bounded job ends (FLIP-147)
    operator_io: Literal["pre-barrier", "async"] = "pre-barrier"  # when operators write their files: async is FLINK-37375 ...
    abort_policy: Literal["survive", "reupload", "drop"] = "survive"  # ... what an abort does to its uploads
    upload_threads: int = 1  # of one task, for its operator's files
    staging_bytes: int | None = None  # per task manager, for files not uploaded yet; None: enough
    staging_full: Literal["block", "fail"] = "block"  # a flush without room waits, or fails its task
    lost_notifications: Fraction = Fraction(0)  # share of the notifications of a completion that never reach their task
    forced_aligned: tuple[tuple[str, str], ...] = ()  # edges (upstream, downstream) beyond those Flink forces itself
    interruptible_timers: bool = False  # whether operators of SQL yield to mails while they fire (FLIP-443)
    interval_during_backlog_ns: int | None = None  # while a source reads a backlog; 0: none then; None: no other one
    recover_output_on_downstream: bool = False  # captured output is recovered by the tasks that read it
    during_recovery: bool = False  # tasks run, and take checkpoints, before they have processed what they recover (FLIP-547)
    state: StateOptions = StateOptions()
