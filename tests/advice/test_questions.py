"""What is asked of the author of a job: what changes the advice, and nothing else."""

import pytest

from sim.advice.candidates import CandidateSearch
from sim.advice.judgement import Limits
from sim.advice.optimizer import run_until_sure
from sim.advice.questions import assumptions, questions
from sim.advice.sensitivity import sensitivity
from sim.advice.trials import Bench
from sim.advice.unknowns import Unknown
from sim.studies.sweeps.design import ParsedQuantity
from tests.advice.test_race import DAY_S, MadeUp

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
SIZE = Unknown(("job", "sink", "state", "size"), "1 MB", "How large is it?")
SERVICE = Unknown(("job", "sink", "service"), "1 ms", "How long does a record take?")
RATE = Unknown(
    ("job", "source", "source", "rate"), "unlimited", "How many arrive?", least=ParsedQuantity.parse("1186/s")
)


class OfStorage(MadeUp):
    """A checkpoint takes as long as the state at the rate of storage."""

    def __call__(self, steady, failing):
        for scenario in (*steady, *failing):
            self.seconds = scenario.job.vertices[-1].state.bytes / scenario.storage.bytes_per_second
            break
        return super().__call__(steady, failing)

    def row(self, axes, k, more_ms):
        return super().row(axes, k, 1e3 * self.seconds)


def parts_of(job, run, marked, unmarked=(), limit_ms=3000):
    race = CandidateSearch(Bench(job, {}, patience_ns=0), Limits(checkpoint_ms=limit_ms), DAY_S, run, 3)
    run_until_sure(race)
    found = sensitivity(race, [*marked, *unmarked], {}, {})
    return [
        part if isinstance(part, str) else part.rows for part in questions(race, marked, found, {"source": 1190.0}, 1e9)
    ]


def test_none_at_both_ends_is_no_change(job):
    """Nothing keeps the limit, whatever the state: that is not asked for, and the table says that it holds."""
    texts = parts_of(job, MadeUp(dict.fromkeys(("aligned", "unaligned"), 9000.0), state=True), [SIZE])

    assert not [text for text in texts if "Answer first" in str(text)]
    assert [row[-1] for row in texts[0]] == ["holds"]


def test_what_moves_nothing_is_a_line(job):
    """Neither a time that nothing depends on, nor a rate that is a backlog whatever it is."""
    run = MadeUp({"aligned": 1000.0, "unaligned": 10.0}, state=True)
    table, first, line = parts_of(job, run, [SERVICE, SIZE, RATE])

    assert [row[0] for row in table] == ["sink: state size"]
    assert first == "Answer first: How large is it? (sink: state size)"
    assert line.startswith(
        "Moves nothing, and need not be answered: sink: service (500 us ... 2 ms); source: source rate (at least 1186/s"
    )


@pytest.mark.parametrize(
    ("rates", "settled"),
    [({}, False), ({"source": 0.0}, False), ({"source": 1190.0}, True), ({"source": 9000.0}, False)],
)
def test_a_rate_that_the_job_does_not_serve_is_settled(job, rates, settled):
    """1186/s are known.  Of what the job could serve nothing may be known, or that it is more."""
    race = CandidateSearch(
        Bench(job, {}, patience_ns=0), Limits(checkpoint_ms=3000), DAY_S, MadeUp({"aligned": 1.0, "unaligned": 1.0}), 3
    )
    (text,) = questions(race, [RATE], [], rates, 1e9)

    assert (
        "Moves nothing"
        if settled
        else "UNKNOWN: How many arrive? Not varied (source: source rate unlimited is assumed)."
    ) in text


@pytest.mark.parametrize(("limit_ms", "decides"), [(300, True), (3000, False)])
def test_an_assumption_that_decides_is_said(job, limit_ms, decides):
    """200 ms at 5 MB/s: at half of that rate they break a limit of 300 ms, and keep one of 3 s."""
    scenario = Bench(job, {}, patience_ns=0).load({})
    (storage,) = [unknown for unknown in assumptions(scenario, []) if unknown.path == ("storage", "bandwidth")]
    texts = parts_of(job, OfStorage({"aligned": 0.0, "unaligned": 0.0}), [], [storage], limit_ms=limit_ms)

    assert list(storage.others) == ["2.5 MB/s", "10 MB/s"]
    sentences = [text for text in texts if "rests on what is assumed: storage bandwidth 5 MB/s." in str(text)]
    assert decides == bool(sentences)
    assert [unknown for unknown in assumptions(scenario, [storage]) if unknown.path == ("storage", "bandwidth")] == []


class Spread(MadeUp):
    """Later replications take ten times as long as the first."""

    def row(self, axes, k, more_ms):
        return super().row(axes, k, more_ms) | {"end_to_end_max_ms": 100.0 if not k else 1000.0}


def test_the_assumed_value_is_judged_by_as_many_runs_as_the_others(job):
    """The longest of three runs beside that of one: a value that changes nothing would seem to make checkpoints ten times shorter."""
    race = CandidateSearch(
        Bench(job, {}, patience_ns=0),
        Limits(checkpoint_ms=3000),
        DAY_S,
        Spread(dict.fromkeys(("aligned", "unaligned"), 100.0)),
        3,
    )
    run_until_sure(race)
    (row,) = sensitivity(race, [SERVICE], {}, {})

    assert 3 in race.runs.values()
    assert not row.moves
