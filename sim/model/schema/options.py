"""Sections whose keys are the options of the model, and the function that builds the model from a section."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import MISSING, replace
from fractions import Fraction
from functools import cache
from types import new_class
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NamedTuple, TypeVar, get_args

from pydantic import Field, Tag

from sim.model.catalog import At, Kind, Option, attribute_of, options_of
from sim.model.job import Distribution
from sim.model.schema import fields
from sim.model.schema.fields import Axis, choice_of
from sim.model.schema.sections import MAP_OR_TEXT, DurationField, Section, SizeField, field_of, law
from sim.model.schema.text import DocumentPath, Reading

T = TypeVar("T")

_LEAVES: dict[Kind, Any] = {
    Kind.DURATION: fields.Duration,
    Kind.INTERVAL: fields.Interval,
    Kind.BUFFER_TIMEOUT: fields.BufferTimeout,
    Kind.WARM_UP: fields.WarmUp,
    Kind.SIZE: fields.Size,
    Kind.BYTE_RATE: fields.ByteRate,
    Kind.RECORD_RATE: fields.RecordRate,
    Kind.SHARE: fields.Share,
    Kind.PERCENT: fields.Percent,
    Kind.NUMBER: fields.Number,
    Kind.COUNT: fields.Count,
    Kind.NATURAL: fields.Natural,
    Kind.POSITIVE: fields.Positive,
    Kind.PARALLELISM: fields.Parallelism,
    Kind.SWITCH: fields.Switch,
    Kind.ON_OFF: fields.OnOff,
    Kind.VERSION: fields.Version,
    Kind.NAME: Annotated[str, Field(min_length=1)],
    Kind.DURATION_LAW: DurationField,
    Kind.SIZE_LAW: SizeField,
}


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
"""Dataclass of the model -> how it is written, where that is not a section with its options alone."""


@cache
def section_of(model: type) -> Any:
    """How a dataclass of the model is written: as a section with a key for each of its options, or in its own form."""
    names = {"__doc__": (model.__doc__ or "").partition("\n")[0], "__module__": __name__}
    return FORMS.get(model) or new_class(model.__name__, (Options,), {"of": (model,)}, lambda body: body.update(names))


def built(model: type[T], given: Options | None, at: At, usual: T | None = None, /, **others: object) -> T:
    """Build the model from the written options, each checked by itself, and complete it.

    `usual`: a model whose values stand for keys that are not written.  `others`: fields that do not come from one key; None: the default.
    """
    values = {name: value for name, value in others.items() if value is not None}
    if given is None:
        return model(**values) if usual is None else replace(usual, **values)  # type: ignore[type-var]  # a dataclass
    made, records = next((made, records) for made, records in given.OPTIONS.items() if issubclass(made, model))
    for attribute, record in records.items():
        written, below = getattr(given, attribute), at.below(record.key)
        if written is not None and record.kind is not Kind.OWN and record.field not in others:
            values[record.field] = _value(record, written, below)
        if written is not None and record.needs is not None:
            other = attribute_of(record.needs[0])
            default = records[other].default if usual is None else getattr(usual, records[other].field)
            _check_need(record.needs, getattr(given, other) or default, below.here, at.reading)
    found = made(**values) if usual is None else replace(usual, **values)  # type: ignore[type-var]
    return found.completed(replace(at, given=given)) if hasattr(found, "completed") else found


def built_part(record: Option, written: Any, at: At) -> Any:
    """What a section, or a word for one, stands for."""
    if isinstance(written, Options):
        return built(record.part, written, at)
    if isinstance(written, Section):
        return written.built(at)  # type: ignore[attr-defined]  # a form of its own
    return record.part() if written in ("on", "true") else None


def _check_need(needs: tuple[str, tuple[str, ...]], other: object, here: DocumentPath, reading: Reading) -> None:
    """`other`: the value of the key that is needed."""
    key, readers = needs
    if not readers and not other:
        reading.warn(here, f"has no effect: write {key}")
    elif readers and other not in readers:
        reading.warn(
            here, f"has no effect: {' and '.join(readers)} {'reads' if len(readers) == 1 else 'read'} it, not {other}"
        )


def _value(record: Option, written: Any, at: At) -> Any:
    """The value that the model takes."""
    if record.part is not None:
        return built_part(record, written, at)
    if record.kind in (Kind.SWITCH, Kind.ON_OFF):
        return written in ("on", "true")
    if record.kind in (Kind.DURATION_LAW, Kind.SIZE_LAW):
        return law(written, Distribution(0) if record.default is MISSING else record.default, at.here, at.reading)
    if record.kind is Kind.RECORD_RATE:
        if isinstance(written, Fraction) and written < 1:
            at.wrong("must be at least 1/s")
        return round(written) if isinstance(written, Fraction) else None
    if written == 0 and record.above_zero:
        at.wrong("must be more than 0")
    if written == 0 and record.kind is Kind.BYTE_RATE and not record.is_optional:
        at.wrong("cannot be unlimited: write a rate")
    return None if written == 0 and (record.zero_is_none or record.kind is Kind.BYTE_RATE) else written


def annotation_of(record: Option, *, axes: bool = True) -> Any:
    """The type of its key in a section, as a class body would say it."""
    one_or_axis: Any = Axis
    if record.part is not None:
        mapping = section_of(record.part)
        if record.kind is Kind.PART:
            return mapping
        leaf: Any = Annotated[Annotated[fields.OnOff, Tag("text")] | Annotated[mapping, Tag("map")], MAP_OR_TEXT]
    else:
        leaf = Annotated[str, choice_of(record.choices)] if record.kind is Kind.WORD else _LEAVES[record.kind]
    return one_or_axis[leaf] if axes and record.kind is not Kind.NAME else leaf


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
    """All that a section may say, sections before what is in them."""
    made = section.OPTIONS if issubclass(section, Options) else {}
    records = {attribute: (model, record) for model, found in made.items() for attribute, record in found.items()}
    for attribute, field in section.model_fields.items():
        here = (*path, field.alias or attribute)
        model, record = records.get(attribute, (object, None))
        parts = list(dict.fromkeys(_sections_in(field.annotation)))
        yield SectionKey(here, section, record, model, inside, parts)
        for part in parts:
            yield from keys_of(part, (*here, "VERTEX") if here == ("job",) else here, record)


def _sections_in(annotation: Any) -> Iterator[type[Section]]:
    if isinstance(annotation, type) and issubclass(annotation, Section):
        yield annotation
    for part in get_args(annotation):
        yield from _sections_in(part)
