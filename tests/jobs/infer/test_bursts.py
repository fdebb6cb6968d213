"""Barriers that wait behind bursts: what an import says of the work of a busy task, and what a simulation makes of it."""

from statistics import mean

import pytest

from sim.jobs.infer.storage import infer_bursts
from sim.model.schema.study import loads
from sim.runtime.simulate import simulate
from tests.jobs.infer.made_jobs import MadeJob, checkpoint, drafted, subtask
from tests.jobs.infer.test_edges_counted import vertex
from tests.jobs.infer.test_made_work import flowed, own

VERTICES = [vertex("src"), vertex("work", "src")]


def imported(wait_ms, busy, *, unaligned=False, pressed=0.0, scarce=(), **given):
    """The service of a vertex that is busy for this share; its barriers wait so long behind those of the source."""
    points = [
        checkpoint(number, src=[subtask(start=10)], work=[subtask(start=10 + wait_ms)]) for number in range(1, 12)
    ]
    draft = drafted(job := MadeJob(VERTICES, points, {"unaligned_checkpoints": unaligned}))
    draft.document["job"]["work"] = {"service": "1 ms", **given}
    draft.scarce += scarce
    infer_bursts(
        draft,
        job,
        {"src": flowed(own(written=50)), "work": flowed(own(1000 * busy, 0, busy, 1 - busy - pressed, pressed))},
    )
    return draft.document["job"]["work"]["service"]


@pytest.mark.parametrize(("wait_ms", "busy"), [(160, 0.9), (40, 0.9), (500, 0.5), (500, 0.99)])
def test_short_waits_and_idle_or_full_tasks_show_no_bursts(wait_ms, busy):
    """At 90 % some 102 ms are records that buffers held back, and 60 ms are noise."""
    assert imported(wait_ms, busy) == "1 ms"


def test_tasks_that_wait_for_room_or_for_a_core_show_no_bursts():
    assert imported(500, 0.8, pressed=0.15) == "1 ms"
    assert imported(500, 0.9, scarce=["3 threads on 2 cores"]) == "1 ms"


def test_unaligned_barriers_and_windows_show_no_bursts():
    assert imported(500, 0.9, unaligned=True) == "1 ms"
    assert imported(500, 0.9, window={"tumbling": "5 s"}) == "1 ms"


JOB = """\
job:
  source: {{source: {{rate: 900/s, record: 100 B}}}}
  work: {{input: {{source: hash}}, service: {service}}}
checkpoint: {{interval: 3 s}}
cluster: {{barrier-wake-up: 12 ms}}
run: {{duration: 30 min}}
"""


def test_an_import_has_the_variance_with_which_barriers_wait_as_long():
    """A wait of 402 ms: 102 ms for records in buffers, and a median of 300 ms for bursts, whose mean is 300 ms / ln 2."""
    service = imported(402, 0.9)
    text = JOB.format(service=f"{{lognormal: {{mean: 1 ms, cv: {service['lognormal']['cv']}}}}}")
    table = simulate(loads(text, "s").scenarios[0], check=False).tables["subtasks"]
    waits_ms = [row.start_delay for row in table.itertuples() if row.vertex == "work"]

    assert service == {"lognormal": {"mean": "1 ms", "cv": 16}}
    assert mean(waits_ms) == pytest.approx(102 + 433, rel=0.35)
