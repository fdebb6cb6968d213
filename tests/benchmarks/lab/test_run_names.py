"""What the name of a recorded run says."""

import pytest

from benchmarks.lab.settings import run_name
from sim.model.checkpoint import Barriers


@pytest.mark.parametrize(
    ("text", "job", "barriers"),
    [
        ("J2-count-aligned", "J2-count", Barriers("aligned")),
        ("J4-pressed-unaligned-r1", "J4-pressed", Barriers("unaligned")),
        ("R4-rocksdb-timeout300", "R4-rocksdb", Barriers("aligned-timeout", 300_000_000)),
        ("R3-firing-interruptible", "R3-firing", Barriers("unaligned")),
    ],
)
def test_job_and_barriers_of_a_name(text, job, barriers):
    name = run_name(text)

    assert (job, barriers) == (name.job, name.barriers)


def test_a_name_that_says_nothing_of_barriers_is_that_of_its_job():
    assert run_name("nightly-r2") == ("nightly-r2", "")
