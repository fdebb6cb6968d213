"""Sections of a scenario file: classes that know their keys, groups of keys, distributions."""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Callable, Container, Iterator
from collections.abc import Mapping as AbcMapping
from dataclasses import dataclass
from functools import cache
from itertools import combinations, count, pairwise
from typing import Annotated, Any, ClassVar, Self, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    ModelWrapValidatorHandler,
    Tag,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    create_model,
    model_validator,
)
from pydantic.fields import FieldInfo

from sim.model.job import Distribution
from sim.model.randomness import DISTRIBUTIONS, DistributionKind
from sim.model.schema.fields import Axis, Duration, Number, Size
from sim.model.schema.text import DocumentPath, Mapping, Reading, did_you_mean
from sim.model.text import listed

# ---- Keys of a section that depend on each other: which exclude each other, and which count beside another one only.
#
# Reading, the JSON Schema and the reference of keys take it from here.


@dataclass(frozen=True, slots=True)
class OneOf:
    """Keys that exclude each other."""

    keys: AbcMapping[str, str]  # key -> what it says, where its name does not
    is_needed: bool = True  # False: none of them may stand there, too

    def mistake(self, written: Container[str]) -> str:
        """What is wrong with the keys that are written, in words.  Empty: nothing."""
        found = [key for key in self.keys if key in written]
        if len(found) == 1 or not (found or self.is_needed):
            return ""
        named = [f"{key} ({what})" if what else key for key, what in self.keys.items()]
        if len(named) == 1:
            return f"write {named[0]}"
        there = f": there are {listed(found)}" if 1 < len(found) < len(named) else ""
        return f"write {'exactly ' if self.is_needed else ''}one of {listed(named)}{there}"

    def schema(self) -> dict[str, Any]:
        """As JSON Schema."""
        if self.is_needed:
            return {"oneOf": [{"required": [key]} for key in self.keys]}
        return {"not": {"anyOf": [{"required": list(pair)} for pair in combinations(self.keys, 2)]}}


@dataclass(frozen=True, slots=True)
class OnlyWith:
    """Keys that need another one beside them."""

    keys: tuple[str, ...]
    others: tuple[str, ...]  # one of these
    why: str = ""

    @property
    def named(self) -> str:
        """The others as text."""
        *first, last = self.others
        return f"{', '.join(first)} or {last}" if first else last

    def mistakes(self, written: Container[str]) -> Iterator[tuple[str, str]]:
        """(key, mistake)."""
        if not any(other in written for other in self.others):
            yield from (
                (key, f"stands with {self.named}{self.why and f': {self.why}'}") for key in self.keys if key in written
            )

    def schema(self) -> dict[str, Any]:
        """As JSON Schema."""
        needed = {"anyOf": [{"required": [other]} for other in self.others]}
        return {"dependentSchemas": dict.fromkeys(self.keys, needed)}


# ---- The base of every mapping of a scenario document: which keys it knows, and what it says about others.
#
# Pydantic can read the descriptions of keys as it makes a class (`use_attribute_docstrings`).  That takes a third of
# the time that all sections take together, in every command.  Only the schema shows them, so that it reads them here.


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
            texts |= {
                name: record.sentence
                for found in vars(base).get("OPTIONS", {}).values()
                for name, record in found.items()
            }
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
T = TypeVar("T")
_NUMBERS = count(1)
REBUILDS = [0]
"""How often sections were given other keys: what is read off them is kept until then."""


def _key(name: str) -> str:
    return name.rstrip("_").replace("_", "-")


class Section(BaseModel):
    """One mapping of the file.  Unknown, empty and not yet modelled keys are told where they stand, all of them."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, alias_generator=_key, json_schema_extra=complete_schema, defer_build=True
    )
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
        super().__pydantic_init_subclass__()
        cls.MADE = next(_NUMBERS)

    @model_validator(mode="wrap")
    @classmethod
    def _of_mapping(cls, data: Any, handler: ModelWrapValidatorHandler[Self], info: ValidationInfo) -> Self:
        """A mapping without mistakes is read once, however many combinations of a sweep have it."""
        if not isinstance(data, Mapping) or not isinstance(info.context, Reading):
            return handler(data)
        reading = info.context
        return _read_once(data, reading, cls, lambda: handler(cls._known_keys(data, reading)))

    @classmethod
    def _known_keys(cls, data: Mapping, reading: Reading) -> dict[str, Any]:
        """The keys with values; mistakes go to `reading`."""
        known = [field.alias or name for name, field in cls.model_fields.items()]
        for key, value in data.items():
            here = (*data.path, key)
            if key in cls.LATER:
                reading.wrong(here, f"known but not modelled yet ({cls.LATER[key]}): remove it")
            elif key not in known:
                hint = did_you_mean(key, known) or f"; known keys are {', '.join(sorted(known))}"
                hint = f": {cls.HINTS[key]}" if key in cls.HINTS else hint
                reading.wrong(here, f"unknown key '{key}'{hint}")
            elif value is None:
                reading.wrong(here, "has no value: write one or remove the key")
        written = {key: value for key, value in data.items() if key in known and value is not None}
        for group in cls.ONE_OF:
            if mistake := group.mistake(written):
                reading.wrong(data.path, mistake)
        for needed in cls.ONLY_WITH:
            for key, mistake in needed.mistakes(written):
                reading.wrong((*data.path, key), mistake)
        return written


def _read_once(data: Mapping, reading: Reading, kind: object, read: Callable[[], T]) -> T:
    found: T | None = data.read.get((kind, REBUILDS[0]))
    if found is None:
        found = read()
        if not reading.problems:
            data.read[kind, REBUILDS[0]] = found
    return found


def _named(data: Any, handler: ValidatorFunctionWrapHandler, info: ValidationInfo) -> Any:
    return (
        _read_once(data, info.context, "named", lambda: handler(data))
        if isinstance(data, Mapping) and isinstance(info.context, Reading)
        else handler(data)
    )


READ_ONCE = WrapValidator(_named)
"""Of a mapping of names to sections: see `Section`."""


def _map_or_text(value: object) -> str:
    return "map" if isinstance(value, (dict, BaseModel)) else "text"


MAP_OR_TEXT = Discriminator(_map_or_text)
"""Chooses between the branches tagged "map" and "text", so that only the mistakes of one are told."""


def add_key(section: type[Section], key: str, annotation: Any) -> None:
    """`section` may have one more key from now on, and so may every section around it.  `annotation`: as a class body would say it."""
    field = field_of(key, annotation)
    if isinstance(annotation, type):
        field.description = (annotation.__doc__ or "").partition("\n")[0]
    section.__pydantic_fields__[key.replace("-", "_")] = field
    rebuild(section)


def field_of(key: str, annotation: Any, is_required: bool = False) -> FieldInfo:
    """The field of a section for a key."""
    field = (
        FieldInfo.from_annotation(annotation)
        if is_required
        else FieldInfo.from_annotated_attribute(annotation | None, None)
    )
    field.alias = field.validation_alias = field.serialization_alias = key
    return field


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


# ---- Distributions: a value alone, or one by name with its mean; as they are written, and as the model has them.


class DurationSpread(Section):
    """Mean and coefficient of variation (standard deviation / mean)."""

    mean: Axis[Duration]
    """The mean of all values."""
    cv: Axis[Number]
    """Standard deviation over the mean."""


class SizeSpread(Section):
    """Mean and coefficient of variation (standard deviation / mean)."""

    mean: Axis[Size]
    """The mean of all values."""
    cv: Axis[Number]
    """Standard deviation over the mean."""


class Law(Section):
    """Exactly one distribution, by its name."""

    HINTS: ClassVar[Texts] = {
        "constant": "write the value alone, without a mapping",
        "normal": "write lognormal: {mean: ..., cv: ...}",
    }


def _mean(value: object) -> object:
    """The ends of a range look like a sweep axis."""
    if isinstance(value, list):
        another = "another range is not modelled, write erlang: {mean: ..., cv: ...}, and several means as a list of distributions"
        raise ValueError(
            f"expected the mean, not a list: values are from 0 to twice the mean; {another}"
        )  # pydantic collects ValueErrors
    return value


def _section(name: str, sentence: str, mean: Any, spread: type[Section], kinds: list[DistributionKind]) -> Any:
    """A section with a key for each kind of distribution."""
    one_or_axis: Any = Axis
    axis, alone = one_or_axis[mean], Annotated[mean, BeforeValidator(_mean)]
    types: dict[str, Any] = {
        kind.name: spread if kind.most_cv else alone if kind.name == "uniform" else axis for kind in kinds
    }
    keys: dict[str, Any] = {
        kind.name.replace("-", "_"): (types[kind.name] | None, Field(None, description=kind.sentence)) for kind in kinds
    }
    return create_model(name, __base__=Law, __doc__=sentence, __module__=__name__, **keys)


DurationLaw = _section(
    "DurationLaw",
    "Exactly one of these distributions, by its name.",
    Duration,
    DurationSpread,
    list(DISTRIBUTIONS.values()),
)
SizeLaw = _section(
    "SizeLaw",
    "Exactly one of these distributions, by its name.  A size that is drawn is at least 1 B, as every record has one.",
    Size,
    SizeSpread,
    [kind for kind in DISTRIBUTIONS.values() if kind.of_sizes],
)
DurationField = Annotated[Annotated[Duration, Tag("text")] | Annotated[DurationLaw, Tag("map")], MAP_OR_TEXT]  # type: ignore[valid-type]
SizeField = Annotated[Annotated[Size, Tag("text")] | Annotated[SizeLaw, Tag("map")], MAP_OR_TEXT]  # type: ignore[valid-type]


def law(given: int | Law | None, default: Distribution, here: DocumentPath, reading: Reading) -> Distribution:
    """The distribution that stands at `here`; mistakes go to `reading`."""
    if given is None:
        return default
    if isinstance(given, int):
        return Distribution(given)
    keys = {field.alias or name: name for name, field in type(given).model_fields.items()}
    named = {kind: value for kind, name in keys.items() if (value := getattr(given, name)) is not None}
    if len(named) != 1:
        *known, last = keys
        reading.wrong(here, f"write exactly one distribution: {', '.join(known)} or {last}")
        return default
    ((kind, value),) = named.items()
    if isinstance(value, int):
        return Distribution(value, kind)
    most = DISTRIBUTIONS[kind].most_cv
    if not 0 < value.cv <= most:
        reading.wrong((*here, kind, "cv"), f"must lie between 0 (excluded) and {most}; cv is standard deviation / mean")
    return Distribution(value.mean, kind, float(value.cv))
