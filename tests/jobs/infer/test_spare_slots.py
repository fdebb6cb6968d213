"""Whether a lost task manager leaves the job slots: free ones in Flink's answers, or a question."""

from pathlib import Path

import pytest

from sim.jobs.infer.scenario import infer_scenario
from sim.jobs.source.rest_answers import RestSnapshot
from sim.jobs.source.saved import read_saved
from sim.model.schema.study import loads
from sim.model.schema.writer import write

USERS = Path(__file__).parents[2] / "data" / "users-jobs"


def inferred(slots, free):
    """The scenario of a job whose task managers have these slots, and so many of them free; None: Flink does not say."""
    snapshot = read_saved(USERS / "R7-cores-aligned.zip")
    managers = [
        {
            key: value
            for key, value in (("id", f"tm-{i}"), ("slotsNumber", of), ("freeSlots", left))
            if value is not None
        }
        for i, (of, left) in enumerate(zip(slots, free, strict=True))
    ]
    answers = dict(snapshot.answers) | {"/taskmanagers": {"taskmanagers": managers}}
    return infer_scenario(RestSnapshot(snapshot.source, snapshot.job, answers, snapshot.samples))


@pytest.mark.parametrize(
    ("slots", "free", "counted"),
    [
        ((1, 1), (0, 0), "None of 2 slots is free."),
        ((4, 4), (0, 2), "2 of 8 slots are free."),  # they are gone, or too few, whichever is lost
        ((1, 1, 1), (0, 0, 1), ""),
        ((4, 4), (2, 2), ""),
        ((1, 1), (None, None), ""),
    ],
)
def test_slots_in_place_of_lost_ones_are_asked_for_where_none_are_free(slots, free, counted):
    """30 s are assumed until another task manager is there; with a spare one nothing is."""
    found = inferred(slots, free)
    (question,) = [question for question in found.unknown if "another one offer its slots" in question] or [""]

    assert counted == question.partition("? ")[2]
    assert ("30 s" if counted else None) == found.document.get("restart", {}).get("replacement")


@pytest.mark.parametrize(
    "option",
    [("scheduler-mode", "REACTIVE"), ("jobmanager.scheduler", "Adaptive"), ("jobmanager.scheduler", "Default")],
)
def test_the_scheduler_is_that_of_the_cluster(option):
    """Reactive mode has the adaptive one; names of 1.20 and waits without end are read."""
    snapshot = read_saved(USERS / "R7-cores-aligned.zip")
    waits = {"resource-wait-timeout": "-1", "scaling-interval.min": "7 s"}
    options = dict([option]) | {f"jobmanager.adaptive-scheduler.{name}": value for name, value in waits.items()}
    entries = [{"key": key, "value": value} for key, value in options.items()]
    answers = dict(snapshot.answers) | {f"/jobs/{snapshot.job}/jobmanager/config": entries}
    found = infer_scenario(RestSnapshot(snapshot.source, snapshot.job, answers, snapshot.samples))
    restart = loads(write(found.document, found.question, found.comments)).scenarios[0].restart

    assert ("default" if "Default" in option else "adaptive", "REACTIVE" in option) == (
        restart.scheduler,
        restart.reactive,
    )
    assert (restart.resource_wait_ns, restart.cooldown_ns) == (None, 7 * 10**9)
