"""`checkpoint:` as it is written, but for its keys about state.

Defaults live in the model: a key that is not given is None here.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Tag

from sim.model.catalogs.barriers import BARRIERS
from sim.scenario.grammar.fields import Axis, Duration, EdgeName, Interval, Natural, Positive, Share, choice, choice_of
from sim.scenario.grammar.section import MAP_OR_TEXT, Section
from sim.scenario.sink.document import Staging
from sim.scenario.state.document import StateKeys, Switch

__all__ = ["AlignedTimeout", "Checkpoint"]


class AlignedTimeout(Section):
    """Start aligned, go unaligned so long after the trigger."""

    aligned_timeout: Axis[Duration]
    """After the trigger; then barriers overtake."""


def _without_deadline() -> list[str]:
    """Ways of barriers that are one word."""
    return [kind.name for kind in BARRIERS.values() if not kind.has_deadline]


BarriersField = Annotated[
    Annotated[str, choice_of(_without_deadline), Tag("text")] | Annotated[AlignedTimeout, Tag("map")],
    MAP_OR_TEXT,
]


class Checkpoint(StateKeys):
    """execution.checkpointing.*"""

    interval: Axis[Interval]
    """Between two triggers; `off`: no periodic checkpoints."""
    interval_during_backlog: Axis[Interval] | None = None
    """While a source reports a backlog (`source: {backlog: ...}`), instead of interval: a longer one, or `off`; default: the interval."""
    barriers: Axis[BarriersField] | None = None
    """How barriers travel: aligned, unaligned, at-least-once, or {aligned-timeout: 1 s}."""
    timeout: Axis[Duration] | None = None
    """A checkpoint that takes longer expires."""
    min_pause: Axis[Duration] | None = None
    """Least time between the end of a checkpoint and the next trigger."""
    max_concurrent: Axis[Positive] | None = None
    """Checkpoints under way at a time."""
    tolerable_failed: Axis[Natural] | None = None
    """Failed checkpoints in a row that do not fail the job."""
    num_retained: Axis[Positive] | None = None
    """Completed checkpoints kept."""
    subtasks_per_channel_state_file: Axis[Positive] | None = None
    """Subtasks of a task manager whose in-flight data share a file."""
    operator_io: Axis[Annotated[str, choice("pre-barrier", "async")]] | None = None
    """When operators write the files of flush: and work as long as pre-barrier: before the barrier, or in the asynchronous phase."""
    abort_policy: Axis[Annotated[str, choice("survive", "reupload", "drop")]] | None = None
    """What an abort does to asynchronous uploads; drop is known to be wrong."""
    upload_threads: Axis[Positive] | None = None
    """Threads of one task, for the files of its operator."""
    staging: Staging | None = None
    """Local room for files that are not uploaded yet."""
    lost_notifications: Axis[Share] | None = None
    """Share of the notifications of a completed checkpoint that never reach their task."""
    finish: Axis[Annotated[str, choice("flink", "naive", "commit-at-finish", "discard", "off")]] | None = None
    """How a bounded job ends: FLIP-147, each task waiting for a checkpoint of its own, or without checkpoints once a task finished."""
    interruptible_timers: Axis[Switch] | None = None
    """With barriers that overtake: event-time windows of SQL yield to barriers and mails while they fire (FLIP-443)."""
    recover_output_on_downstream: Axis[Switch] | None = None
    """Captured output is recovered by the tasks that read it, not sent again by those that wrote it; Flink 2.3, default: off."""
    during_recovery: Axis[Switch] | None = None
    """Tasks run, and take checkpoints, before they have processed the in-flight data they recover (FLIP-547); Flink 2.3, default: off.
    It needs recover-output-on-downstream."""
    forced_aligned: list[EdgeName] | None = None
    """Edges 'upstream -> downstream' that stay aligned, beyond those Flink keeps aligned itself."""
