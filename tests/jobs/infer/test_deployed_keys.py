"""`import --flink FILE`: keys that the job does not tell are taken, and where both say a value the job's counts."""

from dataclasses import replace
from pathlib import Path

import pytest

import benchmarks.lab  # noqa: F401 - a recording is the lab's
from sim.app.verbs.common import Listener, OptionError
from sim.app.verbs.importing import import_job, text_of
from sim.jobs.infer.options import with_flink_file
from sim.jobs.reading import infer, read_source
from sim.jobs.source.saved import read_saved
from sim.model.schema.flink_file import parse_flink_file
from sim.model.schema.study import loads
from sim.model.schema.text import ScenarioError

DATA = Path(__file__).parents[2] / "data"
REST, LOG = DATA / "rest" / "pressed.zip", DATA / "rest" / "jobmanager.log"
DEPLOYMENT = """\
apiVersion: flink.apache.org/v1beta1
kind: FlinkDeployment
metadata: {name: x}
spec:
  flinkVersion: v1_20
  flinkConfiguration:
    execution.checkpointing.interval: 9 s
    execution.checkpointing.min-pause: 3 s
    execution.checkpointing.unaligned: true
    heartbeat.interval: 3 s
    restart-strategy.type: none
    taskmanager.numberOfTaskSlots: "4"
    metrics.reporters: prom
  taskManager: {resource: {cpu: 2}}
"""
FILE = parse_flink_file(DEPLOYMENT, "d.yaml")


def taken(source):
    """The import of a source with the file, and the scenario that it makes."""
    draft = with_flink_file(infer(source), FILE, source)
    return draft, loads(text_of(draft)).scenarios[0]


def test_a_file_answers_what_is_asked_where_an_answer_is_missing():
    source = read_saved(REST)
    answers = {path: answer for path, answer in source.answers.items() if not path.endswith("/checkpoints/config")}
    draft, scenario = taken(replace(source, answers=answers))

    assert (
        scenario.checkpoint.interval_ns,
        scenario.checkpoint.min_pause_ns,
        str(scenario.checkpoint.barriers),
    ) == (9 * 10**9, 3 * 10**9, "unaligned")
    assert "checkpoint" not in draft.document
    assert [question for question in draft.unknown if "How often is a checkpoint taken?" in question] == []


def test_a_file_answers_what_a_log_does_not_tell():
    source = read_source([LOG])
    draft, scenario = taken(source)
    asked = set(infer(source).unknown) - set(draft.unknown)

    assert str(scenario.checkpoint.barriers) == "unaligned"
    assert scenario.cluster.slots == 4
    assert any("aligned or unaligned" in question for question in asked)


def imported(folder, text, source=REST):
    (folder / "d.yaml").write_text(text)
    said = []
    listener = Listener()
    listener.message = said.append
    import_job([source], flink=folder / "d.yaml", backtest=False, listener=listener)
    return "\n".join(said).replace(f"{folder}/", "")


def test_what_the_job_contradicts_is_said(tmp_path):
    said = imported(tmp_path, DEPLOYMENT)

    assert "d.yaml: execution.checkpointing.interval 9 s is not in force: the job has checkpoint.interval 4 s" in said
    assert "d.yaml: cluster.version 1.20 is not in force: the job has 2.3.0" in said
    assert "heartbeat" not in said


def test_what_is_no_configuration_is_refused(tmp_path):
    with pytest.raises(ScenarioError, match=r"did you mean 'execution\.checkpointing\.interval'"):
        imported(tmp_path, DEPLOYMENT.replace("checkpointing.interval", "checkpointing.intervall"))
    with pytest.raises(OptionError, match="a recording has all of its configuration"):
        imported(tmp_path, DEPLOYMENT, DATA / "recordings" / "p2-severe-aligned.json.gz")
