"""Whatever a user points at is told apart by what it is, not by its name."""

import pytest

import benchmarks.lab  # noqa: F401 - a recording is the lab's
from sim.app.verbs.explain import explain_real_job, is_real
from sim.app.verbs.importing import JobPlace, draft_of
from sim.jobs.reading import Measured, infer, read_any, read_source, to_document
from sim.jobs.source.recorded_job import RecordingError
from sim.model.schema.study import load
from sim.model.schema.text import ScenarioError
from tests.places import RECORDINGS, REST

LOG = REST / "jobmanager.log"


def test_a_folder_of_logs(tmp_path):
    """The parts of one."""
    text = LOG.read_text().splitlines(keepends=True)
    (tmp_path / "flink-jobmanager-0.log").write_text("".join(text[30:]))
    (tmp_path / "flink-jobmanager-0.log.1").write_text("".join(text[:30]))
    (tmp_path / "flink-jobmanager-0.out").write_text("")

    assert read_source([LOG]).checkpoints == read_source([tmp_path]).checkpoints
    assert read_source([LOG]).checkpoints == read_source(sorted(tmp_path.glob("*.log*"))).checkpoints


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"{", "is not JSON"),
        (b"[1]", "neither a recording nor saved responses of a Flink job"),
        (b"hello", "no lines of checkpoints"),
        (b"\x7fELF\x02\x01\x01\x00", "is not JSON"),
        (b"\x1f\x8b\x08\x00", "truncated"),
        (b'{"archive": 3}', "neither a recording nor saved responses of a Flink job"),
        (b"PK\x03\x04 no zip", "is not JSON"),
        (b'{"format": ["x"]}', "which ckptsim does not read"),
    ],
    ids=range(9),
)
def test_what_is_nothing_we_know(tmp_path, content, message):
    """One line that names the file."""
    path = tmp_path / "x.dat"
    path.write_bytes(content)
    with pytest.raises(RecordingError) as caught:
        read_source([path])

    assert message in str(caught.value)
    assert "x.dat" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_nothing_there(tmp_path):
    with pytest.raises(RecordingError, match="No such file"):
        read_source([tmp_path / "none"])
    with pytest.raises(RecordingError, match="holds no saved answers"):
        read_source([tmp_path])


def test_the_scenario_of_a_recording_is_its_configuration_and_of_a_job_what_was_inferred():
    """Under one name for whoever compares."""
    recording, job = (
        read_any(RECORDINGS / "p2-severe-aligned.json.gz"),
        read_any(REST / "pressed.zip"),
    )

    assert to_document(recording).document["job"]["sink"]["service"] == "3 ms"
    assert isinstance(job, Measured)
    # as long as its history lists
    assert infer(job.source).document | {"run": {"duration": "18 s"}} == to_document(job).document
    assert job.name == "pressed"


@pytest.mark.parametrize(
    ("name", "text", "what"),
    [
        (
            "job.conf",
            "env {\n  parallelism = 2\n}\n",
            "no lines of checkpoints .*: no line has a time, so it is not a log of a JobManager",
        ),
        (
            "flink-conf.yaml",
            "state.backend: rocksdb\nparallelism.default: 4\n",
            "holds a configuration of Flink and no job: `ckptsim run",
        ),
        (
            "config.yaml",
            "state:\n  backend: {type: rocksdb}\nparallelism: {default: 4}\n",
            "holds a configuration of Flink",
        ),
        ("conf.txt", "state.backend: rocksdb\n", "holds a configuration of Flink"),
        (
            "job.yaml",
            "job: {}\ncheckpoint: {interval: 5 s}\n",
            "is a scenario, not a source of one: `ckptsim run` simulates it",
        ),
        (
            "config.json",
            '[{"key": "parallelism.default", "value": "1"}]',
            "is the answer to /jobmanager/config, which tells nothing of a job",
        ),
        (
            "m.json",
            '{"status": "success", "data": {"resultType": "matrix", "result": [{"metric": {"__name__": "bytes"}, "values": [[1, "5"]]}]}}',
            "has metrics of a monitoring system, no answers of Flink's REST API: `ckptsim traces read`",
        ),
    ],
)
def test_a_file_of_another_kind_is_named_with_the_command_that_reads_it(tmp_path, name, text, what):
    """By `import` and by `explain`, which explains a scenario."""
    (tmp_path / name).write_text(text)
    with pytest.raises(RecordingError, match=f"{name}: {what}"):
        read_source([tmp_path / name])
    if is_real(str(tmp_path / name)):
        with pytest.raises(RecordingError, match=f"{name}: {what}"):
            explain_real_job(JobPlace([tmp_path / name]))
    elif not what.startswith("is a scenario"):
        with pytest.raises(ScenarioError, match=f"{name}: {what}"):
            load(tmp_path / name)


@pytest.mark.parametrize(
    ("file", "said"),
    [
        (
            "checkpoints.json",
            "checkpoints.json in it is the answer to /jobs/JOB/checkpoints, and would have to be called jobs/JOB/",
        ),
        (
            "jobs/J/checkpoints.json",
            r"contains no job: expected a file jobs/ID.json with the response to /jobs/ID \(ID: 32 hexadecimal",
        ),
        (
            f"jobs/{'a' * 32}/checkpoints.json",
            f"the answer to /jobs/{'a' * 32} is missing .in a folder, the file jobs/{'a' * 32}.json",
        ),
    ],
)
def test_a_folder_without_what_is_needed_says_which_file_is_missing(tmp_path, file, said):
    """The same by `import` and by `explain`."""
    (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / file).write_text('{"counts": {"total": 0}, "history": []}')

    assert is_real(str(tmp_path))
    with pytest.raises(RecordingError, match=said):
        explain_real_job(JobPlace([tmp_path]))
    with pytest.raises(RecordingError, match=said):
        draft_of(read_source([tmp_path]))
