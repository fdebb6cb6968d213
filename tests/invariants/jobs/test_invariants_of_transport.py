"""Invariants 1 to 7, 61 and 62: bytes keep their order, nothing stands still, edges carry what is their own; at extremes, too."""

from collections import defaultdict
from dataclasses import replace
from fractions import Fraction
from itertools import count, pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sim.model.job import Distribution, Input, Job, Rate, Snapshot, Source, Vertex
from sim.plane import build
from sim.plane.interface import BARRIERS, NoticeKind, ThreadState, Trait, create_layout
from sim.results.journal import EventType
from sim.runtime.simulate import simulate
from tests.invariants.jobs.small_jobs import (
    ALIGNED,
    AT_LEAST_ONCE,
    MS,
    SECOND,
    UNALIGNED,
    bounded,
    chain,
    quick,
    run,
    scenario,
    scenarios,
    source,
    started,
    to_the_end,
    with_options,
)
from tests.oracle import ENGINES, ReferencePlane, oracle
from tests.plane.worlds import drive, scripts, worlds

# Invariants 1-7: bytes keep their order, credits and buffers are conserved, nothing stands still that could move.


TRANSPORT_ENGINES = pytest.mark.parametrize("engine", [oracle, "interpreted"])
thorough = settings(
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example]
)


class Spy:
    """A plane that is looked at: knows what was written before each ordinary marker, and where the tables must agree with the invariants."""

    def __init__(self, plane, spec):
        self.plane = plane
        self.layout = create_layout(spec)
        self.written = {}  # (series, number, channel) -> offset of an ordinary marker
        self.prioritised = set()  # (reader, number): what was ordinary overtakes from now on
        self.waiting = set()  # tasks that take nothing until their late outputs have left (L6)
        self.misplaced = []  # (notice, bytes written before its ordinary marker, bytes taken when it was processed)
        self.quiet = lambda: None  # called when the plane has nothing left to do before now

    def __getattr__(self, name):
        return getattr(self.plane, name)

    def channels_of(self, partitions):
        return [c for p in partitions for c in self.layout.partitions[p][2]]

    def forward(self, task, marker, edge=None):
        if not marker.traits & Trait.PRIORITY:
            rows = self.plane.channels()
            partitions = [p for p in self.layout.task_partitions[task] if edge in (None, self.layout.partitions[p][1])]
            for c in self.channels_of(partitions):
                self.written[marker.series, marker.number, c] = int(rows["written"][c])
        return self.plane.forward(task, marker, edge)

    def convert_output(self, task, number):
        for c in self.channels_of(self.layout.task_partitions[task]):
            self.written.pop((BARRIERS, number, c), None)
        return self.plane.convert_output(task, number)

    def prioritise(self, task, number):
        self.prioritised.add((task, number))
        self.plane.prioritise(task, number)

    def wait_for_late(self, task):
        self.waiting.add(task)
        self.plane.wait_for_late(task)

    def start(self, positions):
        self.waiting -= positions.keys()
        self.plane.start(positions)

    def advance(self, until):
        moves = self.plane.now < until
        notice = self.plane.advance(until)
        key = notice.series, notice.number, notice.channel
        overtakes = notice.series == BARRIERS and (notice.task, notice.number) in self.prioritised
        if notice.kind is NoticeKind.ARRIVED and key in self.written and not overtakes:
            offset = int(self.plane.channels()["taken"][notice.channel])
            self.misplaced += [(notice, self.written[key], offset)] if offset != self.written[key] else []
        if notice.kind is NoticeKind.DELAYED_OUTPUTS_WRITTEN:
            self.waiting.discard(notice.task)
        if notice.kind is NoticeKind.REACHED_TIME and moves:
            self.quiet()
        return notice


# ---------------------------------------------------------------------------------------------- 1: order


@TRANSPORT_ENGINES
@thorough
@given(spec=worlds(), script=scripts())
def test_invariant_01_ordinary_markers_keep_their_place(engine, spec, script):
    """When one is processed, all bytes written before it have been taken from its channel, and none written after it."""
    spy = Spy(build(spec, engine), spec)
    drive(spy, spec, script)

    assert spy.misplaced == []


@thorough
@given(worlds(live=True), scripts())
def test_invariant_01_records_keep_their_order(spec, script):
    """What a task reads from a source over one edge comes in the order it was emitted, priority markers or not."""
    plane = ReferencePlane(spec, identities=True)
    drive(plane, spec, script, to_the_end=True)
    plan = create_layout(spec)
    inputs = defaultdict(list)
    for edge in spec.edges:
        inputs[edge.downstream].append(edge.upstream)
    for task, v in enumerate(plan.vertex):
        if len(set(inputs[v])) < len(inputs[v]) or any(spec.vertices[up].source is None for up in inputs[v]):
            continue  # several ways lead here from one source
        ordinals = defaultdict(list)
        for origin, k in plane.served_records(task):
            ordinals[origin].append(k)

        assert all(a <= b for ks in ordinals.values() for a, b in pairwise(ks))


# ---------------------------------------------------------------------------------------------- 2, 3, 5: who may send


@quick
@given(scenarios())
def test_invariants_03_and_05_on_whole_runs(world_of):
    """Under every protocol credits and buffers add up, at every twentieth control event."""
    instance = started(world_of, "compiled")
    for events in count():
        if instance.env.peek() >= SECOND:
            break
        instance.env.step()
        if events % 20 == 0:
            instance.plane.check()


# ---------------------------------------------------------------------------------------------- 4: liveness


def at_rest(instance):
    """Every record of every source has been served by everybody it was meant for."""
    tasks, channels, vertices = instance.plane.tasks(), instance.plane.channels(), instance.scenario.job.vertices
    emitted = all(
        tasks["served"][t] == vertices[v].source.total
        for t, v in enumerate(instance.layout.vertex)
        if vertices[v].source
    )
    return emitted and bool((channels["consumed"] == channels["written"]).all())


@quick
@given(scenarios())
def test_invariant_04_bounded_jobs_come_to_rest(world_of):
    """Whatever is checkpointed meanwhile, and however often it fails: every record reaches the sinks.

    Without flushes a partial buffer leaves with the next barrier: the checkpoints have to go on.
    """
    instance = started(bounded(world_of, 8), "interpreted")
    for second in range(1, 121):
        instance.env.run(until=second * SECOND)
        if at_rest(instance):
            break

    assert at_rest(instance), instance.plane.channels()[
        ["written", "sent", "arrived", "taken", "consumed", "queued", "blocked", "credit"]
    ]


@quick
@given(scenarios())
def test_invariant_04_bounded_jobs_finish(world_of):
    """No protocol leaves a channel blocked or a buffer pinned for ever: the checkpoint that holds the end of the data completes."""
    instance = to_the_end(bounded(with_options(world_of, timeout_ns=10 * SECOND), 8), 120, "interpreted")

    assert instance.job_status == "FINISHED"
    assert at_rest(instance)
    assert "COMPLETED" in {row.status for row in instance.stats.values()}


# ---------------------------------------------------------------------------------------------- 6, 7: nobody idles, time is spent once


def idlers(spy):
    """Sentences about tasks that rest although they could work, and channels that hold data they may send."""
    tasks, channels, partitions, plan = spy.tasks(), spy.channels(), spy.partitions(), spy.layout
    for c, row in enumerate(channels):
        idle = tasks["state"][plan.reader[c]] == ThreadState.IDLE and plan.reader[c] not in spy.waiting
        closed = row["queued"] >= 2 and not row["blocked"]  # only the last element can be an open buffer
        if idle and row["received"] > 0:
            yield f"task {plan.reader[c]} is idle with {row['received']} elements on channel {c}"
        if idle and plan.local[c] and closed:
            yield f"task {plan.reader[c]} is idle with {row['queued']} elements in the queue of local channel {c}"
        if not plan.local[c] and closed and row["credit"] > 0:
            yield f"channel {c} keeps {row['queued']} elements with {row['credit']} credits"
    for t, row in enumerate(tasks):
        open_outputs = all(partitions["available"][p] for p in plan.task_partitions[t])
        if row["state"] == ThreadState.SOFT and open_outputs:
            yield f"task {t} is back-pressured with all outputs available"


@TRANSPORT_ENGINES
@thorough
@given(spec=worlds(), script=scripts())
def test_invariant_06_nobody_rests_who_could_work(engine, spec, script):
    """No task is idle with a full buffer on a channel that is not blocked, none is back-pressured by an available output."""
    spy = Spy(build(spec, engine), spec)
    found = []
    spy.quiet = lambda: found.extend(idlers(spy))
    drive(spy, spec, script)

    assert found == []
    assert spy.misplaced == []


@TRANSPORT_ENGINES
@thorough
@given(spec=worlds(), script=scripts())
def test_invariant_07_time_is_spent_once(engine, spec, script):
    """Busy, idle, soft and hard back-pressured time of each task are the wall time, at every moment."""
    plane = build(spec, engine)
    sums = set()

    def look():
        tasks = plane.tasks()
        spent = tasks["busy_ns"] + tasks["idle_ns"] + tasks["soft_ns"] + tasks["hard_ns"]
        sums.update((spent - plane.now).tolist())

    drive(plane, spec, script, after=look)

    assert {0} == sums


@quick
@given(scenarios())
def test_invariant_07_on_whole_runs(world_of):
    """Held for a checkpoint is busy: nothing is left over and nothing counted twice."""
    instance = started(world_of, "interpreted")
    for until in (7 * MS, 333 * MS, SECOND):
        instance.env.run(until=until)
        tasks = instance.plane.tasks()

        assert {until} == set((tasks["busy_ns"] + tasks["idle_ns"] + tasks["soft_ns"] + tasks["hard_ns"]).tolist())


@pytest.mark.parametrize("engine", [oracle, "compiled"])
def test_invariant_4_a_thread_full_of_snapshots_serves_its_input(engine):
    """Each takes 20 ms of the source's thread, one is triggered every 10 ms: an element comes between two batches of mails."""
    base = scenario(chain(1, sink_ns=MS), seconds=4, interval_ms=10)
    first, *others = base.job.vertices
    reader = replace(
        first, source=Source(rates=(Rate(0, Fraction(100)),), total=50), snapshot=Snapshot(sync_ns=20 * MS)
    )
    world = run(with_options(replace(base, job=Job((reader, *others))), max_concurrent=4), engine)
    triggers = sum(row.event_type == EventType.TRIGGERED for row in world.journal)

    assert world.plane.served()[0] == 50
    assert triggers >= 50


# Invariants 61 and 62, and the turns of a join: edges carry what is their own, several between two vertices are as many single ones.


RECORDS = 40  # of each subtask of the source
SHIPS = ("hash", "rebalance", "rescale", "broadcast", "global")


def edge(ship="rebalance", fan_out=None, *, size=500, service_ns=1 * MS):
    return Input("a", ship, service=Distribution(service_ns), record_bytes=Distribution(size), fan_out=fan_out)


def job(*inputs, parallelism=2, joined=False, total=None):
    given = replace(source("a", parallelism), source=Source((), total))
    return Job((given, Vertex("b", parallelism=parallelism, inputs=inputs, joined=joined)))


@quick
@given(
    st.lists(
        st.tuples(st.sampled_from(SHIPS), st.sampled_from([None, Fraction(0), Fraction(1, 2), Fraction(2)])),
        min_size=1,
        max_size=3,
    ),
    st.booleans(),
)
def test_invariant_61_every_edge_carries_its_share_of_what_is_written(edges, joined):
    """Whatever the number of edges: each copy is read once, a broadcast one by every subtask."""
    given = job(*[edge(ship, fan_out) for ship, fan_out in edges], joined=joined, total=RECORDS)
    tasks = simulate(scenario(given, UNALIGNED, seconds=60)).tables["tasks"]
    copies = [(1 if fan_out is None else fan_out) * (2 if ship == "broadcast" else 1) for ship, fan_out in edges]

    assert 2 * RECORDS * sum(copies) == tasks.loc[tasks["vertex"] == "b", "numRecordsIn"].sum()


@pytest.mark.parametrize("joined", [False, True])
def test_invariant_62_several_edges_hold_as_much_as_that_many_single_ones(joined):
    """In-flight data of k edges is k times that of one; their barriers are one checkpoint."""

    def persisted(edges):
        given = job(*[edge() for _ in range(edges)], joined=joined)
        done = simulate(scenario(given, UNALIGNED, seconds=6)).tables["checkpoints"]
        return done.loc[done["status"] == "COMPLETED", "persisted_data"].median()

    assert pytest.approx([persisted(edges) / persisted(1) for edges in (2, 3)], rel=0.1) == [2, 3]


@pytest.mark.parametrize("kind", [ALIGNED, UNALIGNED])
@pytest.mark.parametrize("joined", [False, True])
def test_invariant_62_a_join_of_a_stream_with_itself_never_stands_still(kind, joined):
    """The barrier on one gate waits for the other while the writer has one output full."""
    given = job(edge("hash", size=2000), edge("rebalance", Fraction(1, 10), size=20, service_ns=3 * MS), joined=joined)
    done = simulate(scenario(given, kind, seconds=12)).tables["checkpoints"]

    assert (done["status"] == "COMPLETED").sum() >= 2
    assert {""} == set(done["x_standstill"])


@pytest.mark.parametrize(("together", "shares"), [("", [1, 1, 1]), ("left", [1, 1, 2])])
def test_a_join_gives_each_of_its_inputs_a_turn(together, shares):
    """However many edges an input is made of: a union of two is served as often as the other input."""
    unions = {"a": together, "b": together, "c": ""}
    inputs = tuple(
        Input(name, service=Distribution(MS), record_bytes=Distribution(500), union=union)
        for name, union in unions.items()
    )
    given = Job((*map(source, unions), Vertex("join", inputs=inputs, joined=True)))
    tasks = simulate(scenario(given, UNALIGNED, seconds=20)).tables["tasks"].set_index("vertex")
    emitted = [tasks.loc[name, "numRecordsIn"] for name in unions]

    assert shares == pytest.approx([count / emitted[0] for count in emitted], rel=0.1)


# Laws at their extremes: whatever a size or a time is drawn from, every record arrives, alike on every engine.


EXTREME_RECORDS = 200  # of each source subtask
SIZES = [  # bytes
    Distribution(1),
    Distribution(1, "exponential"),
    Distribution(40, "exponential"),
    Distribution(1, "uniform"),
    Distribution(600, "uniform"),
    Distribution(1, "lognormal", 100),
    Distribution(300, "lognormal", 100),
    Distribution(1, "lognormal", 0.001),
    Distribution(1, "erlang", 1),
    Distribution(50, "erlang", 1),
    Distribution(2, "erlang", 0.01),
]
TIMES = [  # ns
    Distribution(0),
    Distribution(1),
    Distribution(0, "exponential"),
    Distribution(1, "exponential"),
    Distribution(1, "uniform"),
    Distribution(900_000, "lognormal", 100),
    Distribution(2, "lognormal", 100),
    Distribution(1, "shifted-exponential", 0.001),
    Distribution(900_000, "shifted-exponential", 1),
    Distribution(3, "erlang", 1),
]

SIZE, TIME = Distribution(100), Distribution(100_000)


def name(law):
    return f"{law.kind} {law.mean} {law.cv}"


def bounded_extremes(*, size=SIZE, service=TIME):
    """Two sources, a stage that reads by key, a sink that reads everything."""
    return Job(
        (
            Vertex("source", parallelism=2, source=Source(total=EXTREME_RECORDS), service=service),
            Vertex("stage", parallelism=2, inputs=(Input("source", "hash", service=service, record_bytes=size),)),
            Vertex("sink", parallelism=1, inputs=(Input("stage", "rebalance", service=service, record_bytes=size),)),
        )
    )


def arrived(job, engine, kind=UNALIGNED):
    """Records served by the sources, the stages and the sink; and everything the tables show."""
    world = run(with_options(scenario(job, kind, seconds=20), timeout_ns=10**10), engine)
    rows = world.plane.tasks()
    return [int(rows["served"][part].sum()) for part in (slice(0, 2), slice(2, 4), slice(4, 5))], [
        list(world.journal),
        rows.tolist(),
        world.plane.channels().tolist(),
    ]


@pytest.mark.parametrize("size", SIZES, ids=name)
def test_records_of_every_size_arrive(size):
    """A record whose drawn size rounds to nothing has one byte; a huge one passes segment by segment."""
    seen = [arrived(bounded_extremes(size=size), engine) for engine in ENGINES]

    assert [[2 * EXTREME_RECORDS] * 3] * len(ENGINES) == [served for served, _ in seen]
    assert seen[0][1] == seen[1][1] == seen[2][1]


@pytest.mark.parametrize("service", TIMES, ids=name)
def test_records_of_every_service_time_arrive(service):
    """A service time that rounds to nothing is one nanosecond."""
    seen = [arrived(bounded_extremes(service=service), engine, AT_LEAST_ONCE) for engine in ENGINES]

    assert [[2 * EXTREME_RECORDS] * 3] * len(ENGINES) == [served for served, _ in seen]
    assert seen[0][1] == seen[1][1] == seen[2][1]
