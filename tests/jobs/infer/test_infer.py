"""What is inferred from a real job is what was configured: the two saved jobs are our own, so the truth is known."""

import copy
import math
from pathlib import Path

import pytest

from sim.jobs.infer.scenario import infer_scenario
from sim.jobs.observations import Measured, compared, to_recording
from sim.jobs.reading import read_any
from sim.jobs.source.recorded_job import RecordingError
from sim.jobs.source.rest_answers import RestSnapshot
from sim.jobs.source.saved import read_saved
from sim.model.schema.study import loads
from sim.model.schema.writer import write
from sim.model.units import parse_byte_rate, parse_duration, parse_rate, parse_size

REST = Path(__file__).parents[2] / "data" / "rest"


def text(inference):
    return write(inference.document, inference.question, inference.comments)


@pytest.fixture(scope="module")
def pressed():
    return infer_scenario(read_saved(REST / "pressed.zip"))


@pytest.fixture(scope="module")
def keeping_up():
    return infer_scenario(read_saved(REST / "keeping-up.zip"))


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


def test_the_pressed_job_is_what_was_configured(pressed):
    """Graph, sizes, state and storage of the run; times within the noise of a busy machine."""
    job, storage = pressed.document["job"], pressed.document["storage"]

    assert [(name, v.get("input")) for name, v in job.items()] == [
        ("src", None),
        ("map", {"src": "hash"}),
        ("sink", {"map": "hash"}),
    ]
    assert close(parse_duration(job["sink"]["service"]), 3_000_000)
    assert close(parse_size(job["src"]["source"]["record"]), 1008, within=0.01)
    assert close(parse_size(job["map"]["record"]), 1000, within=0.01)
    assert close(parse_size(job["map"]["state"]["size"]), 4_096_000, within=0.02)
    assert pressed.document["checkpoint"] == {
        "interval": "4 s",
        "barriers": "aligned",
        "timeout": "10 min",
        "tolerable-failed": 1000,
    }
    expected = {"profile": "2.x", "version": "2.3.0", "placement": "isolated", "barrier-wake-up": "12 ms"}
    assert expected == pressed.document["cluster"]
    assert close(parse_byte_rate(storage["bandwidth"]), 10_000_000, within=0.15)
    assert close(parse_duration(storage["file-latency"]), 20_000_000)
    assert close(parse_duration(storage["metadata-latency"]), 20_000_000, within=0.2)


def test_the_offered_rate_of_a_pressed_source_is_asked_for(pressed):
    """Only the least it can be is known."""
    assert pressed.document["job"]["src"]["source"]["rate"] == "unlimited"
    assert [text for text in pressed.unknown if "entry" not in text] == [
        "src: How many records per second arrive here?"
    ]
    comment = " ".join(pressed.comments["job.src.source.rate"].split())
    assert comment.startswith("UNKNOWN: How many records per second arrive here? Assumed: a backlog without end.")
    assert "What is known: at least the 6" in comment
    assert "no upper bound, because it never waited for records" in comment


def test_the_job_that_keeps_up_is_what_was_configured(keeping_up):
    """Rates, service, selectivity, skew, work before the barrier, how much of the state changes."""
    job = keeping_up.document["job"]
    customer = job["join-customer"]

    assert close(parse_rate(job["orders"]["source"]["rate"]), 600, within=0.02)
    assert {"orders": {"ship": "hash", "weights": {"counted": pytest.approx([750, 250], abs=10)}}} == customer["input"]
    assert close(parse_duration(customer["service"]), 1_000_000)
    assert close(float(customer["fan-out"]), 0.5, within=0.02)
    assert close(float(customer["state"]["update"].removesuffix(" %")), 50)
    assert (customer["state"]["backend"], keeping_up.document["checkpoint"]["incremental"]) == ("rocksdb", True)
    assert job["format"]["input"] == {"join-customer": "forward"}
    assert job["write"]["input"] == {"format": "rebalance"}
    assert close(parse_duration(job["write"]["service"]), 500_000)
    assert close(parse_duration(job["write"]["snapshot"]["pre-barrier"]), 400_000_000)
    assert [name for name, vertex in job.items() if "pre-barrier" in vertex.get("snapshot", {})] == ["write"]
    assert keeping_up.document["checkpoint"]["barriers"] == {"aligned-timeout": "10 s"}
    assert keeping_up.document["cluster"]["placement"] == "spread"


@pytest.mark.parametrize("source", ["pressed.zip", "keeping-up.zip", "archive.json.gz"])
def test_what_is_written_runs(source):
    """It loads without a warning; under three kinds of barriers, too."""
    inference = read_any(REST / source).inference
    study = loads(text(inference), "imported")

    assert study.warnings == ()
    assert len(study.scenarios) == 1
    assert inference.question == study.question
    assert len(loads(text(compared(inference)), "compared").scenarios) == 3


def test_several_checkpoints_at_once_are_not_compared(changed):
    """Flink runs unaligned ones one by one: the comparison says that it leaves them out."""
    inference = changed({"/checkpoints/config": lambda answer: answer | {"max_concurrent": 3}})

    assert inference.document["checkpoint"]["max-concurrent"] == 3
    assert "max-concurrent" not in compared(inference).document["checkpoint"]
    assert any("one by one" in lost for lost in compared(inference).not_modelled)


@pytest.mark.parametrize("source", ["pressed.zip", "keeping-up.zip", "archive.json.gz"])
def test_every_value_has_a_word_on_where_it_is_from(source):
    """The value or a section above it has a comment, except for keys that only lay out the file."""
    inference = read_any(REST / source).inference
    silent = {"version", "run.duration", "flink"}

    def leaves(value, path):
        if isinstance(value, dict):
            for key, inner in value.items():
                yield from leaves(inner, f"{path}.{key}" if path else key)
        else:
            yield path

    def origin(path):
        steps = path.split(".")
        return any(
            ".".join(steps[:n]) in inference.comments for n in range(3 if steps[0] == "job" else 1, len(steps) + 1)
        )

    own = ("parallelism", "max-parallelism")  # the job says so itself
    assert [
        path
        for path in leaves(inference.document, "")
        if not origin(path) and path not in silent and not path.endswith(own)
    ] == []


def test_unknowns_are_marked_where_they_stand(pressed, keeping_up):
    """As often in the file as in the list."""
    for inference in (pressed, keeping_up):
        assert len(inference.unknown) == text(inference).count("UNKNOWN:")


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


def test_without_metrics_totals_must_do(changed):
    inference = changed(samples=False)

    assert close(parse_duration(inference.document["job"]["sink"]["service"]), 3_000_000)
    assert "totals since its start" in inference.comments["job.sink.service"]


def test_without_anything_measured_everything_is_asked(changed):
    inference = changed(samples=False, without=("/vertices/", "/details/", "checkpoints/config", "jobmanager"))
    runs = loads(text(inference), "imported")

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
        ("CUSTOM", "hash", "a partitioner of its own"),
        ("TELEPATHY", "rebalance", "'TELEPATHY'"),
        (None, "rebalance", "sent in an unknown way"),
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
    assert loads(text(inference), "imported").warnings == ()


def test_edges_stand_in_the_order_of_gates_and_twice_if_there_are_two(changed):
    """Whatever the order of the plan; the file can be read, and says how its edges differ."""

    def edit(plan):
        for node in plan["plan"]["nodes"]:
            (edge,) = node.get("inputs") or [None]
            if edge is not None:
                node["inputs"] = [edge | {"num": 1, "ship_strategy": "REBALANCE"}, edge | {"num": 0}]
        return plan

    inference = changed({"/plan": edit})
    inputs = loads(text(inference), "imported").scenarios[0].job.vertex("map").inputs

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
    assert loads(text(inference), "imported").warnings == ()


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
    assert loads(text(inference), "imported").warnings == ()


def test_a_changelog(changed):
    inference = changed({"/checkpoints/config": lambda answer: answer | {"state_changelog_enabled": True}})

    assert inference.document["job"]["map"]["state"]["changelog"] == {"materialize": "10 min"}
    assert "sink: How large is an entry of its state: its size / the number of its keys?" in inference.unknown
    assert loads(text(inference), "imported").warnings == ()


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
    assert loads(text(inference), "imported").warnings == ()


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
    (restart,) = {scenario.restart for scenario in loads(text(inference), "imported").scenarios}

    assert tuple(
        ns // 10**9 for ns in (restart.heartbeat_interval_ns, restart.heartbeat_timeout_ns, restart.ask_timeout_ns)
    ) == (2, 18, 30)
    assert (None, provider) == (restart.heartbeat_failures, restart.provider)


def test_an_older_flink(changed):
    """Its buffers are configurable; it accumulates no busy time."""
    options = [{"key": "taskmanager.network.memory.floating-buffers-per-gate", "value": "16"}]
    inference = changed(
        {"/jobmanager/config": lambda _: options, "@/config": lambda config: config | {"flink-version": "1.17.2"}}
    )

    assert inference.document["cluster"]["profile"] == "1.20"
    assert inference.document["flink"]["taskmanager.network.memory.floating-buffers-per-gate"] == "16"


def test_task_managers_with_several_slots(changed):
    """The placement that has about as many local channels."""

    def everywhere(manager):
        def edit(vertex):
            for subtask in vertex["subtasks"]:
                subtask["taskmanager-id"] = manager(subtask["subtask"])
            return vertex

        return edit

    def placed(manager):
        snapshot = read_saved(REST / "pressed.zip")
        details = {p: everywhere(manager)(copy.deepcopy(a)) for p, a in snapshot.answers.items() if "/vertices/" in p}
        return infer_scenario(RestSnapshot("x", snapshot.job, {**snapshot.answers, **details})).document["cluster"][
            "placement"
        ]

    assert placed(lambda _: "one") == "single"
    assert placed(str) == "spread"


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


def test_names_from_outside_stay_inside_their_comments():
    """A job may be called anything: no line of the file begins with what somebody else wrote."""
    snapshot = read_saved(REST / "pressed.zip")
    answers = copy.deepcopy(dict(snapshot.answers))
    job = answers[f"/jobs/{snapshot.job}"]
    job["name"] = job["vertices"][0]["name"] = "x\nrun: {duration: 1 ns}\n\x1b[31m: [{#" + "y" * 500
    inference = infer_scenario(RestSnapshot("http://h\nevil: 1", snapshot.job, answers, snapshot.samples))
    written = text(inference)

    assert loads(written, "imported").warnings == ()
    assert not any(line.startswith(("run: {duration: 1 ns}", "evil")) for line in written.splitlines())
    assert "\x1b" not in written


@pytest.mark.parametrize("name", ["pressed", "keeping-up"])
def test_the_tables_are_those_of_a_recording(name):
    """Checkpoints, subtasks and metrics of the vertices by the names of the scenario."""
    recording = to_recording(read_saved(REST / f"{name}.zip"))
    vertices = set(recording.inference.document["job"])
    busy = recording.metric("sink" if name == "pressed" else "write", "accumulateBusyTimeMs")

    assert isinstance(recording, Measured)
    assert vertices == set(recording.subtasks_table()["vertex"])
    assert {"COMPLETED"} == set(recording.checkpoints_table()["status"])
    assert busy.index.is_monotonic_increasing
    assert 2 <= len(busy) < len(read_saved(REST / f"{name}.zip").samples)


@pytest.mark.parametrize(("interval_ms", "lasts_s"), [(1000, 60), (30_000, 360), (600_000, 3600), (10_000_000, 60)])
def test_a_run_lasts_for_some_checkpoints(changed, interval_ms, lasts_s):
    """Twelve intervals, a minute at least and an hour at most; an interval beyond an hour is none."""
    inference = changed({"/checkpoints/config": lambda answer: answer | {"interval": interval_ms}})

    assert lasts_s * 10**9 == parse_duration(inference.document["run"]["duration"])
