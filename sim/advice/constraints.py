"""Option values that can keep every candidate from the limits, and changes to values that do not."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from sim.advice.levers import HEARTBEATS, MORE_THREADS, SOON_NS, TOLERABLE_FAILURES, WITHOUT_END
from sim.advice.settings import Change, Lever, options_missing_in_release
from sim.model.schema.option_values import OptionValue, option_values
from sim.model.units import MS, SECOND
from sim.model.value_types import BUFFER_TIMEOUT

if TYPE_CHECKING:
    from sim.model.scenario import Scenario


# ---- Limiting keys. A Flink key binds (is limiting) if its value delays something: a checkpoint waits for min-pause, a restart
# for its delay, an upload for a thread. For each key that may bind, this table has a value with which it does not.
#
# If no setting keeps the limits, all of these keys are set to non-binding values. If the limits are kept then, some of the
# keys are the cause, and no more machines are needed.

DEFAULT = "default"
"""Placeholder for the default of the option, which is Flink's."""


@dataclass(frozen=True, slots=True)
class Constraint:
    """The values of an option that do not bind: at most `value`, at least `value`, or only `value` ("instead")."""

    bound: Literal["at most", "at least", "instead"]
    value: Any
    costs: str

    def relaxed(self, option: OptionValue) -> Any:
        """Return the non-binding value, or None if the current value of the option does not bind."""
        value, record = option.value, option.key.record
        free = record.default if self.value == DEFAULT else self.value
        if value is None and self.bound != "instead":
            return None  # unlimited, or derived from another option
        if self.bound == "instead":
            return free if value != free else None
        number = math.inf if record.leaf is BUFFER_TIMEOUT and value < 0 else value
        return free if (number < free if self.bound == "at least" else number > free) else None


_VALUES: dict[Literal["at most", "at least", "instead"], dict[str, tuple[Any, str] | str]] = {
    "at most": {
        "checkpoint.min-pause": (0, "checkpoints may follow each other without a pause"),
        "checkpoint.max-concurrent": (1, "a checkpoint begins when the one before it has ended"),
        "checkpoint.subtasks-per-channel-state-file": (1, "more files for data in flight"),
        "job.VERTEX.state.lsm.memtable": "more files of level 0",
        "job.VERTEX.state.changelog.materialize": "state is written in full more often",
        "job.VERTEX.state.changelog.threshold": "more uploads",
        "job.VERTEX.state.changelog.batch-delay": "more uploads",
        "job.VERTEX.state.changelog.batch-size": "more uploads",
        "cluster.network.segment-size": "more buffers to handle, and less in flight",
        "cluster.network.buffers-per-channel": "less in flight",
        "cluster.network.floating-buffers-per-gate": "less in flight",
        "cluster.network.max-buffers-per-channel": "less in flight",
        "cluster.network.buffer-timeout": (100 * MS, "more and smaller buffers"),
        "cluster.network.debloat.target": "smaller buffers",
        "cluster.network.debloat.period": "buffer sizes change more often",
        "cluster.network.debloat.samples": "buffer sizes follow short bursts",
        "cluster.network.debloat.threshold": "buffer sizes change more often",
        "cluster.network.debloat.min": "smaller buffers",
        "storage.object-store.part": "more requests",
        "restart.delay": (SOON_NS, "a crash-looping job restarts more often"),
        "restart.initial": (SOON_NS, "a crash-looping job restarts more often"),
        "restart.multiplier": "a crash-looping job restarts more often",
        "restart.max": (SOON_NS, "a crash-looping job restarts more often"),
        "restart.within": "a crash-looping job never reaches FAILED",
        "restart.heartbeat-timeout": "a TaskManager that pauses this long, e.g. for garbage collection, is considered lost",
        "restart.heartbeat-interval": (SOON_NS, "more messages"),
        "restart.slot-check": "slot requests are checked more often",
        "restart.stabilization": (SECOND, "the job may start with fewer slots"),
        "restart.cooldown": (SECOND, "more restarts while slots come"),
        "restart.rescale-stabilization": (SECOND, "more restarts while slots come"),
        "restart.rescale-delay": (SECOND, "rescaling reprocesses more records"),
    },
    "at least": {
        "checkpoint.timeout": (3600 * SECOND, "a checkpoint that hangs is noticed later"),
        "checkpoint.tolerable-failed": (TOLERABLE_FAILURES, "the job keeps running longer while checkpoints fail"),
        "checkpoint.transfer-threads": (MORE_THREADS, "more requests to storage at a time"),
        "job.VERTEX.state.lsm.table": "larger files are merged",
        "job.VERTEX.state.lsm.base": "larger files are merged",
        "job.VERTEX.state.changelog.upload-threads": "more requests to storage at a time",
        "job.VERTEX.state.changelog.upload-timeout": "an upload that hangs is noticed later",
        "job.VERTEX.state.changelog.upload-attempts": "an upload that fails is noticed later",
        "storage.inline-threshold": "a larger _metadata",
        "storage.object-store.parallel-parts": "more requests at a time",
        "restart.attempts": (WITHOUT_END, "a crash-looping job never reaches FAILED"),
        "restart.rate": (100, "a crash-looping job never reaches FAILED"),
        "restart.resource-wait": "a job without slots fails later",
    },
    "instead": {
        "checkpoint.local-recovery": (True, "a second copy of state on the disk of each TaskManager"),
        "checkpoint.incremental": (True, "more files in storage; a restore reads more of them"),
        "checkpoint.interruptible-timers": (True, "records come between the timers of a watermark"),
        "job.VERTEX.state.changelog.storage": ("filesystem", "the log is written to checkpoint storage"),
        "restart.strategy": ("exponential-delay", "a crash-looping job restarts more often"),
        "restart.failover": ("region", "regions restart alone"),
        "restart.heartbeat-failures": (2, "a TaskManager is lost after two failed heartbeats in a row"),
        "restart.scheduler": ("default", "the job waits for all of its slots"),
    },
}
"""Kind of bound -> {option: (non-binding value, its cost), or the cost alone if the value is the default}."""
CONSTRAINTS = {
    option: Constraint(bound, DEFAULT, value) if isinstance(value, str) else Constraint(bound, *value)
    for bound, options in _VALUES.items()
    for option, value in options.items()
}
"""Option -> its non-binding values.  Other options that may bind are changed by levers and candidates (docs/adding.md)."""
_FAILURE_OPTIONS = ("checkpoint.timeout", "checkpoint.tolerable-failed")
"""Options that matter only if checkpoints fail."""
_RECOVERY_OPTION_PREFIXES = ("restart.", "checkpoint.local-recovery")
"""Prefixes of options that matter only for recovery."""


def relaxations(scenario: Scenario, breaks: Sequence[str], *, fails: bool) -> Iterator[Change]:
    """Yield the change to a non-binding value, for each Flink key that may bind.

    `breaks`: the exceeded limits.  `fails`: True if checkpoints fail.  Keys that concern neither are left out.
    """
    for option in option_values(scenario):
        path = ".".join(option.key.path)
        constraint = CONSTRAINTS.get(path)
        concerns = (
            fails
            if path in _FAILURE_OPTIONS
            else "recovery_ms" in breaks
            if path.startswith(_RECOVERY_OPTION_PREFIXES)
            else True
        )
        value = (
            constraint.relaxed(option) if constraint is not None and concerns and _applies(scenario, option) else None
        )
        if constraint is not None and value is not None:
            name, written = option.path.rpartition(".")[2], option.scenario_value(value)
            of_cluster = HEARTBEATS if path.startswith("restart.heartbeat") else None
            caution, short = (of_cluster.caution, of_cluster.short_caution) if of_cluster else ("", "")
            lever = Lever(name, costs=constraint.costs, caution=caution, short_caution=short)
            section, is_debloating = option.path.rpartition(".")[0], path.startswith("cluster.network.debloat.")
            # the section is replaced as a whole, since `debloat: on` has no keys
            point = {section: {name: written}} if is_debloating else {option.path: written}
            if options_missing_in_release(scenario, point):
                continue
            yield Change(lever, f"{name} {str(written).lower()}", point)


def _applies(scenario: Scenario, option: OptionValue) -> bool:
    """Return False for options that have no effect in this scenario."""
    states = [vertex.state for vertex in scenario.job.vertices if vertex.state is not None]
    needed: dict[str, bool] = {
        "checkpoint.incremental": any(state.kind.keeps_files for state in states),
        "checkpoint.transfer-threads": any(state.kind.keeps_files for state in states),
        "checkpoint.local-recovery": bool(states),
        "checkpoint.interruptible-timers": bool(scenario.job.event_time_windows)
        and scenario.checkpoint.barriers.record.overtakes,
        "checkpoint.subtasks-per-channel-state-file": scenario.checkpoint.barriers.record.overtakes,
        "restart.strategy": scenario.restart.strategy == "none",
    }
    return needed.get(option.path, True)
