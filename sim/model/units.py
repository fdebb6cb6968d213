"""Parse and format quantities: durations as ns, sizes as bytes, exact rates.  The unit is required.

KiB = 1024, kB = 1000.  Nothing is rounded: a value that is not a whole number of ns or bytes raises `UnitError`, whose
message says what to write instead.  Flink's own syntax is less strict (a bare duration is milliseconds, a bare size is
bytes, ``kb`` is 1024): `parse_flink_duration` and `parse_flink_size` read it, for keys of Flink only.  Other modules do
not parse quantities themselves.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from decimal import Context, Decimal, Inexact
from fractions import Fraction

LARGEST = 2**62
"""Maximum of any quantity, so that the sum of two of them fits an int64."""

MS = 1_000_000
"""A millisecond [ns]."""
SECOND = 1_000_000_000
"""A second [ns]."""
DURATIONS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "min": 60 * 10**9, "h": 3600 * 10**9, "d": 86400 * 10**9}
SIZES = {
    "B": 1,
    "kB": 10**3,
    "KiB": 2**10,
    "MB": 10**6,
    "MiB": 2**20,
    "GB": 10**9,
    "GiB": 2**30,
    "TB": 10**12,
    "TiB": 2**40,
}
_BITS = {"bit": Fraction(1, 8), "kbit": Fraction(125), "Mbit": Fraction(125_000), "Gbit": Fraction(125_000_000)}
_COUNTS = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9}
_PER = {"s": 1, "min": 60, "h": 3600}
# named in messages, not accepted
_ALIASES = {"µs": "us", "μs": "us", "sec": "s", "m": "min", "hour": "h", "day": "d"}
_AMBIGUOUS = {
    "KB": "kB (1000) or KiB (1024)",
    "K": "kB (1000) or KiB (1024)",
    "kb": "kB (1000) or KiB (1024)",
    "mb": "MB or MiB",
    "M": "MB or MiB",
    "gb": "GB or GiB",
    "G": "GB or GiB",
}

_FLINK_DURATIONS = {  # TimeUtils#parseDuration
    86400 * 10**9: ("d", "day", "days"),
    3600 * 10**9: ("h", "hour", "hours"),
    60 * 10**9: ("m", "min", "minute", "minutes"),
    10**9: ("s", "sec", "secs", "second", "seconds"),
    10**6: ("", "ms", "milli", "millis", "millisecond", "milliseconds"),
    10**3: ("µs", "us", "micro", "micros", "microsecond", "microseconds"),
    1: ("ns", "nano", "nanos", "nanosecond", "nanoseconds"),
}
_FLINK_SIZES = {  # MemorySize#parse
    1: ("", "b", "bytes"),
    2**10: ("k", "kb", "kibibytes"),
    2**20: ("m", "mb", "mebibytes"),
    2**30: ("g", "gb", "gibibytes"),
    2**40: ("t", "tb", "tebibytes"),
}

_MAX_LITERAL = 400
"""Characters of a quantity."""
_EXACT = Context(prec=2 * _MAX_LITERAL, traps=[Inexact])
_ISO_DURATION = re.compile(r"P(?=.)(?:(\d+)D)?(?:T(?=.)(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)S)?)?")
_QUANTITY = re.compile(r"([+-]?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,2})?) ?([A-Za-zµμ%]*)(?: ?/ ?([A-Za-z]+))?")
_NUMBER = re.compile(r"[+-]?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,2})?|[+-]?[0-9]+/[0-9]+")
_PLAIN = re.compile(r"[0-9]{1,18}(?:\.[0-9]{1,9})?")


class UnitError(ValueError):
    """The text is not a quantity of the expected kind; the message says what to write."""


def parse_duration(text: object) -> int:
    """Return the ns of ``"30 s"``, ``"10 min"`` or ``"25 us"``."""
    number, unit, _ = _split(text, "a duration", "'30 s' or '100 ms'", may_be_rate=False)
    if unit not in DURATIONS:
        hint = (
            f"write '{_ALIASES[unit]}' instead of '{unit}'"
            if unit in _ALIASES
            else f"units of time are {', '.join(DURATIONS)}"
        )
        raise UnitError(f"{_quoted(text)} is not a duration: {hint}")
    return _integer(number * DURATIONS[unit], text, "nanoseconds")


def parse_size(text: object) -> int:
    """Return the bytes of ``"32 KiB"``, ``"400 B"`` or ``"256 MB"``."""
    number, unit, _ = _split(text, "a size", "'32 KiB' or '400 B'", may_be_rate=False)
    return _integer(number * _bytes_unit(unit, text), text, "bytes")


def parse_byte_rate(text: object) -> int:
    """Return the bytes per second of ``"200 MB/s"`` or ``"10 Gbit/s"``, a whole number of at least 1."""
    number, unit, per = _split(text, "a byte rate", "'200 MB/s'")
    if not per:
        raise UnitError(
            f"{_quoted(text)} is not per second; a byte rate was expected: write '{_per_second(number, unit)}'"
        )
    if per != "s":
        raise UnitError(f"{_quoted(text)}: byte rates are per second: write '200 MB/s'")
    factor = _BITS[unit] if unit in _BITS else Fraction(_bytes_unit(unit, text))
    rate = _integer(number * factor, text, "bytes per second")
    if rate == 0:
        raise UnitError("a byte rate of 0 never ends: write 'unlimited' or at least '1 B/s'")
    return rate


def parse_rate(text: object) -> Fraction | None:
    """Return the exact records per second of ``"20k/s"``, ``"1.5M/s"`` or ``"30/min"``, None for ``"unlimited"``."""
    if text == "unlimited":
        return None
    number, unit, per = _split(text, "a rate", "'500/s', '20k/s' or 'unlimited'")
    if not per:
        raise UnitError(f"a rate is per second: write '{_stripped(text)}/s'" if unit in _COUNTS else _no_rate(text))
    if per not in _PER or unit not in _COUNTS:
        raise UnitError(_no_rate(text))
    rate = number * _COUNTS[unit] / _PER[per]
    if rate > 10**12:
        raise UnitError(f"{_quoted(text)} is more than a record per picosecond: write 'unlimited'")
    return rate


def parse_share(text: object) -> Fraction:
    """Return the fraction of a percentage such as ``"30 %"``, at most 100 %."""
    number, unit, per = _split(text, "a share", "'30 %'")
    if unit != "%" or per:
        raise UnitError(f"{_quoted(text)} is not a share: write '30 %'")
    if number > 100:
        raise UnitError(f"{_quoted(text)}: a share is at most 100 %")
    return number / 100


def parse_count(text: object) -> int:
    """Return the number of records in ``6900``, ``"20k"`` or ``"1.5M"``."""
    number, unit, per = _split(text, "a number of records", "6900 or '20k'", bare=True)
    if per or unit not in _COUNTS:
        raise UnitError(f"{_quoted(text)} is not a number of records: write 6900 or '20k'")
    return _integer(number * _COUNTS[unit], text, "records")


def parse_number(text: object) -> Fraction:
    """Return the exact, non-negative number of ``3``, ``0.25`` or ``"1/3"``."""
    stripped = _stripped(text)
    if isinstance(text, bool) or not _NUMBER.fullmatch(stripped) or stripped.endswith("/0"):
        raise UnitError(f"{_quoted(text)} is not a number: write 3, 0.25 or 1/3")
    number = Fraction(stripped)
    if number < 0:
        raise UnitError(f"{_quoted(text)} is negative: write a number from 0 on")
    return number


def billionths(text: str) -> int | None:
    """Return a decimal such as ``0.25`` in billionths, or None if it has more than nine places or another form.

    This is ten times as fast as `parse_number`.
    """
    if not _PLAIN.fullmatch(text):
        return None
    digits, _, places = text.partition(".")
    return int(digits + places.ljust(9, "0"))


def parse_quantity(text: object) -> tuple[str, int | Fraction | None]:
    """Return a quantity as (kind, value): ``"30 s"`` -> ("duration", 30 * 10**9), ``3`` -> ("number", 3).

    The unit determines the kind.  Raises `UnitError` if the text is not a quantity of any kind.
    """
    for kind, parse in _KINDS.items():
        try:
            return kind, parse(text)
        except UnitError:
            continue
    raise UnitError(f"{_quoted(text)} is neither a number nor a quantity: write 3 or '30 s'")


_KINDS: Mapping[str, Callable[[object], int | Fraction | None]] = {
    "duration": parse_duration,
    "size": parse_size,
    "rate": parse_rate,
    "byte rate": parse_byte_rate,
    "share": parse_share,
    "number": parse_number,
}


def parse_flink_duration(text: object) -> int:
    """Return the ns of a duration in Flink's configuration: ``30s``, ``10 min``, ``4000`` (ms), ``PT10M``."""
    if match := _ISO_DURATION.fullmatch(str(text).strip().upper()):
        text = f"{sum(int(number or 0) * scale for number, scale in zip(match.groups(), (86400, 3600, 60, 1), strict=True))} s"
    return _parse_flink(text, _FLINK_DURATIONS, "a duration as Flink reads it: write 30s, 10 min or 4000 (ms)")


def parse_flink_size(text: object) -> int:
    """Return the bytes of a size in Flink's configuration: ``8kb``, ``32mb``, ``4096``.  All units are powers of 1024."""
    return _parse_flink(text, _FLINK_SIZES, "a size as Flink reads it: write 32kb, 4mb or 4096 (bytes)")


def format_duration(ns: int) -> str:
    """Return the shortest exact text: ``format_duration(1_500_000) == "1.5 ms"``."""
    if ns == 0:
        return "0 s"
    for unit in ("d", "h", "min"):
        if ns % DURATIONS[unit] == 0:
            return f"{ns // DURATIONS[unit]} {unit}"
    return _largest(ns, {unit: DURATIONS[unit] for unit in ("s", "ms", "us", "ns")})


def format_size(size: int) -> str:
    """Return the shortest exact text: ``format_size(32768) == "32 KiB"``, ``format_size(10**6) == "1 MB"``."""
    texts = [
        text for unit, scale in reversed(list(SIZES.items())) if size >= scale and (text := _decimal(size, scale, unit))
    ]
    return min(texts, key=len, default="0 B")


def format_byte_rate(per_second: int) -> str:
    """Return the shortest exact text: ``format_byte_rate(200_000_000) == "200 MB/s"``."""
    return format_size(per_second) + "/s"


def format_rate(per_second: Fraction | int | None) -> str:
    """Return the exact text of a rate: ``format_rate(Fraction(20_000)) == "20k/s"``; None is unlimited.  Raises `UnitError`."""
    if per_second is None:
        return "unlimited"
    for per, scale in _PER.items():
        if (text := _scaled(Fraction(per_second) * scale)) is not None:
            return f"{text}/{per}"
    raise UnitError(f"{per_second} per second has no exact decimal text")


def format_share(share: Fraction) -> str:
    """Return the exact percentage: ``format_share(Fraction(3, 10)) == "30 %"``.  Raises `UnitError`."""
    if (text := _exact(share * 100)) is None:
        raise UnitError(f"{share} has no exact text in percent")
    return f"{text} %"


def format_number(number: Fraction | int) -> str:
    """Return a decimal if it is exact, such as ``0.25``, otherwise a fraction such as ``1/3``."""
    return _exact(Fraction(number)) or str(number)


def _split(
    text: object, what: str, example: str, *, bare: bool = False, may_be_rate: bool = True
) -> tuple[Fraction, str, str]:
    """Return (number, unit, unit of time) of a quantity, or raise `UnitError`."""
    stripped = _stripped(text)
    if isinstance(text, bool) or text is None or isinstance(text, (Mapping, list, tuple)):
        raise UnitError(f"{what} was expected: write {example}")
    if re.fullmatch(r"[+-]?\.?(nan|inf|infinity)\b.*", stripped, re.IGNORECASE):
        raise UnitError(f"{_quoted(text)} is not a finite number; {what} was expected: write {example}")
    match = _QUANTITY.fullmatch(stripped)
    if match is None:
        raise UnitError(f"{_quoted(text)} is not {what}: write {example}")
    number, unit, per = match.groups()
    if number.startswith("-"):
        raise UnitError(f"{_quoted(text)} is negative; {what} was expected: write {example}")
    if not unit and not per and not bare:
        raise UnitError(f"{what} needs a unit, {_quoted(text)} has none: write {example}")
    if per and not may_be_rate:
        raise UnitError(f"{_quoted(text)} is a rate; {what} was expected: write {example}")
    return Fraction(number), unit, per or ""


def _bytes_unit(unit: str, text: object) -> int:
    if unit in SIZES:
        return SIZES[unit]
    hint = f"write {_AMBIGUOUS[unit]}" if unit in _AMBIGUOUS else f"units of size are {', '.join(SIZES)}"
    raise UnitError(f"{_quoted(text)} is not a size: {hint}")


def _per_second(number: Fraction, unit: str) -> str:
    """Return the byte rate that was probably meant by a number with ``MB``, ``MBps`` or ``Mbps``, otherwise an example."""
    for known in (*SIZES, *_BITS):
        if unit in (known, f"{known}ps", f"{known.removesuffix('it')}ps"):
            return f"{format_number(number)} {known}/s"
    return "200 MB/s"


def _no_rate(text: object) -> str:
    return f"{_quoted(text)} is not a record rate: write '500/s', '20k/s', '1.5M/s', '30/min' or 'unlimited'"


def _integer(value: Fraction, text: object, what: str) -> int:
    if value.denominator != 1:
        raise UnitError(f"{_quoted(text)} is not a whole number of {what}")
    if value > LARGEST:
        raise UnitError(f"{_quoted(text)} is too large: at most {LARGEST} {what}")
    return int(value)


def _largest(value: int, units: Mapping[str, int]) -> str:
    """Return the value in the largest unit in which it has at most three decimals."""
    return next(text for unit, scale in units.items() if value >= scale and (text := _decimal(value, scale, unit)))


def _decimal(value: int, scale: int, unit: str) -> str:
    """Return ``value / scale`` with at most three decimals, or an empty text if it has more."""
    text = _exact(Fraction(value, scale))
    return f"{text} {unit}" if text is not None and len(text.partition(".")[2]) <= 3 else ""


def _scaled(value: Fraction) -> str | None:
    """Return the shortest text with k, M or G, or None if no decimal text is exact."""
    texts = [
        text + suffix
        for suffix, scale in reversed(list(_COUNTS.items()))
        if value >= scale and (text := _exact(value / scale))
    ]
    return min(texts, key=len) if texts else _exact(value)


def _exact(value: Fraction) -> str | None:
    """Return the decimal text of a number, or None if it is periodic."""
    try:
        return f"{_EXACT.divide(Decimal(value.numerator), Decimal(value.denominator)):f}"
    except Inexact:
        return None


def _stripped(text: object) -> str:
    """Return the text without surrounding blanks.  Raises `UnitError` if it is too long, as converting it may take long."""
    if len(stripped := str(text).strip()) > _MAX_LITERAL:
        raise UnitError(f"{_quoted(text)} has {len(stripped):,} characters: write a shorter number")
    return stripped


def _quoted(text: object) -> str:
    stripped = str(text).strip()
    return f"'{stripped if len(stripped) <= 40 else stripped[:37] + '...'}'"


def _parse_flink(text: object, units: Mapping[int, tuple[str, ...]], expected: str) -> int:
    match = None if isinstance(text, bool) else re.fullmatch(r"([0-9]+)\s*([a-zµ]*)", _stripped(text).lower())
    scale = next((scale for scale, labels in units.items() if match and match[2] in labels), None)
    if match is None or scale is None:
        raise UnitError(f"'{text}' is not {expected}")
    if (value := int(match[1]) * scale) > LARGEST:
        raise UnitError(f"'{text}' is too large")
    return value
