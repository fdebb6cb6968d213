"""An option of a scenario: one record, at the field of the model that holds its value.  Flink's ConfigOption is its model.

Sections of documents and what is built from them, the JSON Schema, the reference and Flink's configuration in both directions
are made from these records.  `sim.scenario.grammar.options` makes them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from enum import Enum, auto
from functools import cache
from types import MappingProxyType
from typing import Any, get_args, get_type_hints


class Kind(Enum):
    """The kind of an option's value: a quantity and its unit, a number, a word.  Comments say what the model holds."""

    DURATION = auto()  # ns
    INTERVAL = auto()  # ns; 0: off
    BUFFER_TIMEOUT = auto()  # ns; -1: never
    WARM_UP = auto()  # ns, or auto
    SIZE = auto()  # bytes
    BYTE_RATE = auto()  # bytes per second; None: unlimited
    RECORD_RATE = auto()  # records or requests per second; None: unlimited
    SHARE = auto()  # Fraction, written in percent
    PERCENT = auto()  # a whole number of them
    NUMBER = auto()  # Fraction
    COUNT = auto()  # records
    NATURAL = auto()  # 0 or more
    POSITIVE = auto()  # 1 or more
    PARALLELISM = auto()
    SWITCH = auto()  # bool, written true or false
    ON_OFF = auto()  # bool, written on, off, true or false
    WORD = auto()  # one of the words of its type, or of a catalog
    DURATION_LAW = auto()  # Distribution of ns
    SIZE_LAW = auto()  # Distribution of bytes
    OWN = auto()  # the section says how it is written, the builder what is made of it


_SUFFIXES = ("_bytes_per_second", "_per_second", "_bytes", "_ns", "_percent")
"""Units in names of fields, which keys of a scenario do not have."""


@dataclass(frozen=True, slots=True)
class Flink:
    """The key of Flink's configuration for an option."""

    name: str
    older: Mapping[str, str] = field(default_factory=dict)  # names that later versions still read -> last version before, if known
    form: str = ""  # how Flink writes the value if the option's kind does not say it: a key of _READERS in sim.scenario.flink.block
    when: str = ""  # the value of the option it `needs` with which this key counts
    last: str = ""  # the last version that has it
    default: str = ""  # Flink's default as Flink writes it, where the option has another one


@dataclass(frozen=True, slots=True)
class Option:
    """An option of a scenario."""

    kind: Kind
    sentence: str
    key: str  # in its section
    field: str  # of the model
    default: Any  # of the model; MISSING: it has to be written
    is_optional: bool  # whether the model may hold None
    flink: tuple[Flink, ...]
    choices: Callable[[], Iterable[str]]  # that may be written
    zero_is_none: bool  # "0 s: never"
    above_zero: bool
    needs: tuple[str, tuple[str, ...]] | None  # another key of its section, and the values with which alone it has an effect; none: any
    excludes: tuple[str, ...]  # keys of a scenario that cannot stand beside it
    usually: str  # the default in words, where it is no single value of the model


def option(
    kind: Kind,
    default: Any,
    sentence: str,
    *,
    key: str = "",
    flink: str | Flink | tuple[Flink, ...] = (),
    choices: Callable[[], Iterable[str]] = tuple,
    zero_is_none: bool = False,
    above_zero: bool = False,
    needs: tuple[str, tuple[str, ...]] | None = None,
    excludes: tuple[str, ...] = (),
    usually: str = "",
    keyword: bool = False,
) -> Any:
    """A field of a dataclass of the model that is an option.  `default`: MISSING, it has to be written; `keyword`: it takes no position."""
    keys = (Flink(flink),) if isinstance(flink, str) else (flink,) if isinstance(flink, Flink) else flink
    record = Option(
        kind, sentence, key, "", MISSING, False, keys, choices, zero_is_none, above_zero, needs, excludes, usually
    )  # fmt: skip
    return field(default=default, kw_only=keyword, metadata={Option: record})


@cache
def options_of(model: type) -> Mapping[str, Option]:
    """Key -> option of a dataclass, in the order of its fields.  Every scenario of a sweep asks for them."""
    hints = get_type_hints(model)
    found = [_of_field(at, at.metadata[Option], hints[at.name]) for at in fields(model) if Option in at.metadata]
    return MappingProxyType({record.key: record for record in found})


def _of_field(at: Any, record: Option, hint: Any) -> Option:
    suffix = next((suffix for suffix in _SUFFIXES if at.name.endswith(suffix)), "")
    choices = record.choices if tuple(record.choices()) else lambda: get_args(hint)
    return replace(
        record, key=record.key or at.name.removesuffix(suffix).replace("_", "-"), field=at.name, default=at.default,
        is_optional=type(None) in get_args(hint), choices=choices,
    )  # fmt: skip
