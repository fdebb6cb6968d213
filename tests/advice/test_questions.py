"""What is asked of the author of a job: every value that is assumed, with what to do about it."""

import pytest

from sim.advice.judgement import Limits
from sim.advice.questions import Unknown, assumed_text, questions
from sim.advice.report import report
from sim.advice.trials import Bench
from tests.advice.made_up import MadeUp, searched

JOB = """\
# A job.
version: 1
job:
  source: {source: {rate: 200/s, record: 100 B}, parallelism: 2}
  sink: {input: {source: hash}, service: 1 ms, parallelism: 2, state: {size: 1 MB}}
checkpoint: {interval: 30 s}
storage: {bandwidth: 5 MB/s}
run: {duration: 3 s}
"""
SIZE = Unknown(("job", "sink", "state", "size"), "0 B", "How large is it?", "nothing. What is known: at most 1 GB.")
SERVICE = Unknown(("job", "sink", "service"), "1 ms", "How long does a record take?")
INTERVAL = Unknown(("checkpoint", "interval"), "30 s", "How often?")
RUN = MadeUp({"aligned": 100.0, "unaligned": 10.0})


def questions_of(job, marked):
    return list(questions(searched(job, RUN, most=3, checkpoint_ms=3000), marked, 1e9))


def test_each_assumed_value_is_asked_for(job):
    """With what is known of it and the option that answers it; a setting of today decides nothing else."""
    job.write_text(JOB)
    of_size = "Assumed: nothing. What is known: at most 1 GB."

    assert questions_of(job, [SIZE, SERVICE, INTERVAL]) == [
        f"UNKNOWN: {asked} = {value}. Measure it, and say it with --set {key}=VALUE."
        for asked, key, value in (
            (f"How large is it? {of_size} The answer rests on job.sink.state.size", "job.sink.state.size", "0 B"),
            ("How long does a record take? The answer rests on job.sink.service", "job.sink.service", "1 ms"),
            ("How often? Only what is said of today rests on checkpoint.interval", "checkpoint.interval", "30 s"),
        )
    ]


@pytest.mark.parametrize(
    ("storage", "count"),
    [("bandwidth: 5 MB/s", 0), ("object-store: {latency: 9 ms}", 1), ("object-store: {latency: 9 ms}, nic: 1 GB/s", 0)],
)
def test_an_unlimited_network_card_is_said_where_storage_is_shared(job, storage, count):
    """Streams of flat storage share nothing, so no card limits them."""
    job.write_text(JOB.replace("bandwidth: 5 MB/s", storage))

    assert (
        questions_of(job, [])
        == ["Assumed: no network card of a TaskManager limits what it uploads (storage.nic)."] * count
    )


def test_an_assumed_zero_comes_first():
    """0.5 and 10 are not zeros."""
    others = [Unknown(("storage", "file-latency"), value, "?") for value in ("0.5 ms", 10)]

    assert assumed_text([*others, SIZE, INTERVAL]) == (
        "UNKNOWN, assumed: sink: state size 0 B, storage file-latency 0.5 ms, storage file-latency 10"
    )
    assert assumed_text([INTERVAL]) == ""


@pytest.mark.parametrize("limit_ms", [3000, 1e-3])
def test_an_answer_that_rests_on_an_assumed_zero_begins_with_it(job, tmp_path, limit_ms):
    """The verdict says how many values, the screen which; nothing is run with another value."""
    sink = "{input: {source: hash}, service: 1 ms, parallelism: 2, state: {size: 1 MB}}"
    marked = "\n    input: {source: hash}\n    state:\n      size: 0 B  # UNKNOWN: How large is it?"
    job.write_text(JOB.replace(sink, marked))
    tried = []

    class Noting(MadeUp):
        def run(self, scenarios):
            tried.extend(scenarios)
            return super().run(scenarios)

    run, limits = Noting(RUN.duration), Limits(checkpoint_ms=limit_ms)
    found = report(Bench(job, {}), limits, 1e9, run, tmp_path, max_replications=1)

    assert found.parts[0].endswith("; it depends on 1 value marked UNKNOWN.")
    assert "UNKNOWN, assumed: sink: state size 0 B" in [line[8:] for line in found.parts[1].splitlines()]
    assert {scenario.job.vertex("sink").state.bytes for scenario in tried} == {0}
