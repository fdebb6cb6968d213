"""Tiny jobs under every kind of barrier, for the invariants: small buffers, slow sinks, few seconds."""

from dataclasses import replace
from fractions import Fraction

from hypothesis import settings
from hypothesis import strategies as st

from sim.model.checkpoint import Barriers, CheckpointOptions
from sim.model.cluster import Cluster, Debloating, NetworkMemory
from sim.model.faults import Fault, Kill, Restart, When
from sim.model.job import Distribution, Input, Job, Rate, Snapshot, Source, Vertex
from sim.model.scenario import Overheads, Run, Scenario
from sim.model.state import State
from sim.model.storage import Storage
from sim.runtime.job_instance import JobInstance

MS = 1_000_000
SECOND = 1_000 * MS
quick = settings(max_examples=settings.default.max_examples // 4)  # whole runs
ALIGNED, UNALIGNED, AT_LEAST_ONCE = Barriers("aligned"), Barriers("unaligned"), Barriers("at-least-once")

network = NetworkMemory(
    segment_bytes=512,
    starting_segment_bytes=512,
    exclusive_per_channel=2,
    floating_per_gate=2,
    max_per_channel=4,
    overdraft=2,
)
# Their own, whatever is calibrated: what an invariant says is reckoned with these.
overheads = Overheads(
    trigger_ns=MS,
    acknowledge_ns=MS,
    complete_ns=MS,
    notify_ns=MS,
    first_trigger_ns=10 * MS,
    close_ns=20 * MS,
    fail_ns=50 * MS,
    restart_ns=25 * MS,
    deploy_ns=90 * MS,
    file_ns=0,
)
storage = Storage(bytes_per_second=1_000_000, close_ns=2 * MS, metadata_ns=3 * MS, inline_threshold_bytes=0)


def source(name, parallelism=1, *, rate=None):
    rates = () if rate is None else (Rate(0, Fraction(rate)),)
    return Vertex(name, parallelism=parallelism, source=Source(rates), service=Distribution(20_000))


def chain(parallelism=2, *, stages=1, sink_ns=2 * MS, rate=None, record=100):
    """source -> stage -> ... -> sink, hash edges, the sink the slowest."""
    vertices = [source("source", parallelism, rate=rate)]
    for i in range(stages):
        inlet = Input(vertices[-1].name, "hash", service=Distribution(100_000), record_bytes=Distribution(record))
        vertices.append(Vertex(f"stage{i}", parallelism=parallelism, inputs=(inlet,), state=State(2_000)))
    inlet = Input(vertices[-1].name, "hash", service=Distribution(sink_ns), record_bytes=Distribution(record))
    vertices.append(
        Vertex("sink", parallelism=parallelism, inputs=(inlet,), snapshot=Snapshot(operator_state_bytes=50))
    )
    return Job(tuple(vertices))


def perhaps_killed(data, base, tasks):
    """Perhaps with a failure of one of these tasks (vertex, subtask), where nothing may happen twice."""
    if not base.checkpoint.barriers.record.exactly_once or not data.draw(st.booleans()):
        return base
    kill = fault_at(Kill(*data.draw(st.sampled_from(tasks))), data.draw(st.integers(100, 700)))
    return replace(base, faults=(kill,), restart=Restart("fixed-delay", delay_ns=20 * MS))


def scenario(
    job,
    kind=ALIGNED,
    *,
    seconds=3,
    interval_ms=400,
    latency_ns=0,
    **options,
):
    return Scenario(
        question="Does the invariant hold?",
        name="invariant",
        job=job,
        checkpoint=CheckpointOptions(interval_ms * MS, barriers=kind, tolerable_failed=10**6, **options),  # type: ignore[arg-type]
        run=Run(int(seconds * SECOND)),
        cluster=Cluster("isolated", latency_ns=latency_ns, network=network),
        storage=storage,
        overheads=overheads,
        restart=Restart("none"),
    )


def with_options(base, **options):
    """With other options of checkpoints."""
    return replace(base, checkpoint=replace(base.checkpoint, **options))


def with_network(base, **options):
    """With other buffers."""
    return replace(base, cluster=replace(base.cluster, network=replace(base.cluster.network, **options)))


def bounded(base, total):
    """Every source emits so many records per subtask and ends."""
    vertices = (replace(v, source=replace(v.source, total=total)) if v.source else v for v in base.job.vertices)
    return replace(base, job=Job(tuple(vertices)))


def barriers():
    timeouts = st.sampled_from([1, 30, 100, 300]).map(lambda ms: Barriers("aligned-timeout", ms * MS))
    return st.sampled_from([ALIGNED, UNALIGNED, AT_LEAST_ONCE]) | timeouts


@st.composite
def jobs(draw):
    """A source or two, up to two stages with any ship strategy, perhaps a join or a diamond, a sink."""
    parallelism = st.integers(1, 3)
    rates = st.sampled_from([None, 50, 400])
    vertices = [source("a", draw(parallelism), rate=draw(rates))]
    if draw(st.booleans()):
        vertices.append(source("b", draw(parallelism), rate=draw(rates)))
    for name in ["c", "d"][: draw(st.integers(1, 2))]:
        upstream = draw(st.lists(st.sampled_from([v.name for v in vertices]), min_size=1, max_size=2, unique=True))
        p = draw(parallelism)
        inputs = tuple(
            Input(
                up,
                draw(_ships(vertices, up, p)),
                service=draw(_services()),
                record_bytes=Distribution(draw(st.sampled_from([40, 300, 1200]))),
            )
            for up in upstream
        )
        own = Snapshot(
            pre_barrier_ns=draw(_costs()),
            sync_ns=draw(_costs()),
            async_ns=draw(_costs()),
            operator_state_bytes=draw(st.sampled_from([0, 60])),
        )
        fan_out = draw(st.sampled_from([Fraction(1), Fraction(1, 2), Fraction(3)]))
        joined = len(inputs) > 1 and draw(st.booleans())
        vertices.append(
            Vertex(
                name,
                parallelism=p,
                inputs=inputs,
                joined=joined,
                fan_out=fan_out,
                state=draw(st.none() | st.just(State(3_000))),
                snapshot=own,
            )
        )
    return Job(tuple(vertices))


def _ships(vertices, upstream, parallelism):
    equal = next(v for v in vertices if v.name == upstream).parallelism == parallelism
    return st.sampled_from(["hash", "rebalance", "rescale", "broadcast", "global"] + (["forward"] if equal else []))


def _services():
    return st.builds(
        Distribution, st.sampled_from([100_000, 2 * MS, 9 * MS]), st.sampled_from(["constant", "exponential"])
    )


def _costs():
    return st.sampled_from([0, 0, 5 * MS, 60 * MS])


@st.composite
def scenarios(draw, kinds=None):
    kind = draw(barriers() if kinds is None else kinds)
    base = scenario(
        draw(jobs()),
        kind,
        seconds=2,
        interval_ms=draw(st.sampled_from([120, 350, 700])),
        latency_ns=draw(st.sampled_from([0, 50_000])),
    )
    aligned = kind.kind in ("aligned", "at-least-once")
    options = replace(
        base.checkpoint,
        timeout_ns=draw(st.sampled_from([150 * MS, 10 * SECOND])),
        min_pause_ns=draw(st.sampled_from([0, 200 * MS])),
        max_concurrent=draw(st.integers(1, 3)) if aligned else 1,
    )
    debloat = draw(st.none() | st.just(Debloating(period_ns=50 * MS, target_ns=100 * MS, min_bytes=64)))
    cluster = replace(
        base.cluster,
        placement=draw(st.sampled_from(["isolated", "single", "spread"])),
        nic_bytes_per_second=draw(st.sampled_from([None, 2_000_000])),
        network=replace(network, debloat=debloat, buffer_timeout_ns=draw(st.sampled_from([-1, 0, 20 * MS]))),
    )
    return replace(base, checkpoint=options, cluster=cluster, run=replace(base.run, seed=draw(st.integers(1, 3))))


def keep_cuts(instance):
    """Keep the cut of each completed checkpoint in `cuts`, for tests that look at them afterwards."""
    invariant, instance.cuts = instance.invariants.cuts, {}
    cut_of = invariant.cut_of

    def keep(checkpoint):
        instance.cuts[checkpoint] = cut_of(checkpoint)
        return instance.cuts[checkpoint]

    invariant.cut_of = keep
    return instance


def cut_columns(instance):
    return {number: [column.tolist() for column in cut] for number, cut in instance.cuts.items()}


def fault_at(what, *at_ms):
    return Fault(what, When(tuple(ms * MS for ms in at_ms)))


def started(scenario, engine="compiled", **options):
    instance = JobInstance(scenario, engine, **options)
    instance.start()
    return instance


def run(scenario, engine="compiled"):
    """Run a scenario to its end with cuts recorded and the plane's conservation checked."""
    instance = keep_cuts(JobInstance(scenario, engine, digests=True))
    instance.start()
    instance.env.run(until=instance.env.timeout(scenario.run.duration_ns))
    instance.plane.check()
    return instance


def to_the_end(scenario, seconds=60, engine="compiled", **options):
    """Run a scenario until its job has finished."""
    instance = keep_cuts(JobInstance(scenario, engine, **options))
    instance.start()
    instance.env.run(until=instance.outcome.finished | instance.env.timeout(seconds * SECOND))
    instance.plane.check()
    return instance


def rows(instance, *event_types):
    return [row for row in instance.journal if row.event_type in event_types]


def completed(instance):
    return {number for number, row in instance.stats.items() if row.status == "COMPLETED"}
