"""Source subtasks that emit nothing while others do are silent; when they are idle is a question, if windows wait for them."""

import math
from dataclasses import replace
from pathlib import Path

import pytest

from sim.jobs.infer.draft import Draft
from sim.jobs.infer.flows import Flow, Flows
from sim.jobs.infer.scenario import infer_scenario
from sim.jobs.infer.windows import infer_idleness, infer_silent
from sim.jobs.source.saved import read_saved

SAVED = Path(__file__).parents[2] / "data" / "users-jobs"


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
    left = infer_silent(draft, "src", flow(*records))

    assert silent == draft.document["job"]["src"].get("source", {}).get("silent")
    assert emitting == len(left.subtasks)


@pytest.mark.parametrize(("fired", "timeout"), [(30, "1 s"), (0, "0 s")])
def test_its_timeout_is_a_question_if_windows_wait_for_it(fired, timeout):
    draft = Draft()
    draft.put("job.src.source.silent", 1)
    draft.put("job.win.window.time", "event")
    infer_idleness(draft, {"src": flow(500, 0), "win": flow(fired)})

    assert {"idle-timeout": timeout} == draft.document["job"]["src"]["source"]["watermark"]
    assert "withIdleness" in draft.unknown[0]


@pytest.mark.parametrize("time", ["processing", ""])
def test_nobody_asks_if_no_window_waits(time):
    draft = Draft()
    draft.put("job.src.source.silent", 1)
    draft.put("job.win.window", {"time": time} if time else {})
    infer_idleness(draft, {"src": flow(500, 0), "win": flow(30)})

    assert list(draft.unknown) == []


def test_a_saved_job_with_a_silent_subtask_says_so():
    """As if subtask 0 of its source had counted nothing."""
    snapshot = read_saved(SAVED / "J2-count-aligned.zip")
    silenced = replace(
        snapshot,
        samples={
            at: {path: _silenced(rows) for path, rows in sample.items()} for at, sample in snapshot.samples.items()
        },
    )
    found = [
        vertex["source"]
        for given in (snapshot, silenced)
        for vertex in infer_scenario(given).document["job"].values()
        if "source" in vertex
    ]

    assert [source.get("silent") for source in found] == [None, 1]


def _silenced(rows):
    """Without the records of subtask 0, if it reads none: then it is a source's."""
    if not isinstance(rows, list) or any(row.get("id") == "0.numRecordsIn" and float(row["value"]) > 0 for row in rows):
        return rows
    return [row | {"value": "0"} if row.get("id") == "0.numRecordsOut" else row for row in rows]
