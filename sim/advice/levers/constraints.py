"""Keys of Flink that may keep a setting from its limits, whatever its barriers and its interval: each at a value that does not.

A checkpoint waits for a pause, a restart for a delay, an upload for a thread.  Where nothing that was tried keeps the limits, all of
these are set to values that bind nothing.  If the limits are kept then, no machine is missing: one of these keys is what binds.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sim.advice.levers.flight import TOLERATED
from sim.advice.levers.lever import PARTS, Change, Lever
from sim.advice.levers.outage import HEARTBEATS, SOON_NS, WITHOUT_END
from sim.advice.levers.state import MORE_THREADS
from sim.model.catalogs.option import Kind
from sim.scenario.flink.text import OptionValue, option_values
from sim.units import MS, SECOND

if TYPE_CHECKING:
    from sim.model.scenario import Scenario

DEFAULT = "default"
"""Stands for the default of the option, which is Flink's."""


@dataclass(frozen=True, slots=True)
class Constraint:
    """The values of an option that bind nothing.  All None: those that are not `instead`."""

    at_most: Any = None
    at_least: Any = None
    instead: Any = None  # the only one
    costs: str = "what it was set for"

    def relaxed(self, option: OptionValue) -> Any:
        """The value that binds nothing; None: the present one does not bind."""
        value, default = option.value, option.option.record.default
        least, most, only = (default if bound == DEFAULT else bound for bound in (self.at_least, self.at_most, self.instead))
        if only is not None:
            return only if value != only else None
        if value is None:
            return None  # there is no limit, or the option follows another one
        number = math.inf if option.option.record.kind is Kind.BUFFER_TIMEOUT and value < 0 else value
        if least is not None:
            return least if number < least else None
        return most if number > most else None


CONSTRAINTS: dict[str, Constraint] = {
    "checkpoint.min-pause": Constraint(at_most=0, costs="checkpoints may follow each other without a pause"),
    "checkpoint.max-concurrent": Constraint(at_most=1, costs="a checkpoint begins when the one before it has ended"),
    "checkpoint.timeout": Constraint(at_least=3600 * SECOND, costs="a checkpoint that hangs is noticed later"),
    "checkpoint.tolerable-failed": Constraint(at_least=TOLERATED, costs="a job whose checkpoints fail goes on for longer"),
    "checkpoint.transfer-threads": Constraint(at_least=MORE_THREADS, costs="more requests to storage at a time"),
    "checkpoint.subtasks-per-channel-state-file": Constraint(at_most=1, costs="more files for data in flight"),
    "checkpoint.local-recovery": Constraint(instead=True, costs="a second copy of state on the disk of each TaskManager"),
    "checkpoint.incremental": Constraint(instead=True, costs="more files in storage; a restore reads more of them"),
    "checkpoint.interruptible-timers": Constraint(instead=True, costs="records come between the timers of a watermark"),
    "job.VERTEX.state.lsm.memtable": Constraint(at_most=DEFAULT, costs="more files of level 0"),
    "job.VERTEX.state.lsm.table": Constraint(at_least=DEFAULT, costs="larger files are merged"),
    "job.VERTEX.state.lsm.base": Constraint(at_least=DEFAULT, costs="larger files are merged"),
    "job.VERTEX.state.changelog.materialize": Constraint(at_most=DEFAULT, costs="state is written in full more often"),
    "job.VERTEX.state.changelog.threshold": Constraint(at_most=DEFAULT, costs="more uploads"),
    "job.VERTEX.state.changelog.batch-delay": Constraint(at_most=DEFAULT, costs="more uploads"),
    "job.VERTEX.state.changelog.batch-size": Constraint(at_most=DEFAULT, costs="more uploads"),
    "job.VERTEX.state.changelog.upload-threads": Constraint(at_least=DEFAULT, costs="more requests to storage at a time"),
    "job.VERTEX.state.changelog.upload-timeout": Constraint(at_least=DEFAULT, costs="an upload that hangs is noticed later"),
    "job.VERTEX.state.changelog.upload-attempts": Constraint(at_least=DEFAULT, costs="an upload that fails is noticed later"),
    "job.VERTEX.state.changelog.storage": Constraint(instead="filesystem", costs="the log is written to checkpoint storage"),
    "cluster.network.segment-size": Constraint(at_most=DEFAULT, costs="more buffers to handle, and less in flight"),
    "cluster.network.buffers-per-channel": Constraint(at_most=DEFAULT, costs="less in flight"),
    "cluster.network.floating-buffers-per-gate": Constraint(at_most=DEFAULT, costs="less in flight"),
    "cluster.network.max-buffers-per-channel": Constraint(at_most=DEFAULT, costs="less in flight"),
    "cluster.network.buffer-timeout": Constraint(at_most=100 * MS, costs="more and smaller buffers"),
    "cluster.network.debloat.target": Constraint(at_most=DEFAULT, costs="smaller buffers"),
    "cluster.network.debloat.period": Constraint(at_most=DEFAULT, costs="buffer sizes change more often"),
    "cluster.network.debloat.samples": Constraint(at_most=DEFAULT, costs="buffer sizes follow short bursts"),
    "cluster.network.debloat.threshold": Constraint(at_most=DEFAULT, costs="buffer sizes change more often"),
    "cluster.network.debloat.min": Constraint(at_most=DEFAULT, costs="smaller buffers"),
    "storage.inline-threshold": Constraint(at_least=DEFAULT, costs="a larger _metadata"),
    "storage.object-store.part": Constraint(at_most=DEFAULT, costs="more requests"),
    "storage.object-store.parallel-parts": Constraint(at_least=DEFAULT, costs="more requests at a time"),
    "restart.strategy": Constraint(instead="exponential-delay", costs="a job that fails again and again restarts more often"),
    "restart.delay": Constraint(at_most=SOON_NS, costs="a job that fails again and again restarts more often"),
    "restart.attempts": Constraint(at_least=WITHOUT_END, costs="a job that fails again and again does not end"),
    "restart.initial": Constraint(at_most=SOON_NS, costs="a job that fails again and again restarts more often"),
    "restart.multiplier": Constraint(at_most=DEFAULT, costs="a job that fails again and again restarts more often"),
    "restart.max": Constraint(at_most=SOON_NS, costs="a job that fails again and again restarts more often"),
    "restart.rate": Constraint(at_least=100, costs="a job that fails again and again does not end"),
    "restart.within": Constraint(at_most=DEFAULT, costs="a job that fails again and again does not end"),
    "restart.failover": Constraint(instead="region", costs="regions restart alone"),
    "restart.heartbeat-timeout": Constraint(at_most=DEFAULT, costs="a TaskManager that pauses for as long is taken for lost"),
    "restart.heartbeat-interval": Constraint(at_most=SOON_NS, costs="more messages"),
    "restart.heartbeat-failures": Constraint(instead=2, costs="two heartbeats that fail in a row lose a TaskManager"),
    "restart.slot-check": Constraint(at_most=DEFAULT, costs="slots are looked for more often"),
    "restart.scheduler": Constraint(instead="default", costs="the job waits for all of its slots"),
    "restart.stabilization": Constraint(at_most=SECOND, costs="the job may start with fewer slots"),
    "restart.cooldown": Constraint(at_most=SECOND, costs="more restarts while slots come"),
    "restart.rescale-stabilization": Constraint(at_most=SECOND, costs="more restarts while slots come"),
    "restart.rescale-delay": Constraint(at_most=SECOND, costs="a rescaled job processes more records again"),
    "restart.resource-wait": Constraint(at_least=DEFAULT, costs="a job without slots fails later"),
}
"""Option -> the values of it that bind nothing.  Levers and candidates change the others that may bind (docs/adding.md)."""
_OF_FAILURES = ("checkpoint.timeout", "checkpoint.tolerable-failed")
"""Options that matter only where checkpoints fail ..."""
_OF_RECOVERY = ("restart.", "checkpoint.local-recovery")
"""... and those that only a recovery depends on."""


def relaxations(scenario: Scenario, breaks: Sequence[str], *, fails: bool) -> Iterator[Change]:
    """Each key of Flink that may bind, at a value that does not.

    `breaks`: the limits that are broken.  `fails`: checkpoints fail.
    """
    for option in option_values(scenario):
        path = ".".join(option.option.path)
        constraint = CONSTRAINTS.get(path)
        concerns = fails if path in _OF_FAILURES else "recovery_ms" in breaks if path.startswith(_OF_RECOVERY) else True
        value = constraint.relaxed(option) if constraint is not None and concerns and _applies(scenario, option) else None
        if constraint is not None and value is not None:
            name, written = option.key.rpartition(".")[2], option.written(value)
            of_cluster = HEARTBEATS if path.startswith("restart.heartbeat") else None
            caution, short = (of_cluster.caution, of_cluster.short_caution) if of_cluster else ("", "")
            lever = Lever(name, frozenset(PARTS), lambda _: iter(()), costs=constraint.costs, caution=caution, short_caution=short)
            section, is_debloating = option.key.rpartition(".")[0], path.startswith("cluster.network.debloat.")
            point = {section: {name: written}} if is_debloating else {option.key: written}  # `debloat: on` has no keys to set
            yield Change(lever, f"{name} {str(written).lower()}", point)


def _applies(scenario: Scenario, option: OptionValue) -> bool:
    """Whether an option that is a switch would do anything."""
    states = [vertex.state for vertex in scenario.job.vertices if vertex.state is not None]
    needed: dict[str, bool] = {
        "checkpoint.incremental": any(state.kind.keeps_files for state in states),
        "checkpoint.transfer-threads": any(state.kind.keeps_files for state in states),
        "checkpoint.local-recovery": bool(states),
        "checkpoint.interruptible-timers": bool(scenario.job.event_time_windows) and scenario.checkpoint.barriers.record.overtakes,
        "checkpoint.subtasks-per-channel-state-file": scenario.checkpoint.barriers.record.overtakes,
        "restart.strategy": scenario.restart.strategy == "none",
    }
    return needed.get(option.key, True)
