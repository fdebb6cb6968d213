"""The JSON Schema of scenario files, and of others like them, generated from their classes and committed beside them."""

from __future__ import annotations

import json
from copy import deepcopy
from functools import lru_cache
from typing import Any

from sim.model.catalogs.catalog import ADDITIONS
from sim.scenario.document import Document
from sim.scenario.grammar.section import REBUILDS, Section


def json_schema(document: type[Section] = Document, title: str = "ckptsim scenario") -> dict[str, Any]:
    """The JSON Schema of scenario files, for editors and validators."""
    schema = deepcopy(_of(document, (REBUILDS[0], ADDITIONS[0])))
    if document is Document:
        schema["required"].remove("checkpoint")  # flink: may say all of it
        schema["$defs"]["Checkpoint"].pop("required")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": title}


def schema_text(document: type[Section] = Document, title: str = "ckptsim scenario") -> str:
    """The committed file."""
    return json.dumps(json_schema(document, title), indent=1, ensure_ascii=False) + "\n"


@lru_cache(maxsize=4)
def _of(document: type[Section], state: tuple[int, int]) -> dict[str, Any]:  # noqa: ARG001  # other keys and values after a change
    """That of a class.  Pydantic takes a fifth of a second for a scenario's."""
    schema: dict[str, Any] = _tidy(document.model_json_schema(by_alias=True))
    return schema


def _tidy(node: Any) -> Any:
    """Remove what pydantic adds for Python: null for keys not given, defaults of None, titles of keys."""
    if isinstance(node, list):
        return [_tidy(item) for item in node]
    if not isinstance(node, dict):
        return node
    tidy = {key: _tidy(value) for key, value in node.items() if not (key == "default" and value is None) and not _is_title(key, value)}
    branches = [branch for branch in tidy.get("anyOf", ()) if branch != {"type": "null"}]
    if "anyOf" in tidy and len(branches) == 1:
        del tidy["anyOf"]
        return {**branches[0], **tidy}
    if "anyOf" in tidy:
        tidy["anyOf"] = branches
    return tidy


def _is_title(key: str, value: Any) -> bool:
    return key == "title" and isinstance(value, str)
