"""Invariants 65 to 76 and 81 on windows, their kinds, watermarks and idle sources: what leaves when, and who waits."""

from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.model.job import Job, Source, Watermark, Window
from sim.results.journal import EventType
from tests.invariants.jobs.small_jobs import (
    ALIGNED,
    MS,
    SECOND,
    UNALIGNED,
    barriers,
    chain,
    completed,
    perhaps_killed,
    quick,
    run,
    scenario,
    started,
    to_the_end,
    with_options,
)
from tests.oracle import oracle

# Invariants 65 to 70 on windows and watermarks: what is held leaves once, in order, when its window ends, and who waits for that.


ENGINES = ("compiled", oracle)
SIZE = 500 * MS
FIRE = 2 * MS
INTERVAL = 50 * MS  # of watermarks


def windowed(window, *, rate=200, total=None, fan_out=Fraction(1)):
    """source -> windows -> sink, two subtasks each."""
    source, middle, sink = chain(rate=rate, sink_ns=MS).vertices
    ticks = Watermark(INTERVAL)
    log = Source(() if source.source is None else source.source.rates, total, watermark=ticks)
    return Job((replace(source, source=log), replace(middle, window=window, fan_out=fan_out), sink))


@st.composite
def windows_of_all_kinds(draw, time=""):
    """Tumbling ones, and those that slide, wait for a gap, or let everything go before a barrier."""
    window = draw(windows(time))
    kind = draw(st.sampled_from(["tumbling", "sliding", "session", "early"]))
    if kind == "sliding":
        return replace(window, every_ns=window.size_ns // draw(st.sampled_from([2, 4])), phase_ns=0)
    if kind == "session" and window.time == "event":
        return replace(window, every_ns=1, hold_ns=window.size_ns, phase_ns=0)
    return replace(window, early=kind == "early", flush_ns=draw(st.sampled_from([0, MS])))


@st.composite
def windows(draw, time=""):
    return Window(
        draw(st.sampled_from([200 * MS, SIZE])),
        "event" if (time or draw(st.sampled_from(["event", "processing"]))) == "event" else "processing",
        draw(st.sampled_from([0, MS, FIRE])),
        phase_ns=draw(st.sampled_from([0, 130 * MS])),
        record_bytes=draw(st.sampled_from([0, 30])),
        api=draw(st.sampled_from(["sql", "datastream"])),
    )


def interruptible(base):
    return with_options(base, interruptible_timers=True)


def tasks(instance, vertex):
    return [task for task, (name, _) in enumerate(instance.names) if name == vertex]


def served(instance, vertex):
    return [int(instance.plane.served()[task]) for task in tasks(instance, vertex)]


def late(instance, vertex):
    return [instance.plane.position(task).late for task in tasks(instance, vertex)]


@pytest.mark.parametrize("engine", ENGINES)
@quick
@given(st.data())
def test_invariant_65_what_windows_hold_leaves_once(engine, data):
    """Whatever fails on the way: at the end of data the last watermark has fired all of it."""
    fan_out = data.draw(st.sampled_from([Fraction(1), Fraction(1, 3), Fraction(2)]))
    job = windowed(data.draw(windows_of_all_kinds("event")), total=150, fan_out=fan_out)
    kind = data.draw(barriers())
    base = scenario(job, kind, interval_ms=130)
    base = interruptible(base) if data.draw(st.booleans()) else base
    instance = to_the_end(perhaps_killed(data, base, [("stage0", 0), ("stage0", 1)]), engine=engine)

    assert instance.job_status == "FINISHED"
    assert late(instance, "stage0") == [0, 0]
    assert sum(served(instance, "stage0")) == 300
    assert sum(int(records * fan_out) for records in served(instance, "stage0")) == sum(served(instance, "sink"))
    assert instance.violations() == ()


@pytest.mark.parametrize("engine", ENGINES)
@quick
@given(windows(), barriers(), st.booleans())
def test_invariant_66_a_snapshot_holds_what_is_not_fired(engine, window, kind, yields):
    """Its state grows by the records held, and a restore finds as many of them as the state says."""
    base = scenario(windowed(window), kind, interval_ms=170)
    instance = run(interruptible(base) if yields else base, engine=engine)
    parts = [
        (part, snapshot)
        for number in completed(instance)
        for task, part in instance.contents.checkpoints.get(number, {}).items()
        for snapshot, _ in part.parts
        if task in tasks(instance, "stage0")
    ]

    assert parts
    assert [part.position.late * window.record_bytes for part, _ in parts] == [
        snapshot.window_bytes for _, snapshot in parts
    ]
    assert instance.violations() == ()


@pytest.mark.parametrize("engine", ENGINES)
@quick
@given(windows("processing"))
def test_invariant_67_windows_of_processing_time_end_together(engine, window):
    """Right after an end nothing older than that is held, once the thread has fired it; before it everything since the last end is."""
    window = replace(window, fire_ns=0)
    instance = started(scenario(windowed(window), seconds=3), engine)
    end = 2 * SECOND + window.phase_ns
    for at, lasts in ((end - MS, window.size_ns), (end + 20 * MS, 20 * MS)):
        instance.env.run(until=at)

        # some are in buffers that are not full
        assert 400 * lasts / SECOND == pytest.approx(sum(late(instance, "stage0")), abs=30)


@pytest.mark.parametrize("engine", ENGINES)
@quick
@given(st.integers(0, 49), st.sampled_from(["sql", "datastream"]))
def test_invariant_68_with_interruptible_timers_a_barrier_waits_for_one_of_them(engine, phase, api):
    """Half a second of work at each end: otherwise barriers that overtake wait for what is left of it, up to all of it."""
    window = Window(SIZE, "event", 5 * MS, phase_ns=10 * phase * MS, api=api)
    base = scenario(windowed(window), UNALIGNED, interval_ms=90, seconds=2.4)
    delays = {}
    for name, variant in (("off", base), ("on", interruptible(base))):
        instance = run(variant, engine=engine)
        begun = [
            row
            for row in instance.journal
            if row.event_type is EventType.SNAPSHOT_BEGUN and row.task in tasks(instance, "stage0")
        ]
        delays[name] = max(row.time_ns - instance.stats[row.checkpoint].trigger_ns for row in begun)

    assert delays["off"] > 200 * MS
    assert (delays["on"] < 40 * MS) == (api == "sql")


@pytest.mark.parametrize("engine", ENGINES)
@quick
@given(st.integers(0, 49), barriers())
def test_invariant_69_interrupted_or_not_the_same_leaves(engine, phase, kind):
    """Who looks at mails between two firings fires the same records, in their order, on the same channels."""
    job = windowed(Window(SIZE, "event", FIRE, phase_ns=10 * phase * MS), total=150)
    base = scenario(job, kind, interval_ms=110)
    instances = [to_the_end(variant, engine=engine) for variant in (base, interruptible(base))]
    channels = [instance.plane.channels()["records_in"].tolist() for instance in instances]

    assert channels[0] == channels[1]
    assert [instance.violations() for instance in instances] == [()] * 2


@pytest.mark.parametrize("engine", ENGINES)
@quick
@given(st.sampled_from([ALIGNED, UNALIGNED]), st.integers(2, 5))
def test_invariant_70_a_watermark_waits_behind_its_records(engine, kind, slower):
    """A window ends when all its records are read: a reader that takes `slower` times as long fires as much later."""
    source, reader, sink = windowed(Window(SIZE, "event")).vertices
    slow = replace(
        reader, inputs=(replace(reader.inputs[0], service=replace(reader.inputs[0].service, mean=slower * 5 * MS)),)
    )
    instance = started(scenario(Job((source, slow, sink)), kind, seconds=6), engine)
    instance.env.run(until=slower * SIZE * 3 // 4)
    assert sum(served(instance, "sink")) == 0
    instance.env.run(until=slower * (SIZE + INTERVAL) * 5 // 4 + 200 * MS)

    assert sum(served(instance, "sink")) > 0


# Invariants 71 to 73 and 81 on kinds of windows: what leaves before a barrier, what slides stays in state, no session ends before its gap.


RATE = 400  # records/s of the vertex


@pytest.mark.parametrize("engine", ENGINES)
@quick
@given(st.sampled_from(["event", "processing"]), barriers(), st.booleans(), st.sampled_from([0, MS, 4 * MS]))
def test_invariant_71_the_first_stage_holds_nothing_behind_a_barrier(engine, time, kind, yields, fire_ns):
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
def test_invariant_72_what_slides_stays_in_state_until_its_last_window_ends(engine, overlapping, kind, api):
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
def test_invariant_73_no_session_ends_before_its_gap(engine, gap_ns, tenth):
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
def test_invariant_81_no_session_of_processing_time_ends_before_its_gap(engine, gap_ns, tenth, kind):
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


# Invariants 74 to 76 on idle sources: they lose nothing while somebody is active, hold no window back, and delay no barrier.


def with_idle_sources(job, timeout_ns, silent=0):
    source, *others = job.vertices
    assert source.source is not None
    log = replace(source.source, watermark=replace(source.source.watermark, idle_timeout_ns=timeout_ns), silent=silent)
    return Job((replace(source, source=log), *others))


@pytest.mark.parametrize("engine", ENGINES)
@quick
@given(st.data())
def test_invariant_74_idle_sources_lose_nothing_while_another_one_is_active(engine, data):
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
def test_invariant_75_a_silent_subtask_holds_windows_back_for_its_timeout_at_most(engine, tenth, idles):
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
def test_invariant_76_an_idle_source_delays_no_barrier(engine, kind, interval_ms, idles):
    """A job with empty queues: barriers of a silent subtask come as soon as those of the others, idle or not."""
    job = with_idle_sources(windowed(Window(100 * SECOND, "event"), rate=50), 100 * MS if idles else None, 1)
    instance = run(scenario(job, kind, interval_ms=interval_ms), engine=engine)
    begun = [
        row
        for row in instance.journal
        if row.event_type is EventType.SNAPSHOT_BEGUN and row.task in tasks(instance, "sink")
    ]

    assert len(begun) > 4
    assert max(row.time_ns - instance.stats[row.checkpoint].trigger_ns for row in begun) < 10 * MS
