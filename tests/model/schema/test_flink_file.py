"""A file of Flink's configuration as users have it, read as it is: each form, what wins over what, and what is wrong with broken ones."""

from pathlib import Path

import pytest

from sim.model.schema.flink_file import about_file, read_flink_file
from sim.model.schema.study import load, loads
from sim.model.schema.text import ScenarioError
from tests.places import DATA

SCENARIO = """\
job:
  a: {source: {rate: 1k/s, record: 100 B}}
  b: {input: {a: hash}, state: {size: 1 MB, update: 10 %}}
run: {duration: 60 s}
"""
DEPLOYMENT = """\
apiVersion: flink.apache.org/v1beta1
kind: FlinkDeployment
metadata:
  name: orders
spec:
  image: flink:1.20
  flinkVersion: v1_20
  flinkConfiguration:
    taskmanager.numberOfTaskSlots: "2"
    execution.checkpointing.interval: "5000"
    state.backend: rocksdb
    metrics.reporters: prom
  serviceAccount: flink
  podTemplate:
    spec: {containers: [{name: flink-main-container, env: [{name: A, value: "{{ x }}"}]}]}
  jobManager:
    resource: {memory: "2048m", cpu: 1}
  taskManager:
    resource:
      memory: "4096m"
      cpu: 2
  job:
    jarURI: local:///a.jar
    parallelism: 4
    upgradeMode: last-state
"""
NESTED = DEPLOYMENT[: DEPLOYMENT.index("    taskmanager.number")].replace("v1_20", "v2_0") + (
    """\
    taskmanager: {numberOfTaskSlots: 2}
    execution:
      checkpointing:
        interval: 5 s
    state:
      backend:
        type: rocksdb
    metrics:
      reporters: prom
"""
    + DEPLOYMENT[DEPLOYMENT.index("  serviceAccount") :]
)
CONF = """\
taskmanager.numberOfTaskSlots: 2
execution.checkpointing.interval: 5000
parallelism.default: 4
state.backend: rocksdb
rest.port: 8081
"""
CONFIG = """\
taskmanager:
  numberOfTaskSlots: 2
execution:
  checkpointing: {interval: 5 s}
parallelism: {default: 4}
state: {backend: {type: rocksdb}}
"""
SESSION = (
    DEPLOYMENT[: DEPLOYMENT.index("  job:")]
    + """\
---
apiVersion: flink.apache.org/v1beta1
kind: FlinkSessionJob
metadata: {name: one}
spec:
  deploymentName: orders
  job: {jarURI: a.jar, parallelism: 4}
  flinkConfiguration:
    execution.checkpointing.interval: 5s
"""
)


def study(tmp_path, text, name="deployment.yaml", *, scenario=SCENARIO, overrides=()):
    """A scenario with a file that is given on the command line."""
    (tmp_path / name).write_text(text)
    return loads(scenario, "s", folder=tmp_path, overrides=[f"flink-file={name}", *overrides])


def refusal(tmp_path, text, name="deployment.yaml", **given):
    with pytest.raises(ScenarioError) as refused:
        study(tmp_path, text, name, **given)
    return str(refused.value).replace(f"{tmp_path}/", "")


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (DEPLOYMENT, "deployment.yaml"),
        (NESTED, "nested.yaml"),
        (CONF, "flink-conf.yaml"),
        (CONFIG, "config.yaml"),
        (SESSION, "session.yaml"),
        (f"---\n{DEPLOYMENT}---\n", "documents.yaml"),
    ],
    ids=[
        "deployment",
        "nested deployment",
        "flink-conf",
        "nested config",
        "session job",
        "several documents",
    ],
)
def test_each_form_says_the_same(tmp_path, text, name):
    (scenario,) = study(tmp_path, text, name).scenarios

    assert scenario.checkpoint.interval_ns == 5 * 10**9
    assert (scenario.cluster.placement, scenario.cluster.slots) == ("spread", 2)
    assert [vertex.parallelism for vertex in scenario.job.vertices] == [4, 4]
    assert scenario.job.vertex("b").state.backend == "rocksdb"


TAKEN = [
    "cluster.version 1.20 (simulated as profile 1.20)",
    "cluster.cores 2",
    "restart.provider kubernetes",
    "taskmanager.numberOfTaskSlots 2",
    "execution.checkpointing.interval 5 s",
    "state.backend.type rocksdb",
    "parallelism.default 4",
]
LEFT = (
    "metrics.reporters, spec.job.upgradeMode, spec.jobManager.resource.cpu and 2 more "
    "('ckptsim explain-key deployment.yaml' lists all keys)"
)


def test_what_a_manifest_says_beside_keys(tmp_path, monkeypatch):
    """Version and processors; memory and upgrades have no counterpart, which is said with the keys that have none."""
    monkeypatch.chdir(tmp_path)
    given = study(Path(), DEPLOYMENT)
    cluster = given.scenarios[0].cluster
    lines = [str(warning) for warning in given.warnings if warning.path.startswith("Flink")]

    assert (cluster.profile, cluster.cores) == ("1.20", 2)
    assert given.scenarios[0].restart.provider == "kubernetes"
    standalone = DEPLOYMENT.replace("spec:\n", "spec:\n  mode: standalone\n", 1)
    assert study(tmp_path, standalone, "other.yaml").scenarios[0].restart.provider == "standalone"
    assert study(tmp_path, NESTED).scenarios[0].cluster.profile == "2.x"
    unknown = [
        str(warning) for warning in study(tmp_path, DEPLOYMENT.replace("v1_20", "v1.18"), "dotted.yaml").warnings
    ]
    assert any("spec.flinkVersion: 'v1.18' is no version of Flink's operator" in warning for warning in unknown)
    assert [
        f"deployment.yaml: FlinkDeployment orders: 7 values applied: {', '.join(TAKEN)}",
        f"deployment.yaml: FlinkDeployment orders: not modelled, no effect here: 5 keys of Flink: {LEFT}",
    ] == lines
    assert {
        "spec.flinkVersion": "sets cluster.version",
        "spec.taskManager.resource.cpu": "sets cluster.cores",
        "kind": "sets restart.provider",
    }.items() <= about_file(read_flink_file(Path("deployment.yaml"))).items()


def test_a_patch_of_a_manifest_is_read_as_the_manifest_is(tmp_path):
    """`advise` writes one for `kubectl patch`: it has neither kind nor apiVersion."""
    patch = 'spec:\n  job:\n    upgradeMode: last-state\n  flinkConfiguration:\n    execution.checkpointing.interval: "7 s"\n'
    given = study(tmp_path, patch, "advised.yaml")

    assert given.scenarios[0].checkpoint.interval_ns == 7 * 10**9
    assert [key for key in read_flink_file(tmp_path / "advised.yaml").keys if key.startswith("spec.")] == [
        "spec.job.upgradeMode"
    ]


def test_a_patch_that_advise_writes_takes_keys_away_and_keeps_the_strategy(tmp_path):
    """null is Flink's default again, and the delay is one of the strategy that the scenario says."""
    patch = "spec:\n  flinkConfiguration:\n    execution.checkpointing.timeout: null\n    restart-strategy.fixed-delay.delay: 2 s\n"
    own = f"{SCENARIO}checkpoint: {{interval: 9 s, timeout: 3 s}}\nrestart: {{strategy: fixed-delay, delay: 40 s}}\n"
    (scenario,) = study(tmp_path, patch, "advised.yaml", scenario=own).scenarios

    assert (scenario.checkpoint.timeout_ns, scenario.checkpoint.interval_ns) == (600 * 10**9, 9 * 10**9)
    assert (scenario.restart.strategy, scenario.restart.delay_ns) == ("fixed-delay", 2 * 10**9)


def test_the_replicas_of_a_standalone_cluster_are_its_parallelism(tmp_path):
    """The operator ignores job.parallelism beside them (FlinkConfigBuilder)."""
    (scenario,) = study(tmp_path, DEPLOYMENT.replace("  taskManager:\n", "  taskManager:\n    replicas: 3\n")).scenarios

    assert [vertex.parallelism for vertex in scenario.job.vertices] == [6, 6]


def test_the_command_line_wins_over_the_scenario(tmp_path):
    """Key by key: --set, then the file of --flink, then the scenario; what is replaced is said."""
    own = (
        SCENARIO
        + "checkpoint: {interval: 9 s, timeout: 3 min}\nflink: {state.backend.type: hashmap, parallelism.default: 7}\n"
    )
    given = study(tmp_path, CONF, "flink-conf.yaml", scenario=own)
    changed = study(tmp_path, CONF, "flink-conf.yaml", scenario=own, overrides=["checkpoint.interval=2 s"])

    assert (given.scenarios[0].checkpoint.interval_ns // 10**9, given.scenarios[0].checkpoint.timeout_ns // 10**9) == (
        5,
        180,
    )
    assert (given.scenarios[0].job.vertex("b").state.backend, given.scenarios[0].job.vertex("b").parallelism) == (
        "rocksdb",
        4,
    )
    assert any("5 s replaces 9 s, checkpoint.interval on line 5 of s" in str(warning) for warning in given.warnings)
    assert changed.scenarios[0].checkpoint.interval_ns == 2 * 10**9


def test_a_key_given_with_set_wins_over_the_file(tmp_path):
    (scenario,) = study(
        tmp_path, CONF, "flink-conf.yaml", overrides=["flink.execution.checkpointing.interval=7 s"]
    ).scenarios

    assert scenario.checkpoint.interval_ns == 7 * 10**9


def test_the_backend_of_the_file_is_that_of_the_job_and_its_parallelism_a_default(tmp_path):
    own = SCENARIO.replace("state: {", "parallelism: 3, state: {backend: hashmap, ").replace(
        "{source", "{parallelism: 2, source"
    )
    given = study(tmp_path, CONF, "flink-conf.yaml", scenario=own)

    assert given.scenarios[0].job.vertex("b").state.backend == "rocksdb"
    assert [vertex.parallelism for vertex in given.scenarios[0].job.vertices] == [2, 3]
    assert any("has no effect: all vertices set their own value (a, b)" in str(warning) for warning in given.warnings)


def test_a_scenario_names_its_file(tmp_path):
    """Then both are one description: what is said twice is a mistake."""
    (tmp_path / "flink-conf.yaml").write_text(CONF)
    (tmp_path / "s.yaml").write_text(f"{SCENARIO}flink-file: flink-conf.yaml\n")
    twice = f"{SCENARIO}flink-file: flink-conf.yaml\ncheckpoint: {{interval: 9 s}}\n"

    assert load(tmp_path / "s.yaml").scenarios[0].checkpoint.interval_ns == 5 * 10**9
    with pytest.raises(
        ScenarioError,
        match=r"flink-conf\.yaml:2:1: execution\.checkpointing\.interval: duplicates checkpoint\.interval on",
    ):
        loads(twice, "s", folder=tmp_path)


SEVERAL = DEPLOYMENT + "---\n" + DEPLOYMENT.replace("name: orders", "name: clicks").replace("5000", "7000")


def test_one_of_several_is_named(tmp_path):
    (tmp_path / "all.yaml").write_text(SEVERAL)
    (scenario,) = loads(SCENARIO, "s", folder=tmp_path, overrides=["flink-file=all.yaml#clicks"]).scenarios

    assert scenario.checkpoint.interval_ns == 7 * 10**9
    assert (
        refusal(tmp_path, SEVERAL, "all.yaml")
        == "all.yaml: holds the FlinkDeployments orders, clicks: name one of them, all.yaml#orders"
    )


def test_of_a_key_that_is_given_twice_flink_1_reads_the_last(tmp_path):
    """In flink-conf.yaml, which Flink 1.x reads line by line; in YAML it is a mistake."""
    twice = f'{CONF}execution.checkpointing.interval: 8 s\nenv.java.opts: "-Da" -Db\nno colon\nempty:\n'

    read = study(tmp_path, twice, "flink-conf.yaml")
    told = " ".join(map(str, read.warnings))

    assert read.scenarios[0].checkpoint.interval_ns == 8 * 10**9
    assert "flink-conf.yaml:2:1: has no effect: line 6 sets execution.checkpointing.interval again" in told
    assert "flink-conf.yaml:8:1: Flink ignores this line: expected 'key: value', with a space, not 'no colon'" in told
    assert (
        refusal(tmp_path, f"{CONF}execution.checkpointing.interval: 8 s\n", "config.yaml")
        == "config.yaml:6:1: execution.checkpointing.interval: key is given twice; the first is on line 2"
    )


PLACE = "d.yaml:10:5: execution.checkpointing.interval"
BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{b}: &{b} [{', '.join([f'*{a}'] * 9)}]\n" for a, b in zip("abcdef", "bcdefg", strict=True)
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "execution:\n\tcheckpointing: 5 s\n",
            "d.yaml:2:1: is not YAML: a line begins with a tab: indent it by spaces",
        ),
        (BOMB, "has more than 100000 values, aliases written out"),
        ("a: [", "is not YAML"),
        ("", "d.yaml: is empty: expected the configuration of one Flink"),
        (
            "- a\n- b\n",
            "d.yaml: is not a configuration of Flink: expected 'key: value' lines, or a manifest of Kubernetes",
        ),
        (
            "services:\n  jobmanager:\n    command: jobmanager\n",
            "d.yaml: has no key of Flink: expected flink-conf.yaml, config.yaml, or a",
        ),
        (DEPLOYMENT.replace("{{ x }}", "x") + "<#if isLocal>\n  a: b\n</#if>\n", "is a template: render it first"),
        ("\x00\x01", "d.yaml"),
        (f"{CONF}---\n{CONF}", "d.yaml: holds several documents: expected the configuration of one Flink"),
        (
            DEPLOYMENT.replace('"5000"', "{{ .Values.interval }}"),
            "d.yaml:10:1: is a template: render it first ('helm template'",
        ),
        (f"{{{{- if .Values.on }}}}\n{DEPLOYMENT}{{{{- end }}}}\n", "d.yaml:1:1: is a template: render it first"),
        (
            DEPLOYMENT.replace('"5000"', "'{{ .Values.interval }}'"),
            f"{PLACE}: '{{{{ .Values.interval }}}}' is a placeholder",
        ),
        (
            DEPLOYMENT.replace('"5000"', "${INTERVAL}"),
            f"{PLACE}: '${{INTERVAL}}' is a placeholder: fill in its value first",
        ),
        (DEPLOYMENT.replace('"5000"', "[5000]"), f"{PLACE}: expected one value, not a list"),
        (
            DEPLOYMENT.replace("FlinkDeployment", "ConfigMap"),
            "d.yaml: holds ConfigMap: expected a FlinkDeployment or a FlinkSessionJob; of a ConfigMap",
        ),
    ],
)
def test_a_broken_file_has_one_message(tmp_path, text, message):
    found = refusal(tmp_path, text, "d.yaml", scenario=f"{SCENARIO}checkpoint: {{interval: 1 s}}\n")

    assert found.startswith(message) or message in found
    assert len(found.splitlines()) == 1


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(ScenarioError, match=r"nowhere\.yaml: no such file"):
        loads(SCENARIO, "s", folder=tmp_path, overrides=["flink-file=nowhere.yaml"])


def test_a_key_without_a_value_is_not_set(tmp_path):
    given = study(tmp_path, CONFIG.replace("{backend: {type: rocksdb}}", "{backend: {type: }}"), "config.yaml")

    assert given.scenarios[0].job.vertex("b").state.backend == "hashmap"
    assert any(
        "state.backend.type: has no value and is ignored, as in Flink" in str(warning) for warning in given.warnings
    )


def test_a_manifest_that_was_pasted_runs():
    """The report br08: a RocksDB option that is not modelled stopped it, and slots were said to have no effect."""
    given = load(DATA / "reports/br08/scenario.yaml")
    (left,) = [warning.message for warning in given.warnings if "not modelled" in warning.message]

    assert (given.scenarios[0].cluster.placement, given.scenarios[0].cluster.slots) == ("spread", 10)
    assert left.startswith("not modelled, no effect here: 1 key of Flink: state.backend.rocksdb.use-bloom-filter (")


def test_what_each_key_of_a_file_does(tmp_path, capsys):
    from sim.app.cli.references import print_key

    (tmp_path / "d.yaml").write_text(DEPLOYMENT.replace("metrics.reporters", "my.own"))
    print_key(str(tmp_path / "d.yaml"))
    lines = capsys.readouterr().out.splitlines()

    assert "state.backend: sets job.VERTEX.state.backend" in lines
    assert "my.own: not a key of Flink, no effect here" in lines
    assert "spec.job.upgradeMode: not modelled, no effect here" in lines


def with_conf(folder, conf, scenario=SCENARIO):
    (folder / "flink-conf.yaml").write_text(conf)
    (folder / "s.yaml").write_text(f"version: 1\n{scenario}flink-file: flink-conf.yaml\n")
    return folder / "s.yaml"


@pytest.mark.parametrize("scenario", [SCENARIO, f"{SCENARIO}checkpoint: {{barriers: unaligned}}\n"])
def test_a_file_without_an_interval_is_a_job_without_checkpoints(tmp_path, scenario):
    """One message says so, and what to write; an interval of the scenario is one."""
    with pytest.raises(ScenarioError) as error:
        load(with_conf(tmp_path, "parallelism.default: 4\n", scenario))

    (problem,) = error.value.problems
    assert problem.message.startswith(
        "has no execution.checkpointing.interval, and neither has the scenario: unless its program sets an interval"
    )
    assert load(with_conf(tmp_path, "parallelism.default: 4\n", f"{SCENARIO}checkpoint: {{interval: 7 s}}\n")).scenarios


@pytest.mark.parametrize(
    ("name", "text", "is_said"),
    [
        ("flink-conf.yaml", "parallelism.default: 4\n", True),
        ("flink-conf.yaml", "execution.checkpointing.interval: 5 s\n", False),
        ("scenario.yaml", "job: {}\nflink: {parallelism.default: 4}\n", False),
    ],
)
def test_the_list_of_keys_says_that_no_interval_is_set(tmp_path, name, text, is_said):
    (tmp_path / name).write_text(text)

    assert is_said == any(
        about.startswith("not set: the job takes no") for about in about_file(read_flink_file(tmp_path / name)).values()
    )


def test_a_wrong_interval_is_no_missing_one(tmp_path):
    with pytest.raises(ScenarioError, match=r"execution\.checkpointing\.interval") as error:
        load(with_conf(tmp_path, "execution.checkpointing.interval: often\n"))

    assert "sets no" not in str(error.value)


@pytest.mark.parametrize(
    ("written", "backend", "told"),
    [
        ("filesystem", "hashmap", "filesystem is now called hashmap"),
        ("jobmanager", "hashmap", "checkpoints in the JobManager's memory are not modelled"),
        (
            "org.apache.flink.runtime.state.memory.MemoryStateBackendFactory",
            "hashmap",
            "JobManager's memory are not modelled",
        ),
        ("org.apache.flink.runtime.state.filesystem.FsStateBackendFactory", "hashmap", "is now called hashmap"),
        ("org.apache.flink.contrib.streaming.state.RocksDBStateBackendFactory", "rocksdb", "is now called rocksdb"),
    ],
)
def test_older_names_and_classes_of_backends(tmp_path, written, backend, told):
    study = load(with_conf(tmp_path, f"state.backend: {written}\nexecution.checkpointing.interval: 5 s\n"))

    assert backend == study.scenarios[0].job.vertex("b").state.backend
    assert told in "\n".join(map(str, study.warnings))


@pytest.mark.parametrize("written", ["forst", "my.own.StateBackendFactory", "rocksdbs"])
def test_a_backend_that_is_not_modelled_is_refused(tmp_path, written):
    with pytest.raises(ScenarioError, match=f"{written}.*hashmap|hashmap or rocksdb.*{written}"):
        load(with_conf(tmp_path, f"state.backend: {written}\nexecution.checkpointing.interval: 5 s\n"))
