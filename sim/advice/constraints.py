"""Options of Flink whose values can keep every candidate from the limits, and changes that reset them to Flink's defaults.

An option binds if its value delays something, or lets it fail: a restart waits for slots, an upload for a thread.  If no
setting keeps the limits, all options that bind are reset.  If the limits are kept then, some of these options are the cause,
and no more machines are needed.  Options that are not listed here are changed by levers and candidates (docs/adding.md).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from sim.advice.levers import HEARTBEATS
from sim.advice.settings import Change, Lever
from sim.model.schema.option_values import OptionValue, option_values
from sim.model.value_types import BUFFER_TIMEOUT

if TYPE_CHECKING:
    from sim.model.scenario import Scenario

AT_MOST_DEFAULT = {
    "checkpoint.max-concurrent",
    "checkpoint.subtasks-per-channel-state-file",
    "job.VERTEX.state.lsm.memtable",
    "job.VERTEX.state.changelog.materialize",
    "job.VERTEX.state.changelog.threshold",
    "job.VERTEX.state.changelog.batch-delay",
    "job.VERTEX.state.changelog.batch-size",
    "cluster.network.segment-size",
    "cluster.network.buffers-per-channel",
    "cluster.network.floating-buffers-per-gate",
    "cluster.network.max-buffers-per-channel",
    "cluster.network.buffer-timeout",
    "cluster.network.debloat.target",
    "cluster.network.debloat.period",
    "cluster.network.debloat.samples",
    "cluster.network.debloat.threshold",
    "cluster.network.debloat.min",
    "storage.object-store.part",
    "restart.multiplier",
    "restart.heartbeat-timeout",
    "restart.slot-check",
    "restart.stabilization",
    "restart.cooldown",
    "restart.rescale-stabilization",
}
"""Options that bind if their values are larger than Flink's default."""
AT_LEAST_DEFAULT = {
    "job.VERTEX.state.lsm.table",
    "job.VERTEX.state.lsm.base",
    "job.VERTEX.state.changelog.upload-threads",
    "job.VERTEX.state.changelog.upload-timeout",
    "job.VERTEX.state.changelog.upload-attempts",
    "storage.inline-threshold",
    "storage.object-store.parallel-parts",
    "restart.resource-wait",
}
"""Options that bind if their values are smaller."""
EXACTLY_DEFAULT = {"job.VERTEX.state.changelog.storage", "restart.failover", "restart.scheduler"}
"""Options that bind if they have any other value."""


def is_binding(option: OptionValue) -> bool:
    """Return True if the value of an option may keep a setting from the limits, and Flink's default does not."""
    path, value, record = ".".join(option.key.path), option.value, option.key.record
    if path in EXACTLY_DEFAULT:
        return bool(value != record.default)
    if value is None:  # unlimited, or derived from another option
        return False
    number = math.inf if record.leaf is BUFFER_TIMEOUT and value < 0 else value
    return bool(
        (path in AT_MOST_DEFAULT and number > record.default) or (path in AT_LEAST_DEFAULT and number < record.default)
    )


def relaxations(scenario: Scenario) -> Iterator[Change]:
    """Yield a change for each option that binds, which resets it to Flink's default."""
    for option in filter(is_binding, option_values(scenario)):
        section, _, name = option.path.rpartition(".")
        written = option.scenario_value(option.key.record.default)
        # the section of debloating is replaced as a whole, since `debloat: on` has no keys
        point = {section: {name: written}} if section.endswith("network.debloat") else {option.path: written}
        of_cluster = HEARTBEATS if name.startswith("heartbeat") else None
        lever = Lever(
            name,
            costs="what its value was chosen for; the default is Flink's",
            caution=of_cluster.caution if of_cluster else "",
            short_caution=of_cluster.short_caution if of_cluster else "",
        )
        yield Change(lever, f"{name} {str(written).lower()}", point)
