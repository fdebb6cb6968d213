"""The three ways a barrier can travel, as Flink's options and as the simulator's."""

from __future__ import annotations

from dataclasses import dataclass

from sim.model.checkpoint import Barriers

__all__ = ["ALIGNED", "PROTOCOLS", "TIMEOUT", "UNALIGNED", "Protocol"]

_UNALIGNED = "execution.checkpointing.unaligned.enabled"


@dataclass(frozen=True, slots=True)
class Protocol:
    name: str
    options: dict[str, str]  # of Flink
    barriers: Barriers


ALIGNED = Protocol("aligned", {_UNALIGNED: "false"}, Barriers("aligned"))
UNALIGNED = Protocol("unaligned", {_UNALIGNED: "true"}, Barriers("unaligned"))
TIMEOUT = Protocol(
    "aligned, 1 s timeout",
    {_UNALIGNED: "true", "execution.checkpointing.aligned-checkpoint-timeout": "1 s"},
    Barriers("aligned-timeout", 10**9),
)
PROTOCOLS = (ALIGNED, UNALIGNED, TIMEOUT)
