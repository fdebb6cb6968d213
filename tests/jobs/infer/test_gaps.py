"""What no answer and no line says is asked for; what the history or the configuration says is not assumed to be otherwise."""

import pytest

from sim.advice.questions import unknowns
from sim.jobs.infer.log import infer_log
from sim.jobs.infer.options import infer_checkpoint, infer_cluster
from sim.jobs.infer.scenario import infer_scenario
from sim.jobs.infer.state import infer_state
from sim.jobs.source.rest_answers import RestSnapshot
from sim.jobs.source.saved import read_saved
from tests.jobs.infer.made_jobs import MadeJob, checkpoint, comment_of, drafted, subtask, vertex
from tests.jobs.infer.test_infer_log import logged
from tests.places import DATA

CONFIGURED = {
    "execution.checkpointing.timeout": "3 min",
    "execution.checkpointing.min-pause": "10 s",
    "execution.checkpointing.tolerable-failed-checkpoints": "3",
    "execution.checkpointing.unaligned.enabled": "true",
}


def rocksdb_points(**fields):
    """The state of 'sink' is 9 MB, of which each checkpoint writes 1 MB."""
    return [checkpoint(k, 7000, sink=[subtask(size=9 * 10**6, written=10**6, **fields)]) for k in range(2, 9)]


def drafted_options(points=(), config=None, options=()):
    job = MadeJob([vertex("src"), vertex("sink", "src")], points, config, options)
    draft = drafted(job)
    infer_checkpoint(draft, job)
    infer_state(draft, job)
    infer_cluster(draft, job)
    return draft


def test_a_log_has_the_settings_of_its_configuration():
    log = logged(*((10_000 * k, 200) for k in range(6)), options=CONFIGURED | {"state.backend.type": "rocksdb"})
    inference = infer_log(log)

    assert inference.document["flink"] | {"execution.checkpointing.unaligned.enabled": "true"} == CONFIGURED
    assert inference.document["checkpoint"] == {"interval": "10 s"}
    assert inference.document["job"]["operator"]["state"]["backend"] == "rocksdb"
    assert not any("aligned" in question or "timeout" in question for question in inference.unknown)


def test_without_the_checkpoint_configuration_the_history_tells():
    draft = drafted_options(rocksdb_points(persisted=1))
    asked = drafted_options(rocksdb_points(), options=CONFIGURED)

    settings = {"interval": "7 s", "timeout": "10 min", "barriers": "unaligned", "incremental": True}
    assert settings == draft.document["checkpoint"]
    assert draft.document["job"]["sink"]["state"]["backend"] == "rocksdb"
    assert "Assumed: rocksdb: checkpoints write less" in comment_of(draft, "job.sink.state.backend")
    assert asked.document["flink"] | {"execution.checkpointing.unaligned.enabled": "true"} == CONFIGURED
    assert asked.document["checkpoint"].keys() == {"interval", "incremental"}


def test_an_option_that_the_answer_lacks_is_that_of_the_cluster():
    """Before 1.16 the answer has no tolerable failures, and before 1.12 no backend, which is the heap by default."""
    whole = [checkpoint(k, sink=[subtask(size=10**6)]) for k in range(2, 5)]
    draft = drafted_options(whole, {"timeout": 60_000}, CONFIGURED)

    assert draft.document["flink"].items() == CONFIGURED.items() - {
        ("execution.checkpointing.timeout", "3 min"),
        ("execution.checkpointing.unaligned.enabled", "true"),
    }
    assert "UNKNOWN: Which state backend keeps it? Assumed: on the heap" in comment_of(draft, "job.sink.state.size")


@pytest.mark.parametrize(
    ("answer", "change", "says"),
    [
        ("/checkpoints/config", {"checkpoint_storage": "JobManagerCheckpointStorage"}, "on the heap of the JobManager"),
        ("/config", {"execution-config": {"restart-strategy": "Restart when idle"}}, "strategy, 'Restart when idle'?"),
        ("jobmanager/config", None, "Which options are configured"),
        ("/taskmanagers", None, "How many cores does each host have?"),
    ],
)
def test_what_a_scenario_cannot_have_is_said_at_its_head(answer, change, says):
    snapshot = read_saved(DATA / "rest" / "keeping-up.zip")
    answers = {
        path: {**value, **change} if change and path == f"/jobs/{snapshot.job}{answer}" else value
        for path, value in snapshot.answers.items()
        if change or not path.endswith(answer)
    }
    text = infer_scenario(RestSnapshot("saved", snapshot.job, answers, snapshot.samples)).text

    assert says in text.partition("version:")[0].replace("\n# ", " ")
    assert all(unknown.assumed is None for unknown in unknowns(text) if unknown.path == ("version",))


def test_a_job_with_savepoints_alone_has_their_state():
    point = checkpoint(2, sink=[subtask(size=9 * 10**6)]).model_copy(update={"is_savepoint": True})
    draft = drafted_options([point], {"state_backend": "EmbeddedRocksDBStateBackend"})

    assert draft.document["job"]["sink"]["state"] == {"size": "9 MB", "backend": "rocksdb"}
