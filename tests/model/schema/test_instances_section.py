"""`instances:` and `directories:`: jobs that begin from each other's snapshots, and where those lie."""

import pytest

from sim.model.scenario import Instances
from sim.model.schema.study import loads
from sim.model.schema.text import ScenarioError
from sim.model.storage import Directories

TEXT = """# Is it read?
job:
  a: {source: {rate: 1k/s, record: 5 B}}
checkpoint: {interval: 5 s, num-retained: 3}
run: {duration: 50 s}
"""


def read(lines=""):
    return loads(TEXT + lines).scenarios


def test_defaults_are_one_job_with_flinks_paths():
    """Without the sections; and what a section leaves out is Flink's."""
    (scenario,) = read()

    assert (Instances(), Directories()) == (scenario.instances, scenario.directories)
    assert Instances(2, "no-claim") == read("instances: {count: 2}\n")[0].instances


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("instances: {count: 0}", "scenario:6:13: instances.count: 0 is out of range"),
        ("instances: {count: 2, claim: take}", "scenario:6:23: instances.claim"),
        ("instances: {count: 2, from: savepoint}", "scenario:6:23: instances.from: no action takes a savepoint"),
        ("instances: {count: 2, copied: all}", "instances.copied"),
        ("directories: {paths: relative}", "directories.paths"),
        ("instances: {count: 2}\nrescale: [{at: 5 s, parallelism: {a: 2}}]", "write one of instances and rescale"),
        ("instances: {number: 2}", "unknown key 'number'"),
    ],
)
def test_mistakes_have_a_place(lines, message):
    """Line, column, and what was expected."""
    with pytest.raises(ScenarioError) as error:
        read(lines + "\n")

    assert message in str(error.value)


@pytest.mark.parametrize("claim", ["", ", claim: no-claim"])
def test_a_changelog_takes_no_full_checkpoint(claim):
    """Flink refuses the first checkpoint after such a restore ("does not support enforcing a full snapshot")."""
    text = TEXT.replace("checkpoint:", "  b: {input: {a: hash}, state: {size: 1 MB, changelog: on}}\ncheckpoint:")
    with pytest.raises(ScenarioError, match="no-claim wants a full checkpoint"):
        loads(f"{text}instances: {{count: 2{claim}}}\n")

    assert loads(f"{text}instances: {{count: 2, claim: claim}}\n").scenarios[0].instances.claim == "claim"
