"""Defaults of a scenario, and its Flink keys as text to paste."""

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

# ---- Settings of a scenario -> lines of a Flink configuration, to paste.  What `flink:` reads, written.
#
# Flat keys are read in config.yaml (1.19 and later, 2.x) and in flink-conf.yaml (1.x) alike.  Names are those of the
# job's version.

_ALWAYS_WRITTEN = ("checkpoint.interval", "checkpoint.timeout", "checkpoint.barriers", "cluster.network.debloat")
"""Options that are written in any case."""
_ORDER = ("checkpoint", "job", "cluster", "storage", "restart", "directories")
_MINIMAL_SCENARIO = "job: {a: {source: {rate: 1/s, record: 1 B}}}\nrun: {duration: 1 s}\ncheckpoint: {interval: off}\ncluster: {profile: '%s'}\n"


class _FlinkLine(NamedTuple):
    """A line of a Flink configuration."""

    option: str  # dotted, VERTEX for every vertex
    name: str  # of the key, in the newest version
    text: str
    is_default: bool  # Flink's


def flink_text(scenario: Scenario, also: Collection[str] = ()) -> str:
    """Interval, timeout, barriers and debloating; `also`: options of the scenario that were changed beside them."""
    lines = [line for line in _lines(scenario) if line.option in (*_ALWAYS_WRITTEN, *also)]
    return "".join(f"{flink_key(line.name, scenario)}: {line.text}\n" for line in lines)


def flink_lines(scenario: Scenario) -> dict[str, str]:
    """Every key of Flink that an option is about, with its value here; one that has Flink's default is left out."""
    return {flink_key(line.name, scenario): line.text for line in _lines(scenario) if not line.is_default}


def flink_key(name: str, scenario: Scenario) -> str:
    """The name of a key in the job's version of Flink."""
    key, cluster = modelled_keys().get(name), scenario.cluster
    older = key.flink.older if key is not None else NAMES_BESIDE.get(name, {})
    # a profile has the names of its newest release, and a release before it the older ones
    own = next((known for known, last in older.items() if is_until(last, cluster.release)), name)
    names = (own, name, *older)
    return next((known for known in names if known in listed_keys() and has_key(cluster.profile, known)), name)


class OptionValue(NamedTuple):
    """The value of an option that Flink has a key for, at one place of a scenario."""

    key: str  # of an override
    option: FlinkKey
    value: Any  # of the model

    def written(self, value: Any) -> Any:
        """A value of the model as a scenario writes it."""
        record = self.option.record
        if value is None and self.option.form == "attempts":
            return int(UNLIMITED)
        if value is None and record.zero_is_none:
            value = 0
        return value if value is None or isinstance(value, bool) or record.leaf is None else record.leaf.write(value)


def option_values(scenario: Scenario, *, without_effect: bool = False) -> Iterator[OptionValue]:
    """Every option that this version of Flink has a key for; `without_effect`: those that another option makes void, too."""
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
    """Whether the option that this one needs has a value with which it counts."""
    record = key.record
    if record.needs is None:
        return True
    other = getattr(holder, options_of(key.model)[record.needs[0]].field)
    return (not record.needs[1] or other in record.needs[1]) and key.flink.when in ("", other)


def _lines(scenario: Scenario) -> Iterator[_FlinkLine]:
    """The lines in the order of Flink's documentation, checkpoints first.  Options that this version has no key for are left out."""
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
        if len(others := set(found) - {default}) < 2 and found:  # vertices may differ: a job has one
            text = others.pop() if others else found[0]
            yield _FlinkLine(option, key.flink.name, text, text == default)


def _rank(key: FlinkKey) -> tuple[int, int]:
    option = ".".join(key.path)
    return _ORDER.index(key.path[0]), _ALWAYS_WRITTEN.index(option) if option in _ALWAYS_WRITTEN else len(
        _ALWAYS_WRITTEN
    )


def _of_barriers(scenario: Scenario, option: str) -> Iterator[_FlinkLine]:
    """Mode, unaligned and aligned timeout are one choice."""
    barriers = scenario.checkpoint.barriers
    for name, value in barriers.record.flink.items():
        yield _FlinkLine(option, name, value.replace(DEADLINE, _duration(barriers.timeout_ns)), value == "false")


def _texts(key: FlinkKey, records: list[Any]) -> list[str | None]:
    """The value of an option as Flink writes it, at each of the records of a scenario that has it."""
    return [
        _text(key, getattr(holder, key.record.field), holder) for holder in records if isinstance(holder, key.model)
    ]


def records_of(part: Any) -> Iterator[Any]:
    """The records that a scenario, or a part of it, is made of: one walk serves all of its options."""
    if is_dataclass(part):
        yield part
        for at in fields(part):
            yield from records_of(getattr(part, at.name))
    elif isinstance(part, tuple) and part and is_dataclass(part[0]):
        for inner in part:
            yield from records_of(inner)


def _text(key: FlinkKey, value: Any, holder: Any) -> str | None:
    """The value as Flink writes it.  None: Flink has no way to say it, or says it by leaving the key out."""
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
    """The records of a scenario that says nothing of checkpoints, of this version."""
    return list(records_of(loads(_MINIMAL_SCENARIO % profile, "usual").scenarios[0]))


def _is_in(key: Flink, cluster: Cluster) -> bool:
    if is_over(key.last, cluster.release) or came_later(key.since, cluster.release):
        return False
    # the list of a profile lacks what its newest release has no more
    return is_until(key.last, cluster.release) or any(has_key(cluster.profile, name) for name in (key.name, *key.older))


def _size(size: int) -> str:
    """Flink's kb and mb are binary."""
    number, unit = format_size(size).split(" ")
    return f"{number}{unit[0].lower()}b" if unit in ("KiB", "MiB") else f"{size}b"


def _switch(on: bool) -> str:
    return "true" if on else "false"


def _duration(ns: int) -> str:
    """Flink knows whole numbers only."""
    return format_duration(ns) if "." not in format_duration(ns) else f"{ns // 10**6} ms"


_WRITERS: dict[str, Callable[[Any], str | None]] = {
    "duration": _duration,
    "interval": _duration,
    "milliseconds": lambda ns: str(ns // 10**6),
    "size": _size,
    "finish": {"flink": "true", "off": "false"}.get,
    "scheduler": str.capitalize,
    "reactive": lambda on: "REACTIVE" if on else None,
    "wait": _duration,
    "number": format_number,
    "share": format_number,
}
"""Form -> text of a value of the model; other forms are written as they are."""
_OF_NONE = {"threshold": "-1", "wait": "-1 ms", "attempts": UNLIMITED}
"""Forms in which Flink writes that there is no limit."""


# ---- Options at their defaults that decide in many jobs: their names, for one line next to the axes of a file.
#
# Which options decide was measured: `benchmarks/defaults.py` gives each option that a file leaves out another plausible
# value, and keeps those that change the duration of checkpoints or their data in flight by more than a quarter.

_DECIDES: dict[str, Callable[[Scenario], bool]] = {
    "cluster.profile": lambda scenario: not scenario.cluster.version,
    # slots say which tasks share a TaskManager
    "cluster.slots": lambda scenario: (
        scenario.cluster.placement == "spread" and any(vertex.parallelism > 1 for vertex in scenario.job.vertices)
    ),
    "restart.attempts": lambda scenario: scenario.restart.strategy == "fixed-delay",
}
"""Option -> whether it can decide in a scenario."""


def deciding_defaults(scenarios: Sequence[Scenario]) -> list[str]:
    """``cluster.slots``: options that all of these scenarios leave out, of those that decide in many jobs.

    An option whose default is not Flink's is named with both: ``job.state.changelog.storage (filesystem; Flink: memory)``.
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
