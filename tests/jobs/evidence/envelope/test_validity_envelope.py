"""A scenario unlike all recordings says so, in one line that names what nobody recorded; one like them says nothing."""

from functools import cache

import pytest

from sim.jobs.evidence.envelope import unvalidated, warning
from sim.model.schema.study import load, loads
from tests.places import ROOT

SEVERE = ROOT / "scenarios" / "p4-severe.yaml"


@cache
def phrases(*changes):
    return unvalidated(load(SEVERE, list(changes)).scenarios)


def test_what_was_recorded_is_inside():
    assert phrases() == []
    assert warning(load(SEVERE).scenarios) == ""


@pytest.mark.parametrize(
    ("change", "phrase"),
    [
        ("job.sink.parallelism=50", "parallelism 50 (recordings: 1 to 4)"),
        ("job.sink.service=40 ms", "time per record 40 ms (recordings: 100 us to 6 ms)"),
        ("job.sink.service=10 us", "time per record 10 us (recordings: 100 us to 6 ms)"),
        ("checkpoint.interval=1 min", "checkpoint interval 1 min (recordings: 1.5 s to 8 s)"),
        (
            "checkpoint.barriers=at-least-once",
            "barriers at-least-once (recordings: aligned, aligned-timeout, unaligned)",
        ),
        ("cluster.profile='1.15'", "Flink profile 1.15 (recordings: 1.20, 2.x)"),
        ("storage={object-store: {}}", "storage object store (recordings: flat)"),
        ("job.map.state={size: 400 MB}", "state per subtask 100 MB (recordings: 1 MB to 40 MB)"),
        ("cluster.latency=1 ms", "network latency (recordings: debloating)"),
        ("rescale=[{at: 10 s, parallelism: {sink: 2}}]", "restarts rescaling (no recording)"),
    ],
)
def test_what_was_not_is_named_with_what_was(change, phrase):
    assert [phrase] == [other for other in phrases(change) if other.split(" ")[0] == phrase.split(" ")[0]]


def test_it_is_one_line_however_much_there_is():
    study = load(ROOT / "scenarios" / "flink-37375-slow-dfs-nodes.yaml")
    line = warning(study.scenarios)

    assert len(line.splitlines()) == 1
    assert line.count("(") == 5  # features named
    assert f"{len(unvalidated(study.scenarios)) - 5} more; see docs/truth.md" in line


def test_the_first_scenario_of_the_readme_is_inside():
    block = (ROOT / "README.md").read_text().split("```yaml\n")[1].split("```")[0]

    assert warning(loads(block).scenarios) == ""
