"""Source subtasks that emit nothing while others do are silent."""

import math

import pytest

from sim.jobs.infer.draft import Draft
from sim.jobs.infer.flows import Flow, Flows
from sim.jobs.infer.windows import infer_silent


def flow(*records):
    return Flows(tuple(Flow(10_000.0, records_out=float(count)) for count in records), "ten seconds")


@pytest.mark.parametrize(
    ("records", "silent", "emitting"),
    [
        ((500, 0, 400), 1, 2),
        ((0, 500, 0), 2, 1),
        ((500, 400), None, 2),
        ((0, 0), None, 2),
        ((15, 0), None, 2),
        ((500, math.nan), None, 2),
    ],
)
def test_who_emits_nothing_while_others_do_is_silent(records, silent, emitting):
    """Not if all do, nor while too few records were seen, nor if one was not counted."""
    draft = Draft()
    draft.put("job.src.parallelism", len(records))
    left = infer_silent(draft.vertex("src"), flow(*records))

    assert silent == draft.document["job"]["src"].get("source", {}).get("silent")
    assert emitting == len(left.subtasks)
