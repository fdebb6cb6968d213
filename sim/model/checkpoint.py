"""Barrier modes and the settings of checkpoints."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, field, replace
from fractions import Fraction
from typing import Literal

from sim.model.catalogs import Catalog
from sim.model.cluster import OLDEST_PROFILE, version_span
from sim.model.frozen import frozen
from sim.model.options import Flink, ValidationContext, option
from sim.model.state import StateOptions
from sim.model.units import format_duration
from sim.model.value_types import Duration, Interval, Natural, Number, Positive, Share, Switch

# ---- Barrier modes: one record each, with the facts that other packages read.
#
# What tasks do is the `Strategy` of `sim.protocol.barrier_modes` with the same name; documents, Flink's keys, advice
# and envelope read the record.

MODE, UNALIGNED = "execution.checkpointing.mode", "execution.checkpointing.unaligned.enabled"
ALIGNED_TIMEOUT = "execution.checkpointing.aligned-checkpoint-timeout"
SINCE = {UNALIGNED: "1.11", ALIGNED_TIMEOUT: "1.13"}
"""The first releases with these keys: FLIP-76 and FLINK-19680."""
DEADLINE = "DEADLINE"
"""Placeholder in `flink` for the aligned timeout."""


@frozen
class BarrierKind:
    """A barrier mode."""

    name: str  # as a scenario writes it
    flink: Mapping[str, str] = field(hash=False)  # the lines of Flink's configuration that ask for it
    exactly_once: bool = True  # no record counts twice after a restore
    # barriers may overtake data, at once or after the deadline: Flink runs such checkpoints one by one
    overtakes: bool = False
    has_deadline: bool = False  # written {name: 5 s}: aligned until this timeout after the trigger
    advised: tuple[str, ...] = ()  # buffer debloating settings that `advise` tries with it
    advised_deadline: str = ""  # ... and its default timeout there

    @property
    def since(self) -> str:
        """The first release that has it; empty: all that users still run."""
        releases = [SINCE.get(key, "") for key, value in self.flink.items() if value != "false"]
        return max(releases, key=lambda since: version_span(since or "1"), default="")


BARRIERS: Catalog[BarrierKind] = Catalog(
    BarrierKind("aligned", {UNALIGNED: "false"}, advised=("off", "on")),
    BarrierKind(
        "aligned-timeout",
        {UNALIGNED: "true", ALIGNED_TIMEOUT: DEADLINE},
        overtakes=True,
        has_deadline=True,
        advised=("off", "on"),
        advised_deadline="1 s",
    ),
    BarrierKind("unaligned", {UNALIGNED: "true"}, overtakes=True, advised=("off",)),
    BarrierKind("at-least-once", {MODE: "AT_LEAST_ONCE", UNALIGNED: "false"}, exactly_once=False),
)
"""Ordered by how much they change a job."""


def barriers_of(*, unaligned: bool, has_deadline: bool, exactly_once: bool = True) -> BarrierKind:
    """Return the mode of these Flink settings; at-least-once disables unaligned checkpoints (CheckpointConfig)."""
    overtakes = unaligned and exactly_once
    keys = {UNALIGNED: str(overtakes).lower()}
    keys |= {} if exactly_once else {MODE: "AT_LEAST_ONCE"}
    keys |= {ALIGNED_TIMEOUT: DEADLINE} if overtakes and has_deadline else {}
    return next(kind for kind in BARRIERS.values() if kind.flink == keys)


@frozen
class Barriers:
    """The barrier mode of one run.  A mode with a deadline starts aligned and switches to unaligned `timeout_ns` after the trigger."""

    kind: str = "aligned"  # a name of BARRIERS
    timeout_ns: int = 0  # with a deadline only ...
    # ... False: barriers that wait in sender queues stay aligned, as before FLINK-27251 (1.16)
    reaches_output: bool = True

    @property
    def record(self) -> BarrierKind:
        return BARRIERS[self.kind]

    def __str__(self) -> str:
        return f"{self.kind} {self.timeout_ns / 1e9:g} s" if self.record.has_deadline else self.kind


# ---- Checkpoint options: one concrete strategy.  Names and defaults are Flink's (execution.checkpointing.*).

_E, _SECOND = "execution.checkpointing", 1_000_000_000
MIN_CHECKPOINT_NS = 10_000_000
"""CheckpointCoordinatorConfiguration.MINIMAL_CHECKPOINT_TIME, of intervals and timeouts."""
MIN_INTERVAL_NS = 1_000_000
"""Between two checkpoints: less is refused."""


@frozen
class RegionalCheckpoints:
    """Independent checkpoints of pipeline regions (FLIP-600, as proposed in apache/flink#28963; in no release yet)."""

    enabled: Switch = option(
        False,
        "Checkpoints complete without the regions that decline or time out, with their state of the previous checkpoint "
        "(FLIP-600, a proposal).",
        flink=f"{_E}.region.enabled",
    )
    max_failure_ratio: Number = option(
        Fraction(3, 10),
        "Share of failed regions above which the checkpoint is aborted.",
        flink=f"{_E}.region.max-failure-ratio",
        needs=("enabled", ()),
    )
    max_consecutive_failures: Natural = option(
        2,
        "Consecutive checkpoints that may complete without some regions.",
        flink=f"{_E}.region.max-consecutive-failures",
        needs=("enabled", ()),
    )
    split_interval_ns: Duration | None = option(
        None,
        "Time between two splits that each source discovers and assigns to its readers in turn.  Ownership is checked; "
        "splits have no load.",
        default_text="splits are assigned at the start",
        zero_means_never=True,
        needs=("enabled", ()),
    )


@frozen
class CheckpointOptions:
    """The checkpoint options of one run."""

    interval_ns: Interval | None = option(
        MISSING,
        "Time between two periodic triggers; `off`: no periodic checkpoints.",
        zero_means_never=True,
        flink=f"{_E}.interval",
    )
    interval_during_backlog_ns: Interval | None = option(  # 0: disabled during backlog; None: same as interval_ns
        None,
        "Interval while a source reports a backlog (`source: {backlog: ...}`): longer than interval, or `off`.  Default: "
        "the interval.",
        flink=Flink(f"{_E}.interval-during-backlog", since="1.18"),  # FLIP-309
    )
    barriers: Barriers = option(
        Barriers(),
        "Barrier mode: aligned, unaligned, at-least-once, or {aligned-timeout: 1 s}.",
        default_text="aligned",
        flink=(
            Flink(UNALIGNED, older={f"{_E}.unaligned": "1.16"}, form="boolean", since=SINCE[UNALIGNED]),
            Flink(
                ALIGNED_TIMEOUT,
                older={f"{_E}.alignment-timeout": "1.13"},
                form="duration",
                since=SINCE[ALIGNED_TIMEOUT],
            ),
            Flink(MODE, form="mode"),
        ),
        has_custom_section=True,
    )
    timeout_ns: Duration = option(600 * _SECOND, "Age at which a checkpoint expires.", flink=f"{_E}.timeout")
    min_pause_ns: Duration = option(
        0, "Minimum time between the end of a checkpoint and the next trigger.", flink=f"{_E}.min-pause"
    )
    max_concurrent: Positive = option(
        1, "Maximum number of checkpoints in progress.", flink=f"{_E}.max-concurrent-checkpoints"
    )
    tolerable_failed: Natural = option(
        0,
        "Consecutive failed checkpoints that are tolerated before the job fails.",
        flink=f"{_E}.tolerable-failed-checkpoints",
    )
    num_retained: Positive = option(
        1,
        "Number of completed checkpoints that are retained.",
        flink=Flink(f"{_E}.num-retained", {"state.checkpoints.num-retained": "1.19"}),
    )
    subtasks_per_channel_state_file: Positive = option(
        5,
        "Subtasks of a TaskManager that share a file of channel state.",
        default_text="5; 1 with the profile 1.15",
        flink=Flink(f"{_E}.unaligned.max-subtasks-per-channel-state-file", since="1.17"),  # FLINK-26803
    )
    operator_io: Literal["pre-barrier", "async"] = option(  # async is FLINK-37375 ...
        "pre-barrier",
        "When operators write the files of `flush`, and spend pre-barrier: before the barrier (sync), or in the "
        "asynchronous phase (async, FLINK-37375, a proposal).",
    )
    abort_policy: Literal["survive", "reupload", "drop"] = option(  # ... and this what an abort does to its uploads
        "survive", "How an abort treats asynchronous uploads.  drop loses data; it shows why."
    )
    upload_threads: Positive = option(1, "Threads per task that upload the files of its operator.")
    staging_bytes: int | None = option(  # per task manager; None: enough
        None, "Local space for files that are not uploaded yet.", key="staging", default_text="unlimited"
    )
    staging_full: Literal["block", "fail"] = "block"  # a flush without room waits, or fails its task
    lost_notifications: Share = option(Fraction(0), "Share of notifyCheckpointComplete messages that are lost.")
    finish: Literal["flink", "naive", "commit-at-finish", "discard", "off"] = option(
        "flink",
        "How a bounded job ends: with a final checkpoint (FLIP-147), or without checkpoints once a task has finished.\n"
        "Before Flink 1.18 the final checkpoint starts at the next periodic trigger, later versions trigger it when all "
        "data has been read.",
        flink=Flink(
            f"{_E}.checkpoints-after-tasks-finish",
            {f"{_E}.checkpoints-after-tasks-finish.enabled": "1.19"},
            form="finish",
        ),
    )
    interruptible_timers: Switch = option(
        False,
        "With unaligned barriers, event-time windows of SQL process barriers and mails while they fire (FLIP-443).",
        flink=Flink(f"{_E}.unaligned.interruptible-timers.enabled", since="1.20"),
    )
    recover_output_on_downstream: Switch = option(
        False,
        "Captured output buffers are recovered by the downstream tasks instead of being sent again (Flink 2.3).  Default: off.",
        flink=Flink(f"{_E}.unaligned.recover-output-on-downstream.enabled", since="2.3"),
    )
    during_recovery: Switch = option(
        False,
        "Tasks run and take checkpoints before recovered in-flight data is processed (FLIP-547, Flink 2.3).  Default: off.\n"
        "Requires recover-output-on-downstream.",
        # the older key is that of the release notes, whose version is unknown
        flink=Flink(f"{_E}.during-recovery.enabled", {f"{_E}.unaligned.during-recovery.enabled": ""}, since="2.3"),
    )
    region: RegionalCheckpoints = option(
        RegionalCheckpoints(), "Regional checkpoints: failed regions do not fail a checkpoint (FLIP-600)."
    )
    forced_aligned: tuple[tuple[str, str], ...] = option(
        (), "Edges 'upstream -> downstream' that stay aligned, in addition to those that Flink always aligns."
    )
    state: StateOptions = StateOptions()

    def completed(self, at: ValidationContext) -> CheckpointOptions:
        found = replace(self, barriers=_barriers(at), forced_aligned=tuple(at.written("forced-aligned") or ()))
        if at.profile == OLDEST_PROFILE and at.written("subtasks-per-channel-state-file") is None:
            found = replace(found, subtasks_per_channel_state_file=1)  # FLINK-26803 shares them
        found = found.with_staging(at).with_recovery(at).with_backlog(at).with_regions(at)
        if found.barriers.record.has_deadline and found.barriers.timeout_ns >= found.timeout_ns:
            at.warn(
                f"barriers never overtake: a checkpoint expires before, after {format_duration(found.timeout_ns)} (timeout)",
                "barriers",
            )
        if found.interruptible_timers and not at.job.event_time_windows:
            at.warn("has no effect: no vertex has windows of event time", "interruptible-timers")
        for key, value_ns in (("interval", found.interval_ns), ("timeout", found.timeout_ns)):
            if value_ns is not None and value_ns < MIN_CHECKPOINT_NS:
                few = f"is {format_duration(value_ns)}: Flink wants {format_duration(MIN_CHECKPOINT_NS)} or more"
                # e.g. in benchmarks, which take snapshots one after the other
                if key == "interval" and value_ns >= MIN_INTERVAL_NS:
                    at.warn(f"{few}; simulated as written all the same", key)
                else:
                    at.error(few, key)
        edges = {
            (inlet.upstream, reader.name)
            for reader in at.job.vertices
            if not reader.committer_of
            for inlet in reader.inputs
        }
        for i, (upstream, downstream) in enumerate(found.forced_aligned):
            if (upstream, downstream) not in edges:
                at.error(f"there is no edge {upstream} -> {downstream} in the job", "forced-aligned", i)
        if found.max_concurrent > 1 and found.barriers.record.overtakes:
            at.error(
                f"is {found.max_concurrent}, but Flink runs {found.barriers} checkpoints one by one: write 1",
                "max-concurrent",
            )
        if found.max_concurrent > 1 and found.min_pause_ns > 0:
            at.warn("has no effect with a min-pause: Flink runs one checkpoint at a time then", "max-concurrent")
            return replace(found, max_concurrent=1)
        return found

    def with_staging(self, at: ValidationContext) -> CheckpointOptions:
        """Set the options of staging.  Reports files larger than the space, which would wait indefinitely."""
        if (staging := at.written("staging")) is None:
            return self
        for vertex in at.job.vertices:
            if vertex.flush is not None and vertex.flush.bytes > staging.space * vertex.flush.files:
                at.error(f"is less than one file of {vertex.name}", "staging", "space")
        return replace(self, staging_bytes=staging.space, staging_full=staging.when_full or self.staging_full)

    def with_recovery(self, at: ValidationContext) -> CheckpointOptions:
        """Set how tasks recover in-flight data: two switches of Flink 2.3, of which the second requires the first."""
        on_downstream, during = self.recover_output_on_downstream, self.during_recovery
        if during and not on_downstream:
            at.warn("has no effect without recover-output-on-downstream: true, as in Flink 2.3", "during-recovery")
        return replace(self, during_recovery=during and on_downstream)

    def with_regions(self, at: ValidationContext) -> CheckpointOptions:
        """Switch regional checkpoints off where the proposal excludes them: subtasks share files of channel state (FLINK-26803)."""
        if self.region.enabled and self.barriers.record.overtakes and self.subtasks_per_channel_state_file > 1:
            at.warn(
                "has no effect: subtasks share files of channel state, write subtasks-per-channel-state-file: 1",
                "region",
            )
            return replace(self, region=RegionalCheckpoints())
        return self

    def with_backlog(self, at: ValidationContext) -> CheckpointOptions:
        key, interval_ns = "interval-during-backlog", self.interval_during_backlog_ns
        if interval_ns is None:
            return self
        if 0 < interval_ns < (self.interval_ns or 0):
            usual = format_duration(self.interval_ns or 0)
            at.error(f"is {format_duration(interval_ns)}, less than the interval, {usual}: write more, or off", key)
        if self.interval_ns is None:
            at.warn("has no effect without an interval", key)
            return replace(self, interval_during_backlog_ns=None)
        if not any(vertex.source is not None and vertex.source.backlog is not None for vertex in at.job.vertices):
            at.warn("has no effect: no source says source: {backlog: ...}", key)
        return self


def _barriers(at: ValidationContext) -> Barriers:
    written = at.written("barriers")
    if written is None or isinstance(written, str):
        return Barriers(written or "aligned")
    kind, timeout_ns = written.only_key
    if timeout_ns == 0:
        at.error(f"an {kind} of 0 is unaligned from the start: write unaligned", "barriers")
    # before 1.16 the deadline does not reach barriers in outputs
    return Barriers(kind, timeout_ns, reaches_output=at.profile != OLDEST_PROFILE)
