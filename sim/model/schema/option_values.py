"""The options of a scenario for which the job's version of Flink has a key, and their values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, NamedTuple

from sim.model.catalog import Flink, options_of
from sim.model.cluster import Cluster, reaches, was_added_after, was_removed_before
from sim.model.scenario import Scenario
from sim.model.schema.axes import key_of
from sim.model.schema.flink_keys import NAMES_BESIDE, UNLIMITED, FlinkKey, has_key, listed_keys, modelled_keys


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
        if value is None and option.zero_is_none:
            value = 0
        if value is None or isinstance(value, bool) or option.leaf is None:
            return value
        return option.leaf.write(value)


def option_values(scenario: Scenario, *, without_effect: bool = False) -> Iterator[OptionValue]:
    """Yield the values of all options that the job's version of Flink has a key for; options of vertices once per vertex.

    Options that have no effect, because of the value of another option, are included only if `without_effect` is True.
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
            for holder in _with_option(key, candidates):
                if without_effect or has_effect(key, holder):
                    yield OptionValue(key_of(path), key, getattr(holder, key.record.field))


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
    return [(getattr(holder, key.record.field), holder) for holder in _with_option(key, holders)]


def _with_option(key: FlinkKey, holders: Sequence[Any]) -> Iterator[Any]:
    """Yield the instances that have the option of a key as a field."""
    return (holder for holder in holders if isinstance(holder, key.model))


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
