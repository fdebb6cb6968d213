"""Extensible catalogs, and options: fields of the model with their scenario key, unit and Flink key."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import MISSING, dataclass, field, fields, is_dataclass, replace
from functools import cache, partial
from importlib import import_module
from keyword import iskeyword
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any, Literal, Protocol, TypeVar, get_args, get_origin, get_type_hints

from sim.model.fields import Leaf, choice_of

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
    since: str = ""  # the first release that has it, where a release came before it that users still run
    last: str = ""  # the last version that has it
    default: str = ""  # Flink's default as Flink writes it, where the option has another one


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """An option of a scenario."""

    sentence: str
    flink: tuple[Flink, ...] = ()
    key: str = ""  # in its section; empty: the name of the field without its unit
    choices: Callable[[], Iterable[str]] = tuple  # that may be written
    zero_is_none: bool = False  # "0 s: never"
    above_zero: bool = False
    # another key of its section, and the values with which alone it has an effect; none: any
    needs: tuple[str, tuple[str, ...]] | None = None
    excludes: tuple[str, ...] = ()  # keys of a scenario that cannot stand beside it
    usually: str = ""  # the default in words, where it is no single value of the model
    is_required: bool = False  # whether it has to be written
    is_switched: bool = False  # its part may be written as on or off, too; None: off
    is_declared: bool = (
        False  # its section says how it is written, whatever its type is, and the builder what is made of it
    )
    # of the field:
    field: str = ""
    leaf: Leaf | None = None  # how a value is written; None: it is no single value
    part: Any = None  # the dataclass whose options are written there
    default: Any = None  # of the model; MISSING: it has to be written
    is_optional: bool = False  # whether the model may hold None


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
    default: Any, sentence: str, *, flink: str | Flink | tuple[Flink, ...] = (), keyword: bool = False, **facts: Any
) -> Any:
    """Return a dataclass field that is an option, with further `facts` of `Option`.  Its type says how it is written.

    A `default` of MISSING makes it required; `keyword` makes it keyword-only.
    """
    keys = (Flink(flink),) if isinstance(flink, str) else (flink,) if isinstance(flink, Flink) else flink
    record = Option(sentence=sentence, flink=keys, **facts)
    return field(default=default, kw_only=keyword, metadata={Option: record})


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
    if not record.is_declared:
        leaf = next(
            (leaf for kind in types for leaf in getattr(kind, "__metadata__", ()) if isinstance(leaf, Leaf)), None
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
