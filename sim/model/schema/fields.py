"""Types of the leaves of a scenario document: quantities with units, whole numbers, choices, and the sweep axis.

Every leaf parses itself (`sim.model.units`) and carries its JSON Schema; a list of leaves where one is expected is a
sweep axis.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, Discriminator, Field, Tag
from pydantic_core.core_schema import CoreSchema, no_info_plain_validator_function

from sim.model import units
from sim.model.cluster import version_span
from sim.model.quantities import parse_condition
from sim.model.scenario import AUTO_WARM_UP
from sim.model.schema.text import did_you_mean

_DECIMAL = r"[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]{1,2})?"


class AxisValues(list[Any]):
    """The values of one axis."""


class Leaf:
    """Annotation of a leaf: its parser, and its JSON Schema."""

    def __init__(self, parse: Callable[[object], Any], schema: dict[str, Any] | Callable[[], dict[str, Any]]) -> None:
        self.parse = parse
        self.schema = schema

    def __get_pydantic_core_schema__(self, _source: Any, _handler: Any) -> CoreSchema:
        return no_info_plain_validator_function(self.parse)

    def __get_pydantic_json_schema__(self, _core: Any, _handler: Any) -> dict[str, Any]:
        return dict(self.schema() if callable(self.schema) else self.schema)


def quantity(parse: Callable[[object], Any], pattern: str, *examples: str, or_else: tuple[str, ...] = ()) -> Leaf:
    """Return the annotation of a number with a unit, or one of a few words."""
    choices = "".join(f"|{word}" for word in or_else)
    return Leaf(parse, {"type": "string", "pattern": f"^({pattern}{choices})$", "examples": [*examples, *or_else]})


def choice(*choices: str) -> Leaf:
    """Return the annotation of one of a few words; YAML numbers and booleans are accepted as words."""
    return choice_of(lambda: choices)


def choice_of(choices_now: Callable[[], Iterable[str]], synonyms: Callable[[], dict[str, str]] = dict) -> Leaf:
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

    return Leaf(check, schema)


def integer(least: int, most: int = 2**31 - 1) -> Leaf:
    """Return the annotation of a whole number in a range."""

    def check(value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            raise ValueError(  # pydantic collects ValueErrors
                f"expected a whole number, {least} or more" + (f", not '{value}'" if isinstance(value, str) else ""),
            )
        if not least <= value <= most:
            raise ValueError(f"{value} is out of range: expected {least} to {most}")
        return value

    return Leaf(check, {"type": "integer", "minimum": least})


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


def _warm_up(value: object) -> int:
    if value == "auto":
        return AUTO_WARM_UP
    try:
        return units.parse_duration(value)
    except units.UnitError:
        raise ValueError(f"'{value}' is not a warm-up: write '30 s', or auto") from None


def _edge(value: object) -> tuple[str, str]:
    ends = [end.strip() for end in value.split("->")] if isinstance(value, str) else []
    if len(ends) != 2 or not all(ends):
        raise ValueError(f"'{value}' is not a edge: write 'upstream -> downstream'")
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


def _version(value: object) -> str:
    version_span(str(value))
    return str(value)


def either(choices: Sequence[str]) -> str:
    """Join alternatives as ``a, b or c``."""
    return ", ".join(choices[:-1]) + " or " + choices[-1] if len(choices) > 1 else choices[0]


_TIME, _SIZE = "(ns|us|ms|s|min|h|d)", "(B|kB|KiB|MB|MiB|GB|GiB|TB|TiB)"

Duration = Annotated[int, quantity(units.parse_duration, f"{_DECIMAL} ?{_TIME}", "30 s", "100 ms")]
"""ns."""
Interval = Annotated[int, quantity(_interval, f"{_DECIMAL} ?{_TIME}", "30 s", or_else=("off", "none"))]
"""ns; 0: no periodic checkpoints."""
BufferTimeout = Annotated[int, quantity(_buffer_timeout, f"{_DECIMAL} ?{_TIME}", "100 ms", or_else=("never",))]
"""ns; 0: after each record, -1: never."""
Size = Annotated[int, quantity(units.parse_size, f"{_DECIMAL} ?{_SIZE}", "32 KiB", "400 B")]
"""Bytes."""
ByteRate = Annotated[
    int,
    quantity(
        _byte_rate, f"{_DECIMAL} ?({_SIZE}|bit|kbit|Mbit|Gbit) ?/ ?s", "200 MB/s", "10 Gbit/s", or_else=("unlimited",)
    ),
]
"""Bytes per second; 0: unlimited."""
RecordRate = Annotated[
    Fraction | Literal["unlimited"],
    quantity(_record_rate, f"{_DECIMAL} ?[kMG]? ?/ ?(s|min|h)", "20k/s", "500/s", or_else=("unlimited",)),
]
"""Records per second."""
WarmUp = Annotated[int, quantity(_warm_up, f"{_DECIMAL} ?{_TIME}", "30 s", or_else=("auto",))]
"""ns, or AUTO_WARM_UP."""
Share = Annotated[Fraction, quantity(units.parse_share, f"{_DECIMAL} ?%", "30 %")]
Percent = Annotated[int, quantity(_percent, "[0-9]+ ?%", "25 %")]
Number = Annotated[
    Fraction,
    Leaf(
        units.parse_number,
        {"anyOf": [{"type": "number", "minimum": 0}, {"type": "string", "pattern": f"^{_DECIMAL}(/[0-9]+)?$"}]},
    ),
]
Count = Annotated[
    int,
    Leaf(
        units.parse_count,
        {"anyOf": [{"type": "integer", "minimum": 0}, {"type": "string", "pattern": f"^{_DECIMAL} ?[kMG]?$"}]},
    ),
]
"""Records."""
Weight = Annotated[
    Fraction,
    Leaf(
        _weight,
        {"anyOf": [{"type": "number", "minimum": 0}, {"type": "string", "pattern": f"^{_DECIMAL}( ?%|/[0-9]+)?$"}]},
    ),
]
Natural = Annotated[int, integer(0)]
Positive = Annotated[int, integer(1)]
Parallelism = Annotated[int, integer(1, 32768)]
"""Flink's KeyGroupRangeAssignment.UPPER_BOUND_MAX_PARALLELISM."""
Switch = Annotated[str, choice("true", "false")]
OnOff = Annotated[str, choice("on", "off", "true", "false")]
EdgeName = Annotated[tuple[str, str], Leaf(_edge, {"type": "string", "pattern": "^.+->.+$"})]
Version = Annotated[str, Leaf(_version, {"type": ["string", "number"], "examples": ["1.20.1", "1.20"]})]
Condition = Annotated[
    str, Leaf(_condition, {"type": "string", "pattern": "^(<|<=|>|>=|==|!=) *[^ ].*$", "examples": ["< 60 s"]})
]


def _one_or_axis(value: object) -> str:
    """Return whether a list is an axis, not a schedule of rates (`{at: ..., rate: ...}`)."""
    schedule = isinstance(value, list) and value and all(isinstance(item, dict) and "at" in item for item in value)
    return "axis" if isinstance(value, list) and not schedule else "one"


def _distinct(values: list[Any]) -> AxisValues:
    repeated = [i for i, value in enumerate(values) if value in values[:i]]
    if repeated:
        raise ValueError(f"value {repeated[0] + 1} of this axis repeats value {values.index(values[repeated[0]]) + 1}")
    return AxisValues(values)


T = TypeVar("T")
if TYPE_CHECKING:
    Axis = Annotated[T, "or a list of T"]  # a single value after `variants` has replaced axes
else:
    Axis = Annotated[
        Annotated[T, Tag("one")] | Annotated[list[T], Field(min_length=1), AfterValidator(_distinct), Tag("axis")],
        Discriminator(_one_or_axis),
    ]
"""One value, or a list of them: a sweep axis."""
