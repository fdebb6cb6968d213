"""What a task's host makes of its machine's commands, seen from outside."""

import pytest

from sim.model.checkpoint import Barriers
from sim.results.journal import Happening
from sim.runtime.simulate import simulate
from tests.laws.small_jobs import MS, chain, scenario

RECORD_MS = 20  # at the sink, the slowest: no barrier is looked at meanwhile


@pytest.mark.parametrize(("timeout_ms", "converted"), [(50, True), (450, False)])
def test_at_the_deadline_a_barrier_overtakes_what_it_waits_behind(timeout_ms, converted):
    """In the output of a writer, where it is converted, and in the input of a reader, where it is prioritised.

    The checkpoint ends one record and a few calls later; behind all the data it would take more than a second.
    """
    result = simulate(
        scenario(
            chain(1, sink_ns=RECORD_MS * MS), Barriers("aligned-timeout", timeout_ms * MS), seconds=6, interval_ms=2000
        )
    )
    happenings = [row.happening for row in result.journal]

    assert [3, 3 * converted] == [
        happenings.count(kind) for kind in (Happening.INPUT_PRIORITISED, Happening.OUTPUT_CONVERTED)
    ]
    assert len(result.checkpoints) == 3
    assert (timeout_ms < result.checkpoints["end_to_end_duration"]).all()
    assert (result.checkpoints["end_to_end_duration"] < timeout_ms + RECORD_MS + 10).all()


def test_what_is_read_between_the_first_barrier_and_the_last_is_told():
    """Nothing by sources, and nothing where one barrier is the first and the last; less than what two channels can hold."""
    two, single = (simulate(scenario(chain(p, sink_ns=3 * MS), seconds=3, interval_ms=700)).subtasks for p in (2, 1))
    readers = two[two["vertex"] != "source"]

    assert {0} == set(single["alignment_processed"]) == set(two[two["vertex"] == "source"]["alignment_processed"])
    assert readers["alignment_processed"].max() > 0
    assert readers["alignment_processed"].max() < 4096
    assert (readers[readers["alignment_duration"] == 0]["alignment_processed"] == 0).all()
