"""Where the job runs: task managers, network, Flink's version profile.  Frozen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sim.model.catalogs.option import Flink, Kind, option
from sim.model.storage import Storage
from sim.units import MS

__all__ = ["Cluster", "Debloating", "NetworkMemory", "Storage"]

_MEMORY = "taskmanager.network.memory"
_DEBLOAT = f"{_MEMORY}.buffer-debloat"


@dataclass(frozen=True, slots=True)
class Debloating:
    """taskmanager.network.memory.buffer-debloat.*"""

    target_ns: int = option(
        Kind.DURATION, 1_000 * MS, "Time that the buffered data should take to be processed.", above_zero=True, flink=f"{_DEBLOAT}.target"
    )
    period_ns: int = option(Kind.DURATION, 200 * MS, "Between two adjustments.", above_zero=True, flink=f"{_DEBLOAT}.period")
    samples: int = option(Kind.POSITIVE, 20, "Measurements that are averaged.", flink=f"{_DEBLOAT}.samples")
    threshold_percent: int = option(
        Kind.PERCENT, 25, "Smaller changes of the buffer size are not made.", flink=f"{_DEBLOAT}.threshold-percentages"
    )
    min_bytes: int = option(Kind.SIZE, 256, "Smallest buffer.", above_zero=True, flink="taskmanager.memory.min-segment-size")


@dataclass(frozen=True, slots=True)
class NetworkMemory:
    """Buffers as Flink counts them (taskmanager.network.memory.*).  Four of its keys became constants in 2.0 (FLINK-33750)."""

    segment_bytes: int = option(Kind.SIZE, 32768, "Size of a network buffer.", key="segment-size", flink="taskmanager.memory.segment-size")
    starting_segment_bytes: int = option(
        Kind.SIZE, 32768, "First buffer size with debloating on.", key="starting-segment-size",
        usually="1 KiB; the segment-size in 1.x", flink="taskmanager.memory.starting-segment-size",
    )  # fmt: skip
    exclusive_per_channel: int = option(
        Kind.NATURAL, 2, "Exclusive buffers of a channel of an input gate.", key="buffers-per-channel",
        flink=Flink(f"{_MEMORY}.buffers-per-channel", {"taskmanager.network.num-buffers-per-channel": ""}, last="1.20"),
    )  # fmt: skip
    floating_per_gate: int = option(
        Kind.POSITIVE, 8, "Buffers that the channels of a gate share.", key="floating-buffers-per-gate",
        flink=Flink(f"{_MEMORY}.floating-buffers-per-gate", last="1.20"),
    )  # fmt: skip
    max_per_channel: int = option(
        Kind.POSITIVE, 10, "Buffers of one channel of an output, at most.", key="max-buffers-per-channel",
        flink=Flink(f"{_MEMORY}.max-buffers-per-channel", last="1.20"),
    )  # fmt: skip
    overdraft: int = option(
        Kind.NATURAL, 20, "Buffers that a task may take beyond its pool to finish a record.",
        usually="20; 5 in 1.20, none in 1.15", flink=Flink(f"{_MEMORY}.max-overdraft-buffers-per-gate", last="1.20"),
    )  # fmt: skip
    buffer_timeout_ns: int = option(
        Kind.BUFFER_TIMEOUT, 100 * MS, "0 s: after each record; or `never`.",
        flink=(
            Flink("execution.buffer-timeout.enabled", form="boolean"),
            Flink("execution.buffer-timeout.interval", {"execution.buffer-timeout": "1.16"}, form="duration"),
        ),
    )  # fmt: skip
    debloat: Debloating | None = option(
        Kind.OWN, None, "on: buffers shrink to what is processed in the target time.", usually="off",
        flink=Flink(f"{_DEBLOAT}.enabled", form="boolean"),
    )  # fmt: skip
    stretching: bool = True  # a shrunk buffer grows where a record would wait for another one (FLINK-33077, 1.19)


@dataclass(frozen=True, slots=True)
class Cluster:
    """The task managers and the network between them.

    A slot holds one subtask of each vertex (slot sharing); task managers are filled one after the other.
    """

    placement: Literal["isolated", "spread", "single"] = option(
        Kind.WORD, "spread",
        "spread: slots are shared, as in Flink: subtask i of every vertex is in slot i; single: one task manager in all;\n"
        "isolated: a task manager per subtask, as if no vertex shared its slots.",
    )  # fmt: skip
    slots: int | None = option(  # None: not written, one as in Flink
        Kind.POSITIVE, None, "Slots of each task manager, filled one after the other; each holds one subtask of every vertex.",
        usually="1", flink="taskmanager.numberOfTaskSlots",
    )  # fmt: skip
    latency_ns: int = option(Kind.DURATION, 0, "One way, between task managers.")
    barrier_wake_up_ns: int = option(
        Kind.DURATION, 0,
        "The first barrier of a checkpoint has reached a task -> the task takes it; default: 0 s. Code that runs once is slow.",
        keyword=True,
    )  # fmt: skip
    nic_bytes_per_second: int | None = option(Kind.BYTE_RATE, None, "Outgoing, per task manager.")
    cores: int | None = option(
        Kind.POSITIVE, None,
        "Each host has so many, which serialising snapshots and the threads of tasks share.  Default: nothing waits for a core.",
        usually="nothing waits for a core",
    )  # fmt: skip
    hosts: int | None = option(
        Kind.POSITIVE, None,
        "So many, to which task managers are dealt out in turn: more task managers bring no cores.  Default: one per task manager.",
        usually="one per task manager", needs=("cores", ()),
    )  # fmt: skip
    tasks_contend: bool | None = option(  # None: not said, so they do not; what they were measured with is not known
        Kind.OWN, None,
        "How services were measured.  idle-core: task threads that want more than `cores` slow each other down.\n"
        "side-by-side (the default): they have done so already.", key="services", usually="side-by-side",
    )  # fmt: skip
    profile: Literal["1.15", "1.20", "2.x"] = option(
        Kind.WORD, "2.x",
        "Whose constants and defaults; 1.15: without what came since: overdraft buffers, the timeout of barriers in sender queues.",
    )  # fmt: skip
    version: str = option(  # empty: neither it nor a profile is written
        Kind.OWN, "", "Release of Flink, such as 1.20.1 or 1.20: known defects are judged by it, and it chooses the profile.",
        usually="the profile, if that is written", keyword=True,
    )  # fmt: skip
    network: NetworkMemory = option(Kind.OWN, NetworkMemory(), "Buffers between tasks.")

    def host(self, task_manager: int) -> int:
        """Where a task manager runs."""
        return task_manager if self.hosts is None else task_manager % self.hosts
