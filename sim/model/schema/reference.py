"""Generate the reference of scenario keys (`explain_key`) and the JSON Schema of scenario files."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import MISSING, replace
from operator import itemgetter
from typing import Any

from sim.model.frozen import frozen
from sim.model.job import Distribution
from sim.model.options import Option
from sim.model.randomness import DISTRIBUTIONS
from sim.model.schema.document import Document
from sim.model.schema.flink_keys import listed_keys
from sim.model.schema.sections import Section, SectionKey, cached_until_added, fields_by_key, keys_of
from sim.model.text import PrintableError, did_you_mean
from sim.model.units import format_duration
from sim.model.value_types import BYTE_RATE, RECORD_RATE

# ---- The JSON Schema of scenario files, and of other files that are described by `Section` classes. It is generated from the
# classes and committed to the repository.


def json_schema(document: type[Section] = Document, title: str = "ckptsim scenario") -> dict[str, Any]:
    """Return a JSON Schema for editors and validators.

    `document`: class of the whole file, by default that of a scenario.  `title`: title of the schema.
    """
    schema = deepcopy(_schema_of(document))
    if document is Document:
        schema["required"].remove("checkpoint")  # `flink:` may configure checkpoints instead
        schema["$defs"]["Checkpoint"].pop("required")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": title}


def schema_text(document: type[Section] = Document, title: str = "ckptsim scenario") -> str:
    """Return the JSON Schema as the text that is committed to the repository."""
    return json.dumps(json_schema(document, title), indent=1, ensure_ascii=False) + "\n"


@cached_until_added
def _schema_of(document: type[Section]) -> dict[str, Any]:
    """Return the JSON Schema of a class.  Cached, because pydantic needs a fifth of a second for that of a scenario."""
    schema: dict[str, Any] = _tidy(document.model_json_schema(by_alias=True))
    return schema


def _tidy(node: Any) -> Any:
    """Return a schema without what pydantic adds for Python: null for optional keys, defaults of None, titles of keys."""
    if isinstance(node, list):
        return [_tidy(item) for item in node]
    if not isinstance(node, dict):
        return node
    tidy = {
        key: _tidy(value)
        for key, value in node.items()
        # a property that is called "title" has a schema as its value, not a text
        if not (key == "default" and value is None) and not (key == "title" and isinstance(value, str))
    }
    branches = [branch for branch in tidy.get("anyOf", ()) if branch != {"type": "null"}]
    if "anyOf" in tidy and len(branches) == 1:
        del tidy["anyOf"]
        return {**branches[0], **tidy}
    if "anyOf" in tidy:
        tidy["anyOf"] = branches
    return tidy


# ---- The reference of a scenario key: its meaning, values, default and Flink keys, from the JSON Schema and from the options of the
# model (`sim.model.options.Option`).


class UnknownKeyError(PrintableError, LookupError):
    """An unknown key.  The message names similar ones."""

    exit_code = 2


@frozen
class KeyReference:
    """A key of a scenario, as the reference describes it."""

    key: str  # dotted, with VERTEX for the name of a vertex: ``job.VERTEX.state.size``
    meaning: str
    values: str  # values that may be written, e.g. ``true | false``
    default: str  # value if the key is not set; "required"; or "none" if there is no default
    flink: tuple[str, ...]  # Flink's configuration keys for the same option
    older: tuple[str, ...]  # former names of these Flink keys, with the last version before the new name if it is known
    needs: str  # keys or values without which it has no effect; "" if it always has one
    excludes: tuple[str, ...]  # keys that must not be set together with it
    keys: tuple[str, ...]  # keys of the section; () if it is not a section

    def __str__(self) -> str:
        parts = {
            "meaning": self.meaning,
            "values": self.values,
            "default": self.default,
            "Flink": ", ".join(self.flink),
            "older": ", ".join(self.older),
            "only with": self.needs,
            "not with": ", ".join(self.excludes),
            "keys": ", ".join(self.keys),
        }
        parts = {name: text for name, text in parts.items() if text}
        width = max(map(len, parts), default=0)
        return "\n".join([self.key, *(f"  {name:<{width}}  {text}" for name, text in parts.items())])


def explain_key(key: str) -> KeyReference:
    """Return the reference of a key: of a scenario key such as ``storage.dfs.slow``, or of a Flink key.

    The name of a vertex in ``job.NAME.state`` may be any name or be missing, and indices of lists are ignored.  Raises
    `UnknownKeyError`, which names similar keys, if there is no such key.
    """
    known = {reference.key: reference for reference in all_keys()}
    known["job.VERTEX"] = replace(known["job"], key="job.VERTEX", meaning="A vertex, with a name of your choice.")
    steps = [step for step in key.strip().strip(".").split(".") if not step.isdigit()]
    of_vertex = ["job", "VERTEX", *steps[1:]]
    if steps[:1] == ["job"] and len(steps) > 1:
        steps = of_vertex if ".".join(of_vertex) in known else ["job", "VERTEX", *steps[2:]]
    requested = ".".join(steps)
    if requested in known:
        return known[requested]
    of_flink = key.removeprefix("flink.")
    for reference in known.values():
        if of_flink in [name.partition(" (")[0] for name in (*reference.flink, *reference.older)]:
            return reference
    if of_flink in listed_keys():
        raise UnknownKeyError(
            f"{of_flink} is a key of Flink that is not modelled: under flink: it is accepted and has no effect"
        )
    ends = [name for name in known if name.rpartition(".")[2] == key.rpartition(".")[2]]
    near = f"; there is {' and '.join(sorted(ends)[:3])}" if ends else did_you_mean(requested, known)
    raise UnknownKeyError(f"no key '{key}' in a scenario{near}")


def find_keys(word: str) -> tuple[KeyReference, ...]:
    """Return the references that mention a word, or one that begins with it: those with it in key or values first."""
    if not re.search(r"\w\w", word):
        return ()
    begins = re.compile(rf"(?<![a-z0-9]){re.escape(word.lower())}")
    found = [
        (not begins.search(f"{reference.key} {reference.values}".lower()), reference)
        for reference in all_keys()
        if begins.search(str(reference).lower())
    ]
    return tuple(reference for _, reference in sorted(found, key=itemgetter(0)))


def keys_below(key: str) -> tuple[KeyReference, ...]:
    """Return the references of the keys in a section; "" is the whole file."""
    section = "job.VERTEX" if key == "job" else key
    return tuple(reference for reference in all_keys() if reference.key.rpartition(".")[0] == section)


@cached_until_added
def all_keys() -> tuple[KeyReference, ...]:
    """Return the references of all keys.  A section comes before its keys."""
    schema = json_schema()
    found: dict[str, KeyReference] = {}
    for key in keys_of(Document):
        found.setdefault(key.dotted, _reference(key, schema))  # a section with two forms may yield a key twice
    return tuple(found.values())


def _reference(key: SectionKey, schema: dict[str, Any]) -> KeyReference:
    """Return the reference of a key.  `schema`: the JSON Schema of scenarios."""
    definitions, name, record, section = schema["$defs"], key.path[-1], key.record, key.section
    prefix, node = key.dotted.removesuffix(name), definitions.get(section.__name__, schema)
    field = node["properties"][name]
    needs = [
        " | ".join(f"{prefix}{other}" for other in needed.others) for needed in section.ONLY_WITH if name in needed.keys
    ]
    excludes = [
        f"{prefix}{other}"
        for group in section.alternatives()
        if name in group.keys
        for other in group.keys
        if other != name
    ]
    older = [] if record is None else [pair for flink in record.flink for pair in flink.older.items()]
    if record is not None and record.needs is not None:
        other, values = record.needs
        needs = [f"{prefix}{other}{': ' if values else ''}{' | '.join(values)}", *needs]
    return KeyReference(
        key.dotted,
        _sentence(field, [part.__name__ for part in key.parts], definitions),
        ", ".join(dict.fromkeys(_forms(field, definitions))),
        default_text(field, record, is_required=name in node.get("required", ())),
        () if record is None else tuple(flink.name for flink in record.flink),
        tuple(f"{name} (until {last})" if last else name for name, last in older),
        " and ".join(needs),
        (*(() if record is None else record.excludes), *excludes),
        tuple(dict.fromkeys(inner for part in key.parts for inner in fields_by_key(part))),
    )


def _sentence(field: dict[str, Any], inner: list[str], definitions: dict[str, Any]) -> str:
    """Return the description of a key, or that of its section if the key has none.  `inner`: names of section classes."""
    texts = [str(field.get("description", "")), *(str(definitions[name].get("description", "")) for name in inner)]
    return " ".join(next((text for text in texts if text), "").split())


def _forms(field: Any, definitions: dict[str, Any]) -> Iterator[str]:
    """Yield a text for each form of a value.  A form may be yielded twice."""
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
        yield " | ".join(
            dict.fromkeys(str(value).lower() if isinstance(value, bool) else str(value) for value in field["enum"])
        )
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


def default_text(field: Mapping[str, Any], record: Option | None, *, is_required: bool) -> str:
    """Return the default of a key: as a scenario writes it, or in the words of its description.

    Returns "required" if the key must be set, and "none" if it has no default.  `field`: its JSON Schema.  `record`: its option, or
    None if the key is not an option of the model.
    """
    if is_required:
        return "required"
    if record is not None and (default := default_of(record)):
        return default
    if record is not None and record.default is MISSING:
        return "required"
    sentence = next(
        filter(None, (form.search(str(field.get("description", ""))) for form in _DEFAULT_IN_SENTENCE)), None
    )
    return " ".join(sentence["default"].split()) if sentence is not None else "none"


def default_of(record: Option) -> str:
    """Return the default of an option as a scenario writes it, or in words.  Returns "" if it is not a single value."""
    value = record.default
    if record.default_text:
        return record.default_text
    if (record.leaf is BYTE_RATE and value is None) or record.leaf is RECORD_RATE:
        return "unlimited"
    if value is MISSING or value is None or record.leaf is None:
        return ""
    if isinstance(value, Distribution):
        mean = format_duration(value.mean)
        spread = f", cv {value.cv:g}" if value.kind != "constant" and DISTRIBUTIONS[value.kind].max_cv else ""
        return mean if value.kind == "constant" else f"{value.kind}, mean {mean}{spread}"
    return str(record.leaf.write(value))


_DEFAULT_IN_SENTENCE = (
    re.compile(r"(?:\b[Dd]efault|Not given)(?:, and [^:]*)?: (?P<default>.+?)(?:\.(?:\s|$)|;|$)", re.DOTALL),
    re.compile(r"(?P<default>[\w-]+)(?:, the default\b| \((?:the )?default\))"),
)
"""``...; default: the vertex's``, in the sentence of a key."""
