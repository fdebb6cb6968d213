"""Where the job runs: task managers, network, Flink's version profile.  Frozen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sim.model.storage import Storage

__all__ = ["Cluster", "Debloating", "NetworkMemory", "Storage"]


@dataclass(frozen=True, slots=True)
class Debloating:
    """taskmanager.network.memory.buffer-debloat.*"""

    period_ns: int = 200_000_000
    target_ns: int = 1_000_000_000
    samples: int = 20
    threshold_percent: int = 25
    min_bytes: int = 256


@dataclass(frozen=True, slots=True)
class NetworkMemory:
    """Buffers as Flink counts them (taskmanager.network.memory.*)."""

    segment_bytes: int = 32768
    starting_segment_bytes: int = 32768  # first buffer size with debloating on: 1024 in 2.x
    exclusive_per_channel: int = 2
    floating_per_gate: int = 8
    max_per_channel: int = 10
    overdraft: int = 20  # 5 in 1.20, none in 1.15
    buffer_timeout_ns: int = 100_000_000  # -1: never, 0: after each record
    debloat: Debloating | None = None
    stretching: bool = True  # a shrunk buffer grows where a record would wait for another one (FLINK-33077, 1.19)


@dataclass(frozen=True, slots=True)
class Cluster:
    """Placement: isolated = one task manager per subtask; single = one in all; spread = one per `slots` subtask indices.

    A slot holds one subtask of each vertex (slot sharing); task managers are filled one after the other.
    """

    placement: Literal["isolated", "single", "spread"] = "isolated"
    slots: int = 1  # of a task manager, where subtasks are spread (taskmanager.numberOfTaskSlots)
    latency_ns: int = 0  # one way, between task managers
    nic_bytes_per_second: int | None = None  # outgoing, per task manager; None: never the limit
    network: NetworkMemory = NetworkMemory()
    profile: Literal["1.15", "1.20", "2.x"] = "2.x"
    cores: int | None = None  # of a host, for its tasks and their snapshots; None: as many as want to run
    hosts: int | None = None  # that the task managers are dealt out to, in turn; None: each has one to itself
    tasks_contend: bool = False  # services are those of an idle core, and task threads slow each other down

    def host(self, task_manager: int) -> int:
        """Where a task manager runs."""
        return task_manager if self.hosts is None else task_manager % self.hosts
