"""Threads of snapshots and of tasks share the cores of a task manager: who waits for whom, whichever plane runs them."""

from dataclasses import replace
from fractions import Fraction
from statistics import median

import pytest
import simpy

from sim.jobs.infer.cores import typical_checkpoints
from sim.jobs.infer.file_history import written_bytes
from sim.jobs.source.rest_job import RestJob
from sim.jobs.source.saved import read_saved
from sim.runtime.simulate import simulate
from sim.runtime.task_manager import Processor
from sim.studies.remarks.load import scarce_cores
from tests.places import USERS
from tests.scenarios import read_scenario, run_scenario

# Threads of snapshots and of tasks share the cores of a task manager: who waits for whom, to the nanosecond.


MS, S = 1_000_000, 1_000_000_000


class Cores:
    """A processor beside which task threads are busy, and what it tells them."""

    def __init__(self, cores, busy=Fraction(0)):
        self.env = simpy.Environment()
        self.factors, self.ended = [], {}
        self.processor = Processor(self.env, cores, lambda: int(self.env.now * busy), self.factors.append)
        self.env.run(until=10 * S)

    def begin(self, name, work_ns, at_ns=0, writing_ns=0):
        def run():
            yield self.env.timeout(at_ns)
            try:
                yield from self.processor.share(self.write(writing_ns), work_ns)
            except simpy.Interrupt:
                return
            self.ended[name] = int(self.env.now) - 10 * S

        return self.env.process(run())

    def write(self, writing_ns):
        if writing_ns:
            yield self.env.timeout(writing_ns)


def test_snapshots_share_what_there_is_as_they_come_and_go():
    """One core.  Until 40 ms alone; both with half of it until the short one has its 30 ms; then alone again."""
    shared = Cores(1)
    shared.begin("long", 100 * MS)
    shared.begin("short", 30 * MS, at_ns=40 * MS)
    shared.env.run()

    assert shared.ended == {"short": 100 * MS, "long": 130 * MS}


def test_tasks_that_contend_with_each_other_have_done_so_when_they_were_measured():
    """Four busy threads on two cores, and one more: records take 5/4 of what they took, not 5/2."""
    slowed = Cores(2, Fraction(4))
    slowed.begin("a", 100 * MS)
    slowed.env.run()

    assert [Fraction(5, 4), 1] == slowed.factors


def test_a_snapshot_that_is_given_up_leaves_its_core():
    one_core = Cores(1)
    given_up = one_core.begin("a", 100 * MS)
    one_core.begin("b", 100 * MS)
    one_core.env.run(until=10 * S + 50 * MS)
    given_up.interrupt()
    one_core.env.run()

    assert one_core.ended == {"b": 125 * MS}
    assert one_core.factors[-1] == 1


JOB = """\
job:
  source: {source: {rate: 2k/s, record: 100 B}, parallelism: 2}
  sink: {input: {source: hash}, service: 0.8 ms, parallelism: 2, state: {size: 100 MB, serialize: 400 MB/s}}
checkpoint: {interval: 5 s}
cluster: {placement: single}
storage: {file-latency: 10 ms, bandwidth: unlimited}
run: {duration: 30 s}
"""


def test_asynchronous_phases_are_longer_where_cores_are_short():
    """50 MB at 400 MB/s are 125 ms.  Two sinks are busy for 1.6 of 2 cores, and two snapshots make it 3.6 threads."""
    took = {}
    for cores in (None, 8, 2):
        text = JOB if cores is None else JOB.replace("single", f"single, cores: {cores}")
        built = read_scenario(text, "s")
        table = simulate(replace(built, run=replace(built.run, duration_ns=12 * S))).tables["subtasks"]
        took[cores] = table[table["vertex"] == "sink"]["async_duration"].median()

    assert took[None] == took[8] == pytest.approx(125, abs=1)
    assert pytest.approx(took[2], rel=0.05) == 125 * 3.6 / 2


def test_tasks_that_sleep_leave_their_cores_to_snapshots():
    """The same job, whose threads use a core in a quarter of their busy time: 2.4 threads."""
    text = JOB.replace("single", "single, cores: 2, on-core: 25 %").replace("duration: 30 s", "duration: 12 s")
    table = run_scenario(text).tables["subtasks"]

    assert pytest.approx(table[table["vertex"] == "sink"]["async_duration"].median(), rel=0.05) == 125 * 2.4 / 2


RUNS = [
    f"{job}-{barriers}"
    for job in ("J2-count", "J4-pressed", "R6-grow", "R7-cores", "R8-outputs")
    for barriers in (("aligned-r1", "unaligned-r1") if job == "J4-pressed" else ("aligned", "unaligned"))
]


@pytest.mark.slow
def test_recorded_snapshots_took_their_share_of_two_cores():
    """Heap state was written at 70 to 280 MB/s.  With the threads that wanted a core it is one pace, within a factor of 1.7."""
    alone, measured = [], []
    for name in RUNS:
        job = RestJob(read_saved(USERS / f"{name}.zip"))
        threads = 2 + sum(flow.share("busy_ms") * job.vertex(vertex).parallelism for vertex, flow in job.flows.items())
        bytes_per_s = _warm_pace(job)
        measured.append(bytes_per_s)
        alone.append(bytes_per_s * max(1.0, threads / 2))

    assert max(measured) > 3.5 * min(measured)
    assert max(alone) < 1.7 * min(alone)


def _warm_pace(job):
    """Bytes per second in the latest third of the history, beside 15 ms for the file itself."""
    last = next(vertex.name for vertex in job.vertices if not job.readers(vertex.name))
    phases = [
        (
            written_bytes(subtask),
            subtask.checkpoint.async_ - (max(subtask.alignment.duration, 0) if subtask.unaligned_checkpoint else 0),
        )
        for point in typical_checkpoints(job)
        for subtask in point.tasks[last].subtasks
        if written_bytes(subtask) > 2e6
    ]
    return median(size / max(took_ms - 15, 1) * 1000 for size, took_ms in phases[-len(phases) // 3 :])


# Task threads on few cores: more of them do no more work, whichever plane runs them.


CONTENDED_JOB = """
version: 1
job:
  src: {source: {rate: unlimited, record: 900 B}, parallelism: 2, service: 20 us}
  parse: {input: {src: rebalance}, parallelism: 2, service: 240 us}
  profile: {input: {parse: hash}, parallelism: 2, service: 540 us}
cluster: {placement: spread, cores: 2, hosts: 1, services: idle-core}
checkpoint: {interval: 5 s, barriers: aligned}
run: {duration: 20 s, warmup: 5 s}
"""
PARALLELISM = ("job.src.parallelism", "job.parse.parallelism", "job.profile.parallelism")


def ran(*overrides, engine="compiled"):
    return run_scenario(CONTENDED_JOB, overrides=list(overrides), engine=engine, check=False)


def served(result):
    """Records per second behind the hash, after the first 5 s."""
    rows = result.series[(result.series["vertex"] == "profile") & (result.series["time"] > 5)]
    return rows["numRecordsInPerSecond"].mean()


def test_a_thread_that_waits_for_answers_takes_no_core():
    """Three threads with requests of 10 ms, four at a time: 1,200/s.  They leave both cores to profiles of 1.4 ms."""
    overrides = [
        "job.parse.async-io={latency: 10 ms, capacity: 4}",
        "job.parse.service=1 us",
        "job.profile.service=1.4 ms",
    ]
    waiting = ran(*overrides, *(f"{key}=3" for key in PARALLELISM))

    assert served(waiting) == pytest.approx(3 * 4 / 0.01, rel=0.05)
    assert "busy at once on 2 cores" not in scarce_cores(
        ran(*overrides, "job.profile.service=1 us", *(f"{key}=3" for key in PARALLELISM))
    )


@pytest.mark.parametrize(
    ("overrides", "sentence"),
    [
        ((), "3.0 threads of tasks are busy at once on 2 cores, so records take 1.5 times as long"),
        (("cluster={placement: spread, cores: 2, hosts: 1}",), "services does not say how services were measured"),
        (("cluster.services=side-by-side",), ""),
        (("cluster.cores=64",), ""),
    ],
)
def test_a_run_says_that_cores_are_scarce(overrides, sentence):
    text = scarce_cores(ran(*overrides))

    assert sentence in text
    assert bool(sentence) == bool(text)
