"""Every record reaches the commit once, whatever happens on the way: runs against the same job undisturbed, record by record."""

from collections import Counter
from copy import deepcopy
from dataclasses import replace
from functools import cache

import pytest

from sim.model.schema.text import write
from tests.injections.catalogue import INJECTIONS
from tests.injections.restoring_worlds import WORLDS
from tests.scenarios import read_scenario
from tests.worlds.account import account, not_compared, undisturbed
from tests.worlds.traced import traced

RECORDS = Counter({("orders", 0): 400, ("orders", 1): 400, ("rates", 0): 150})
JOBS = 3  # of which only the last one comes to the end of its data


def world(name, fan_out=1):
    document = deepcopy(WORLDS[name])
    document["job"]["count"]["fan-out"] = fan_out
    if "instances" in document:
        document["instances"]["count"], document["run"]["duration"] = JOBS, "3600 ms"
    return read_scenario(write(document, "Is every record committed once?"))


@cache
def twin(name, fan_out=1):
    """What comes of the world if nothing happens."""
    return traced(undisturbed(world(name, fan_out)))


SOUND = ("unaligned", "aligned, local copies", "task manager lost", "rescaled", "rescaled with a savepoint", "claimed")


@pytest.mark.parametrize("name", SOUND)
def test_every_record_is_committed_once(name):
    """By failures, rescales, resumes: each of 950 records is committed once, as in a run in which nothing happens."""
    run = traced(world(name))

    assert run.status == "FINISHED"
    assert Counter((vertex, index) for vertex, index, _ in run.committed["sink"]) == RECORDS
    assert {1} == set(run.committed["sink"].values())
    assert run.seen["sink"] == run.seen["total"] == run.committed["sink"]
    assert account(world(name), twin(name)) == []
    assert not_compared(world(name)) == []


def test_behind_fractions_records_are_counted():
    """Copies are routed by their ordinals: each channel carries as many records, whichever they are."""
    assert account(world("unaligned", 1.5), twin("unaligned", 1.5)) == []
    assert not_compared(world("unaligned", 1.5)) == [
        "which records come behind count: it writes a fraction of a copy, so that depends on their order"
    ]
    assert len(not_compared(world("rescaled", 1.5))) == 2


def test_a_job_without_an_end_is_not_compared():
    """What is left out is said."""
    base = world("unaligned")
    endless = replace(base.job.vertices[0], source=replace(base.job.vertices[0].source, total=None))
    without_end = replace(base, job=replace(base.job, vertices=(endless, *base.job.vertices[1:])))

    assert not_compared(without_end) == ["everything: a source has no end"]
    assert account(without_end) == []


def test_the_undisturbed_job_is_the_same_job():
    plain = undisturbed(world("rescaled with a savepoint"))

    assert (plain.faults, plain.actions, plain.rescale) == ((), (), ())
    assert world("rescaled with a savepoint").job == plain.job


@pytest.mark.parametrize(
    ("broken", "name", "fan_out", "difference"),
    [
        ("a source skips five records", "unaligned", 1, "enrich has served"),
        ("a source skips five records", "unaligned", 1.5, "sink has committed"),
        ("a source repeats five records", "unaligned", 1, "too many"),
        ("captured input is not read again", "unaligned", 1, "too few"),
        ("overtaken output is not sent again", "unaligned", 1, "too few"),
        ("requests under way are forgotten", "unaligned", 1, "too few"),
        ("transactions in a checkpoint are forgotten", "unaligned", 1, "sink has committed"),
        ("a rescale forgets transactions", "rescaled", 1, "sink has committed"),
        ("a rescale forgets what writers hold back", "rescaled", 1, "sink has committed"),
        ("remainders are lost in a rescale", "rescaled", 1, "too few"),
        ("sources of the next job skip records", "claimed", 1, "ends as RUNNING"),
    ],
)
def test_a_broken_restore_shows_in_the_end(broken, name, fan_out, difference):
    """Without any checker."""
    calm = twin(name, fan_out)
    with INJECTIONS[broken].applied():
        found = account(world(name, fan_out), calm)

    assert any(difference in line for line in found), found
