"""The values that a scenario marks UNKNOWN."""

from sim.advice.questions import unknowns

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
    assert [unknown.known for unknown in found] == ["a backlog without end.", "1 kB.", "4 s."]
    assert found[0].name == "src: source rate"
    assert [unknown.is_setting for unknown in found] == [False, False, True]


def test_what_is_known_of_a_value_is_what_follows_the_assumption():
    (found,) = unknowns("a: 1  # UNKNOWN: How many? Assumed: one. What is known: at least 1, at most 5.\n")

    assert (found.question, found.known) == ("How many?", "one. What is known: at least 1, at most 5.")


def test_a_mark_behind_the_origin_of_a_value_is_found():
    (found,) = unknowns(
        "a: 1  # 60 checkpoints on a line / 5 records/s; UNKNOWN: When do its keys expire? Assumed: never.\n"
    )

    assert (found.question, found.known) == ("When do its keys expire?", "never.")
