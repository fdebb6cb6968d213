"""The advice as a merge patch of a deployed manifest, in its spelling."""

from ruamel.yaml import YAML

from sim.advice.configuration import KeyChange, diff_flink_keys, patch
from sim.model.schema.flink_file import parse_flink_file
from tests.scenarios import read_scenario

FOUND = [
    KeyChange("execution.checkpointing.interval", "10 s", "5 s"),
    KeyChange("execution.checkpointing.unaligned.enabled", None, "true"),
    KeyChange("state.backend.type", "rocksdb", None),
    KeyChange("state.checkpoints.dir", None, "s3://bucket/a#b"),
]


def merged(document, change):
    """RFC 7386: null removes a key."""
    if not isinstance(change, dict):
        return change
    found = dict(document) if isinstance(document, dict) else {}
    for key, value in change.items():
        if value is None:
            found.pop(key, None)
        else:
            found[key] = merged(found.get(key), value)
    return found


MANIFEST = """\
# ours
apiVersion: flink.apache.org/v1beta1
kind: FlinkDeployment
metadata: {name: orders}
spec:
  image: flink  # of March
  flinkConfiguration:
    execution.checkpointing.interval: "10000"  # since March
    state.backend: rocksdb
    state.savepoints.dir: s3://a
  job:
    upgradeMode: savepoint
"""
NESTED = (
    MANIFEST[: MANIFEST.index("    execution")]
    + """\
    execution:
      checkpointing:
        interval: 10 s
    state:
      backend:
        type: rocksdb
  job:
    upgradeMode: savepoint
"""
)


def test_a_merge_patch_has_the_name_and_the_spelling_of_the_manifest():
    nested = YAML(typ="safe").load(patch(FOUND, back=False, others={}, conf=parse_flink_file(NESTED, "f")))
    text = patch(FOUND, back=False, others={}, conf=parse_flink_file(MANIFEST, "f"))
    merged_keys = merged(YAML(typ="safe").load(MANIFEST), YAML(typ="safe").load(text))["spec"]["flinkConfiguration"]

    assert "# kubectl patch flinkdeployment orders --type merge --patch-file advised.yaml" in text.splitlines()
    assert "state.backend" not in merged_keys
    assert nested["spec"]["flinkConfiguration"]["execution"]["checkpointing"]["interval"] == "5 s"
    assert nested["spec"]["flinkConfiguration"]["state"]["backend"] == {"type": None}


def test_values_of_today_are_those_of_the_file():
    today = read_scenario(TODAY)
    advised = read_scenario(TODAY, overrides=["checkpoint.interval=5 s"])

    assert [KeyChange("execution.checkpointing.interval", "10000", "5 s")] == diff_flink_keys(
        today, advised, (), parse_flink_file(MANIFEST, "f")
    )


def test_keys_have_the_names_of_the_file():
    """An older name that stays beside the present one is two values, in nested YAML no document at all."""
    conf = parse_flink_file(
        MANIFEST.replace("state.backend:", "execution.checkpointing.unaligned: false\n    state.backend:"), "f"
    )
    today, change = read_scenario(TODAY + "cluster: {version: 2.0.0}\n"), ["checkpoint.barriers=unaligned"]
    advised = read_scenario(TODAY + "cluster: {version: 2.0.0}\n", overrides=change)

    (found,) = diff_flink_keys(today, advised, (), conf)
    assert found.lines() == ["- execution.checkpointing.unaligned: false", "+ execution.checkpointing.unaligned: true"]


def test_another_backend_needs_a_savepoint_under_its_older_name():
    found = [KeyChange("state.backend", "hashmap", "rocksdb")]

    assert 'kubernetes.operator.savepoint.format.type: "CANONICAL"' in patch(found, back=False, others={})


TODAY = "job: {a: {source: {rate: 1/s, record: 1 B}}}\nrun: {duration: 1 min}\ncheckpoint: {interval: 10 s}\n"
