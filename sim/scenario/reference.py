"""What a key of a scenario means: its values, its default, Flink's key.  All of it is read off the classes of document and model."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from sim.foreign import Readable
from sim.model import checkpoint, cluster, directories, faults, instances, scenario, sink, state, storage
from sim.scenario.flink.keys import SIMPLE
from sim.scenario.schemas import json_schema
from sim.scenario.text.problems import did_you_mean
from sim.units import format_duration, format_size

__all__ = ["KeyReference", "UnknownKeyError", "all_keys", "explain_key"]

_MODELS: dict[str, type] = {
    "Checkpoint": checkpoint.CheckpointOptions, "Network": cluster.NetworkMemory, "Debloat": cluster.Debloating, "Cluster": cluster.Cluster,
    "Storage": storage.Storage, "Retry": storage.Retry, "Dfs": storage.Dfs, "SlowNodes": storage.SlowNodes, "Disk": storage.Disk,
    "ObjectStore": storage.ObjectStore, "FileMerging": storage.FileMerging, "Restart": faults.Restart, "Rescale": faults.Rescale,
    "Flush": sink.Flush, "Commit": sink.Commit, "Instances": instances.Instances, "Directories": directories.Directories,
    "Lsm": state.Lsm, "Changelog": state.Changelog, "State": state.State, "Run": scenario.Run, "Overheads": scenario.Overheads,
}  # fmt: skip
"""Section of the document -> where its defaults stand."""
_ENDINGS = ("", "_ns", "_bytes", "_bytes_per_second", "_per_second")
_RENAMED = {
    "bandwidth": "bytes_per_second", "nic": "nic_bytes_per_second", "stream_bandwidth": "stream_bytes_per_second",
    "read_bandwidth": "read_bytes_per_second", "max_backoff": "most_backoff_ns", "buffers_per_channel": "exclusive_per_channel",
    "floating_buffers_per_gate": "floating_per_gate", "max_buffers_per_channel": "max_per_channel", "segment_size": "segment_bytes",
    "starting_segment_size": "starting_segment_bytes", "update": "update_share", "file_latency": "close_ns",
    "metadata_latency": "metadata_ns", "max_file_size": "max_file_bytes", "across_checkpoints": "across",
    "part_size": "part_bytes", "freeze": "sync_ns", "holds_back": "holds_back", "threshold": "threshold_percent",
}  # fmt: skip
"""Key -> field of the model, where it has another name."""
_RATES = ("bytes_per_second",)


class UnknownKeyError(Readable, LookupError):
    """There is no such key."""


@dataclass(frozen=True, slots=True)
class KeyReference:
    """A key of a scenario."""

    key: str  # dotted, with VERTEX for the name of a vertex: ``job.VERTEX.state.size``
    meaning: str
    values: str  # what may be written
    default: str  # empty: it has none, or it follows from other keys
    flink: tuple[str, ...]  # keys of Flink's configuration that say the same
    keys: tuple[str, ...]  # below it

    def __str__(self) -> str:
        parts = {
            "meaning": self.meaning, "values": self.values, "default": self.default, "Flink": ", ".join(self.flink),
            "keys": ", ".join(self.keys),
        }  # fmt: skip
        width = max(map(len, parts))
        return "\n".join([self.key, *(f"  {name:<{width}}  {text}" for name, text in parts.items() if text)])


def explain_key(key: str) -> KeyReference:
    """``explain_key("storage.dfs.slow")``; a vertex may have any name.  UnknownKeyError: there is none, and which are near."""
    known = {reference.key: reference for reference in all_keys()}
    steps = key.strip().strip(".").split(".")
    if steps[0] == "job" and len(steps) > 1:
        steps[1] = "VERTEX"
    requested = ".".join(step for step in steps if not step.isdigit())
    if requested in known:
        return known[requested]
    by_flink = [reference for reference in known.values() if key in reference.flink]
    if by_flink:
        return by_flink[0]
    ends = [name for name in known if name.rpartition(".")[2] == steps[-1]]
    near = f"; there is {' and '.join(sorted(ends)[:3])}" if ends else did_you_mean(requested, known)
    raise UnknownKeyError(f"no key '{key}' in a scenario{near}")


def all_keys() -> Iterator[KeyReference]:
    """Every key, sections before what stands in them."""
    schema = json_schema()
    found: dict[str, KeyReference] = {}
    for reference in _section("", schema, schema["$defs"], "", ()):
        found.setdefault(reference.key, reference)  # a section that may stand there in two forms
    yield from found.values()


def _section(prefix: str, node: dict[str, Any], definitions: dict[str, Any], title: str, around: tuple[str, ...]) -> Iterator[KeyReference]:
    for name, field in node.get("properties", {}).items():
        key = f"{prefix}{name}"
        inner = list(_sections_of(field, definitions))
        below = [entry for section in inner if section not in around for entry in definitions[section].get("properties", {})]
        meaning = _sentence(field, inner, definitions)
        flink = tuple(flink for flink, (path, _) in SIMPLE.items() if ".".join(path) == key)
        yield KeyReference(key, meaning, _values(field, definitions), _default(title, name), flink, tuple(dict.fromkeys(below)))
        start = f"{key}.VERTEX." if key == "job" else f"{key}."
        for section in (section for section in inner if section not in around):
            yield from _section(start, definitions[section], definitions, section, (*around, section))


def _sections_of(field: Any, definitions: dict[str, Any]) -> Iterator[str]:
    """The sections that may stand there, lists and mappings of them included."""
    if isinstance(field, list):
        for item in field:
            yield from _sections_of(item, definitions)
    elif isinstance(field, dict):
        if "$ref" in field:
            name = str(field["$ref"]).rpartition("/")[2]
            yield from [name] if "properties" in definitions[name] else _sections_of(definitions[name], definitions)
        for inner in ("anyOf", "oneOf", "allOf", "items", "additionalProperties"):
            yield from _sections_of(field.get(inner), definitions)


def _sentence(field: dict[str, Any], inner: list[str], definitions: dict[str, Any]) -> str:
    """The description of the key or, of a section, that of the section."""
    texts = [str(field.get("description", "")), *(str(definitions[name].get("description", "")) for name in inner)]
    return " ".join(next((text for text in texts if text), "").split())


def _values(field: Any, definitions: dict[str, Any]) -> str:
    found = list(dict.fromkeys(_forms(field, definitions)))
    return ", ".join(found)


def _forms(field: Any, definitions: dict[str, Any]) -> Iterator[str]:
    if not isinstance(field, dict):
        return
    if "$ref" in field:
        name = str(field["$ref"]).rpartition("/")[2]
        yield from ["a mapping"] if "properties" in definitions[name] else _forms(definitions[name], definitions)
    if "additionalProperties" in field or field.get("type") == "object":
        yield "a mapping"
    elif field.get("type") == "array":
        yield "a list"
    elif field.get("type") == "boolean":
        yield "true | false"
    elif "enum" in field:
        yield " | ".join(dict.fromkeys(str(value).lower() if isinstance(value, bool) else str(value) for value in field["enum"]))
    elif "examples" in field:
        yield "e.g. " + " or ".join(map(str, field["examples"]))
    elif field.get("type") == "integer":
        yield f"a whole number, {field.get('minimum', 0)} or more"
    elif field.get("type") == "number":
        yield "a number"
    elif field.get("type") == "string":
        yield "text"
    for inner in ("anyOf", "oneOf"):
        for branch in field.get(inner, ()):
            if branch.get("type") == "array":
                yield "a list of them is an axis"
            else:
                yield from _forms(branch, definitions)


def _default(section: str, name: str) -> str:
    fields = {field.name: field for field in dataclasses.fields(_MODELS[section])} if section in _MODELS else {}
    if section == "Checkpoint":
        fields = {field.name: field for field in dataclasses.fields(state.StateOptions)} | fields
    plain = name.replace("-", "_")
    candidates = [_RENAMED.get(plain, plain), *(f"{plain}{ending}" for ending in _ENDINGS)]
    field = next((fields[candidate] for candidate in candidates if candidate in fields), None)
    if field is None or field.default is dataclasses.MISSING:
        return ""
    return _text(field.name, field.default)


def _text(name: str, value: Any) -> str:
    """A default as one would write it; empty for what is no single value."""
    if value is None or dataclasses.is_dataclass(value) or isinstance(value, tuple):
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int) and name.endswith("_ns"):
        return format_duration(value)
    if isinstance(value, int) and name.endswith(_RATES):
        return f"{value / 1e6:g} MB/s"
    if isinstance(value, int) and name.endswith("bytes"):
        return format_size(value)
    if name.endswith("_percent"):
        return f"{value} %"
    return f"{float(value):g}" if isinstance(value, (Fraction, float)) else str(value)
