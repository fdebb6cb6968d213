"""What changed about a job between two looks: that is said, and no forecast is held to it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sim.watching.look import Look

MOST_SETTINGS = 5
"""Changed settings that are named; of more their number is said."""


@dataclass(frozen=True, slots=True)
class JobChange:
    """A change, in words.  `is_other_job`: forecasts of the job as it was do not speak of it."""

    text: str
    kind: str  # one of job, settings, rescale, restart, cluster
    is_other_job: bool = False


def changes(before: Look, now: Look) -> list[JobChange]:
    return list(_changes(before, now))


def _changes(before: Look, now: Look) -> Iterator[JobChange]:
    if before.job != now.job:
        yield JobChange(f"job {before.job[:8]} is gone; '{now.name}' runs as job {now.job[:8]}, which is watched from now on", "job", True)
    if before.version != now.version and before.version and now.version:
        yield JobChange(f"Flink {before.version} became {now.version}", "settings", True)
    if set(before.parallelism) != set(now.parallelism):
        yield JobChange(f"the job has other vertices: {', '.join(now.parallelism)}", "job", True)
    elif rescaled := _differing({k: str(v) for k, v in before.parallelism.items()}, {k: str(v) for k, v in now.parallelism.items()}):
        yield JobChange(f"rescaled: {', '.join(rescaled)}", "rescale", True)
    groups = [_differing(before.settings[name], group) for name, group in now.settings.items() if name in before.settings]
    if settings := [line for lines in groups for line in lines]:
        rest = f" and {len(settings) - MOST_SETTINGS} more" if len(settings) > MOST_SETTINGS else ""
        yield JobChange(f"settings changed: {', '.join(settings[:MOST_SETTINGS])}{rest}", "settings", True)
    if before.job == now.job:
        yield from _restarts(before, now)
    if before.task_managers != now.task_managers and before.task_managers and now.task_managers:
        yield JobChange(f"TaskManagers: {before.task_managers} -> {now.task_managers}", "cluster")


def begun_again(before: Look, now: Look) -> int:
    """How often the job failed or was restored between two looks."""
    earlier = max(before.failures_ms or (), default=before.started_ms)
    failures = 0 if before.failures_ms is None else sum(at > earlier for at in now.failures_ms or ())
    restored = 0 if before.restored is None else (now.restored or 0) - before.restored
    return max(failures, restored, int(before.started_ms != now.started_ms), 0)


def _restarts(before: Look, now: Look) -> Iterator[JobChange]:
    if count := begun_again(before, now):
        rescaled = "its rescaling, " if before.parallelism != now.parallelism else ""
        often = "" if count == 1 else f", {count} times"
        yield JobChange(f"the job began again{often}: {rescaled}a failure, or a restart of the JobManager", "restart")
    if before.state != now.state:
        yield JobChange(f"the job is {now.state} (before: {before.state})", "job")


def _differing(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """``interval 10000 -> 30000`` of each that differs."""
    names = dict.fromkeys([*before, *now])
    return [f"{name} {before.get(name, 'unset')} -> {now.get(name, 'unset')}" for name in names if before.get(name) != now.get(name)]
