"""Types of the values of options: quantities with units, whole numbers, choices.

A type is described once.  Dataclasses of the model annotate their options with it, sections of scenario files their keys:
`ValueType` parses what is written, and knows its JSON Schema, its form in Flink's configuration, and how it is written again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any, Literal

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
    """Return the annotation of a number with a unit, or one of the words in `or_else`; `how`: further arguments of `ValueType`."""
    choices = "".join(f"|{word}" for word in or_else)
    return ValueType(
        parse, {"type": "string", "pattern": f"^({pattern}{choices})$", "examples": [*examples, *or_else]}, **how
    )


def choice(*choices: str) -> ValueType:
    """Return the annotation of one of a few words; YAML numbers and booleans are accepted as words."""
    return choice_of(lambda: choices)


def choice_of(choices_now: Callable[[], Iterable[str]], synonyms: Callable[[], dict[str, str]] = dict) -> ValueType:
    """Return the annotation of a name in a catalog, which is looked up at each use because plug-ins may add names.

    `synonyms`: other word in small letters -> the choice that the error message suggests.
    """

    def check(value: object) -> str:
        choices = tuple(choices_now())
        text = str(value).lower() if isinstance(value, bool) else str(value)
        if isinstance(value, (dict, list)) or text not in choices:
            word = synonyms().get(text.lower(), text.lower())
            suggestion = (
                ""
                if isinstance(value, (dict, list)) or len(text) > 60
                else f", not '{text}'{did_you_mean(word, choices)}"
            )
            raise ValueError(f"expected {either(choices)}{suggestion}")
        return text

    def schema() -> dict[str, Any]:
        choices = tuple(choices_now())
        numbers = [float(word) for word in choices if re.fullmatch(r"[0-9]+(\.[0-9]+)?", word)]
        booleans = [{"true": True, "false": False}[word] for word in choices if word in ("true", "false")]
        return {"enum": [*choices, *numbers, *booleans]}

    return ValueType(check, schema)


def _switch(*choices: str) -> ValueType:
    """Return the annotation of a boolean; the first two words are those written for True and False."""
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
        raise ValueError("an interval of 0 is not possible: write 'off' for no periodic checkpoints")
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
"""Annotation of a distribution of durations; `DurationField` of `sim.model.schema.sections` has its parser and schema."""
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
