"""The ways a barrier can travel, and pass timers that fire: as Flink's options and as the simulator's."""

from __future__ import annotations

from dataclasses import dataclass

from sim.model.checkpoint import Barriers

__all__ = ["ALIGNED", "INTERRUPTIBLE", "PROTOCOLS", "ROCKSDB", "ROCKSDB_UNALIGNED", "TIMEOUT", "UNALIGNED", "Protocol"]

_UNALIGNED = "execution.checkpointing.unaligned.enabled"


@dataclass(frozen=True, slots=True)
class Protocol:
    name: str
    options: dict[str, str]  # of Flink
    barriers: Barriers
    interruptible_timers: bool = False
    lever: str = ""  # of advice: what it proposes for the imported job is applied on top, as it would be printed


ALIGNED = Protocol("aligned", {_UNALIGNED: "false"}, Barriers("aligned"))
UNALIGNED = Protocol("unaligned", {_UNALIGNED: "true"}, Barriers("unaligned"))
TIMEOUT = Protocol(
    "aligned, 1 s timeout",
    {_UNALIGNED: "true", "execution.checkpointing.aligned-checkpoint-timeout": "1 s"},
    Barriers("aligned-timeout", 10**9),
)
INTERRUPTIBLE = Protocol(
    "interruptible timers",
    {_UNALIGNED: "true", "execution.checkpointing.unaligned.interruptible-timers.enabled": "true"},
    Barriers("unaligned"),
    interruptible_timers=True,
)
ROCKSDB = Protocol("RocksDB incremental", {_UNALIGNED: "false"}, Barriers("aligned"), lever="RocksDB incremental")
ROCKSDB_UNALIGNED = Protocol(
    "RocksDB incremental, unaligned", {_UNALIGNED: "true"}, Barriers("unaligned"), lever="RocksDB incremental"
)
PROTOCOLS = (ALIGNED, UNALIGNED, TIMEOUT)
