"""Names, older names and defaults of Flink's keys are those of the Flink that is installed."""

import subprocess

import pytest

from benchmarks.flink.classes import classpath, java
from sim.model.schema.flink_block import _READERS
from sim.model.schema.flink_keys import current_names, modelled_keys
from sim.model.schema.option_values import _MINIMAL_SCENARIO, configuration_lines
from tests.scenarios import read_scenario

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("flink")]

OTHER_JARS = ("table.", "s3.")
"""Options of the table planner and of a file system, which are in other jars."""
OF_THE_RELEASE_NOTES = {
    "execution.checkpointing.unaligned.during-recovery.enabled",
    "jobmanager.adaptive-scheduler.scaling-interval.max",  # 1.20 has it, 2.x another option in its place
}
LATER = ("execution.checkpointing.region.", "jobmanager.adaptive-scheduler.rescale-trigger.active-checkpoint.")
"""FLIP-600, which is in no release, and an option of Flink 2.4 (FLINK-36753)."""
WHERE_FLINK_DECIDES = {"pipeline.max-parallelism"}  # -1: from the parallelism


@pytest.fixture(scope="module")
def options():
    """Key -> (default, other keys that are read for it)."""
    command = [str(java()), "-Dlog.file=/dev/null", "-cp", classpath(), "ckptsim.flink.OptionNames"]
    lines = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout.splitlines()
    return {key: (default, set(others.split())) for key, default, others in (line.split("\t") for line in lines)}


def test_every_key_is_one_of_flinks(options):
    """But those that the record says are gone."""
    ours = {
        name
        for name, key in modelled_keys().items()
        if not key.flink.last and not name.startswith((*OTHER_JARS, *LATER))
    }

    assert len(options) > 500
    assert set() == ours - set(options)
    assert set() == {name for name, key in modelled_keys().items() if key.flink.last} & set(options)


def test_older_names_are_those_that_flink_reads(options):
    read = {name: options[name][1] - set(modelled_keys()) for name in modelled_keys() if name in options}
    ours = {
        name: set(key.flink.older) - OF_THE_RELEASE_NOTES for name, key in modelled_keys().items() if name in options
    }

    assert read == ours
    assert len(current_names()) > 20


def test_defaults_are_flinks(options):
    """As a configuration says them, read as a scenario's."""
    usual = read_scenario(_MINIMAL_SCENARIO % ("off", "2.x"), "usual")
    ours = {line.name: line.text for line in configuration_lines(usual) if line.is_default and line.name in options} | {
        name: key.flink.default for name, key in modelled_keys().items() if key.flink.default
    }
    form = {name: _READERS[modelled_keys()[name].form] for name in ours}
    flinks = {name: options[name][0] for name in ours if options[name][0] != "null" and name not in WHERE_FLINK_DECIDES}

    assert len(flinks) > 25
    assert {name: form[name](text) for name, text in flinks.items()} == {
        name: form[name](ours[name]) for name in flinks
    }
