"""The page on regional checkpoints: each finding has a scenario, which prints what the page shows."""

import re

import pytest

from benchmarks.regional import FAILURES, SCENARIOS, retained, slow_node_rows
from sim.model.schema.study import load
from sim.model.schema.text import Reading, compose
from sim.results.formats import bytes_text
from sim.results.journal import EventType
from sim.runtime.invariants.regional import DISCARDED
from sim.runtime.simulate import simulate
from tests.places import ROOT
from tests.test_commands_of_pages import call, is_printed

PAGE = (ROOT / "docs" / "flip-600.md").read_text()
SHOWN = dict(re.findall(r"ckptsim run scenarios/flip-600/(f\d\d-[\w-]+)\.yaml\n\n```\n(.*?)```", PAGE, re.DOTALL))


def shown_after(text):
    return PAGE.partition(text)[2].partition("```\n")[2].partition("```")[0].splitlines()


@pytest.mark.parametrize("name", sorted(SHOWN))
def test_a_finding_is_printed(name, tmp_path):
    printed = call(["run", str(SCENARIOS / f"{name}.yaml"), "--out", str(tmp_path), "--jobs", "1"])

    assert SHOWN[name].strip()
    assert "makes no difference" not in printed, "aborts that take longer are one"
    assert [line for line in SHOWN[name].splitlines() if not is_printed(line, printed)] == []


def test_each_finding_has_a_verdict_and_each_shown_one_a_scenario():
    """Of thirteen: those that are undecidable have none."""
    verdicts = dict(re.findall(r"^\| (F\d+) \|[^|]*\| \**(\w+)", PAGE, re.MULTILINE))
    named = {f"F{int(path.stem[1:3])}" for path in SCENARIOS.glob("f*.yaml")}

    assert list(verdicts) == [f"F{number}" for number in range(1, 14)]
    assert named == {name for name, verdict in verdicts.items() if verdict != "undecidable"}
    assert {f"f{path.stem[1:]}" for path in SCENARIOS.glob("f*.yaml")} - {"f09-chains"} == set(SHOWN)


@pytest.mark.parametrize(
    "name",
    ["f01-age", "f03-orphans", "f04-torn-region", "f05-unclaimed", "f06-rescale", "f07-two-owners", "f08-no-owner"],
)
def test_without_regions_nothing_is_violated(name):
    """So it is the proposal that violates an invariant, and not the job or its faults."""
    (scenario,) = load(SCENARIOS / f"{name}.yaml", ["checkpoint.region.enabled=false"]).scenarios

    assert simulate(scenario).violations == ()


def test_all_between_a_part_and_the_latest_checkpoint_is_kept():
    result = simulate(load(SCENARIOS / "f09-chains.yaml").scenarios[0])
    kept = retained(result)

    assert [line.split(maxsplit=1) for line in shown_after("### F9")[1:]] == [
        [str(number), bytes_text(kept[number])] for number in range(2, 8)
    ]
    assert {row.number for row in result.journal.only({EventType.PART_REPLACED})} == {2}


def test_a_fallback_is_older():
    """F13: with three in progress."""
    (scenario,) = load(SCENARIOS / "f13-concurrent.yaml").scenarios
    result = simulate(scenario)
    rows = result.journal.only({EventType.PART_REPLACED})

    assert len({row.checkpoint for row in rows}) == 3
    assert all(row.number < row.checkpoint for row in rows)
    assert [row.invariant for row in result.violations] == [DISCARDED], "F3"


def test_the_table_of_costs_is_what_the_benchmark_prints():
    rows = {line.split()[0]: re.split(r" {2,}", line)[1:] for line in shown_after("prints what that costs")[1:]}

    assert rows == slow_node_rows()


def test_each_scenario_is_a_question_and_the_picture_has_each_fault():
    picture = (ROOT / "docs" / "pictures" / "regional.svg").read_text()

    assert [name for name in FAILURES if name.replace("'", "&#x27;") not in picture] == []
    for path in SCENARIOS.glob("*.yaml"):
        assert load(path).question.endswith("?"), path.name
        assert compose(path.read_text(), Reading(path.name))["version"] == 1
