"""The waterfall fits 80 columns, and its numbers are those of the record."""

import pytest

from sim.explain.close_up import rerun_with_observers
from sim.explain.explanation import WIDTH, account, accounts, duration, record, sentence, text
from tests.scenarios import read_scenario
from tests.worlds.generator import FOLDER
from tests.worlds.generator import text as world

HOSTILE = "x" * 70


def explained(vertex="sink"):
    job = f"{{source: {{source: {{rate: unlimited, record: 1 kB}}}}, {vertex}: {{input: {{source: hash}}, service: 2 ms}}}}"
    run = rerun_with_observers(
        read_scenario(
            f"version: 1\njob: {job}\ncheckpoint: {{interval: 2 s}}\ncluster: {{placement: isolated}}\nrun: {{duration: 8 s}}"
        )
    )
    return accounts("aligned", run)[-1]


def test_every_line_fits():
    """Whatever names others chose."""
    found = explained(vertex=HOSTILE)

    assert [line for line in text(found).splitlines() if len(line) > WIDTH] == []


def test_a_checkpoint_under_way_is_explained_up_to_the_end_of_the_run():
    job = "{source: {source: {rate: 10/s, record: 1 kB}}, sink: {input: {source: hash}, snapshot: {async: 60 s}}}"
    (instance,) = rerun_with_observers(
        read_scenario(f"version: 1\njob: {job}\ncheckpoint: {{interval: 1 s}}\nrun: {{duration: 3 s}}")
    ).instances

    found = account("it", 0, instance, 1)

    assert sentence(found) == (
        f"Checkpoint 1 (it) has been under way for {duration(found.duration_ns)}. 100 % of it, {duration(found.longest.duration_ns)}, "
        "is async work of sink[0]: the operator's own work in the asynchronous part."
    )
    assert found.trigger_ns + found.duration_ns == 3_000_000_000


def test_a_checkpoint_of_an_instant_took_no_time():
    """Its record has what follows the last acknowledgement."""
    job = "{source: {source: {rate: 10/s, record: 1 kB}}}"
    at_once = "storage: {metadata-latency: 5 ms}\noverheads: {trigger: 0 s, acknowledge: 0 s}"
    document = f"version: 1\njob: {job}\ncheckpoint: {{interval: 1 s}}\n{at_once}\nrun: {{duration: 3 s}}"
    (instance,) = rerun_with_observers(read_scenario(document)).instances
    found = account("it", 0, instance, 1)

    assert sentence(found) == "Checkpoint 1 (it) took 0 ms: all tasks acknowledged it in the instant of its trigger."
    assert sentence(found) == " ".join(text(found).split())
    assert [part["begin_ns"] for part in record(found)["after"]] == [0]


@pytest.mark.parametrize("seed", range(700, 704))
def test_checkpoints_of_any_world_are_explained(seed):
    """Parts lie end to end, each has a cause, and the page fits."""
    run = rerun_with_observers(read_scenario(world(seed), folder=FOLDER))
    for found in accounts("it", run):
        assert [0, *(line.end_ns for line in found.lines)] == [
            *(line.begin_ns for line in found.lines),
            found.duration_ns,
        ]
        assert all(line.cause and line.place for line in found.lines)
        assert max(map(len, text(found).splitlines())) <= WIDTH
