"""Rules D, W, F, G: debloating, due times, laws, flush timers, digests."""

from itertools import pairwise

import pytest

from sim.model.cluster import Debloating
from sim.model.randomness import draw, stream
from sim.plane.interface import RateSegment, SourceSpec, VertexSpec
from tests.plane.lab import channel, edge, pipe, run, source, task, vertex, world

UNIT = 1 << 32


def phase(period, *names):
    return 1 + ((draw(stream(0, *names), 0) * period) >> 32)


def first_run(period=1000):
    return phase(period, "debloat", "0-1", 0)


def half_even(value):
    integer, rest = divmod(value, UNIT)
    return integer + (2 * rest > UNIT or (2 * rest == UNIT and integer % 2 == 1))


def step(last, desired, in_use, options, segment):
    """D3 as a formula."""
    inst = min(desired * UNIT // in_use, 2 * last)
    return min(max(last + (inst - last) * 2 // (options.samples + 1), options.min_bytes * UNIT), segment * UNIT)


def sizes(plane, times):
    """The gate's announced size after each instant."""
    seen = []
    for t in times:
        run(plane, t + 1)
        seen.append(int(plane.gates()[0]["buffer_bytes"]))
    return seen


def test_D1_gates_measure_at_a_drawn_phase(build):
    """Nothing was ever read: the rate is 0 and the first run already shrinks the buffers."""
    options = Debloating(period_ns=1000, target_ns=1000, samples=3, threshold_percent=10, min_bytes=10)
    plane = build(pipe(total=0, debloating=options, segment_bytes=1000, starting_buffer_bytes=800))
    first = first_run()

    assert sizes(plane, [first - 1, first, first + 999, first + 1000]) == [800, 400, 400, 200]
    assert channel(plane, 0, "buffer_bytes") == 200


@pytest.mark.parametrize("local", [False, True])
def test_D2_D3_the_size_follows_the_rate(build, local):
    """A reader that is always in service from 10 on: 100 bytes per 40 ns, as many buffers in use as wait for it."""
    options = Debloating(period_ns=1000, target_ns=200, samples=4, threshold_percent=1, min_bytes=10)
    plane = build(pipe(service=40, debloating=options, exclusive=1, floating=2, local=local))
    first = first_run()
    run(plane, first)
    read_bytes = channel(plane, 0, "taken")
    queued, received = channel(plane, 0, "queued", "received")
    in_use = queued if local else received + 2  # the pool holds three: the last element to arrive left two behind
    new = half_even(step(100 * UNIT, read_bytes * 200 // (first - 10), in_use, options, 100))
    run(plane, first + 1)

    assert new == int(plane.gates()[0]["buffer_bytes"])

    last = step(100 * UNIT, read_bytes * 200 // (first - 10), in_use, options, 100)
    run(plane, first + 1000)
    queued, received = channel(plane, 0, "queued", "received")
    in_use = queued if local else received + 2
    # active all the time
    last = step(last, (channel(plane, 0, "taken") - read_bytes) * 200 // 1000, in_use, options, 100)
    run(plane, first + 1001)

    assert half_even(last) == int(plane.gates()[0]["buffer_bytes"])


def test_D3_rounds_half_to_even(build):
    """Half the way to 0 in every run (samples = 3): 101 becomes 50.5, 25.25 and 12.625, announced as 50, 25, 13."""
    options = Debloating(period_ns=1000, target_ns=1, samples=3, threshold_percent=0, min_bytes=1)
    plane = build(pipe(total=0, debloating=options, segment_bytes=1000, starting_buffer_bytes=101))
    first = first_run()

    assert sizes(plane, [first, first + 1000, first + 2000]) == [50, 25, 13]

    plane = build(pipe(total=0, debloating=options, segment_bytes=1000, starting_buffer_bytes=103))

    assert sizes(plane, [first, first + 1000]) == [52, 26]  # 51.5, 25.75


def test_D4_bounds_are_always_announced(build):
    """From 12 towards the minimum of 10: a small change, but the minimum."""
    options = Debloating(period_ns=1000, target_ns=1, samples=3, threshold_percent=90, min_bytes=10)
    plane = build(pipe(total=0, debloating=options, segment_bytes=100, starting_buffer_bytes=12))
    first = first_run()

    assert sizes(plane, [first - 1, first]) == [12, 10]


def test_D4_the_size_reaches_the_sender_with_the_latency(build):
    options = Debloating(period_ns=5000, target_ns=1, samples=3, threshold_percent=1, min_bytes=10)
    plane = build(pipe(total=0, debloating=options, latency_ns=300))
    first = first_run(5000)
    run(plane, first + 300)

    assert (int(plane.gates()[0]["buffer_bytes"]), channel(plane, 0, "buffer_bytes")) == (50, 100)

    run(plane, first + 301)

    assert channel(plane, 0, "buffer_bytes") == 50


def test_W1_the_last_segment_that_has_begun_counts(build):
    """Records 0-2 every 100 ns from 5 on, then three per 1000 ns (rounded down) from 2000 on."""
    segments = (RateSegment(0, 5, 1, 100), RateSegment(3, 2000, 3, 1000))
    spec = world([VertexSpec("a", 1, ((1,),), SourceSpec(segments)), vertex()], [edge()])
    plane = build(spec)
    begun, served = [], 0
    for until in range(1, 2700):
        run(plane, until)
        if task(plane, 0, "served") > served:
            served += 1
            begun.append(until - 2)  # seen one later, served after 1 ns

    assert begun == [5, 105, 205, 2000, 2333, 2666]


def test_F1_flush_timers_have_a_drawn_phase_and_a_period(build):
    """Two sources with an open buffer each: each is flushed at its own phase."""
    spec = world([source(parallelism=2, total=1), vertex(parallelism=2)], [edge(size=30)], buffer_timeout_ns=100_000)
    plane = build(spec)
    for i in sorted((0, 1), key=lambda i: phase(100_000, "flush", "a", i)):
        at = phase(100_000, "flush", "a", i)
        run(plane, at)
        assert channel(plane, i, "sent") == 0
        run(plane, at + 1)
        assert channel(plane, i, "sent") == 30


def fold(values):
    d = 1
    for x in values:
        d = (((d ^ (x & (2**31 - 1))) * 48271) + ((x >> 31) & (2**31 - 1))) & (2**31 - 1)
    return d


@pytest.mark.parametrize(
    ("local", "events"), [(False, [10, 1010, 1010, 20, 1020, 1020]), (True, [10, 10, 10, 20, 20, 20])]
)
def test_G1_a_channel_folds_sending_arrival_and_taking(build, local, events):
    """Two elements of 100 bytes.  Over a latency: both are sent before the first arrives."""
    plane = build(pipe(total=2, latency_ns=1000, local=local, digests=True))
    run(plane, 5000)
    a, b = (100, 100), (200, 100)
    if local:
        order = [(t, *(a if i < 3 else b)) for i, t in enumerate(events)]
    else:
        order = [(10, *a), (20, *b), (1010, *a), (1010, *a), (1020, *b), (1020, *b)]

    assert fold([x for row in order for x in row]) == channel(plane, 0, "digest")


def test_D4_an_open_buffer_keeps_its_capacity(build):
    """100 bytes while the size was 100, the one open at the announcement included; 50 (the minimum) after it."""
    options = Debloating(period_ns=1000, target_ns=1, samples=3, threshold_percent=1, min_bytes=50)
    plane = build(pipe(size=10, debloating=options, segment_bytes=200, starting_buffer_bytes=100))
    first = first_run()
    run(plane, first)
    written, sent = channel(plane, 0, "written", "sent")
    announced_inside = 0 < written - sent < 100
    run(plane, 1500)  # before the second run
    times = range(first, 1500)
    plane = build(pipe(size=10, debloating=options, segment_bytes=200, starting_buffer_bytes=100))
    offsets = []
    for t in times:
        run(plane, t)
        offsets.append(channel(plane, 0, "sent"))
    lengths = [b - a for a, b in pairwise(offsets) if b > a]

    assert announced_inside
    assert lengths[:3] == [100, 50, 50]
