"""Laws 77 to 79 on watermark alignment: drift is bounded, barriers do not wait, nothing is lost."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.model.job import Alignment, Distribution, Input, Job, Rate, Source, Vertex, Watermark, Window
from sim.results.journal import Happening
from sim.runtime.job_instance import JobInstance
from tests.laws.small_jobs import MS, SECOND, barriers, perhaps_killed, run, scenario
from tests.laws.test_laws_windows import ENGINES, INTERVAL, late, served, tasks, to_the_end

quick = settings(max_examples=settings.default.max_examples // 4)  # whole runs
RATE = 200
EVERY = 100 * MS


def job(drift_ns: int, buffer: int, *, total: int | None = None) -> Job:
    """A source that keeps up, and twice as fast when it is behind; one that is half as fast as its records come; a window, a sink."""
    keep = Watermark(INTERVAL, alignment=Alignment("g", drift_ns, EVERY, buffer))
    log = Source((Rate(0, Fraction(RATE)),), total, keep)
    fast = Vertex("fast", 2, source=log, service=Distribution(SECOND // RATE // 2))
    slow = Vertex("slow", 1, source=log, service=Distribution(2 * SECOND // RATE))
    inputs = tuple(
        Input(name, "hash", service=Distribution(10_000), record_bytes=Distribution(100)) for name in ("fast", "slow")
    )
    window = Vertex("stage0", 2, inputs=inputs, window=Window(200 * MS, "event", record_bytes=1))
    last = Input("stage0", "hash", service=Distribution(10_000), record_bytes=Distribution(100))
    return Job((fast, slow, window, Vertex("sink", 1, inputs=(last,))))


@pytest.mark.parametrize("engine", ENGINES)
@quick
@given(st.sampled_from([200 * MS, 500 * MS]), st.sampled_from([0, 3]))
def test_law_77_drift_is_bounded(engine, drift_ns, buffer):
    """By the drift, and by what a source reads (at twice the speed of its records) before its watermark is judged by a new limit."""
    instance = JobInstance(scenario(job(drift_ns, buffer), seconds=6), engine)
    instance.start()
    for tenth in range(20, 60):
        instance.env.run(until=tenth * 100 * MS)
        (slow,) = served(instance, "slow")
        ahead_ns = (max(served(instance, "fast")) - slow) * SECOND // RATE

        assert ahead_ns <= drift_ns + 2 * ((2 + buffer) * EVERY + 2 * INTERVAL)


@pytest.mark.parametrize("engine", ENGINES)
@quick
@given(barriers(), st.sampled_from([0, 3]))
def test_law_78_a_source_that_waits_delays_no_barrier(engine, kind, buffer):
    instance = run(scenario(job(200 * MS, buffer), kind, interval_ms=170), engine=engine)
    begun = [
        row
        for row in instance.journal
        if row.happening is Happening.SNAPSHOT_BEGUN and row.task in tasks(instance, "fast")
    ]

    assert len(begun) > 20
    assert max(row.time_ns - instance.stats[row.checkpoint].trigger_ns for row in begun) < 5 * MS
    assert instance.violations() == ()


@pytest.mark.parametrize("engine", ENGINES)
@quick
@given(st.data())
def test_law_79_sources_in_step_lose_nothing(engine, data):
    """Whatever fails, and whoever ends first: the other one reads on to its end."""
    kind = data.draw(barriers())
    base = scenario(
        job(data.draw(st.sampled_from([20 * MS, 400 * MS])), data.draw(st.sampled_from([0, 1, 3])), total=150),
        kind,
        interval_ms=130,
    )
    instance = to_the_end(perhaps_killed(data, base, [("fast", 0), ("slow", 0), ("stage0", 0)]), engine)

    assert instance.job_status == "FINISHED"
    assert late(instance, "stage0") == [0, 0]
    assert [*served(instance, "fast"), *served(instance, "slow")] == [150, 150, 150]
    assert [sum(served(instance, "stage0")), sum(served(instance, "sink"))] == [450] * 2
    assert instance.violations() == ()
