"""What is off says why, where the history or the scenario shows it, and 'cause unknown' elsewhere."""

import pytest

from sim.jobs.evidence.backtest import UNKNOWN, state_growth, with_causes
from sim.jobs.observations import observation_table
from sim.model.scenario import ComparedQuantity, Quantiles
from tests.scenarios import read_scenario

TINY = """\
# Is it true?
version: 1
job:
  source: {source: {rate: 200/s, record: 400 B}, parallelism: 2}
  sink: {input: {source: hash}, service: 1 ms, parallelism: 2, state: {size: 1 MB, backend: BACKEND}}
checkpoint: {interval: 1 s}
run: {duration: 3 s}
"""


def compared(quantity, observed, predicted, off=("p50",), vertex=""):
    """`observed` and `predicted`: p50, p90."""
    sides = [Quantiles(float(p50), float(p90), float(p90), 20) for p50, p90 in (observed, predicted)]
    return ComparedQuantity(quantity, *sides, vertex, off)


def cause(row, *others, growth=None, unbalanced=()):
    return with_causes([row, *others], growth, unbalanced)[0].cause


GROWTH = (10e6, 100e6)


@pytest.mark.parametrize(
    ("row", "evidence", "phrase"),
    [
        (
            compared("end-to-end", (400, 2000), (420, 450), ("p90",)),
            {},
            "a tail that the model has not: p90 is 5.0 times p50",
        ),
        (
            compared("end-to-end", (400, 420), (800, 820)),
            {"growth": GROWTH},
            "the state grows in the history, from 10 MB to 100 MB",
        ),
        (compared("full-size", (50e6, 90e6), (100e6, 100e6)), {"growth": GROWTH}, "the state grows in the history"),
        # every fourth checkpoint is ten times as large as the others
        (
            compared("full-size", (208e6, 2e9), (212e6, 212e6), ("p90",)),
            {},
            "a tail that the model has not: p90 is 9.6 times",
        ),
        (compared("full-size", (50e6, 90e6), (100e6, 100e6)), {}, UNKNOWN),
        (
            compared("throughput", (8000, 8000), (100, 100)),
            {"unbalanced": ("1 in, 2 out",)},
            "a flow does not balance: 1 in, 2 out",
        ),
        (compared("throughput", (8000, 8000), (7000, 7000)), {}, UNKNOWN),
        (compared("end-to-end", (800, 820), (400, 420)), {}, UNKNOWN),
        (compared("async", (40, 90), (100, 150), ("p50", "p90")), {}, UNKNOWN),
        (compared("async", (40, 900), (100, 150)), {}, UNKNOWN),
        (compared("in-flight-persisted", (8e6, 8e6), (4e6, 4e6)), {}, UNKNOWN),
    ],
)
def test_the_likely_cause(row, evidence, phrase):
    assert phrase in cause(row, **evidence)


def test_a_checkpoint_that_is_off_names_the_phase_that_is():
    """The one that explains most of the difference, in the same direction."""
    slow = compared("sync", (500, 520), (100, 120), vertex="count")
    other = compared("start-delay", (100, 120), (400, 420), vertex="sink")

    assert (
        cause(compared("end-to-end", (1000, 1020), (500, 520)), slow, other)
        == "sync of count: p50 500 ms, predicted 100 ms"
    )


def test_no_checkpoint_completes():
    row = ComparedQuantity("end-to-end", Quantiles(1.0, 2.0, 3.0, 20), Quantiles(), off=("p50", "p90"))

    assert cause(row) == "no checkpoint completes in the simulation"
    assert cause(row, unbalanced=("more in than out",)) == "a flow does not balance: more in than out"


def test_growth_is_read_off_the_history_and_the_scenario():
    """Growth from the first third to the last, but not of a state that keeps its size."""

    def growth(sizes, backend="hashmap"):
        history = observation_table(
            [("state_size", "", number, False, float(size)) for number, size in enumerate(sizes, 2)]
        )
        scenario = read_scenario(TINY.replace("BACKEND", backend))
        return state_growth(history, scenario)

    assert growth(range(10, 100, 10)) == (20.0, 80.0)
    assert None is growth([100] * 9) is growth([100, 200]) is growth(range(10, 100, 10), "rocksdb")
