"""What a scenario marks UNKNOWN, and what is as plausible."""

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

    assert ["job.src.source.rate", "job.src.source.record", "checkpoint.interval"] == [unknown.key for unknown in found]
    assert ["unlimited", "1 kB", "4 s"] == [unknown.assumed for unknown in found]
    assert "How many records per second arrive here?" == found[0].question
    assert "src: source rate" == found[0].name
    assert [False, False, True] == [unknown.is_setting for unknown in found]


def test_names_with_dots_can_be_overridden():
    assert 'job."my.sink".state.size' == Unknown(("job", "my.sink", "state", "size"), "1 MB", "?").key


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
