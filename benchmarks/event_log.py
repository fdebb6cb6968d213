"""What Spark's event log of a sweep tells: how busy the slots were, which tasks failed, how many cells had begun."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

__all__ = ["Log", "logs", "settings"]


@dataclass
class Log:
    """The log of one application, as far as it was written.  Times are seconds since 1970."""

    begun: int = 0  # cells in jobs that have begun
    lost: int = 0  # tasks whose attempt did not succeed
    slots: dict[str, int] = field(default_factory=dict)  # by executor
    there_s: dict[str, tuple[float, float]] = field(default_factory=dict)  # by executor: from when to when
    # executor, launch and end of tasks that succeeded
    spans: list[tuple[str, float, float]] = field(default_factory=list)

    def idle_share(self, since_s: float = -math.inf, until_s: float = math.inf) -> float:
        """The part of all slots' time between two moments that is without a task; by default from the first launch to the last end."""
        begin = max(since_s, min(start for _, start, _ in self.spans))
        end = min(until_s, max(end for _, _, end in self.spans))
        busy_s = sum(max(0.0, min(stop, end) - max(start, begin)) for _, start, stop in self.spans)
        whole_s = sum(
            self.slots[who] * max(0.0, min(gone, end) - max(came, begin)) for who, (came, gone) in self.there_s.items()
        )
        return 1 - busy_s / whole_s

    def first_task_s(self) -> list[float]:
        """By executor: its first task's time on the clock."""
        return [
            min((start, end - start) for who, start, end in self.spans if who == executor)[1]
            for executor in self._used()
        ]

    def _used(self) -> list[str]:
        return sorted({who for who, _, _ in self.spans})


def settings(folder: Path) -> dict[str, str]:
    """Spark's, to have it written there."""
    folder.mkdir(parents=True, exist_ok=True)
    switches = {"enabled": "true", "dir": folder.as_uri(), "rolling.enabled": "false", "compress": "false"}
    return {f"spark.eventLog.{key}": value for key, value in switches.items()}


def logs(folder: Path) -> list[Log]:
    """In the order in which the applications began: their names hold the time."""
    return [_log(_events(path)) for path in sorted(folder.iterdir()) if path.name.startswith("app-")]


def _events(file: Path) -> Iterator[dict[str, Any]]:
    """Whole lines: a driver that is killed leaves half of one."""
    for line in file.read_text().splitlines():
        try:
            yield json.loads(line)
        except json.JSONDecodeError:
            continue


def _log(events: Iterator[dict[str, Any]]) -> Log:
    log = Log()
    for event in events:
        match event["Event"]:
            case "SparkListenerJobStart":
                if description := re.match(
                    r"\d+ cells, (\d+) begun", event["Properties"].get("spark.job.description", "")
                ):
                    log.begun = max(log.begun, int(description[1]))
            case "SparkListenerExecutorAdded":
                log.slots[event["Executor ID"]] = event["Executor Info"]["Total Cores"]
                log.there_s[event["Executor ID"]] = (event["Timestamp"] / 1e3, math.inf)
            case "SparkListenerExecutorRemoved":
                log.there_s[event["Executor ID"]] = (log.there_s[event["Executor ID"]][0], event["Timestamp"] / 1e3)
            case "SparkListenerTaskEnd":
                task = event["Task Info"]
                if event["Task End Reason"]["Reason"] == "Success":
                    log.spans.append((task["Executor ID"], task["Launch Time"] / 1e3, task["Finish Time"] / 1e3))
                else:
                    log.lost += 1
    return log
