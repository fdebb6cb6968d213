"""What a scenario marks UNKNOWN, and what is as plausible."""

from dataclasses import replace

import pytest

from sim.advice.unknowns import Unknown, plausible, unknowns

TEXT = """\
# A question.
version: 1
job:
  src:  # chain: Source: src
    source:
      # UNKNOWN: How many records per second arrive
      # here? Assumed: a backlog without end.
      rate: unlimited
      record: 1 kB  # UNKNOWN: How large are its records? Assumed: 1 kB.
  my.sink:
    input:
      src: hash  # HASH in the plan
    state: {size: 1 MB}
checkpoint:
  interval: 4 s  # UNKNOWN: Which interval? Assumed: 4 s.
# UNKNOWN: says a comment that belongs to nothing
"""


def test_marks_are_found_where_they_belong():
    """At the end of a line, or above it; questions go over several lines."""
    found = unknowns(TEXT)

    assert [unknown.key for unknown in found] == ["job.src.source.rate", "job.src.source.record", "checkpoint.interval"]
    assert [unknown.assumed for unknown in found] == ["unlimited", "1 kB", "4 s"]
    assert found[0].question == "How many records per second arrive here?"
    assert found[0].name == "src: source rate"
    assert [unknown.is_setting for unknown in found] == [False, False, True]


def test_names_with_dots_can_be_overridden():
    assert Unknown(("job", "my.sink", "state", "size"), "1 MB", "?").key == 'job."my.sink".state.size'


@pytest.mark.parametrize(
    ("path", "assumed", "values"),
    [
        (("job", "a", "state", "size"), "1 GB", ["100 MB", "10 GB"]),
        (("storage", "bandwidth"), "100 MB/s", ["10 MB/s", "1 GB/s"]),
        (("job", "a", "service"), "3 ms", ["1.5 ms", "6 ms"]),
        (("job", "a", "parallelism"), 1, [2]),
        (("job", "a", "state", "update"), "20 %", ["2 %", "100 %"]),
        (("job", "a", "source", "rate"), "unlimited", ["800/s", "950/s"]),
        (("job", "b", "input", "a"), "hash", ["rebalance", "forward"]),
        (("cluster", "profile"), "2.x", ["1.20"]),
        (("checkpoint", "barriers"), "aligned", []),
        (("job", "a", "commit"), "two-phase", []),
    ],
)
def test_plausible_values(path, assumed, values):
    assert values == plausible(Unknown(path, assumed, "?"), served_per_second=1000.0)


RATE = "at least the 1,186.1/s it emits (metrics that changed 5 times in 56 s); no upper bound, because it never waited"


def marked(value, known):
    """The only UNKNOWN of a text, with a remark."""
    (found,) = unknowns(
        f"job:\n  a:\n    source:\n      rate: {value}  # UNKNOWN: How many? Assumed: it. What is known: {known}\n"
    )
    return found


@pytest.mark.parametrize(
    ("value", "known", "bounds"),
    [
        ("unlimited", RATE, ("1186.1/s", None)),
        ("500 B", "what the bytes of all its inputs leave; at least 100 B, at most 1 kB.", ("100 B", "1 kB")),
        (0.6, "between 0.5 and 0.7 of them.", (0.5, 0.7)),
        ("500 B", "nothing at all.", (None, None)),
    ],
)
def test_bounds_are_those_of_the_remark(value, known, bounds):
    found = marked(value, known)

    assert bounds == tuple(None if bound is None else bound.written() for bound in (found.least, found.most))


@pytest.mark.parametrize(
    ("value", "known", "served", "values"),
    [
        ("unlimited", RATE, 2000.0, ["1186.1/s", "1543/s", "1.9k/s"]),
        # 95 % of what it serves are less than arrive: it has a backlog whatever the rate
        ("unlimited", RATE, 1190.0, []),
        ("500 B", "at least 400 B, at most 1 kB.", 0.0, ["400 B", "1 kB"]),
        ("500 B", "at least 500 B.", 0.0, ["2.5 kB"]),
        (0.6, "between 0.5 and 0.7 of them.", 0.0, [0.5, 0.7]),
    ],
)
def test_no_value_is_outside_of_what_is_known(value, known, served, values):
    unknown = marked(value, known)
    unknown = replace(unknown, path=("job", "a", "record")) if str(value).endswith("B") else unknown

    assert values == plausible(unknown, served)
