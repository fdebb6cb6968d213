"""The advice as a patch of a file: applied it sets every key, and applied backwards it restores the file."""

import shutil
import subprocess

import pytest
from ruamel.yaml import YAML

from sim.advice.configuration import PATCH, PATCH_BACK, KeyChange, diff_flink_keys, patch, patches
from sim.model.schema.flink_file import parse_flink_file
from sim.model.schema.flink_keys import current_names
from sim.model.schema.study import loads

CONF = """\
# our cluster
jobmanager.rpc.address: jm
execution.checkpointing.interval: 10 s   # since March
state.backend.type: rocksdb

taskmanager.numberOfTaskSlots: 4"""
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
        unaligned: {}

    state:
      backend: {type: rocksdb}
  job:
    upgradeMode: savepoint
""".replace("        unaligned: {}\n", "").replace("backend: {type: rocksdb}", "backend:\n        type: rocksdb")
)
CONFIG = """\
execution:
  checkpointing:
    interval: 10 s
state:
  backend:
    type: rocksdb
# the end
"""
WITHOUT = MANIFEST[: MANIFEST.index("  flinkConf")] + MANIFEST[MANIFEST.index("  job:") :]
FORMS = [CONF, CONF.replace("\n", "\r\n"), MANIFEST, NESTED, CONFIG, WITHOUT]


def applied(text, patch, tmp_path):
    (tmp_path / "file").write_bytes(text.encode())
    subprocess.run(["patch", "--binary", str(tmp_path / "file")], input=patch.encode(), check=True, capture_output=True)
    return (tmp_path / "file").read_bytes().decode()


@pytest.mark.skipif(shutil.which("patch") is None, reason="needs the tool patch")
@pytest.mark.parametrize(
    "text", FORMS, ids=["flat", "windows", "manifest", "nested manifest", "nested", "without keys"]
)
def test_each_form_is_patched_in_its_own_spelling(tmp_path, text):
    """Every key has its new value where it is read, once; lines of others stay, and the way back restores each byte."""
    conf = parse_flink_file(text, "file")
    made = patches(FOUND, conf)
    ended = text if text.endswith("\n") else f"{text}\r\n" if "\r\n" in text else f"{text}\n"
    advised = applied(ended, made[PATCH], tmp_path)
    keys = {
        current_names().get(key, key): str(value).lower()
        for key, (value, _) in parse_flink_file(advised, "file").keys.items()
    }

    assert {own.key: own.advised for own in FOUND} == {own.key: keys.get(own.key) for own in FOUND}
    assert ended == applied(advised, made[PATCH_BACK], tmp_path)
    assert not conf.kind or f"kind: {conf.kind}" in advised


def test_a_manifest_keeps_its_form():
    """Text in quotes, the older name of a key, comments, sections of a nested one."""
    added = {
        form: [line[1:] for line in patches(FOUND, parse_flink_file(form, "f"))[PATCH].splitlines() if line[:1] == "+"][
            1:
        ]
        for form in (MANIFEST, NESTED)
    }

    assert added[MANIFEST] == [
        "    execution.checkpointing.interval: 5 s  # since March",
        '    execution.checkpointing.unaligned.enabled: "true"',
        '    state.checkpoints.dir: "s3://bucket/a#b"',
    ]
    assert added[NESTED] == [
        "        interval: 5 s",
        '        unaligned.enabled: "true"',
        '    state.checkpoints.dir: "s3://bucket/a#b"',
    ]


def test_a_merge_patch_has_the_name_and_the_spelling_of_the_manifest():
    nested = YAML(typ="safe").load(patch(FOUND, back=False, others={}, conf=parse_flink_file(NESTED, "f")))
    text = patch(FOUND, back=False, others={}, conf=parse_flink_file(MANIFEST, "f"))
    merged_keys = merged(YAML(typ="safe").load(MANIFEST), YAML(typ="safe").load(text))["spec"]["flinkConfiguration"]

    assert "# kubectl patch flinkdeployment orders --type merge --patch-file advised.yaml" in text.splitlines()
    assert "state.backend" not in merged_keys
    assert nested["spec"]["flinkConfiguration"]["execution"]["checkpointing"]["interval"] == "5 s"
    assert nested["spec"]["flinkConfiguration"]["state"]["backend"] == {"type": None}


def test_keys_in_braces_are_not_patched():
    """A patch of lines would take their neighbours along."""
    assert patches(FOUND, parse_flink_file("execution: {checkpointing: {interval: 10 s}}\n", "f")) == {}


def test_values_of_today_are_those_of_the_file():
    (today,) = loads(TODAY).scenarios
    (advised,) = loads(TODAY, overrides=["checkpoint.interval=5 s"]).scenarios

    assert [KeyChange("execution.checkpointing.interval", "10000", "5 s")] == diff_flink_keys(
        today, advised, (), parse_flink_file(MANIFEST, "f")
    )


TODAY = "job: {a: {source: {rate: 1/s, record: 1 B}}}\nrun: {duration: 1 min}\ncheckpoint: {interval: 10 s}\n"
