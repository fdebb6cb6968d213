"""`backtest:` is checked as every section is, and no run depends on it."""

import math
from fractions import Fraction

import pytest

from sim.model.backtest import OtherSettings
from sim.model.schema.history_file import section_of
from sim.model.schema.study import loads
from sim.model.schema.text import ScenarioError

TINY = """\
# Is it true?
version: 1
job:
  source: {source: {rate: 200/s, record: 400 B}, parallelism: 2}
checkpoint: {interval: 1 s}
run: {duration: 3 s}
"""
SECTION = """\
backtest:
  runs: 3
  simulated: 90 s
  longest: [2 s, 1 s]
  end-to-end:
    observed: {p50: 400 ms, p90: 1 s, max: 2 s, count: 20}
    predicted: {p50: 390 ms, p90: 410 ms, max: 420 ms, count: 60}
    off: [p90]
    cause: unknown
  async: {vertex: source, observed: {p50: 1 ms, p90: 1 ms, max: 1 ms, count: 20}, predicted: {count: 0}}
  throughput: {vertex: source, observed: {p50: 400/s, p90: 400/s, max: 400/s, count: 1}, predicted: {count: 0}}
"""


def test_what_it_says():
    found = loads(TINY + SECTION).backtest

    assert (found.runs, found.simulated_ns, found.longest_ms, found.checkpoints) == (
        3,
        90 * 10**9,
        (2000.0, 1000.0),
        20,
    )
    assert [row.quantity for row in found.compared] == ["end-to-end", "async", "throughput"]
    assert [row.observed.p50 for row in found.compared] == [400.0, 1.0, 400.0]
    assert (found.off[0].off, found.off[0].cause, found.off[0].agreement("p90")) == (("p90",), "unknown", 0.41)


def test_what_it_says_of_other_settings():
    """A file that is older says nothing; a level that is left out is unknown."""
    found = loads(TINY + SECTION + "  other-settings: {p50: 1.5}\n").backtest

    assert OtherSettings(1.5, math.inf) == found.other_settings
    assert None is loads(TINY + SECTION).backtest.other_settings
    assert {"p50": Fraction("1.5")} == section_of(found)["other-settings"]


@pytest.mark.parametrize(
    ("change", "path", "message"),
    [
        (("runs: 3", "runs: three"), "backtest.runs", "expected a whole number"),
        (("p90: 1 s", "p90: 1 MB"), "backtest.end-to-end.observed.p90", "not a duration"),
        (("p90: 1 s", "p90: 1 min"), "backtest.end-to-end.observed", "expected p50 <= p90 <= max"),
        (("p50: 400 ms, ", ""), "backtest.end-to-end.observed", "write p50, p90, max and count"),
        (("off: [p90]", "off: [p99]"), "backtest.end-to-end.off", "expected p50 or p90"),
        (("longest: [2 s, 1 s]", "longest: [1 s, 2 s]"), "backtest.longest", "the longest duration first"),
        (("runs: 3", "runs: 3\n  other-settings: {p50: 0.5}"), "backtest.other-settings", "factors of 1 and more"),
        (("async", "asynchronous"), "backtest.asynchronous", "unknown key"),
        (("max: 400/s", "max: unlimited"), "backtest.throughput.observed", "expected p50 <= p90 <= max"),
    ],
)
def test_mistakes_are_told_at_their_place(change, path, message):
    with pytest.raises(ScenarioError) as refused:
        loads(TINY + SECTION.replace(*change, 1))
    (problem,) = refused.value.problems

    assert path in problem.path
    assert message in problem.message
    assert problem.line
