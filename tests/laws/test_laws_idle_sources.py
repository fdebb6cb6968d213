"""Laws 74 to 76 on idle sources: they lose nothing while somebody is active, hold no window back, and delay no barrier."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.model.job import Job, Window
from sim.results.journal import Happening
from tests.laws.small_jobs import (
    ALIGNED,
    MS,
    SECOND,
    UNALIGNED,
    barriers,
    perhaps_killed,
    quick,
    run,
    scenario,
    started,
    to_the_end,
)
from tests.laws.test_laws_windows import (
    ENGINES,
    INTERVAL,
    SIZE,
    late,
    served,
    tasks,
    windowed,
    windows_of_all_kinds,
)


def with_idle_sources(job, timeout_ns, silent=0):
    source, *others = job.vertices
    assert source.source is not None
    log = replace(source.source, watermark=replace(source.source.watermark, idle_timeout_ns=timeout_ns), silent=silent)
    return Job((replace(source, source=log), *others))


@pytest.mark.parametrize("engine", ENGINES)
@quick
@given(st.data())
def test_law_74_idle_sources_lose_nothing_while_another_one_is_active(engine, data):
    """One subtask is silent and ends at once, or is idle now and then: the other one's last watermark fires all of it, once."""
    job = windowed(data.draw(windows_of_all_kinds("event")), total=150)
    job = with_idle_sources(job, data.draw(st.sampled_from([60 * MS, 200 * MS])), data.draw(st.integers(0, 1)))
    kind = data.draw(barriers())
    base = scenario(job, kind, interval_ms=130)
    instance = to_the_end(perhaps_killed(data, base, [("stage0", 0), ("stage0", 1)]), engine=engine)

    assert instance.job_status == "FINISHED"
    assert late(instance, "stage0") == [0, 0]
    assert sum(served(instance, "source")) == sum(served(instance, "stage0")) == sum(served(instance, "sink"))
    assert instance.violations() == ()


@pytest.mark.parametrize("engine", ENGINES)
@quick
@given(st.integers(1, 20), st.booleans())
def test_law_75_a_silent_subtask_holds_windows_back_for_its_timeout_at_most(engine, tenth, idles):
    """Idle no earlier than the timeout, and no later than that and four looks; without a timeout never."""
    timeout_ns = SIZE + tenth * 40 * MS
    instance = started(
        scenario(with_idle_sources(windowed(Window(SIZE, "event")), timeout_ns if idles else None, 1), seconds=3),
        engine,
    )
    instance.env.run(until=timeout_ns)
    assert sum(served(instance, "sink")) == 0
    instance.env.run(until=timeout_ns + 4 * INTERVAL + 200 * MS)  # buffers that are not full wait for their flush

    assert idles == (sum(served(instance, "sink")) > 0)


@pytest.mark.parametrize("engine", ENGINES)
@quick
@given(st.sampled_from([ALIGNED, UNALIGNED]), st.integers(100, 400), st.booleans())
def test_law_76_an_idle_source_delays_no_barrier(engine, kind, interval_ms, idles):
    """A job with empty queues: barriers of a silent subtask come as soon as those of the others, idle or not."""
    job = with_idle_sources(windowed(Window(100 * SECOND, "event"), rate=50), 100 * MS if idles else None, 1)
    instance = run(scenario(job, kind, interval_ms=interval_ms), engine=engine)
    begun = [
        row
        for row in instance.journal
        if row.happening is Happening.SNAPSHOT_BEGUN and row.task in tasks(instance, "sink")
    ]

    assert len(begun) > 4
    assert max(row.time_ns - instance.stats[row.checkpoint].trigger_ns for row in begun) < 10 * MS
