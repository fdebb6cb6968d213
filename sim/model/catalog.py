"""Extensible catalogs, and options: fields of the model with their scenario key, unit and Flink key."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import MISSING, dataclass, field, fields, is_dataclass, replace
from enum import Enum, auto
from functools import cache
from importlib import import_module
from keyword import iskeyword
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any, Protocol, TypeVar, get_args, get_type_hints

# ---- Catalogs: records by name, in the order used by documents and advice.
#
# Everything that can be extended has one: barrier modes, state backends, ship strategies, kinds of storage.  Catalogs are
# read at each use, so a record that a plug-in adds is known everywhere.


class Named(Protocol):
    """A record with a name."""

    @property
    def name(self) -> str: ...


R = TypeVar("R", bound=Named)
T = TypeVar("T")
ADDITIONS = [0]
"""Number of records ever added; caches of values derived from catalogs are invalid when it changes."""


def find_plugins(package: ModuleType, kind: type[T]) -> Iterator[T]:
    """Return the definitions of a kind in a module, or in all modules of a package, so that plug-ins need no registration."""
    found: dict[int, T] = {}
    names = [f"{package.__name__}.{info.name}" for info in pkgutil.iter_modules(getattr(package, "__path__", ()))]
    for module in map(import_module, names or [package.__name__]):
        values = list(vars(module).values())
        found |= {id(value): value for value in values if isinstance(value, kind)}
    yield from found.values()


class Catalog(Mapping[str, R]):
    """Records by name."""

    def __init__(self, *records: R) -> None:
        self._records: dict[str, R] = {}
        for record in records:
            self.add(record)

    def add(self, record: R) -> R:
        """Append a record.  Raises an error if the name is already in use."""
        if record.name in self._records:
            raise ValueError(f"'{record.name}' is in the catalog already")
        self._records[record.name] = record
        ADDITIONS[0] += 1
        return record

    def __getitem__(self, name: str) -> R:
        return self._records[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._records)

    def __len__(self) -> int:
        return len(self._records)


# ---- Options of a scenario: a record at the field of the model that holds the value, similar to Flink's ConfigOption.
#
# Sections of documents and what is built from them, the JSON Schema, the reference and Flink's configuration in both
# directions are made from these records.  `sim.model.schema.sections` makes them.


class Kind(Enum):
    """The kind of an option's value.  Comments give the type or unit in the model."""

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
    VERSION = auto()  # of Flink or a connector
    DURATION_LAW = auto()  # Distribution of ns
    SIZE_LAW = auto()  # Distribution of bytes
    PART = auto()  # a mapping: a section of its own, with the options of the dataclass of its type
    SWITCHED = auto()  # on, off, or such a mapping; None: off
    OWN = auto()  # the section says how it is written, the builder what is made of it


_SUFFIXES = ("_bytes_per_second", "_per_second", "_bytes", "_ns", "_percent")
"""Suffixes of field names for units, which keys of a scenario do not have."""


@dataclass(frozen=True, slots=True)
class Flink:
    """The key of Flink's configuration for an option."""

    name: str
    # names that later versions still read -> last version before, if known
    older: Mapping[str, str] = field(default_factory=dict)
    # how Flink writes the value if the option's kind does not say it: a key of _READERS in sim.model.schema.flink_block
    form: str = ""
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
    part: Any  # the dataclass whose options are written there; None: it is a value
    default: Any  # of the model; MISSING: it has to be written
    is_optional: bool  # whether the model may hold None
    flink: tuple[Flink, ...]
    choices: Callable[[], Iterable[str]]  # that may be written
    zero_is_none: bool  # "0 s: never"
    above_zero: bool
    # another key of its section, and the values with which alone it has an effect; none: any
    needs: tuple[str, tuple[str, ...]] | None
    excludes: tuple[str, ...]  # keys of a scenario that cannot stand beside it
    usually: str  # the default in words, where it is no single value of the model
    is_required: bool  # whether it has to be written

    @property
    def is_value(self) -> bool:
        """Whether it is written as a single value."""
        return self.kind not in (Kind.PART, Kind.SWITCHED, Kind.OWN)


@dataclass(frozen=True, slots=True)
class At:
    """The place of a dataclass's options in the document, passed to its method `completed`.

    `completed(at)` validates the options, reports errors at their keys, and returns the instance that is simulated.  It
    is called for nested dataclasses first.
    """

    here: tuple[str | int, ...]
    reading: Any  # sim.model.schema.text.Reading
    folder: Path = Path()
    given: Any = None  # its section
    job: Any = None  # sim.model.job.Job, where checks need it
    profile: str = ""  # of the cluster

    def written(self, key: str) -> Any:
        """Return the value of a key in the document, or None if it is not set."""
        return getattr(self.given, attribute_of(key), None)

    def wrong(self, message: str, *keys: str | int) -> None:
        self.reading.wrong((*self.here, *keys), message)

    def warn(self, message: str, *keys: str | int) -> None:
        self.reading.warn((*self.here, *keys), message)

    def below(self, key: str, given: Any = None) -> At:
        return At((*self.here, key), self.reading, self.folder, given, self.job, self.profile)


def attribute_of(key: str) -> str:
    """Return the attribute name of a key; keywords of Python, such as `async`, get an underscore."""
    return key.replace("-", "_") + "_" * iskeyword(key)


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
    is_required: bool = False,
) -> Any:
    """Return a dataclass field that is an option.  A `default` of MISSING makes it required; `keyword` makes it keyword-only."""
    keys = (Flink(flink),) if isinstance(flink, str) else (flink,) if isinstance(flink, Flink) else flink
    required = is_required or default is MISSING
    record = Option(
        kind,
        sentence,
        key,
        "",
        None,
        MISSING,
        False,
        keys,
        choices,
        zero_is_none,
        above_zero,
        needs,
        excludes,
        usually,
        required,
    )
    return field(default=default, kw_only=keyword, metadata={Option: record})


@cache
def options_of(model: type) -> Mapping[str, Option]:
    """Return the options of a dataclass by key, in the order of its fields.  Cached, because sweeps need them often."""
    hints = get_type_hints(model)
    found = [_of_field(at, at.metadata[Option], hints[at.name]) for at in fields(model) if Option in at.metadata]
    return MappingProxyType({record.key: record for record in found})


def _of_field(at: Any, record: Option, hint: Any) -> Option:
    suffix = next((suffix for suffix in _SUFFIXES if at.name.endswith(suffix)), "")
    choices = record.choices if tuple(record.choices()) else lambda: get_args(hint)
    return replace(
        record,
        key=record.key or at.name.removesuffix(suffix).replace("_", "-"),
        field=at.name,
        default=at.default,
        is_optional=type(None) in get_args(hint),
        part=next(filter(is_dataclass, (hint, *get_args(hint))), None)
        if record.kind in (Kind.PART, Kind.SWITCHED)
        else None,
        choices=choices,
    )
