"""Lists are axes, axes are independent, --set changes what the file says; of every key that random worlds write."""

import copy
from functools import cache

import pytest

from sim.model.faults import Restart
from sim.model.schema.document import validate
from sim.model.schema.reference import all_keys
from sim.model.schema.study import find_axes, loads
from sim.model.schema.text import MAX_REMEMBERED, Reading, ScenarioError, cached_builder, compose, write
from tests.worlds.generator import document

# Lists are axes, axes are independent; --set changes what the file says and is checked like it.


TEXT = """\
# What then?
job:
  a: {source: {rate: [1k/s, 2k/s], record: 100 B}, parallelism: 2}
  b: {input: {a: hash}, service: [10 us, {exponential: 20 us}], parallelism: 2}
checkpoint: {interval: 5 s, barriers: [aligned, unaligned, {aligned-timeout: 5 s}]}
cluster: {network: {debloat: [off, {target: 1 s}]}}
run: {duration: 60 s}
"""


def test_no_axis_is_one_scenario():
    """Weights and schedules are lists and no axes."""
    overrides = [
        "job.a.source.rate=[{at: 0 s, rate: 1/s}, {at: 1 s, rate: 2/s}]",
        "job.b.input.a={ship: hash, weights: [1, 2]}",
        "job.b.service=1 us",
        "checkpoint.barriers=aligned",
        "cluster.network.debloat=on",
    ]

    assert (loads(TEXT, overrides=overrides).axes, len(loads(TEXT, overrides=overrides).scenarios)) == ((), 1)


def test_an_axis_of_schedules():
    """A list of lists."""
    study = loads(TEXT, overrides=["job.a.source.rate=[[{at: 0 s, rate: 1/s}], 5/s]"])

    assert study.axes[0].values == ("[at 0 s, rate 1/s]", "5/s")


def test_overrides_replace_and_add():
    """Existing values, new keys, new sections; keys with dots under flink and expect, quoted ones elsewhere."""
    overrides = [
        "checkpoint.interval=30 s",
        "checkpoint.timeout=1 min",
        "storage.slow.share=2 %",
        "storage.slow.factor=20",
        "flink.execution.checkpointing.min-pause=3s",
        "expect.checkpoints.failed=== 0",
        'job."b".parallelism=4',
        "job.b.input={a: {ship: hash, weights: [1, 2, 3, 4]}}",
        "job.b.input.a.weights.3=0",
    ]
    scenario = loads(TEXT, overrides=overrides).scenarios[0]

    assert (
        scenario.checkpoint.interval_ns,
        scenario.checkpoint.timeout_ns,
        scenario.checkpoint.min_pause_ns,
    ) == (30 * 10**9, 60 * 10**9, 3 * 10**9)
    assert (scenario.storage.slow_probability, scenario.storage.slow_factor) == (0.02, 20)
    assert scenario.expect == (("checkpoints.failed", "== 0"),)
    assert (scenario.job.vertex("b").parallelism, scenario.job.vertex("b").inputs[0].weights[3]) == (4, 0)


def test_an_override_that_replaces_a_section_names_the_keys_that_it_drops():
    """`restart.fresh-start` was measured by an import; a shorter section on the command line does without it, and says so."""
    text = f"{TEXT}\nrestart: {{fresh-start: 2 s, replacement: 30 s}}\n"
    study = loads(text, "s", overrides=["restart={replacement: 10 s}"])
    warned = [str(warning) for warning in study.warnings if "replaces the whole section" in str(warning)]
    assert study.scenarios[0].restart.fresh_start_ns == Restart().fresh_start_ns
    assert len(warned) == 1
    assert "drops {fresh-start: 2 s}" in warned[0]
    assert "--set restart.KEY=VALUE" in warned[0]
    assert not [w for w in loads(text, "s", overrides=["restart.replacement=10 s"]).warnings if "replaces" in str(w)]


@pytest.mark.parametrize(
    ("override", "warning"),
    [
        ("checkpoint={interval: 5 s, timeout: 20 s, barriers: {aligned-timeout: 20 s}}", "barriers never overtake"),
        ("checkpoint={interval: 5 s, timeout: 20 s, barriers: {aligned-timeout: 19 s}}", ""),
        ("job.b.connector=kafka-exactly-once", "commits of kafka-exactly-once are not simulated"),
        ("job.b.connector=kafka-at-least-once", ""),
    ],
)
def test_settings_that_do_nothing_are_said(override, warning):
    text = """\
job:
  a: {source: {rate: 1k/s, record: 100 B}}
  b: {input: {a: hash}}
checkpoint: {interval: 5 s}
run: {duration: 60 s}
"""
    warnings = loads(text, "s", overrides=[override]).warnings

    assert [warning in str(own) for own in warnings] == [True] * bool(warning)


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("checkpoint.interval=30", "--set checkpoint.interval=30:1:1: checkpoint.interval: a duration needs a unit"),
        ("checkpoint.intervall=30 s", "checkpoint.intervall: unknown key 'intervall' (did you mean 'interval'?)"),
        ("job.bb.parallelism=3", "job.bb.parallelism: there is no vertex 'bb' (did you mean 'b'?)"),
        ("job.b.parallelism", "expected key.path=value"),
        ("=5", "expected key.path=value"),
        ("", "expected key.path=value"),
        ("run.seed=", "run.seed: has no value: write one after the ="),
        ("run.duration.x=5", "run.duration.x: there is no mapping at run.duration to set 'x' in"),
        ("run.duration.x.y=5", "run.duration.x.y: there is no mapping at run.duration to set 'x' in"),
        ("run.seed=[1", "is not YAML"),
        ("run={duration: 1 s, duration: 2 s}", "run.duration: key is given twice"),
        ("storage={bandwith: 5 MB/s}", "storage.bandwith: unknown key 'bandwith' (did you mean 'bandwidth'?)"),
    ],
)
def test_overrides_are_checked(override, message):
    """A mistake names the override, not a line of the file."""
    with pytest.raises(ScenarioError) as refused:
        loads(TEXT, "s", overrides=[override])

    assert str(refused.value).startswith(f"--set {override}")
    assert message in str(refused.value)


def test_mistakes_of_file_and_overrides_come_together():
    """One go."""
    with pytest.raises(ScenarioError) as refused:
        loads(TEXT.replace("60 s", "60"), "s", overrides=["checkpoint.interval=30"])

    assert [problem.file for problem in refused.value.problems] == ["--set checkpoint.interval=30", "s"]


def test_a_full_cache_loses_what_was_not_used_for_longest():
    """Whether combinations share a part does not depend on how many parts were built before them."""
    build = cached_builder(lambda reading, _: object())
    first, second, *_ = (build(Reading("s"), number) for number in range(MAX_REMEMBERED))

    assert build(Reading("s"), 0) is first
    build(Reading("s"), MAX_REMEMBERED)
    assert build(Reading("s"), 0) is first
    assert build(Reading("s"), 1) is not second


def test_combinations_share_what_they_leave_unchanged(tmp_path):
    """A part is read and built once, with its warnings; a value that is set stays where it was set, and traces are read again."""
    text = "job: {a: {source: {rate: 1/s, record: 1 B}}}\ncheckpoint: {interval: 10 s, max-concurrent: 2, min-pause: 1 s}\nrun: {duration: 20 s}\n"
    first, other, again = (
        loads(text, overrides=overrides) for overrides in (["run.seed=2"], ["checkpoint.interval=5 s"], [])
    )

    assert other.scenarios[0].job is first.scenarios[0].job
    assert again.scenarios[0].checkpoint is first.scenarios[0].checkpoint
    assert [file.scenarios[0].checkpoint.interval_ns for file in (other, again)] == [5 * 10**9, 10 * 10**9]
    assert [file.scenarios[0].run.seed for file in (first, again)] == [2, 1]
    assert again.warnings == first.warnings != ()

    rates = []
    for rate in (1, 2):
        (tmp_path / "rates.csv").write_text(f"time,rate\n0,{rate}\n1000,{rate}\n" + "\n" * rate)
        (read,) = loads(text.replace("rate: 1/s", "rate: {trace: rates.csv, column: rate}"), folder=tmp_path).scenarios
        rates += [step.per_second for step in read.job.vertices[0].source.rates]
    assert rates == [1, 2]


# A list where one value is expected is an axis that has a name, or a mistake: of every key that random worlds write.


SEEDS = range(150)
LISTS = {"checkpoint.forced-aligned"}
"""Keys whose value is a list, and may be one word."""


def leaves(node, path=()):
    """(path, value) of all single values in a document."""
    if isinstance(node, dict):
        for key, value in node.items():
            yield from leaves(value, (*path, str(key)))
    elif isinstance(node, list):
        for i, value in enumerate(node):
            yield from leaves(value, (*path, i))
    else:
        yield path, node


@cache
def composed(seed):
    """The world as a reader of files has it, and where each value stands."""
    reading = Reading("s")
    return compose(write(document(seed), "?"), reading), reading.marks


def with_list(seed, path, value):
    """The world with a list of one value in the place of that value."""
    plain, marks = composed(seed)
    node = plain = copy.deepcopy(plain)
    for step in path[:-1]:
        node = node[step]
    node[path[-1]] = [value]
    reading = Reading("s")
    reading.marks.update(marks)
    return plain, reading


def key_of(path):
    """As the reference names it."""
    steps = [step for step in path if isinstance(step, str)]
    if steps[0] != "job":
        return ".".join(steps)
    named = steps[2:3] if steps[2] in ("input", "outputs", "service-factor") else []
    return ".".join(["job", "VERTEX", *named, *steps[2 + 2 * len(named) :]])


@cache
def found_places():
    """Up to two places in random worlds for each key that one of them writes, with different values."""
    places = {}
    for seed in SEEDS:
        for path, value in leaves(document(seed)):
            if path[0] not in ("flink", "version"):
                own = places.setdefault(key_of(path), [])
                if len(own) < 2 and value not in [other for _, _, other in own]:
                    own.append((seed, path, value))
    return places


def test_most_keys_of_a_scenario_have_such_a_place():
    keys = {
        reference.key for reference in all_keys() if not reference.keys and not reference.key.startswith("backtest.")
    }

    assert len(found_places()) > 250
    assert len(keys & found_places().keys()) > 0.8 * len(keys), sorted(keys - found_places().keys())


@pytest.mark.parametrize(
    "section", ["job", "checkpoint", "cluster", "storage", "run", "faults restart rescale actions", "overheads"]
)
def test_a_list_in_the_place_of_a_value_is_an_axis_or_a_mistake(section):
    own = {key: places[0] for key, places in found_places().items() if key.partition(".")[0] in section.split()}
    silent = []
    for key, (seed, path, value) in own.items():
        plain, reading = with_list(seed, path, value)
        checked = validate(plain, reading)
        if not reading.problems and [path] != [axis.path for axis in find_axes(checked, plain, reading)]:
            silent.append(key)

    assert len(own) > 2
    assert [key for key in silent if key not in LISTS] == []
