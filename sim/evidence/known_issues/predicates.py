"""The predicates of conditions: named properties of a scenario, each with a sentence where it holds, and the place of the model that tells.

A predicate is true, false, or None: the event that it asks for (a failure, a rescale, a drain) is not in the scenario, and may happen.
A key of Flink or its operator that is not modelled is true or false where it is written, and None where it is not.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from sim.model.scenario import Scenario

Truth = bool | None


class Predicate(NamedTuple):
    """Whether a value at a place of the scenario is what is asked for: the value that an entry gives, or `wanted`, or any but no and 0."""

    sentence: str  # says that it holds; {}: the value that an entry gives
    path: str  # names of fields; of a tuple, every element counts.  Empty: no scenario tells
    wanted: Any = None
    is_event: bool = False

    def holds(self, scenario: Scenario, given: str) -> Truth:
        if self.path == "written_keys":
            value = dict(scenario.written_keys).get(given)
            return None if value is None else value.lower() not in ("false", "off", "none", "0", "")
        wanted = given or self.wanted
        found = self.path and any(bool(value) if wanted is None else value == wanted for value in _values(scenario, self.path.split(".")))
        return bool(found) or (None if self.is_event or not self.path else False)


def _values(node: Any, path: list[str]) -> Iterator[Any]:
    if isinstance(node, tuple):
        for item in node:
            yield from _values(item, path)
    elif node is not None:
        yield from _values(getattr(node, path[0]), path[1:]) if path else [node]


PREDICATES = {
    # checkpoints
    "barriers-overtake": Predicate("barriers may overtake data", "checkpoint.barriers.record.overtakes"),
    "barriers": Predicate("barriers are {}", "checkpoint.barriers.kind"),
    "checkpoints": Predicate("the job takes checkpoints", "checkpoint.interval_ns"),
    "one-checkpoint-at-a-time": Predicate("one checkpoint runs at a time", "checkpoint.max_concurrent", 1),
    "interruptible-timers": Predicate("timers are interruptible", "checkpoint.interruptible_timers"),
    "checkpoints-during-recovery": Predicate("checkpoints are taken during recovery", "checkpoint.during_recovery"),
    "final-checkpoint": Predicate("checkpoints go on after tasks finish", "checkpoint.finish", "flink"),
    "file-merging": Predicate("files of checkpoints are merged", "storage.merging"),
    # state
    "backend": Predicate("keyed state is in {}", "job.vertices.state.backend"),
    "changelog": Predicate("state changes are logged", "job.vertices.state.changelog"),
    "incremental": Predicate("checkpoints are incremental", "checkpoint.state.incremental"),
    "local-recovery": Predicate("tasks recover from local copies", "checkpoint.state.local_recovery"),
    "union-state": Predicate("an operator keeps union list state", "job.vertices.union_state"),
    # the job
    "legacy-source": Predicate("a source is a legacy SourceFunction", "job.vertices.source.waits", "lock"),
    "bounded": Predicate("a source is bounded", "job.vertices.source.total"),
    "silent-subtasks": Predicate("subtasks of a source have no records", "job.vertices.source.silent"),
    "watermark-alignment": Predicate("watermarks are aligned", "job.vertices.source.watermark.alignment"),
    "idle-timeout": Predicate("sources may be idle", "job.vertices.source.watermark.idle_timeout_ns"),
    "windows": Predicate("records wait in windows", "job.vertices.window"),
    "event-time-windows": Predicate("watermarks end windows", "job.event_time_windows"),
    "overtaken-edge": Predicate("barriers may overtake on an exchange (hash, rebalance)", "job.vertices.inputs.shipping.overtaken", True),
    "aligned-edge": Predicate("an exchange is pointwise or broadcast", "job.vertices.inputs.shipping.overtaken", False),
    # connectors
    "connector": Predicate("a connector is {}", "job.vertices.known_connector"),
    "committing-sink": Predicate("a sink commits when a checkpoint completes", "job.vertices.commit"),
    "committer": Predicate("a committer is {}", "job.vertices.commit.committer"),
    # cluster and restarts
    "operator": Predicate("keys of the Kubernetes operator or its autoscaler are written", "is_operated", is_event=True),
    "key": Predicate("{} is set", "written_keys"),
    "provider": Predicate("{} starts TaskManagers", "restart.provider"),
    "scheduler": Predicate("the scheduler is {}", "restart.scheduler"),
    # events
    "failure": Predicate("something fails", "faults", is_event=True),
    "job-manager-lost": Predicate("the JobManager is lost", "faults.what.__class__.__name__", "JobManagerDown", is_event=True),
    "failed-commit": Predicate("a commit fails", "faults.what.__class__.__name__", "FailedCommits", is_event=True),
    "rescale": Predicate("the job is rescaled", "rescale", is_event=True),
    "stop": Predicate("the job is stopped with a savepoint", "actions.stop", is_event=True),
    "drain": Predicate("the job is drained", "actions.stop", "drain", is_event=True),
    "claim": Predicate("it begins in claim mode {}", "instances.claim", is_event=True),
    # what no scenario says
    "asks": Predicate("{}", ""),
}


RANK = (False, None, True).index
"""Orders truths: the least is their conjunction, the greatest their disjunction (Kleene)."""


def negated(truth: Truth) -> Truth:
    return None if truth is None else not truth
