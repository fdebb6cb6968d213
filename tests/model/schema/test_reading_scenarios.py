"""A scenario file becomes the model it describes; the committed ones, and what an imported one assumes."""

import json
from fractions import Fraction

import pytest

from sim.model.checkpoint import Barriers
from sim.model.job import Rate
from sim.model.schema.reference import json_schema, schema_text
from sim.model.schema.study import load, loads
from sim.model.schema.text import SCHEMA_LINE, assumptions_note
from tests.places import ROOT
from tests.scenarios import read_scenario

# A scenario file becomes the model it describes.


FULL = """\
# yaml-language-server: $schema=./ckptsim.schema.json
# Is this
# a question?

# This is not.
version: 1
job:
  late:  {input: {join: broadcast}, parallelism: 3, service: {exponential: 1 ms}}
  left:  {source: {rate: 9k/s, record: {lognormal: {mean: 400 B, cv: 0.5}}}, parallelism: 3, service: 2 us}
  right: {source: {rate-per-subtask: [{at: 0 s, rate: 1k/s}, {at: 1 min, rate: 0/s}], record: 1 kB, records: 20k}, parallelism: 2}
  join:
    input:
      left: {ship: hash, service: 30 us, record: 408 B, weights: [2, 1, 1]}
      right: rebalance
    service: {erlang: {mean: 1 ms, cv: 0.5}}
    record: {uniform: 2 kB}
    fan-out: 0.25
    parallelism: 3
    max-parallelism: 720
    state: {size: 4 GiB, backend: rocksdb, update: 30 %, value: 200 B}
    snapshot: {pre-barrier: 1 s, sync: 2 ms, async: 3 s, probability: 10 %, operator-state: 8 KiB}
checkpoint:
  interval: 30 s
  timeout: 5 min
  barriers: {aligned-timeout: 5 s}
  min-pause: 1 s
  tolerable-failed: 2
  subtasks-per-channel-state-file: 3
  forced-aligned: [left -> join]
storage:
  bandwidth: 100 MB/s
  read-bandwidth: 50 MB/s
  file-latency: 20 ms
  metadata-latency: 30 ms
  inline-threshold: 0 B
  slow: {share: 2 %, factor: 20}
cluster:
  placement: spread
  latency: 1 ms
  nic: 1 Gbit/s
  profile: 1.20
  network:
    segment-size: 16 KiB
    buffers-per-channel: 4
    floating-buffers-per-gate: 16
    max-buffers-per-channel: 12
    overdraft: 7
    buffer-timeout: never
    debloat: {target: 500 ms, period: 100 ms, samples: 10, threshold: 50 %, min: 512 B}
run: {duration: 30 min, warmup: 2 min, seed: 7, replications: 20}
expect: {checkpoints.end_to_end_duration.p99: < 60 s, checkpoints.completed: [">= 10", "<= 90"]}
overheads: {trigger: 1 ms, acknowledge: 2 ms, complete: 3 ms, notify: 4 ms, first-trigger: 5 ms}
"""

SMALL = """\
job:
  a: {source: {rate: 1k/s, record: 100 B}, parallelism: 2}
  b: {input: {a: hash}, parallelism: 2}
checkpoint: {interval: 5 s}
run: {duration: 60 s}
"""


@pytest.fixture(scope="module")
def full():
    return read_scenario(FULL, "full")


def test_the_question_is_the_first_comment(full):
    """Not the schema's line, not later comments; several lines are one question."""

    assert full.question == "Is this a question?"
    assert loads(SMALL).question == ""
    assert full.name == "full"


def test_vertices_stand_in_topological_order(full):
    """Whatever the order of the file."""

    assert [vertex.name for vertex in full.job.vertices] == ["left", "right", "join", "late"]


def test_keys_that_are_no_single_value(full):
    assert Barriers("aligned-timeout", 5 * 10**9) == full.checkpoint.barriers
    assert full.checkpoint.forced_aligned == (("left", "join"),)
    assert (full.storage.slow_probability, full.storage.slow_factor) == (0.02, 20)
    assert full.expect == (
        ("checkpoints.end_to_end_duration.p99", "< 60 s"),
        ("checkpoints.completed", ">= 10"),
        ("checkpoints.completed", "<= 90"),
    )


@pytest.mark.parametrize(
    ("key", "constant"),
    [("buffers-per-channel", 2), ("floating-buffers-per-gate", 8), ("max-buffers-per-channel", 10), ("overdraft", 20)],
)
def test_two_x_ignores_options_that_became_constants(key, constant):
    """What is simulated agrees with the warning; 1.20 has the option."""
    new = loads(SMALL, overrides=[f"cluster.network.{key}=4"])
    old = loads(SMALL, overrides=[f"cluster.network.{key}=4", "cluster.profile=1.20"])

    assert new.scenarios[0].cluster.network == read_scenario(SMALL).cluster.network
    assert [f"is ignored: Flink 2.x has no such option, it is {constant} (profile: 1.20 has it)"] == [
        w.message for w in new.warnings
    ]
    assert old.warnings == ()
    assert new.scenarios[0].cluster.network != old.scenarios[0].cluster.network


def test_forward_between_unequal_parallelisms_is_rebalance():
    """As in Flink, and said."""
    study = loads(SMALL, overrides=["job.b.input.a=forward", "job.b.parallelism=[2, 3]"])

    assert [scenario.job.vertex("b").inputs[0].ship for scenario in study.scenarios] == ["forward", "rebalance"]
    assert [w.message for w in study.warnings] == [
        "forward needs equal parallelism, not 2 -> 3: using rebalance, as Flink does"
    ]


def test_concurrency_gives_way_to_a_pause():
    """Flink ignores max-concurrent when there is a minimum pause."""
    study = loads(SMALL, overrides=["checkpoint.max-concurrent=3", "checkpoint.min-pause=1 s"])

    assert study.scenarios[0].checkpoint.max_concurrent == 1
    assert "has no effect with a min-pause" in study.warnings[0].message


def test_weights_of_another_parallelism_are_dealt_out_and_said():
    """Two counted, four asked for: the hot key stays whole, and the warning names the other law."""
    override = "job.b.input.a={ship: hash, weights: {counted: [1, 2]}}"
    study = loads(SMALL, overrides=[override, "job.b.parallelism=4"])
    reader = study.scenarios[0].job.vertex("b")

    assert (Fraction(1, 6), Fraction(1, 6), Fraction(1, 6), Fraction(1, 2)) == reader.shares(reader.inputs[0])
    assert [
        warning.message.partition(". What")[0] for warning in study.warnings if "weights for" in warning.message
    ] == ["weights for a parallelism of 2 were redistributed to 4 subtasks: 16.7 %, 16.7 %, 16.7 %, 50 %"]
    (said,) = [warning.message for warning in study.warnings if "weights for" in warning.message]
    # several hot keys fall apart
    assert "the most loaded subtask gets 50 % of the records. With excess: key-groups it gets 33.3 %; Flink" in said
    assert not any(
        "weights for" in warning.message
        for warning in loads(SMALL, overrides=[override, "job.b.parallelism=2"]).warnings
    )


@pytest.mark.parametrize(("groups", "others"), [(3, (1, 1)), (4, (1, 1)), (5, (2, 1)), (128, (43, 42))])
def test_the_rest_of_a_hot_key_s_records_goes_by_key_groups(groups, others):
    """The others share what is left as they share the key groups."""
    overrides = [
        "job.b.input.a={ship: hash, weights: {hot: 70 %}}",
        "job.b.parallelism=3",
        f"job.b.max-parallelism={groups}",
    ]
    weights = read_scenario(SMALL, overrides=overrides).job.vertex("b").inputs[0].weights

    assert [Fraction(7, 10), *(Fraction(3, 10) * own / sum(others) for own in others)] == list(weights)


CSV = "time,load\n2024-01-01 00:00:00,100\n2024-01-01 00:00:10,100\n2024-01-01 00:00:20,\n2024-01-01 00:00:30,50.5\n"


def test_a_trace_gives_the_rates(tmp_path):
    """Relative to the scenario file; equal neighbours are one step, blanks keep the rate, the scale multiplies."""
    (tmp_path / "load.csv").write_text(CSV)
    (tmp_path / "s.yaml").write_text(SMALL.replace("1k/s", "{trace: load.csv, column: load, scale: 2}"))
    source = load(tmp_path / "s.yaml").scenarios[0].job.vertex("a").source

    assert (Rate(0, Fraction(100)), Rate(30 * 10**9, Fraction(101, 2))) == source.rates


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n1,2\n", "has no column 'x'"),
        ("t,x\n1,2\n1,3\n", "time does not increase"),
        ("t,x\n1,many\n", ":2: 'many' is not a rate"),
        ("t,x\nnoon,1\n", ":2: 'noon' is not a time"),
        ("t,x\n1,-4\n", ":2: '-4' is not a rate"),
        ("t,x\n", "has no rates in column 'x'"),
        ("", "has no column 'x'"),
    ],
)
def test_a_trace_that_gives_none_says_why(tmp_path, text, message):
    """With the line where there is one."""
    from sim.model.schema.text import ScenarioError

    (tmp_path / "load.csv").write_text(text)
    with pytest.raises(ScenarioError) as refused:
        loads(SMALL, overrides=["job.a.source.rate={trace: load.csv, column: x}"], folder=tmp_path)

    assert message in str(refused.value)


# The committed scenarios and their schema.


SCENARIOS = ROOT / "scenarios"
FILES = sorted(SCENARIOS.glob("*.yaml"))


def test_the_committed_schema_is_current():
    """Written by `ckptsim schema`; regenerate it when the document changes."""

    assert schema_text() == (SCENARIOS / "ckptsim.schema.json").read_text()
    assert json_schema() == json_schema()


def records_due(scenario):
    """By all sources until the end of the run; no end: an unlimited source."""
    seconds = scenario.run.duration_ns / 10**9
    sources = [(vertex.source, vertex.parallelism) for vertex in scenario.job.vertices if vertex.source]
    fastest = [max((rate.per_second for rate in source.rates), default=10**9) * tasks for source, tasks in sources]
    return sum(fastest) * seconds


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_committed_scenario(path):
    """Names its schema, asks its question, loads without a warning, is small enough for a laptop."""
    lines = path.read_text().splitlines()
    study = load(path)

    assert lines[0] == SCHEMA_LINE
    assert study.question.endswith("?")
    assert lines[1] == f"# {study.question}"
    assert study.warnings == ()
    assert max(map(len, lines)) <= 140
    for scenario in study.scenarios:
        assert scenario.run.duration_ns <= 60 * 10**9 or records_due(scenario) <= 10**7
        assert max(vertex.parallelism for vertex in scenario.job.vertices) <= 8


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_committed_scenario_meets_the_schema(path):
    """What editors check agrees with what the loader accepts."""
    jsonschema = pytest.importorskip("jsonschema")
    from ruamel.yaml import YAML

    validator = jsonschema.Draft202012Validator(json_schema())

    assert list(validator.iter_errors(YAML(typ="safe", pure=True).load(path))) == []


def test_the_schema_refuses_what_the_loader_refuses():
    """Unknown keys, missing units, wrong words, keys that exclude each other or need another one."""
    jsonschema = pytest.importorskip("jsonschema")
    validator = jsonschema.Draft202012Validator(json_schema())
    sound = {
        "job": {"a": {"source": {"rate": "1k/s", "record": "5 B"}}},
        "checkpoint": {"interval": "5 s"},
        "run": {"duration": "5 s"},
    }

    assert list(validator.iter_errors(sound)) == []
    for section, value in (
        ("run", {"duration": 5}),
        ("checkpoint", {"interval": "5 s", "barriers": "alligned"}),
        ("checkpoint", {"intervall": "5 s"}),
        ("checkpoint", {"interval": []}),
        ("cluster", {"profile": "1.2"}),
        ("storage", {"bandwidth": "5 MB"}),
        ("job", {"a": {"source": {"rate": "1k/s", "rate-per-subtask": "1k/s", "record": "5 B"}}}),
        ("actions", [{"at": "1 s"}]),
        ("job", {"a": {"source": {"rate": "1k/s", "records": 5, "records-per-subtask": 5, "record": "5 B"}}}),
        ("faults", [{"kill": "a", "at": "1 s", "lasts": "1 s"}]),
    ):
        assert list(validator.iter_errors(sound | {section: value})), (section, value)


def test_the_schema_is_plain_json():
    """No Python left in it: no nulls for keys that are not given."""

    assert "null" not in json.dumps(json_schema())


# A scenario that was imported says where it is assumed.


def test_marks_are_found_wherever_a_comment_begins():
    """At the end of a line and on a line of its own, not inside of a text."""
    text = "a: 1  # UNKNOWN: why?\nb: '#UNKNOWN'\n  # UNKNOWN: what?\n# UNKNOWN\n"

    assert assumptions_note(text) == "2 values are assumed, see UNKNOWN in lines 1, 3"


def test_one_and_none():
    assert assumptions_note("\na: 1 # UNKNOWN: why?") == "1 value is assumed, see UNKNOWN in line 2"
    assert assumptions_note("a: 1  # known") == ""


def test_many_are_counted():
    assert assumptions_note("# UNKNOWN: x\n" * 20) == "20 values are assumed, see UNKNOWN in lines 1, 2, 3, 4, 5, 6 ..."
