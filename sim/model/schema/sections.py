"""Sections of a scenario file: pydantic classes generated from the options of the model, and building the model from them."""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Callable, Container, Hashable, Iterator
from collections.abc import Mapping as AbcMapping
from dataclasses import MISSING, replace
from fractions import Fraction
from functools import cache, lru_cache, wraps
from itertools import combinations, pairwise
from types import new_class
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, NamedTuple, Self, TypeVar, get_args, get_origin

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    ModelWrapValidatorHandler,
    Tag,
    ValidationError,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    create_model,
    model_validator,
)
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from sim.model.catalogs import ADDITIONS
from sim.model.frozen import frozen
from sim.model.job import Distribution
from sim.model.options import Option, ValidationContext, attribute_of, options_of
from sim.model.randomness import DISTRIBUTIONS, DistributionKind
from sim.model.schema.text import DocumentPath, Mapping, Reading
from sim.model.text import did_you_mean, listed
from sim.model.value_types import BYTE_RATE, RANDOM_DURATION, RECORD_RATE, Duration, Number, OnOff, Size, ValueType

# ---- Dependencies between keys of a section, used by validation, the JSON Schema and the key reference.


@frozen
class OneOf:
    """Keys that exclude each other."""

    keys: AbcMapping[str, str]  # key -> what it says, where its name does not
    is_needed: bool = True  # False: they may all be missing

    def mistake(self, written: Container[str]) -> str:
        """Return the error message for the given keys, or an empty text."""
        present = [key for key in self.keys if key in written]
        if len(present) == 1 or not (present or self.is_needed):
            return ""
        named = [f"{key} ({what})" if what else key for key, what in self.keys.items()]
        if len(named) == 1:
            return f"write {named[0]}"
        there = f": there are {listed(present)}" if 1 < len(present) < len(named) else ""
        return f"write {'exactly ' if self.is_needed else ''}one of {listed(named)}{there}"

    def schema(self) -> dict[str, Any]:
        """As JSON Schema."""
        if self.is_needed:
            return {"oneOf": [{"required": [key]} for key in self.keys]}
        return {"not": {"anyOf": [{"required": list(pair)} for pair in combinations(self.keys, 2)]}}


@frozen
class OnlyWith:
    """Keys that need another key in the same section."""

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
                (key, f"needs {self.named}{self.why and f': {self.why}'}") for key in self.keys if key in written
            )

    def schema(self) -> dict[str, Any]:
        """As JSON Schema."""
        needed = {"anyOf": [{"required": [other]} for other in self.others]}
        return {"dependentSchemas": dict.fromkeys(self.keys, needed)}


# ---- The base class of sections, with error messages for unknown keys.
#
# Descriptions of keys are read only for the schema: pydantic's `use_attribute_docstrings` would read them when a class is
# created, which takes a third of the start-up time of all sections, in every command.


def complete_schema(schema: dict[str, Any], section: type[BaseModel]) -> None:
    """Add dependencies between keys, and descriptions, to the schema of a section."""
    if issubclass(section, Section):
        together: list[OneOf | OnlyWith] = [*section.alternatives(), *section.ONLY_WITH]
        if together:
            schema["allOf"] = [rule.schema() for rule in together]
    _add_descriptions(schema, section)


def _add_descriptions(schema: dict[str, Any], section: type[BaseModel]) -> None:
    """Add the descriptions of keys; inherited keys have the description of the base class."""
    texts: dict[str, str] = {}
    for base in reversed(section.__mro__):
        if issubclass(base, BaseModel) and base is not BaseModel:
            texts |= {
                name: record.sentence
                for options in vars(base).get("OPTIONS", {}).values()
                for name, record in options.items()
            }
            texts |= _texts_of_module(base.__module__).get(base.__name__, {})
    for name, field in section.model_fields.items():
        if name in texts:
            schema["properties"][field.alias or name].setdefault("description", texts[name])


@cache
def _texts_of_module(module: str) -> dict[str, dict[str, str]]:
    """Return the docstrings of attributes in a module, by class and attribute."""
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
_SECTIONS: list[type[Section]] = []
"""All sections; those that contain others are made after them."""
REBUILDS = [0]
"""Number of changes of sections by plug-ins; caches derived from sections are invalid when it changes."""


def cached_until_added(compute: Callable[..., T]) -> Callable[..., T]:
    """Cache a function of sections and catalogs until keys or records are added."""

    @lru_cache(maxsize=16)
    def cached(_state: tuple[int, int], *args: Hashable) -> T:
        return compute(*args)

    @wraps(compute)
    def result(*args: Any) -> T:
        return cached((REBUILDS[0], ADDITIONS[0]), *args)

    return result


def _key(name: str) -> str:
    return name.rstrip("_").replace("_", "-")


class Section(BaseModel):
    """A mapping of the file.  All unknown and empty keys are reported at their positions."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, alias_generator=_key, json_schema_extra=complete_schema, defer_build=True
    )
    # validators are built on first use: sections that only occur in others never need their own

    HINTS: ClassVar[Texts] = {}
    """Keys that users look for in this section -> where they belong."""
    ONE_OF: ClassVar[tuple[OneOf, ...]] = ()
    """Keys that exclude each other."""
    ONLY_WITH: ClassVar[tuple[OnlyWith, ...]] = ()
    """Keys that need another key in the same section."""

    @classmethod
    def __pydantic_init_subclass__(cls, **_: Any) -> None:
        super().__pydantic_init_subclass__()
        _SECTIONS.append(cls)

    @classmethod
    def alternatives(cls) -> tuple[OneOf, ...]:
        """Return the keys that exclude each other."""
        return cls.ONE_OF

    @property
    def only_key(self) -> tuple[str, Any]:
        """The name and the value of the only key that is written."""
        return next(
            (field.alias or name, value)
            for name, field in type(self).model_fields.items()
            if (value := getattr(self, name)) is not None
        )

    @model_validator(mode="wrap")
    @classmethod
    def _of_mapping(cls, data: Any, handler: ModelWrapValidatorHandler[Self], info: ValidationInfo) -> Self:
        """Validate a mapping.  Valid ones are cached, because the combinations of a sweep share them."""
        if not isinstance(data, Mapping) or not isinstance(info.context, Reading):
            return handler(data)
        reading = info.context
        return _read_once(data, reading, cls, lambda: handler(cls._known_keys(data, reading)))

    @classmethod
    def _known_keys(cls, data: Mapping, reading: Reading) -> dict[str, Any]:
        """Return the keys with values.  Errors are added to `reading`."""
        known_keys = fields_by_key(cls)
        for key, value in data.items():
            path = (*data.path, key)
            if key not in known_keys:
                hint = did_you_mean(key, known_keys) or f"; known keys are {', '.join(sorted(known_keys))}"
                hint = f": {cls.HINTS[key]}" if key in cls.HINTS else hint
                reading.wrong(path, f"unknown key '{key}'{hint}")
            elif value is None:
                reading.wrong(path, "has no value: write one or remove the key")
        written = {key: value for key, value in data.items() if key in known_keys and value is not None}
        for group in cls.alternatives():
            if mistake := group.mistake(written):
                reading.wrong(data.path, mistake)
        for needed in cls.ONLY_WITH:
            for key, mistake in needed.mistakes(written):
                reading.wrong((*data.path, key), mistake)
        return written


def fields_by_key(section: type[BaseModel]) -> dict[str, FieldInfo]:
    """Return the fields of a section by their keys in a document."""
    return {field.alias or name: field for name, field in section.model_fields.items()}


def _read_once(data: Mapping, reading: Reading, kind: object, read: Callable[[], T]) -> T:
    cached: T | None = data.read.get((kind, REBUILDS[0]))
    if cached is None:
        cached = read()
        if not reading.problems:
            data.read[kind, REBUILDS[0]] = cached
    return cached


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


M = TypeVar("M")
TextOrMap = Annotated[Annotated[T, Tag("text")] | Annotated[M, Tag("map")], Discriminator(_map_or_text)]
"""A value, or a section instead of it; only errors of the written form are reported."""
ONE_OR_LIST = Discriminator(lambda value: "list" if isinstance(value, list) else "one")


# ---- Plain document -> a section.  Errors of pydantic are reported at their keys, in our own words.

S = TypeVar("S", bound=Section)


def validate_as(kind: type[S], plain: Mapping, reading: Reading) -> S | None:
    """Return the validated section, or None with errors in `reading`."""
    try:
        return kind.model_validate(plain, context=reading)
    except ValidationError as error:
        for details in error.errors(include_url=False):
            if details["type"] != "none_required":  # pydantic also reports the branch None of an optional key
                is_missing = details["type"] == "missing"
                path = _document_path(plain, details["loc"], missing=is_missing)
                reading.wrong(path, _missing_message(kind, path) if is_missing else _error_message(details))
        return None


def _document_path(plain: Any, loc: tuple[str | int, ...], *, missing: bool) -> DocumentPath:
    """Return the steps of a pydantic location that are keys or indices of the document, not tags of unions or validators."""
    path: DocumentPath = ()
    for i, step in enumerate(loc):
        if (
            (step in plain)
            if isinstance(plain, dict)
            else (isinstance(plain, list) and isinstance(step, int) and step < len(plain))
        ):
            plain = plain[step]
        elif not (missing and i == len(loc) - 1):
            continue
        path = (*path, step)
    return path


def _missing_message(document: type[Section], path: DocumentPath) -> str:
    """Return the message for a missing key, with an example such as ``interval: 30 s`` if its type has one."""
    sections, fields = [document], list[FieldInfo]()
    for step in path:
        named = [field for section in sections for key, field in fields_by_key(section).items() if key == step]
        if named:  # otherwise the step is the name of a vertex, or an index of a list
            fields, sections = named, [part for field in named for part in _sections_in(field.annotation)]
    example = next(filter(None, map(_example_of_field, fields)), "")
    return f"required key is missing{f', e.g. {path[-1]}: {example}' if example else ''}"


def _example_of_field(field: FieldInfo) -> str:
    """Return an example of a value as YAML, or "" if its type has none."""
    return next(filter(None, map(_example_of_type, [*field.metadata, field.annotation])), "")


def _example_of_type(kind: Any) -> str:
    """Return an example of a `ValueType`, a choice, or the required keys of a section; of a union that of the first with one."""
    if isinstance(kind, ValueType):
        schema = kind.__get_pydantic_json_schema__(None, None)
        least = max(1, schema.get("minimum", 1))
        return str(
            (schema.get("examples") or schema.get("enum") or [least if schema.get("type") == "integer" else ""])[0]
        )
    if isinstance(kind, type) and issubclass(kind, Section):
        needed = {key: _example_of_field(field) for key, field in fields_by_key(kind).items() if field.is_required()}
        texts = ", ".join(f"{key}: {text}" for key, text in needed.items())
        return f"{{{texts}}}" if needed and all(needed.values()) else ""
    if get_origin(kind) is Literal:
        return str(get_args(kind)[0])
    is_collection = get_origin(kind) in (list, dict)
    return (
        ""
        if is_collection
        else next(filter(None, map(_example_of_type, [*getattr(kind, "__metadata__", ()), *get_args(kind)])), "")
    )


def _error_message(details: ErrorDetails) -> str:
    value = details["input"]
    match details["type"]:
        case "value_error":
            return str(details["ctx"]["error"])
        case "model_type" | "dict_type" | "model_attributes_type":
            return f"expected a mapping, not {_kind_text(value)}"
        case "list_type":
            return f"expected a list, not {_kind_text(value)}"
        case "string_type":
            return f"expected text, not {_kind_text(value)}"
        case "literal_error":
            choices = str(details["ctx"]["expected"]).replace("'", "")
            return f"expected {choices}, not {_kind_text(value)}"
        case "too_short" | "string_too_short":
            return "is empty: write at least one value"
        case _:
            return details["msg"]


def _kind_text(value: object) -> str:
    if isinstance(value, dict):
        return "a mapping"
    return "a list" if isinstance(value, list) else f"'{str(value)[:40]}'"


# ---- Keys that plug-ins add.


def add_key(section: type[Section], key: str, annotation: Any) -> None:
    """Add a key to a section, and rebuild the sections that contain it; `annotation` is the type of the key."""
    field = field_of(key, annotation)
    if isinstance(annotation, type):
        field.description = (annotation.__doc__ or "").partition("\n")[0]
    section.__pydantic_fields__[key.replace("-", "_")] = field
    rebuild(section)


def field_of(key: str, annotation: Any, is_required: bool = False) -> FieldInfo:
    """Return the field of a section for a key."""
    field = (
        FieldInfo.from_annotation(annotation)
        if is_required
        else FieldInfo.from_annotated_attribute(annotation | None, None)
    )
    field.alias = field.validation_alias = field.serialization_alias = key
    return field


def rebuild(section: type[Section]) -> None:
    """Rebuild a section and those that contain it, because pydantic copies the fields of nested sections."""
    REBUILDS[0] += 1
    for later in _SECTIONS[_SECTIONS.index(section) :]:
        if later.__pydantic_complete__:
            later.model_rebuild(force=True)


# ---- Sweep axes.


class AxisValues(list[Any]):
    """The values of one axis."""


def _one_or_axis(value: object) -> str:
    """Return whether a list is an axis, not a schedule of rates (`{at: ..., rate: ...}`)."""
    schedule = isinstance(value, list) and value and all(isinstance(item, dict) and "at" in item for item in value)
    return "axis" if isinstance(value, list) and not schedule else "one"


def _distinct(values: list[Any]) -> AxisValues:
    repeats = [i for i, value in enumerate(values) if value in values[:i]]
    if repeats:
        raise ValueError(f"value {repeats[0] + 1} of this axis repeats value {values.index(values[repeats[0]]) + 1}")
    return AxisValues(values)


if TYPE_CHECKING:
    Axis = Annotated[T, "or a list of T"]  # a single value after `variants` has replaced axes
else:
    Axis = Annotated[
        Annotated[T, Tag("one")] | Annotated[list[T], Field(min_length=1), AfterValidator(_distinct), Tag("axis")],
        Discriminator(_one_or_axis),
    ]
"""One value, or a list of them: a sweep axis."""


# ---- Distributions: a constant, or a named distribution with its mean.


class DurationSpread(Section):
    """Mean and coefficient of variation (standard deviation / mean)."""

    mean: Axis[Duration]
    """Mean of the distribution."""
    cv: Axis[Number]
    """Coefficient of variation: standard deviation divided by the mean."""


class SizeSpread(Section):
    """Mean and coefficient of variation (standard deviation / mean)."""

    mean: Axis[Size]
    """Mean of the distribution."""
    cv: Axis[Number]
    """Coefficient of variation: standard deviation divided by the mean."""


class DistributionSection(Section):
    """Exactly one distribution, by its name."""

    HINTS: ClassVar[Texts] = {
        "constant": "write the value alone, without a mapping",
        "normal": "write lognormal: {mean: ..., cv: ...}",
    }

    @classmethod
    def alternatives(cls) -> tuple[OneOf, ...]:
        return (OneOf(dict.fromkeys(fields_by_key(cls), "")),)


def _mean(value: object) -> object:
    """Report a list, which looks like the bounds of a range."""
    if isinstance(value, list):
        another = "another range is not modelled, write erlang: {mean: ..., cv: ...}, and several means as a list of distributions"
        raise ValueError(
            f"expected the mean, not a list: values are from 0 to twice the mean; {another}"
        )  # pydantic collects ValueErrors
    return value


def _distribution_section(
    name: str, sentence: str, mean: Any, spread: type[Section], kinds: list[DistributionKind]
) -> Any:
    """Return a section class of which exactly one key is written, the name of a distribution."""
    one_or_axis: Any = Axis
    axis, alone = one_or_axis[mean], Annotated[mean, BeforeValidator(_mean)]
    types = {kind.name: spread if kind.max_cv else alone if kind.name == "uniform" else axis for kind in kinds}
    keys: dict[str, Any] = {
        attribute_of(kind.name): (types[kind.name] | None, Field(None, description=kind.sentence)) for kind in kinds
    }
    return create_model(name, __base__=DistributionSection, __doc__=sentence, __module__=__name__, **keys)


DurationDistribution = _distribution_section(
    "DurationDistribution",
    "Exactly one of these distributions, by its name.",
    Duration,
    DurationSpread,
    list(DISTRIBUTIONS.values()),
)
SizeDistribution = _distribution_section(
    "SizeDistribution",
    "Exactly one of these distributions, by its name.  A size that is drawn is at least 1 B, as every record has one.",
    Size,
    SizeSpread,
    [kind for kind in DISTRIBUTIONS.values() if kind.of_sizes],
)
DurationField = TextOrMap[Duration, DurationDistribution]  # type: ignore[valid-type]
SizeField = TextOrMap[Size, SizeDistribution]  # type: ignore[valid-type]


def build_distribution(
    section: int | DistributionSection | None, default: Distribution, at: ValidationContext
) -> Distribution:
    """Build the distribution at a place.  Errors are reported there."""
    if section is None:
        return default
    if isinstance(section, int):
        return Distribution(section)
    kind, value = section.only_key
    if isinstance(value, int):
        return Distribution(value, kind)
    most = DISTRIBUTIONS[kind].max_cv
    if not 0 < value.cv <= most:
        at.error(f"must lie between 0 (excluded) and {most}; cv is standard deviation / mean", kind, "cv")
    return Distribution(value.mean, kind, float(value.cv))


# ---- Sections whose keys are options of the model, and building the model from a section.


class Options(Section):
    """A mapping with a key for each option of dataclasses of the model: ``class Retry(Options, of=(storage.Retry,))``.

    An option that the class body declares, too, is written as it says there.  ``axes=False``: none of its values may be a list.
    """

    OPTIONS: ClassVar[dict[type, dict[str, Option]]] = {}
    """Dataclass of the model -> attribute -> record."""

    def __init_subclass__(cls, **_: Any) -> None:
        super().__init_subclass__()

    @classmethod
    def __pydantic_init_subclass__(cls, of: tuple[type, ...] = (), *, axes: bool = True, **_: Any) -> None:
        super().__pydantic_init_subclass__()
        cls.OPTIONS = {
            model: {attribute_of(record.key): record for record in options_of(model).values()} for model in of
        }
        cls.HINTS = {key: hint for model in of for key, hint in getattr(model, "HINTS", {}).items()} | cls.HINTS
        own, in_order = cls.__pydantic_fields__, dict[str, Any]()
        for attribute, record in (pair for records in cls.OPTIONS.values() for pair in records.items()):
            derived = own.pop(attribute, None) or field_of(
                record.key, annotation_of(record, axes=axes), record.is_required
            )
            in_order[attribute] = derived
        own.update(in_order)

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...


FORMS: dict[type, Any] = {}
"""Dataclass of the model -> type of its key, if that is not a section with its options."""


@cache
def section_of(model: type) -> Any:
    """Return the type of a key for a dataclass of the model: a section with its options, or another form."""
    names = {"__doc__": (model.__doc__ or "").partition("\n")[0], "__module__": __name__}
    return FORMS.get(model) or new_class(model.__name__, (Options,), {"of": (model,)}, lambda body: body.update(names))


def build_model(
    model: type[T], section: Options | None, at: ValidationContext, usual: T | None = None, /, **others: object
) -> T:
    """Build a dataclass of the model from the given options, and call its method `completed`.

    `usual` has the values of missing keys.  `others` are fields that do not correspond to one key; None means the default.
    """
    values = {name: value for name, value in others.items() if value is not None}
    if section is None:
        return model(**values) if usual is None else replace(usual, **values)  # type: ignore[type-var]  # a dataclass
    made, records = next((made, records) for made, records in section.OPTIONS.items() if issubclass(made, model))
    for attribute, record in records.items():
        if (written := getattr(section, attribute)) is None:
            continue
        below = at.child(record.key)
        if not record.has_custom_section and record.field not in others:
            values[record.field] = _value(record, written, below)
        if record.needs is not None:
            other = attribute_of(record.needs[0])
            default = records[other].default if usual is None else getattr(usual, records[other].field)
            _check_need(record.needs, getattr(section, other) or default, below)
    instance = made(**values) if usual is None else replace(usual, **values)  # type: ignore[type-var]
    complete = getattr(type(instance), "completed", None)  # a field of some classes
    return complete(instance, replace(at, section=section)) if callable(complete) else instance


def build_part(record: Option, written: Any, at: ValidationContext) -> Any:
    """Build a nested dataclass from a section, or from a word such as `on`."""
    if isinstance(written, Options):
        return build_model(record.part, written, at)
    if isinstance(written, Section):
        return written.build(at)  # type: ignore[attr-defined]  # it builds itself
    return record.part() if written is True else None


def _check_need(needs: tuple[str, tuple[str, ...]], other: object, at: ValidationContext) -> None:
    """Warn if an option has no effect, because another key does not have the needed value `other`."""
    key, readers = needs
    if not readers and not other:
        at.warn(f"has no effect: write {key}")
    elif readers and other not in readers:
        at.warn(f"has no effect: {' and '.join(readers)} {'reads' if len(readers) == 1 else 'read'} it, not {other}")


def _value(record: Option, written: Any, at: ValidationContext) -> Any:
    """Convert a value to that of the model."""
    if record.part is not None:
        return build_part(record, written, at)
    if record.leaf is RANDOM_DURATION:
        return build_distribution(written, Distribution(0) if record.default is MISSING else record.default, at)
    if record.leaf is RECORD_RATE:
        if isinstance(written, Fraction) and written < 1:
            at.error("must be at least 1/s")
        return round(written) if isinstance(written, Fraction) else None
    if written == 0 and record.must_be_positive:
        at.error("must be more than 0")
    if written == 0 and record.leaf is BYTE_RATE and not record.is_optional:
        at.error("cannot be unlimited: write a rate")
    return None if written == 0 and (record.zero_means_never or record.leaf is BYTE_RATE) else written


def annotation_of(record: Option, *, axes: bool = True) -> Any:
    """Return the type annotation of an option's key in a section."""
    one_or_axis: Any = Axis
    if record.part is not None:
        mapping = section_of(record.part)
        if not record.accepts_on_off:
            return mapping
        text_or_map: Any = TextOrMap
        leaf = text_or_map[OnOff, mapping]
    else:
        leaf = DurationField if record.leaf is RANDOM_DURATION else Annotated[Any, record.leaf]
    return one_or_axis[leaf] if axes else leaf


class SectionKey(NamedTuple):
    """A key of a section."""

    path: tuple[str, ...]  # VERTEX stands for every vertex
    section: type[Section]
    record: Option | None
    model: type  # the dataclass whose option it is
    inside: Option | None  # the option whose section holds it
    parts: list[type[Section]]  # that may be written there

    @property
    def dotted(self) -> str:
        return ".".join(self.path)


def keys_of(section: type[Section], path: tuple[str, ...] = (), inside: Option | None = None) -> Iterator[SectionKey]:
    """Yield all keys of a section, each section before its keys."""
    made = section.OPTIONS if issubclass(section, Options) else {}
    records = {attribute: (model, record) for model, options in made.items() for attribute, record in options.items()}
    for attribute, field in section.model_fields.items():
        key_path = (*path, field.alias or attribute)
        model, record = records.get(attribute, (object, None))
        parts = list(dict.fromkeys(_sections_in(field.annotation)))
        yield SectionKey(key_path, section, record, model, inside, parts)
        for part in parts:
            yield from keys_of(part, (*key_path, "VERTEX") if key_path == ("job",) else key_path, record)


def _sections_in(annotation: Any) -> Iterator[type[Section]]:
    if isinstance(annotation, type) and issubclass(annotation, Section):
        yield annotation
    for part in get_args(annotation):
        yield from _sections_in(part)
