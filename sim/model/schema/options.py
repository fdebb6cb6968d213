"""Sections whose keys are the options of the model, and the function that builds the model from a section."""

from __future__ import annotations

from dataclasses import MISSING, replace
from fractions import Fraction
from keyword import iskeyword
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, TypeVar

from pydantic import BaseModel

from sim.model.catalog import Kind, Option, options_of
from sim.model.job import Distribution
from sim.model.schema import fields
from sim.model.schema.fields import Axis, choice_of
from sim.model.schema.sections import DurationField, Section, SizeField, law
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
    Kind.DURATION_LAW: DurationField,
    Kind.SIZE_LAW: SizeField,
}


if TYPE_CHECKING:
    from pydantic._internal._model_construction import ModelMetaclass
else:
    ModelMetaclass = type(BaseModel)  # it has no public name


class _Made(ModelMetaclass):
    """The metaclass of `Options`: it adds a key for each option of the model.

    An option that the class body declares, too, is written as it says there.
    """

    def __new__(
        mcs,
        name: str,
        bases: tuple[type, ...],
        namespace: dict[str, Any],
        of: tuple[type, ...] = (),
        *,
        axes: bool = True,
        **others: Any,
    ) -> type:
        found = {model: {attribute_of(record.key): record for record in options_of(model).values()} for model in of}
        declared = dict(namespace.get("__annotations__", {}))
        order, before = list(declared), -1
        for attribute, record in (pair for records in found.values() for pair in records.items()):
            if attribute not in declared:  # it stands behind the option before it
                order.insert(before + 1, attribute)
                declared[attribute] = annotation_of(record, axes=axes)
                namespace |= {} if record.default is MISSING else {attribute: None}
            before = order.index(attribute)
        namespace |= {"__annotations__": {attribute: declared[attribute] for attribute in order}, "OPTIONS": found}
        section: type = super().__new__(mcs, name, bases, namespace, **others)
        return section


class Options(Section, metaclass=_Made):
    """A mapping with a key for each option of dataclasses of the model: ``class Retry(Options, of=(storage.Retry,))``.

    ``axes=False``: none of its values may be a list.
    """

    OPTIONS: ClassVar[dict[type, dict[str, Option]]] = {}
    """Dataclass of the model -> attribute -> record."""

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...


def built(
    model: type[T],
    given: Options | None,
    here: DocumentPath,
    reading: Reading,
    usual: T | None = None,
    /,
    **others: object,
) -> T:
    """Build the model from the written options, each checked by itself; mistakes go to `reading`.

    `usual`: a model whose values stand for keys that are not written.  `others`: fields that do not come from one key; None: the default.
    """
    values = {name: value for name, value in others.items() if value is not None}
    if given is None:
        return model(**values) if usual is None else replace(usual, **values)  # type: ignore[type-var]  # a dataclass
    made, records = next((made, records) for made, records in given.OPTIONS.items() if issubclass(made, model))
    for attribute, record in records.items():
        written = getattr(given, attribute)
        if written is not None and record.kind is not Kind.OWN and record.field not in others:
            values[record.field] = _value(record, written, (*here, record.key), reading)
        if written is not None and record.needs is not None:
            other = attribute_of(record.needs[0])
            default = records[other].default if usual is None else getattr(usual, records[other].field)
            _check_need(record.needs, getattr(given, other) or default, (*here, record.key), reading)
    return made(**values) if usual is None else replace(usual, **values)  # type: ignore[type-var]


def _check_need(needs: tuple[str, tuple[str, ...]], other: object, here: DocumentPath, reading: Reading) -> None:
    """`other`: the value of the key that is needed."""
    key, readers = needs
    if not readers and not other:
        reading.warn(here, f"has no effect: write {key}")
    elif readers and other not in readers:
        reading.warn(
            here, f"has no effect: {' and '.join(readers)} {'reads' if len(readers) == 1 else 'read'} it, not {other}"
        )


def _value(record: Option, written: Any, here: DocumentPath, reading: Reading) -> Any:
    """The value that the model takes."""
    if record.kind in (Kind.SWITCH, Kind.ON_OFF):
        return written in ("on", "true")
    if record.kind in (Kind.DURATION_LAW, Kind.SIZE_LAW):
        return law(written, Distribution(0) if record.default is MISSING else record.default, here, reading)
    if record.kind is Kind.RECORD_RATE:
        return per_second(written, here, reading)
    if written == 0 and record.above_zero:
        reading.wrong(here, "must be more than 0")
    if written == 0 and record.kind is Kind.BYTE_RATE and not record.is_optional:
        reading.wrong(here, "cannot be unlimited: write a rate")
    return None if written == 0 and (record.zero_is_none or record.kind is Kind.BYTE_RATE) else written


def per_second(given: Fraction | str | None, here: DocumentPath, reading: Reading) -> int | None:
    """Whole records or requests per second; None: unlimited."""
    if given is None or isinstance(given, str):
        return None
    if given < 1:
        reading.wrong(here, "must be at least 1/s")
    return round(given)


def annotation_of(record: Option, *, axes: bool = True) -> Any:
    """The type of its key in a section, as a class body would say it."""
    leaf = Annotated[str, choice_of(record.choices)] if record.kind is Kind.WORD else _LEAVES[record.kind]
    one_or_axis: Any = Axis
    written = one_or_axis[leaf] if axes else leaf
    return written if record.default is MISSING else written | None


def attribute_of(key: str) -> str:
    """The attribute of a key: `async` is a word of Python."""
    return key.replace("-", "_") + "_" * iskeyword(key)
