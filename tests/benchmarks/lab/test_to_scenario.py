"""A recording becomes the scenario of its job: what was configured, mixed sizes, and task managers that were ended."""

import pytest

from benchmarks.lab import Recording, read
from benchmarks.lab.config import Configuration
from benchmarks.lab.passed_on import mean_bytes
from sim.jobs.reading import to_document
from sim.model.schema.study import loads
from sim.model.schema.text import write
from tests.benchmarks.lab.recorded import document
from tests.places import RECORDINGS
from tests.scenarios import read_scenario

# A recording becomes the scenario of its job: everything that was configured, nothing that was observed, nothing dropped in silence.


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


# Records of several sizes mix in the shares in which an operator serves its inputs.


def job(*nodes):
    return Configuration.model_validate({"name": "job", "duration_s": 60, "nodes": nodes})


def source(name, size, rate=0.0, parallelism=1):
    return {"id": name, "kind": "source", "recordBytes": size, "rate": rate, "parallelism": parallelism}


def op(name, *inputs, us=1000, parallelism=1, **fields):
    edges = [{"from": edge, "exchange": "keyby"} if isinstance(edge, str) else edge for edge in inputs]
    return {"id": name, "inputs": edges, "serviceUs": us, "parallelism": parallelism, **fields}


def test_one_size_stays_what_it_is():
    assert mean_bytes(job(source("a", 300), op("b", "a"))) == {"a": 300, "b": 300}


def test_rates_weigh():
    """300 records/s of 100 B beside 100 records/s of 500 B, all of them served."""
    assert mean_bytes(job(source("a", 100, 300), source("b", 500, 100), op("u", "a", "b")))["u"] == 200


def test_too_much_is_cut_in_equal_shares():
    assert mean_bytes(job(source("a", 100, 3000), source("b", 500, 1000), op("u", "a", "b")))["u"] == 200


def test_an_unlimited_input_takes_the_time_that_is_left():
    """In 1000 ms each of two subtasks spends 2 * 50 * 1 ms on broadcast records; the rest is for the others, 2 ms each."""
    control = {"from": "b", "exchange": "broadcast"}
    join = op("j", "a", control, us=2000, serviceUs2=1000, kind="join", parallelism=2)
    found = mean_bytes(job(source("a", 1000), source("b", 100, 50), join))["j"]

    assert pytest.approx(found) == (950 * 1000 + 100 * 100) / 1050


def test_a_join_takes_turns_by_record_and_a_union_by_buffer():
    nodes = source("a", 100), source("b", 300)

    assert mean_bytes(job(*nodes, op("j", "a", "b", kind="join")))["j"] == 200
    assert pytest.approx(mean_bytes(job(*nodes, op("u", "a", "b")))["u"]) == 150


def test_requests_limit_a_rate():
    """Two requests of 100 ms: 20 records/s of the unlimited source come out, 40 of the other are there."""
    ask = op("ask", "a", us=0, kind="asyncwait", latencyMs=100, capacity=2)

    found = mean_bytes(job(source("a", 900), source("b", 300, 40), ask, op("u", "ask", "b")))["u"]

    assert pytest.approx(found) == (20 * 900 + 40 * 300) / 60


# A task manager that was ended on purpose becomes a fault with its own replacement; what a scenario cannot say is named.


def imported_with_loss(*actions, placement="isolated"):
    recorded = document()
    recorded["config"] |= {"actions": actions, "placement": placement}
    return to_document(Recording.model_validate(recorded))


def kill(at_s, index=3):
    return {"do": "killtm", "at_s": at_s, "index": index}


def start(at_s):
    return {"do": "starttm", "at_s": at_s}


def test_a_loss_is_noticed_at_once_and_replaced_later():
    """The restart strategy is the recorder's; what is told in the scenario reaches the model."""
    written = imported_with_loss(kill(20), start(23))
    scenario = read_scenario(written.text, "x")

    assert written.not_modelled == ()
    assert written.document["restart"] == {"connection-reset": "0 s", "fresh-start": "0 s", "replacement": "3 s"}
    assert (
        scenario.restart.connection_reset_ns,
        scenario.restart.replacement.mean,
        scenario.restart.delay_ns,
    ) == (0, 3_000_000_000, 1_000_000_000)
    assert scenario.faults[0].what.host == 3
    assert 18 < scenario.faults[0].when.at_ns[0] / 10**9 < 20  # the run begins when all tasks run


@pytest.mark.parametrize(
    ("actions", "wait"),
    [
        ((start(5), kill(20), start(23)), None),
        ((kill(20),), "48 s"),
    ],
    ids=["a spare one", "none"],
)
def test_a_spare_one_stands_in_and_without_one_the_job_waits(actions, wait):
    assert wait == imported_with_loss(*actions).document["restart"].get("replacement")


def test_task_managers_are_those_of_the_placement():
    """One for all, or one per subtask index."""
    assert imported_with_loss(kill(20), placement="single").document["faults"][0]["task-manager"] == 0
    assert imported_with_loss(kill(20), placement="spread").document["faults"][0]["task-manager"] == 3
    assert imported_with_loss(kill(20, index=5), placement="spread").document["faults"][0]["task-manager"] == 1


def test_what_cannot_be_said_is_named():
    assert imported_with_loss(kill(9), kill(20)).not_modelled == (
        "task managers lost one after the other: each is replaced as the first one was",
    )
    assert imported_with_loss({"do": "killtm", "at_s": 9}).not_modelled == ("request during the run: killtm at 9 s",)
    assert "restart" not in imported_with_loss().document
