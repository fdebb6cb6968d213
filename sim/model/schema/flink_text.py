"""Output of the options of a scenario as keys of Flink's configuration, and the options left at influential defaults.

This is the inverse of `sim.model.schema.flink_block`, which reads the keys of `flink:` into a scenario.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import MISSING, fields, is_dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from sim.model.catalog import Flink, options_of
from sim.model.checkpoint import DEADLINE, UNALIGNED
from sim.model.cluster import Cluster, came_later, is_over, is_until
from sim.model.fields import BUFFER_TIMEOUT
from sim.model.scenario import Scenario
from sim.model.schema.axes import key_of
from sim.model.schema.flink_keys import (
    NAMES_BESIDE,
    UNLIMITED,
    FlinkKey,
    document_options,
    has_key,
    listed_keys,
    modelled_keys,
)
from sim.model.schema.study import deciding_options, loads
from sim.model.units import format_duration, format_number, format_size

# ---- Options of a scenario -> lines of Flink's configuration.
#
# The lines have flat keys, which are valid in config.yaml (1.19 and later, 2.x) and in flink-conf.yaml (1.x).  The names of the keys
# are those of the job's version of Flink.

_ALWAYS_WRITTEN = ("checkpoint.interval", "checkpoint.timeout", "checkpoint.barriers", "cluster.network.debloat")
"""Options that are written in any case."""
_ORDER = ("checkpoint", "job", "cluster", "storage", "restart", "directories")
_MINIMAL_SCENARIO = "job: {a: {source: {rate: 1/s, record: 1 B}}}\nrun: {duration: 1 s}\ncheckpoint: {interval: off}\ncluster: {profile: '%s'}\n"


class _FlinkLine(NamedTuple):
    """A line of a Flink configuration."""

    option: str  # path of the option, such as "checkpoint.interval"; the step VERTEX means every vertex
    name: str  # name of the key in the newest version of Flink
    text: str  # value as Flink writes it
    is_default: bool  # whether the value is Flink's default


def flink_text(scenario: Scenario, also: Collection[str] = ()) -> str:
    """Return the lines ``key: value`` for interval, timeout, barrier mode, debloating and the options in `also`.

    The options in `also` are paths such as ``checkpoint.min-pause``.
    """
    lines = [line for line in _lines(scenario) if line.option in (*_ALWAYS_WRITTEN, *also)]
    return "".join(f"{flink_key(line.name, scenario)}: {line.text}\n" for line in lines)


def flink_lines(scenario: Scenario) -> dict[str, str]:
    """Return {Flink key: value} of the options whose value differs from Flink's default."""
    return {flink_key(line.name, scenario): line.text for line in _lines(scenario) if not line.is_default}


def flink_key(name: str, scenario: Scenario) -> str:
    """Return the name of a key in the job's version of Flink.

    `name` is the name in the newest version.  It is also the result if no list of keys has a name for the job's version.
    """
    key, cluster = modelled_keys().get(name), scenario.cluster
    older = key.flink.older if key is not None else NAMES_BESIDE.get(name, {})
    # Several releases share a profile, whose list has the keys of the newest.  So the release decides first: with the profile 1.20,
    # Flink 1.16 reads execution.checkpointing.unaligned, and Flink 1.17 reads execution.checkpointing.unaligned.enabled.
    own = next((known for known, last in older.items() if is_until(last, cluster.release)), name)
    names = (own, name, *older)
    return next((known for known in names if known in listed_keys() and has_key(cluster.profile, known)), name)


class OptionValue(NamedTuple):
    """The value of an option that Flink has a key for, at one place of a scenario."""

    key: str  # path as in an override: job."my.sink".state
    option: FlinkKey
    value: Any  # value in the model, in its unit (ns, bytes)

    def written(self, value: Any) -> Any:
        """Return a value of the model as it is written in a scenario.

        None, which means unlimited attempts, becomes Integer.MAX_VALUE; for an option where 0 means never, it becomes 0.
        """
        record = self.option.record
        if value is None and self.option.form == "attempts":
            return int(UNLIMITED)
        if value is None and record.zero_is_none:
            value = 0
        return value if value is None or isinstance(value, bool) or record.leaf is None else record.leaf.write(value)


def option_values(scenario: Scenario, *, without_effect: bool = False) -> Iterator[OptionValue]:
    """Yield the values of all options that the job's version of Flink has a key for; options of vertices once per vertex.

    Options that have no effect, because of the value of another option, are included only if `without_effect` is True.
    """
    cluster, whole = scenario.cluster, list(records_of(scenario))
    vertices = [(vertex.name, list(records_of(vertex))) for vertex in scenario.job.vertices]
    for key in modelled_keys().values():
        if not _is_in(key.flink, cluster):
            continue
        in_job = [((key.path[0], name, *key.path[2:]), records) for name, records in vertices]
        for path, records in in_job if key.path[0] == "job" else [(key.path, whole)]:
            for holder in records:
                if isinstance(holder, key.model) and (without_effect or _has_effect(key, holder)):
                    yield OptionValue(key_of(path), key, getattr(holder, key.record.field))


def _has_effect(key: FlinkKey, holder: Any) -> bool:
    """Return whether a key has an effect: the option that its own option depends on has a value that allows it.

    `Option.needs` lists the values for the option, and `Flink.when` restricts the key to one of them.  `holder` is the
    instance of `key.model` that has both options.
    """
    record = key.record
    if record.needs is None:
        return True
    other = getattr(holder, options_of(key.model)[record.needs[0]].field)
    return (not record.needs[1] or other in record.needs[1]) and key.flink.when in ("", other)


def _lines(scenario: Scenario) -> Iterator[_FlinkLine]:
    """Yield a line for each key that the job's version of Flink has, sections in the order of `_ORDER`.

    Values that Flink cannot express have no line, nor have options with several values that are not the default.
    """
    cluster, records = scenario.cluster, list(records_of(scenario))
    usual = _usual(cluster.profile)
    for key in sorted(modelled_keys().values(), key=_rank):
        if not _is_in(key.flink, cluster):
            continue
        option = ".".join(key.path)
        if option == "checkpoint.barriers":
            yield from _of_barriers(scenario, option) if key.flink.name == UNALIGNED else ()
            continue
        default = key.flink.default or next(iter(_texts(key, usual)), None) or _text(key, key.record.default, None)
        found = [text for text in _texts(key, records) if text is not None]
        # Vertices may have different values, but Flink has one per job.  It is written if at most one value is not the default.
        if len(others := set(found) - {default}) < 2 and found:
            text = others.pop() if others else found[0]
            yield _FlinkLine(option, key.flink.name, text, text == default)


def _rank(key: FlinkKey) -> tuple[int, int]:
    """Return the sort key of a line: by section, and in each section the options in `_ALWAYS_WRITTEN` first."""
    option = ".".join(key.path)
    return _ORDER.index(key.path[0]), _ALWAYS_WRITTEN.index(option) if option in _ALWAYS_WRITTEN else len(
        _ALWAYS_WRITTEN
    )


def _of_barriers(scenario: Scenario, option: str) -> Iterator[_FlinkLine]:
    """Yield the lines of the barrier mode, which one option of a scenario sets and several keys of Flink."""
    barriers = scenario.checkpoint.barriers
    for name, value in barriers.record.flink.items():
        yield _FlinkLine(option, name, value.replace(DEADLINE, _duration(barriers.timeout_ns)), value == "false")


def _texts(key: FlinkKey, records: list[Any]) -> list[str | None]:
    """Return the text of an option, as in `_text`, for each of `records` that has it."""
    return [
        _text(key, getattr(holder, key.record.field), holder) for holder in records if isinstance(holder, key.model)
    ]


def records_of(part: Any) -> Iterator[Any]:
    """Yield a dataclass instance and all instances nested in its fields, each before those it contains.

    For a scenario, these are all sections with options.  Callers that need many options collect them once.
    """
    if is_dataclass(part):
        yield part
        for at in fields(part):
            yield from records_of(getattr(part, at.name))
    elif isinstance(part, tuple) and part and is_dataclass(part[0]):
        for inner in part:
            yield from records_of(inner)


def _text(key: FlinkKey, value: Any, holder: Any) -> str | None:
    """Return a value as Flink writes it, or None if the key must be left out.

    A key is left out if it has no effect, or if Flink cannot express the value.  `holder` is the instance that has the
    value; it is None for the default of the model, which is not checked for an effect.
    """
    record = key.record
    if holder is not None and not _has_effect(key, holder):
        return None
    if record.leaf is BUFFER_TIMEOUT:
        return _switch(value >= 0) if key.form == "boolean" else _duration(value) if value >= 0 else None
    if key.form == "boolean":
        return _switch(value is not None and value is not False)
    if value is MISSING or (value is None and key.form not in _OF_NONE):
        return None
    return _OF_NONE[key.form] if value is None else _WRITERS.get(key.form, str)(value)


@lru_cache(maxsize=8)
def _usual(profile: str) -> list[Any]:
    """Return the instances (see `records_of`) of a scenario in which the options have the defaults of a profile."""
    return list(records_of(loads(_MINIMAL_SCENARIO % profile, "usual").scenarios[0]))


def _is_in(key: Flink, cluster: Cluster) -> bool:
    """Return whether the cluster's version of Flink has a key."""
    if is_over(key.last, cluster.release) or came_later(key.since, cluster.release):
        return False
    # Keys that the newest release of a profile has removed are not in the profile's list, but its earlier releases read them.
    return is_until(key.last, cluster.release) or any(has_key(cluster.profile, name) for name in (key.name, *key.older))


def _size(size: int) -> str:
    """Return a size [bytes] as Flink writes it: in kb or mb, which are KiB and MiB in Flink, otherwise in b."""
    number, unit = format_size(size).split(" ")
    return f"{number}{unit[0].lower()}b" if unit in ("KiB", "MiB") else f"{size}b"


def _switch(on: bool) -> str:
    """Return a boolean as Flink writes it."""
    return "true" if on else "false"


def _duration(ns: int) -> str:
    """Return a duration [ns] as Flink writes it.

    Flink reads whole numbers only, so ``1.5 s`` becomes ``1500 ms``, and ``1.5 ms`` is cut to ``1 ms``.
    """
    return format_duration(ns) if "." not in format_duration(ns) else f"{ns // 10**6} ms"


_WRITERS: dict[str, Callable[[Any], str | None]] = {
    "duration": _duration,
    "interval": _duration,
    "milliseconds": lambda ns: str(ns // 10**6),
    "size": _size,
    "finish": {"flink": "true", "off": "false"}.get,  # None for values that Flink cannot express: the key is left out
    "scheduler": str.capitalize,
    "reactive": lambda on: "REACTIVE" if on else None,
    "wait": _duration,
    "number": format_number,
    "share": format_number,
}
"""Form -> text of a value of the model; other forms are written as they are."""
_OF_NONE = {"threshold": "-1", "wait": "-1 ms", "attempts": UNLIMITED}
"""Forms in which Flink writes that there is no limit."""


# ---- Influential options that a scenario leaves at their defaults.
#
# Which options are influential was measured: `benchmarks/defaults.py` sets each option that a file leaves out to another plausible
# value, and reports those that change the duration of checkpoints or their in-flight data by more than a quarter.

_DECIDES: dict[str, Callable[[Scenario], bool]] = {
    "cluster.profile": lambda scenario: not scenario.cluster.version,
    # the number of slots decides which tasks share a TaskManager
    "cluster.slots": lambda scenario: (
        scenario.cluster.placement == "spread" and any(vertex.parallelism > 1 for vertex in scenario.job.vertices)
    ),
    "restart.attempts": lambda scenario: scenario.restart.strategy == "fixed-delay",
}
"""Option -> whether it can decide in a scenario."""


def deciding_defaults(scenarios: Sequence[Scenario]) -> list[str]:
    """Return the influential options that none of the scenarios sets, as in `deciding_options`: ``cluster.slots``.

    An option with a default other than Flink's has both in its text:
    ``job.state.changelog.storage (filesystem; Flink: memory)``.
    """
    options = {key.dotted: key for key in document_options()}
    parts = [part for scenario in scenarios for part in records_of(scenario)]
    found = []
    for path in deciding_options():
        record, model = options[path].record, options[path].model
        assert record is not None
        values = {str(getattr(part, record.field)) for part in parts if isinstance(part, model)}
        decides = _DECIDES.get(path)
        is_left_out = all(path in scenario.left_out for scenario in scenarios)
        if is_left_out and str(record.default) in values and (decides is None or any(map(decides, scenarios))):
            flink_default = record.flink[0].default if record.flink else ""
            found.append(
                path.replace("VERTEX.", "")
                + (f" ({record.usually or record.default}; Flink: {flink_default})" if flink_default else "")
            )
    return found
