"""Versions of Flink, and the cluster: slots, cores, network, buffers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from typing import Annotated, Any, ClassVar, Final, Literal, NamedTuple

from sim.model.frozen import frozen
from sim.model.options import Flink, ValidationContext, option, options_of
from sim.model.units import MS, format_duration
from sim.model.value_types import BufferTimeout, ByteRate, Duration, Natural, Percent, Positive, Share, Size, ValueType

# ---- Versions of Flink and of its connectors, in their order.
#
# A version is a range: 1.20.1 is one release; 1.20 and 2.x are all releases of a branch.  A vendor's build (1.15.2-csa1)
# also means the whole branch, because it may contain backported changes.

OLDEST_PROFILE: Final = "1.15"
Profile = Literal["1.15", "1.20", "2.x"]
"""The release branches whose constants and defaults are modelled."""

_Key = tuple[int, ...]
"""Four numbers, then 1 for a release, or 0 and a number for what came before it (1.1.0-rc2)."""

_FORM = re.compile(
    r"v?(\d{1,9}(?:\.\d{1,9}){0,3})(\.x)?(?:-?(rc|snapshot|alpha|beta)[-.]?(\d{0,9}))?(?:-[\d.]+)?([-+].*)?"
)
_LATEST = (10**9,)


class Span(NamedTuple):
    """A range of versions: `low` <= version < `high`."""

    low: _Key
    high: _Key

    def is_in(self, others: Sequence[Span]) -> bool | None:
        """Return whether the whole range is in one of the others, or None if only a part of it is."""
        touched = [other for other in others if self.low < other.high and other.low < self.high]
        return (
            (any(other.low <= self.low and self.high <= other.high for other in touched) or None) if touched else False
        )


@lru_cache(maxsize=1024)
def version_span(text: str) -> Span:
    """Return the range of 1.20.1, 1.20, 2.x, 1.1.0-rc1, 2.3-SNAPSHOT or 3.2.0-1.19 (of a connector).  Raises `ValueError`.

    Cached, because each combination of a sweep compares its version with all others.
    """
    match = _FORM.fullmatch(text.strip().lower().replace("_", "."))
    if match is None:
        raise ValueError(f"'{text[:40]}' is not a version: write 1.20.1, or 1.20 if the patch release is not known")
    given, branch_only, early, number, vendor = match.groups()
    numbers = tuple(map(int, given.split(".")))
    whole = (*numbers, 0, 0, 0)[:4]
    if early:
        return Span((*whole, 0, int(number or 0)), (*whole, 0, int(number or 0), 0))
    if len(numbers) > 2 and not branch_only and not vendor:
        return Span((*whole, 1), (*whole, 1, 0))
    return Span((*(*numbers[:2], 0, 0, 0)[:4], 1), _behind(numbers[:2]))


def _version(value: object) -> str:
    version_span(str(value))
    return str(value)


Version = Annotated[str, ValueType(_version, {"type": ["string", "number"], "examples": ["1.20.1", "1.20"]})]


def spans_from(versions: Sequence[str]) -> list[Span]:
    """Return the versions with a change: from each of `versions` to the end of its branch, from the newest on without end."""
    lows = sorted(version_span(text).low for text in versions)
    return [Span(low, _LATEST if low == lows[-1] else _behind(low[:2])) for low in lows]


def _behind(branch: _Key) -> _Key:
    return (*branch[:-1], branch[-1] + 1)


def profile_of(version: str) -> Profile:
    """Return the profile whose constants apply to a version of Flink.  Raises `ValueError`."""
    low = version_span(version).low
    return "2.x" if low >= (2,) else "1.20" if low >= (1, 16) else OLDEST_PROFILE


def was_added_after(since: str, version: str) -> bool:
    """Return True if all releases of a version came before the release `since`; False if one of the two is not known."""
    return bool(since and version) and version_span(version).high <= version_span(since).low


def spills_recovered_data(version: str) -> bool:
    """Return whether tasks that run before they have processed what they recover write it to local disks (FLINK-40081, 2.4)."""
    return bool(version) and version_span(version).low >= version_span("2.4").low


def was_removed_before(last: str, version: str) -> bool:
    """Return True if all releases of a version came after the branch `last`; False if one of the two is not known."""
    return bool(last and version) and version_span(version).low >= version_span(last).high


def reaches(last: str, version: str) -> bool:
    """Return True if the branch `last` reaches all releases of a version; False if one of the two is not known."""
    return bool(last and version) and version_span(version).high <= version_span(last).high


# ---- The cluster: TaskManagers, network, Flink's version profile.

_MEMORY = "taskmanager.network.memory"
_DEBLOAT = f"{_MEMORY}.buffer-debloat"
_PARTITIONER = "taskmanager.network.adaptive-partitioner"


@frozen
class Debloating:
    """taskmanager.network.memory.buffer-debloat.*"""

    target_ns: Duration = option(
        1_000 * MS,
        "Target time in which buffered data is processed.",
        must_be_positive=True,
        flink=f"{_DEBLOAT}.target",
    )
    period_ns: Duration = option(
        200 * MS, "Time between two adjustments.", must_be_positive=True, flink=f"{_DEBLOAT}.period"
    )
    samples: Positive = option(20, "Number of measurements in the moving average.", flink=f"{_DEBLOAT}.samples")
    threshold_percent: Percent = option(
        25,
        "Minimum relative change of the buffer size; smaller ones are not applied.",
        flink=f"{_DEBLOAT}.threshold-percentages",
    )
    min_bytes: Size = option(
        256, "Minimum buffer size.", must_be_positive=True, flink="taskmanager.memory.min-segment-size"
    )


@frozen
class AdaptivePartitioner:
    """taskmanager.network.adaptive-partitioner.* (FLIP-339)"""

    max_traverse_size: Positive = option(
        4, "Number of channels that are compared for a record.", flink=f"{_PARTITIONER}.max-traverse-size"
    )


@frozen
class NetworkMemory:
    """Network buffers (taskmanager.network.memory.*).  Four of the keys became constants in 2.0 (FLINK-33750)."""

    segment_bytes: Size = option(
        32768, "Size of a network buffer.", key="segment-size", flink="taskmanager.memory.segment-size"
    )
    starting_segment_bytes: Size = option(
        32768,
        "Initial buffer size with debloating.",
        key="starting-segment-size",
        default_text="1 KiB; the segment-size in 1.x",
        flink="taskmanager.memory.starting-segment-size",
    )
    exclusive_per_channel: Natural = option(
        2,
        "Exclusive buffers per channel of an input gate.",
        key="buffers-per-channel",
        flink=Flink(f"{_MEMORY}.buffers-per-channel", {"taskmanager.network.num-buffers-per-channel": ""}, last="1.20"),
    )
    floating_per_gate: Positive = option(
        8,
        "Floating buffers per input gate, shared by its channels.",
        key="floating-buffers-per-gate",
        flink=Flink(f"{_MEMORY}.floating-buffers-per-gate", last="1.20"),
    )
    max_per_channel: Positive = option(
        10,
        "Maximum buffers of one channel of a result partition.",
        key="max-buffers-per-channel",
        flink=Flink(f"{_MEMORY}.max-buffers-per-channel", last="1.20"),
    )
    overdraft: Natural = option(
        20,
        "Overdraft buffers per gate, which a task may request to finish a record when its pool is empty.",
        default_text="20; 5 in 1.20, none in 1.15",
        flink=Flink(f"{_MEMORY}.max-overdraft-buffers-per-gate", last="1.20"),
    )
    buffer_timeout_ns: BufferTimeout = option(
        100 * MS,
        "Maximum time until a partly filled buffer is sent; 0 s: after each record; or `never`.",
        flink=(
            Flink("execution.buffer-timeout.enabled", form="boolean"),
            Flink("execution.buffer-timeout.interval", {"execution.buffer-timeout": "1.16"}, form="duration"),
        ),
    )
    debloat: Debloating | None = option(
        None,
        "Buffer debloating: buffers shrink to what is processed in the target time.",
        default_text="off",
        flink=Flink(f"{_DEBLOAT}.enabled", form="boolean", since="1.14"),  # FLIP-183
        accepts_on_off=True,
    )
    adaptive_partitioner: AdaptivePartitioner | None = option(
        None,
        "Records of rebalance and rescale edges go to the least loaded of the next few channels (FLIP-339).",
        default_text="off",
        flink=Flink(f"{_PARTITIONER}.enabled", form="boolean", since="2.3"),  # FLIP-339
        accepts_on_off=True,
    )
    stretching: bool = True  # a shrunk buffer grows where a record would wait for another one (FLINK-33077, 1.19)

    def of_profile(self, profile: str, at: ValidationContext) -> NetworkMemory:
        """Return the options with the defaults of a profile.  Contradictions are reported."""
        usual = {
            "starting-segment-size": 1024 if profile == "2.x" else self.segment_bytes,
            "overdraft": 0 if profile == OLDEST_PROFILE else 5,
        }
        changes: dict[str, Any] = {"stretching": profile != OLDEST_PROFILE}
        for key, record in options_of(NetworkMemory).items():
            written = at.written(key)
            if key in usual and written is None:
                changes[record.field] = usual[key]
            if profile == "2.x" and all(flink.last for flink in record.flink):
                changes[record.field] = record.default
                if written not in (None, record.default):
                    at.warn(
                        f"is ignored: Flink 2.x has no such option, it is {record.default} (profile: 1.20 has it)", key
                    )
        found = replace(self, **changes)
        found.check(at)
        return found

    def check(self, at: ValidationContext) -> None:
        """Report values that Flink rejects."""
        segment_bytes, timeout_ns, debloat = self.segment_bytes, self.buffer_timeout_ns, self.debloat
        if segment_bytes < 4096 or segment_bytes & (segment_bytes - 1):
            at.error(f"{segment_bytes} B: Flink wants a power of two, 4 KiB or more", "segment-size")
        if not 0 < self.starting_segment_bytes <= segment_bytes:
            at.error(f"must lie between 1 B and the segment size, {segment_bytes} B", "starting-segment-size")
        if self.exclusive_per_channel == 0:  # FLINK-16641 has the sender announce its backlog then
            none = "is 0: a channel that begins without a buffer is not modelled, write 1 or more"
            at.error(none, "buffers-per-channel")
        if 0 < timeout_ns < MS:
            less = f"is {format_duration(timeout_ns)}: Flink counts milliseconds, write 1 ms or more, or 0 s"
            at.error(less, "buffer-timeout")
        if self.max_per_channel == 1:
            one = "is 1: as in Flink, a task is blocked while a buffer that it has begun is not full"
            at.warn(one, "max-buffers-per-channel")
        if self.adaptive_partitioner is not None and self.adaptive_partitioner.max_traverse_size == 1:
            at.error("is 1: nothing would be compared, write 2 or more", "adaptive-partitioner", "max-traverse-size")
        if debloat is not None and 0 < debloat.period_ns < MS:
            less = f"is {format_duration(debloat.period_ns)}: Flink counts milliseconds, write 1 ms or more"
            at.error(less, "debloat", "period")
        if debloat is not None and debloat.min_bytes > segment_bytes:
            at.error(f"is larger than the segment size, {segment_bytes} B", "debloat", "min")


@frozen
class Cluster:
    """The task managers and the network between them.

    A slot holds one subtask of each vertex (slot sharing); task managers are filled one after the other.
    """

    placement: Literal["isolated", "spread", "single"] = option(
        "spread",
        "spread: slot sharing, as in Flink: subtask i of every vertex is in slot i; single: one TaskManager for all subtasks;\n"
        "isolated: a TaskManager per subtask.",
    )
    slots: Positive | None = option(  # None: not written, one as in Flink
        None,
        "Slots per TaskManager; each holds one subtask of every vertex.",
        default_text="1",
        flink="taskmanager.numberOfTaskSlots",
    )
    latency_ns: Duration = option(0, "One-way network latency between TaskManagers.")
    barrier_wake_up_ns: Duration = option(
        0,
        "Delay between the arrival of the first barrier of a checkpoint and its processing, as rarely executed code is "
        "slow.  Default: 0 s.",
    )
    nic_bytes_per_second: ByteRate | None = option(None, "Outgoing network bandwidth per TaskManager.")
    cores: Positive | None = option(
        None,
        "Cores per host, shared by snapshots and (with services: idle-core) task threads.  Default: unlimited.",
    )
    hosts: Positive | None = option(
        None,
        "Number of hosts, to which TaskManagers are assigned in turn.  Default: one per TaskManager.",
        needs=("cores", ()),
    )
    tasks_contend: bool | None = option(  # None: not said, so they do not; what they were measured with is not known
        None,
        "How service times were measured.  idle-core: on an idle core, so task threads that need more than `cores` slow "
        "each other down.\n"
        "side-by-side (the default): with all threads running, so they include it.",
        key="services",
        choices=lambda: ("side-by-side", "idle-core"),
    )
    on_core_share: Share = option(
        Fraction(1),
        "Share of their busy time in which task threads use a core; otherwise they sleep or wait for responses.  Default: 100 %.",
        key="on-core",
        needs=("cores", ()),
    )
    profile: Profile = option(
        "2.x",
        "Version of Flink whose constants and defaults apply.  1.15: without later features, such as overdraft buffers.",
    )
    version: Version = option(  # empty: neither it nor a profile is written
        "",
        "Release of Flink, such as 1.20.1 or 1.20, which selects known defects and the profile.",
        default_text="that of the profile, if set",
    )
    network: NetworkMemory = option(NetworkMemory(), "Network buffers.")

    HINTS: ClassVar = {
        **dict.fromkeys(
            ("task-managers", "taskmanagers"),
            "their number follows from the job: each slot holds a subtask of every vertex, slots: 2 has two slots in each",
        ),
        "nodes": "write hosts, how many machines, and cores, what each has",
        "task-slots": "write slots",
    }

    def completed(self, at: ValidationContext) -> Cluster:
        profile, version, services = at.written("profile"), at.written("version"), at.written("services")
        if self.slots is not None and self.placement != "spread":
            at.error(f"has no effect with placement: {self.placement}: remove one of the two", "slots")
        if services is not None and self.cores is None:
            at.warn("has no effect: write cores", "services")
        if version is not None and profile not in (None, usual := profile_of(version)):
            at.error(f"is {profile}, but version {version} has profile {usual}: leave one of the two out", "profile")
        chosen: Profile = profile or (profile_of(version) if version else self.profile)
        return replace(
            self,
            network=self.network.of_profile(chosen, at.child("network", at.written("network"))),
            tasks_contend=None if services is None or self.cores is None else services == "idle-core",
            profile=chosen,
            version=version or profile or "",
        )

    @property
    def release(self) -> str:
        """The version of Flink, or else its profile."""
        return self.version or self.profile

    @property
    def has_final_trigger(self) -> bool:
        """Whether a checkpoint is triggered as soon as all data has ended (FLINK-28386), and not at the end of the interval."""
        return not was_added_after("1.18", self.release)

    def host(self, task_manager: int) -> int:
        """Return the host on which a TaskManager runs."""
        return task_manager if self.hosts is None else task_manager % self.hosts
