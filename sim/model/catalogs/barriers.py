"""The ways barriers travel: one record each, with the facts that other rooms need.

What tasks do is a page of `sim.protocol.strategies` with the same name; documents, Flink's keys, advice and envelope read the record.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sim.model.catalogs.catalog import Catalog

MODE, UNALIGNED = "execution.checkpointing.mode", "execution.checkpointing.unaligned.enabled"
ALIGNED_TIMEOUT = "execution.checkpointing.aligned-checkpoint-timeout"
DEADLINE = "DEADLINE"
"""Stands in `flink` for the time after which barriers go unaligned."""


@dataclass(frozen=True, slots=True)
class BarrierKind:
    """A way that barriers travel."""

    name: str  # as a scenario writes it
    flink: Mapping[str, str] = field(hash=False)  # the lines of Flink's configuration that ask for it
    exactly_once: bool = True  # no record counts twice after a restore
    overtakes: bool = False  # barriers may overtake data, at once or after the deadline: Flink runs such checkpoints one by one
    has_deadline: bool = False  # written {name: 5 s}: aligned until so long after the trigger
    advised: tuple[str, ...] = ()  # values of cluster.network.debloat with which advice tries it
    advised_deadline: str = ""  # ... and its deadline there


BARRIERS: Catalog[BarrierKind] = Catalog(
    BarrierKind("aligned", {UNALIGNED: "false"}, advised=("off", "on")),
    BarrierKind(
        "aligned-timeout", {UNALIGNED: "true", ALIGNED_TIMEOUT: DEADLINE}, overtakes=True, has_deadline=True,
        advised=("off", "on"), advised_deadline="1 s",
    ),
    BarrierKind("unaligned", {UNALIGNED: "true"}, overtakes=True, advised=("off",)),
    BarrierKind("at-least-once", {MODE: "AT_LEAST_ONCE", UNALIGNED: "false"}, exactly_once=False),
)  # fmt: skip
"""From what changes least about a job to what changes most."""


def barriers_of(*, unaligned: bool, has_deadline: bool, exactly_once: bool = True) -> BarrierKind:
    """The kind that these settings of Flink ask for; at least once it switches unaligned off (CheckpointConfig)."""
    overtakes = unaligned and exactly_once
    keys = {UNALIGNED: str(overtakes).lower()}
    keys |= {} if exactly_once else {MODE: "AT_LEAST_ONCE"}
    keys |= {ALIGNED_TIMEOUT: DEADLINE} if overtakes and has_deadline else {}
    return next(kind for kind in BARRIERS.values() if kind.flink == keys)


@dataclass(frozen=True, slots=True)
class Barriers:
    """The way of barriers in one run.  A kind with a deadline starts aligned and goes unaligned `timeout_ns` after the trigger."""

    kind: str = "aligned"  # a name of BARRIERS
    timeout_ns: int = 0  # with a deadline only ...
    reaches_output: bool = True  # ... False: barriers that wait in sender queues stay aligned, as before FLINK-27251 (1.16)

    @property
    def record(self) -> BarrierKind:
        return BARRIERS[self.kind]

    def __str__(self) -> str:
        return f"{self.kind} {self.timeout_ns / 1e9:g} s" if self.record.has_deadline else self.kind
