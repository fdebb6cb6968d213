"""What is inferred from a real job is what was configured: the two saved jobs are our own, so the truth is known."""

import copy
import math

import pytest

from sim.jobs.infer.scenario import infer_scenario
from sim.jobs.observations import with_all_barrier_modes
from sim.jobs.reading import read_any
from sim.jobs.source.recorded_job import RecordingError
from sim.jobs.source.rest_answers import RestSnapshot
from sim.jobs.source.saved import read_saved
from sim.model.schema.study import loads
from sim.model.units import parse_duration, parse_rate
from tests.places import REST


@pytest.fixture
def changed():
    """``changed({"/plan": edit})``: the scenario of the job with answers about it changed; "@/config" is one about the cluster."""

    def infer(changes=None, name="pressed", *, without=(), samples=True):
        snapshot = read_saved(REST / f"{name}.zip")
        answers = copy.deepcopy(dict(snapshot.answers))
        for end, change in (changes or {}).items():
            path = end[1:] if end.startswith("@") else f"/jobs/{snapshot.job}{end}"
            answers[path] = change(answers[path])
        answers = {path: answer for path, answer in answers.items() if not any(word in path for word in without)}
        return infer_scenario(RestSnapshot(snapshot.source, snapshot.job, answers, snapshot.samples if samples else {}))

    return infer


def close(value, truth, *, within=0.1):
    return math.isclose(value, truth, rel_tol=within)


def test_several_checkpoints_at_once_are_not_compared(changed):
    """Flink runs unaligned ones one by one: the comparison says that it leaves them out."""
    inference = changed({"/checkpoints/config": lambda answer: answer | {"max_concurrent": 3}})

    assert inference.document["checkpoint"]["max-concurrent"] == 3
    assert "max-concurrent" not in with_all_barrier_modes(inference).document["checkpoint"]
    assert any("one by one" in lost for lost in with_all_barrier_modes(inference).not_modelled)


def test_a_backlog_that_is_told_says_what_arrives():
    """pendingRecords of FLIP-33: what was emitted, and by how much the backlog grew."""
    snapshot = read_saved(REST / "pressed.zip")
    samples = {}
    for time_ms, sample in snapshot.samples.items():
        samples[time_ms] = {path: list(metrics) for path, metrics in sample.items()}
        first = next(path for path in sample if "f362c87f" in path)  # of the source
        grown = (time_ms - min(snapshot.samples)) * 2 // 10  # 200 records/s in each subtask
        samples[time_ms][first] += [
            {"id": f"{i}.Source__src.pendingRecords", "value": str(5000 + grown)} for i in (0, 1)
        ]
    inference = infer_scenario(RestSnapshot(snapshot.source, snapshot.job, snapshot.answers, samples))
    emitted = 642

    assert close(parse_rate(inference.document["job"]["src"]["source"]["rate"]), emitted + 400, within=0.06)
    assert [text for text in inference.unknown if "entry" not in text] == []


def test_without_anything_measured_everything_is_asked(changed):
    inference = changed(samples=False, without=("/vertices/", "/details/", "checkpoints/config", "jobmanager"))
    runs = loads(inference.text, "imported")

    assert runs.warnings == ()
    assert len(inference.unknown) >= 10
    assert {
        "How often is a checkpoint taken?",
        "sink: How long does one record keep it busy?",
        "map: How much state does it keep?",
    } <= set(
        inference.unknown,
    )


@pytest.mark.parametrize(
    ("ship", "expected", "lost"),
    [
        ("REBALANCE", "rebalance", None),
        ("BROADCAST", "broadcast", None),
        ("GLOBAL", "global", None),
        ("RESCALE", "rescale", None),
        ("SHUFFLE", "rebalance", "sent at random"),
        ("CUSTOM", "hash", "a custom partitioner"),
        ("TELEPATHY", "rebalance", "'TELEPATHY'"),
        (None, "rebalance", "sent by an unknown ship strategy"),
    ],
)
def test_every_way_of_shipping(changed, ship, expected, lost):
    """Those of Flink; what a scenario lacks is named."""

    def edit(plan):
        for node in plan["plan"]["nodes"]:
            for edge in node.get("inputs", ()):
                edge["ship_strategy"] = ship
        return plan

    inference = changed({"/plan": edit})

    shipped = inference.document["job"]["map"]["input"]["src"]
    assert expected == (shipped["ship"] if isinstance(shipped, dict) else shipped)
    assert (lost is None) == (inference.not_modelled == ())
    assert lost is None or lost in inference.not_modelled[0]
    assert loads(inference.text, "imported").warnings == ()


def test_edges_stand_in_the_order_of_gates_and_twice_if_there_are_two(changed):
    """Whatever the order of the plan; the file can be read, and says how its edges differ."""

    def edit(plan):
        for node in plan["plan"]["nodes"]:
            (edge,) = node.get("inputs") or [None]
            if edge is not None:
                node["inputs"] = [edge | {"num": 1, "ship_strategy": "REBALANCE"}, edge | {"num": 0}]
        return plan

    inference = changed({"/plan": edit})
    inputs = loads(inference.text, "imported").scenarios[0].job.vertex("map").inputs

    assert list(inference.document["job"]["map"]["input"]) == ["src", "src-2"]
    assert [(inlet.upstream, inlet.ship) for inlet in inputs] == [("src", "hash"), ("src", "rebalance")]


@pytest.mark.parametrize(
    ("name", "ship", "metric", "expected", "is_question"),
    [
        ("Interval Join -> Map", "HASH", None, "join", False),
        ("Co-Process", "BROADCAST", None, "join", False),
        ("enrich", "HASH", "0.enrich.currentInput2Watermark", "join", False),
        ("enrich", "HASH", None, "join", True),
        ("enrich", "REBALANCE", None, "union", True),
    ],
    ids=["name", "co", "watermarks", "keyed", "not keyed"],
)
def test_several_inputs_are_joined_or_one_stream(name, ship, metric, expected, is_question):
    """The plan does not tell; the name, or two watermarks, may."""
    snapshot = read_saved(REST / "pressed.zip")
    answers = copy.deepcopy(dict(snapshot.answers))
    job, plan = answers[f"/jobs/{snapshot.job}"], answers[f"/jobs/{snapshot.job}/plan"]["plan"]
    source, _, sink = job["vertices"]
    sink["name"] = name
    for edge in (edges := next(node["inputs"] for node in plan["nodes"] if node["id"] == sink["id"])):
        edge["ship_strategy"] = ship
    edges.append({"id": source["id"], "ship_strategy": ship, "exchange": "blocking"})
    samples = {time_ms: dict(sample) for time_ms, sample in snapshot.samples.items()}
    for sample in samples.values() if metric else ():
        path = next(path for path in sample if sink["id"] in path)
        sample[path] = [*sample[path], {"id": metric, "value": "-9223372036854775808"}]
    inference = infer_scenario(RestSnapshot("x", snapshot.job, answers, samples))
    vertex = list(inference.document["job"].values())[-1]

    assert expected == vertex["combine"]
    assert is_question == any("one stream?" in question for question in inference.unknown)
    assert any("a blocking exchange" in lost for lost in inference.not_modelled)
    assert loads(inference.text, "imported").warnings == ()


@pytest.mark.parametrize(
    ("config", "checkpoint"),
    [
        ({"mode": "at_least_once"}, {"barriers": "at-least-once"}),
        ({"unaligned_checkpoints": True}, {"barriers": "unaligned"}),
        (
            {"unaligned_checkpoints": True, "aligned_checkpoint_timeout": 500},
            {"barriers": {"aligned-timeout": "500 ms"}},
        ),
        ({"interval": 2**63 - 1}, {"interval": "off"}),
        ({"min_pause": 1500}, {"min-pause": "1500 ms"}),
        ({"max_concurrent": 3}, {"max-concurrent": 3}),
        ({"checkpoints_after_tasks_finish": False}, {"finish": "off"}),
        ({"tolerable_failed_checkpoints": 2**31 - 1}, {"tolerable-failed": 2**31 - 1}),
    ],
    ids=str,
)
def test_every_setting_of_checkpoints(changed, config, checkpoint):
    inference = changed({"/checkpoints/config": lambda answer: answer | config})

    assert (
        checkpoint.items()
        <= {key: {"1.5 s": "1500 ms"}.get(str(v), v) for key, v in inference.document["checkpoint"].items()}.items()
    )
    assert loads(inference.text, "imported").warnings == ()


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        (
            "Restart with fixed delay (PT1M30.5S). #3 restart attempts.",
            {"fixed-delay.attempts": 3, "fixed-delay.delay": "90500 ms"},
        ),
        (
            "Restart with fixed delay (10000 ms). #2147483647 restart attempts.",
            {"type": "fixed-delay", "fixed-delay.delay": "10000 ms"},
        ),
        ("Restart deactivated.", {"type": "none"}),
        ("Cluster level default restart strategy", {"type": "exponential-delay"}),
    ],
    ids=["iso", "ms", "none", "cluster"],
)
def test_restarts_are_the_jobs_or_the_clusters(changed, strategy, expected):
    inference = changed(
        {
            "/jobmanager/config": lambda _: [{"key": "restart-strategy.type", "value": "exponential-delay"}],
            "/config": lambda config: config | {"execution-config": {"restart-strategy": strategy}},
        }
    )

    assert {f"restart-strategy.{key}": value for key, value in expected.items()}.items() <= inference.document[
        "flink"
    ].items()


def test_options_of_the_cluster_are_kept_if_they_mean_something(changed):
    """Verbatim; details without their switch say nothing, constants of 2.x neither."""
    options = {
        "taskmanager.memory.segment-size": "8kb",
        "taskmanager.network.memory.buffer-debloat.enabled": "true",
        "taskmanager.network.memory.buffer-debloat.target": "2 s",
        "taskmanager.network.memory.floating-buffers-per-gate": "16",
        "execution.checkpointing.file-merging.max-file-size": "1mb",
        "rest.port": "8081",
        "s3.secret-key": "******",
        "state.backend.incremental": "true",
    }
    inference = changed(
        {"/jobmanager/config": lambda _: [{"key": key, "value": value} for key, value in options.items()]}
    )
    kept = {key: value for key, value in inference.document["flink"].items() if "restart" not in key}

    assert kept == {
        "taskmanager.memory.segment-size": "8kb",
        "taskmanager.network.memory.buffer-debloat.enabled": True,
        "taskmanager.network.memory.buffer-debloat.target": "2 s",
    }
    assert loads(inference.text, "imported").warnings == ()


@pytest.mark.parametrize(
    ("key", "provider"),
    [
        ("kubernetes.cluster-id", "kubernetes"),
        ("yarn.application.name", "yarn"),
        ("jobmanager.rpc.address", "standalone"),
    ],
)
def test_heartbeats_and_the_provider_of_task_managers(changed, key, provider):
    """They decide how long a lost machine keeps its slots."""
    options = {
        "heartbeat.interval": "2 s",
        "heartbeat.timeout": "18 s",
        "heartbeat.rpc-failure-threshold": "-1",
        "akka.ask.timeout": "30 s",
        key: "x",
    }
    answer = [{"key": name, "value": value} for name, value in (options | {key: "x"}).items()]
    inference = changed({"/jobmanager/config": lambda _: answer})
    (restart,) = {scenario.restart for scenario in loads(inference.text, "imported").scenarios}

    assert tuple(
        ns // 10**9 for ns in (restart.heartbeat_interval_ns, restart.heartbeat_timeout_ns, restart.ask_timeout_ns)
    ) == (2, 18, 30)
    assert (None, provider) == (restart.heartbeat_failures, restart.provider)


def test_a_bounded_job_that_finished_has_so_many_records():
    inference = read_any(REST / "archive.json.gz").inference
    source = inference.document["job"]["src"]["source"]

    assert source["records"] == 5000
    assert close(parse_rate(source["rate"]), 400)
    assert close(parse_duration(inference.document["job"]["sink"]["service"]), 1_000_000)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        ({"/plan": lambda p: {"plan": {"nodes": p["plan"]["nodes"][:1]}}}, "lacks its vertex"),
        ({"/plan": lambda p: {"plan": {"nodes": []}}}, "nodes"),
        ({"/plan": lambda _: {"plan": 3}}, "/plan: "),
        ({"/checkpoints/config": lambda c: c | {"interval": "often"}}, "/checkpoints/config: interval"),
        ({"@/config": lambda _: {"flink-version": 3}}, "/config: flink-version"),
        ({"/jobmanager/config": lambda _: {"key": "value"}}, "/jobmanager/config"),
    ],
    ids=range(6),
)
def test_answers_that_make_no_sense_are_named(changed, damage, message):
    """One line with the path of the answer."""
    with pytest.raises(RecordingError) as caught:
        changed(damage)

    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_job_that_goes_in_circles(changed):
    def edit(plan):
        first, *_, last = plan["plan"]["nodes"]
        last.setdefault("inputs", []).append({"id": first["id"], "ship_strategy": "HASH"})
        return plan

    with pytest.raises(RecordingError, match="has a cycle"):
        changed({"/plan": edit})
