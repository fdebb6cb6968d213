"""Infer checkpoint and cluster options, and how long snapshots block the task thread."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping
from contextlib import suppress
from fractions import Fraction
from statistics import median

from sim.jobs.infer.cores import Rest, is_unaligned, rests, task_managers_of, usual_checkpoints, works_before_barrier
from sim.jobs.infer.draft import Draft, Section, format_whole_ms
from sim.jobs.infer.file_history import seconds_between
from sim.jobs.source.recorded_job import RecordingError
from sim.jobs.source.rest_answers import CheckpointConfig
from sim.jobs.source.rest_job import Flows, RestJob, RestVertex
from sim.model.checkpoint import barriers_of
from sim.model.cluster import profile_of
from sim.model.quantities import NEGLIGIBLE_MS
from sim.model.schema.flink_keys import INTERVAL, UNLIMITED, current_names, has_key, modelled_keys
from sim.model.text import one_line
from sim.model.units import MS, SECOND, UnitError, format_share, parse_flink_duration

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
    "execution.checkpointing.file-merging.": "execution.checkpointing.file-merging.enabled",
}
"""Prefix of options -> the option that has to be true for them to take effect."""


def infer_checkpoint(draft: Draft, job: RestJob) -> None:
    """Set `checkpoint:`."""
    config = job.checkpoint_config
    if not config.is_known:
        points, configured = usual_checkpoints(job), with_current_names(job.options)
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
    put_restart_strategy(draft, job.job_config.execution_config.restart_strategy, "from /jobs/:id/config")


def put_restart_strategy(draft: Draft, text: str, origin: str) -> None:
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
    draft.comments[f"flink.{next(iter(restart))}"] = origin


def configured_ms(options: Mapping[str, str], key: str) -> int:
    """Return a duration of Flink's configuration, under its current or an older key.  0 if it is missing or invalid."""
    with suppress(UnitError, KeyError):
        return parse_flink_duration(with_current_names(options)[key]) // MS
    return 0


def with_current_names(options: Mapping[str, str]) -> dict[str, str]:
    """Return options with the current names of their keys."""
    names = current_names()
    return {names.get(key, key): value for key, value in options.items()}


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
    modelled, current = modelled_keys(), with_current_names(options)
    for key, value in sorted(current.items()):
        if key not in modelled or (not version.startswith("1.") and modelled[key].flink.last == "1.20"):
            continue
        switch = next((switch for start, switch in REQUIRED_SWITCHES.items() if key.startswith(start)), key)
        if str(current.get(switch, "")).lower() != "false" and switch in current:
            yield key, {"true": True, "false": False}.get(value.lower(), value)
    if current.get("scheduler-mode", "").lower() == "reactive":
        yield "jobmanager.scheduler", "adaptive"


def _parse_restart_strategy(text: str) -> dict[str, str | int]:
    """Return the options of a restart strategy, parsed from Flink's description.

    They are empty if the configuration of the cluster applies.

    The REST API has the descriptions of RestartStrategies, logs have those of RestartBackoffTimeStrategy.
    """
    if "deactivated" in text.lower() or text.startswith("NoRestartBackoff"):
        return {"restart-strategy.type": "none"}
    if fixed := re.match(r"Restart with fixed delay \((?:(\d+) ?ms|PT([\dHMS.]+))\)\. #(\d+)", text):
        delay_ms = int(fixed[1]) if fixed[1] else _iso_ms(fixed[2])
        return _restart_strategy_options("fixed-delay", {"attempts": fixed[3], "delay": str(delay_ms)})
    kind = re.match(r"(FixedDelay|ExponentialDelay|FailureRate)RestartBackoffTimeStrategy\(", text)
    values = dict(re.findall(r"(\w+)=([\d.]+)", text))
    if kind is None or not set(_STRATEGY_FIELDS[kind[1]].values()) <= values.keys():
        return {}
    return _restart_strategy_options(
        re.sub(r"(?<=[a-z])(?=[A-Z])", "-", kind[1]).lower(),
        {name: values[field] for name, field in _STRATEGY_FIELDS[kind[1]].items()},
    )


def _restart_strategy_options(kind: str, options: Mapping[str, str]) -> dict[str, str | int]:
    """Return Flink's keys of a restart strategy.  Durations in `options` are in ms; Integer.MAX_VALUE means unlimited."""
    keys: dict[str, str | int] = {"restart-strategy.type": kind}
    for name, value in options.items():
        number: str | int = (
            min(int(value), int(UNLIMITED)) if name in ("attempts", "max-failures-per-interval") else f"{value} ms"
        )
        keys[f"restart-strategy.{kind}.{name}"] = value if name in ("backoff-multiplier", "jitter-factor") else number
    return keys


_STRATEGY_FIELDS = {
    "FixedDelay": {"attempts": "maxNumberRestartAttempts", "delay": "backoffTimeMS"},
    "FailureRate": {
        "failure-rate-interval": "failuresIntervalMS",
        "delay": "backoffTimeMS",
        "max-failures-per-interval": "maxFailuresPerInterval",
    },
    "ExponentialDelay": {
        "initial-backoff": "initialBackoffMS",
        "max-backoff": "maxBackoffMS",
        "backoff-multiplier": "backoffMultiplier",
        "reset-backoff-threshold": "resetBackoffThresholdMS",
        "jitter-factor": "jitterFactor",
    },
}
"""Restart strategy -> option -> name of its field in `toString()` of the strategy's class."""


def _iso_ms(text: str) -> int:
    """Return the milliseconds of a duration such as ``1H2M3.5S`` (java.time.Duration, without PT)."""
    scale = {"H": 3_600_000, "M": 60_000, "S": 1000}
    return round(sum(float(number) * scale[unit] for number, unit in re.findall(r"(\d+(?:\.\d+)?)([HMS])", text)))


def _infer_placement(draft: Draft, job: RestJob) -> None:
    """Set the placement whose share of local channels (both tasks on one TaskManager) is nearest to that of the job."""
    managers_of = task_managers_of(job)
    hosts = {manager for subtasks in managers_of.values() for manager in subtasks.values()}
    if not hosts or "" in hosts:
        draft.ask(
            "cluster.placement", "spread", "Which tasks share a task manager?", "one task manager per subtask index."
        )
        return
    slots = max(max(Counter(upstream_places.values()).values()) for upstream_places in managers_of.values())
    local, spread, all_channels = 0, 0, 0
    for vertex in job.vertices:
        for edge in vertex.inputs:
            upstream_places, own_places = managers_of[edge.upstream], managers_of[vertex.name]
            all_channels += len(upstream_places) * len(own_places)
            local += _pairs_in_common(upstream_places.values(), own_places.values())
            spread += _pairs_in_common(
                *((subtask // slots for subtask in side) for side in (upstream_places, own_places))
            )
    if not all_channels:
        return
    shares = {"isolated": 0.0, "single": 1.0, "spread": spread / all_channels}
    share = local / all_channels
    nearest = min(shares, key=lambda kind: abs(shares[kind] - share))
    differs = abs(shares[nearest] - share) >= 0.005
    exact = f", {shares[nearest]:.0%} with the nearest placement there is" if differs else ""
    managers = f"{len(hosts)} task managers" if len(hosts) > 1 else "one task manager"
    draft.put(
        "cluster.placement",
        nearest,
        f"{managers}; {share:.0%} of the pairs of tasks share one{exact} (/jobs/:id/vertices/:id)",
    )
    if nearest == "spread":
        draft.put("cluster.slots", slots, "subtasks of one vertex on a task manager, at most")


def _pairs_in_common(writers: Iterable[Hashable], readers: Iterable[Hashable]) -> int:
    """Return the number of channels whose two subtasks are in the same place."""
    at = Counter(writers)
    return sum(at[reader_place] for reader_place in readers)


# ---- Time for which snapshots block the task thread, from the checkpoint history.
#
# Flink reports the synchronous phase but not work before the barrier, which `sim.jobs.infer.cores` infers.


def infer_pauses(section: Section, job: RestJob, vertex: RestVertex, *, with_sync: bool = True) -> None:
    """Set `snapshot: {pre-barrier, sync}` if not negligible; `with_sync` is False if the backend explains the sync phase."""
    remainders, works = rests(job)[vertex.name], works_before_barrier(job, vertex.name)
    pauses = [pre_barrier_ms(rest, works=works) for rest in remainders]
    if long := [pause for pause in pauses if pause]:
        count = f"{len(long)} of {len(pauses)} snapshots"
        origin = f"median of end-to-end duration less start delay, alignment, sync and async duration in {count}"
        if job.readers(vertex.name):
            origin += ", at most until its readers have the barrier"
        section.put("snapshot.pre-barrier", format_whole_ms(median(long)), origin)
        if len(long) * 20 < len(pauses) * 19:
            share = Fraction(round(100 * len(long) / len(pauses)), 100)
            section.put("snapshot.probability", format_share(share), f"{len(long)} / {len(pauses)}")
    syncs = [rest.subtask.checkpoint.sync for rest in remainders if rest.subtask.checkpoint.sync >= 0]
    if with_sync and not long and syncs and median(syncs) > NEGLIGIBLE_MS:
        origin = f"median sync duration of {len(syncs)} snapshots"
        section.put("snapshot.sync", format_whole_ms(median(syncs)), origin)


def busy_in_snapshots_ms(job: RestJob, vertex: RestVertex, flow: Flows) -> float:
    """Return the busy time that snapshots of a vertex took, summed over its subtasks [ms]."""
    works = works_before_barrier(job, vertex.name)
    return float(
        sum(
            pre_barrier_ms(rest, works=works) + max(rest.subtask.checkpoint.sync, 0)
            for rest in rests(job)[vertex.name]
            if flow.begun_ms <= rest.checkpoint.trigger_timestamp + max(rest.subtask.start_delay, 0) <= flow.ended_ms
        )
    )


def pre_barrier_ms(rest: Rest, *, works: bool) -> float:
    """Return the time of work before the barrier, or 0 if it is negligible."""
    return rest.before_barrier_ms if works and rest.before_barrier_ms > NEGLIGIBLE_MS else 0.0
