"""What is told of a key is what the documents and the model say."""

import json

import pytest

from docs.reference import scenario_page
from sim.app.cli.references import print_key
from sim.model.schema.reference import UnknownKeyError, all_keys, explain_key
from sim.model.schema.study import loads

SMALL = "version: 1\njob: {a: {source: {rate: 1/s, record: 1 kB}}}\ncheckpoint: {interval: 1 s}\nrun: {duration: 1 s}\n"


def test_every_key_has_a_meaning_and_values():
    assert [reference.key for reference in all_keys() if not (reference.meaning and reference.values)] == []


@pytest.mark.parametrize(
    ("key", "default", "actual"),
    [
        ("checkpoint.timeout", "10 min", lambda s: s.checkpoint.timeout_ns == 600 * 10**9),
        ("checkpoint.max-concurrent", "1", lambda s: s.checkpoint.max_concurrent == 1),
        ("checkpoint.transfer-threads", "4", lambda s: s.checkpoint.state.transfer_threads == 4),
        ("cluster.network.segment-size", "32 KiB", lambda s: s.cluster.network.segment_bytes == 32768),
        ("storage.retry.max-backoff", "30 s", lambda s: s.storage.retry.max_backoff_ns == 30 * 10**9),
        ("restart.jitter", "10 %", lambda s: s.restart.jitter == pytest.approx(0.1)),
        ("run.seed", "1", lambda s: s.run.seed == 1),
    ],
)
def test_the_default_is_that_of_the_model(key, default, actual):
    assert default == explain_key(key).default
    assert actual(loads(SMALL).scenarios[0])


def test_a_key_of_flink_leads_to_ours():
    assert explain_key("execution.checkpointing.min-pause").key == "checkpoint.min-pause"
    assert explain_key("checkpoint.interval").flink == ("execution.checkpointing.interval",)


def test_keys_of_a_flink_block_and_those_without_effect(ckptsim):
    assert ckptsim("explain-key flink.state.backend.type").stdout.startswith("job.VERTEX.state.backend\n")
    left_out = ckptsim("explain-key metrics.reporters")
    assert (
        left_out.stderr
        == "metrics.reporters is a key of Flink that is not modelled: under flink: it is accepted and has no effect\n"
    )


def test_an_older_name_of_flink_leads_to_ours():
    assert explain_key("akka.ask.timeout").key == "restart.ask-timeout"
    assert explain_key("restart.ask-timeout").older == ("akka.ask.timeout (until 1.17)",)


def test_what_a_key_excludes_and_needs():
    assert explain_key("storage.slow").excludes == ("storage.dfs", "storage.object-store")
    assert "only with  restart.strategy: fixed-delay | failure-rate" in str(explain_key("restart.delay"))
    assert explain_key("restart.warm-up-factor").needs == "restart.warm-up"
    assert explain_key("job.src.source.rate").excludes == ("job.VERTEX.source.rate-per-subtask",)
    assert (
        explain_key("faults.lasts-column").needs
        == "faults.storage | faults.network | faults.slow | faults.commit and faults.trace"
    )


def test_every_key_says_its_default():
    """A value, what its sentence says, that it is required, or that nothing is there without it."""
    assert [reference.key for reference in all_keys() if not reference.default] == []
    assert {
        key: explain_key(key).default
        for key in (
            "checkpoint.interval",
            "actions.format",
            "checkpoint.staging.when-full",
            "storage.disk",
            "job.VERTEX.source.rate.scale",
        )
    } == {
        "checkpoint.interval": "required",
        "actions.format": "canonical",
        "checkpoint.staging.when-full": "block",
        "storage.disk": "none",
        "job.VERTEX.source.rate.scale": "1",
    }
    assert tuple(explain_key(key).default for key in ("storage.bandwidth", "storage.object-store.latency")) == (
        "unlimited",
        "lognormal, mean 72 ms, cv 1.5",
    )


def test_a_vertex_may_have_any_name():
    assert explain_key("job.my-map.state.size").key == "job.VERTEX.state.size"
    assert {"factor", "share"} <= set(explain_key("storage.dfs.slow").keys)


def test_an_unknown_key_names_one_that_is_near():
    with pytest.raises(UnknownKeyError, match=r"did you mean 'storage\.slow\.share'"):
        explain_key("slow-share")
    with pytest.raises(UnknownKeyError, match=r"there is .*checkpoint"):
        explain_key("x.timeout")


def test_the_page_of_reference_says_the_same():
    """Default and Flink's keys stand beside the meaning; a section without options has no keys of Flink."""
    page = scenario_page().splitlines()

    assert [
        line.endswith("| 10 min | `execution.checkpointing.timeout` |")
        for line in page
        if line.startswith("| `timeout` | Age at which")
    ] == [True]
    assert "| key | meaning | values | default |" in page
    assert [
        line for line in page if line.startswith("| `") and line.replace("\\|", "").split("|")[4].strip() == ""
    ] == []


def test_the_command_tells_it(ckptsim):
    assert "default  10 min" in ckptsim("explain-key checkpoint.timeout").stdout
    assert json.loads(ckptsim("explain-key checkpoint.timeout --json").stdout)["default"] == "10 min"
    assert {ckptsim("explain-key", word).exit_code for word in ("nonsense", ".", "5")} == {2}


@pytest.mark.parametrize(
    ("word", "key"),
    [
        ("rocksdb", "job.VERTEX.state.backend"),
        ("kafka", "job.VERTEX.connector"),
        ("S3", "storage.object-store"),
        ("partitions", "job.VERTEX.source.silent"),
        ("keyBy", "job.VERTEX.input"),
    ],
)
def test_a_word_that_is_no_key_is_searched(ckptsim, word, key):
    """In keys, values, meanings and Flink's keys; for machines the same keys."""
    done = ckptsim("explain-key", word)

    assert done.exit_code == 0, done.stderr
    assert f"\n{key}: " in done.stdout
    assert key in {row["key"] for row in json.loads(ckptsim("explain-key", word, "--json").stdout)}


def test_a_vertex_has_keys_with_or_without_its_name(ckptsim):
    assert explain_key("job.connector").key == "job.VERTEX.connector"
    assert explain_key("job.source").key == explain_key("job.VERTEX.source").key == "job.VERTEX.source"
    assert "\njob.VERTEX.connector: " in ckptsim("explain-key job.VERTEX").stdout


def test_without_a_key_the_sections_are_listed(ckptsim):
    """Each in a line; what is below is shown with a section."""
    lines = ckptsim("explain-key").stdout.splitlines()

    assert {line.partition(":")[0] for line in lines if line and line[0].islower()} >= {"job", "checkpoint", "run"}
    assert [line for line in lines if "." in line.partition(":")[0] and not line.startswith("ckptsim")] == []
    assert len(lines) < 30
    assert "checkpoint.timeout: Age at which a checkpoint expires." in ckptsim("explain-key checkpoint").stdout


def test_one_of_several_resources_of_a_file_is_explained(tmp_path, capsys):
    text = "apiVersion: flink.apache.org/v1beta1\nkind: FlinkDeployment\nmetadata: {name: NAME}\nspec: {flinkConfiguration: {KEY: 1 min}}\n"
    names = {"orders": "execution.checkpointing.timeout", "clicks": "execution.checkpointing.interval"}
    (tmp_path / "all.yaml").write_text(
        "---\n".join(text.replace("NAME", n).replace("KEY", k) for n, k in names.items())
    )
    print_key(f"{tmp_path}/all.yaml#clicks")

    assert "execution.checkpointing.interval: sets checkpoint.interval" in capsys.readouterr().out
