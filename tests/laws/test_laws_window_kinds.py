"""Laws 71 to 73 and 81 on kinds of windows: what leaves before a barrier, what slides stays in state, no session ends before its gap."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.model.job import Window
from tests.laws.small_jobs import ALIGNED, MS, SECOND, barriers, completed, quick, run, scenario, started
from tests.laws.test_laws_windows import ENGINES, interruptible, late, served, tasks, windowed

RATE = 400  # records/s of the vertex


@pytest.mark.parametrize("engine", ENGINES)
@quick
@given(st.sampled_from(["event", "processing"]), barriers(), st.booleans(), st.sampled_from([0, MS, 4 * MS]))
def test_law_71_the_first_stage_holds_nothing_behind_a_barrier(engine, time, kind, yields, fire_ns):
    """All rows are written before the barrier, under every protocol: no snapshot holds any."""
    window = Window(500 * MS, "event" if time == "event" else "processing", fire_ns, record_bytes=7, early=True)
    base = scenario(windowed(window), kind, interval_ms=130)
    instance = run(interruptible(base) if yields else base, engine=engine)
    parts = [instance.contents.checkpoints.get(number, {}) for number in completed(instance)]
    late_counts = [part[task].position.late for part in parts for task in tasks(instance, "stage0") if task in part]

    assert late_counts
    assert {0} == set(late_counts)
    assert instance.violations() == ()


@pytest.mark.parametrize("engine", ENGINES)
@quick
@given(st.sampled_from([1, 2, 4]), barriers(), st.sampled_from(["sql", "datastream"]))
def test_law_72_what_slides_stays_in_state_until_its_last_window_ends(engine, overlapping, kind, api):
    """Between an end and the next one the slices of the last `size` are there, once or once for each of their windows."""
    size_ns = 400 * MS
    step_ns = size_ns // overlapping
    window = Window(size_ns, "processing", record_bytes=1, api=api, every_ns=step_ns)
    instance = run(scenario(windowed(window), kind, interval_ms=170, seconds=3), engine=engine)
    seen = []
    for number in completed(instance):
        parts = instance.contents.checkpoints.get(number, {})
        trigger_ns = instance.stats[number].trigger_ns
        if trigger_ns > size_ns + step_ns and all(task in parts for task in tasks(instance, "stage0")):
            kept_bytes = sum(
                snapshot.window_bytes for task in tasks(instance, "stage0") for snapshot, _ in parts[task].parts
            )
            open_s = trigger_ns % step_ns / SECOND
            copies = overlapping if api == "datastream" else 1
            older = sum(overlapping - age if api == "datastream" else 1 for age in range(1, overlapping))
            seen.append((kept_bytes, RATE * (open_s * copies + older * step_ns / SECOND)))

    assert seen
    for kept_bytes, expected in seen:
        # records in buffers, and in line with the barrier
        assert expected == pytest.approx(kept_bytes, abs=0.06 * RATE * overlapping)


@pytest.mark.parametrize("engine", ENGINES)
@quick
@given(st.sampled_from([300 * MS, 700 * MS]), st.integers(0, 9))
def test_law_73_no_session_ends_before_its_gap(engine, gap_ns, tenth):
    """Nothing leaves before it, everything older than gap, watermark and line has left."""
    window = replace(Window(gap_ns, "event"), every_ns=1, hold_ns=gap_ns)
    instance = started(scenario(windowed(window), ALIGNED, seconds=3), engine)
    instance.env.run(until=gap_ns - 1)
    assert sum(served(instance, "sink")) == 0
    at_ns = 2 * SECOND + tenth * 20 * MS
    instance.env.run(until=at_ns)

    waiting = sum(late(instance, "stage0"))
    assert RATE * gap_ns / SECOND * 0.85 <= waiting <= RATE * (gap_ns + 200 * MS) / SECOND


@pytest.mark.parametrize("engine", ENGINES)
@quick
@given(st.sampled_from([320 * MS, 640 * MS]), st.integers(0, 9), barriers())
def test_law_81_no_session_of_processing_time_ends_before_its_gap(engine, gap_ns, tenth, kind):
    """Nothing leaves before it; what is older than gap and step has left."""
    step_ns = gap_ns // 32
    instance = started(
        scenario(windowed(replace(Window(gap_ns), every_ns=step_ns, hold_ns=gap_ns)), kind, seconds=3), engine
    )
    instance.env.run(until=gap_ns - 1)
    assert sum(served(instance, "sink")) == 0
    instance.env.run(until=2 * SECOND + tenth * 20 * MS)

    assert (
        RATE * gap_ns / SECOND * 0.85 <= sum(late(instance, "stage0")) <= RATE * (gap_ns + step_ns + 100 * MS) / SECOND
    )
