"""The claim of the whole: a real job in, what its other protocol will do out, and so it comes."""

import sys

import pytest

from benchmarks.flink.experiments import EXPERIMENTS
from benchmarks.flink.protocols import ALIGNED, UNALIGNED
from benchmarks.flink.report import table_text
from benchmarks.flink.switch import switch

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("flink")]

DURATION, NOISE_MS = 0.25, 150  # repetitions of a real run differ by 4 %; the rest is for what else the machine does
BYTES = 0.25
RATE = 0.08


@pytest.fixture(scope="module")
def table():
    outcome = switch(EXPERIMENTS["shuffle"], (ALIGNED, UNALIGNED))
    sys.stdout.write(table_text(outcome.table, ALIGNED.name))  # shown with what fails
    return outcome.table


def both(table, protocol, quantity, vertex=""):
    row = table[
        (table["protocol"] == protocol.name) & (table["quantity"] == quantity) & (table["vertex"].fillna("") == vertex)
    ]
    return row["predicted_p50"].item(), row["observed_p50"].item()


@pytest.mark.parametrize("protocol", [ALIGNED, UNALIGNED], ids=lambda protocol: protocol.name)
def test_durations_come_as_predicted(table, protocol):
    """Under the protocol it was imported under, and under the one nobody had seen."""
    predicted, measured = both(table, protocol, "end_to_end_duration")

    assert measured == pytest.approx(predicted, rel=DURATION, abs=NOISE_MS)


def test_the_protocols_are_far_apart(table):
    """Further than the bands above are wide: they would not hold if the real job had not been switched, or the simulated one."""
    aligned, unaligned = (both(table, protocol, "end_to_end_duration") for protocol in (ALIGNED, UNALIGNED))

    assert all(slow > 3 * quick for slow, quick in zip(aligned, unaligned, strict=True))
    assert abs(aligned[1] - unaligned[0]) > 4 * max(DURATION * unaligned[0], NOISE_MS)


def test_in_flight_data_is_stored_as_predicted(table):
    """None under aligned barriers."""
    predicted, measured = both(table, UNALIGNED, "persisted_data")

    assert measured == pytest.approx(predicted, rel=BYTES)
    assert both(table, ALIGNED, "persisted_data") == (0, 0)


@pytest.mark.parametrize("protocol", [ALIGNED, UNALIGNED], ids=lambda protocol: protocol.name)
def test_throughput_comes_as_predicted(table, protocol):
    """The sink sets the pace, whatever barriers do."""
    predicted, measured = both(table, protocol, "numRecordsInPerSecond", "sink-writer")

    assert measured == pytest.approx(predicted, rel=RATE)


@pytest.mark.parametrize("vertex", ["map", "sink-writer"])
def test_barriers_arrive_as_predicted(table, vertex):
    """Behind all that waits in aligned mode, at once in unaligned."""
    predicted, measured = both(table, ALIGNED, "start_delay", vertex)

    assert measured == pytest.approx(predicted, rel=DURATION, abs=NOISE_MS)
    assert max(both(table, UNALIGNED, "start_delay", vertex)) < NOISE_MS
