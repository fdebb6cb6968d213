"""The sentence of each key, as its description in the JSON Schema: that of its option, or what stands below it in the class.

Pydantic can read these texts as it makes the class (`use_attribute_docstrings`).  That takes a third of the time that all
sections take together, in every command.  Only the schema shows them, so that it reads them.
"""

from __future__ import annotations

import ast
import inspect
import sys
from functools import cache
from itertools import pairwise
from typing import Any

from pydantic import BaseModel


def add_descriptions(schema: dict[str, Any], section: type[BaseModel]) -> None:
    """Add descriptions to the schema of one section.  A key that another class passed on has the description that stands there."""
    texts: dict[str, str] = {}
    for base in reversed(section.__mro__):
        if issubclass(base, BaseModel) and base is not BaseModel:
            texts |= {name: record.sentence for found in vars(base).get("OPTIONS", {}).values() for name, record in found.items()}
            texts |= _texts_of_module(base.__module__).get(base.__name__, {})
    for name, field in section.model_fields.items():
        if name in texts:
            schema["properties"][field.alias or name].setdefault("description", texts[name])


@cache
def _texts_of_module(module: str) -> dict[str, dict[str, str]]:
    """Class -> key -> the text below it."""
    try:
        source = inspect.getsource(sys.modules[module])
    except (KeyError, OSError, TypeError):  # typed at a prompt: it has no file
        return {}
    classes = [statement for statement in ast.walk(ast.parse(source)) if isinstance(statement, ast.ClassDef)]
    return {statement.name: _texts_below_keys(statement) for statement in classes}


def _texts_below_keys(section: ast.ClassDef) -> dict[str, str]:
    texts = {}
    for statements in pairwise(section.body):
        match statements:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                texts[name] = inspect.cleandoc(text)
    return texts
