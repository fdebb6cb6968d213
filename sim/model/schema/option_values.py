"""The options of a scenario for which the job's version of Flink has a key: their values, their text, and those that matter."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import MISSING, fields, is_dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from sim.model.checkpoint import DEADLINE, UNALIGNED
from sim.model.cluster import Cluster, reaches, was_added_after, was_removed_before
from sim.model.faults import TaskManagerLost
from sim.model.options import Flink, options_of
from sim.model.scenario import Scenario
from sim.model.schema.flink_keys import (
    NAMES_BESIDE,
    UNLIMITED,
    FlinkKey,
    document_options,
    has_key,
    listed_keys,
    modelled_keys,
)
from sim.model.schema.study import influential_options, key_of, loads
from sim.model.units import format_duration, format_number, format_size
from sim.model.value_types import BUFFER_TIMEOUT


class OptionValue(NamedTuple):
    """The value of an option that Flink has a key for, at one place of a scenario."""

    path: str  # as in an override: job."my.sink".state
    key: FlinkKey
    value: Any  # in the unit of the model (ns, bytes)

    def scenario_value(self, value: Any) -> Any:
        """Return a value of the option as it is written in a scenario.

        None, which means unlimited attempts, becomes Integer.MAX_VALUE; for an option where 0 means never, it becomes 0.
        """
        option = self.key.record
        if value is None and self.key.form == "attempts":
            return int(UNLIMITED)
        if value is None and option.zero_means_never:
            value = 0
        if value is None or isinstance(value, bool) or option.leaf is None:
            return value
        return option.leaf.write(value)


def option_values(scenario: Scenario) -> Iterator[OptionValue]:
    """Yield the values of all options that the job's version of Flink has a key for; options of vertices once per vertex.

    Options that have no effect, because of the value of another option, are left out.
    """
    holders = list(option_holders(scenario))
    by_vertex = [(vertex.name, list(option_holders(vertex))) for vertex in scenario.job.vertices]
    for key in modelled_keys().values():
        if not exists_in(key.flink, scenario.cluster):
            continue
        if key.path[0] == "job":  # job.VERTEX.state.size
            places = [((key.path[0], name, *key.path[2:]), of_vertex) for name, of_vertex in by_vertex]
        else:
            places = [(key.path, holders)]
        for path, candidates in places:
            for value, holder in values_of(key, candidates):
                if has_effect(key, holder):
                    yield OptionValue(key_of(path), key, value)


def option_holders(part: Any) -> Iterator[Any]:
    """Yield a dataclass instance and all instances nested in its fields, each before those it contains.

    For a scenario, these are all sections with options.  Callers that need many options collect them once.
    """
    if is_dataclass(part):
        yield part
        for field in fields(part):
            yield from option_holders(getattr(part, field.name))
    elif isinstance(part, tuple) and part and is_dataclass(part[0]):
        for inner in part:
            yield from option_holders(inner)


def values_of(key: FlinkKey, holders: Sequence[Any]) -> list[tuple[Any, Any]]:
    """Return (value, holder) of the option of a key, for each of `holders` that has it."""
    return [(getattr(holder, key.record.field), holder) for holder in holders if isinstance(holder, key.model)]


def has_effect(key: FlinkKey, holder: Any) -> bool:
    """Return whether a key has an effect: the option that its own option depends on has a value that allows it.

    For example, the delay of the strategy fixed-delay has no effect with another strategy.  `Option.needs` lists the values
    for the option, and `Flink.when` restricts the key to one of them.  `holder` is the instance that has both options.
    """
    if key.record.needs is None:
        return True
    needed_option, allowed_values = key.record.needs
    needed_value = getattr(holder, options_of(key.model)[needed_option].field)
    return (not allowed_values or needed_value in allowed_values) and key.flink.when in ("", needed_value)


def exists_in(flink: Flink, cluster: Cluster) -> bool:
    """Return whether the cluster's version of Flink has a key."""
    if was_removed_before(flink.last, cluster.release) or was_added_after(flink.since, cluster.release):
        return False
    # a profile has the keys of its newest release, and its earlier releases also read those that this one has removed
    is_older_key = reaches(flink.last, cluster.release)
    return is_older_key or any(has_key(cluster.profile, name) for name in (flink.name, *flink.older))


def key_in_release(name: str, scenario: Scenario) -> str:
    """Return the name of a key in the job's version of Flink.

    `name` is the name in the newest version.  It is also the result if no list of keys has a name for the job's version.
    """
    key, cluster = modelled_keys().get(name), scenario.cluster
    older_names = key.flink.older if key is not None else NAMES_BESIDE.get(name, {})
    # Several releases share a profile, whose list has the keys of the newest.  So the release decides first: with the profile 1.20,
    # Flink 1.16 reads execution.checkpointing.unaligned, and Flink 1.17 reads execution.checkpointing.unaligned.enabled.
    in_release = next((older for older, last in older_names.items() if reaches(last, cluster.release)), name)
    for candidate in (in_release, name, *older_names):
        if candidate in listed_keys() and has_key(cluster.profile, candidate):
            return candidate
    return name


# ---- Output of the options of a scenario as keys of Flink's configuration.
# This is the inverse of `sim.model.schema.flink_block`, which reads the keys of `flink:` into a scenario.  The lines have flat
# keys, which are valid in config.yaml (1.19 and later, 2.x) and in flink-conf.yaml (1.x).  The names of the keys are those of the
# job's version of Flink.

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


# ---- Influential options that scenarios leave at their defaults.
# Which options are influential was measured: `benchmarks/defaults.py` sets each option that a file leaves out to another plausible
# value, and reports those that change the duration of checkpoints or their in-flight data by more than a quarter.

_CAN_MATTER: dict[str, Callable[[Scenario], bool]] = {
    "cluster.profile": lambda scenario: not scenario.cluster.version,
    # the number of slots determines which tasks share a TaskManager
    "cluster.slots": lambda scenario: (
        scenario.cluster.placement == "spread" and any(vertex.parallelism > 1 for vertex in scenario.job.vertices)
    ),
    "restart.attempts": lambda scenario: scenario.restart.strategy == "fixed-delay",
    "restart.replacement": lambda scenario: any(isinstance(fault.what, TaskManagerLost) for fault in scenario.faults),
}
"""Option -> whether it can influence a scenario.  Options that are not listed always can."""


def influential_defaults(scenarios: Sequence[Scenario]) -> list[str]:
    """Return the influential options that none of the scenarios sets, as in `influential_options`: ``cluster.slots``.

    An option with a default other than Flink's has both in its text:
    ``job.state.changelog.storage (filesystem; Flink: memory)``.
    """
    keys = {key.dotted: key for key in document_options()}
    holders = [holder for scenario in scenarios for holder in option_holders(scenario)]
    texts = []
    for path in influential_options():
        option, model = keys[path].record, keys[path].model
        assert option is not None  # `document_options` yields no sections
        can_matter = _CAN_MATTER.get(path)
        if not all(path in scenario.left_out for scenario in scenarios):
            continue
        if can_matter is not None and not any(map(can_matter, scenarios)):
            continue
        # an option of a section that no scenario has, such as a changelog, has no holder
        if str(option.default) not in {
            str(getattr(holder, option.field)) for holder in holders if isinstance(holder, model)
        }:
            continue
        flink_default = option.flink[0].default if option.flink else ""
        both = f" ({option.default_text or option.default}; Flink: {flink_default})" if flink_default else ""
        texts.append(path.replace("VERTEX.", "") + both)
    return texts
