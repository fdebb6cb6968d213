"""`cluster:` -> the model, with every check that needs values; buffers follow the version profile."""

from __future__ import annotations

from dataclasses import replace

from sim.model.cluster import Cluster, Debloating, NetworkMemory
from sim.scenario.cluster import document as doc
from sim.scenario.flink.keys import CONSTANT_IN_2
from sim.scenario.grammar.given import given_values
from sim.scenario.text.problems import Reading
from sim.units import format_duration

__all__ = ["build_cluster"]

MILLISECOND_NS = 1_000_000


def build_cluster(given: doc.Cluster, reading: Reading) -> Cluster:
    """Mistakes go to `reading`."""
    if given.slots is not None and given.placement != "spread":
        reading.wrong(("cluster", "slots"), "has no effect: only spread subtasks fill task managers slot by slot; write placement: spread")
    for key in ("hosts", "services"):
        if getattr(given, key) is not None and given.cores is None:
            reading.warn(("cluster", key), "has no effect: write cores, how many a host has")
    return given_values(
        Cluster(network=_network(given, reading)),
        placement=given.placement,
        slots=given.slots,
        latency_ns=given.latency,
        nic_bytes_per_second=given.nic or None,
        profile=given.profile,
        cores=given.cores,
        hosts=given.hosts,
        tasks_contend=given.services == "idle-core" if given.cores is not None else None,
    )


def _network(cluster: doc.Cluster, reading: Reading) -> NetworkMemory:
    given, here = cluster.network or doc.Network(), ("cluster", "network")
    two, old = cluster.profile in (None, "2.x"), cluster.profile == "1.15"
    ignored = {path[-1] for path in CONSTANT_IN_2 if two and _from_flink(path, reading)}
    default = NetworkMemory() if given.segment_size is None else NetworkMemory(segment_bytes=given.segment_size)
    first_overdraft = 20 if two else 0 if old else 5
    network = given_values(
        replace(default, starting_segment_bytes=1024 if two else default.segment_bytes, overdraft=first_overdraft, stretching=not old),
        starting_segment_bytes=given.starting_segment_size,
        exclusive_per_channel=None if "buffers-per-channel" in ignored else given.buffers_per_channel,
        floating_per_gate=None if "floating-buffers-per-gate" in ignored else given.floating_buffers_per_gate,
        max_per_channel=None if "max-buffers-per-channel" in ignored else given.max_buffers_per_channel,
        overdraft=None if "overdraft" in ignored else given.overdraft,
        buffer_timeout_ns=given.buffer_timeout,
        debloat=_debloat(given.debloat),
    )
    for path in sorted(CONSTANT_IN_2) if two else ():
        constant = {"buffers-per-channel": 2, "floating-buffers-per-gate": 8, "max-buffers-per-channel": 10, "overdraft": 20}[path[-1]]
        if path[-1] in ignored:
            reading.warn(path, f"is ignored: Flink 2.x has no such option, it is {constant} (profile: 1.20 has it)")
        elif getattr(given, path[-1].replace("-", "_")) not in (None, constant):
            reading.warn(path, f"Flink 2.x has no such option, it is {constant} there; simulated as written all the same")
    if network.segment_bytes < 4096 or network.segment_bytes & (network.segment_bytes - 1):
        reading.wrong((*here, "segment-size"), f"{network.segment_bytes} B: Flink wants a power of two, 4 KiB or more")
    if not 0 < network.starting_segment_bytes <= network.segment_bytes:
        reading.wrong((*here, "starting-segment-size"), f"must lie between 1 B and the segment size, {network.segment_bytes} B")
    if network.exclusive_per_channel == 0:  # FLINK-16641 has the sender announce its backlog then
        reading.wrong((*here, "buffers-per-channel"), "is 0: a channel that begins without a buffer is not modelled, write 1 or more")
    if 0 < network.buffer_timeout_ns < MILLISECOND_NS:
        written = format_duration(network.buffer_timeout_ns)
        reading.wrong((*here, "buffer-timeout"), f"is {written}: Flink counts milliseconds, write 1 ms or more, or 0 s")
    if network.max_per_channel == 1:
        reading.warn((*here, "max-buffers-per-channel"), "is 1: as in Flink, a task stands still while a buffer it began is not full")
    _check_debloat(network, reading)
    return network


def _check_debloat(network: NetworkMemory, reading: Reading) -> None:
    here = ("cluster", "network", "debloat")
    if (debloat := network.debloat) is None:
        return
    for key, value in (("target", debloat.target_ns), ("period", debloat.period_ns), ("min", debloat.min_bytes)):
        if value == 0:
            reading.wrong((*here, key), "must be more than 0")
    if 0 < debloat.period_ns < MILLISECOND_NS:
        reading.wrong((*here, "period"), f"is {format_duration(debloat.period_ns)}: Flink counts milliseconds, write 1 ms or more")
    if debloat.min_bytes > network.segment_bytes:
        reading.wrong((*here, "min"), f"is larger than the segment size, {network.segment_bytes} B")


def _debloat(given: doc.Debloat | str | None) -> Debloating | None:
    if isinstance(given, doc.Debloat):
        return given_values(
            Debloating(), target_ns=given.target, period_ns=given.period, samples=given.samples, threshold_percent=given.threshold,
            min_bytes=given.min,
        )  # fmt: skip
    return Debloating() if given in ("on", "true") else None


def _from_flink(path: tuple[str, ...], reading: Reading) -> bool:
    return path in reading.marks and reading.marks[path].path.startswith("flink.")
