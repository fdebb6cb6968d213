"""The advice as a patch of a file: applied it sets every key, and applied backwards it restores the file."""

import shutil
import subprocess

import pytest
from ruamel.yaml import YAML

from sim.advice.answer.conf_patch import PATCH, PATCH_BACK, patches
from sim.advice.answer.configuration import KeyChange, patch
from sim.advice.conf_file import read_conf
from sim.scenario.text.problems import ScenarioError

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


def flat(text):
    found = YAML(typ="safe").load(text)
    return {key: str(value).lower() if isinstance(value, bool) else str(value) for key, value in found.items()}


@pytest.mark.skipif(shutil.which("patch") is None, reason="needs the tool patch")
def test_there_and_back_restores_the_file(tmp_path):
    """Only the advised keys change, and the way back gives the same bytes (with a last line that ends)."""
    file = tmp_path / "flink-conf.yaml"
    file.write_text(CONF)
    made = patches(FOUND, read_conf(file))
    file.write_text(f"{CONF}\n")
    for name, text in made.items():
        (tmp_path / name).write_text(text)
    subprocess.run(["patch", str(file), str(tmp_path / PATCH)], check=True, capture_output=True)
    advised = file.read_text()
    subprocess.run(["patch", str(file), str(tmp_path / PATCH_BACK)], check=True, capture_output=True)

    expected = {**flat(CONF), **{own.key: own.advised for own in FOUND if own.advised is not None}}
    del expected["state.backend.type"]
    assert expected == flat(advised)
    assert f"{CONF}\n" == file.read_text()


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


def test_a_deployment_has_its_configuration_again():
    """Both merge patches of a FlinkDeployment, one after the other."""
    before = {"spec": {"image": "flink", "job": {"jarURI": "a.jar"}, "flinkConfiguration": flat(CONF)}}
    there, back = (YAML(typ="safe").load(patch(FOUND, back=way, others={})) for way in (False, True))
    advised = merged(before, there)
    after = merged(advised, back)

    assert "5 s" == advised["spec"]["flinkConfiguration"]["execution.checkpointing.interval"]
    kept = {key: value for key, value in after["spec"]["flinkConfiguration"].items() if not key.startswith("kubernetes.operator.")}
    assert before["spec"]["flinkConfiguration"] == kept
    assert "flink" == after["spec"]["image"]


@pytest.mark.parametrize("flat", ["", "parallelism.default: 2\n"], ids=["nested", "in part"])
def test_a_nested_file_is_refused(tmp_path, flat):
    """A patch by lines would write the key twice."""
    (tmp_path / "config.yaml").write_text(flat + "execution:\n  checkpointing:\n    interval: 10 s\n")

    with pytest.raises(ScenarioError, match="its keys are nested"):
        read_conf(tmp_path / "config.yaml")
