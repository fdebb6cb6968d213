"""Options of a scenario: a record at the field of the model that holds the value, similar to Flink's ConfigOption.

Sections of documents and what is built from them, the JSON Schema, the reference and Flink's configuration in both
directions are made from these records, by `sim.model.schema.sections`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, dataclass, field, fields, is_dataclass, replace
from functools import cache, partial
from keyword import iskeyword
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, get_args, get_origin, get_type_hints

from sim.model.frozen import frozen
from sim.model.value_types import ValueType, choice_of

_SUFFIXES = ("_bytes_per_second", "_per_second", "_bytes", "_ns", "_percent")
"""Suffixes of field names for units, which keys of a scenario do not have."""


@frozen
class Flink:
    """A key of Flink's configuration for an option."""

    name: str
    # deprecated names, which later versions still read -> last version that used them, if known
    older: Mapping[str, str] = field(default_factory=dict)
    form: str = ""  # name of its reader in `sim.model.schema.flink_block`, if not that of the value type
    when: str = ""  # value of the option in `Option.needs` for which this key has an effect
    since: str = ""  # first release with this key; empty: all releases that users still run have it
    last: str = ""  # last release with this key
    default: str = ""  # Flink's default as Flink writes it, if the option has another one


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """An option of a scenario."""

    sentence: str  # its description
    flink: tuple[Flink, ...] = ()
    key: str = ""  # in its section; default: the name of the field without its unit
    choices: Callable[[], Iterable[str]] = tuple  # words that may be written
    zero_means_never: bool = False  # 0 s is None in the model
    must_be_positive: bool = False
    # (key, values): it has an effect only if this key of its section has one of these values; no values: any
    needs: tuple[str, tuple[str, ...]] | None = None
    excludes: tuple[str, ...] = ()  # dotted keys of a scenario that cannot be combined with it
    default_text: str = ""  # the default in words, if it is not a single value
    is_required: bool = False
    accepts_on_off: bool = False  # its section may be replaced by on or off; off gives None
    has_custom_section: bool = False  # parsed by a section and a builder of its own instead of by its type
    # from the dataclass field:
    field: str = ""
    leaf: ValueType | None = None  # None: it is a section
    part: Any = None  # the dataclass of that section
    default: Any = None  # MISSING: it is required
    is_optional: bool = False  # whether the model may hold None


@frozen
class ValidationContext:
    """The section that is validated, its path, and where errors are reported: passed to the method `completed` of dataclasses.

    `completed(at)` validates the options, reports errors at their keys, and returns the instance that is simulated.  It
    is called for nested dataclasses first.
    """

    path: tuple[str | int, ...]
    reading: Any  # sim.model.schema.text.Reading
    folder: Path = Path()
    section: Any = None  # of the document, with its keys
    job: Any = None  # sim.model.job.Job, where checks need it
    profile: str = ""  # of the cluster

    def written(self, key: str) -> Any:
        """Return the value of a key in the document, or None if it is not set."""
        return getattr(self.section, attribute_of(key), None)

    def error(self, message: str, *keys: str | int) -> None:
        self.reading.wrong((*self.path, *keys), message)

    def warn(self, message: str, *keys: str | int) -> None:
        self.reading.warn((*self.path, *keys), message)

    def child(self, key: str, section: Any = None) -> ValidationContext:
        return ValidationContext((*self.path, key), self.reading, self.folder, section, self.job, self.profile)


def attribute_of(key: str) -> str:
    """Return the attribute name of a key; keywords of Python, such as `async`, get an underscore."""
    return key.replace("-", "_") + "_" * iskeyword(key)


def option(default: Any, sentence: str, *, flink: str | Flink | tuple[Flink, ...] = (), **facts: Any) -> Any:
    """Return a dataclass field that is an option, with further `facts` of `Option`.  Its type says how it is written.

    A `default` of MISSING makes it required.
    """
    keys = (Flink(flink),) if isinstance(flink, str) else (flink,) if isinstance(flink, Flink) else flink
    record = Option(sentence=sentence, flink=keys, **facts)
    return field(default=default, metadata={Option: record})


@cache
def options_of(model: type) -> Mapping[str, Option]:
    """Return the options of a dataclass by key, in the order of its fields.  Cached, because sweeps need them often."""
    hints = get_type_hints(model, include_extras=True)
    found = [_of_field(at, at.metadata[Option], hints[at.name]) for at in fields(model) if Option in at.metadata]
    return MappingProxyType({record.key: record for record in found})


def _of_field(at: Any, record: Option, hint: Any) -> Option:
    suffix = next((suffix for suffix in _SUFFIXES if at.name.endswith(suffix)), "")
    types = (hint, *get_args(hint))
    leaf, part, choices = None, None, record.choices
    if not record.has_custom_section:
        leaf = next(
            (leaf for kind in types for leaf in getattr(kind, "__metadata__", ()) if isinstance(leaf, ValueType)), None
        )
        part = next(filter(is_dataclass, types), None) if leaf is None else None
        if get_origin(hint) is Literal and not tuple(choices()):
            choices = partial(get_args, hint)
        if tuple(choices()):
            leaf = choice_of(choices)
    return replace(
        record,
        key=record.key or at.name.removesuffix(suffix).replace("_", "-"),
        field=at.name,
        leaf=leaf,
        part=part,
        default=at.default,
        is_optional=type(None) in types,
        is_required=record.is_required or at.default is MISSING,
        choices=choices,
    )
