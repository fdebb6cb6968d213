"""Scenario -> plane: names become numbers, rates become segments, placement becomes hosts; nothing is lost on the way."""

from dataclasses import replace
from fractions import Fraction

import pytest

from sim.model.checkpoint import CheckpointOptions
from sim.model.cluster import Cluster, Debloating, NetworkMemory
from sim.model.job import Distribution, Input, Job, Rate, Source, Vertex, owners
from sim.model.randomness import draw, size_table, stream
from sim.model.scenario import Overheads, Run, Scenario
from sim.model.schema.study import loads
from sim.plane.spec import RateSegment, Ship
from sim.runtime.lowering import hosts, plane_spec
from tests.oracle.thread import due

SECOND = 1_000_000_000
THIRDS = (Fraction(1, 3), Fraction(2, 3))
JOB = Job(
    (
        Vertex("clicks", 2, source=Source(total=9), service=Distribution(300), fan_out=Fraction(3, 2)),
        Vertex("users", 1, source=Source()),
        Vertex(
            "join",
            2,
            joined=True,
            inputs=(
                Input("clicks", "hash", THIRDS, service=Distribution(40), record_bytes=Distribution(200, "uniform")),
                Input("users", "broadcast", service=Distribution(50)),
            ),
        ),
        Vertex("sink", 2, inputs=(Input("join", "forward"), Input("clicks", "rebalance"))),
    )
)


def scenario(job: Job = JOB, **cluster) -> Scenario:
    return Scenario(
        "?",
        "lowering",
        job,
        CheckpointOptions(None),
        Run(SECOND, seed=5),
        Cluster(**{"placement": "isolated"} | cluster),
    )


def with_rates(*rates: tuple[int, Fraction | int], total: int | None = None) -> Scenario:
    """(start in s, per second)."""
    source = Source(tuple(Rate(start * SECOND, Fraction(rate)) for start, rate in rates), total)
    return scenario(Job((Vertex("source", source=source),)))


def segments(*rates: tuple[int, Fraction | int]) -> tuple[RateSegment, ...]:
    return plane_spec(with_rates(*rates)).vertices[0].source.segments


# ---------------------------------------------------------------------------------------------- names and numbers


@pytest.mark.parametrize(("timeout", "period"), [(100, 107), (1, 8), (0, 0), (-1, -1)])
def test_flushes_are_a_timeout_and_what_the_flusher_takes_apart(timeout, period):
    """Whoever flushes after each record, or never, has no flusher."""
    given = replace(scenario(network=NetworkMemory(buffer_timeout_ns=timeout)), overheads=Overheads(flusher_ns=7))

    assert period == plane_spec(given).buffer_timeout_ns


def test_vertices_and_edges_become_numbers():
    """Vertices keep their order; edges stand by reader, then in the order of its inputs."""
    spec = plane_spec(scenario())

    assert [v.name for v in spec.vertices] == ["clicks", "users", "join", "sink"]
    assert [(e.upstream, e.downstream) for e in spec.edges] == [(0, 2), (1, 2), (2, 3), (0, 3)]
    assert [e.ship for e in spec.edges] == [Ship.HASH, Ship.BROADCAST, Ship.FORWARD, Ship.REBALANCE]


def test_two_edges_never_share_a_name():
    """Streams hang on edge names: the same pair of vertices twice must not draw the same numbers."""
    twice = Job((Vertex("a", source=Source()), Vertex("b", inputs=(Input("a", "hash"), Input("a", "hash")))))

    assert len({edge.name for edge in plane_spec(scenario(twice)).edges}) == 2


def test_every_ship_strategy_has_its_number():
    ships = ("forward", "rescale", "rebalance", "hash", "broadcast", "global")
    jobs = [Job((Vertex("a", source=Source()), Vertex("b", inputs=(Input("a", ship),)))) for ship in ships]

    assert list(Ship) == [plane_spec(scenario(job)).edges[0].ship for job in jobs]


def test_laws_become_tables():
    """A service law per input, a source its own; record sizes per edge."""
    spec = plane_spec(scenario())

    assert [v.service for v in spec.vertices] == [((300,),), ((1000,),), ((40,), (50,)), ((1000,), (1000,))]
    assert size_table(Distribution(200, "uniform")) == spec.edges[0].record_bytes
    assert spec.edges[1].record_bytes == (1000,)


def test_weights_become_a_table_of_readers():
    """Twice the weight, twice the entries; no weights: uniform."""
    spec = plane_spec(scenario())

    assert pytest.approx(2, rel=0.01) == spec.edges[0].weights.count(1) / spec.edges[0].weights.count(0)
    assert spec.edges[3].weights == ()


def hash_weights(parallelism: int, groups: int, **options) -> tuple[int, ...]:
    reader = Vertex("b", parallelism, groups, inputs=(Input("a", **options),))
    return plane_spec(scenario(Job((Vertex("a", source=Source()), reader)))).edges[0].weights


def test_key_groups_say_who_reads():
    """Three subtasks own 2, 1 and 1 of four key groups: the first one reads half of the records."""
    assert hash_weights(3, 4) == (0, 0, 1, 2)
    assert [hash_weights(3, 128).count(i) for i in range(3)] == [43, 43, 42]
    assert hash_weights(3, 4, ship="rebalance") == (), "what is not keyed has no key groups"
    assert [hash_weights(2, 5, weights=(Fraction(0), Fraction(1))).count(i) for i in range(2)] == [0, 4096], (
        "weights say it themselves"
    )


@pytest.mark.parametrize(("parallelism", "groups"), [(1, 128), (4, 128), (3, 3), (50, 100)])
def test_equal_shares_of_key_groups_need_no_table(parallelism, groups):
    """Drawing a group and asking for its owner is drawing the reader."""
    key = stream(7, "route", "a->b#0", 0)
    numbers = [draw(key, m) for m in range(500)]

    assert hash_weights(parallelism, groups) == ()
    assert [owners(parallelism, groups)[(u * groups) >> 32] for u in numbers] == [
        (u * parallelism) >> 32 for u in numbers
    ]


def test_fan_out_is_the_writer_s():
    """On each of its outgoing edges, as an exact ratio."""
    assert [edge.fan_out for edge in plane_spec(scenario()).edges] == [(3, 2), (1, 1), (1, 1), (3, 2)]


def test_a_join_stays_a_join():
    assert [v.joined for v in plane_spec(scenario()).vertices] == [False, False, True, False]


# ---------------------------------------------------------------------------------------------- cluster


@pytest.mark.parametrize(
    ("placement", "expected"),
    [("isolated", (0, 1, 2, 3, 4, 5, 6)), ("single", (0,) * 7), ("spread", (0, 1, 0, 0, 1, 0, 1))],
)
def test_placement_becomes_hosts(placement, expected):
    """A task manager each, one for all, one per subtask index."""
    assert expected == hosts(scenario(placement=placement)) == plane_spec(scenario(placement=placement)).hosts


def test_slots_are_filled_one_task_manager_after_the_other():
    """Five subtask indices on task managers of two slots need three; each vertex begins at the first again."""
    job = Job((Vertex("a", 5, source=Source()), Vertex("b", 3, inputs=(Input("a"),))))

    assert hosts(replace(scenario(), job=job, cluster=Cluster("spread", 2))) == (0, 0, 1, 1, 2, 0, 0, 1)


def test_nic_is_an_exact_ratio():
    """10 Gbit/s are 5 bytes in 4 ns; without a limit there is no line."""
    assert plane_spec(scenario(nic_bytes_per_second=1_250_000_000)).nic == (5, 4)
    assert plane_spec(scenario()).nic is None


def test_network_memory_is_handed_on():
    """Every field by its own value."""
    network = NetworkMemory(4096, 1024, 3, 7, 9, 5, buffer_timeout_ns=11)
    spec = plane_spec(replace(scenario(network=network, latency_ns=13), overheads=Overheads(flusher_ns=0)))

    assert (
        spec.segment_bytes,
        spec.exclusive,
        spec.floating,
        spec.max_per_channel,
        spec.overdraft,
        spec.buffer_timeout_ns,
    ) == (4096, 3, 7, 9, 5, 11)
    assert spec.latency_ns == 13
    assert spec.seed == 5


def test_buffers_start_small_only_with_debloating():
    """Without it the first buffer is a whole segment."""
    network = NetworkMemory(4096, 1024)
    debloat = Debloating(period_ns=1, target_ns=2, samples=3, threshold_percent=4, min_bytes=5)
    small = plane_spec(scenario(network=replace(network, debloat=debloat)))

    assert (plane_spec(scenario(network=network)).starting_buffer_bytes, plane_spec(scenario()).debloating) == (
        4096,
        None,
    )
    assert (1024, debloat) == (small.starting_buffer_bytes, small.debloating)


# ---------------------------------------------------------------------------------------------- rates


def dues(*rates: tuple[int, Fraction | int], total: int | None = None) -> list[Fraction]:
    """When the plane has the records of the first 10 seconds due [s], asked by its own rule (W1)."""
    source = plane_spec(with_rates(*rates, total=total)).vertices[0].source
    task = type("Task", (), {"log": source})
    times = []
    while source.total < 0 or len(times) < source.total:
        at = due(task, len(times))
        if at >= 10 * SECOND:
            break
        times.append(Fraction(at, SECOND))
    return times


def test_a_constant_rate_is_one_segment():
    """4 per second: one every quarter of a second from 0 on."""
    assert (RateSegment(0, 0, 4, SECOND),) == segments((0, 4))
    assert len(dues((0, 4))) == 40


def test_no_rates_are_no_segments():
    assert segments() == ()


def test_a_change_of_rate_begins_at_a_record():
    """2 per second for 3 s are 6 records; from then on 10 per second."""
    assert (RateSegment(0, 0, 2, SECOND), RateSegment(6, 3 * SECOND, 10, SECOND)) == segments((0, 2), (3, 10))
    assert len(dues((0, 2), (3, 10))) == 6 + 70


def test_a_fractional_rate_is_exact():
    """One every three seconds: no drift, whatever the number."""
    assert dues((0, Fraction(1, 3))) == [0, 3, 6, 9]
    assert (RateSegment(0, 0, 1, 3 * SECOND),) == segments((0, Fraction(1, 3)))


def test_a_record_between_two_segments_is_completed_by_the_next_rate():
    """Half a record is due after 1 s at 1/2 per second; at 5 per second the missing half takes 0.1 s."""
    assert [0, Fraction(11, 10), Fraction(13, 10)] == dues((0, Fraction(1, 2)), (1, 5))[:3]


def test_rates_of_different_parts_add_up():
    """Due after 5 s: 5/3, after 9 s: 59/21.  What is missing of the next record takes 7/6 s and 8/35 s."""
    found = segments((0, Fraction(1, 3)), (5, Fraction(2, 7)), (9, Fraction(5, 6)))

    assert [(row.first, row.start_ns) for row in found] == [(0, 0), (2, 6_166_666_667), (3, 9_228_571_429)]


def test_nothing_is_due_while_the_rate_is_zero():
    """The night between two days: the next record comes with the next rate, at once."""
    times = dues((0, 2), (2, 0), (7, 1))

    assert [0, Fraction(1, 2), 1, Fraction(3, 2), 7, 8, 9] == times


def test_a_log_may_begin_empty():
    """Rate 0 first: the first record is due when the first rate begins."""
    assert dues((0, 0), (4, Fraction(1, 2))) == [4, 6, 8]


def test_a_log_that_ends_is_bounded():
    """A last rate of 0 ends the log: 2 per second for 3 s are 6 records and no more."""
    source = plane_spec(with_rates((0, 2), (3, 0))).vertices[0].source

    assert source.total == 6
    assert len(dues((0, 2), (3, 0))) == 6


def test_a_total_bounds_a_log():
    """Whichever end comes first."""
    assert plane_spec(with_rates((0, 2), (3, 0), total=4)).vertices[0].source.total == 4
    assert plane_spec(with_rates((0, 2), (3, 0), total=40)).vertices[0].source.total == 6
    assert plane_spec(with_rates((0, 2))).vertices[0].source.total == -1


def test_a_segment_shorter_than_a_record_has_none():
    """A second at 1/10 per second completes no record: it leaves no segment, and its tenth counts."""
    short = (0, Fraction(1, 2)), (3, Fraction(1, 10)), (4, 1)

    assert [row.first for row in segments(*short)] == [0, 2]
    assert [0, 2, Fraction(44, 10), Fraction(54, 10)] == dues(*short)[:4]


def test_slots_are_shared_unless_a_file_says_otherwise():
    """Subtask i of every vertex is in slot i, and a task manager has one slot: Flink's defaults."""
    text = """\
job: {a: {source: {rate: 1/s, record: 1 B}, parallelism: 2}, b: {input: {a: hash}, parallelism: 3}}
checkpoint: {interval: 1 s}
run: {duration: 1 s}
"""

    def placed(*changes):
        return hosts(loads(text, overrides=changes).scenarios[0])

    assert placed() == (0, 1, 0, 1, 2)
    assert (0, 0, 0, 0, 1) == placed("cluster.slots=2") == placed("flink.taskmanager.numberOfTaskSlots=2")
    assert placed("cluster.placement=isolated") == (0, 1, 2, 3, 4)
