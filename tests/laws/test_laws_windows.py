"""Laws 65 to 70 on windows and watermarks: what is held leaves once, in order, when its window ends, and who waits for that."""

from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.model.job import Job, Source, Watermark, Window
from sim.results.journal import Happening
from tests.laws.small_jobs import (
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

ENGINES = ("compiled", oracle)
SIZE = 500 * MS
FIRE = 2 * MS
INTERVAL = 50 * MS  # of watermarks


def windowed(window, *, rate=200, total=None, fan_out=Fraction(1)):
    """source -> windows -> sink, two subtasks each."""
    source, middle, sink = chain(rate=rate, sink_ns=MS).vertices
    ticks = Watermark(INTERVAL)
    log = Source(() if source.source is None else source.source.rates, total, ticks)
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
def test_law_65_what_windows_hold_leaves_once(engine, data):
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
def test_law_66_a_snapshot_holds_what_is_not_fired(engine, window, kind, yields):
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
def test_law_67_windows_of_processing_time_end_together(engine, window):
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
def test_law_68_with_interruptible_timers_a_barrier_waits_for_one_of_them(engine, phase, api):
    """Half a second of work at each end: otherwise barriers that overtake wait for what is left of it, up to all of it."""
    window = Window(SIZE, "event", 5 * MS, phase_ns=10 * phase * MS, api=api)
    base = scenario(windowed(window), UNALIGNED, interval_ms=90, seconds=2.4)
    delays = {}
    for name, variant in (("off", base), ("on", interruptible(base))):
        instance = run(variant, engine=engine)
        begun = [
            row
            for row in instance.journal
            if row.happening is Happening.SNAPSHOT_BEGUN and row.task in tasks(instance, "stage0")
        ]
        delays[name] = max(row.time_ns - instance.stats[row.checkpoint].trigger_ns for row in begun)

    assert delays["off"] > 200 * MS
    assert (delays["on"] < 40 * MS) == (api == "sql")


@pytest.mark.parametrize("engine", ENGINES)
@quick
@given(st.integers(0, 49), barriers())
def test_law_69_interrupted_or_not_the_same_leaves(engine, phase, kind):
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
def test_law_70_a_watermark_waits_behind_its_records(engine, kind, slower):
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
