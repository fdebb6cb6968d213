"""Infer checkpoint and cluster options."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from datetime import timedelta

from pydantic import TypeAdapter

from sim.jobs.infer.cores import is_unaligned, task_managers_of, typical_checkpoints
from sim.jobs.infer.draft import Draft, format_whole_ms
from sim.jobs.infer.file_history import seconds_between
from sim.jobs.source.recorded_job import RecordingError
from sim.jobs.source.rest_answers import CheckpointConfig
from sim.jobs.source.rest_job import RestJob
from sim.model.checkpoint import barriers_of
from sim.model.cluster import profile_of
from sim.model.schema.flink_keys import INTERVAL, UNLIMITED, current_names, has_key, modelled_keys
from sim.model.text import one_line
from sim.model.units import MS, SECOND, UnitError, parse_flink_duration

# ---- Options of the job's checkpoints and of its cluster.
#
# A REST answer contains the effective checkpoint configuration of a job.  All other options come from the configuration
# of the cluster.  No answer contains other options that the program sets.

TIMEOUT, MIN_PAUSE = "execution.checkpointing.timeout", "execution.checkpointing.min-pause"
TOLERABLE = "execution.checkpointing.tolerable-failed-checkpoints"
BARRIER_OPTIONS = (
    "execution.checkpointing.mode",
    "execution.checkpointing.unaligned.enabled",
    "execution.checkpointing.aligned-checkpoint-timeout",
)
DEFAULT_TIMEOUT_MS = 600_000
CHECKPOINTS_PER_RUN = 12
MIN_RUN_MS, MAX_RUN_MS = 60_000, 3_600_000
MIN_INTERVAL_MS = 10  # CheckpointCoordinatorConfiguration.MINIMAL_CHECKPOINT_TIME
NEVER_MS = 10**12  # Long.MAX_VALUE, or any other number that means "never"
CHECKPOINT_FIELDS = {
    INTERVAL: "interval",
    TIMEOUT: "timeout",
    MIN_PAUSE: "min_pause",
    "execution.checkpointing.max-concurrent-checkpoints": "max_concurrent",
    TOLERABLE: "tolerable_failed_checkpoints",
    **dict.fromkeys(BARRIER_OPTIONS, "mode"),
    "execution.checkpointing.checkpoints-after-tasks-finish": "checkpoints_after_tasks_finish",
}
"""Option -> field of /jobs/:id/checkpoints/config that contains its effective value, in versions that have it."""
INFERRED_OPTIONS = frozenset(
    {
        "state.backend.type",
        "parallelism.default",
        "pipeline.max-parallelism",
        "state.changelog.enabled",
        "execution.checkpointing.incremental",
        "state.changelog.periodic-materialize.interval",
        "state.changelog.storage",
        "table.exec.state.ttl",
        "taskmanager.numberOfTaskSlots",
    }
)
"""Options whose effective value is inferred from other answers."""
REQUIRED_SWITCHES = {
    "taskmanager.network.memory.buffer-debloat.": "taskmanager.network.memory.buffer-debloat.enabled",
    "taskmanager.network.adaptive-partitioner.": "taskmanager.network.adaptive-partitioner.enabled",
    "execution.checkpointing.file-merging.": "execution.checkpointing.file-merging.enabled",
}
"""Prefix of options -> the option that has to be true for them to take effect."""


def infer_checkpoint(draft: Draft, job: RestJob) -> None:
    """Set `checkpoint:`."""
    config = job.checkpoint_config
    if not config.is_known:
        points, configured = typical_checkpoints(job), job.options
        every = format_whole_ms(max(1000 * seconds_between(points), MIN_INTERVAL_MS)) if points[1:] else "1 min"
        why = "the time between two checkpoints of the history" if points[1:] else "every minute"
        if INTERVAL not in configured:
            question = "How often is a checkpoint taken?"
            draft.ask("checkpoint.interval", every, question, f"{why}: /jobs/:id/checkpoints/config is missing.")
        ask_for_timeout(draft, configured, max((point.end_to_end_duration for point in points), default=0))
        ask_for_barriers(
            draft, configured, "unaligned, as in the history." if is_unaligned(job) else "aligned, Flink's default."
        )
        return
    for name, value_ms in (("interval", config.interval), ("timeout", config.timeout)):
        if value_ms is not None and 0 < value_ms < MIN_INTERVAL_MS:
            place = f"{job.snapshot.source}: /checkpoints/config"
            raise RecordingError(f"{place}: {name} is {value_ms} ms; Flink takes {MIN_INTERVAL_MS} ms or more")
    draft.inferred += 1
    draft.comments["checkpoint"] = "from /jobs/:id/checkpoints/config"
    draft.put("checkpoint.interval", format_whole_ms(config.interval) if 0 < config.interval < NEVER_MS else "off")
    draft.put("checkpoint.barriers", _barriers_section(config))
    for key, value_ms in (("timeout", config.timeout), ("min-pause", config.min_pause)):
        if value_ms is not None and value_ms > 0:
            draft.put(f"checkpoint.{key}", format_whole_ms(min(value_ms, NEVER_MS)))
    if (concurrent := config.max_concurrent or 1) > 1 and not config.unaligned_checkpoints:
        draft.put("checkpoint.max-concurrent", min(concurrent, 10**6))
    if config.tolerable_failed_checkpoints is not None:
        draft.put("checkpoint.tolerable-failed", min(max(config.tolerable_failed_checkpoints, 0), 2**31 - 1))
    if config.checkpoints_after_tasks_finish is False:
        draft.put("checkpoint.finish", "off")


def ask_for_timeout(draft: Draft, configured: Mapping[str, str], longest_ms: int) -> None:
    """Ask for the timeout of checkpoints, unless it is configured.  `longest_ms` is the longest known duration."""
    if TIMEOUT not in configured:
        timeout = format_whole_ms(min(max(DEFAULT_TIMEOUT_MS, longest_ms), NEVER_MS))
        why = f"{timeout}{f', the longest took {longest_ms:,} ms' if longest_ms > 0 else ''}."
        draft.ask("checkpoint.timeout", timeout, f"Which {TIMEOUT} is configured?", why)


def ask_for_barriers(draft: Draft, configured: Mapping[str, str], assumed: str) -> None:
    """Ask for the kind of barriers, unless it is configured.  The first word of `assumed` is the assumption."""
    if not configured.keys() & set(BARRIER_OPTIONS):
        draft.ask("checkpoint.barriers", assumed.partition(",")[0], "Are checkpoints aligned or unaligned?", assumed)


def _barriers_section(config: CheckpointConfig) -> str | dict[str, str]:
    timeout = config.aligned_checkpoint_timeout or 0
    exactly_once = config.mode.lower() != "at_least_once"
    kind = barriers_of(
        unaligned=bool(config.unaligned_checkpoints), has_deadline=timeout > 0, exactly_once=exactly_once
    )
    return {kind.name: format_whole_ms(timeout)} if kind.has_deadline else kind.name


def run_ns(each_ms: float, count: int = CHECKPOINTS_PER_RUN) -> int:
    """Return the length of a run with `count` checkpoints, in whole seconds."""
    return round(min(max(count * each_ms, MIN_RUN_MS), MAX_RUN_MS) / 1000) * SECOND


def put_version(draft: Draft, version: str, origin: str) -> None:
    """Set `cluster.version`, which selects known issues, and `cluster.profile`; ask for them if `version` is not a release."""
    try:
        draft.put("cluster.profile", profile_of(version), origin)
        draft.put("cluster.version", version, origin)
    except ValueError:
        draft.ask("cluster.profile", "2.x", "Which version of Flink runs it?", "2.x.")


def infer_cluster(draft: Draft, job: RestJob) -> None:
    """Set `cluster:` and `flink:`."""
    version = job.flink_version
    put_version(draft, version, f"Flink {version[:20]} in /config")
    _infer_placement(draft, job)
    config = job.checkpoint_config
    answered = {key for key, name in CHECKPOINT_FIELDS.items() if config.is_known and getattr(config, name) is not None}
    infer_options(draft, job.options, version, INFERRED_OPTIONS | answered)
    for provider, keys in _PROVIDER_KEYS.items():
        if named := sorted(keys & job.options.keys()):
            draft.put("restart.provider", provider, f"{named[0]} in /jobmanager/config")
    _ask_for_replacement(draft, job)
    _put_restart_strategy(draft, job.job_config.execution_config.restart_strategy)


def _put_restart_strategy(draft: Draft, text: str) -> None:
    """Replace the configured restart strategy by the one that Flink describes in `text`, if that can be parsed."""
    if not (restart := _parse_restart_strategy(text)):
        if text and not text.startswith("Cluster level default"):
            question = f"What are the parameters of its restart strategy, '{one_line(text, 200)}'?"
            draft.remark_question(question, "those in the configuration of the cluster, or Flink's defaults.")
        return
    flink = draft.document.setdefault("flink", {})
    current, kind = current_names(), "restart-strategy.type"
    if not has_key(draft.document["cluster"]["profile"], kind):
        restart = {"restart-strategy": restart.pop(kind), **restart}
    for key in [key for key in flink if current.get(key, key).startswith("restart-strategy")]:
        del flink[key]
    flink.update(restart)
    draft.inferred += 1
    draft.comments[f"flink.{next(iter(restart))}"] = "from /jobs/:id/config"


def configured_ms(options: Mapping[str, str], key: str) -> int:
    """Return a duration of Flink's configuration, or 0 if it is missing or invalid."""
    with suppress(UnitError, KeyError):
        return parse_flink_duration(options[key]) // MS
    return 0


def _ask_for_replacement(draft: Draft, job: RestJob) -> None:
    """Ask how long it takes to replace a lost TaskManager, unless the others always have enough free slots."""
    managers = [manager for manager in job.task_managers if manager.slots > 0 and manager.free_slots >= 0]
    if not managers or len(managers) < len(job.task_managers):
        return
    free = sum(manager.free_slots for manager in managers)
    if any(free - manager.free_slots < manager.slots - manager.free_slots for manager in managers):
        draft.ask(
            "restart.replacement",
            f"{ASSUMED_REPLACEMENT_S} s",
            f"If a task manager is lost, after how long does another one offer its slots? {free or 'None'} of "
            f"{sum(manager.slots for manager in managers)} slots {'is' if free < 2 else 'are'} free.",
            f"{ASSUMED_REPLACEMENT_S} s: its process or container is restarted.",
        )


ASSUMED_REPLACEMENT_S = 30
"""Assumed time until a lost TaskManager is replaced.  Flink's REST API does not report it."""
_PROVIDER_KEYS = {
    "kubernetes": {"kubernetes.cluster-id"},
    "yarn": {"yarn.application.id", "yarn.appmaster.vcores", "yarn.application.name"},
}
"""Resource provider that starts TaskManagers -> keys that only its JobManagers have."""


def infer_options(draft: Draft, options: Mapping[str, str], version: str, answered: Collection[str]) -> None:
    """Set `flink:` from the configuration of a cluster, except options that are `answered` otherwise."""
    modelled = {key: value for key, value in _modelled_options(options, version) if key not in answered}
    if modelled:
        draft.document.setdefault("flink", {}).update(modelled)
        draft.inferred += len(modelled)
        draft.comments["flink"] = "from the configuration of the cluster; options set by the program are not reported"


def _modelled_options(options: Mapping[str, str], version: str) -> Iterator[tuple[str, str | bool]]:
    """Yield the options that a scenario models."""
    modelled = modelled_keys()
    for key, value in sorted(options.items()):
        if key not in modelled or (not version.startswith("1.") and modelled[key].flink.last == "1.20"):
            continue
        switch = next((switch for start, switch in REQUIRED_SWITCHES.items() if key.startswith(start)), key)
        if str(options.get(switch, "")).lower() != "false" and switch in options:
            yield key, {"true": True, "false": False}.get(value.lower(), value)
    if options.get("scheduler-mode", "").lower() == "reactive":
        yield "jobmanager.scheduler", "adaptive"


_iso_duration = TypeAdapter(timedelta)


def _parse_restart_strategy(text: str) -> dict[str, str | int]:
    """Return the options of a restart strategy, parsed from Flink's description (RestartStrategies).

    They are empty if the configuration of the cluster applies.
    """
    if "deactivated" in text.lower():
        return {"restart-strategy.type": "none"}
    fixed = re.match(r"Restart with fixed delay \((?:(\d+) ?ms|(PT[\dHMS.]+))\)\. #(\d+)", text)
    if fixed is None:
        return {}
    delay_ms = int(fixed[1]) if fixed[1] else round(_iso_duration.validate_python(fixed[2]) / timedelta(milliseconds=1))
    return {
        "restart-strategy.type": "fixed-delay",
        "restart-strategy.fixed-delay.attempts": min(int(fixed[3]), int(UNLIMITED)),
        "restart-strategy.fixed-delay.delay": f"{delay_ms} ms",
    }


def _infer_placement(draft: Draft, job: RestJob) -> None:
    """Set the placement: on one TaskManager, spread over several with local channels, or without any."""
    managers_of = task_managers_of(job)
    hosts = {manager for subtasks in managers_of.values() for manager in subtasks.values()}
    if not hosts or "" in hosts:
        draft.ask(
            "cluster.placement", "spread", "Which tasks share a task manager?", "one task manager per subtask index."
        )
        return
    used = [
        (managers_of[edge.upstream].values(), managers_of[vertex.name].values())
        for vertex in job.vertices
        for edge in vertex.inputs
    ]
    if not used:
        return
    are_local = any(set(writers) & set(readers) for writers, readers in used)
    kind = "single" if len(hosts) == 1 else "spread" if are_local else "isolated"
    shared = (
        ""
        if len(hosts) == 1
        else ", which tasks of one edge share"
        if are_local
        else ", none of which tasks of one edge share"
    )
    managers = f"{len(hosts)} task managers" if len(hosts) > 1 else "one task manager"
    draft.put("cluster.placement", kind, f"{managers}{shared} (/jobs/:id/vertices/:id)")
    if kind == "spread":
        slots = max(max(Counter(managers.values()).values()) for managers in managers_of.values())
        draft.put("cluster.slots", slots, "subtasks of one vertex on a task manager, at most")
