"""The base of every mapping of a scenario document: which keys it knows, and what it says about others.

Pydantic can read the descriptions of keys as it makes a class (`use_attribute_docstrings`).  That takes a third of the time that all
sections take together, in every command.  Only the schema shows them, so that it reads them here.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterator
from functools import cache
from itertools import count, pairwise
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, Discriminator, ValidationInfo, model_validator
from pydantic.fields import FieldInfo

from sim.scenario.grammar.together import OneOf, OnlyWith
from sim.scenario.text.plain import Mapping
from sim.scenario.text.problems import Reading, did_you_mean


def complete_schema(schema: dict[str, Any], section: type[BaseModel]) -> None:
    """Add to the schema of one section how its keys depend on each other, and their descriptions."""
    if issubclass(section, Section):
        together: list[OneOf | OnlyWith] = [*section.ONE_OF, *section.ONLY_WITH]
        if together:
            schema["allOf"] = [own.schema() for own in together]
    _add_descriptions(schema, section)


def _add_descriptions(schema: dict[str, Any], section: type[BaseModel]) -> None:
    """A key that another class passed on has the description that stands there."""
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


Texts = dict[str, str]
_NUMBERS = count(1)
REBUILDS = [0]
"""How often sections were given other keys: what is read off them is kept until then."""


def _key(name: str) -> str:
    return name.rstrip("_").replace("_", "-")


class Section(BaseModel):
    """One mapping of the file.  Unknown, empty and not yet modelled keys are told where they stand, all of them."""

    model_config = ConfigDict(extra="forbid", frozen=True, alias_generator=_key, json_schema_extra=complete_schema, defer_build=True)
    # built when it is first asked: one that only stands in others is never built by itself

    LATER: ClassVar[Texts] = {}
    """Keys that are known but not modelled yet, and what they will mean."""
    HINTS: ClassVar[Texts] = {}
    """Keys that are often looked for here, and where they stand."""
    ONE_OF: ClassVar[tuple[OneOf, ...]] = ()
    """Keys that exclude each other."""
    ONLY_WITH: ClassVar[tuple[OnlyWith, ...]] = ()
    """Keys that need another one beside them."""
    MADE: ClassVar[int] = 0
    """How many sections were made before it."""

    @classmethod
    def __pydantic_init_subclass__(cls, **_: Any) -> None:
        cls.MADE = next(_NUMBERS)

    @model_validator(mode="before")
    @classmethod
    def _only_known_keys(cls, data: Any, info: ValidationInfo) -> Any:
        if not isinstance(data, Mapping) or not isinstance(info.context, Reading):
            return data
        known = [field.alias or name for name, field in cls.model_fields.items()]
        for key, value in data.items():
            here = (*data.path, key)
            if key in cls.LATER:
                info.context.wrong(here, f"known but not modelled yet ({cls.LATER[key]}): remove it")
            elif key not in known:
                hint = did_you_mean(key, known) or f"; known keys are {', '.join(sorted(known))}"
                hint = f": {cls.HINTS[key]}" if key in cls.HINTS else hint
                info.context.wrong(here, f"unknown key '{key}'{hint}")
            elif value is None:
                info.context.wrong(here, "has no value: write one or remove the key")
        written = {key: value for key, value in data.items() if key in known and value is not None}
        for group in cls.ONE_OF:
            if mistake := group.mistake(written):
                info.context.wrong(data.path, mistake)
        for needed in cls.ONLY_WITH:
            for key, mistake in needed.mistakes(written):
                info.context.wrong((*data.path, key), mistake)
        return written


def _map_or_text(value: object) -> str:
    return "map" if isinstance(value, (dict, BaseModel)) else "text"


MAP_OR_TEXT = Discriminator(_map_or_text)
"""Chooses between the branches tagged "map" and "text", so that only the mistakes of one are told."""


def add_key(section: type[Section], key: str, annotation: Any) -> None:
    """`section` may have one more key from now on, and so may every section around it.  `annotation`: as a class body would say it."""
    field = FieldInfo.from_annotated_attribute(annotation | None, None)
    field.alias = field.validation_alias = field.serialization_alias = key
    if isinstance(annotation, type):
        field.description = (annotation.__doc__ or "").partition("\n")[0]
    section.__pydantic_fields__[key.replace("-", "_")] = field
    rebuild(section)


def rebuild(section: type[Section]) -> None:
    """Rebuild this section and those around it: a section holds its keys as they were when it was built."""
    REBUILDS[0] += 1
    for later in sorted(below(Section), key=lambda found: found.MADE):
        if later.MADE >= section.MADE and later.__pydantic_complete__:
            later.model_rebuild(force=True)


def below(section: type[Section]) -> Iterator[type[Section]]:
    for found in section.__subclasses__():
        yield found
        yield from below(found)
