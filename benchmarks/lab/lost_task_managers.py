"""Task managers that a recorded run lost on purpose, and their replacements, in the words of a scenario."""

from __future__ import annotations

from typing import Any

from benchmarks.lab.config import Configuration
from benchmarks.lab.not_modelled import is_known_action
from sim.model.units import format_duration


def kills(config: Configuration) -> list[tuple[int, float]]:
    """(number of the task manager, s since submission) of each loss.

    With one task manager per subtask the number is the recorder's.  It does not tell which subtask ran there; the whole
    job restarts, so that makes no difference.
    """
    lost = [action for action in config.actions if action["do"] == "killtm" and is_known_action(action)]
    return [(int(str(action["index"])) % _task_managers(config), _at_s(action)) for action in lost]


def replacement(config: Configuration) -> dict[str, Any]:
    """The `restart:` section.

    A lost task manager ends in an orderly way, so its loss is noticed at once.  Without a spare one the job waits until
    another starts, or for the rest of the run.
    """
    if not (lost := kills(config)):
        return {}
    lost_s = lost[0][1]
    started = [_at_s(action) for action in config.actions if action["do"] == "starttm" and is_known_action(action)]
    later = [at_s for at_s in started if at_s >= lost_s]
    wait_s = 0.0 if any(at_s < lost_s for at_s in started) else min(later, default=lost_s + config.duration_s) - lost_s
    noticed = {"connection-reset": "0 s", "fresh-start": "0 s"}  # all task managers are one process
    return noticed | ({"replacement": format_duration(round(wait_s * 10**9))} if wait_s else {})


def _at_s(action: dict[str, object]) -> float:
    return float(str(action["at_s"]))


def _task_managers(config: Configuration) -> int:
    subtasks = [node.parallelism for node in config.nodes]
    return {"isolated": sum(subtasks), "single": 1, "spread": max(subtasks)}[config.placement]
