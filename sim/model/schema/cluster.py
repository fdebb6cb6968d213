"""`cluster:`, as it is written and as the model has it; buffers follow the version profile."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Tag

from sim.model import cluster
from sim.model.catalog import options_of
from sim.model.cluster import profile_of
from sim.model.schema.fields import Axis, OnOff, Version, choice
from sim.model.schema.options import Options, attribute_of, built
from sim.model.schema.sections import MAP_OR_TEXT, Texts
from sim.model.schema.text import Reading, remembered
from sim.model.units import MS, format_duration


class Debloat(Options, of=(cluster.Debloating,)):
    """taskmanager.network.memory.buffer-debloat.*"""


class Network(Options, of=(cluster.NetworkMemory,)):
    """Buffers as Flink counts them.  Every pool has as many as it may ask for: a task manager's network memory is not modelled."""

    debloat: Axis[Annotated[Annotated[OnOff, Tag("text")] | Annotated[Debloat, Tag("map")], MAP_OR_TEXT]] | None = None


_FOLLOWS = (
    "their number follows from the job: each slot holds a subtask of every vertex, slots: 2 has two slots in each"
)


class Cluster(Options, of=(cluster.Cluster,)):
    """Where the job runs."""

    HINTS: ClassVar[Texts] = {
        "task-managers": _FOLLOWS,
        "taskmanagers": _FOLLOWS,
        "nodes": "write hosts, how many machines, and cores, what each has",
        "task-slots": "write slots",
    }
    services: Axis[Annotated[str, choice("side-by-side", "idle-core")]] | None = None
    version: Axis[Version] | None = None
    network: Network | None = None


@remembered
def build_cluster(given: Cluster, reading: Reading) -> cluster.Cluster:
    """Mistakes go to `reading`."""
    if given.slots is not None and given.placement not in (None, "spread"):
        reading.wrong(("cluster", "slots"), f"has no effect with placement: {given.placement}: remove one of the two")
    if given.services is not None and given.cores is None:
        reading.warn(("cluster", "services"), "has no effect: write cores")
    contend = None if given.services is None or given.cores is None else given.services == "idle-core"
    profile, version = given.profile, given.version
    if version is not None and profile not in (None, usual := profile_of(version)):
        reading.wrong(
            ("cluster", "profile"), f"is {profile}, but version {version} has profile {usual}: leave one of the two out"
        )
    profile = profile or (profile_of(version) if version else "2.x")
    return built(
        cluster.Cluster,
        given,
        ("cluster",),
        reading,
        network=_network(given, profile, reading),
        tasks_contend=contend,
        profile=profile,
        version=version or given.profile,
    )


def _network(around: Cluster, profile: str, reading: Reading) -> cluster.NetworkMemory:
    given, here = around.network or Network(), ("cluster", "network")
    two, old = profile == "2.x", profile == "1.15"
    gone = [
        record for record in options_of(cluster.NetworkMemory).values() if two and all(key.last for key in record.flink)
    ]
    segment_bytes = given.segment_size or cluster.NetworkMemory().segment_bytes
    defaults = {"starting_segment_bytes": 1024 if two else segment_bytes, "overdraft": 0 if old else 5}
    both = zip(defaults.items(), (given.starting_segment_size, given.overdraft), strict=True)
    usual = {name: value for (name, value), written in both if written is None}
    usual |= {record.field: record.default for record in gone}
    network = built(
        cluster.NetworkMemory,
        given,
        here,
        reading,
        **usual,
        debloat=_debloat(given.debloat, reading),
        stretching=not old,
    )
    for record in gone:
        if getattr(given, attribute_of(record.key)) not in (None, record.default):
            reading.warn(
                (*here, record.key),
                f"is ignored: Flink 2.x has no such option, it is {record.default} (profile: 1.20 has it)",
            )
    if network.segment_bytes < 4096 or network.segment_bytes & (network.segment_bytes - 1):
        reading.wrong((*here, "segment-size"), f"{network.segment_bytes} B: Flink wants a power of two, 4 KiB or more")
    if not 0 < network.starting_segment_bytes <= network.segment_bytes:
        reading.wrong(
            (*here, "starting-segment-size"), f"must lie between 1 B and the segment size, {network.segment_bytes} B"
        )
    if network.exclusive_per_channel == 0:  # FLINK-16641 has the sender announce its backlog then
        reading.wrong(
            (*here, "buffers-per-channel"),
            "is 0: a channel that begins without a buffer is not modelled, write 1 or more",
        )
    if 0 < network.buffer_timeout_ns < MS:
        written = format_duration(network.buffer_timeout_ns)
        reading.wrong((*here, "buffer-timeout"), f"is {written}: Flink counts milliseconds, write 1 ms or more, or 0 s")
    if network.max_per_channel == 1:
        reading.warn(
            (*here, "max-buffers-per-channel"),
            "is 1: as in Flink, a task stands still while a buffer it began is not full",
        )
    _check_debloat(network, reading)
    return network


def _check_debloat(network: cluster.NetworkMemory, reading: Reading) -> None:
    here = ("cluster", "network", "debloat")
    if (debloat := network.debloat) is None:
        return
    if 0 < debloat.period_ns < MS:
        reading.wrong(
            (*here, "period"), f"is {format_duration(debloat.period_ns)}: Flink counts milliseconds, write 1 ms or more"
        )
    if debloat.min_bytes > network.segment_bytes:
        reading.wrong((*here, "min"), f"is larger than the segment size, {network.segment_bytes} B")


def _debloat(given: Debloat | str | None, reading: Reading) -> cluster.Debloating | None:
    if isinstance(given, Debloat):
        return built(cluster.Debloating, given, ("cluster", "network", "debloat"), reading)
    return cluster.Debloating() if given in ("on", "true") else None
