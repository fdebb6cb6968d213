"""Types of the values of options: quantities with units, whole numbers, choices; catalogs, and the options themselves.

A type is described once.  Dataclasses of the model annotate their options with it, sections of scenario files their keys:
`ValueType` parses what is written, and knows its JSON Schema, its form in Flink's configuration, and how it is written again.
"""

from __future__ import annotations

import pkgutil
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, is_dataclass, replace
from fractions import Fraction
from functools import cache, partial
from importlib import import_module
from keyword import iskeyword
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import TYPE_CHECKING, Annotated, Any, Literal, Protocol, TypeVar, get_args, get_origin, get_type_hints

from sim.model import units
from sim.model.quantities import parse_condition
from sim.model.text import did_you_mean
from sim.model.units import format_byte_rate, format_duration, format_share, format_size

if TYPE_CHECKING:
    from pydantic_core.core_schema import CoreSchema


_DECIMAL = r"[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]{1,2})?"


class ValueType:
    """Annotation of a value: how it is parsed, its JSON Schema, and how it is written."""

    def __init__(
        self,
        parse: Callable[[object], Any],
        schema: dict[str, Any] | Callable[[], dict[str, Any]],
        *,
        flink: str = "",
        write: Callable[[Any], Any] = str,
    ) -> None:
        """`flink`: form in Flink's configuration, a key of `_READERS` in `sim.model.schema.flink_block`."""
        self.parse = parse
        self.schema = schema
        self.flink = flink
        self.write = write

    def __get_pydantic_core_schema__(self, _source: Any, _handler: Any) -> CoreSchema:
        from pydantic_core.core_schema import no_info_plain_validator_function

        return no_info_plain_validator_function(self.parse)

    def __get_pydantic_json_schema__(self, _core: Any, _handler: Any) -> dict[str, Any]:
        return dict(self.schema() if callable(self.schema) else self.schema)


def quantity(
    parse: Callable[[object], Any], pattern: str, *examples: str, or_else: tuple[str, ...] = (), **how: Any
) -> ValueType:
    """Return the annotation of a number with a unit, or one of a few words; `how`: of `ValueType`."""
    choices = "".join(f"|{word}" for word in or_else)
    return ValueType(
        parse, {"type": "string", "pattern": f"^({pattern}{choices})$", "examples": [*examples, *or_else]}, **how
    )


def choice(*choices: str) -> ValueType:
    """Return the annotation of one of a few words; YAML numbers and booleans are accepted as words."""
    return choice_of(lambda: choices)


def choice_of(choices_now: Callable[[], Iterable[str]], synonyms: Callable[[], dict[str, str]] = dict) -> ValueType:
    """Return the annotation of a name in a catalog, which is looked up at each use because plug-ins may add names.

    `synonyms` are other words in small letters, with the choice that the error message suggests.
    """

    def check(value: object) -> str:
        choices = tuple(choices_now())
        text = str(value).lower() if isinstance(value, bool) else str(value)
        if isinstance(value, (dict, list)) or text not in choices:
            word = synonyms().get(text.lower(), text.lower())
            nearest = (
                ""
                if isinstance(value, (dict, list)) or len(text) > 60
                else f", not '{text}'{did_you_mean(word, choices)}"
            )
            raise ValueError(f"expected {either(choices)}{nearest}")
        return text

    def schema() -> dict[str, Any]:
        choices = tuple(choices_now())
        numbers = [float(word) for word in choices if re.fullmatch(r"[0-9]+(\.[0-9]+)?", word)]
        booleans = [{"true": True, "false": False}[word] for word in choices if word in ("true", "false")]
        return {"enum": [*choices, *numbers, *booleans]}

    return ValueType(check, schema)


def _switch(*choices: str) -> ValueType:
    """Return the annotation of a boolean, which is written as the first of two words or of four."""
    word = choice(*choices)
    return ValueType(
        lambda value: word.parse(value) in ("on", "true"),
        word.schema,
        flink="boolean",
        write=lambda on: choices[0] if on else choices[1],
    )


def integer(least: int, most: int = 2**31 - 1) -> ValueType:
    """Return the annotation of a whole number in a range."""

    def check(value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            # pydantic collects ValueErrors
            raise ValueError(f"expected a whole number, {least} or more, not '{value}'")
        if not least <= value <= most:
            raise ValueError(f"{value} is out of range: expected {least} to {most}")
        return value

    return ValueType(check, {"type": "integer", "minimum": least}, flink="integer", write=int)


def _interval(value: object) -> int:
    if value in ("off", "none"):
        return 0
    if (interval := units.parse_duration(value)) == 0:
        raise ValueError("an interval of 0 never pauses: write 'off' for no periodic checkpoints")
    return interval


def _buffer_timeout(value: object) -> int:
    return -1 if value == "never" else units.parse_duration(value)


def _weight(value: object) -> Fraction:
    return units.parse_share(value) if isinstance(value, str) and "%" in value else units.parse_number(value)


def _byte_rate(value: object) -> int:
    return 0 if value == "unlimited" else units.parse_byte_rate(value)


def _record_rate(value: object) -> Fraction | Literal["unlimited"]:
    rate = units.parse_rate(value)
    return "unlimited" if rate is None else rate


def _percent(value: object) -> int:
    percent = units.parse_share(value) * 100
    if percent.denominator != 1:
        raise ValueError(f"'{value}' is not a whole number of percent")
    return int(percent)


def _edge(value: object) -> tuple[str, str]:
    ends = [end.strip() for end in value.split("->")] if isinstance(value, str) else []
    if len(ends) != 2 or not all(ends):
        raise ValueError(f"'{value}' is not an edge: write 'upstream -> downstream'")
    return ends[0], ends[1]


def _condition(value: object) -> str:
    condition = parse_condition(value) if isinstance(value, str) else None
    if condition is None:
        raise ValueError(f"'{value}' is not a condition: write '< 60 s', '>= 10' or '== 0'")
    try:
        units.parse_quantity(condition.bound)
    except units.UnitError:
        raise ValueError(
            f"'{condition.bound}' is neither a number nor a quantity: write '< 60 s', '>= 10' or '== 0'"
        ) from None
    return str(condition)


def _written_number(number: Fraction) -> int | float:
    return int(number) if number.denominator == 1 else float(number)


def either(choices: Sequence[str]) -> str:
    """Join alternatives as ``a, b or c``."""
    return ", ".join(choices[:-1]) + " or " + choices[-1] if len(choices) > 1 else choices[0]


DURATION, _SIZE = f"{_DECIMAL} ?(ns|us|ms|s|min|h|d)", "(B|kB|KiB|MB|MiB|GB|GiB|TB|TiB)"

BUFFER_TIMEOUT = quantity(
    _buffer_timeout,
    DURATION,
    "100 ms",
    or_else=("never",),
    write=lambda ns: "never" if ns < 0 else format_duration(ns),
)
BYTE_RATE = quantity(
    _byte_rate,
    f"{_DECIMAL} ?({_SIZE}|bit|kbit|Mbit|Gbit) ?/ ?s",
    "200 MB/s",
    "10 Gbit/s",
    or_else=("unlimited",),
    write=format_byte_rate,
)
RECORD_RATE = quantity(_record_rate, f"{_DECIMAL} ?[kMG]? ?/ ?(s|min|h)", "20k/s", "500/s", or_else=("unlimited",))


Duration = Annotated[
    int, quantity(units.parse_duration, DURATION, "30 s", "100 ms", flink="duration", write=format_duration)
]
"""ns."""
Interval = Annotated[
    int, quantity(_interval, DURATION, "30 s", or_else=("off", "none"), flink="interval", write=format_duration)
]
"""ns; 0: no periodic checkpoints."""
BufferTimeout = Annotated[int, BUFFER_TIMEOUT]
"""ns; 0: after each record, -1: never."""
Size = Annotated[
    int, quantity(units.parse_size, f"{_DECIMAL} ?{_SIZE}", "32 KiB", "400 B", flink="size", write=format_size)
]
"""Bytes."""
ByteRate = Annotated[int, BYTE_RATE]
"""Bytes per second; 0: unlimited."""
RecordRate = Annotated[Fraction | Literal["unlimited"], RECORD_RATE]
"""Records per second."""
RequestRate = Annotated[int, RECORD_RATE]
"""Requests per second, a whole number."""
RANDOM_DURATION = ValueType(units.parse_duration, {})
"""Annotation of a distribution of durations, for which sections have a field of their own."""
Share = Annotated[Fraction, quantity(units.parse_share, f"{_DECIMAL} ?%", "30 %", flink="share", write=format_share)]
Percent = Annotated[int, quantity(_percent, "[0-9]+ ?%", "25 %", flink="percent", write="{} %".format)]
_NUMBER = {"anyOf": [{"type": "number", "minimum": 0}, {"type": "string", "pattern": f"^{_DECIMAL}(/[0-9]+)?$"}]}
Number = Annotated[
    Fraction,
    ValueType(
        units.parse_number,
        _NUMBER,
        flink="number",
        write=_written_number,
    ),
]
Real = Annotated[
    float,
    ValueType(
        lambda value: float(units.parse_number(value)),
        _NUMBER,
        write=lambda number: _written_number(Fraction(number)),
    ),
]
Count = Annotated[
    int,
    ValueType(
        units.parse_count,
        {"anyOf": [{"type": "integer", "minimum": 0}, {"type": "string", "pattern": f"^{_DECIMAL} ?[kMG]?$"}]},
        flink="integer",
        write=int,
    ),
]
"""Records."""
Weight = Annotated[
    Fraction,
    ValueType(
        _weight,
        {"anyOf": [{"type": "number", "minimum": 0}, {"type": "string", "pattern": f"^{_DECIMAL}( ?%|/[0-9]+)?$"}]},
    ),
]
Natural = Annotated[int, integer(0)]
Positive = Annotated[int, integer(1)]
Parallelism = Annotated[int, integer(1, 32768)]
"""Flink's KeyGroupRangeAssignment.UPPER_BOUND_MAX_PARALLELISM."""
Switch = Annotated[bool, _switch("true", "false")]
OnOff = Annotated[bool, _switch("on", "off", "true", "false")]
EdgeName = Annotated[tuple[str, str], ValueType(_edge, {"type": "string", "pattern": "^.+->.+$"})]
Condition = Annotated[
    str, ValueType(_condition, {"type": "string", "pattern": "^(<|<=|>|>=|==|!=) *[^ ].*$", "examples": ["< 60 s"]})
]


# ---- Extensible catalogs, and options: fields of the model with their scenario key, unit and Flink key.

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


def find_definitions(package: ModuleType, kind: type[T]) -> Iterator[T]:
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
    accepts_on_off: bool = False  # its part may be written as on or off, too; None: off
    has_custom_section: bool = (
        False  # its section says how it is written, whatever its type is, and the builder what is made of it
    )
    # of the field:
    field: str = ""
    leaf: ValueType | None = None  # how a value is written; None: it is no single value
    part: Any = None  # the dataclass whose options are written there
    default: Any = None  # of the model; MISSING: it has to be written
    is_optional: bool = False  # whether the model may hold None


@dataclass(frozen=True, slots=True)
class ValidationContext:
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

    def error(self, message: str, *keys: str | int) -> None:
        self.reading.wrong((*self.here, *keys), message)

    def warn(self, message: str, *keys: str | int) -> None:
        self.reading.warn((*self.here, *keys), message)

    def child(self, key: str, given: Any = None) -> ValidationContext:
        return ValidationContext((*self.here, key), self.reading, self.folder, given, self.job, self.profile)


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
