"""Features of a recorded job that scenarios cannot express, as phrases for comments: nothing is dropped silently."""

from __future__ import annotations

from benchmarks.lab.config import Configuration, Node

# Options of the recorder, not of the job.
RECORDER_KEYS = frozenset({"flink_release", "heap", "poll_s", "sample_s"})


TASK_MANAGERS = ("killtm", "starttm")  # actions on task managers


def is_known_action(action: dict[str, object]) -> bool:
    """Whether a scenario has this action."""
    if not isinstance(action.get("at_s"), int | float):
        return False
    return action.get("do") in ("savepoint", "stop", *TASK_MANAGERS) and (
        action["do"] != "killtm" or isinstance(action.get("index"), int)
    )


def not_modelled(config: Configuration) -> list[str]:
    """A phrase per feature, in the order of the configuration."""
    phrases = [f"configuration key '{key}'" for key in config.model_extra or {} if key not in RECORDER_KEYS]
    unknown = [action for action in config.actions if not is_known_action(action)]
    phrases += [
        f"request during the run: {action.get('do', 'unknown')} at {action.get('at_s', '?')} s" for action in unknown
    ]
    kills = [action for action in config.actions if action.get("do") == "killtm" and is_known_action(action)]
    if len(kills) > 1:
        phrases.append("task managers lost one after the other: each is replaced as the first one was")
    phrases += [f"storage key '{key}'" for key in config.fs.model_extra or {}]
    if config.fs.slow_prob and config.fs.slow_factor != round(config.fs.slow_factor):
        phrases.append(f"a slow factor that is not a whole number ({config.fs.slow_factor:g})")
    for node in config.nodes:
        phrases += [f"'{node.id}': {phrase}" for phrase in _of_node(config, node)]
    return phrases


def _of_node(config: Configuration, node: Node) -> list[str]:
    phrases = [f"key '{key}'" for key in node.model_extra or {}]
    phrases += [f"key '{key}' of an input" for edge in node.inputs for key in edge.model_extra or {}]
    if node.commit_ms and node.commit == "none":
        phrases.append(f"{node.commit_ms:g} ms of work per commit")
    if len(config.emitted_bytes()[node.id]) > 1 and config.is_read(node.id):
        phrases.append("records of several sizes passed on: each is given the mean size")
    if (
        node.out_weights
        and len({other.parallelism for other in config.nodes for edge in other.inputs if edge.upstream == node.id}) > 1
    ):
        phrases.append("one skew for consumers of different parallelism")
    return phrases
