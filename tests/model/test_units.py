"""Quantities and conditions: what is written is what is meant; values that stand for "unknown"."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.model import units
from sim.model.quantities import parse_condition
from sim.model.series.columns import is_known

# Quantities: what is written is what is meant, exactly, and nothing passes that says no unit.


INTEGERS = st.integers(0, 2**62)


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("30 s", 30 * 10**9),
        ("10 min", 600 * 10**9),
        ("25 us", 25_000),
        ("100 ms", 10**8),
        ("2 h", 7200 * 10**9),
        ("1 d", 86400 * 10**9),
        ("1.5ms", 1_500_000),
        ("1e3 ns", 1000),
        ("0 s", 0),
        (" 7 s ", 7 * 10**9),
    ],
)
def test_durations(text, ns):
    """A number and a unit of time, with or without a space."""

    assert ns == units.parse_duration(text)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("32 KiB", 32768),
        ("4 GiB", 4 << 30),
        ("400 B", 400),
        ("256 MB", 256 * 10**6),
        ("1 kB", 1000),
        ("0.5 KiB", 512),
        ("1 TiB", 1 << 40),
    ],
)
def test_sizes(text, size):
    """KiB is 1024, kB is 1000."""

    assert size == units.parse_size(text)


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        ("20k/s", 20_000),
        ("500/s", 500),
        ("1.5M/s", 1_500_000),
        ("30/min", Fraction(1, 2)),
        ("1/h", Fraction(1, 3600)),
        ("0/s", 0),
        ("0.1 /s", Fraction(1, 10)),
        ("unlimited", None),
    ],
)
def test_rates(text, rate):
    """Rates are exact, and per something."""

    assert rate == units.parse_rate(text)


def test_byte_rates_shares_counts_numbers():
    """The other quantities, exact too."""

    assert units.parse_byte_rate("200 MB/s") == 200 * 10**6
    assert units.parse_byte_rate("10 Gbit/s") == 1_250_000_000
    assert Fraction(3, 10) == units.parse_share("30 %")
    assert Fraction(1, 40) == units.parse_share("2.5%")
    assert units.parse_count(6900) == 6900
    assert units.parse_count("1.5M") == 1_500_000
    assert Fraction(1, 3) == units.parse_number("1/3")
    assert Fraction(1, 10) == units.parse_number(0.1)


@pytest.mark.parametrize(
    ("parse", "value", "message"),
    [
        (units.parse_duration, 30, "a duration needs a unit, '30' has none: write '30 s' or '100 ms'"),
        (units.parse_duration, "200 MB/s", "is a rate; a duration was expected"),
        (units.parse_duration, "9" * 5000 + " s", "has 5,002 characters: write a shorter number"),
        (units.parse_duration, "5 m", "write 'min' instead of 'm'"),
        (units.parse_duration, "5 KiB", "units of time are ns, us, ms"),
        (units.parse_duration, "-5 s", "is negative"),
        (units.parse_duration, "nan s", "is not a finite number"),
        (units.parse_duration, "1e99 s", "is too large"),
        (units.parse_duration, "0.5 ns", "is not a whole number of nanoseconds"),
        (units.parse_duration, "5 s 3 ms", "is not a duration"),
        (units.parse_duration, True, "a duration was expected"),
        (units.parse_duration, "٣ s", "is not a duration"),
        (units.parse_size, "200 MB/s", "is a rate; a size was expected: write '32 KiB'"),
        (units.parse_size, 4096, "a size needs a unit"),
        (units.parse_size, "4 KB", "write kB (1000) or KiB (1024)"),
        (units.parse_size, "4 s", "units of size are B, kB, KiB"),
        (units.parse_size, "0.3 B", "is not a whole number of bytes"),
        (units.parse_byte_rate, "200 MB", "write '200 MB/s'"),
        (units.parse_byte_rate, "100 MBps", "write '100 MB/s'"),
        (units.parse_byte_rate, "2.5 Gbps", "write '2.5 Gbit/s'"),
        (units.parse_byte_rate, "7 parrots", "write '200 MB/s'"),
        (units.parse_byte_rate, "200 MB/min", "byte rates are per second"),
        (units.parse_byte_rate, "0 B/s", "write 'unlimited'"),
        (units.parse_rate, "20k", "a rate is per second: write '20k/s'"),
        (units.parse_rate, 20, "a rate needs a unit"),
        (units.parse_rate, "20 MB/s", "is not a record rate: write '500/s'"),
        (units.parse_share, 0.3, "a share needs a unit, '0.3' has none: write '30 %'"),
        (units.parse_share, "130 %", "a share is at most 100 %"),
        (units.parse_share, "-1 %", "is negative"),
        (units.parse_count, "6900.5", "is not a whole number of records"),
        (units.parse_count, "5 B", "is not a number of records"),
        (units.parse_number, "1/0", "is not a number"),
        (units.parse_number, -1, "is negative"),
        (units.parse_flink_duration, "soon", "is not a duration as Flink reads it"),
        (units.parse_flink_size, "8 KiB", "is not a size as Flink reads it"),
        (units.parse_flink_size, "99999999999999999tb", "is too large"),
    ],
)
def test_refusals_say_what_to_write(parse, value, message):
    """No unit, the wrong one, no finite number: each is refused in words."""
    with pytest.raises(units.UnitError) as refused:
        parse(value)

    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


@given(
    st.text(max_size=30)
    | st.integers()
    | st.floats()
    | st.booleans()
    | st.none()
    | st.lists(st.text(max_size=3), max_size=2)
)
def test_every_other_value_is_refused_in_words(value):
    """Whatever comes, a parser answers with a quantity or a `UnitError`."""
    parsers = [name for name in dir(units) if name.startswith("parse_")]
    assert "parse_duration" in parsers
    for name in parsers:
        try:
            result = getattr(units, name)(value)
        except units.UnitError:
            continue

        value_read = result[1] if name == "parse_quantity" else result

        assert value_read is None or value_read >= 0


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (0, "0 s"),
        (1, "1 ns"),
        (1_500_000, "1.5 ms"),
        (90 * 10**9, "90 s"),
        (600 * 10**9, "10 min"),
        (86400 * 10**9, "1 d"),
        (10**8, "100 ms"),
        (61_500_000_000, "61.5 s"),
        (1_234_567, "1234.567 us"),
    ],
)
def test_durations_are_printed_as_people_write_them(ns, text):
    """The largest unit that leaves at most three decimals."""

    assert text == units.format_duration(ns)


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (400, "400 B"),
        (1000, "1 kB"),
        (1024, "1 KiB"),
        (32768, "32 KiB"),
        (256 * 10**6, "256 MB"),
        (4 << 30, "4 GiB"),
        (12345678, "12345678 B"),
    ],
)
def test_sizes_are_printed_as_people_write_them(size, text):
    """The shortest text that is exact."""

    assert text == units.format_size(size)


def test_rates_shares_and_numbers_are_printed_exactly():
    """Where no decimal text is exact there is none, except for plain numbers."""

    assert [units.format_rate(rate) for rate in (20_000, 500, 1_500_000, Fraction(1, 60), None)] == [
        "20k/s",
        "500/s",
        "1.5M/s",
        "1/min",
        "unlimited",
    ]
    assert units.format_share(Fraction(1, 40)) == "2.5 %"
    assert [units.format_number(number) for number in (Fraction(1, 4), Fraction(1, 3), 7)] == ["0.25", "1/3", "7"]
    assert units.format_byte_rate(200 * 10**6) == "200 MB/s"
    with pytest.raises(units.UnitError, match="no exact decimal text"):
        units.format_rate(Fraction(1, 7))
    with pytest.raises(units.UnitError, match="no exact text in percent"):
        units.format_share(Fraction(1, 3))


@given(INTEGERS)
def test_whole_quantities_survive_printing(value):
    """What is printed is read back as the same number."""

    assert value == units.parse_duration(units.format_duration(value))
    assert value == units.parse_size(units.format_size(value))
    assert value == 0 or value == units.parse_byte_rate(units.format_byte_rate(value))


@given(st.decimals(0, 10**9, places=3))
def test_decimal_rates_survive_printing(rate):
    """Rates with decimals likewise; numbers even where they have no decimal end."""

    assert Fraction(rate) == units.parse_rate(units.format_rate(Fraction(rate)))
    assert Fraction(rate) / 7 == units.parse_number(units.format_number(Fraction(rate) / 7))


@given(st.fractions(0, 1, max_denominator=10**4).filter(lambda share: 10**6 % share.denominator == 0))
def test_shares_survive_printing(share):
    """Shares with a decimal text in percent."""

    assert share == units.parse_share(units.format_share(share))


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("30s", 30 * 10**9),
        ("10 min", 600 * 10**9),
        (4000, 4 * 10**9),
        ("4000", 4 * 10**9),
        ("1 h", 3600 * 10**9),
        ("100 millis", 10**8),
        ("2D", 2 * 86400 * 10**9),
        ("0 ms", 0),
        ("PT10M", 600 * 10**9),
        ("PT1H30S", 3630 * 10**9),
        ("P1D", 86400 * 10**9),
    ],
)
def test_durations_of_flink(text, ns):
    """A bare number is milliseconds, as in TimeUtils."""

    assert ns == units.parse_flink_duration(text)


@pytest.mark.parametrize(
    ("text", "size"),
    [("8kb", 8192), ("32mb", 32 << 20), ("20 kb", 20480), (4096, 4096), ("1g", 1 << 30), ("64 Bytes", 64)],
)
def test_sizes_of_flink(text, size):
    """All units are powers of 1024, as in MemorySize."""

    assert size == units.parse_flink_size(text)


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("30 s", "duration", 30 * 10**9),
        ("32 KiB", "size", 32768),
        ("20k/s", "rate", 20_000),
        ("unlimited", "rate", None),
        ("200 MB/s", "byte rate", 200 * 10**6),
        ("30 %", "share", Fraction(3, 10)),
        (3, "number", 3),
        ("1/3", "number", Fraction(1, 3)),
    ],
)
def test_the_unit_says_what_a_quantity_is(text, kind, value):
    assert (kind, value) == units.parse_quantity(text)


@pytest.mark.parametrize("text", ["fast", "3 parsecs", True, None, ["1 s"], ""])
def test_what_is_no_quantity_at_all(text):
    with pytest.raises(units.UnitError, match="neither a number nor a quantity"):
        units.parse_quantity(text)


DECIMALS = [
    "3",
    "0.25",
    "007",
    "1.000000001",
    "1.0000000001",
    "0.0",
    "123456789012345678",
    "1234567890123456789",
    "1e3",
    "1/3",
    "+1",
    "-1",
    "1.",
    ".5",
    "",
    " 1",
    "1_000",
    "\u0663",
    "nan",
]


@pytest.mark.parametrize("text", DECIMALS)
def test_plain_decimals_are_read_in_billionths(text):
    """They are what `parse_number` says, or another way is needed."""
    found = units.billionths(text)

    assert found is None or Fraction(found, 10**9) == units.parse_number(text)


def test_most_numbers_are_plain_decimals():
    assert [units.billionths(text) for text in (*DECIMALS[:2], *DECIMALS[3:5], "1/3")] == [
        3 * 10**9,
        250_000_000,
        1_000_000_001,
        None,
        None,
    ]


# Conditions: one parser for scenarios, sweeps and expectations.


@pytest.mark.parametrize("comparison", ["<", "<=", ">", ">=", "==", "!="])
def test_a_comparison_and_its_bound(comparison):
    """Blanks around them do not matter."""
    assert (comparison, "60 s") == parse_condition(f"  {comparison} 60 s ") == parse_condition(f"{comparison}60 s")


@pytest.mark.parametrize("text", ["", "60 s", "<", "<  ", "=> 3", "= 3", "60 s <"])
def test_what_is_no_condition(text):
    assert parse_condition(text) is None


@pytest.mark.parametrize(
    ("comparison", "holding"), [("<", {1}), ("<=", {1, 2}), (">", {3}), (">=", {2, 3}), ("==", {2}), ("!=", {1, 3})]
)
def test_when_it_holds(comparison, holding):
    condition = parse_condition(f"{comparison} 2")

    assert holding == {value for value in (1, 2, 3) if condition.holds(value, 2)}


# Values that stand for "unknown".


LEAST, LARGEST = -(2**63), 2**63 - 1


@pytest.mark.parametrize(
    "value",
    [
        -1,
        -1.0,
        LEAST,
        LARGEST,
        float(LARGEST),
        LARGEST // 1,
        Fraction(-1),
        float("nan"),
        float("inf"),
        None,
        "",
        "NaN",
        True,
    ],
)
def test_stand_ins_are_not_known(value):
    assert not is_known(value)
