"""Output of the options of a scenario as keys of Flink's configuration.

This is the inverse of `sim.model.schema.flink_block`, which reads the keys of `flink:` into a scenario.  The lines have flat
keys, which are valid in config.yaml (1.19 and later, 2.x) and in flink-conf.yaml (1.x).  The names of the keys are those of the
job's version of Flink.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import MISSING
from functools import lru_cache
from typing import Any, NamedTuple

from sim.model.checkpoint import DEADLINE, UNALIGNED
from sim.model.fields import BUFFER_TIMEOUT
from sim.model.scenario import Scenario
from sim.model.schema.flink_keys import UNLIMITED, FlinkKey, modelled_keys
from sim.model.schema.option_values import exists_in, has_effect, key_in_release, option_holders, values_of
from sim.model.schema.study import loads
from sim.model.units import format_duration, format_number, format_size

# ---- Options -> lines of the configuration.

_ALWAYS_WRITTEN = ("checkpoint.interval", "checkpoint.timeout", "checkpoint.barriers", "cluster.network.debloat")
"""Options that are written in any case."""
_SECTIONS = ("checkpoint", "job", "cluster", "storage", "restart", "directories")
"""Sections of a scenario, in the order of the lines."""
_MINIMAL_SCENARIO = """
job: {a: {source: {rate: 1/s, record: 1 B}}}
run: {duration: 1 s}
checkpoint: {interval: %s}
cluster: {profile: '%s'}
"""


class ConfigurationLine(NamedTuple):
    """A line of a Flink configuration."""

    option: str  # path of the option, such as "checkpoint.interval"; the step VERTEX means every vertex
    name: str  # name of the key in the newest version of Flink
    text: str  # value as Flink writes it
    is_default: bool  # whether the value is Flink's default


def configuration_text(scenario: Scenario, also: Collection[str] = ()) -> str:
    """Return the lines ``key: value`` for interval, timeout, barrier mode, debloating and the options in `also`.

    The options in `also` are paths such as ``checkpoint.min-pause``.
    """
    written = [line for line in configuration_lines(scenario) if line.option in (*_ALWAYS_WRITTEN, *also)]
    return "".join(f"{key_in_release(line.name, scenario)}: {line.text}\n" for line in written)


def non_default_keys(scenario: Scenario) -> dict[str, str]:
    """Return {Flink key: value} of the options whose value differs from Flink's default."""
    changed = (line for line in configuration_lines(scenario) if not line.is_default)
    return {key_in_release(line.name, scenario): line.text for line in changed}


def configuration_lines(scenario: Scenario) -> Iterator[ConfigurationLine]:
    """Yield a line for each key that the job's version of Flink has, sections in the order of `_SECTIONS`.

    Values that Flink cannot express have no line, nor have options with several values that are not the default.
    """
    holders = list(option_holders(scenario))
    for key in sorted(modelled_keys().values(), key=_position):
        if not exists_in(key.flink, scenario.cluster):
            continue
        option = ".".join(key.path)
        if (
            option == "checkpoint.barriers"
        ):  # several keys have this option; their lines are written at the first of them
            if key.flink.name == UNALIGNED:
                yield from _barrier_lines(scenario, option)
            continue
        default = _default_text(key, scenario)
        texts = [
            text for value, holder in values_of(key, holders) if (text := _value_text(key, value, holder)) is not None
        ]
        changed = set(texts) - {default}
        # Vertices may have different values, but Flink has one per job.  It is written if at most one value is not the default.
        if texts and len(changed) < 2:
            text = changed.pop() if changed else texts[0]
            yield ConfigurationLine(option, key.flink.name, text, text == default)


def _position(key: FlinkKey) -> tuple[int, int]:
    """Return the sort key of a line: by section, and in each section the options in `_ALWAYS_WRITTEN` first."""
    option, count = ".".join(key.path), len(_ALWAYS_WRITTEN)
    return _SECTIONS.index(key.path[0]), _ALWAYS_WRITTEN.index(option) if option in _ALWAYS_WRITTEN else count


def _barrier_lines(scenario: Scenario, option: str) -> Iterator[ConfigurationLine]:
    """Yield the lines of the barrier mode, which one option of a scenario sets and several keys of Flink."""
    barriers = scenario.checkpoint.barriers
    for name, value in barriers.record.flink.items():
        text = value.replace(DEADLINE, _duration_text(barriers.timeout_ns))
        yield ConfigurationLine(option, name, text, value == "false")


def _default_text(key: FlinkKey, scenario: Scenario) -> str | None:
    """Return Flink's default of a key as text, or None if the key is left out by default."""
    if key.flink.default:  # the option has another default than the key
        return key.flink.default
    if key.path == ("restart", "strategy") and scenario.restart.strategy == "fixed-delay":
        return None  # as the default of a release it has other attempts than one that is written
    # a profile may have a default of its own, and how a job restarts by default depends on whether it has checkpoints
    interval = "1 s" if key.path[0] == "restart" and scenario.checkpoint.interval_ns else "off"
    values = values_of(key, _default_holders(scenario.cluster.profile, interval))
    if values and (text := _value_text(key, *values[0])):
        return text
    return _value_text(key, key.record.default, None)


@lru_cache(maxsize=8)
def _default_holders(profile: str, interval: str) -> list[Any]:
    """Return the instances with options of a scenario in which all options have the defaults of a profile."""
    return list(option_holders(loads(_MINIMAL_SCENARIO % (interval, profile), "defaults").scenarios[0]))


# ---- Values of the model -> texts of Flink.


def _value_text(key: FlinkKey, value: Any, holder: Any) -> str | None:
    """Return a value as Flink writes it, or None if the key must be left out.

    A key is left out if it has no effect, or if Flink cannot express the value.  `holder` is the instance that has the
    value; it is None for the default of the model, which is not checked for an effect.
    """
    if holder is not None and not has_effect(key, holder):
        return None
    if key.record.leaf is BUFFER_TIMEOUT:  # a key that switches the timeout off, and one that has the time
        if key.form == "boolean":
            return _boolean_text(value >= 0)
        return _duration_text(value) if value >= 0 else None
    if key.form == "boolean":  # a section that may be left out is off
        return _boolean_text(value is not None and value is not False)
    if value is None:
        return _UNLIMITED_TEXTS.get(key.form)
    return None if value is MISSING else _TEXTS.get(key.form, str)(value)


def _size_text(size: int) -> str:
    """Return a size [bytes] as Flink writes it: in kb or mb, which are KiB and MiB in Flink, otherwise in b."""
    number, unit = format_size(size).split(" ")
    return f"{number}{unit[0].lower()}b" if unit in ("KiB", "MiB") else f"{size}b"


def _boolean_text(on: bool) -> str:
    """Return a boolean as Flink writes it."""
    return "true" if on else "false"


def _duration_text(ns: int) -> str:
    """Return a duration [ns] as Flink writes it.

    Flink reads whole numbers only, so ``1.5 s`` becomes ``1500 ms``, and ``1.5 ms`` is cut to ``1 ms``.
    """
    return format_duration(ns) if "." not in format_duration(ns) else f"{ns // 10**6} ms"


_TEXTS: dict[str, Callable[[Any], str | None]] = {
    "duration": _duration_text,
    "interval": _duration_text,
    "milliseconds": lambda ns: str(ns // 10**6),
    "size": _size_text,
    "finish": {"flink": "true", "off": "false"}.get,  # None for values that Flink cannot express: the key is left out
    "scheduler": str.capitalize,
    "reactive": lambda on: "REACTIVE" if on else None,
    "wait": _duration_text,
    "number": format_number,
    "share": format_number,
}
"""Form -> function that returns the text of a value; values of other forms are written as they are."""
_UNLIMITED_TEXTS = {"threshold": "-1", "wait": "-1 ms", "attempts": UNLIMITED}
"""Form -> text that means that there is no limit.  In other forms, the key is left out."""
