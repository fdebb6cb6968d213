"""What to write for a key that is missing, from the JSON Schema of its document: a first example, or all that its section needs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sim.scenario.text.problems import DocumentPath

Node = dict[str, Any]


def example_of(schema: Node, path: DocumentPath) -> str:
    """``interval: 30 s``, ``checkpoint: {interval: 30 s}``; empty if the schema has no example of it."""
    definitions: dict[str, Node] = schema.get("$defs", {})
    sections, fields = [schema], [schema]
    for step in path:
        found = [section["properties"][step] for section in sections if step in section["properties"]]
        if found:  # else it is the name of a vertex, or a place in a list
            fields = found
            sections = [section for field in fields for section in _sections(field, definitions)]
    texts = filter(None, (_written(field, definitions) for field in fields))
    text = next(texts, "")
    return f"{path[-1]}: {text}" if text else ""


def _sections(node: Any, definitions: dict[str, Node]) -> Iterator[Node]:
    """Sections that may stand there, or below names and places there."""
    if isinstance(node, list):
        for inner in node:
            yield from _sections(inner, definitions)
    elif isinstance(node, dict):
        if "properties" in node:
            yield node
        elif "$ref" in node:
            yield from _sections(_defined(node, definitions), definitions)
        for name in ("anyOf", "oneOf", "items", "additionalProperties"):
            yield from _sections(node.get(name), definitions)


def _written(node: Node, definitions: dict[str, Node]) -> str:
    if "$ref" in node:
        return _written(_defined(node, definitions), definitions)
    if "examples" in node:
        return str(node["examples"][0])
    if "enum" in node:
        return str(node["enum"][0])
    if node.get("type") == "integer":
        return str(max(1, node.get("minimum", 1)))
    if "properties" in node:
        inner = {name: _written(node["properties"][name], definitions) for name in node.get("required", ())}
        return f"{{{', '.join(f'{name}: {text}' for name, text in inner.items())}}}" if inner and all(inner.values()) else ""
    branches = (branch for name in ("oneOf", "anyOf") for branch in node.get(name, ()))
    return next(filter(None, (_written(branch, definitions) for branch in branches)), "")


def _defined(node: Node, definitions: dict[str, Node]) -> Node:
    return definitions[str(node["$ref"]).rpartition("/")[2]]
