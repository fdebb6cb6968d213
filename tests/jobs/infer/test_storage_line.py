"""A line through asynchronous phases: what bends it, what does not, and when it tells nothing."""

import pytest

from sim.jobs.infer.draft import Draft
from sim.jobs.infer.storage import MAX_PHASES_FOR_LINE, AsyncPhase, _from_sums, line_through, stream_bytes

PLAIN = [AsyncPhase(size * 1e6, 20 + size * 5 + size % 3 - 1) for size in range(1, 40)]


def test_a_line_begins_at_the_latency_and_rises_with_the_bytes():
    """20 ms and 200 MB/s, give or take a millisecond."""
    line = line_through(PLAIN)

    assert pytest.approx(line.latency_ms, abs=1) == 20
    assert pytest.approx(line.bytes_per_ms, rel=0.02) == 200_000
    assert line.is_told
    assert line.slowest <= line.bytes_per_ms <= line.fastest


def test_single_slow_phases_do_not_bend_it():
    """A line of least squares would begin at 70 ms."""
    slow = [AsyncPhase(size, took + 800 * (number % 8 == 3)) for number, (size, took) in enumerate(PLAIN)]

    assert pytest.approx(line_through(slow).latency_ms, abs=6) == 20
    assert pytest.approx(line_through(slow).bytes_per_ms, rel=0.06) == 200_000


@pytest.mark.parametrize(
    "phases",
    [PLAIN[:7], [AsyncPhase(1e6 + number, 50 + number % 5) for number in range(30)]],
    ids=["few", "alike"],
)
def test_few_or_equal_bytes_are_no_line(phases):
    assert line_through(phases) is None


@pytest.mark.parametrize(
    "took", [lambda _: 50, lambda size: 80 - size, lambda size: 50 + (size * 7 % 11)], ids=["even", "falling", "noise"]
)
def test_a_time_that_does_not_depend_on_the_bytes_tells_no_bandwidth(took):
    assert not line_through([AsyncPhase(size * 1e6, took(size)) for size in range(1, 40)]).is_told


def test_where_files_take_far_longer_than_metadata_the_rest_is_transfer():
    """2 MB in 420 ms, of which 20 ms are the latency."""
    draft = Draft()

    assert _from_sums(draft, None, [AsyncPhase(2e6, 420), AsyncPhase(2e6, 420)], 20) == 20
    assert draft.document["storage"] == {"bandwidth": "5 MB/s", "file-latency": "20 ms"}


def test_no_latency_is_negative():
    """5 ms less than the bytes take: then the bytes take it all."""
    line = line_through([AsyncPhase(size * 1e6, max(10 * size - 5, 0)) for size in range(1, 40)])

    assert line.latency_ms == 0
    assert pytest.approx(line.bytes_per_ms, rel=0.05) == 100_000


def test_many_phases_are_thinned_out():
    """A hundred thousand pairs of pairs would not fit into memory."""
    phases = [AsyncPhase(size * 1e4, 20 + size * 0.05) for size in range(1, 60 * MAX_PHASES_FOR_LINE)]

    assert pytest.approx(line_through(phases).bytes_per_ms, rel=0.01) == 200_000


def test_tables_go_side_by_side():
    """150 B in tables of 64 B by four threads: the longest stream has 64; 1000 B: a quarter."""
    assert [stream_bytes(written, 64, 4) for written in (10, 150, 1000)] == [10, 64, 250]
