"""A recording becomes the scenario of its job: everything that was configured, nothing that was observed, nothing dropped in silence."""

import pytest

from benchmarks.lab import Recording, read
from sim.jobs.reading import to_document
from sim.model.schema.study import loads
from sim.model.schema.text import write
from tests.benchmarks.lab.recorded import document
from tests.places import RECORDINGS
from tests.scenarios import read_scenario

FILES = sorted(RECORDINGS.glob("*.json.gz"))


def imported(recorded):
    return to_document(Recording.model_validate(recorded))


def with_node(index, **changes):
    """The import of p4-severe-unaligned (src, map, sink) with one node changed."""
    recorded = document()
    recorded["config"]["nodes"][index].update(changes)
    return imported(recorded)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name.removesuffix(".json.gz"))
def test_nothing_observed_goes_in(path):
    """Without any checkpoint, metric and event but those of the job's start the scenario is the same."""
    recorded = document(path.name.removesuffix(".json.gz"))
    blind = {key: recorded[key] for key in ("format", "name", "family", "flink_version", "config")}
    kinds = {"submit", "open", "prefilled", "source_start", "fail_injected"}
    start = {kind: events for kind, events in recorded["events"].items() if kind in kinds}
    blind |= {"started_ms": 0, "ended_ms": 0, "checkpoints": {"counts": {}, "list": []}, "events": start}

    assert imported(blind) == imported(recorded)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name.removesuffix(".json.gz"))
def test_the_scenario_is_one(path):
    """What is written loads without a warning, and its job is the recorded one."""
    recording = read(path)
    written = to_document(recording)
    study = loads(written.text, recording.name)

    assert written.question == study.question
    assert study.warnings == ()
    (scenario,) = study.scenarios
    assert scenario.run.duration_ns == recording.config.duration_s * 10**9
    assert [(node.id, node.parallelism) for node in recording.config.nodes] == [
        (v.name, v.parallelism) for v in scenario.job.vertices
    ]
    assert [node.service_us * 1000 for node in recording.config.nodes if node.inputs] == [
        vertex.service.mean for vertex in scenario.job.vertices if vertex.inputs
    ]
    assert scenario.storage.inline_threshold_bytes == 0
    assert scenario.checkpoint.tolerable_failed == 1000


def test_transactions_and_what_a_commit_costs():
    """Records pass at once and are committed with their checkpoint; a commit may keep the task thread busy."""
    plain, slow = with_node(2, commit="independent"), with_node(2, commit="independent", commitMs=30)

    assert [imported.document["job"]["sink"]["commit"] for imported in (plain, slow)] == [
        "two-phase",
        {"time": "30 ms"},
    ]
    assert [what for what in (*plain.not_modelled, *slow.not_modelled) if "commit" in what] == []
    assert "commit" not in with_node(2).document["job"]["sink"]


def test_two_edges_from_one_node_have_names_of_their_own():
    """Both are kept, and a scenario can be made of them."""
    imported = with_node(
        1, kind="join", inputs=[{"from": "src", "exchange": "keyby"}, {"from": "src", "exchange": "rebalance"}]
    )
    job = read_scenario(write(imported.document, "?"), name="x").job

    assert imported.not_modelled == ()
    assert imported.document["job"]["map"]["input"] == {"src": "hash", "src-2": {"from": "src", "ship": "rebalance"}}
    assert [(inlet.upstream, inlet.ship) for inlet in job.vertex("map").inputs] == [
        ("src", "hash"),
        ("src", "rebalance"),
    ]


def test_an_injected_failure_is_a_fault():
    """Its time counts from the submission, a run's from all tasks running; how it restarts is the recorder's choice, or the recording's."""
    recorded = document()
    recorded["config"]["nodes"][2].update({"failAtMs": 26000, "failSubtask": 1})
    recorded["config"]["flink"]["restart-strategy.fixed-delay.delay"] = "2 s"
    recorded["events"] = {}  # its start is not known: the usual one
    found = imported(recorded)
    run = read_scenario(found.text)

    assert found.document["faults"] == [{"kill": "sink[1]", "at": "24.9 s"}]
    assert (run.restart.strategy, run.restart.delay_ns, run.restart.attempts) == ("fixed-delay", 2_000_000_000, 10)
    assert found.not_modelled == ()


@pytest.mark.parametrize(
    ("action", "expected"),
    [
        ({"do": "savepoint", "at_s": 22}, {"savepoint": "canonical", "at": "20.9 s"}),
        ({"do": "stop", "drain": True, "at_s": 27.5}, {"stop": "drain", "at": "26.4 s"}),
        ({"do": "stop", "drain": False, "at_s": 27}, {"stop": "no-drain", "at": "25.9 s"}),
    ],
)
def test_requests_become_actions(action, expected):
    recorded = document()
    recorded["config"]["actions"] = [action]
    recorded["events"] = {}  # begun 1.3 s after the submission, as usual
    found = imported(recorded)

    assert ([expected], ()) == (found.document["actions"], found.not_modelled)


def test_a_source_that_ends_is_told_how_many_records_it_has():
    """It ends, and nothing of that is lost."""
    assert with_node(0, rate=300, total=6900).not_modelled == ()
    source = with_node(0, rate=300, total=6900).document["job"]["src"]["source"]

    assert source == {"rate-per-subtask": "300/s", "record": "1008 B", "records-per-subtask": 6900}
